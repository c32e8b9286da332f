-- Keys over virtual columns where InnoDB leaves its own damaged (10.11.18): prefixes of virtual texts in partitions, and
-- rows that what foreign keys demand has changed since the statement read them.

create table v (id int primary key, x int, w varchar(20), z int as (x % 10) virtual, y text as (concat(w, '?', x)) virtual,
    key ky (y(4)), key kzy (z, y(3))) partition by hash (id) partitions 3;
insert into v (id, x, w) select seq, seq * 7 % 100, concat('w', seq * 13 % 50) from seq_1_to_60;
select z from v force index (kzy) order by z limit 4;
select z, w, id from v force index (kzy) where z = 3 order by w, id;
select distinct z from v force index (kzy) order by z;
select z from v partition (p1) force index (kzy) where z < 3 order by z;
select z, group_concat(id order by x, id) from v force index (kzy) where w <> 'w' group by z;
select z, group_concat(id order by x, id) from v ignore index (kzy) where w <> 'w' group by z;
update v force index (kzy) set x = x + 1 where z = 4 order by z, id limit 2;
update v set id = id + 1 where id > 57 order by id desc;
delete from v where z = 7 order by z, id limit 2;
check table v extended;

create table p (id int primary key);
create table c (id int primary key, p int, v int, g int as (p * 2) virtual, h text as (concat('h', p)) virtual, key (v), key (g), key (h(5)),
    foreign key (p) references p (id) on delete cascade on update cascade);
insert into p values (1), (2), (3), (4);
insert into c (id, p, v) values (1, 1, 5), (2, 2, 6), (3, 3, 7), (4, 4, 8);
create trigger d before delete on c for each row update p set id = id + 100 where id = old.p;
create trigger u before update on c for each row update p set id = id + 100 where id = old.p;
delete from c where id = 1;
update c set v = v + 1 where id = 2;
update c set p = 101 where id = 2;
insert into c (id, p, v) values (3, 4, 3) on duplicate key update v = 77;
replace into c (id, p, v) values (4, 101, 5);
select * from c order by id;
select id, g from c force index (g) where g > 0 order by id;
select id, h from c force index (h) where h > '' order by id;
check table c extended;
drop trigger d;
drop trigger u;

-- the row has gone before the statement comes to change it
create trigger u before update on c for each row delete from p where id = old.p;
update c set v = 1 where id = 3;
select * from c order by id;
check table c extended;
create trigger d before delete on c for each row delete from p where id = old.p;
delete from c where id = 3;
select * from c order by id;
check table c extended;
