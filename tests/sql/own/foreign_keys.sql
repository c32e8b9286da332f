# What differs from InnoDB, or InnoDB has not. The rest is compared with it: foreign_keys.sql, foreign_keys_ddl.sql.
create table parent (id int primary key, n int, key (n));
create table child (id int primary key, p int, key (p), constraint to_parent foreign key (p) references parent (id));
insert into parent values (1, 1), (2, 2);
insert into child values (1, 1);

# Rules that are not carried out are refused, whatever foreign_key_checks says.
create table c1 (p int, foreign key (p) references parent (id) on delete set default);
create table c1 (p int, foreign key (p) references parent (id) on update set default);
create table c1 (p int, foreign key (p) references parent (id) on delete cascade) with system versioning;
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

# Names are a table's own.
create table c1 (p int, constraint to_parent foreign key (p) references parent (id));
create table c2 (p int, constraint c foreign key (p) references parent (id), constraint C foreign key (p) references parent (n));
drop table c1;

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

# Foreign keys are added and dropped by copy.
alter table child drop foreign key to_parent, algorithm = inplace;
alter table child drop foreign key to_parent, add constraint again foreign key (p) references parent (n);
show create table child;
alter table child drop foreign key again, drop key p;
drop table parent;
drop table child;

# Tablespaces.
create table parent (id int primary key);
create table child (p int, foreign key (p) references parent (id));
alter table parent discard tablespace;
alter table child discard tablespace;
drop table child, parent;
