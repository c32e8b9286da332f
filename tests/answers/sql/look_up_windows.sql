# Look-ups of one key after the other take their rows from a window of the cursor: gaps, large values, keys that are not
# there, several parts, changes of the transaction before and between them.
create table t (id int primary key, a int, b varchar(40), c longtext, key a (a)) ;
insert into t select seq, seq % 100, concat('row ', seq), if(seq % 50 = 0, repeat('x', 100000), seq) from seq_1_to_3000 where seq % 11 <> 3;
select count(*), sum(t.id), sum(t.a), sum(length(t.b)), sum(length(t.c)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.id), sum(length(t.c)) from seq_1_to_4000_step_3 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.id), sum(length(t.c)) from seq_1_to_4000_step_7 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.id), sum(length(t.c)) from seq_1_to_4000_step_40 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.id), sum(length(t.c)) from seq_4000_to_1 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.id), sum(length(t.c)) from seq_1_to_2000 s straight_join t force index (primary) on t.id = s.seq div 3;
select count(*), sum(t.id), sum(length(t.c)) from seq_1_to_2000 s straight_join t force index (primary) on t.id = s.seq + if(s.seq % 20 = 0, 1000, 0);
select s.seq, t.b from seq_45_to_60 s left join t on t.id = s.seq;
# Changes that are not part of the leaves yet, and what is taken back.
begin;
update t set b = concat(b, '!'), a = a + 1 where id % 2 = 0;
delete from t where id % 10 = 5;
insert into t values (14, 1, 'new', null), (25, 2, 'again', null), (-3, 3, 'before', null);
select count(*), sum(t.id), sum(t.a), sum(length(t.b)), sum(length(t.c)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq;
select s.seq, t.b from seq_10_to_40 s left join t on t.id = s.seq;
savepoint s;
update t set b = 'taken back' where id between 100 and 2000;
select count(*), sum(t.id), sum(t.a), sum(length(t.b)), sum(length(t.c)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq;
rollback to s;
select count(*), sum(t.id), sum(t.a), sum(length(t.b)), sum(length(t.c)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(t.a), sum(length(t.b)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq lock in share mode;
commit;
select count(*), sum(t.id), sum(t.a), sum(length(t.b)), sum(length(t.c)) from seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq;
# What is looked up is changed by the same statement, or by what it calls.
update seq_1_to_4000 s straight_join t force index (primary) on t.id = s.seq set t.a = t.a + s.seq % 7, t.b = concat(t.b, '?');
update t x join t y on y.id = x.id + 1 set x.a = y.a + 1, y.b = x.b;
select count(*), sum(a), sum(length(b)) from t;
insert into t select t.id + 10000, t.a, t.b, t.c from seq_1_to_2500 s straight_join t force index (primary) on t.id = s.seq;
insert into t select t.id - 5, t.a, 'moved', null from seq_100_to_1500 s straight_join t force index (primary) on t.id = s.seq on duplicate key update a = t.a + 1;
select count(*), sum(a), sum(id), sum(length(b)) from t;
delete t from seq_1_to_3000_step_2 s straight_join t force index (primary) on t.id = s.seq;
select count(*), sum(a), sum(id), sum(length(b)) from t;
# A handler that looks up while its transaction writes, and goes on from there.
handler t open;
begin;
handler t read `primary` = (100);
handler t read `primary` = (102);
handler t read `primary` = (104);
handler t read `primary` = (106);
update t set b = 'changed ahead' where id between 108 and 112;
handler t read `primary` = (108);
handler t read `primary` next limit 2;
handler t read `primary` = (114);
rollback;
handler t read `primary` = (110);
handler t read `primary` prev limit 2;
handler t close;
# A unique key that is not the primary one, keys of several parts, of texts, descending.
create table u (a int not null, b varchar(20) not null, c int not null, d int, primary key (a, b), unique key c (c desc), unique key d (d));
insert into u select seq div 3, concat('key ', seq % 3), 5000 - seq, if(seq % 9 = 0, null, seq * 2) from seq_1_to_3000;
select count(*), sum(u.a), sum(length(u.b)) from seq_0_to_3500 s straight_join u force index (primary) on u.a = s.seq div 3 and u.b = concat('KEY ', s.seq % 3);
select count(*), sum(u.a), sum(length(u.b)), sum(u.d) from seq_0_to_6000 s straight_join u force index (c) on u.c = s.seq;
select count(*), sum(u.c) from seq_0_to_6000 s straight_join u force index (c) on u.c = 6000 - s.seq;
select count(*), sum(u.a), sum(length(u.b)), sum(u.c) from seq_0_to_6000 s straight_join u force index (d) on u.d = s.seq;
select count(*), sum(u.d) from seq_0_to_6000 s straight_join u force index (d) on u.d = s.seq;
create table v (a varchar(30) not null primary key, b int);
insert into v select concat(if(seq % 2, 'even longer key ', 'key '), lpad(seq, 6, '0')), seq from seq_1_to_2000;
select count(*), sum(v.b) from seq_1_to_2100 s straight_join v force index (primary) on v.a = concat('even longer key ', lpad(s.seq, 6, '0'));
select count(*), sum(v.b) from seq_1_to_2100 s straight_join v force index (primary) on v.a = concat('KEY ', lpad(s.seq, 6, '0'), '  ');
drop table t, u, v;
