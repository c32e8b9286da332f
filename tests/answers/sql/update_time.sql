-- UPDATE_TIME of information_schema.TABLES: the time of the last commit that changed a row; unknown until there is one.
create table t (id int primary key, v int);
create table p (id int primary key, v int) partition by hash (id) partitions 3;
create view times as select table_name, update_time is null as unknown, update_time between now() - interval 1 hour and now() as recent
  from information_schema.tables where table_schema = database() and table_name in ('t', 'p') order by table_name;
select * from times;
begin;
insert into t values (1, 1);
select * from times;
rollback;
select * from times;
begin;
insert into p values (1, 1);
commit;
select * from times;
insert into t values (1, 1);
select * from times;
truncate t;
select * from times;
-- When the table was made, as the server's definition says it.
create table made (id int primary key);
create table parts (id int primary key) partition by hash (id) partitions 3;
select table_name, create_time between now() - interval 1 minute and now() as recent from information_schema.tables where table_schema = database() and table_name in ('made', 'parts') order by 1;
select partition_name, create_time between now() - interval 1 minute and now() as recent from information_schema.partitions where table_schema = database() and table_name = 'parts' order by 1;
drop table made, parts;
