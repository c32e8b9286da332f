-- Stored columns that come, go and change their places: each change once with ALGORITHM=INSTANT, of `a`, and once with
-- ALGORITHM=COPY, of `c`. Both must end with one definition and the same rows, whatever layout these were written in.
create table a (
  id int not null auto_increment, n int, v varchar(20), b blob, c char(10), s varchar(30) not null,
  primary key (id), key v (v), key n (n), unique key s (s, id)
) character set utf8mb4;
insert into a (n, v, b, c, s)
  select if(seq % 5, seq, null), if(seq % 7, concat('v', seq % 30), null), if(seq % 3, repeat(char(65 + seq % 26), seq * 20), null), concat('c', seq), concat('s', seq)
    from seq_1_to_400;
create table c like a;
insert into c select * from a order by id;
create table journal (step int auto_increment primary key, only_a int, only_c int, rows_of_a int, definition int);
delimiter //
create procedure same()
begin
  check table a, c extended;
  select count(*) into @a from (select * from a except select * from c) x;
  select count(*) into @c from (select * from c except select * from a) x;
  select count(*) into @n from a;
  select count(*) into @d from information_schema.columns a left join information_schema.columns c
      on c.table_schema = a.table_schema and c.table_name = 'c' and a.ordinal_position = c.ordinal_position
      and a.column_name = c.column_name and a.column_type = c.column_type and a.column_default <=> c.column_default and a.is_nullable = c.is_nullable
    where a.table_schema = database() and a.table_name = 'a' and c.column_name is null;
  select @a as only_a, @c as only_c, @n as of_a, @d as columns_that_differ;
end//
-- Both tables are changed: some rows get the newest layout.
create procedure change_some(part int)
begin
  update a set n = ifnull(n, 0) + 1, b = concat(ifnull(b, ''), 'x') where id % 10 = part;
  update c set n = ifnull(n, 0) + 1, b = concat(ifnull(b, ''), 'x') where id % 10 = part;
  update a set v = concat('w', part) where id % 17 = part;
  update c set v = concat('w', part) where id % 17 = part;
  delete from a where id % 37 = part;
  delete from c where id % 37 = part;
  insert into a (n, v, b, c, s) select part, concat('new', seq), null, 'new', concat('new', part, '-', seq) from seq_1_to_5;
  insert into c (n, v, b, c, s) select part, concat('new', seq), null, 'new', concat('new', part, '-', seq) from seq_1_to_5;
end//
delimiter ;
-- At the end.
alter table a add x int, algorithm=instant;
alter table c add x int, algorithm=copy;
call same();
call change_some(1);
call same();
alter table a add y int not null default 7, add z varchar(40) default 'a default', algorithm=instant, lock=none;
alter table c add y int not null default 7, add z varchar(40) default 'a default', algorithm=copy;
call same();
select id, x, y, z from a where id in (1, 2, 3, 11) order by id;
call change_some(2);
call same();
-- Anywhere, of any type.
alter table a add f datetime(3) default '2020-01-02 03:04:05.678' first, add t text default 'long text' after n, add d decimal(10,3) not null default 3.125 after id,
  add e enum('x','y') not null after c, add bits bit(5) default b'10101', add j json, add k char(3) default 'abc' after y, algorithm=instant;
alter table c add f datetime(3) default '2020-01-02 03:04:05.678' first, add t text default 'long text' after n, add d decimal(10,3) not null default 3.125 after id,
  add e enum('x','y') not null after c, add bits bit(5) default b'10101', add j json, add k char(3) default 'abc' after y, algorithm=copy;
call same();
select id, f, t, d, e, bits + 0, j, k from a where id in (1, 2, 3, 11) order by id;
call change_some(3);
call same();
show create table a;
-- Implicit defaults of all types.
alter table a add i1 tinyint not null, add i2 char(4) not null, add i3 varchar(4) not null, add i4 blob not null, add i5 double not null, add i6 year not null,
  add i7 set('p','q') not null, add i8 time not null, add i9 varbinary(7) not null, add i10 bigint unsigned not null, algorithm=instant;
alter table c add i1 tinyint not null, add i2 char(4) not null, add i3 varchar(4) not null, add i4 blob not null, add i5 double not null, add i6 year not null,
  add i7 set('p','q') not null, add i8 time not null, add i9 varbinary(7) not null, add i10 bigint unsigned not null, algorithm=copy;
call same();
select id, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10 from a where id in (1, 2, 3) order by id;
-- Gone, also those that came.
alter table a drop x, algorithm=instant;
alter table c drop x, algorithm=copy;
call same();
alter table a drop b, drop i4, drop i1, drop t, algorithm=instant;
alter table c drop b, drop i4, drop i1, drop t, algorithm=copy;
call same();
alter table a add b longblob default 'another b' after v, add x int default 99, algorithm=instant;
alter table c add b longblob default 'another b' after v, add x int default 99, algorithm=copy;
call same();
call change_some(4);
call same();
select id, x, b from a where id in (1, 2, 4) order by id;
-- One goes and another of its type takes its place; names change places.
alter table a drop y, add yy int not null default 8 after j, algorithm=instant;
alter table c drop y, add yy int not null default 8 after j, algorithm=copy;
call same();
alter table a change x i11 int default 99, change yy x int not null default 8, algorithm=instant;
alter table c change x i11 int default 99, change yy x int not null default 8, algorithm=copy;
call same();
-- Another order.
alter table a modify c char(10) first, modify n int after z, algorithm=instant;
alter table c modify c char(10) first, modify n int after z, algorithm=copy;
call same();
alter table a modify i11 int default 99 after x, modify bits bit(5) default b'10101' first, modify id int not null auto_increment after k, algorithm=instant;
alter table c modify i11 int default 99 after x, modify bits bit(5) default b'10101' first, modify id int not null auto_increment after k, algorithm=copy;
call same();
call change_some(5);
call same();
show create table a;
select id, n, v, c, s, x, i11, z from a where id < 8 order by id;
select id from a force index (v) where v = 'w3' order by id;
select count(*) from a force index (n) where n between 10 and 100;
select id, s from a force index (s) where s like 's1_' order by s;
-- What changes definitions only does so still.
alter table a modify v varchar(50), modify x int not null default 5, rename column z to zz, algorithm=instant;
alter table c modify v varchar(50), modify x int not null default 5, rename column z to zz, algorithm=copy;
call same();
call change_some(6);
call same();
-- Indexes on new columns, of rows of all layouts.
alter table a add key d (d, zz), add unique key u (zz, id), algorithm=nocopy;
alter table c add key d (d, zz), add unique key u (zz, id), algorithm=copy;
call same();
select count(*), sum(d) from a force index (d) where d = 3.125;
select count(*) from a force index (u) where zz = 'a default' and id < 100;
alter table a drop key d, drop key u, drop d, algorithm=nocopy;
alter table c drop key d, drop key u, drop d, algorithm=copy;
call same();
-- Generated columns of new ones.
alter table a add g int as (x * 2 + i5) virtual, algorithm=instant;
alter table c add g int as (x * 2 + i5) virtual, algorithm=copy;
call same();
alter table a add p int as (i11 + x) persistent, algorithm=instant;
alter table a add p int as (i11 + x) persistent;
alter table c add p int as (i11 + x) persistent;
call same();
alter table a drop i11, algorithm=instant;
alter table a drop p, drop i6, algorithm=instant;
alter table c drop p, drop i6, algorithm=copy;
call same();
alter table a add key g (g);
alter table c add key g (g);
call change_some(7);
call same();
select count(*) from a force index (g) where g = 16;
alter table a drop key g, drop g;
alter table c drop key g, drop g;
call same();
-- NOT NULL to NULL, and back (which looks at each row); VARCHAR past 255 bytes. Instant in Teak alone.
alter table a modify x int default 5, modify i3 varchar(4), modify v varchar(300), modify i9 varbinary(4000) first;
alter table c modify x int default 5, modify i3 varchar(4), modify v varchar(300), modify i9 varbinary(4000) first, algorithm=copy;
call same();
update a set x = null, i3 = null, v = repeat('v', id % 300), i9 = repeat('i', id * 2) where id % 4 = 0;
update c set x = null, i3 = null, v = repeat('v', id % 300), i9 = repeat('i', id * 2) where id % 4 = 0;
call same();
select count(*), sum(x), sum(length(i3)), sum(length(v)), sum(length(i9)) from a;
alter table a drop key v, add m varchar(10) default 'short', add mm varbinary(200) default 'other';
alter table c drop key v, add m varchar(10) default 'short', add mm varbinary(200) default 'other', algorithm=copy;
call same();
alter table a modify m varchar(200) first, modify v varchar(1000) after c, modify mm varbinary(300) default 'another';
alter table c modify m varchar(200) first, modify v varchar(1000) after c, modify mm varbinary(300) default 'another', algorithm=copy;
call same();
call change_some(7);
call same();
select count(*), count(distinct m), min(m), min(mm), sum(length(v)) from a;
alter table a modify m varchar(5);
alter table a modify m varchar(200) not null default 'x';
alter table c modify m varchar(200) not null default 'x', algorithm=copy;
call same();
-- Wider integers: values at both ends, defaults, over two steps, unsigned to signed.
alter table a add w1 tinyint default -128 first, add w2 tinyint unsigned not null default 255, add w3 smallint, add w4 mediumint default -8388608, add w5 int unsigned default 4294967295;
alter table c add w1 tinyint default -128 first, add w2 tinyint unsigned not null default 255, add w3 smallint, add w4 mediumint default -8388608, add w5 int unsigned default 4294967295, algorithm=copy;
update a set w1 = id % 256 - 128, w2 = id % 256, w3 = id - 200, w4 = id * -100, w5 = id * 1000 where id % 2 = 0;
update c set w1 = id % 256 - 128, w2 = id % 256, w3 = id - 200, w4 = id * -100, w5 = id * 1000 where id % 2 = 0;
alter table a modify w1 smallint after v, modify w2 int not null default 1, modify w3 bigint, modify w4 int, modify w5 bigint default -1;
alter table c modify w1 smallint after v, modify w2 int not null default 1, modify w3 bigint, modify w4 int, modify w5 bigint default -1, algorithm=copy;
call same();
update a set w1 = 30000, w2 = -2, w3 = w3 - 1, w4 = 2000000000, w5 = -5 where id % 6 = 0;
update c set w1 = 30000, w2 = -2, w3 = w3 - 1, w4 = 2000000000, w5 = -5 where id % 6 = 0;
alter table a modify w1 mediumint, modify w2 bigint first, modify w4 bigint;
alter table c modify w1 mediumint, modify w2 bigint first, modify w4 bigint, algorithm=copy;
call same();
select count(*), sum(w1), sum(w2), sum(w3), sum(w4), sum(w5) from a;
alter table a drop w1, drop w2, drop w3, drop w4, drop w5;
alter table c drop w1, drop w2, drop w3, drop w4, drop w5, algorithm=copy;
call same();
-- Rows of one layout again.
alter table a force, algorithm=copy;
alter table c force, algorithm=copy;
call same();
alter table a add after_force int default 1 first, algorithm=instant;
alter table c add after_force int default 1 first, algorithm=copy;
truncate table a;
truncate table c;
insert into a (n, v, b, c, s) values (1, 'v', 'b', 'c', 's');
insert into c (n, v, b, c, s) values (1, 'v', 'b', 'c', 's');
call same();
alter table a add after_truncate int default 2, algorithm=instant;
alter table c add after_truncate int default 2, algorithm=copy;
call change_some(8);
call same();
drop table a, c;
-- No primary key; no columns left but new ones; fixed rows only, then none.
create table a (x int, y int);
insert into a values (1, 2), (null, 3), (4, null), (null, null);
alter table a add z varchar(10) default 'z', algorithm=instant;
insert into a values (5, 6, 'seven');
alter table a drop x, drop y, algorithm=instant;
select * from a order by z;
alter table a add w int default 4 first, drop z, algorithm=instant;
insert into a values (5);
select * from a order by w;
alter table a drop w, algorithm=instant;
check table a extended;
drop table a;
-- Transactions: what is rolled back was written in an older layout.
create table a (id int primary key, v int, b text) character set utf8mb4;
insert into a select seq, seq, repeat('t', seq) from seq_1_to_20;
alter table a add w int default 3 after id, drop v, algorithm=instant;
begin;
update a set w = w + id, b = 'changed' where id < 10;
delete from a where id > 15;
insert into a values (100, 1, 'new');
savepoint s;
update a set w = 0;
rollback to s;
select * from a order by id;
rollback;
select * from a order by id;
update a set w = w + 1 where id = 3;
replace into a values (4, 44, 'replaced');
insert into a (id, b) values (5, 'twice') on duplicate key update w = w * 10, b = concat(b, '!');
update a set w = w where id = 6;
select * from a where id between 3 and 6 order by id;
-- Under LOCK TABLES.
lock tables a write;
alter table a add y int default 5, algorithm=instant;
update a set y = y + 1 where id < 3;
select * from a where id < 5 order by id;
alter table a drop w, algorithm=instant;
select * from a where id < 5 order by id;
unlock tables;
-- Twins of definitions.
create table like_a like a;
insert into like_a select * from a;
select count(*) from like_a;
drop table a, like_a;
-- What is evaluated once: times, and what a session function says. What is not instant for that.
create table a (id int primary key);
insert into a values (1), (2);
set timestamp = 1600000000;
alter table a add t timestamp not null default current_timestamp, add d datetime default now(), algorithm=instant;
alter table a add u varchar(100) default (user()), algorithm=instant;
set timestamp = default;
select id, unix_timestamp(t), unix_timestamp(d), u = user() from a;
-- What evaluating them has to say is said once.
set timestamp = 1600000000;
alter table a add only_date date not null default current_timestamp(), algorithm=instant;
alter table a add other_date date not null default now(), add third date default current_timestamp, algorithm=inplace;
create table parts (id int primary key) partition by hash (id) partitions 3;
alter table parts add d date not null default current_timestamp();
drop table parts;
set timestamp = default;
select id, only_date, other_date, third from a;
alter table a drop only_date, drop other_date, drop third, algorithm=instant;
alter table a add r double default (rand()), algorithm=instant;
alter table a add w char(36) default uuid(), algorithm=instant;
alter table a add i int default (id + 1), algorithm=instant;
alter table a add i int default (id + 1);
select id, i from a;
alter table a add j int default (1 + 2), add k varchar(10) default concat('a', 'b'), algorithm=instant;
select id, j, k from a;
alter table a add ck int default 1 check (ck > 0), algorithm=instant;
insert into a (id, ck) values (3, 0);
set sql_mode = 'strict_all_tables,no_zero_date,no_zero_in_date';
alter table a add z date not null, algorithm=instant;
alter table a add z date not null;
create table e (id int primary key);
alter table e add z date not null;
set sql_mode = default;
alter table a add z date not null, algorithm=instant;
select id, z from a;
drop table a, e;
-- Geometry, large defaults, system-versioned tables, temporary tables.
create table a (id int primary key);
insert into a values (1), (2);
alter table a add p point, algorithm=instant;
alter table a add q mediumtext default repeat('long', 1500), algorithm=instant;
select id, p, length(q), md5(q) from a;
update a set id = 3, p = point(1, 2) where id = 1;
select id, st_astext(p), length(q), md5(q) from a order by id;
alter table a drop q, algorithm=instant;
select * from a where id = 2;
drop table a;
create table a (id int primary key, v int) with system versioning;
insert into a values (1, 1);
set system_versioning_alter_history = keep;
alter table a add w int default 2;
select * from a;
drop table a;
create temporary table a (id int primary key, v int);
insert into a values (1, 1);
alter table a add w int default 2;
alter table a drop v;
select * from a;
drop table a;
-- Partitions.
create table a (id int not null, v int, b text, primary key (id), key v (v)) partition by range (id)
  (partition p0 values less than (10), partition p1 values less than (20), partition p2 values less than maxvalue);
insert into a select seq, seq, repeat('x', seq) from seq_1_to_30;
alter table a add w int not null default 6 after id, algorithm=instant;
update a set w = w + 1 where id % 3 = 0;
insert into a values (31, 1, 2, 'three'), (0, 1, 2, 'three');
alter table a truncate partition p1;
insert into a select seq, 1, seq, 'again' from seq_10_to_15;
alter table a add y varchar(10) default 'y' first, drop b, algorithm=instant;
select * from a order by id;
select id from a force index (v) where v between 10 and 14 order by id;
alter table a rebuild partition p0;
update a set y = 'z' where id % 4 = 0;
alter table a reorganize partition p1, p2 into (partition p3 values less than (25), partition p4 values less than maxvalue);
select id, y, w, v from a order by id;
create table twin (y varchar(10) default 'y', id int not null, w int not null default 6, v int, primary key (id), key v (v));
insert into twin select * from a where id < 10;
update twin set y = 'twin';
alter table a exchange partition p0 with table twin;
select * from a where id < 10 order by id;
select * from twin order by id;
update twin set v = v + 1;
update a set v = v + 1 where id < 12;
alter table a add x int default 1, algorithm=instant;
alter table twin add x int default 1, algorithm=instant;
select * from a where id < 12 order by id;
select * from twin order by id;
check table a, twin extended;
drop table a, twin;
-- Foreign keys of tables with layouts, and on added columns.
create table parent (id int primary key, v int);
create table child (id int primary key, p int, key p (p), foreign key (p) references parent (id) on delete cascade on update cascade);
insert into parent select seq, seq from seq_1_to_10;
insert into child select seq, seq from seq_1_to_10;
alter table parent add w int default 4 first, algorithm=instant;
alter table child add w varchar(10) default 'w' first, algorithm=instant;
delete from parent where id = 3;
update parent set id = 20 where id = 4;
select * from child order by id;
alter table child drop p;
alter table parent drop id;
alter table parent drop v, algorithm=instant;
alter table child add q int default 1, algorithm=instant;
alter table child add foreign key (q) references parent (id) on delete set null;
update child set q = 2 where id > 5;
delete from parent where id in (1, 2);
select * from child order by id;
check table parent, child extended;
drop table child, parent;
