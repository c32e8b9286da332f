-- Definitions of foreign keys that InnoDB refuses with other errors, or takes and cannot keep.

-- A column under SET NULL that is to become NOT NULL: InnoDB's copy fails when it gets the table's name (1025), and without
-- checks the constraint is lost then.
set sql_mode = '';
create table p (id int primary key);
create table c (pid int, foreign key (pid) references p (id) on update set null);
alter table c modify pid int not null, algorithm = copy;
set foreign_key_checks = 0;
alter table c add primary key (pid), algorithm = copy;
set foreign_key_checks = 1;
show create table c;
drop table c;
set sql_mode = default;

-- A column with a rule that becomes a generated one: no rule gives it another value. (In InnoDB it gets one.)
create table c (a int, b int, foreign key (b) references p (id) on update cascade);
alter table c modify b int as (a) stored;
insert into p values (1),(2);
insert into c (a) values (1);
update p set id = 3 where id = 1;
update p set id = 3 where id = 2;
select * from c;
drop table c;

-- Names that would be too long for the server, so that a dump could not be read back. InnoDB gives them to who adds or
-- renames, and some that are just short enough it refuses.
create table t23456789012345678901234567890123456789012345678901234567 (a int, foreign key (a) references p (id));
create table t234567890123456789012345678901234567890123456789012345678 (a int, foreign key (a) references p (id));
rename table t23456789012345678901234567890123456789012345678901234567 to t234567890123456789012345678901234567890123456789012345678;
alter table t23456789012345678901234567890123456789012345678901234567 rename to t234567890123456789012345678901234567890123456789012345678;
delimiter //
begin not atomic
    declare continue handler for 1059 select 'too long' as told;
    alter table t23456789012345678901234567890123456789012345678901234567 add b int,
        rename to t234567890123456789012345678901234567890123456789012345678, algorithm = copy;
end //
delimiter ;
show create table t23456789012345678901234567890123456789012345678901234567;
rename table t23456789012345678901234567890123456789012345678901234567 to t;
show create table t;
create table t234567890123456789012345678901234567890123456789012345678 (a int);
alter table t234567890123456789012345678901234567890123456789012345678 add foreign key (a) references p (id);
alter table t234567890123456789012345678901234567890123456789012345678 add foreign key (a) references p (id), algorithm = copy;
set foreign_key_checks = 0;
alter table t234567890123456789012345678901234567890123456789012345678 add foreign key (a) references p (id);
set foreign_key_checks = 1;
alter table t234567890123456789012345678901234567890123456789012345678 add constraint x foreign key (a) references p (id);
drop table t234567890123456789012345678901234567890123456789012345678, t;

-- Where spaces at the end count, a CHAR has as many as it is long, which a longer one, or a VARCHAR, has not.
create table n (c char(5) collate latin1_nopad_bin primary key, v varchar(5) collate latin1_nopad_bin, key (v));
create table c (x char(10) collate latin1_nopad_bin, foreign key (x) references n (c));
create table c (x varchar(5) collate latin1_nopad_bin, foreign key (x) references n (c));
create table c (x char(5) collate latin1_nopad_bin, foreign key (x) references n (v));
create table c (x char(5) collate latin1_nopad_bin, foreign key (x) references n (c));
create table d (x varchar(9) collate latin1_nopad_bin, foreign key (x) references n (v));
insert into n values ('a', 'a');
insert into c values ('a');
insert into d values ('a');
insert into d values ('a ');
drop table c, d, n, p;

-- A number that no member of the child's ENUM or SET has is no value for it. (InnoDB stores it.)
create table p (id int primary key, e enum('a','b','c'), s set('a','b','c'), key (e), key (s));
create table c (e enum('a','b'), s set('a','b'), foreign key (e) references p (e) on update cascade,
    foreign key (s) references p (s) on update cascade);
insert into p values (1, 'a', 'a'), (2, 'b', 'b');
insert into c values ('a', 'a');
update p set e = 'c' where id = 1;
update p set s = 'a,c' where id = 1;
update p set e = 'b', s = 'a,b' where id = 1;
select * from c;
drop table c, p;
