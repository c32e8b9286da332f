create temporary table t (id int auto_increment primary key, v varchar(20), key(v));
insert into t(v) values ('a'),('b'),('c');
select * from t;
update t set v='z' where id=2;
delete from t where v='a';
select * from t order by v;
alter table t add column n int default 3, add key(n);
select * from t where n=3 order by id;
truncate t;
insert into t(v) values ('q');
select id, v from t;
begin;
insert into t(v) values ('r');
rollback;
select v from t;
create temporary table u select * from t;
select v from u;
create table base (id int primary key);
insert into base values (1),(2);
start transaction read only;
insert into t(v) values ('ro');
insert into base values (3);
commit;
select v from t order by v;
lock tables base read;
create temporary table w (a int primary key);
insert into w values (1);
select * from w;
unlock tables;
rename table t to t9;
select v from t9 order by v;
drop temporary table t9, u, w;
create temporary table base (id int primary key, other int);
insert into base values (9,9);
select * from base;
drop temporary table base;
select * from base;
create table s (a int primary key, b int);
insert into s values (1,2),(3,4);
delimiter //
create procedure p()
begin
  declare done int default 0;
  declare x int;
  declare c cursor for select a from s order by a desc;
  declare continue handler for not found set done = 1;
  open c;
  repeat
    fetch c into x;
    if not done then update s set b = b + x where a = x; select x; end if;
  until done end repeat;
  close c;
end//
create function f(k int) returns int reads sql data return (select b from s where a = k)//
delimiter ;
call p();
select a, f(a) from s;
select a from s where f(a) > 3;
