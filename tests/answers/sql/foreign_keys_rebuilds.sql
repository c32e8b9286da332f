-- ALTER TABLE that writes all rows anew, and gives columns of constraints other names, or lets them be NULL, by the way.
set sql_mode = 'STRICT_TRANS_TABLES';
create table p (id int primary key, v int, t text, key (v));
create table c (id int primary key, p int, w int, n int, foreign key (p) references p (id), foreign key (w) references p (v) on update cascade on delete set null);
create table s (id int primary key, up int, constraint tree foreign key (up) references s (id) on delete cascade);
insert into p values (1, 1, 'one'), (2, 2, 'two'), (3, 3, null);
insert into c values (1, 1, 1, 1), (2, 2, 2, 2);
insert into s values (1, null), (2, 1), (3, 2);
-- A child's column: another name and no NULL; then back.
alter table c change p q int not null;
show create table c;
insert into c values (3, 9, null, 3);
insert into c values (3, null, null, 3);
insert into c values (3, 3, null, 3);
delete from p where id = 3;
alter table c change q p int;
insert into c values (4, null, 3, 4);
delete from p where id = 2;
-- Another name with FORCE, with another primary key, with columns that come and go, with the names of index and constraint.
alter table c change p q int, force, algorithm=inplace;
alter table c rename column q to p, drop primary key, add primary key (n, id), algorithm=inplace;
alter table c rename column p to q, add column z int default 5 first, drop primary key, add primary key (id), algorithm=inplace;
alter table c rename column q to w, rename column w to q, force, algorithm=inplace;
select constraint_name, column_name, referenced_column_name from information_schema.key_column_usage where table_schema = database() and referenced_table_name is not null order by 1;
insert into c values (5, 5, 2, 9, 5);
insert into c values (5, 5, 9, 2, 5);
alter table c rename column q to w, rename column w to p, force, algorithm=inplace;
show create table c;
-- The parent's, with a child that follows.
alter table p change id pid int, force, algorithm=inplace;
show create table c;
alter table p change v vv int not null;
alter table p rename column pid to id, add column extra int default 1, force, algorithm=inplace;
update p set vv = 20 where id = 2;
select * from c order by id;
delete from p where id = 1;
insert into c values (1, 7, 7, 7, 7);
insert into c values (1, 7, 1, 7, 7);
show create table c;
show create table p;
alter table p change vv v int not null, drop column extra, force;
-- Itself.
alter table s change id number int, force, algorithm=inplace;
alter table s change up parent int, force, algorithm=inplace;
insert into s values (4, 9);
insert into s values (4, 3);
delete from s where number = 2;
select * from s;
show create table s;
-- NULL where the rules want it, and where they may not have it.
alter table c modify w int not null;
alter table c change w x int not null;
alter table p rename column v to x, modify t text not null;
update p set t = 'three' where id = 3;
alter table p rename column v to x, modify t text not null;
alter table p modify x int, modify t text;
update p set t = null where id = 2;
-- What is dropped by the way.
alter table c drop foreign key c_ibfk_1, modify p int, force, algorithm=inplace;
alter table c drop foreign key c_ibfk_2, drop key w, drop column w, force, algorithm=inplace;
show create table c;
insert into c values (9, 9, 77, 9);
delete from p;
-- Added without looking.
set foreign_key_checks = 0;
alter table c add constraint again foreign key (p) references p (id), force, algorithm=inplace;
set foreign_key_checks = 1;
show create table c;
insert into c values (10, 10, 78, 10);
delete from c;
check table p, c, s extended;
-- Tables of other names.
create table p2 (id int primary key, v int);
create table c2 (id int primary key, p int, foreign key (p) references p2 (id));
insert into p2 values (1, 1);
insert into c2 values (1, 1);
alter table c2 change p q int not null, rename to c3;
alter table p2 change id number int, force, rename to p3;
show create table c3;
insert into c3 values (2, 2);
insert into c3 values (2, 1);
delete from p3;
drop table c3, p3, c, p, s;
