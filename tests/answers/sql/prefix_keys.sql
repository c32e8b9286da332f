# Keys on a prefix of a column: what an entry does not give back must not decide where a range ends.
set optimizer_switch = 'index_condition_pushdown=on,rowid_filter=on';
# A range, then another over the same record: what the first left there is not the second's.
create table t1 (id int primary key, c1 text, d int, key k (c1(4), d));
insert into t1 select seq, concat(char(65 + seq % 26), char(66 + (seq * 7) % 23), seq), seq % 5 from seq_1_to_1000;
select id from t1 where c1 like 'B%' and d = 2 order by c1;
select id from t1 where c1 between 'B' and 'BF' and d = 2 order by id;
# Two ranges in one statement, nothing before it.
create table t2 (c1 text, c2 varchar(2), key i (c2, c1(2)));
insert into t2 values ('aa', 'x'), ('a', 'y'), ('bb', 'x'), ('b', 'z');
select * from t2 force index (i) where (c1 = 'aa' and c2 = 'x') or (c1 = 'a' and c2 = 'y') order by c2;
drop table t1, t2;
delimiter //
create procedure ranges(in kind text, in part text)
begin
  select kind, part;
  execute immediate concat('create table p (id int primary key, d int, filler int, ', kind, ', key k (', part, ', d), key l (d, ', part, ', id), key f (filler))');
  insert into p (id, d, c, filler)
    select seq, seq % 5, concat(char(65 + seq % 26), char(66 + (seq * 7) % 23), lpad(seq, 4, '0')), seq % 50 from seq_1_to_400;
  insert into p (id, d, c) values (500, 2, null), (501, 2, ''), (502, 2, 'B'), (503, 2, 'BF'), (504, 2, 'BF '), (505, 3, 'BFzzzzzzzzzz'), (506, 2, 'BFz');
  for r in (select 'k' as i union select 'l' union select 'f') do
    begin
      declare hint text default concat('select /* ', r.i, ' */ id from p force index (', r.i, ') where ');
      execute immediate concat(hint, "c like 'B%' and d = 2 order by id");
      execute immediate concat(hint, "c between 'B' and 'BF' and d = 2 order by id");
      execute immediate concat(hint, "c between 'C' and 'CD' and d in (1, 2) and filler between 0 and 50 order by id");
      execute immediate concat(hint, "(c = 'BF' and d = 2) or (c = 'AB' and d = 3) or (c > 'ZT' and d = 1) order by id");
      execute immediate concat(hint, "(d = 2 and c <= 'BC') or (d = 3 and c > 'YY') order by id");
      execute immediate concat(hint, "(d = 1 and c between 'BC' and 'CC') or (d = 4 and c < 'B') order by id");
      execute immediate concat(hint, "c is null and d = 2 or c > 'ZV' and d < 3 order by id");
      execute immediate concat(hint, "c between 'B' and 'BZ' and d % 2 = 1 order by id for update");
      execute immediate concat(hint, "c between 'BB' and 'DF' and d > 1 order by c desc, id desc limit 20");
    end;
  end for;
  # The keys together: index merge and rowid filters read entries only.
  select id from p where (c between 'B' and 'BJ' or filler between 3 and 4) order by id;
  select id from p where c between 'B' and 'BJ' and filler between 3 and 40 order by id;
  select a.id, b.id from p a join p b on b.d = a.d and b.c between 'A' and 'AD' where a.c between 'BB' and 'BD' order by a.id, b.id;
  update p set filler = 99 where c between 'B' and 'BF' and d = 2;
  select id from p where filler = 99 order by id;
  delete from p where c between 'B' and 'BF' and d = 2;
  select count(*), sum(id) from p;
  drop table p;
end//
delimiter ;
call ranges('c tinytext', 'c(4)');
call ranges('c text', 'c(2)');
call ranges('c mediumtext character set utf8mb4 collate utf8mb4_unicode_ci', 'c(4) desc');
call ranges('c longtext character set latin1', 'c(1)');
call ranges('c blob', 'c(4)');
call ranges('c longblob', 'c(3) desc');
call ranges('c varchar(300) character set utf8mb4', 'c(4)');
call ranges('c varchar(20) character set latin1', 'c(2) desc');
call ranges('c varbinary(300)', 'c(4)');
call ranges('c char(20)', 'c(4)');
call ranges('c char(20) character set latin1 collate latin1_bin', 'c(3) desc');
call ranges('c binary(20)', 'c(4)');
call ranges('c varchar(20)', 'c');
# Virtual columns: of a text, and a text themselves.
delimiter //
create procedure computed(in kind text, in part text)
begin
  select kind, part;
  execute immediate concat('create table v (id int primary key, d int, b varchar(40), c ', kind, ' as (concat(b, "-", id)) virtual, key k (', part, ', d), key l (d, ', part, '))');
  insert into v (id, d, b) select seq, seq % 5, concat(char(65 + seq % 26), char(66 + (seq * 7) % 23), seq) from seq_1_to_400;
  select id from v force index (k) where c like 'B%' and d = 2 order by id;
  select id from v force index (k) where c between 'B' and 'BF' and d = 2 order by id;
  select id from v force index (k) where (c between 'B' and 'BF' and d = 2) or (c between 'A' and 'AK' and d = 3) order by id;
  select id from v force index (l) where (d = 1 and c between 'BC' and 'CC') or (d = 4 and c < 'B') order by id;
  select c from v force index (l) where (d = 1 and c between 'BC' and 'CC') or (d = 4 and c < 'B') order by id;
  select id from v force index (k) where c between 'B' and 'CF' and d = 2 order by id for update;
  drop table v;
end//
delimiter ;
call computed('text', 'c(4)');
call computed('text', 'c(4) desc');
call computed('varchar(60)', 'c(4)');
call computed('varchar(60)', 'c');
call computed('blob', 'c(4)');
# Partitions read for themselves.
create table q (id int, c text, d int, primary key (id), key k (c(4), d)) partition by hash (id) partitions 3;
insert into q select seq, concat(char(65 + seq % 26), char(66 + (seq * 7) % 23), seq), seq % 5 from seq_1_to_1000;
select id from q force index (k) where c like 'B%' and d = 2 order by c;
select id from q force index (k) where c between 'B' and 'BF' and d = 2 order by id;
select id from q force index (k) where c between 'B' and 'BF' and d = 2 order by c, d;
select id from q force index (k) where (c between 'B' and 'BF' and d = 2) or (c between 'A' and 'AK' and d = 3) order by c desc;
drop table q;
# A rowid filter that is filled from a key on a prefix.
create table r (id int primary key, a int, c text, pad varchar(200), key (a), key kc (c(6)));
insert into r select seq, seq % 100, concat(char(65 + seq % 26), char(66 + (seq * 7) % 23), lpad(seq, 6, '0')), repeat('x', 200) from seq_1_to_10000;
analyze table r persistent for all;
select id from r where a between 10 and 40 and c between 'BB' and 'BC' order by id;
select count(*), sum(id) from r where a between 10 and 40 and c between 'B' and 'BD';
select count(*), sum(id) from r force index (a) where a between 10 and 40 and (c between 'B' and 'BD' or c between 'FB' and 'FC');
drop table r;
# A primary key on a prefix: rows have the whole column, also where keys give columns back.
create table b (c varbinary(300) not null, d int, primary key (c(3)), key (d));
insert into b values ('abcde', 1), ('abdef', 2), ('b\0\0', 3);
--error ER_DUP_ENTRY
insert into b values ('abcfg', 4);
select hex(c), d from b;
select hex(c) from b where d = 2;
update b set c = 'abdxyz' where d = 2;
update b set d = 5 where c = 'abcde';
select hex(c), d from b order by d;
alter table b force;
select hex(c), d from b order by d;
create table bin (c binary(8) not null, d int, primary key (c(2)), unique key (d));
insert into bin values ('abcde', 1), ('bcdef', 2);
select hex(c), d from bin order by d;
select hex(c) from bin where d = 1;
drop table b, bin;
# An index on a prefix of a column of the primary key: the entry has the column, by its row's key, but not by the prefix.
delimiter //
create procedure in_key(in kind text, in way text)
begin
  select kind, way;
  execute immediate concat('create table k (c ', kind, ' not null, e date not null, d int not null, primary key (d, c))');
  insert into k values ('abcde', '2020-01-01', 1), ('ABCDE', '2020-01-02', 2), ('abdef', '2020-01-03', 2), ('ab', '2020-01-04', 3), ('', '2020-01-05', 4);
  execute immediate concat('alter table k add unique key u (c(3), e), add key p (c(3)), add key q (e, c(2)), algorithm=', way);
  execute immediate 'select c, e, d from k force index (u) where c = ? order by d' using 'abcde';
  select c, e from k force index (u) where c > 'a' order by e;
  select c from k force index (p) where c like 'ab%' order by d, c;
  select c, e from k force index (q) where e > '2019-01-01' and c like '%e%' order by e;
  select a.d, b.c from k a join k b force index (p) on a.c = b.c order by a.d, b.d, b.c;
  delete a from k a join k b on a.c = b.c where a.d = 1;
  select c, d from k force index (u) where c >= 'ab' order by d, c;
  drop table k;
end//
delimiter ;
call in_key('varchar(300)', 'copy');
call in_key('varchar(300)', 'inplace');
call in_key('char(30) character set utf8mb4', 'inplace');
call in_key('varbinary(300)', 'inplace');
call in_key('binary(7)', 'copy');
call in_key('varchar(30) character set latin1 collate latin1_bin', 'inplace');
drop procedure in_key;
