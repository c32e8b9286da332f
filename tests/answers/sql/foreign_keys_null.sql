-- Foreign keys between columns of which one may be NULL and the other may not.
create table parent (id int primary key, a int, b int not null, c int not null, key (a), key (b), key (a, b), key (b, a), key (b, c), unique (c));
create table c1 (id int primary key, x int not null, foreign key (x) references parent (a) on update cascade);
show warnings;
create table c2 (id int primary key, x int not null, foreign key (x) references parent (a) on delete cascade);
create table c3 (id int primary key, x int not null, foreign key (x) references parent (a));
create table c4 (id int primary key, x int, foreign key (x) references parent (a) on update cascade);
create table c5 (id int primary key, x int not null, foreign key (x) references parent (b) on update cascade);
create table c6 (id int primary key, x int not null, foreign key (x) references parent (b) on update set null);
create table c7 (id int primary key, x int not null, foreign key (x) references parent (b) on delete set null);
create table c8 (id int primary key, x int not null, foreign key (x) references parent (a) on delete set null on update cascade);
# Several columns.
create table d1 (id int primary key, x int, y int not null, foreign key (x, y) references parent (a, b) on update cascade);
create table d2 (id int primary key, x int not null, y int not null, foreign key (x, y) references parent (a, b) on update cascade);
create table d3 (id int primary key, x int not null, y int, foreign key (x, y) references parent (a, b) on update cascade);
create table d4 (id int primary key, x int not null, y int not null, foreign key (x, y) references parent (b, c) on update cascade);
create table d5 (id int primary key, x int, y int not null, foreign key (x, y) references parent (a, b) on delete set null);
create table d6 (id int primary key, x int not null, y int, foreign key (x, y) references parent (b, a) on update cascade);
create table d7 (x int, y int, primary key (x, y), foreign key (x, y) references parent (a, b) on update cascade);
create table d8 (x int, y int, primary key (x), foreign key (x, y) references parent (b, a) on update cascade);
# With foreign_key_checks=0.
set foreign_key_checks = 0;
create table e1 (id int primary key, x int not null, foreign key (x) references parent (a) on update cascade);
create table e2 (id int primary key, x int not null, foreign key (x) references late (a) on update cascade);
set foreign_key_checks = 1;
create table late (id int primary key, a int, key (a));
set foreign_key_checks = 0;
create table late (id int primary key, a int, key (a));
set foreign_key_checks = 1;
insert into late values (1, 1);
insert into e2 values (1, 1);
update late set a = null;
update late set a = 2;
select * from e2;
# Itself.
create table self1 (id int primary key, a int, b int not null, key (a), foreign key (b) references self1 (a) on update cascade);
create table self2 (id int primary key, a int, b int, key (a), foreign key (b) references self2 (a) on update cascade);
# ALTER that adds one.
create table f (id int primary key, x int not null, y int, key (x), key (y));
insert into parent values (1, 1, 1, 1);
insert into f values (1, 1, 1);
alter table f add foreign key (x) references parent (a) on update cascade;
alter table f add foreign key (x) references parent (a) on update cascade, algorithm = copy;
alter table f add foreign key (y) references parent (a) on update cascade;
set foreign_key_checks = 0;
alter table f add foreign key (x) references parent (a) on update cascade, algorithm = inplace;
set foreign_key_checks = 1;
show create table f;
# ALTER that makes a column NULL or NOT NULL.
alter table f modify y int not null;
alter table f modify y int not null, algorithm = copy;
create table g (id int primary key, x int not null, foreign key (x) references parent (b) on update cascade);
insert into g values (1, 1);
alter table parent modify b int;
alter table parent modify b int, algorithm = copy;
set foreign_key_checks = 0;
alter table parent modify b int;
alter table f modify y int not null;
set foreign_key_checks = 1;
show create table parent;
show create table f;
update parent set b = null;
select * from g;
update parent set b = 7;
select * from g;
alter table g modify x int;
alter table g modify x int not null;
# What is written then.
create table h (id int primary key, x int, foreign key (x) references parent (a) on update cascade on delete set null);
insert into h values (1, 1), (2, null);
update parent set a = 5;
select * from h;
update parent set a = null;
select * from h;
update h set x = null;
# A column that SET NULL is about becomes NOT NULL, one way or the other.
alter table h modify x int not null;
alter table h modify x int not null, algorithm = copy;
update h set x = 1;
delete from h where id = 2;
