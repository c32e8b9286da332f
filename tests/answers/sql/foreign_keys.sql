# RESTRICT and NO ACTION: rows of both sides, whatever statement changes them.
create table parent (id int primary key, code varchar(10) collate utf8mb4_general_ci, n int, unique (code), key (n, code));
create table child (id int primary key, p int, q varchar(20) collate utf8mb4_general_ci, note text,
    foreign key (p) references parent (id), constraint by_code foreign key (q) references parent (code) on delete no action on update restrict);
show create table child;
insert into parent values (1, 'a', 10), (2, 'b', 20), (3, null, 30), (4, 'd', 40), (5, 'e', 50);
insert into child values (1, 1, 'a', 'x'), (2, null, null, 'y'), (3, 2, 'B', 'z');
insert into child values (4, 9, 'a', 'x');
insert into child values (4, 1, 'q', 'x');
insert into child values (1, 9, 'a', 'x');
insert into child values (1, 9, 'a', 'x') on duplicate key update note = 'again';
insert into child values (1, 9, 'a', 'x') on duplicate key update p = 8;
insert ignore into child values (5, 9, 'a', 'x'), (6, 1, 'a', 'x'), (7, 2, 'none', 'x');
insert into child select 100 + id, id, code, 'all' from parent where id < 3;
insert into child select 200 + id, id + 2, code, 'all' from parent;
replace into child values (1, 2, 'a', 'replaced'), (2, 7, null, 'lost');
select * from child order by id;
update child set p = 9 where id = 1;
update child set q = 'zz';
update child set p = 3, q = null where id = 3;
update ignore child set p = 11 where id < 3;
update child set id = id + 1000 where id = 1;
delete from parent where id = 1;
delete from parent where id = 4;
delete from parent;
delete ignore from parent;
select * from parent order by id;
insert into parent values (4, 'd', 40), (5, 'e', 50);
update parent set id = 11 where id = 1;
update parent set id = 14 where id = 4;
update parent set n = n + 1;
update parent set code = 'aa' where id = 1;
update parent set code = 'ee' where id = 5;
replace into parent values (1, 'a', 11);
insert into parent values (1, 'a', 0) on duplicate key update n = 12;
insert into parent values (1, 'a', 0) on duplicate key update id = 77;
delete child, parent from child, parent where child.p = parent.id and child.id = 3;
select * from parent order by id;
select * from child order by id;

# Transactions: what was undone was not there.
begin;
insert into parent values (50, 'fifty', 0);
insert into child values (50, 50, 'fifty', '');
savepoint s;
delete from child where id = 50;
delete from parent where id = 50;
rollback to savepoint s;
delete from parent where id = 50;
rollback;
insert into child values (50, 50, null, '');

# Many rows of a statement, whose index entries are gathered.
create table many_parents (id int primary key);
create table many_children (id int primary key, p int, key (p), foreign key (p) references many_parents (id));
insert into many_parents select seq from seq_1_to_500;
insert into many_children select seq, 1 + seq mod 500 from seq_1_to_2000;
insert into many_children select 5000 + seq, seq from seq_400_to_501;
select count(*), sum(p) from many_children;
delete from many_parents where id > 400;
delete from many_children where p > 400;
delete from many_parents where id > 400;
select count(*) from many_parents;
update many_children set p = p + 1;
update many_children set p = p - 1 where p > 1;
delete many_children, many_parents from many_children, many_parents where many_children.p = many_parents.id and p = 7;

# Of a table to itself.
create table tree (id int primary key, up int, foreign key (up) references tree (id));
insert into tree values (1, 1);
insert into tree values (2, 1), (3, 2), (4, 4);
insert into tree values (5, 6), (6, 5);
insert into tree values (6, 4), (5, 6);
delete from tree where id = 1;
delete from tree where id = 2;
delete from tree where id in (5);
update tree set id = 44 where id = 4;
update tree set up = null where id = 4;
update tree set up = 77 where id = 4;
delete from tree order by id desc;
select * from tree order by id;

# Several columns; NULL in one of them; a key that is the front of an index, in the other order of a descending one.
create table wide (a int not null, b varchar(10) not null, c decimal(10, 2), primary key (a, b), key (b desc, c));
create table narrow (x int, y varchar(30), z decimal(10, 2), key (x, y), foreign key (x, y) references wide (a, b),
    foreign key (y, z) references wide (b, c));
insert into wide values (1, 'one', 1.5), (2, 'two', null);
insert into narrow values (1, 'one', 1.5), (1, null, 9), (null, 'none', 9), (2, 'two', null);
insert into narrow values (1, 'two', null);
insert into narrow values (null, 'one', 2.5);
insert into narrow values (null, 'ONE ', 1.5);
update wide set c = 2 where a = 1;
update wide set c = 2 where a = 2;
delete from wide where a = 2;
select * from narrow order by x, y, z;

# Parents by an index that is not unique.
create table plain (k int, v int, key (k));
create table of_plain (k int, foreign key (k) references plain (k));
insert into plain values (1, 1), (1, 2), (2, 1), (null, 5);
insert into of_plain values (1), (1), (null);
insert into of_plain values (5);
delete from plain where v = 5;
delete from plain where k = 1 limit 1;
update plain set v = 9 where k = 1;
delete from plain where k = 2;

# Types.
create table kinds (i tinyint unsigned, d date, t datetime(3), y year, b varbinary(20), c char(5), f double, e enum ('a', 'b'),
    u uuid, key (i), key (d), key (t), key (y), key (b), key (c), key (f), key (e), key (u));
create table of_kinds (i tinyint unsigned, d date, t datetime(3), y year, b varbinary(30), c varchar(9), f double, e enum ('a', 'b', 'c'),
    u uuid, foreign key (i) references kinds (i), foreign key (d) references kinds (d), foreign key (t) references kinds (t),
    foreign key (y) references kinds (y), foreign key (b) references kinds (b), foreign key (c) references kinds (c),
    foreign key (f) references kinds (f), foreign key (e) references kinds (e), foreign key (u) references kinds (u));
insert into kinds values (200, '2020-02-02', '2020-02-02 01:02:03.456', 1999, 'b\0c', 'abc', -0.5, 'b', '123e4567-e89b-12d3-a456-426655440000');
insert into of_kinds select * from kinds;
insert into of_kinds (i) values (201);
insert into of_kinds (d) values ('2020-02-03');
insert into of_kinds (t) values ('2020-02-02 01:02:03.457');
insert into of_kinds (y) values (2000);
insert into of_kinds (b) values ('b\0');
insert into of_kinds (c) values ('abd');
insert into of_kinds (f) values (0.5);
insert into of_kinds (e) values ('c');
insert into of_kinds (u) values ('123e4567-e89b-12d3-a456-426655440001');
delete from kinds;
select count(*) from of_kinds;

# foreign_key_checks = 0.
set foreign_key_checks = 0;
insert into child values (900, 900, null, '');
delete from parent where id = 2;
set foreign_key_checks = 1;
update child set note = 'kept' where id = 900;
update child set p = 901 where id = 900;
delete from child where id = 900;

# Triggers see a change that fails as they do without.
create table seen (what varchar(20));
create trigger before_child before insert on child for each row insert into seen values ('before');
create trigger after_child after insert on child for each row insert into seen values ('after');
insert into child values (901, 902, null, '');
insert into child values (901, 1, null, '');
select * from seen;

# Generated columns.
create table made_parent (a int, b int as (a * 2) stored, c int as (a * 3) virtual, key (b), key (c));
create table made_child (x int, y int as (x + 1) stored, key (y), foreign key (y) references made_parent (b));
create table made_virtual (x int, foreign key (x) references made_parent (b));
insert into made_parent (a) values (1), (2);
insert into made_child (x) values (1), (3);
insert into made_child (x) values (4);
delete from made_parent where a = 2;
update made_parent set a = 7 where a = 1;
update made_child set x = 9;
insert into made_virtual values (4), (6);

# LOCK TABLES.
lock tables child write;
insert into child values (910, 1, null, '');
insert into child values (911, 999, null, '');
unlock tables;
lock tables parent write;
delete from parent where id = 1;
unlock tables;

# A constraint that has lost its index: children still have their parents.
create table root (id int primary key); insert into root values (1), (2), (3);
create table bare (id int primary key, f int, key kf (f), constraint bare_f foreign key (f) references root (id) on delete cascade);
insert into bare values (1, 1), (2, null);
set foreign_key_checks = 0; alter table bare drop key kf; set foreign_key_checks = 1;
insert into bare values (3, 3); update bare set f = 2 where id = 1;
delete from root where id = 3;
alter table bare add key (f);
insert into bare values (4, 4); delete from root where id = 3; select * from bare order by id;

# Several constraints on the same columns: the rule of the first, by its name, is carried out.
create table base (id int primary key, k int, key (k)); insert into base select seq, seq from seq_1_to_10;
create table b1 (id int primary key, b int, constraint b1_1 foreign key (b) references base (id) on delete cascade on update cascade, constraint b1_2 foreign key (b) references base (id));
insert into b1 values (1, 1); delete from base where id = 1; select * from b1 order by id;
create table b2 (id int primary key, b int, constraint b2_1 foreign key (b) references base (id), constraint b2_2 foreign key (b) references base (id) on delete cascade on update cascade);
insert into b2 values (1, 3), (2, 4); delete from base where id = 3; update base set id = 24 where id = 4; select * from b2 order by id;
create table b3 (id int primary key, b int, constraint b3_1 foreign key (b) references base (id) on delete set null, constraint b3_2 foreign key (b) references base (id) on delete cascade);
insert into b3 values (1, 5), (2, 6); delete from base where id = 5; update base set id = 26 where id = 6; select * from b3 order by id;

# A child without a parent (written without checks) that is changed: it is held to its parent with each new entry of the
# constraint's index, so also with another primary key.
create table orphan (id int primary key, b int, x int, y int, constraint of_b foreign key (b) references base (id), key bx (b, x));
set foreign_key_checks = 0; insert into orphan values (1, 77, 0, 0); set foreign_key_checks = 1;
update orphan set y = 1; update orphan set x = 1; update orphan set id = 2; update orphan set b = 77, y = 2; update orphan set b = 78; update orphan set b = null, id = 3;
select * from orphan;
create table orphan2 (id int, b int, x int, constraint of_b2 foreign key (b) references base (id), primary key (b, id));
set foreign_key_checks = 0; insert into orphan2 values (1, 77, 0); set foreign_key_checks = 1;
update orphan2 set x = 1; update orphan2 set id = 2; select * from orphan2;
create table orphan3 (id int, b int, x int, constraint of_b3 foreign key (b) references base (id));
set foreign_key_checks = 0; insert into orphan3 values (1, 77, 0); set foreign_key_checks = 1;
update orphan3 set x = 1; update orphan3 set id = 2; select * from orphan3;
