# CHECKSUM TABLE says the same of the same rows, however they came into the table: virtual columns count as NULL.
create table a (id int primary key, v int as (id * 2) virtual, b int, w int as (b + 1) virtual);
create table b like a;
create table c like a;
insert into a (id, b) values (1, 10), (2, null), (3, 30);
insert into b (id, b) select seq, if(seq = 2, null, seq * 10) from seq_1_to_3;
insert into c (id, b) select id, b from a order by id desc;
checksum table a, b, c extended;
update a set b = b + 1 where v > 3;
update b set b = b + 1 where v > 3;
checksum table a, b extended;
alter table c add x int as (id) virtual;
checksum table c extended;
alter table c force;
checksum table c extended;
select * from b order by id;
