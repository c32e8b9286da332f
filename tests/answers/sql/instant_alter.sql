-- ALTER TABLE that changes no row: each change once with ALGORITHM=INSTANT, of `a`, and once with ALGORITHM=COPY, of `c`.
-- Both must end with one definition and the same rows, and be written and read by it.
create table a (
  id int not null auto_increment, s varchar(20) not null, t varchar(80), u varbinary(10), l varchar(300), n int, e enum('x','y'),
  f set('p','q'), d datetime default '2020-01-01', primary key (id, s), unique key u (u), key s (s), key t (t(5)), key tn (t, n), key l (l(10)), key n (n)
) character set utf8mb3;
insert into a (s, t, u, l, n, e, f)
  select concat('s', seq), if(seq % 7, concat('Text ', seq % 50), null), lpad(seq, 10, '0'), repeat(char(65 + seq % 26), seq % 300), seq % 40,
    1 + seq % 2, seq % 4 from seq_1_to_500;
delete from a where id % 11 = 0;
create table c like a;
insert into c select * from a order by id;
delimiter //
create procedure same()
begin
  select table_name, auto_increment from information_schema.tables where table_schema = database() and table_name in ('a', 'c') order by 1;
  select count(*) from information_schema.columns a join information_schema.columns c using (table_schema, ordinal_position)
    where table_schema = database() and a.table_name = 'a' and c.table_name = 'c'
      and a.column_name = c.column_name and a.column_type = c.column_type and a.column_default <=> c.column_default
      and a.column_comment = c.column_comment and a.is_nullable = c.is_nullable and a.extra = c.extra and a.generation_expression <=> c.generation_expression;
  select count(*) from (select * from a except select * from c) x;
  select count(*) from (select * from c except select * from a) x;
  select count(*), sum(crc32(concat_ws(',', s, t, u, l, n, e, f, d))) from a;
  select count(*), sum(crc32(concat_ws(',', s, t, u, l, n, e, f, d))) from c;
end//
delimiter ;
show create table a;
-- VARCHAR and VARBINARY grow: in keys of any kind, without keys, from 256 bytes on. One by one, and several at once.
alter table a modify s varchar(40) not null, algorithm=instant;
alter table c modify s varchar(40) not null, algorithm=copy;
-- (InnoDB builds the second index anew.)
alter table a modify t varchar(85), modify u varbinary(200), algorithm=inplace, lock=none;
alter table c modify t varchar(85), modify u varbinary(200), algorithm=copy;
alter table a modify t varchar(120), algorithm=copy;
alter table c modify t varchar(120), algorithm=copy;
alter table a modify l varchar(500) character set utf8mb3, modify t varchar(130), algorithm=instant;
alter table c modify l varchar(500) character set utf8mb3, modify t varchar(130), algorithm=copy;
show create table a;
call same();
insert into a (s, t, u, l, n) values (repeat('s', 40), repeat('t', 130), repeat('u', 200), repeat('l', 500), 1000), ('s1', 'Text 1', 'other', null, 1001);
insert into c (s, t, u, l, n) values (repeat('s', 40), repeat('t', 130), repeat('u', 200), repeat('l', 500), 1000), ('s1', 'Text 1', 'other', null, 1001);
select id, length(s) from a force index (s) where s like 'sss%';
select id, n from a force index (t) where t like 'Text 1' order by id;
select id, n from a force index (tn) where t = 'Text 1' order by id;
select t, n from a force index (tn) where t like 'ttt%';
select id from a where u = repeat('u', 200);
select id from a where u = '0000000017';
insert into a (s, u) values ('twice', '0000000017');
select id from a force index (l) where l like 'llll%';
update a set s = concat(s, repeat('-', 30)), t = concat(t, repeat('+', 60)) where id % 5 = 0;
update c set s = concat(s, repeat('-', 30)), t = concat(t, repeat('+', 60)) where id % 5 = 0;
call same();
-- Names: of indexes (one takes the place of another), of columns.
alter table a rename index s to sss, rename index n to s, algorithm=instant;
alter table c rename index s to sss, rename index n to s, algorithm=copy;
alter table a rename index u to n, algorithm=instant;
alter table c rename index u to n, algorithm=copy;
show create table a;
call same();
select id from a force index (s) where n = 1000;
select id from a force index (sss) where s like 'sss%';
insert into a (s, u) values ('twice', '0000000018');
alter table a rename index n to u, rename index s to n, rename index sss to s, algorithm=instant;
alter table c rename index n to u, rename index s to n, rename index sss to s, algorithm=copy;
alter table a rename index s to n, rename index n to s, algorithm=instant;
alter table c rename index s to n, rename index n to s, algorithm=copy;
alter table a rename index s to n, rename index n to s, algorithm=instant;
alter table c rename index s to n, rename index n to s, algorithm=copy;
alter table a rename column n to number, algorithm=instant;
alter table c rename column n to number, algorithm=copy;
alter table a change number n int comment 'again', algorithm=instant, lock=none;
alter table c change number n int comment 'again', algorithm=copy;
call same();
select count(*) from a force index (n) where n < 10;
-- Indexes that the optimizer is to leave alone; comments; defaults; new values of ENUM and SET; the table's character set.
alter table a alter index n ignored, algorithm=instant;
alter table c alter index n ignored, algorithm=copy;
select count(*) from a where n = 3;
alter table a alter index n not ignored, algorithm=instant;
alter table c alter index n not ignored, algorithm=copy;
alter table a comment 'a table', modify t varchar(130) comment 'text', algorithm=instant;
alter table c comment 'a table', modify t varchar(130) comment 'text', algorithm=copy;
alter table a alter column n set default 7, modify d datetime default '2021-02-03', algorithm=instant;
alter table c alter column n set default 7, modify d datetime default '2021-02-03', algorithm=copy;
alter table a alter column n drop default, alter column n set default 8, algorithm=instant;
alter table c alter column n drop default, alter column n set default 8, algorithm=copy;
alter table a modify e enum('x','y','z','w'), modify f set('p','q','r'), algorithm=instant;
alter table c modify e enum('x','y','z','w'), modify f set('p','q','r'), algorithm=copy;
alter table a default charset utf8mb4 collate utf8mb4_bin, algorithm=instant, lock=none;
alter table c default charset utf8mb4 collate utf8mb4_bin, algorithm=copy;
alter table a modify e enum('x','y','z','w') character set utf8mb3 default 'z', algorithm=instant;
alter table c modify e enum('x','y','z','w') character set utf8mb3 default 'z', algorithm=copy;
insert into a (s, f) values ('new', 'r'), ('new', 'p,r');
insert into c (s, f) values ('new', 'r'), ('new', 'p,r');
select * from a where s = 'new' order by id;
show create table a;
call same();
-- AUTO_INCREMENT: up, down as far as the rows let it, and where no row is.
alter table a auto_increment = 2000, algorithm=instant;
alter table c auto_increment = 2000, algorithm=copy;
insert into a (s) values ('at 2000');
insert into c (s) values ('at 2000');
alter table a auto_increment = 5000, comment 'with more', algorithm=instant, lock=none;
alter table c auto_increment = 5000, comment 'with more', algorithm=copy;
alter table a auto_increment = 10, algorithm=instant;
alter table c auto_increment = 10, algorithm=copy;
call same();
insert into a (s) values ('after');
insert into c (s) values ('after');
call same();
create table empty (id bigint unsigned auto_increment primary key, v int) auto_increment = 100;
alter table empty auto_increment = 7, algorithm=instant;
insert into empty (v) values (1);
alter table empty auto_increment = 1, algorithm=instant;
insert into empty (v) values (2);
select * from empty;
alter table empty auto_increment = 0, algorithm=instant;
insert into empty (v) values (3);
select * from empty;
create table down (id int auto_increment, key (id desc));
insert into down values (5), (3);
alter table down auto_increment = 2, algorithm=instant;
insert into down values (null);
select * from down order by id;
create table no_counter (id int primary key);
alter table no_counter auto_increment = 5, algorithm=instant;
show create table no_counter;
-- Virtual columns behind all others come and go.
alter table a add g int as (n + 1) virtual, algorithm=instant;
alter table c add g int as (n + 1) virtual, algorithm=copy;
call same();
select id, n, g from a where id in (1, 2, 3) or s = 'after' order by id;
update a set n = n + 1 where id < 100;
update c set n = n + 1 where id < 100;
alter table a add h varchar(50) as (concat(s, '!')) virtual, add i int as (g * 2) virtual, algorithm=instant;
alter table c add h varchar(50) as (concat(s, '!')) virtual, add i int as (g * 2) virtual, algorithm=copy;
insert into a (s, n) values ('generated', 1), ('generated', null);
insert into c (s, n) values ('generated', 1), ('generated', null);
check table a, c extended;
select id, n, g, h, i from a where id < 4 or s = 'generated' order by id;
show create table a;
call same();
alter table a drop g, drop i, add j int as (n * 3) virtual, add k int as (n * 4) virtual, add m int as (n * 5) virtual,
  add o int as (n * 6) virtual, add q int as (n * 7) virtual, add r int as (n * 8) virtual, add v int as (n * 9) virtual, algorithm=instant;
alter table c drop g, drop i, add j int as (n * 3) virtual, add k int as (n * 4) virtual, add m int as (n * 5) virtual,
  add o int as (n * 6) virtual, add q int as (n * 7) virtual, add r int as (n * 8) virtual, add v int as (n * 9) virtual, algorithm=copy;
call same();
select id, n, h, j, v from a where id < 4 or s = 'generated' order by id;
update a set t = 'changed' where id % 3 = 0;
update c set t = 'changed' where id % 3 = 0;
alter table a add key gen (j), algorithm=inplace;
alter table c add key gen (j), algorithm=copy;
select id, n, j from a force index (gen) where j between 3 and 9 order by j, id;
call same();
alter table a drop key gen;
alter table c drop key gen;
alter table a drop h, drop j, drop k, drop m, drop o, drop q, drop r, drop v, algorithm=instant;
alter table c drop h, drop j, drop k, drop m, drop o, drop q, drop r, drop v, algorithm=copy;
call same();
alter table a modify g int as (n) virtual, algorithm=instant;
alter table a add z int, algorithm=copy;
alter table c add z int, algorithm=copy;
call same();
check table a, c extended;
-- Partitions: all or none.
create table p (id int not null auto_increment, s varchar(10), n int, primary key (id), key s (s), key n (n)) partition by hash (id) partitions 3;
insert into p (s, n) select concat('s', seq), seq from seq_1_to_50;
alter table p modify s varchar(50), algorithm=instant;
alter table p rename index s to t, algorithm=instant;
alter table p auto_increment = 1000, algorithm=instant;
alter table p alter index n ignored, algorithm=instant;
insert into p (s, n) values (repeat('s', 50), 1);
select id, length(s) from p force index (t) where s like 'sss%';
alter table p auto_increment = 5, algorithm=instant;
insert into p (s) values ('next');
select id from p where s = 'next';
check table p extended;
show create table p;
-- What is refused, and why.
create table q (id int primary key, v int, w varchar(10), key k (v));
alter table q add key w (w), algorithm=instant;
alter table q drop key k, algorithm=instant;
alter table q drop key k, algorithm=nocopy, lock=none;
alter table q add key k (v), algorithm=nocopy, lock=shared;
alter table q drop primary key, algorithm=inplace;
alter ignore table q add unique key x (v), algorithm=inplace;
alter table q add g int as (v) virtual, add unique key x (v), algorithm=inplace;
alter table q comment 'locked', algorithm=instant, lock=exclusive;
alter table q comment 'shared', algorithm=instant, lock=shared;
alter table q comment 'copied', algorithm=copy, lock=none;
alter table q rename to qq, algorithm=instant;
show create table qq;
create table hist (id int primary key, v varchar(5)) with system versioning;
insert into hist values (1, 'a');
alter table hist modify v varchar(10);
