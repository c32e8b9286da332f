-- Definitions of foreign keys that the server lets pass in some mode, and the engine has to look at.

-- A table that is not there cannot be dropped, whoever waits for it.
set foreign_key_checks = 0;
create table c (id int primary key, pid int, foreign key (pid) references p (id));
create table d (id int primary key, pid int, foreign key (pid) references missing_database.p (id));
set foreign_key_checks = 1;
drop table if exists p;
drop table p;
drop table if exists missing_database.p;
drop table if exists p, nothing;
drop view if exists p;
create or replace table p (id int primary key);
drop table if exists p;
drop table p;
create or replace table p (id int primary key);
drop table c, d;
drop table p;

-- A column under SET NULL cannot become NOT NULL, also without strict mode, by whatever way. (InnoDB finds out when the
-- copy gets the table's name, with another error.)
set sql_mode = '';
create table p (id int primary key);
create table c (pid int, v int, foreign key (pid) references p (id) on update set null);
insert into p values (1),(2);
insert into c values (1,1);
delimiter //
begin not atomic
    declare continue handler for sqlexception select 'refused' as told;
    alter table c modify pid int not null, algorithm = copy;
    alter table c add primary key (pid), algorithm = copy;
    alter table c add primary key (v, pid), algorithm = copy;
    alter table c modify pid int not null, algorithm = inplace;
    alter table c add primary key (pid);
    alter ignore table c modify pid int not null;
    set alter_algorithm = copy;
    alter table c modify pid int not null;
    set alter_algorithm = default;
end //
delimiter ;
update p set id = 3 where id = 1;
select * from c;
alter table c add w int, algorithm = copy;
show create table c;
drop table c;
create table c (pid int not null, foreign key (pid) references p (id) on delete set null);
set foreign_key_checks = 0;
create table c (pid int not null, foreign key (pid) references p (id) on delete set null);
create table c (pid int not null, foreign key (pid) references missing (id) on delete set null);
set foreign_key_checks = 1;
set sql_mode = default;
drop table p;

-- ON UPDATE CASCADE from a column that may be NULL to one that may not: strict mode refuses it; without, the NULL.
create table p (id int primary key, u int, key (u));
create table c (u int not null, foreign key (u) references p (u) on update cascade);
set sql_mode = '';
create table c (u int not null, foreign key (u) references p (u) on update cascade);
insert into p values (1,1),(2,2);
insert into c values (1),(2);
update p set u = null where id = 1;
update p set u = 3 where id = 1;
delete from p where id = 1;
select * from c;
alter table c modify u int, algorithm = copy;
alter table c modify u int not null, algorithm = copy;
show create table c;
alter table c modify u int;
set sql_mode = default;
alter table c modify u int not null, algorithm = inplace;
alter table c modify u int not null, algorithm = copy;
drop table c;
create table c (u int not null, key (u));
alter table c add foreign key (u) references p (u) on update cascade, algorithm = copy;
set sql_mode = '';
alter table c add foreign key (u) references p (u) on update cascade, algorithm = copy;
show create table c;
drop table c;
delete from p;
alter table p modify u int not null, algorithm = copy;
create table c (u int not null, foreign key (u) references p (u) on update cascade);
alter table p modify u int, algorithm = inplace;
show create table p;
alter table p modify u int not null, algorithm = copy;
alter table p modify u int, algorithm = copy;
alter table p modify u int not null, algorithm = copy;
set sql_mode = default;
alter table p modify u int, algorithm = inplace;
alter table p modify u int, algorithm = copy;
show create table p;
drop table c, p;

-- A table takes the name that constraints wait for if it fits them.
set foreign_key_checks = 0;
create table c (n varchar(10) character set latin1, key (n), foreign key (n) references p (n));
create table x (n varchar(10) character set utf8mb4 primary key);
create table y (n int primary key);
create table z (m varchar(10) character set latin1 primary key);
create table w (n varchar(10) character set latin1);
create table fits (n varchar(20) character set latin1 primary key);
rename table x to p;
rename table y to p;
rename table z to p;
rename table w to p;
alter table x rename to p;
alter table y rename to p;
rename table w to q, y to p;
show tables;
rename table fits to p;
set foreign_key_checks = 1;
insert into p values ('a');
insert into c values ('a');
insert into c values ('b');
rename table p to fits;
show create table c;
rename table x to p;
drop table c;
drop table fits, p, y, z, w;
create table p (id int primary key);
create table c (pid int, foreign key (pid) references p (id));
rename table p to q;
create table p (id varchar(10) primary key);
rename table p to r, q to p;
rename table p to q, r to p;
show create table c;
drop table c, q, p;

-- Columns are called as the tables call them.
create table P (Id int primary key, Uu int, Vv int, key (UU), key (vV, uU));
create table c1 (CustId int, foreign key (CUSTID) references P (ID));
create table c2 (CustId int, Two int, foreign key (CUSTID, two) references P (VV, UU) on delete cascade);
create table c3 (CustId int, constraint Abc foreign key fk (cuSTID) references P (iD));
create table c4 (Id int primary key, Up int, foreign key (UP) references c4 (ID));
alter table c3 add foreign key (CuStID) references P (uu);
show create table c1;
show create table c2;
show create table c3;
show create table c4;
insert into c1 values (1);
select table_name, column_name, referenced_column_name from information_schema.key_column_usage
    where table_schema = database() and referenced_table_name is not null order by table_name, constraint_name, ordinal_position;
set foreign_key_checks = 0;
create table c5 (CustId int, foreign key (CUSTID) references missing (ID));
show create table c5;
set foreign_key_checks = 1;
drop table c1, c2, c3, c4, c5, P;

-- A constraint's name is no longer than names may be.
create table p (id int primary key);
create table t234567890123456789012345678901234567890123456789012345678 (a int, foreign key (a) references p (id));
create table t234567890123456789012345678901234567890123456789012345678 (a int, constraint x foreign key (a) references p (id));
show create table t234567890123456789012345678901234567890123456789012345678;
drop table t234567890123456789012345678901234567890123456789012345678, p;

-- ENUM, SET, YEAR and integers of one size are numbers, whatever the other side calls them: also for what follows.
create table p (e enum('a','b') primary key, s set('a','b'), y year, f float(10,1), t tinyint unsigned,
    key (s), key (y), key (f), key (t));
create table c1 (id int primary key, x enum('b','a'), foreign key (x) references p (e) on update cascade);
create table c2 (id int primary key, x set('b','a'), foreign key (x) references p (s) on update cascade);
create table c3 (id int primary key, x set('a','b'), foreign key (x) references p (e) on update cascade);
create table c4 (id int primary key, x tinyint unsigned, foreign key (x) references p (y) on update cascade);
create table c5 (id int primary key, x float(10,3), foreign key (x) references p (f) on update cascade);
create table c6 (id int primary key, x enum('a','b','c','d','e'), foreign key (x) references p (t) on update cascade);
create table c7 (x tinyint, foreign key (x) references p (y));
create table c7 (x smallint unsigned, foreign key (x) references p (y));
insert into p values ('a', 'a', 2020, 1.1, 3);
insert into c1 values (1, 'b');
insert into c2 values (1, 'b');
insert into c3 values (1, 'a');
insert into c4 values (1, 120);
insert into c5 select 1, f from p;
insert into c6 values (1, 'c');
insert into c1 values (2, 'a');
insert into c4 values (2, 121);
update p set e = 'b', s = 'a,b', y = 2030, f = 3.3, t = 5;
select c1.x, c1.x + 0, c2.x, c2.x + 0, c3.x, c3.x + 0, c4.x, c5.x, c6.x from c1, c2, c3, c4, c5, c6;
delete from p;
check table c1, c2, c3, c4, c5, c6 extended;
drop table c1, c2, c3, c4, c5, c6, p;
