# Texts that an index gives back from their weights: neighbours that are the same, or the same but for letters that are capital.
create table t (id int unsigned not null auto_increment primary key, a varchar(60), b char(12), c varchar(30) collate utf8mb4_nopad_bin,
    d varchar(30) collate utf8mb4_general_nopad_ci, n int, key a (a), key b (b), key ab (a, b), key ba (b desc, a), key c (c), key d (d), key na (n, a), unique key ad (a, d, id));
insert into t (a, b, c, d, n) values
    ('debian', 'x', 'one', 'one', 1), ('Debian', 'X', 'one ', 'one ', 1), ('debian', 'x', 'One', 'One  ', null), ('DEBIAN', 'x', 'ONE', 'ONE', 1),
    (null, null, null, null, null), ('', '', '', '', 0), (' ', ' ', ' ', ' ', 0), ('debian  ', 'x ', 'one', 'one', 1),
    ('Debian Games Team <team@example.org>', 'Games', 'a b', 'A b ', 2), ('Debian Games Team <team@example.org>', 'games', 'a b', 'A b ', 2),
    ('debian games team <team@example.org>', 'Games', 'a b', 'a B ', 2), ('Debian Games', 'Games', 'a  b', 'a  B', 2), ('Debian Game', 'Gameß', 'aé', 'AÉ', 3),
    ('Debian Game', 'gamess', 'aé', 'aé', 3), (null, 'x', null, 'x', 3), (null, 'X', null, 'X', null);
insert into t (a, b, c, d, n) select a, b, c, d, n from t;
insert into t (a, b, c, d, n) select concat(if(seq % 3, 'Team ', 'team '), seq div 7), if(seq % 5, 'b', 'B'), seq div 9, concat('D', seq div 4), seq div 20 from seq_1_to_300;
select concat('[', a, ']'), id from t force index (a) order by a, id limit 60;
select concat('[', b, ']'), id from t force index (b) order by b, id limit 60;
select concat('[', a, '|', b, ']'), id from t force index (ab) order by a, b, id limit 60;
select concat('[', a, '|', b, ']'), id from t force index (ba) order by b desc, a, id limit 60;
select concat('[', c, ']'), id from t force index (c) order by c, id limit 60;
select concat('[', d, ']'), id from t force index (d) order by d, id limit 60;
select concat('[', a, ']'), n, id from t force index (na) order by n, a, id limit 60;
select concat('[', a, '|', d, ']'), id from t force index (ad) order by a, d, id limit 60;
select count(*), sum(crc32(concat_ws('|', a, id))) from t force index (a) where a like 'team%';
select a, count(*), min(id) from t force index (a) group by a order by a limit 50;
select max(binary a), max(binary b) from t force index (ab) where a > 'debian' order by null;
# What is read in between, of the same table and into the same columns.
select concat('[', x.a, '|', y.a, ']'), x.id, y.id from t x force index (a) straight_join t y force index (ab) on y.a = x.a and y.id > x.id where x.n = 2 order by x.id, y.id limit 60;
handler t open;
handler t read a = ('debian');
handler t read a next limit 3;
handler t read `primary` = (9);
handler t read a next limit 3;
handler t close;
drop table t;
