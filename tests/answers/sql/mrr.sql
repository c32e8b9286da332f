# Many ranges at once, sorted by the server (DS-MRR), and the joins that are built on it (BKA, BKAH).
set optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on,join_cache_incremental=on,join_cache_hashed=on,join_cache_bka=on,optimize_join_buffer_size=off';
create table t (id int primary key, a int, b varchar(30), c longtext, d int, key a (a), key ab (a, b), key b (b(3)), unique key d (d));
insert into t select seq * 7 % 5003, seq % 50, concat('row ', seq % 300), if(seq % 90 = 0, repeat('x', 40000), seq), if(seq % 11 = 0, null, seq * 13) from seq_1_to_5000;
create table ta (i int, j int, v varchar(30));
insert into ta select seq, seq % 60, concat('row ', seq % 310) from seq_1_to_900;
analyze table t, ta;
# Rows in the order of the primary key, ranges, points, with pushed condition, with prefix.
flush status;
select id, a, d from t force index (a) where a in (3, 17, 40) and d > 60000 limit 200;
select count(*), sum(id), sum(length(c)), sum(length(b)) from t force index (a) where a between 5 and 9 or a between 30 and 33;
select count(*), sum(id), sum(length(c)) from t force index (ab) where a between 5 and 9 and b like '%7%';
select count(*), sum(id), sum(length(c)) from t force index (ab) where (a, b) in ((1, 'row 1'), (1, 'row 51'), (49, 'row 299'), (7, 'no'));
select count(*), sum(id), sum(length(c)) from t force index (b) where b between 'row 1' and 'row 2';
select count(*), sum(id), sum(length(c)) from t force index (d) where d in (13, 26, 39, 143, 650000 - 13, 65000 - 13, -5) or d is null;
select id, d from t force index (d) where d < 400;
show status like 'Handler_mrr_init';
# The primary key itself, sorted.
select t.id, t.a, ta.i from ta straight_join t force index (primary) on t.id = ta.j where ta.i < 30 order by 1, 2, 3;
# Joins.
set join_cache_level = 6;
flush status;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.a = ta.j;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.id = ta.j;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t force index (ab) on t.a = ta.j and t.b = ta.v;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t force index (d) on t.d = ta.i * 13;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i), sum(t.id is null) from ta left join t on t.a = ta.j and t.b like '%9';
select count(*), sum(t.id), sum(x.id), sum(length(x.c)) from ta straight_join t on t.id = ta.j straight_join t x force index (a) on x.a = t.a where ta.i < 100;
select count(*), sum(i) from ta where j in (select a from t where b like 'row 1%');
set join_cache_level = 8;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.a = ta.j;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.id = ta.j;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t force index (ab) on t.a = ta.j and t.b = ta.v;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i), sum(t.id is null) from ta left join t on t.a = ta.j and t.b like '%9';
# Buffers for a few rows only.
set join_buffer_size = 2048, mrr_buffer_size = 8192;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.a = ta.j;
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.id = ta.j;
select count(*), sum(id), sum(length(c)) from t force index (a) where a between 5 and 9 or a between 30 and 33;
select variable_value > 0 from information_schema.session_status where variable_name = 'Handler_mrr_init';
set join_buffer_size = default, mrr_buffer_size = default;
# What the transaction itself has changed; locking reads; a snapshot that others have passed.
begin;
update t set a = a + 1, b = concat(b, '!') where id % 3 = 0;
delete from t where id % 10 = 1;
insert into t values (9000, 7, 'new', 'new', -1), (9001, 8, 'new', 'new', -2);
select count(*), sum(t.id), sum(length(t.c)), sum(ta.i) from ta straight_join t on t.a = ta.j;
select count(*), sum(id), sum(length(c)) from t force index (a) where a between 5 and 9 or a between 30 and 33;
select count(*), sum(t.id), sum(length(t.b)) from ta straight_join t on t.a = ta.j where ta.i < 50 for update;
select count(*), sum(id) from t force index (a) where a in (7, 8) lock in share mode;
update ta straight_join t on t.a = ta.j set t.d = -t.d - 10 where ta.i between 5 and 8;
delete t from ta straight_join t on t.id = ta.j where ta.i > 850;
select count(*), sum(id), sum(d) from t;
rollback;
select count(*), sum(id), sum(d) from t;
# Row filters, index merge beside it.
set optimizer_switch = 'rowid_filter=on';
select count(*), sum(length(c)) from t where a between 5 and 30 and d between 100 and 9000;
select count(*), sum(length(c)) from t force index (a, d) where a = 5 or d between 100 and 300;
# No primary key; a primary key of text; partitions; a temporary table; generated columns.
create table h (a int, b varchar(20), key a (a));
insert into h select seq % 40, seq from seq_1_to_2000;
select count(*), sum(h.b), sum(ta.i) from ta straight_join h on h.a = ta.j;
select a, b from h force index (a) where a in (3, 5, 39) and b < 500 order by a, b + 0;
create table p (k varchar(20) collate utf8mb4_general_ci, a int, b text, primary key (k(5), a), key a (a));
insert into p select concat('Key ', char(65 + seq % 26), seq % 13), seq, seq * 2 from seq_1_to_1500;
select count(*), sum(length(p.k)), sum(p.b), sum(ta.i) from ta straight_join p on p.a = ta.i;
create table q (id int, a int, b varchar(30), g int as (a * 2) stored, v int as (a + 1) virtual, primary key (id), key a (a), key v (v)) partition by hash (id) partitions 4;
insert into q (id, a, b) select seq, seq % 40, concat('b', seq) from seq_1_to_2000;
select count(*), sum(q.id), sum(q.g), sum(q.v), sum(length(q.b)) from ta straight_join q force index (a) on q.a = ta.j;
select count(*), sum(q.id), sum(q.v), sum(length(q.b)) from ta straight_join q force index (v) on q.v = ta.j;
select count(*), sum(id), sum(length(b)) from q force index (a) where a in (3, 7, 11) or a > 36;
create temporary table m (id int primary key, a int, b varchar(30), key a (a));
insert into m select seq, seq % 40, concat('b', seq) from seq_1_to_2000;
select count(*), sum(m.id), sum(length(m.b)) from ta straight_join m force index (a) on m.a = ta.j;
# A procedure's statement, prepared, repeated; killed half-way by its limit.
prepare s from 'select count(*), sum(t.id), sum(length(t.c)) from ta straight_join t on t.a = ta.j where ta.i > ?';
set @i = 100;
execute s using @i;
set @i = 600;
execute s using @i;
deallocate prepare s;
select t.id, t.a from ta straight_join t on t.a = ta.j where ta.i = 1 order by t.id limit 3;
select 1 from ta straight_join t on t.a = ta.j limit 2;
drop table t, ta, h, p, q;
