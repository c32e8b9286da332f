-- Changes of many rows by scans, long enough that rows of whole leaves are locked at once and come from windows, which a
-- change of the row that was left behind does not end.
create table t (id int primary key, v int, w int, pad char(80) not null default 'pad', key (w));
insert into t (id, v, w) select seq, seq % 1000, seq % 777 from seq_1_to_20000;
delete from t where id % 5 = 0;
select row_count();
select count(*), sum(v), sum(w), sum(id) from t force index (primary);
select count(*), sum(w) from t force index (w);
update t set v = v + 1;
update t set v = v + 1 where id % 3 = 0;
update t set w = w + 1 where v % 4 = 0;
delete from t where v % 11 = 0;
select count(*), sum(v), sum(w), sum(id) from t force index (primary);
select count(*), sum(w) from t force index (w) where w > 0;
-- Again, over what was folded and what was not.
begin;
delete from t where id % 7 = 0;
select count(*), sum(id) from t;
update t set v = -v where id % 2 = 0;
delete from t where v < -900;
select count(*), sum(v), sum(id) from t;
savepoint s;
delete from t where id > 1000;
select count(*), sum(v), sum(id) from t;
rollback to s;
select count(*), sum(v), sum(id) from t;
update t set v = v + 1;
select count(*), sum(v), sum(id) from t;
rollback;
select count(*), sum(v), sum(id) from t;
-- The primary key moves.
update t set id = id + 100000 where id % 2 = 1 order by id desc;
update t set id = -id where id > 100000;
select count(*), sum(v), min(id), max(id), sum(id) from t;
-- Several scans of the table in one statement.
delete a from t a join t b on b.id = -a.id - 100000 + 1 where a.v > 500;
select count(*), sum(v), sum(id) from t;
update t a join t b on a.id = b.id + 2 set a.v = b.v, b.w = a.w + 1 where b.id between 100 and 9000;
select count(*), sum(v), sum(w) from t;
delete a, b from t a join t b on a.id = b.id - 2 where a.id % 10 = 2;
select count(*), sum(v), sum(id) from t;
insert into t (id, v, w) select id + 200000, v, w from t where id > 0;
select count(*), sum(v), sum(id) from t;
-- A function and a trigger that read, and a trigger that writes elsewhere.
create table log (id int primary key auto_increment, n int);
delimiter //
create function around(x int) returns int reads sql data return (select count(*) from t where id between x - 3 and x + 3)//
create trigger gone before delete on t for each row insert into log (n) values (old.id)//
delimiter ;
update t set v = around(id) where id between 1000 and 14000;
select count(*), sum(v) from t;
delete from t where id % 6 = 0 limit 1500;
select count(*), sum(n) from log;
select count(*), sum(v), sum(id) from t;
-- An error in the middle.
create table u (id int primary key, v int, k int, pad char(80) not null default 'x', unique (k));
insert into u (id, v, k) select seq, seq, seq * 2 from seq_1_to_12000;
update u set k = if(id = 9000, 10, k), v = v + 1;
select count(*), sum(v), sum(k) from u;
update ignore u set k = if(id % 1000 = 7, 10, k), v = v + 1 where id > 100;
select count(*), sum(v), sum(k) from u;
delete from u where id % 4 = 0 limit 2000;
update u set v = v + 1 where id > 5 limit 7000;
select count(*), sum(v), sum(k), min(id), max(id) from u;
-- Without a primary key, and with keys of many lengths.
create table h (v int, pad char(80) not null default 'h');
insert into h (v) select seq from seq_1_to_15000;
delete from h where v % 4 = 1;
update h set v = v + 1 where v % 3 = 0;
select count(*), sum(v) from h;
create table s (id varchar(40) primary key, v int, pad char(80) not null default 's');
insert into s (id, v) select concat(repeat('k', seq % 20), seq), seq from seq_1_to_15000;
delete from s where v % 4 = 1;
update s set v = v + 1 where v % 3 = 0;
update s set id = concat(id, '!') where v % 10 = 2;
select count(*), sum(v), sum(crc32(id)) from s;
-- Under a handler of the same table that stays open, and at other levels.
set transaction isolation level serializable;
begin;
select count(*) from h where v > 3;
delete from h where v % 7 = 0;
select count(*), sum(v) from h;
rollback;
set transaction isolation level read committed;
begin;
delete from h where v % 7 = 0;
update h set v = 0 where v % 7 = 1;
select count(*), sum(v) from h;
commit;
drop function around;
drop table t, u, h, s, log;
