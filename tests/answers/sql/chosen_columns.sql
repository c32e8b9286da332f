# Scans that want some columns of a row only: each kind of column alone and beside others, wanted or passed over, rows of
# several layouts, what is NULL, and entries of numbers in all widths, up and down, through windows and through deltas.
create table t (
  id int primary key, t1 tinyint, s2 smallint unsigned, m3 mediumint, i4 int not null default 7, b8 bigint unsigned,
  f float, d double not null default 0.5, n decimal(12, 3), y year, dt datetime(3), ts timestamp null, bits bit(11),
  c char(9), cu char(9) character set utf8mb4, v varchar(30), vl varchar(300) character set latin1, bin binary(5),
  vb varbinary(12), tx text, bl blob, e enum('a', 'b', 'c'), st set('x', 'y', 'z'), last int,
  twice bigint as (i4 * 2) virtual, mixed varchar(60) as (concat(v, '-', t1)) virtual,
  key narrow (t1, s2), key three (m3 desc, i4), key eight (b8), key nulls (last desc, t1 desc), unique key one (id, b8),
  key texts (v, i4)) default charset utf8mb4;
insert into t (id, t1, s2, m3, i4, b8, f, d, n, y, dt, ts, bits, c, cu, v, vl, bin, vb, tx, bl, e, st, last)
select seq, if(seq % 7 = 0, null, cast(seq % 256 as int) - 128), if(seq % 5 = 0, null, seq * 31 % 65536), cast(seq * 8191 % 16777216 as int) - 8388608,
  cast(seq * 2654435 as int) - 2147483648, if(seq % 11 = 0, null, 18446744073709551615 - seq * 1000000007), seq / 3, seq / 7, seq / 13,
  1970 + seq % 100, '2020-01-01' + interval seq second, if(seq % 3 = 0, null, '2021-01-01' + interval seq second),
  seq % 2048, if(seq % 4 = 0, null, seq), if(seq % 6 = 0, null, concat('ü', seq)), if(seq % 8 = 0, null, concat('v', seq)),
  repeat('l', seq % 290), seq, if(seq % 9 = 0, null, left(md5(seq), 12)), if(seq % 10 = 0, null, repeat(seq, 3)),
  if(seq % 12 = 0, null, concat('b', seq)), 1 + seq % 3, seq % 8, if(seq % 13 = 0, null, cast(seq as int) - 700)
from seq_1_to_1500;
delimiter //
create procedure each_alone()
begin
  select count(*), sum(id) from t ignore index (narrow, three, eight, nulls, one, texts);
  select count(t1), sum(t1) from t ignore index (narrow, nulls);
  select count(s2), sum(s2) from t ignore index (narrow);
  select count(m3), sum(m3) from t ignore index (three);
  select count(i4), sum(i4) from t ignore index (three, texts);
  select count(b8), sum(b8) from t ignore index (eight, one);
  select count(f), sum(f) from t;
  select count(d), round(sum(d), 6) from t;
  select count(n), sum(n) from t;
  select count(y), sum(y) from t;
  select count(dt), max(dt), bit_xor(crc32(dt)) from t;
  select count(ts), max(ts), bit_xor(crc32(ts)) from t;
  select count(bits), sum(bits + 0) from t;
  select count(c), bit_xor(crc32(c)) from t;
  select count(cu), bit_xor(crc32(cu)) from t;
  select count(v), bit_xor(crc32(v)) from t ignore index (texts);
  select count(vl), sum(length(vl)) from t;
  select count(bin), bit_xor(crc32(bin)) from t;
  select count(vb), bit_xor(crc32(vb)) from t;
  select count(tx), bit_xor(crc32(tx)) from t;
  select count(bl), bit_xor(crc32(bl)) from t;
  select count(e), sum(e + 0) from t;
  select count(st), sum(st + 0) from t;
  select count(last), sum(last) from t ignore index (nulls);
  select count(twice), sum(twice) from t;
  select count(mixed), bit_xor(crc32(mixed)) from t;
  select bit_xor(crc32(concat_ws('#', t1, i4, f, y, bits + 0, cu, vl, vb, bl, st))) from t;
  select bit_xor(crc32(concat_ws('#', s2, b8, n, ts, c, v, bin, tx, e, last))) from t;
  select bit_xor(crc32(concat_ws('#', m3, tx))), bit_xor(crc32(concat_ws('#', last, t1, mixed))) from t;
  select * from t order by id desc limit 700, 3;
  select tx, last from t where id between 300 and 1300 order by id desc limit 500, 4;
  select v, bl from t where id between 300 and 1300 limit 500, 4;
  select t1, s2, id from t force index (narrow) order by t1, s2, id limit 400, 5;
  select t1, s2, id from t force index (narrow) order by t1 desc, s2 desc, id desc limit 400, 5;
  select m3, i4, id from t force index (three) order by m3 desc, i4, id limit 400, 5;
  select m3, i4, id from t force index (three) order by m3, i4 desc, id desc limit 400, 5;
  select b8, id from t force index (eight) order by b8, id limit 120, 5;
  select b8, id from t force index (eight) order by b8 desc, id desc limit 120, 5;
  select last, t1, id from t force index (nulls) order by last desc, t1 desc, id limit 300, 5;
  select last, t1, id from t force index (nulls) order by last, t1, id desc limit 100, 20;
  select count(*), sum(t1), sum(s2), sum(id) from t force index (narrow) where t1 > -100;
  select count(*), sum(m3), sum(i4), sum(id) from t force index (three) where m3 < 100000;
  select count(*), sum(b8), sum(id) from t force index (eight) where b8 > 1;
  select count(*), sum(b8), sum(id) from t force index (eight);
  select count(*), sum(last), sum(t1), sum(id) from t force index (nulls) where last is null or last > 3;
  select count(*), sum(id), sum(b8) from t force index (one) where id > 5;
  select count(*), sum(i4), bit_xor(crc32(v)) from t force index (texts) where v > 'v2';
end//
delimiter ;
call each_alone();
# With changes that the transaction has made and not committed, and then without.
begin;
update t set t1 = t1 + 1, m3 = -m3, v = concat(v, '!'), tx = null where id % 3 = 0 and t1 < 100;
delete from t where id % 10 = 4;
insert into t (id, i4, v, tx) values (5000, -1, 'new', 'text'), (-5, 0, null, null);
call each_alone();
rollback;
call each_alone();
# Rows of older layouts: wider numbers, new columns in the middle, one that goes, another order.
alter table t modify t1 smallint, modify v varchar(50), add column new1 int default 3 after s2, add column new2 varchar(20) default 'since' after v, drop column y, modify last int first;
update t set new1 = id, new2 = concat('n', id), t1 = 300 where id % 4 = 1;
select count(new1), sum(new1), bit_xor(crc32(new2)), bit_xor(crc32(concat_ws('#', t1, last, tx, bl, e))) from t;
select count(*), sum(new1) from t;
select count(*), bit_xor(crc32(new2)) from t;
select count(*), sum(t1), sum(last) from t ignore index (nulls, narrow);
select t1, s2, id from t force index (narrow) order by t1 desc, s2 desc, id desc limit 200, 5;
select * from t order by id limit 700, 3;
# What other strategies do with a row of which they have some columns only: row ids, buffers, temporary tables.
select t.id, t.tx from t join seq_1_to_20 s on t.t1 = s.seq order by t.bl, t.id limit 10, 8;
select a.id, b.v from t a, t b where a.i4 = b.i4 and b.c is not null order by a.vb, a.id limit 30, 5;
select distinct bits + 0, e from t where vl like '%lll%' order by 1 desc, 2 limit 6;
select e, st + 0, count(*), sum(d), max(tx) from t group by e, st order by 1, 2;
select id from t where n > 20 and v in (select v from t where bl is not null) order by dt desc limit 7;
update t set d = d + 1 where n > 50;
update t a join t b on a.id = b.id + 1 set a.n = b.n where b.e = 'b';
delete from t where f < 20 and st + 0 = 3;
select count(*), sum(n), round(sum(d), 5), bit_xor(crc32(concat_ws('#', id, t1, s2, m3, i4, b8, f, n, dt, ts, c, cu, v, vl, tx, bl, e, st))) from t;
drop procedure each_alone;
drop table t;
