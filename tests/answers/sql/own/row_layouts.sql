-- What is instant in Teak and not in InnoDB, what is not, and why; how many layouts a table can have.
create table a (id int primary key, v varchar(20) not null, w varchar(60) character set utf8mb4, k int not null, g int as (k + 1) virtual, t text, key (k), key gen (g), key (v(3)));
insert into a (id, v, w, k, t) select seq, concat('v', seq), concat('w', seq), seq, repeat('t', seq) from seq_1_to_5;
alter table a modify w varchar(80) character set utf8mb4, algorithm=instant;
alter table a modify t text not null, algorithm=instant;
alter table a add n int not null default 1, algorithm=instant;
alter table a modify n int, algorithm=instant;
update a set n = null where id = 2;
alter table a modify n int not null, algorithm=instant;
select id, w, n from a order by id;
-- Columns of indexes.
alter table a modify k int, algorithm=instant;
alter table a modify v varchar(20), algorithm=instant;
alter table a modify v varchar(300) not null, algorithm=instant;
alter table a modify v varchar(50) not null, algorithm=instant;
alter table a drop k, algorithm=instant;
alter table a drop v, algorithm=instant;
alter table a drop v, algorithm=nocopy, lock=none;
alter table a add x int, add key (x), algorithm=instant;
alter table a add x int, add key (x), algorithm=nocopy;
-- With virtual columns, in an index or not.
alter table a add vv int as (n) virtual after id, algorithm=instant;
alter table a add vw int as (n) virtual, add y int, algorithm=instant;
alter table a drop vv, drop t, algorithm=instant;
alter table a modify g int as (k + 1) virtual first, modify w varchar(80) character set utf8mb4 after id, algorithm=instant;
select * from a order by id;
select id from a force index (gen) where g = 3;
-- Integers become wider, where no index and no partition is told by their bytes.
alter table a modify n bigint, algorithm=instant, lock=none;
alter table a modify n int, algorithm=instant;
alter table a modify n bigint unsigned, algorithm=instant;
alter table a modify k bigint not null, algorithm=instant;
create table p (n int, u int unsigned, z int zerofill) partition by key (n) partitions 5;
insert into p select seq, seq, seq from seq_1_to_100;
alter table p modify n bigint, algorithm=instant;
alter table p modify z bigint zerofill, algorithm=instant;
alter table p modify u bigint, algorithm=instant;
select count(*), sum(n = 50), sum(u), max(z) from p where n between 1 and 100;
drop table p;
-- Texts get another character set.
alter table a modify w varchar(80) character set utf8mb3, algorithm=instant;
create table c (id int primary key, c char(5) character set utf8mb3, v varchar(90) character set utf8mb3, t text character set utf8mb3, l char(5) character set latin1, s varchar(10) character set ascii, i varchar(10) character set utf8mb3, e enum('a', 'b') character set utf8mb3, key (i));
insert into c values (1, 'ä', 'ö', 'ü', 'é', 's', 'i', 'a');
alter table c modify v varchar(90) character set utf8mb4, algorithm=instant, lock=none;
alter table c modify c char(5) character set utf8mb4, modify t text character set utf8mb4, algorithm=instant;
alter table c modify l char(5) character set latin1 collate latin1_bin, algorithm=instant;
alter table c modify c char(9) character set utf8mb4, modify t longtext character set utf8mb4 collate utf8mb4_bin, algorithm=instant;
alter table c modify t text character set utf8mb4, algorithm=instant;
alter table c modify l char(6) character set latin1, algorithm=instant;
alter table c modify s varchar(10) character set utf8mb4, algorithm=instant;
alter table c modify i varchar(10) character set utf8mb4, algorithm=instant;
alter table c modify i varchar(10) character set utf8mb4 collate utf8mb4_bin, algorithm=instant;
alter table c modify i varchar(70) character set utf8mb4, algorithm=instant;
alter table c modify e enum('a', 'b') character set utf8mb4, algorithm=instant;
alter table c drop i, convert to character set utf8mb3, algorithm=instant;
alter table c drop key i, drop i, drop e, drop s, drop l, convert to character set utf8mb4, algorithm=nocopy, lock=none;
select *, hex(c), hex(t) from c;
check table c extended;
drop table c;
-- What is computed from texts is computed anew with another collation; InnoDB leaves it.
create table g (id int primary key, a varchar(10) character set utf8mb3 collate utf8mb3_general_ci, b int as (a = 'X') stored, k varchar(10) as (upper(a)) virtual, key (k));
insert into g (id, a) values (1, 'x'), (2, 'X'), (3, 'y');
alter table g modify a varchar(10) character set utf8mb4 collate utf8mb4_bin;
select * from g order by id;
select id from g where k = 'X' order by id;
-- Partitions that a text chooses; InnoDB looks for rows where the new collation puts them, and has them by the old.
create table p (a varchar(10) character set utf8mb3 collate utf8mb3_bin, n int) partition by key (a) partitions 4;
insert into p select concat('v', seq), seq from seq_1_to_50;
alter table p modify a varchar(10) character set utf8mb4 collate utf8mb4_general_ci;
select count(*), sum(n) from p where a in ('V1', 'v2', 'V30');
drop table g, p;
-- The number of layouts: the 64th change copies, or is refused, and everything begins anew.
create table m (id int primary key, v int);
insert into m values (1, 1);
delimiter //
create procedure many(n int)
begin
  declare i int default 0;
  while i < n do
    execute immediate concat('alter table m add c', i, ' int default ', i, ', algorithm=instant');
    insert into m (id) values (100 + i);
    execute immediate concat('alter table m drop c', i, ', algorithm=instant');
    set i = i + 1;
  end while;
end//
delimiter ;
call many(31);
select count(*), sum(id), sum(v) from m;
alter table m add one int default 1, algorithm=instant;
alter table m add two int default 2, algorithm=instant;
alter table m add two int default 2, algorithm=nocopy;
alter table m rename column v to vv, algorithm=instant;
alter table m add two int default 2;
select count(*), sum(id), sum(vv), sum(one), sum(two) from m;
alter table m add three int default 3, algorithm=instant;
select count(*), sum(three) from m;
check table m extended;
-- Defaults take space in the catalog, to a limit.
create table d (id int primary key);
insert into d values (1);
alter table d add a mediumtext default repeat('a', 200000), algorithm=instant;
alter table d add b mediumtext default repeat('b', 100000), algorithm=instant;
alter table d add b mediumtext default repeat('b', 100000);
select id, length(a), md5(a), length(b), md5(b) from d;
