-- NULL stays NULL: no change, whatever bytes a record has where a column is NULL.
set timestamp = 1700000000;
create table t (id int primary key, a varchar(10), i int, d decimal(10,2), c char(5), u char(5) character set utf8mb4,
    b blob, n int default 7, e enum('x','y'), f double, ts datetime default '2000-01-01' on update current_timestamp);
insert into t (id, a, i, d, c, u, b, n, e, f) values (1, null, null, null, null, null, null, null, null, null),
    (2, 'abcdef', 5, 1.5, 'ccc', 'uuu', 'bbb', 8, 'y', 2.5), (3, null, null, null, null, null, null, 7, null, null),
    (4, 'xx', 4, 4.4, 'xx', 'xx', 'xx', 4, 'x', 4.4);
update t set a = null, i = null, d = null, c = null, u = null, b = null, n = null, e = null, f = null, ts = '2000-01-01' where id = 2;
insert into t (id, a) values (1, null) on duplicate key update a = values (a);
select row_count();
insert into t (id, a) values (2, null) on duplicate key update a = values (a);
select row_count();
insert into t (id, i, d, c, u, b, e, f) values (2, null, null, null, null, null, null, null)
    on duplicate key update i = values (i), d = values (d), c = values (c), u = values (u), b = values (b), e = values (e), f = values (f);
select row_count();
select * from t order by id;
select id from t where id = 4;
insert into t (id, a) values (4, 'yy'), (1, null) on duplicate key update a = values (a);
select row_count();
create table s select * from t;
alter table s add primary key (id);
update t join s using (id) set t.a = s.a, t.i = s.i, t.d = s.d, t.c = s.c, t.u = s.u, t.e = s.e, t.f = s.f;
select row_count();
select id, ts from t order by id;
-- rows of an older layout
alter table t add column z varchar(20), add column y int, algorithm = instant;
insert into t (id, a) values (1, null), (2, null) on duplicate key update a = values (a), z = values (z), y = values (y);
select row_count();
update t join s using (id) set t.a = s.a, t.i = s.i, t.z = null, t.y = null;
select row_count();
select id, a, i, ts, z, y from t order by id;
