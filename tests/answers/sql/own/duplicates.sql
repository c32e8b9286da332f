# The message of a duplicate in a unique index that is being added; InnoDB calls values of BLOB columns NULL there.
create table t (id int primary key, a text, b blob);
insert into t select seq, concat('text ', seq), concat(seq % 999, ' blob') from seq_1_to_1000;
alter table t add unique b (b(6)), algorithm=inplace;
update t set a = 'the same' where id in (500, 700);
alter table t add unique a (a(20)), algorithm=inplace;
alter ignore table t add unique a (a(20));
select count(*) from t;
check table t;
