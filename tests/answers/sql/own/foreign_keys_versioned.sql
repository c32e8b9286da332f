-- Foreign keys of system-versioned tables without a key that has the row's end. InnoDB takes rows of their history for
-- rows: it refuses the second ALTER below, and changes of a child whose history has no parents. In MariaDB 11.8 time ends in 2106.
create table p (a int, b int, key (a), key (b)) with system versioning;
create table c (x int, y int, foreign key (x) references p (a), key (y)) with system versioning;
insert into p values (1,1),(2,2),(2,3),(4,4);
insert into c values (1,1),(2,2);
delete from p where a = 1;
delete from p where b = 2;
delete from p where b = 3;
insert into c values (4,4);
delete from c where x = 4;
delete from p where a = 4;
insert into c values (4,4);
update c set x = 1;
delete from p where a = 2;
insert into c values (2,2);
select * from c for system_time all order by x, y;
select * from p for system_time all order by a, b;
check table c extended;
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (x) references p (a);
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (x) references p (a), algorithm=copy;
show create table c;
delete from c;
delete from p;
insert into c values (1,1);
delete history from c;
delete history from p;
check table c extended;
drop table c, p;

-- Generated columns and their indexes in what a rule leaves. (InnoDB's index lacks history: CHECK TABLE says Corrupt.)
create table p (id int primary key) with system versioning;
create table c (id int primary key, pid int, v int as (pid * 2) virtual, s int as (id + 1) stored, key (v),
    foreign key (pid) references p (id) on delete cascade on update cascade) with system versioning;
create table log (t varchar(20));
create trigger u before update on c for each row insert into log values ('updated');
create trigger d before delete on c for each row insert into log values ('deleted');
insert into p values (1),(2),(3);
insert into c (id, pid) values (1,1),(2,1),(3,2);
update p set id = 10 where id = 1;
delete from p where id = 10;
select id, pid, v, s, row_end > now() + interval 1 year from c for system_time all order by id, row_end;
select id, v from c for system_time all force index (v) where v > 0 order by id, v;
begin;
update p set id = 5 where id = 2;
update p set id = 6 where id = 5;
delete from p where id = 6;
select id, pid, v, s, row_end > now() + interval 1 year from c for system_time all order by id, row_end, pid;
rollback;
select id, pid, v, s, row_end > now() + interval 1 year from c for system_time all order by id, row_end, pid;
select * from log;
check table c, p extended;
drop table c, p, log;

-- What comes and goes in one moment leaves no history, as where the server itself writes it. (InnoDB: 1761, 1062.)
set timestamp = 1600000000;
create table p (id int primary key);
create table c (id int primary key, pid int, foreign key (pid) references p (id) on delete cascade on update cascade)
    with system versioning;
insert into p values (1),(2);
insert into c values (1,1),(2,2);
update p set id = 3 where id = 1;
update p set id = 4 where id = 3;
delete from p where id = 4;
insert into p values (1);
insert into c values (1,1);
delete from p where id = 1;
insert into p values (1);
insert into c values (1,1);
delete from p where id = 1;
select id, pid, row_start, row_end from c for system_time all order by id, pid, row_end;
set timestamp = default;
check table c extended;
drop table c, p;
