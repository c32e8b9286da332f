# The setting, and what is counted.
select @@global.teak_read_ahead;
set global teak_read_ahead = 0;
select @@global.teak_read_ahead;
set global teak_read_ahead = 5000;
select @@global.teak_read_ahead;
set global teak_read_ahead = 'many';
set teak_read_ahead = 3;
set global teak_read_ahead = default;
select @@global.teak_read_ahead;
select variable_name from information_schema.global_status where variable_name like 'teak_read_ahead%' order by 1;
