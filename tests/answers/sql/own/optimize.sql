-- OPTIMIZE TABLE packs a table in place. What needs a copy still gets one, and the server says so.
create table t (id int primary key, v int, text varchar(50), key (v));
insert into t select seq, seq * 7 % 1009, concat('text ', seq) from seq_1_to_5000;
delete from t where id % 3;
optimize table t;
check table t extended;
select count(*), sum(id), sum(v) from t;
optimize local table t;
# Nothing to do.
create table empty (id int primary key);
optimize table empty, nothing;
# Under LOCK TABLES.
lock tables t write;
optimize table t;
unlock tables;
# Rows of older layouts are written anew in place.
alter table t add column late int default 5, algorithm=instant;
optimize table t;
optimize table t;
select count(*), sum(late) from t;
# Partitions, one by one and all.
create table p (id int primary key, v int, key (v)) partition by hash (id) partitions 3;
insert into p select seq, seq from seq_1_to_3000;
delete from p where id % 2;
alter table p optimize partition p1;
optimize table p;
check table p extended;
select count(*), sum(v) from p;
# Temporary tables.
create temporary table own (id int primary key, v int, key (v));
insert into own select seq, seq from seq_1_to_1000;
delete from own where id > 10;
optimize table own;
select count(*), sum(v) from own;
# Disabled indexes stay disabled.
alter table t disable keys;
insert into t (id, v) values (100000, 1);
optimize table t;
alter table t enable keys;
check table t extended;
# Foreign keys.
create table mother (id int primary key);
create table kid (id int primary key, m int, foreign key (m) references mother (id));
insert into mother values (1), (2);
insert into kid values (1, 1);
optimize table mother, kid;
delete from mother where id = 1;
# In memory alone.
create table m (id int primary key, v int, key (v)) in_memory=yes;
insert into m select seq, seq from seq_1_to_2000;
delete from m where id % 2;
optimize table m;
check table m extended;
select count(*), sum(v) from m;
# A discarded table has nothing.
create table gone (id int primary key);
alter table gone discard tablespace;
optimize table gone;
# Checkpoints that are held back.
set session teak_pause_checkpoints = on;
optimize table t;
set session teak_pause_checkpoints = off;
optimize table t;
drop table t, empty, p, own, kid, mother, m, gone;
