-- Foreign keys of system-versioned tables: history is neither parent nor child, and a row that becomes history is one
-- that is deleted.

-- A versioned parent keeps its children, by the primary key and by another one.
create table p (id int primary key, u int, v int, unique (u)) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id));
create table d (id int primary key, pu int, foreign key (pu) references p (u));
insert into p values (1,10,0),(2,20,0),(3,30,0),(4,40,0);
insert into c values (1,1);
insert into d values (1,30);
delete from p where id = 1;
delete from p where id = 3;
update p set id = 11 where id = 1;
update p set u = 31 where id = 3;
update p set v = 1;
update p set v = 2;
delete from p where id = 2;
insert into c values (2,2);
insert into d values (2,20);
update c set pid = 2 where id = 1;
update d set pu = 20 where id = 1;
update p set id = 44, u = 440 where id = 4;
insert into c values (4,4);
insert into d values (4,40);
insert into c values (5,44);
insert into d values (5,440);
insert into p values (2,20,9);
insert into c values (6,2);
insert into d values (6,20);
replace into p values (44,440,1);
insert into p values (44,440,1) on duplicate key update v = 7;
insert into p values (2,20,1) on duplicate key update id = 22;
delete history from p;
select * from c order by id;
select * from d order by id;
select * from p order by id;
check table c extended;
check table d extended;
check table p extended;
delete from d;
delete from c;
delete from p;
delete from p where id = 1;
drop table c, d;
-- The same with constraints that are added later.
create table c (id int primary key, pid int);
insert into c values (1,1);
-- The message of the one is that of the table, of the other that of the copy.
delimiter //
begin not atomic
    declare continue handler for 1452 select 'there is no parent' as told;
    alter table c add foreign key (pid) references p (id);
    alter table c add foreign key (pid) references p (id), algorithm=copy;
end //
delimiter ;
insert into p values (1,1,1);
alter table c add foreign key (pid) references p (id);
delete from p;
check table c extended;
drop table c, p;

-- A child whose history has no parents.
create table p (id int primary key);
create table c (id int primary key, pid int, foreign key (pid) references p (id)) with system versioning;
insert into p values (1),(2),(3);
insert into c values (1,1),(2,2),(3,3);
delete from p where id = 1;
delete from c where id = 1;
delete from p where id = 1;
update c set pid = 3 where id = 2;
delete from p where id = 2;
delete from p where id = 3;
insert into c values (4,1);
update c set pid = 1 where id = 3;
check table c extended;
delete history from c;
check table c extended;
select * from c order by id;
update c set pid = null;
delete from p;
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (pid) references p (id);
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (pid) references p (id), algorithm=copy;
insert into c values (9,9);
check table c extended;
drop table c, p;

-- Both, with keys that begin with the row's end.
create table p (id int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end,
    period for system_time (s, e), primary key (e, id), key (id)) with system versioning;
create table c (id int, pid int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end,
    period for system_time (s, e), primary key (e, id), foreign key (pid) references p (id)) with system versioning;
insert into p values (1, default, default),(2, default, default);
insert into c values (1, 1, default, default),(2, 2, default, default);
delete from p where id = 1;
delete from c where id = 1;
delete from p where id = 1;
insert into c values (1, 1, default, default);
select id, pid from c;
check table c extended;
drop table c, p;

-- Constraints of a table to itself.
create table t (id int primary key, up int, foreign key (up) references t (id)) with system versioning;
insert into t values (1,null),(2,1),(3,2);
delete from t where id = 1;
update t set up = null where id = 2;
delete from t where id = 1;
update t set up = 1 where id = 3;
delete from t where id = 2;
delete from t where id = 3;
delete from t where id = 2;
select count(*) from t;
check table t extended;
drop table t;

-- What follows from rules, beneath a versioned parent.
create table p (id int primary key, v int) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id) on delete cascade on update cascade);
create table n (id int primary key, pid int, foreign key (pid) references p (id) on delete set null on update set null);
insert into p values (1,1),(2,2),(3,3),(4,4);
insert into c values (1,1),(2,2),(3,3),(4,4);
insert into n values (1,1),(2,2),(3,3),(4,4);
delete from p where id = 1;
update p set id = 22 where id = 2;
update p set v = 5 where id = 3;
select * from c order by id;
select * from n order by id;
delete history from p;
select * from c order by id;
select * from n order by id;
check table c, n extended;
drop table c, n, p;

-- Versioned children: what a rule changes leaves history.
create table p (id int primary key);
create table c (id int primary key, pid int, v int, key (v), foreign key (pid) references p (id) on delete cascade
    on update cascade) with system versioning;
create table n (id int primary key, pid int, foreign key (pid) references p (id) on delete set null on update set null)
    with system versioning;
create table g (id int primary key, cid int, foreign key (cid) references c (id) on delete cascade) with system versioning;
insert into p values (1),(2),(3),(4);
insert into c values (1,1,1),(2,2,2),(3,3,3),(4,4,4);
insert into n values (1,1),(2,2),(3,3),(4,4);
insert into g values (1,1),(2,2),(3,3),(4,1);
delete from p where id = 1;
update p set id = 22 where id = 2;
select * from c order by id;
select id, pid, v, row_start < row_end, row_end > now() + interval 1 year from c for system_time all order by id, pid, v, row_end;
select * from n order by id;
select id, pid, row_start < row_end, row_end > now() + interval 1 year from n for system_time all order by id, pid, row_end;
select * from g order by id;
select id, cid, row_start < row_end, row_end > now() + interval 1 year from g for system_time all order by id, cid, row_end;
update c set v = 33 where id = 3;
delete from p where id = 3;
delete from p where id = 3;
select id, pid, v, row_end > now() + interval 1 year from c for system_time all order by id, pid, v, row_end;
select v from c for system_time all force index (v) where v > 0 order by v, row_end;
insert into p values (1);
insert into c values (1,1,1);
update p set id = 7 where id = 1;
delete from p;
select id, pid, v, row_end > now() + interval 1 year from c for system_time all order by id, pid, v, row_end;
select id, pid, row_end > now() + interval 1 year from n for system_time all order by id, pid, row_end;
check table p, c, n, g extended;
delete history from c;
delete history from n;
delete history from g;
select * from c for system_time all;
check table p, c, n, g extended;
drop table g, n, c, p;

-- A versioned table without a key of its own follows, too; rolled back, nothing is left.
create table p (id int primary key);
create table c (pid int, v varchar(10), b blob, foreign key (pid) references p (id) on delete cascade on update cascade)
    with system versioning;
insert into p values (1),(2);
insert into c values (1,'a','x'),(1,'b','y'),(2,'c','z');
begin;
delete from p where id = 1;
update p set id = 3 where id = 2;
select pid, v, b, row_end > now() + interval 1 year from c for system_time all order by v, pid, row_end;
rollback;
select pid, v, b, row_end > now() + interval 1 year from c for system_time all order by v, pid, row_end;
delete from p where id = 1;
update p set id = 3 where id = 2;
select pid, v, b, row_end > now() + interval 1 year from c for system_time all order by v, pid, row_end;
check table c extended;
drop table c, p;

-- Columns without versioning are no reason for history.
create table p (id int primary key);
create table c (id int primary key, pid int without system versioning, v int,
    foreign key (pid) references p (id) on delete set null on update cascade) with system versioning;
insert into p values (1),(2);
insert into c values (1,1,1),(2,2,2);
update p set id = 11 where id = 1;
delete from p where id = 2;
select id, pid, v, row_end > now() + interval 1 year from c for system_time all order by id, row_end;
drop table c, p;

-- Versioning comes and goes with ALTER.
create table p (id int primary key);
create table c (id int primary key, pid int, foreign key (pid) references p (id));
insert into p values (1),(2),(3);
insert into c values (1,1),(2,2);
alter table p add system versioning;
delete from p where id = 1;
delete from p where id = 3;
insert into c values (3,3);
alter table c add system versioning;
delete from c where id = 1;
delete from p where id = 1;
insert into c values (3,1);
check table c, p extended;
alter table p drop system versioning;
insert into c values (3,1);
insert into c values (3,2);
delete from p where id = 2;
alter table c drop system versioning;
delete from p where id = 2;
delete from c;
delete from p where id = 2;
check table c, p extended;
show create table c;
drop table c, p;

-- History that is written as such.
create table p (id int primary key) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id)) with system versioning;
set system_versioning_insert_history = 1;
insert into p (id, row_start, row_end) values (1, '2001-01-01 00:00:00', '2002-01-01 00:00:00');
insert into c (id, pid, row_start, row_end) values (1, 5, '2001-01-01 00:00:00', '2002-01-01 00:00:00');
insert into c values (2, 1);
insert into p (id, row_start, row_end) values (2, '2001-01-01 00:00:00', '2002-01-01 00:00:00');
insert into p (id) values (2);
insert into c (id, pid) values (2, 2);
set system_versioning_insert_history = 0;
delete from p where id = 2;
delete history from p;
check table c extended;
truncate table p;
truncate table c;
drop table c, p;

-- Several tables at once, IGNORE, REPLACE.
create table p (id int primary key, v int) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id));
insert into p values (1,1),(2,2),(3,3);
insert into c values (1,1),(2,2);
delete ignore from p order by id;
select * from p;
insert ignore into c values (3,3),(4,2);
show warnings;
select * from c order by id;
update ignore p set id = id + 100 order by id;
select * from p;
drop table c, p;

-- Several tables at once.
create table p (id int primary key, v int) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id) on delete cascade) with system versioning;
create table o (id int);
insert into p values (1,1),(2,2),(3,3);
insert into c values (1,1),(2,2),(3,2);
insert into o values (1),(2);
update p, o set p.v = 9 where p.id = o.id;
update p, o set p.id = p.id + 10 where p.id = o.id;
select * from p order by id;
select id, pid, row_end > now() + interval 1 year from c for system_time all order by id, row_end;
drop table c, p, o;

-- Deleted by other ways than DELETE of one table.
create table p (id int primary key, v int) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id));
create table o (id int);
insert into p values (1,1),(2,2);
insert into c values (1,1);
insert into o values (1),(2);
delete p from p join o on p.id = o.id where p.id = 1;
delete p from p join o on p.id = o.id where p.id = 2;
insert into c values (2,2);
replace into p values (1,7);
select * from p for system_time all order by id, row_end;
check table c extended;
drop table c, p, o;

-- Parts of a period that go are rows like any other.
create table p (id int, s date, e date, period for app (s, e), primary key (id, app without overlaps));
create table c (id int primary key, pid int, foreign key (pid) references p (id));
insert into p values (1,'2000-01-01','2000-12-31'),(2,'2000-01-01','2000-12-31'),(3,'2000-01-01','2000-12-31');
insert into c values (1,1),(2,2);
delete from p for portion of app from '2000-03-01' to '2000-04-01' where id = 1;
delete from p for portion of app from '2000-03-01' to '2000-04-01' where id = 3;
update p for portion of app from '2000-05-01' to '2000-06-01' set id = 4 where id = 2;
update p for portion of app from '2000-05-01' to '2000-06-01' set id = 5 where id = 3;
select * from p order by id, s;
insert into c values (5,5),(3,3);
delete from p where id = 3 and s = '2000-01-01';
delete from p where id = 5;
check table c extended;
delete from c;
delete from p for portion of app from '2000-03-01' to '2000-04-01' where id = 1;
select * from p order by id, s;
drop table c, p;
create table p (id int primary key);
create table c (id int, pid int, s date, e date, period for app (s, e), primary key (id, app without overlaps),
    foreign key (pid) references p (id) on delete cascade on update cascade);
insert into p values (1),(2),(3);
insert into c values (1,1,'2000-01-01','2000-12-31'),(2,2,'2000-01-01','2000-12-31'),(3,2,'2000-01-01','2000-12-31');
update c for portion of app from '2000-05-01' to '2000-06-01' set pid = 3 where id = 2;
update c for portion of app from '2000-05-01' to '2000-06-01' set pid = 9 where id = 3;
delete from c for portion of app from '2000-05-01' to '2000-06-01' where id = 1;
select * from c order by id, s;
update p set id = 22 where id = 2;
delete from p where id = 3;
select * from c order by id, s;
check table c extended;
drop table c, p;
create table p (id int, s date, e date, period for app (s, e), primary key (id, app without overlaps)) with system versioning;
create table c (id int primary key, pid int, foreign key (pid) references p (id));
insert into p values (1,'2000-01-01','2000-12-31'),(2,'2000-01-01','2000-12-31');
insert into c values (1,1);
delete from p where id = 1;
delete from p for portion of app from '2000-03-01' to '2000-04-01' where id = 2;
insert into c values (2,2);
delete from c;
delete from p;
insert into c values (2,2);
drop table c, p;
create temporary table t (id int primary key, up int, foreign key (up) references t (id)) with system versioning;
create temporary table t (id int primary key, up int, foreign key (up) references t (id));

-- Other forms of keys, and of ways in.
create table p (id int, v int, primary key (id desc)) with system versioning;
create table c (id int primary key, pid int, key k (pid desc), foreign key (pid) references p (id) on delete cascade) with system versioning;
insert into p values (1,1),(2,2),(3,3); insert into c values (1,1),(2,2),(3,2);
delete from p where id=1;
insert into c values (5,1);
select id,pid, row_end > now() + interval 1 year from c for system_time all order by id,row_end;
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (pid) references p (id);
check table c extended;
delete from p where id = 2;
drop table c, p;
create table p (a varchar(10) collate utf8mb4_general_ci, b int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, period for system_time(s,e), primary key (a, e desc, b)) with system versioning;
create table c (x varchar(20) collate utf8mb4_general_ci, foreign key (x) references p (a) on update cascade);
insert into p (a,b) values ('a',1),('b',2),('c',3);
insert into c values ('A '),('b');
delete from p where a = 'a';
update p set a = 'bb' where a = 'b';
delete from p where a='c';
insert into c values ('c');
select * from c;
select a,b from p;
check table c extended;
drop table c, p;
create table p (a int, b int, unique (a, b)) with system versioning;
create table c (a int, b int, foreign key (b, a) references p (a, b));
create table c (a int, b int, foreign key (a, b) references p (a, b) on delete set null);
insert into p values (1,1),(2,null),(3,3);
insert into c values (1,1),(2,null),(3,3);
delete from p where a=1;
delete from p where a = 2;
insert into c values (1,1);
select * from c;
check table c extended;
drop table c, p;
-- null able unique + no pk, child hidden pk cascade
create table p (a int unique) with system versioning; create table c (a int, foreign key (a) references p (a) on delete cascade on update cascade) with system versioning;
insert into p values (1),(null),(2); insert into c values (1),(1),(2),(null);
update p set a = 5 where a = 1; delete from p where a = 2;
select a, row_end > now() + interval 1 year n from c for system_time all order by a, n;
check table c, p extended;
delete history from c; delete history from p;
check table c, p extended;
lock tables p write;
delete from p where a = 5;
unlock tables;
select * from c;
prepare s from 'update p set a = 9 where a is null'; execute s;
create procedure pr() delete from p; call pr(); call pr();
drop procedure pr;
