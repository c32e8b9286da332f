# Strings as keys under many collations: weights, trailing spaces, NOPAD, prefixes, originals from covering reads.
delimiter //
create procedure probe(in coltype text, in cs text, in col text)
begin
  declare vals text default '("a",1),("A",1),("b",2),("a ",3),("a  b",1),("a\tb",1),("",1),(" ",2),("Ab",1),("aB",2),("ab ",1),(null,1),("z",1),("ä",1),("Ä",2),("ae",1),("ß",1),("ss",2),("é",1),("e",1),("zz top",1),("a\0",1),("a!",1),("a b",2),("a  ",5)';
  execute immediate concat('create table k (id int auto_increment primary key, c ', coltype, ' character set ', cs, ' collate ', col, ', d int, key(c), key(d,c))');
  execute immediate concat('insert into k(c,d) values ', vals);
  execute immediate 'select hex(c), id from k force index(c) order by c, id';
  execute immediate 'select hex(c) h from k force index(d) where d=1 order by c, h';
  execute immediate 'select hex(c) h, id from k force index(c) where c = "A" order by id';
  execute immediate 'select hex(c) h, id from k force index(c) where c > "a" and c <= "e" order by c desc, id desc';
  execute immediate 'select hex(c) h, id from k force index(c) where c like "a%" order by id';
  execute immediate 'select hex(c) h, id from k force index(c) where c like "ab%" order by id';
  execute immediate 'select hex(c) h, id from k force index(c) where c in ("ae","ss","z","ä") order by id';
  execute immediate 'select hex(min(c)), hex(max(c)), count(distinct c) from k';
  execute immediate 'select count(*) from k group by c order by c';
  drop table k;
  execute immediate concat('create table u (c ', coltype, ' character set ', cs, ' collate ', col, ' not null, d int, primary key(c), key(d))');
  execute immediate concat('insert ignore into u(c,d) values ', replace(vals, '(null,1),', ''));
  execute immediate 'select hex(c), d from u order by c';
  execute immediate 'select hex(c), d from u force index(d) order by d, c';
  execute immediate 'select hex(c), d from u where c = "AB"';
  execute immediate 'insert into u values ("B ", 7)';
  execute immediate 'replace into u values ("A", 8)';
  execute immediate 'update u set c = upper(c) where c = "z"';
  execute immediate 'select hex(c), d from u order by c desc';
  drop table u;
  execute immediate concat('create table p (id int auto_increment primary key, c ', coltype, ' character set ', cs, ' collate ', col, ', d int, key(c(2)), key(c(1) desc, d), unique(c(2), id))');
  execute immediate concat('insert into p(c,d) values ', vals);
  execute immediate 'select hex(c), id from p force index(c) where c = "a" order by id';
  execute immediate 'select hex(c), id from p force index(c) where c between "a" and "ab" order by id';
  execute immediate 'select hex(c), id from p force index(c_2) where c like "a%" order by id';
  drop table p;
end//
create procedure all_types(in cs text, in col text)
begin
  select cs, col;
  call probe('char(10)', cs, col);
  call probe('varchar(10)', cs, col);
  call probe('varchar(300)', cs, col);
end//
delimiter ;
call all_types('latin1', 'latin1_swedish_ci');
call all_types('latin1', 'latin1_bin');
call all_types('latin1', 'latin1_general_cs');
call all_types('latin1', 'latin1_german2_ci');
call all_types('latin1', 'latin1_swedish_nopad_ci');
call all_types('utf8mb3', 'utf8mb3_general_ci');
call all_types('utf8mb4', 'utf8mb4_general_ci');
call all_types('utf8mb4', 'utf8mb4_bin');
call all_types('utf8mb4', 'utf8mb4_nopad_bin');
call all_types('utf8mb4', 'utf8mb4_unicode_ci');
call all_types('utf8mb4', 'utf8mb4_unicode_nopad_ci');
call all_types('utf8mb4', 'utf8mb4_unicode_520_ci');
call all_types('utf8mb4', 'utf8mb4_general_nopad_ci');
call all_types('utf8mb4', 'utf8mb4_uca1400_ai_ci');
call all_types('utf8mb4', 'utf8mb4_uca1400_as_cs');
call all_types('utf8mb4', 'utf8mb4_uca1400_nopad_as_ci');
call all_types('utf8mb4', 'utf8mb4_german2_ci');
call all_types('ucs2', 'ucs2_general_ci');
call all_types('utf16', 'utf16_unicode_ci');
call all_types('utf32', 'utf32_general_ci');
call all_types('latin2', 'latin2_czech_cs');
call all_types('gbk', 'gbk_chinese_ci');
call all_types('sjis', 'sjis_japanese_ci');
call all_types('big5', 'big5_chinese_ci');
call all_types('tis620', 'tis620_thai_ci');
call all_types('ascii', 'ascii_general_ci');
