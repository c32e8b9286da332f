-- What the server looks at of a row that an index alone has given: all columns of the key, also where the index has a
-- prefix of them, those of the primary key, and virtual columns; also when it merges the order of partitions.

create table t (id int not null, a smallint, b tinytext, primary key (id desc), key k (a, b(1), id))
    partition by hash (id) partitions 3;
insert into t select seq, seq % 7, concat('b', seq % 5) from seq_1_to_300;
select min(id) from t;
select min(id), max(id), count(distinct id) from t force index (k) where a = 3;
select a, id from t force index (k) where a > 4 order by a desc, id limit 3;
select a from t force index (k) order by a limit 2;
select a from t force index (k) order by a desc limit 2;
select distinct a from t force index (k) order by a;
select a, count(*), min(id) from t force index (k) group by a;
select a, id from t force index (k) where b = 'b1' and a = 2 order by id limit 3;

-- not ordered, one partition
select count(a), sum(id) from t force index (k) where a < 3;
select a, id from t partition (p1) force index (k) where a = 1 order by a, id limit 4;

-- other prefixes: of a text that may be long, of binary, of CHAR, nullable, in a unique key and in the primary key
create table u (p varchar(40), n int, c char(20), d varbinary(30), e blob, f int not null,
    primary key (p(5), f), key kc (n, c(3)), key kd (n, d(4)), key ke (n, e(7), f), unique key un (n, e(9), f))
    partition by key (f) partitions 4;
insert into u select concat('p', seq), seq % 4, if(seq % 3, concat('c', seq), null), concat('d', seq % 6),
    if(seq % 5, concat('e', seq % 8), null), seq from seq_1_to_200;
select n from u force index (kc) order by n limit 2;
select n from u force index (kd) order by n desc limit 2;
select n, f from u force index (ke) where n = 2 order by n limit 0;
select n, count(*), min(f), max(f) from u force index (ke) group by n;
select n, count(*), sum(f) from u force index (un) group by n;
select count(distinct n) from u force index (kc);
select max(n) from u force index (ke);
select f from u order by p, f limit 5;

-- virtual columns in keys, whose order is merged though the server computes them only in its own record
create table v (id int primary key, x int, w varchar(20), z int as (x % 10) virtual, s varchar(30) as (concat(w, '!')) virtual,
    key kz (z), key ks (s, x))
    partition by hash (id) partitions 3;
insert into v (id, x, w) select seq, seq * 7 % 100, concat('w', seq * 13 % 50) from seq_1_to_60;
select id, x, z from v force index (kz) where z > 6 order by z, id;
select z from v force index (kz) order by z desc limit 5;
select z, x from v force index (kz) order by z limit 3;
select s, x from v force index (ks) where s > 'w4' order by s, x;
select s from v force index (ks) order by s desc, x desc limit 3;
select z, count(*), max(id) from v force index (kz) group by z;
-- sorted while the rows come in the order of partitions that are merged
select id, x, z from v force index (kz) where z in (1, 2, 3) order by x desc, id limit 6;
update v force index (kz) set x = x + 1 where z = 4 order by z, id limit 2;
delete from v where z = 7 order by z, id limit 2;
select count(*), sum(x), sum(z) from v;
check table v extended;

-- index_merge: of the rows that an index gives, those in the range of a primary key of prefixes are left to that one
create table w (c varchar(12) character set utf8mb4 collate utf8mb4_nopad_bin not null, t text not null, n int, m int,
    primary key (c(1), t(2)), key kn (n, c(1)), key km (m));
insert into w select concat(char(48 + seq using utf8mb4), 'x'), concat(seq % 7, 'text'), seq % 5, seq % 3
    from seq_1_to_60;
set @switch = @@optimizer_switch;
set optimizer_switch = 'index_merge=on,index_merge_union=on,index_merge_sort_union=on,index_merge_intersection=on';
select count(*), sum(n), sum(m) from w force index (primary, kn) where n = 2 or c >= 'K';
select group_concat(c, n order by c) from w force index (primary, kn) where n = 2 or c >= 'a';
select count(*) from w force index (primary, km) where m = 1 or c < '5';
select count(*) from w force index (primary, kn, km) where n in (1, 2) or m = 1 or c >= 'f' and t > '3';
select count(*) from w force index (primary, kn, km) where n = 2 and m = 1 and c >= '5';
update w force index (primary, kn) set n = 2 where n = 2 or c >= 'K';
delete from w where n = 2 or c >= 'f' or m = 0;
select count(*), sum(n), sum(m) from w;
check table w extended;
set optimizer_switch = @switch;
