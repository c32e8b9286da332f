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
alter table m add two int default 2, algorithm=inplace;
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
