# An UPDATE that changes nothing counts as none: also of columns that the statement does not read.
delimiter //
create procedure counted(in statement text)
begin
  execute immediate statement;
  select statement, row_count();
end//
delimiter ;
create table t (
  id int primary key, s varchar(10), v varchar(300), c char(10) character set utf8mb4, x text, b blob, n int, f double, d decimal(10,3), ts timestamp(3) null, e enum('a','b'),
  bits bit(11), g int as (n + 1) virtual, h int as (n * 2) stored, key (s), key (x(5)), key (g), unique (n)
);
insert into t (id, s, v, c, x, b, n, f, d, ts, e, bits) values
  (1, 'done', 'v', 'c', 'text', 'blob', 1, 0.5, 1.5, '2020-01-01 00:00:00', 'a', 5), (2, null, null, null, null, null, null, null, null, null, null, null),
  (3, 'done', repeat('v', 300), 'c', repeat('text', 5000), repeat('blob', 5000), 3, 3.5, 3.5, '2020-01-01 00:00:00', 'b', 1025);
call counted("update t set s = 'done' where id = 1");
call counted("update t set s = 'done' where id in (1, 3)");
call counted("update t set s = 'Done' where id = 1");
call counted("update t set s = 'done ' where id = 1");
call counted("update t set c = 'c ' where id = 1");
call counted("update t set x = 'text', b = 'blob' where id = 1");
call counted("update t set x = repeat('text', 5000) where id = 3");
call counted("update t set x = concat(x, '') where id = 3");
call counted("update t set b = repeat('blob', 5000), v = repeat('v', 300) where id = 3");
call counted("update t set b = concat(repeat('blob', 4999), 'blub') where id = 3");
call counted("update t set x = null, n = null, bits = null, g = default where id = 2");
call counted("update t set x = '' where id = 2");
call counted("update t set n = 1, f = 0.5, d = 1.5, ts = '2020-01-01', e = 'a', bits = 5 where id = 1");
call counted("update t set bits = 6 where id = 1");
call counted("update t set bits = 1024 + 1 where id = 3");
call counted("update t set f = 0 where id = 1");
call counted("update t set f = -0.0 where id = 1");
call counted("update t set id = 1 where id = 1");
call counted("update t set id = id where id > 0");
call counted("update t set n = n + 0");
call counted("update t set n = n + 10 where n is not null");
call counted("update t set h = default where id = 1");
call counted("update t set n = 11 where g = 12");
call counted("update t set s = 'done' order by id limit 2");
call counted("update ignore t set n = 13 where id = 1");
call counted("update t join (select 1 as one) o set t.x = 'text' where t.id = 1");
call counted("update t a join t b on a.id = b.id set a.s = 'done', b.n = b.n where a.id = 3");
call counted("insert into t (id, s) values (1, 'x') on duplicate key update x = 'text'");
call counted("insert into t (id, s) values (1, 'x') on duplicate key update s = 'y'");
call counted("insert into t (id, s) values (1, 'x'), (3, 'x'), (4, 'x') on duplicate key update s = values(s)");
call counted("replace into t (id, s) values (4, 'x')");
call counted("replace into t (id, s) select id, s from t where id = 4");
call counted("replace into t (id, s) values (4, 'z')");
select id, s, length(v), c, length(x), length(b), n, f, d, ts, e, bits + 0, g, h from t order by id;
# What the server sets at a change.
create table u (id int primary key, s varchar(10), at timestamp not null default current_timestamp on update current_timestamp, by_trigger int default 0);
insert into u values (1, 'a', '2020-01-01', 0);
call counted("update u set s = 'a' where id = 1");
call counted("update u set s = 'a', at = at where id = 1");
create trigger tr before update on u for each row set new.by_trigger = new.by_trigger + 1;
call counted("update u set s = 'a', at = at where id = 1");
select id, s, by_trigger from u;
# Keys of several kinds, and rows without a key.
create table k (a varchar(5), b int, t text, primary key (a, b), key (t(3), b desc));
insert into k values ('x', 1, 'text'), ('y', 2, null);
call counted("update k set a = 'x', b = 1 where t = 'text'");
call counted("update k set a = 'X' where t = 'text'");
call counted("update k set t = null where a = 'y'");
call counted("update k set t = 'text' where a = 'y'");
create table w (a int, b text);
insert into w values (1, 'x'), (1, 'x'), (2, null);
call counted("update w set b = 'x' where a = 1");
call counted("update w set b = 'y' where a = 1 limit 1");
call counted("update w set b = 'y' where a = 1");
select * from w order by a, b;
create temporary table tmp (id int primary key, b text);
insert into tmp values (1, 'x');
call counted("update tmp set b = 'x'");
call counted("update tmp set b = 'y'");
create table p (id int primary key, b text) partition by hash (id) partitions 2;
insert into p values (1, 'x'), (2, 'y');
call counted("update p set b = 'x'");
create table v (id int primary key, b text) with system versioning;
insert into v values (1, 'x');
call counted("update v set b = 'x' where id = 1");
call counted("update v set b = 'y' where id = 1");
select count(*) from v for system_time all;
drop table t, u, k, w, p, v;
