# DISABLE KEYS, ENABLE KEYS and indexes added to filled tables: contents by every index. InnoDB ignores the first two with a note.
set sql_notes = 0;
create table t (id int auto_increment primary key, a int, b varchar(50), c int, v int as (a * 2) virtual, s int as (a + 1) stored,
  key a (a), key b (b(5)), unique u (c), key v (v), key ab (b, a desc), key s (s));
alter table t disable keys;
insert into t (a, b, c) select seq % 100, if(seq % 7 = 0, null, md5(seq)), if(seq % 11 = 0, null, seq) from seq_1_to_12000;
select count(*) from t where a = 5;
update t set a = a + 1 where id < 100;
update t set id = id + 1000000 where id between 300 and 310;
delete from t where id between 200 and 250;
insert into t (a, c) values (1, 1);
replace into t (id, a, b, c) values (1, 77, 'replaced', 5);
select count(*) from t force index (a) where a = 5;
alter table t enable keys;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (primary) where id > 0;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (a) where a > -1;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (v) where v > -1;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (s) where s > -1;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (b) where b > '' or b is null;
select count(*), sum(a), sum(v), sum(s), sum(crc32(b)) from t force index (ab) where b > '' or b is null;
select b, a from t force index (ab) where b like 'c4%' order by b, a desc limit 5;
select b, a from t force index (ab) order by b desc, a limit 3;
insert into t (a, b) values (7, 'x');
delete from t where a = 8;
select count(*), sum(v) from t force index (a) where a in (7, 8, 9);
check table t;
alter table t add key n1 (a, c), add key n2 (c, b(3)), drop key s;
select count(*), sum(a), sum(crc32(b)) from t force index (n1) where a > -1;
select count(*), sum(a), sum(crc32(b)) from t force index (n2) where c > 0 or c is null;
alter table t add unique n3 (id, a);
alter table t drop key n3;
alter table t disable keys;
alter table t add column later int default 3, add key later (later, id);
insert into t (a, b, c) select seq % 10, 'again', null from seq_1_to_50;
alter table t enable keys;
select count(*), sum(a), min(later) from t force index (later) where later = 3;
select count(*), sum(a) from t force index (a) where a < 10;
check table t;
truncate table t;
insert into t (a, b) values (1, 'one'), (2, 'two');
select a, b, v from t force index (v) where v > 1;

# Inside LOCK TABLES, as mysqldump does it.
create table d (id int primary key, a int, b text, key a (a), key b (b(10)));
lock tables d write;
alter table d disable keys;
insert into d values (3, 30, 'c'), (1, 10, 'a'), (2, 20, 'b');
insert into d values (4, 40, null);
select * from d where a > 15;
alter table d enable keys;
select * from d force index (a) where a > 15;
unlock tables;
select * from d force index (b) where b > 'a';

# A transaction that began before, and partitions.
create table p (id int primary key, a int, key a (a)) partition by hash (id) partitions 3;
insert into p select seq, seq % 10 from seq_1_to_11000;
alter table p add key a2 (a, id);
select count(*) from p force index (a2) where a = 3;
alter table p disable keys;
delete from p where a = 4;
alter table p enable keys;
select count(*) from p force index (a) where a in (3, 4);
check table p;

# No key that can be disabled; a hidden primary key; keys that AUTO_INCREMENT needs.
create table n (id int auto_increment, a int, key id (id), key a (a));
alter table n disable keys;
insert into n (a) values (3), (2), (1);
alter table n enable keys;
insert into n (a) values (4);
select * from n force index (a) where a > 0;
select * from n force index (id) where id > 0;
create table o (id int primary key);
alter table o disable keys;
alter table o enable keys;
drop table t, d, p, n, o;
