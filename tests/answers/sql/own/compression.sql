# COMPRESSION and COMPRESSION_LEVEL: changed in place, while others read and write; blocks are rewritten by the next checkpoint.
create table t (id int primary key, a varchar(300), key (a)) compression='none';
insert into t select seq, concat(seq, repeat(' compressible', 20)) from seq_1_to_20000;
set global teak_checkpoint_now = 1;
select data_length + index_length into @none from information_schema.tables where table_schema = database() and table_name = 't';
alter table t compression='zstd', compression_level=9, algorithm=inplace, lock=none;
set global teak_checkpoint_now = 1;
select data_length + index_length into @zstd from information_schema.tables where table_schema = database() and table_name = 't';
select @none > 10000000 as 'is large', @zstd < @none / 4 as 'is small';
show create table t;
select count(*), sum(crc32(a)) from t force index (primary) where id > 0;
select count(*), sum(crc32(a)) from t force index (a) where a > '';
check table t;
alter table t compression='lz4', algorithm=inplace, lock=none;
insert into t values (0, 'more');
alter table t compression='none', add column b int default 7;
set global teak_checkpoint_now = 1;
select data_length + index_length > @zstd * 4 as 'is large again', (select sum(b) from t) as b from information_schema.tables
  where table_schema = database() and table_name = 't';
alter table t compression_level=20;
alter table t compression='best';
alter table t block_size=8192, algorithm=nocopy;
alter table t block_size=8192;
check table t;
show create table t;
# Of a partitioned table all parts change, in one step.
create table p (id int primary key) compression='none' partition by hash (id) partitions 3;
alter table p compression='lz4', algorithm=inplace, lock=none;
select distinct compression from information_schema.teak_tables where table_schema = database() and table_name like '%p#P#%';
