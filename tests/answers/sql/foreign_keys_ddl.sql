# What CREATE TABLE takes and refuses.
create table parent (id int primary key, a int, b varchar(20), key (a, b));
create table child (x int, y varchar(30), constraint c1 foreign key (x) references parent (id), foreign key (x, y) references parent (a, b),
    constraint by_name foreign key named (x) references parent (a) on delete restrict on update no action);
show create table child;
show index from child;
create table inline_child (x int references parent (id), y int);
show create table inline_child;
create table f1 (x bigint, foreign key (x) references parent (id));
create table f2 (x int unsigned, foreign key (x) references parent (id));
create table f3 (x int, foreign key (x) references nowhere (id));
create table f4 (x int, foreign key (x) references parent (nothing));
create table f6 (x int, y int, foreign key (x, y) references parent (id));
create table f7 (y varchar(10) character set latin1 collate latin1_bin, x int, foreign key (x, y) references parent (a, b));
create table f8 (x int, foreign key (z) references parent (id));
create table f10 (x int, foreign key (x) references parent (id)) partition by hash (x);
create temporary table f11 (x int, foreign key (x) references parent (id));
show tables;
create table like_child like child;
show create table like_child;
drop table like_child;
create table selected (foreign key (x) references parent (id)) select 1 as x;
insert into parent values (1, 1, 'one'), (2, 2, 'two');
create table selected (foreign key (x) references parent (id)) select 1 as x;
insert into selected values (3);
drop table selected;

# information_schema.
select constraint_name, unique_constraint_name, match_option, update_rule, delete_rule, table_name, referenced_table_name
    from information_schema.referential_constraints where constraint_schema = database() order by 1, 6;
select constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint, referenced_table_name, referenced_column_name
    from information_schema.key_column_usage where constraint_schema = database() order by 1, 2, 4;
select constraint_name, table_name, constraint_type from information_schema.table_constraints
    where constraint_schema = database() order by 1, 2;

# DROP and TRUNCATE.
insert into child values (1, null);
drop table parent;
truncate parent;
truncate child;
drop table parent, child;
create or replace table parent (id int);
set foreign_key_checks = 0;
truncate parent;
set foreign_key_checks = 1;
insert into child values (1, null);
create table parent (id int primary key, a int, b varchar(20), key (a, b));
drop table if exists parent;

# The parent comes later.
set foreign_key_checks = 0;
create table early (x int, foreign key (x) references late (id));
set foreign_key_checks = 1;
show create table early;
insert into early values (1);
insert into early values (null);
create table late (id int primary key, n int);
insert into early values (1);
insert into late values (1, 1);
insert into early values (1);
delete from late;
drop table late;
set foreign_key_checks = 0;
drop table late;
create table late (id int primary key);
set foreign_key_checks = 1;
insert into early values (1);
insert into late values (1);
insert into early values (1);
delete from late;
drop table early, late;

# RENAME, of both sides and of both at once, and to another database.
create table mother (id int primary key);
create table kid (x int, foreign key (x) references mother (id), constraint named foreign key (x) references mother (id));
insert into mother values (1);
rename table mother to granny;
show create table kid;
insert into kid values (2);
insert into kid values (1);
delete from granny;
rename table kid to child_of_granny;
show create table child_of_granny;
delete from granny;
rename table granny to g2, child_of_granny to c2, g2 to granny;
delete from granny;
create database t_foreign_keys_other;
rename table granny to t_foreign_keys_other.granny;
show create table c2;
insert into c2 values (3);
delete from t_foreign_keys_other.granny;
drop database t_foreign_keys_other;
rename table t_foreign_keys_other.granny to granny;
drop database t_foreign_keys_other;
alter table granny rename to mother;
delete from mother;
alter table c2 rename to kid;
show create table kid;

# ALTER TABLE: copies keep constraints, and take and lose some.
alter table kid force, algorithm = copy;
show create table kid;
insert into kid values (9);
alter table mother add column n int first, algorithm = copy;
insert into kid values (9);
insert into kid values (1);
delete from mother;
alter table kid add column y int, algorithm = copy;
alter table kid add foreign key (y) references mother (id);
show create table kid;
insert into kid values (1, 5);
update kid set y = 1;
alter table kid drop foreign key named;
alter table kid drop foreign key no_such;
alter table kid drop foreign key if exists no_such;
alter table kid drop constraint kid_ibfk_1;
show create table kid;
insert into kid values (77, 1);
delete from kid where x = 77;
alter table kid add constraint back foreign key (x) references mother (id);
show create table kid;
insert into kid values (77, 1);
set foreign_key_checks = 0;
insert into kid values (78, 1);
alter table kid add constraint unproven foreign key (x) references mother (id), algorithm = copy;
set foreign_key_checks = 1;
insert into kid values (79, 1);
alter table kid drop foreign key unproven;
delete from kid where x = 78;

# What constraints keep from being changed.
alter table kid drop index y;
alter table kid drop column y;
alter table kid modify y bigint;
alter table mother modify id bigint;
alter table mother drop column id;
alter table kid engine = MyISAM;
alter table mother engine = MyISAM;
alter table kid add index other (y), drop index y;
insert into kid values (1, 123);
delete from mother;
alter table kid modify y int not null default 1;
alter table kid comment = 'changed';
insert into kid values (1, 123);
show create table kid;

# The server's own tools.
check table kid, mother;
delete from mother;
drop table kid, mother;

# A database goes with all its tables.
create database t_foreign_keys_db;
create table t_foreign_keys_db.a (id int primary key);
create table t_foreign_keys_db.b (x int, foreign key (x) references t_foreign_keys_db.a (id));
create table outside (x int, foreign key (x) references t_foreign_keys_db.a (id));
show create table outside;
drop database t_foreign_keys_db;
drop table outside;
drop database if exists t_foreign_keys_db;

# A table that refers to itself and cannot be made is not there afterwards.
create table self (f int, foreign key (f) references self (nope));
create table self (f int not null, key (f), foreign key (f) references self (f) on delete set null);
select * from self;
create table self (f int);
drop table self;
create table self (f int, foreign key (f) references self (f) on delete set null);
drop table self;
