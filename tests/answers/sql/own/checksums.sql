-- CHECKSUM TABLE has what the rows have, also of generated columns that are stored: as MyISAM's, which has no choice of columns. InnoDB's leaves them out. (Not on a debug server: it ends at MyISAM's.)
create table t (id int primary key, v varchar(20), s varchar(30) as (concat(v, 'y')) stored, n int as (id + 1) stored, m varchar(9) as (left(v, 4)) stored) engine=Teak;
create table u like t;
alter table u engine=MyISAM;
insert into t (id, v) select seq, concat('v', seq) from seq_1_to_50;
insert into u (id, v) select id, v from t;
checksum table t, u;
select * from t where id = 7;
checksum table t extended;
update t set v = null where id = 9;
update u set v = null where id = 9;
checksum table t, u;
create table p (id int primary key, v varchar(20), n int as (id + 1) stored) engine=Teak partition by hash (id) partitions 3;
insert into p (id, v) select id, v from t;
create table q (id int primary key, v varchar(20), n int as (id + 1) stored) engine=MyISAM;
insert into q (id, v) select id, v from t;
checksum table p, q;
