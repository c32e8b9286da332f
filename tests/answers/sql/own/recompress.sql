# RECOMPRESS: large values that are deflate streams are stored as what is in them, and come back to the bit.
set group_concat_max_len = 1000000;
# Repeated at a distance that zlib's window does not reach.
set @text = (select group_concat(sha2(seq, 256) separator ' ') from seq_1_to_800);
create table t (id int primary key, b longblob) recompress=yes;
create table plain like t;
alter table plain recompress=no, algorithm=inplace, lock=none;
show create table t;
show create table plain;
insert into plain select seq, compress(concat(seq, @text, @text, seq)) from seq_1_to_40;
# A transaction that is large, and small ones.
insert into t select * from plain where id <= 30;
insert into t select * from plain where id = 31;
insert into t select * from plain where id = 32;
insert into t select * from plain where id > 32;
# What is none, is another's, or is cut off.
insert into t values (101, repeat('text ', 9000)), (102, (select left(b, 40000) from plain where id = 1)), (103, concat((select b from plain where id = 2), 'x')),
  (104, ''), (105, null), (106, compress('short'));
set global teak_checkpoint_now = 1;
select max(data_length) / min(data_length) > 1.4 as 'is smaller' from information_schema.tables where table_schema = database() and table_name in ('t', 'plain');
select count(*), sum(a.b = p.b), sum(uncompress(a.b) = concat(a.id, @text, @text, a.id)) from t a join plain p using (id);
select id, length(b), md5(b) from t where id > 100;
check table t extended;
# The choice is stored with the value: others read it when the option is another.
alter table t recompress=no, algorithm=inplace, lock=none;
insert into t select id + 200, b from plain where id < 5;
set global teak_checkpoint_now = 1;
select count(*), sum(a.b = p.b) from t a join plain p on a.id in (p.id, p.id + 200);
alter table t force;
select count(*), sum(a.b = p.b) from t a join plain p on a.id in (p.id, p.id + 200);
alter table t recompress=yes, add key (b(20));
alter table t force;
update t a join plain p on p.id = a.id - 200 set a.b = compress(concat('another ', @text, @text));
delete from t where id between 10 and 20;
set global teak_checkpoint_now = 1;
select count(*), sum(a.b = p.b), sum(length(a.b) > 30000) from t a join plain p on a.id in (p.id, p.id + 200);
optimize table t;
select count(*), sum(a.b = p.b), sum(length(a.b) > 30000) from t a join plain p on a.id in (p.id, p.id + 200);
check table t, plain extended;
select distinct compression from information_schema.teak_tables where table_schema = database();
create table wrong (id int) recompress=yes compression=lz4;
alter table t compression=none;
alter table t compression=none, algorithm=inplace;
alter table t compression=none, recompress=no, algorithm=inplace;
create table memory_one (id int primary key, b longblob) in_memory=yes recompress=yes;
insert into memory_one select * from plain where id < 4;
select count(*), sum(a.b = p.b) from memory_one a join plain p using (id);
drop table t, plain, memory_one;
