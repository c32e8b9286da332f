# What differs from InnoDB, or InnoDB has not. The rest is compared with it: foreign_keys.sql, foreign_keys_ddl.sql. MariaDB 11.8 copies beside writers, so that ADD FOREIGN KEY with LOCK=NONE is not refused.
create table parent (id int primary key, n int, key (n));
create table child (id int primary key, p int, key (p), constraint to_parent foreign key (p) references parent (id));
insert into parent values (1, 1), (2, 2);
insert into child values (1, 1);

# Rules that are not carried out are refused, whatever foreign_key_checks says.
create table c1 (p int, foreign key (p) references parent (id) on delete set default);
create table c1 (p int, foreign key (p) references parent (id) on update set default);
-- Rules of system-versioned children are carried out: tests/answers/sql/foreign_keys_versioned.sql.
alter table child add foreign key (p) references parent (n) on delete set default;
set foreign_key_checks = 0;
create table c1 (p int, foreign key (p) references parent (id) on delete set default);
set foreign_key_checks = 1;

# WARN leaves them all out, ERROR takes none.
set teak_foreign_keys = warn;
create table left_out (p int, foreign key (p) references parent (id), foreign key (p) references parent (n) on delete cascade);
show create table left_out;
alter table child add foreign key (p) references parent (n), algorithm = copy;
show create table child;
set teak_foreign_keys = error;
create table c1 (p int, foreign key (p) references parent (id));
alter table child add foreign key (p) references parent (n);
alter table child force, algorithm = copy;
set teak_foreign_keys = default;
show create table child;
drop table left_out;

# Parents of other engines, and partitioned ones.
create table elsewhere (id int primary key) engine = MyISAM;
create table parts (id int primary key) partition by hash (id);
create table c1 (p int, foreign key (p) references elsewhere (id));
create table c1 (p int, foreign key (p) references parts (id));
create table c1 (p int, foreign key (p) references parent (id)) engine = InnoDB;
set foreign_key_checks = 0;
create table c1 (p int, foreign key (p) references elsewhere (id));
set foreign_key_checks = 1;
insert into c1 values (1);
alter table elsewhere engine = Teak;
insert into c1 values (1);
insert into elsewhere values (1);
insert into c1 values (1);
alter table elsewhere engine = MyISAM;
drop table c1, elsewhere, parts;

# Names are a database's: where InnoDB has other errors, or refuses a name that the same statement gives back.
create table c1 (p int, key (p), constraint to_parent foreign key (p) references parent (id));
create table c1 (p int, constraint c foreign key (p) references parent (id), constraint C foreign key (p) references parent (n));
create table c1 (p int, q int, constraint c foreign key (p) references parent (id), key (q));
alter table c1 add constraint To_Parent foreign key (q) references parent (id);
alter table c1 add constraint to_parent foreign key (q) references parent (id), algorithm = copy;
alter table c1 add constraint c foreign key (q) references parent (id);
alter table c1 add constraint c1_ibfk_1 foreign key (q) references parent (id);
alter table c1 add constraint c1_ibfk_1 foreign key (q) references parent (n);
alter table c1 drop foreign key c, add constraint c foreign key (q) references parent (n);
alter table c1 drop foreign key c, add constraint c foreign key (p) references parent (n), algorithm = copy;
show create table c1;
create table c3 (p int, constraint c2_ibfk_1 foreign key (p) references parent (id));
rename table c1 to c2;
alter table c1 rename to c2;
alter table c1 rename to c9, force, algorithm = copy;
show create table c9;
create table c1 (p int, constraint c foreign key (p) references parent (id));
alter table c9 rename to c1;
show create table c1;
create table c2 (p int, key (p));
alter table c2 add foreign key (p) references parent (id);
rename table c3 to c4, c1 to c3, c4 to c1;
create database t_foreign_keys_names;
create table t_foreign_keys_names.c1 (p int, constraint to_parent foreign key (p) references t_foreign_keys.parent (id));
rename table child to t_foreign_keys_names.child;
show create table child;
drop database t_foreign_keys_names;
drop table c1, c2, c3;

# Indexes that are needed stay, and are kept up.
alter table child disable keys;
insert into child values (2, 3);
delete from parent where id = 1;
show index from child;
alter table child enable keys;
alter table child drop key p;
alter table parent drop primary key;
alter table parent drop primary key, add unique (id);
show create table parent;
insert into child values (2, 3);
delete from parent where id = 1;

# Equal is what the index says.
create table words (w varchar(10), key (w));
create table uses (w varchar(20), foreign key (w) references words (w));
insert into words values ('Word');
insert into uses values ('WORD'), ('word ');
delete from words;
drop table uses, words;

# A copy that gets another name cannot be followed by those who refer to it.
alter table parent add column m int, rename to elder, algorithm = copy;
alter table parent rename to elder;
show create table child;
alter table elder rename to parent;
alter table parent add column m int;
insert into child values (2, 3);

# In place, with the rows looked at where they have to be; InnoDB looks at them in copies only.
alter table child drop foreign key to_parent, algorithm = instant;
show create table child;
insert into parent values (3, 3, 30);
insert into child values (5, 5), (6, null);
alter table child add constraint again foreign key (p) references parent (id), algorithm = instant;
alter table child add constraint again foreign key (p) references parent (id), lock = none;
alter table child add constraint again foreign key (p) references parent (id), algorithm = nocopy;
show create table child;
delete from child where id = 5;
alter table child add constraint again foreign key (p) references parent (id), algorithm = nocopy;
insert into child values (5, 5);
alter table child drop foreign key again, drop key p, algorithm = nocopy;
alter table child add constraint again foreign key (p) references parent (id) on delete cascade, algorithm = nocopy;
show create table child;
insert into child values (5, 5);
delete from parent where id = 1;
select * from child;
set foreign_key_checks = 0;
insert into child values (7, 7);
alter table child add constraint unproven foreign key (p) references parent (n), algorithm = instant;
set foreign_key_checks = 1;
update child set p = 8 where id = 7;
alter table child drop foreign key unproven, add constraint unproven foreign key (p) references parent (n);
delete from child where id = 7;
alter table child drop foreign key unproven, add constraint unproven foreign key (p) references parent (n);
alter table child rename key unproven to other, add constraint third foreign key (p) references parent (n);
show create table child;
drop table child;

# Whatever the keys are like: descending ones, texts, several columns, NULLs.
create table mother (a varchar(10), b int, c decimal(8,2), key (c desc, a, b desc), primary key (b), key (a desc));
create table daughter (id int primary key, b int, a varchar(20), c decimal(8,2), key x (c, a desc, b), key (a));
insert into mother select concat('m', seq % 10), seq, seq / 10 from seq_1_to_3000;
insert into daughter select b, b, a, c from mother;
alter table daughter add constraint d1 foreign key (c, a, b) references mother (c, a, b);
alter table daughter add constraint d2 foreign key (a) references mother (a);
insert into daughter values (5000, 17, 'M7 ', 1.7), (5001, null, 'none', 9.9);
set foreign_key_checks = 0;
insert into daughter values (5001, null, 'none', 9.9), (5002, 17, 'm8', 1.7), (5003, 17, 'm7', null);
set foreign_key_checks = 1;
alter table daughter drop foreign key d1, drop foreign key d2;
alter table daughter add constraint d2 foreign key (a) references mother (a);
alter table daughter add constraint d1 foreign key (c, a, b) references mother (c, a, b);
delete from daughter where id = 5002;
alter table daughter add constraint d1 foreign key (c, a, b) references mother (c, a, b);
delete from mother where b = 17;
drop table daughter, mother;

# A table that refers to itself, with the index that is referred to made by the same statement.
create table self (id int primary key, a int, b int);
insert into self values (1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, null);
alter table self add unique (a), add constraint s foreign key (b) references self (a), algorithm = nocopy;
update self set b = 9 where id = 3;
alter table self drop foreign key s;
update self set b = 9 where id = 3;
alter table self add constraint s foreign key (b) references self (a);
drop table self;

# Renamed columns, where others have to copy.
create table p (id int primary key, a int, key (a));
create table c (x int, y int, constraint cx foreign key (x) references p (id) on update cascade, constraint cy foreign key (y) references p (a));
insert into p values (1, 1);
insert into c values (1, 1);
alter table c rename column x to z, drop foreign key cy, algorithm = instant;
alter table p rename column id to nr, algorithm = instant;
show create table c;
update p set nr = 2;
select * from c;
alter table p rename column nr to id, add column more int, algorithm = copy;
alter table c change z x int, add constraint cy foreign key (y) references p (a);
show create table c;
drop table c, p;
drop table parent;

# Tablespaces.
create table parent (id int primary key);
create table child (p int, foreign key (p) references parent (id));
alter table parent discard tablespace;
alter table child discard tablespace;
drop table child, parent;

# CHECK TABLE looks for the parents of all rows, and names those that have none; the table is not corrupt by it.
create table parent (id int primary key, n varchar(10), key (n desc));
create table child (id int primary key, p int, n varchar(10), constraint of_id foreign key (p) references parent (id), constraint of_n foreign key (n) references parent (n));
insert into parent values (1, 'a'), (2, null), (3, 'c');
insert into child values (1, 1, 'A'), (2, null, 'c'), (3, 3, null);
check table child, parent;
set foreign_key_checks = 0;
insert into child values (4, 4, 'a'), (5, 5, 'nobody''s');
delete from parent where id = 1;
check table child quick;
check table child;
check table child extended;
drop table parent;
check table child;
insert into child select seq, seq, null from seq_100_to_120;
create table parent (id int primary key, n varchar(10), key (n));
check table child;
set foreign_key_checks = 1;
alter table child drop foreign key of_n, drop foreign key of_id;
check table child;
drop table child, parent;

# What InnoDB shows in INNODB_SYS_FOREIGN and INNODB_SYS_FOREIGN_COLS.
create table parent (id int, `a/b` int, primary key (id), key (`a/b`, id));
create table `child's` (x int, y int, foreign key (x) references parent (id) on delete cascade on update set null,
    constraint Two foreign key (x, y) references parent (`a/b`, id) on delete no action on update cascade, constraint none foreign key (x) references parent (id));
select id, for_name, ref_name, n_cols, type from information_schema.teak_foreign where for_name like 't\_foreign\_keys/%' order by id;
select * from information_schema.teak_foreign_cols where id like 't\_foreign\_keys/%' order by id, pos;
drop table `child's`, parent;
select count(*) from information_schema.teak_foreign where for_name like 't\_foreign\_keys/%';

# A constraint that has lost its index is nothing that is damaged.
create table root (id int primary key);
create table bare (id int primary key, f int, key kf (f), constraint bare_f foreign key (f) references root (id));
insert into root values (1); insert into bare values (1, 1);
set foreign_key_checks = 0; alter table bare drop key kf; set foreign_key_checks = 1;
check table bare; check table bare extended; check table bare quick;
drop table bare, root;
# A copy keeps the index that a constraint of the table to itself looks by, too.
create table self_copied (id int not null, f int, primary key (id), foreign key (f) references self_copied (id));
--error ER_DROP_INDEX_FK
alter table self_copied drop primary key, algorithm=copy;
alter table self_copied drop primary key, add key (id), algorithm=copy;
--error ER_DROP_INDEX_FK
alter table self_copied drop key id, algorithm=copy;
show create table self_copied;
drop table self_copied;
