# SIMILARITY: large values that are alike are stored together, as of the next checkpoints or OPTIMIZE TABLE.
set group_concat_max_len = 1000000;
create table plain (id int auto_increment primary key, page int, b longblob);
# 6 pages of 40 versions each, pages in turn: each version adds a few words in front.
insert into plain (page, b) select p.seq, compress(concat(v.seq, ' words that are new in version ', v.seq, ' of page ', p.seq, ' ',
  (select group_concat(sha2(concat(p.seq, s.seq), 256) separator ' ') from seq_1_to_300 s))) from seq_1_to_40 v join seq_1_to_6 p order by v.seq, p.seq;
create table t like plain;
alter table t recompress=yes, similarity=yes, algorithm=inplace, lock=none;
show create table t;
insert into t select * from plain;
select bundled_values, bundled_bytes, bundled_disk_bytes, largest_bundle from information_schema.teak_tables where table_schema = database() and table_name = 't';
# The newest version of each page, of which the last row of each is, stays alone.
optimize table t;
select bundled_values, bundled_bytes between (select sum(length(b)) from plain where id <= 234) and (select sum(length(b) + 20) from plain where id <= 234) as bytes, bundled_disk_bytes < bundled_bytes / 9 as small, largest_bundle
  from information_schema.teak_tables where table_schema = database() and table_name = 't';
select data_length < (select sum(length(b)) from plain) / 8 as small from information_schema.tables where table_schema = database() and table_name = 't';
select count(*), sum(a.b = p.b) from t a join plain p using (id);
check table t extended;
# Changes and deletions, which leave less than half of some.
update t set b = compress(repeat('something else ', 1000)) where page = 1 and id > 60;
delete from t where page = 2 and id > 30;
set global teak_checkpoint_now = 1;
select bundled_values from information_schema.teak_tables where table_schema = database() and table_name = 't';
optimize table t;
select bundled_values > 0, largest_bundle from information_schema.teak_tables where table_schema = database() and table_name = 't';
select count(*), sum(a.b = p.b) from t a join plain p using (id);
check table t extended;
# What is there is read by whatever option, and written anew by a copy.
alter table t similarity=no, algorithm=inplace, lock=none;
select count(*), sum(a.b = p.b) from t a join plain p using (id);
alter table t force, algorithm=copy;
set global teak_checkpoint_now = 1;
select bundled_values, largest_bundle from information_schema.teak_tables where table_schema = database() and table_name = 't';
select count(*), sum(a.b = p.b) from t a join plain p using (id);
alter table t similarity=yes;
optimize table t;
select bundled_values > 0 as packed from information_schema.teak_tables where table_schema = database() and table_name = 't';
# As file of its own, and back.
flush tables t for export;
unlock tables;
truncate table t;
select bundled_values, bundled_bytes, bundled_disk_bytes from information_schema.teak_tables where table_schema = database() and table_name = 't';
insert into t select * from plain;
select count(*), sum(a.b = p.b) from t a join plain p using (id);
# Texts as they are.
create table texts (id int primary key, b longtext) similarity=yes;
insert into texts select id, uncompress(b) from plain;
optimize table texts;
select bundled_values, bundled_bytes > bundled_disk_bytes * 15 as small from information_schema.teak_tables where table_schema = database() and table_name = 'texts';
select count(*), sum(x.b = uncompress(p.b)) from texts x join plain p using (id);
# Partitions have packs of their own.
create table parted (id int primary key, page int, b longblob) recompress=yes similarity=yes partition by hash (id) partitions 2;
insert into parted select * from plain;
optimize table parted;
select sum(bundled_values), max(largest_bundle) from information_schema.teak_tables where table_schema = database() and table_name like '%parted#P#%';
select count(*), sum(a.b = p.b) from parted a join plain p using (id);
check table t, texts, parted extended;
drop table t, plain, texts, parted;
