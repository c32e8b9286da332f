-- Row ids (handler::ref) as bytes: plans that drop rows they have met already (DuplicateWeedout), statements over
-- several tables, sorting by row ids. Two ids of one row have to be the same to the last byte, whatever key was
-- looked at between them.

create table outer_rows (sku varchar(40) primary key, a int, x int, key (a));
create table inner_rows (n int primary key, a int, y int);
insert into outer_rows select concat(repeat('q', seq mod 20), seq), seq, 5 from seq_1_to_2000;
insert into inner_rows select seq, (seq * 7) mod 20, seq from seq_1_to_100;
analyze table outer_rows, inner_rows;

-- 1: duplicates are weeded out by row id, by default and when nothing else is allowed
select count(*), count(distinct sku) from outer_rows where a in (select i.a from inner_rows i where i.y > outer_rows.x);
set optimizer_switch = 'materialization=off,firstmatch=off,loosescan=off';
select count(*), count(distinct sku) from outer_rows where a in (select i.a from inner_rows i where i.y > outer_rows.x);
select sku, a from outer_rows where a in (select i.a from inner_rows i where i.y > outer_rows.x) order by a;

-- 2: likewise with other keys: binary, several columns, texts under several levels, descending, a prefix, none
create table k_binary (k varbinary(60) primary key, a int, key (a));
create table k_several (k varchar(30), l varbinary(20), m int, a int, primary key (k, m, l), key (a));
create table k_unicode (k varchar(50) character set utf8mb4 collate utf8mb4_unicode_520_nopad_ci primary key, a int, key (a));
create table k_levels (k varchar(50) character set utf8mb4 collate utf8mb4_uca1400_as_cs, a int, primary key (k), key (a));
create table k_descending (k varchar(50), l varchar(50), a int, primary key (k desc, l), key (a));
create table k_prefix (k text, a int, primary key (k(30)), key (a));
create table k_char (k char(30) character set utf8mb4, a int, primary key (k), key (a));
create table k_double (k double, l varchar(9), a int, primary key (k, l), key (a));
create table k_none (k varchar(30), a int, key (a));
insert into k_binary select concat(repeat(x'00', seq mod 9), seq), seq from seq_1_to_50;
insert into k_several select concat(repeat('ab', seq mod 11), seq), repeat('z', seq mod 7), seq, seq from seq_1_to_50;
insert into k_unicode select concat(repeat('ä', seq mod 13), seq, repeat(' ', seq mod 3)), seq from seq_1_to_50;
insert into k_levels select concat(repeat('É', seq mod 13), seq), seq from seq_1_to_50;
insert into k_descending select repeat('d', seq mod 17), concat('l', seq), seq from seq_1_to_50;
insert into k_prefix select concat(repeat('p', seq mod 15), seq), seq from seq_1_to_50;
insert into k_char select concat(repeat('c', seq mod 15), seq), seq from seq_1_to_50;
insert into k_double select -0.0, concat('l', seq), seq from seq_1_to_50;
insert into k_none select concat(repeat('n', seq mod 15), seq), seq from seq_1_to_50;
select count(*), count(distinct k) from k_binary o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k, l, m) from k_several o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k) from k_unicode o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k) from k_levels o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k, l) from k_descending o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k) from k_prefix o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k) from k_char o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k, l) from k_double o where a in (select i.a from inner_rows i where i.y > o.a);
select count(*), count(distinct k) from k_none o where a in (select i.a from inner_rows i where i.y > o.a);

-- 3: and over partitions, whose ids are the server's with ours in them
create table k_parts (k varchar(40) primary key, a int, key (a)) partition by key (k) partitions 3;
insert into k_parts select concat(repeat('q', seq mod 20), seq), seq from seq_1_to_200;
select count(*), count(distinct k) from k_parts o where a in (select i.a from inner_rows i where i.y > o.a);
select k, a from k_parts o where a in (select i.a from inner_rows i where i.y > o.a) order by a;
set optimizer_switch = default;

-- 4: UPDATE of several tables changes a row once
create table t1 (a varchar(30) primary key, k int, n int, key (k));
create table t2 (k int, n int, x int);
insert into t1 values ('a', 1, 0), ('bbbbbbbbbbbb', 2, 0);
insert into t2 values (1, 1, 10), (2, 2, 20), (1, 3, 30), (2, 4, 40);
update t1, t2 set t1.n = t2.n where t1.k = t2.k;
select row_count();
select * from t1 order by a;
update t1 set n = 0;
update t2 straight_join t1 set t1.n = t1.n + t2.x where t1.k = t2.k;
select row_count();
select * from t1 order by a;
update t1 join t2 on t1.k = t2.k set t1.a = concat(t1.a, '+'), t2.x = t2.x + 1;
select row_count();
select * from t1 order by a;
select * from t2 order by n;

-- 5: DELETE of several tables, rows sorted by their ids
delete t1, t2 from t2 straight_join t1 where t1.k = t2.k and t2.n < 2;
select row_count();
select a from t1;
set optimizer_switch = 'mrr=on,mrr_cost_based=off,mrr_sort_keys=on';
set join_cache_level = 8;
select count(*), sum(o.a) from outer_rows o join inner_rows i on i.a = o.a;
select count(*), count(distinct o.sku) from outer_rows o where a between 10 and 900 and x = 5;
select count(*) from k_levels o join inner_rows i on i.a = o.a and o.k > '';
set optimizer_switch = default, join_cache_level = default;

-- 6: unions and intersections of indexes, by row id
create table merged (k varchar(60) character set utf8mb4 collate utf8mb4_uca1400_ai_ci, l varchar(30), a int, b int, c int,
    primary key (k desc, l), key (a), key (b));
insert into merged select concat(repeat(char(97 + seq mod 26), seq mod 13), seq, if(seq mod 2, ' ', '')),
    concat(repeat('y', seq mod 7), seq), seq mod 10, seq mod 15, seq from seq_1_to_1000;
analyze table merged;
set optimizer_switch = 'index_merge_intersection=on,index_merge_union=on,index_merge_sort_union=on';
select count(*), sum(c) from merged force index (a, b) where a = 3 and b = 8;
select count(*), sum(c) from merged force index (a, b) where a = 3 or b = 8;
select count(*), sum(c) from merged force index (a, b) where a < 2 or b > 13;
update merged force index (a, b) set c = c + 1 where a = 3 or b = 8;
select row_count();
delete from merged where a < 2 or b > 13;
select row_count();
select count(*), sum(c) from merged;
set optimizer_switch = default;

-- 7: ids are no longer than the columns, so that sorting many rows takes little memory
create table wide (t varchar(700) character set utf8mb4 collate utf8mb4_uca1400_ai_ci primary key, a int, b blob, pad text);
insert into wide select concat(seq, repeat('w', seq mod 300)), 7919 * seq mod 2000, seq, seq from seq_1_to_2000;
set sort_buffer_size = 262144, max_length_for_sort_data = 4;
select left(t, 4), a, b from wide order by a limit 3;
select a, left(t, 10) from wide where a < 100 order by b, a desc limit 5;
set sort_buffer_size = default, max_length_for_sort_data = default;

-- 8: REPLACE and ON DUPLICATE KEY UPDATE find what is in the way
create table dup (k varchar(50) primary key, u varchar(30), n int, unique (u));
insert into dup values ('a', 'x', 1), ('bbbbbbbbbbbbbbbbb', 'yyyyyyyyyy', 2);
insert into dup values ('c', 'X', 3) on duplicate key update n = n + 10, k = concat(k, '!');
select row_count();
replace into dup values ('BBBBBBBBBBBBBBBBB', 'x', 4);
select row_count();
select * from dup order by k;
