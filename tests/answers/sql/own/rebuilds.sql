-- ALTER TABLE that writes all rows anew: what is not as with InnoDB. MariaDB 11.8 has other words for a DATA DIRECTORY.
set sql_mode = 'STRICT_TRANS_TABLES';
create table t (id int not null auto_increment primary key, a int, c text, key a (a));
insert into t (a, c) select seq % 7, concat('text ', seq % 50) from seq_1_to_300;
update t set a = null where id = 5;
-- As in InnoDB: the first row, in the order of keys.
alter table t modify a int not null, algorithm=inplace, lock=none;
-- It does what it does with a copy: other values.
set sql_mode = '';
alter table t modify a int not null, algorithm=inplace, lock=none;
set sql_mode = 'STRICT_TRANS_TABLES';
-- InnoDB shows a key of a part of a text as empty.
alter table t drop primary key, add primary key (c(3)), add key id (id), algorithm=inplace, lock=none;
alter table t engine=teak, algorithm=inplace, lock=none;
alter table t engine=teak, algorithm=nocopy;
-- Row layouts are one again.
alter table t add column b int default 3 first, algorithm=instant;
alter table t drop column b, algorithm=instant;
alter table t block_size=8192, algorithm=nocopy;
alter table t block_size=8192, algorithm=inplace, lock=none;
select count(*), sum(id), sum(a), sum(crc32(c)) from t force index (a) where a >= 0;
-- What is copied all the same.
alter table t disable keys;
alter table t force, algorithm=inplace;
alter table t enable keys;
alter table t add unique key long_one (c), force, algorithm=inplace;
alter table t add column g int as (a + 1) stored, algorithm=inplace;
alter table t add column g int as (a + 1) virtual, force, algorithm=inplace;
alter table t add check (a > 0), force, algorithm=inplace;
alter table t add foreign key (a) references t (id), force, algorithm=inplace;
alter table t force, data directory='/tmp', algorithm=inplace;
create table v (id int primary key, a int) with system versioning;
alter table v force, algorithm=inplace;
select table_name, count(*) from information_schema.teak_tables where table_schema in (database(), '#rebuild') group by table_name order by table_name;
check table t extended;
show create table t;
