-- The server compares the columns of a key WITHOUT OVERLAPS with those of a row that it has found by an index-only read,
-- also where the index has only a prefix of them.
create table txt (id int primary key, s date not null, e date not null, v text character set utf8mb4 not null, period for p (s, e), unique k (v(3), p without overlaps));
insert into txt values (1, '2000-01-01', '2001-01-01', 'abc'), (2, '2001-01-01', '2002-01-01', 'abcd');
insert into txt values (3, '2000-06-01', '2001-06-01', 'abcz');
insert into txt values (3, '2000-06-01', '2001-06-01', 'abx');
update txt set v = 'abca' where id = 3;
update txt set s = '1999-01-01', e = '1999-06-01', v = 'abca' where id = 3;
update txt for portion of p from '2000-02-01' to '2000-03-01' set v = 'xyz' where id = 1;
select id, s, e, v from txt order by s, id;
create table ch (s date not null, e date not null, v char(255) character set utf8mb4 not null, period for p (s, e), unique k (v(3), p without overlaps));
insert into ch values ('2000-01-01', '2001-01-01', 'abc');
insert into ch values ('2000-01-01', '2001-01-01', 'abcd');
insert into ch values ('2000-06-01', '2001-06-01', 'xyz');
insert into ch values ('2000-12-01', '2001-12-01', 'abcd'), ('2000-12-01', '2001-12-01', 'xyzz');
update ch set v = 'abcdef' where v = 'xyz';
select * from ch order by v, s;
create table vc (s date not null, e date not null, a int not null, v varchar(255) not null, b varbinary(100) not null, period for p (s, e), unique k (v(3), a, b(2), p without overlaps));
insert into vc values ('2000-01-01', '2001-01-01', 7, 'abc', 'xx1');
insert into vc values ('2000-06-01', '2001-06-01', 7, 'abd', 'xx1');
insert into vc values ('2000-06-01', '2001-06-01', 7, 'abcd', 'xx2');
insert into vc values ('2000-06-01', '2001-06-01', 8, 'abcd', 'xx2');
insert into vc values ('2001-01-01', '2001-06-01', 7, 'abcd', 'xx2');
select * from vc order by v, a, s;
drop table txt, ch, vc;
