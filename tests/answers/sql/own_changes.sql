-- A row that the statement itself changes between reading and writing it: by a BEFORE trigger, by a function, by what
-- foreign keys demand. What is written is what the statement changes of the row that is there.

create table p (id int primary key);
create table c (id int primary key, p int, v int, t text, g int as (p * 2) virtual, key (v),
    foreign key (p) references p (id) on delete cascade on update cascade);
insert into p values (1), (2), (3), (4);
insert into c (id, p, v, t) values (1, 1, 5, 'one'), (2, 2, 6, 'two'), (3, 3, 7, 'three');
delimiter //

-- 1: DELETE
create trigger d before delete on c for each row update p set id = id + 100 where id = old.p//
delete from c where id = 1//
select * from c order by id//
delete from p where id = 101//
insert into c (id, p, v, t) values (1, 3, 9, 'again')//
select id, p from c force index (p) where p > 0 order by id//
select id, g from c where g > 0 order by id//
check table c extended//
drop trigger d//

-- 2: UPDATE keeps what it does not change
create trigger u before update on c for each row update p set id = id + 100 where id = old.p//
update c set v = v + 1, t = concat(t, '+') where id = 2//
select * from c order by id//
select id, p from c force index (p) where p > 0 order by id//
select id, g from c where g > 0 order by id//
check table c extended//
-- and what it changes to
update c set p = 4 where id = 2//
select * from c order by id//
check table c extended//
-- the key of the row, too
update c set id = 20, v = 1 where id = 1//
select * from c order by id//
check table c extended//
update c set v = v + 10 order by id desc//
select * from c order by id//
drop trigger u//

-- 3: by a function in the statement
create function f(x int) returns int begin update p set id = id + 1000 where id = x; return x; end//
update c set v = f(p) where id = 3//
select * from c order by id//
check table c extended//
delete from c where id = 3 and f(p) > 0//
select * from c order by id//
check table c extended//

-- 4: of several tables, REPLACE, ON DUPLICATE KEY UPDATE
insert into p values (50), (51)//
insert into c (id, p, v, t) values (50, 50, 1, 'fifty'), (51, 51, 2, 'and one')//
create trigger u before update on c for each row update p set id = id + 100 where id = old.p//
create trigger d before delete on c for each row update p set id = id + 200 where id = old.p//
insert into c (id, p, v) values (50, 4, 3) on duplicate key update v = 77//
select * from c order by id//
replace into c (id, p, v) values (51, 4, 5)//
select * from c order by id//
update c join p on c.p = p.id set c.v = c.v + 1000 where c.id in (50, 51)//
select * from c order by id//
delete c from c join p on c.p = p.id where c.id = 51//
select * from c order by id//
select id, p from c force index (p) where p > 0 order by id//
select id, g from c where g > 0 order by id//
check table c extended//
select * from p order by id//
drop trigger u//
drop trigger d//
