use super::*;
use crate::charset::Dialect;

fn with(text: &str, context: &Context<'_>) -> Result<String, String> {
    match rewritten(text.as_bytes(), Dialect::OWN, context) {
        Ok(Rewritten::Same) => Ok(text.to_string()),
        Ok(Rewritten::Other(other)) => Ok(String::from_utf8(other).unwrap()),
        Ok(Rewritten::NeedsTypes(probe)) => Err(format!("{probe:?}")),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// Of MySQL 9 with its own settings, into Teak, blanks as one.
fn of(text: &str) -> Result<String, String> {
    let types = ["bigint".to_string(), "char(3)".to_string()];
    let context = Context {
        engine: Some("Teak"),
        utf8mb4_collation: Some(255),
        has_inline_references: true,
        types: &types,
        ..Context::default()
    };
    with(text, &context).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A table with a key of an expression, and constraints.
fn known() -> KnownTable {
    let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
    KnownTable {
        columns: names(&["a", "b", "c"]),
        functions: vec![FunctionColumn {
            name: b"teak_function_1".to_vec(),
            expression: b"`b` + 1".to_vec(),
            key: b"f".to_vec(),
        }],
        keys: names(&["PRIMARY", "f", "functional_index"]),
        checks: vec![(b"t_chk_3".to_vec(), b"`a` > 0".to_vec()), (b"n".to_vec(), b"true or `a`".to_vec())],
    }
}

fn of_known(text: &str) -> Result<String, String> {
    let (table, types) = (known(), ["bigint".to_string()]);
    let context = Context { table: Some(&table), types: &types, ..Context::default() };
    with(text, &context).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn what_only_mysql_has_is_rewritten() {
    for (text, wanted) in [
        ("create table t (a int) /*!80016 ENCRYPTION='N' */", "create table t (a int)"),
        ("create table t (a int /*!80023 INVISIBLE */, b int)", "create table t (a int INVISIBLE , b int)"),
        ("create table t (a int not null invisible, b int)", "create table t (a int not null , b int)"),
        ("create table t (a int not null default 1 invisible)", "create table t (a int not null default 1 invisible)"),
        ("create table t (a int visible)", "create table t (a int )"),
        (
            "create table t (a varchar(3) collate utf8mb4_0900_as_cs) collate 'utf8mb4_da_0900_ai_ci'",
            "create table t (a varchar(3) collate utf8mb4_uca1400_nopad_as_cs) collate utf8mb4_uca1400_danish_nopad_ai_ci",
        ),
        (
            "create table t (a char(3) charset utf8mb4 not null, b text character set utf8mb4 collate utf8mb4_bin)",
            "create table t (a char(3) charset utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci not null, \
             b text character set utf8mb4 collate utf8mb4_bin)",
        ),
        (
            "create table t (a int) default charset = utf8mb4",
            "create table t (a int) default charset = utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci",
        ),
        ("create table t (v vector(3), w vector)", "create table t (v varbinary(12), w varbinary(8192))"),
        ("create table t (v vector(5000))", "create table t (v mediumblob)"),
        (
            "create table t (g point not null srid 4326, h geomcollection)",
            "create table t (g point REF_SYSTEM_ID=4326 not null , h GEOMETRYCOLLECTION)",
        ),
        ("create table t (a int, key i (a) invisible, key j (a) visible)", "create table t (a int, key i (a) IGNORED, key j (a) )"),
        (
            "create table t (a int check (a > 0), constraint c check (a < 9), check (a <> 5) not enforced)",
            "create table t (a int , constraint c check (a < 9), CONSTRAINT `t_chk_2` CHECK (TRUE OR (a <> 5)), \
             CONSTRAINT `t_chk_1` CHECK (a > 0))",
        ),
        ("create table t (a int, constraint c check (a < 9) enforced)", "create table t (a int, CONSTRAINT `c` CHECK (a < 9))"),
        (
            "create table t (j json, k int as (j->'$.a') stored not null, l text as (t.j ->> \"$.b\"))",
            "create table t (j json, k int as (JSON_EXTRACT(j,'$.a')) stored , l text as (JSON_UNQUOTE(JSON_EXTRACT(t.j , \"$.b\"))))",
        ),
        ("create table t (a int column_format fixed storage disk, b int engine_attribute = '{}')", "create table t (a int , b int )"),
        (
            "create table t (a int) engine=InnoDB, encryption='Y', comment='x' secondary_engine=rapid tablespace x",
            "create table t (a int) engine=Teak , comment='x'",
        ),
        ("create table t (a int) encryption='Y', comment='x'", "create table t (a int) comment='x'"),
        (
            "create table t (a int) partition by hash (a) (partition p engine = InnoDB tablespace = x, partition q)",
            "create table t (a int) partition by hash (a) (partition p , partition q)",
        ),
        ("CREATE TABLE `t` (\n `a` int\n) START TRANSACTION", "CREATE TABLE `t` ( `a` int )"),
        ("create table t (a int, offset int, key (offset))", "create table t (a int, `offset` int, key (`offset`))"),
        (
            "create table t (a int, b int, key f ((a + 1) desc, b), key ((left(`b`, 3))))",
            "create table t (a int, b int, key f (`teak_function_1` desc, b), key `functional_index` (`teak_function_2`), \
             `teak_function_1` bigint GENERATED ALWAYS AS (a + 1) VIRTUAL INVISIBLE, \
             `teak_function_2` char(3) GENERATED ALWAYS AS (left(`b`, 3)) VIRTUAL INVISIBLE)",
        ),
        (
            "create unique index f on d.t ((a + 1)) comment 'x' algorithm = inplace lock none",
            "ALTER TABLE d.t ADD COLUMN `teak_function_1` bigint GENERATED ALWAYS AS (a + 1) VIRTUAL INVISIBLE, ADD \
             unique index f (`teak_function_1`) comment 'x'",
        ),
        ("create index i on t (a) algorithm = inplace lock none", "create index i on t (a) algorithm = DEFAULT lock DEFAULT"),
        ("alter table t add c int, algorithm=instant", "alter table t add c int, algorithm=DEFAULT"),
        ("alter table t alter index i invisible, alter index j visible", "alter table t alter index i IGNORED, alter index j NOT IGNORED"),
        ("alter table t secondary_load", "alter table t"),
        ("alter table t encryption='Y', add a int", "alter table t add a int"),
        (
            "alter table t add a int check (a > 1) first, convert to character set utf8mb4",
            "alter table t add a int first, ADD CONSTRAINT `t_chk_1` CHECK (a > 1), convert to character set utf8mb4 \
             COLLATE utf8mb4_uca1400_nopad_ai_ci",
        ),
        ("alter table t exchange partition p with table u without validation", "alter table t exchange partition p with table u"),
        ("create database d /*!80016 DEFAULT ENCRYPTION='N' */", "create database d"),
        ("alter database d read only = 0 collate utf8mb4_0900_bin", "alter database d collate utf8mb4_nopad_bin"),
        (
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select j->'$.a' collate utf8mb4_0900_ai_ci from a",
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select \
             JSON_EXTRACT(j,'$.a') collate utf8mb4_uca1400_nopad_ai_ci from a",
        ),
    ] {
        assert_eq!(of(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn columns_that_refer_make_no_keys_before_mysql_9() {
    let old = Context::default();
    let text = "create table t (a int references p (a) on delete cascade not null)";
    assert_eq!(with(text, &old).unwrap(), "create table t (a int  not null)");
    assert_eq!(of(text).as_deref(), Ok(text));
}

#[test]
fn later_statements_know_what_the_table_has_become() {
    for (text, wanted) in [
        ("drop index f on t", "ALTER TABLE t DROP INDEX f, DROP COLUMN `teak_function_1`"),
        ("drop index other on t", "drop index other on t"),
        ("alter table t drop key f, drop key g", "alter table t drop key f, DROP COLUMN `teak_function_1`, drop key g"),
        ("alter table t add d int", "alter table t add d int AFTER `c`"),
        ("alter table t add d int, add e int first, add f int", "alter table t add d int AFTER `c`, add e int first, add f int AFTER `d`"),
        ("alter table t add d int, drop c", "alter table t add d int AFTER `b`, drop c"),
        ("alter table t change c x int, add d int", "alter table t change c x int, add d int AFTER `x`"),
        ("alter table t modify a int after c, add d int", "alter table t modify a int after c, add d int AFTER `a`"),
        (
            "alter table t add key ((a * 2)), add d int",
            "alter table t add key `functional_index_2` (`teak_function_2`), add d int AFTER `c`, ADD COLUMN \
             `teak_function_2` bigint GENERATED ALWAYS AS (a * 2) VIRTUAL INVISIBLE",
        ),
        ("alter table t add check (a > 1)", "alter table t add CONSTRAINT `t_chk_4` CHECK (a > 1)"),
        (
            "alter table t add check (a > 1), drop check t_chk_3",
            "alter table t add CONSTRAINT `t_chk_1` CHECK (a > 1), drop CONSTRAINT t_chk_3",
        ),
        ("alter table t drop check t_chk_3", "alter table t drop CONSTRAINT t_chk_3"),
        (
            "alter table t alter check t_chk_3 not enforced",
            "alter table t DROP CONSTRAINT t_chk_3, ADD CONSTRAINT t_chk_3 CHECK (TRUE OR (`a` > 0))",
        ),
        ("alter table t alter constraint n not enforced, force", "alter table t force"),
        ("create table u like t", "create table u like t"),
        ("rename table t to u", "rename table t to u"),
    ] {
        assert_eq!(of_known(text).as_deref(), Ok(wanted), "{text}");
    }
    for (text, why) in [
        ("alter table t modify b bigint", "expression of the key `f`"),
        ("alter table t rename column b to x", "expression of the key `f`"),
        ("alter table t add (d int, e int)", "columns in parentheses"),
        ("alter table t add d int after x", "not known here"),
        ("alter table t drop check t_chk_1", "has not in MariaDB"),
        ("alter table t alter check t_chk_3 enforced", "from now on"),
    ] {
        assert!(of_known(text).is_err_and(|found| found.contains(why)), "{text}: {:?}", of_known(text));
    }
}

#[test]
fn types_of_expressions_are_asked_for() {
    let text = "create table t (a serial, b varchar(9) charset latin1 collate latin1_bin not null, key ((a + 1))) charset utf8mb4";
    let context = Context { utf8mb4_collation: Some(255), ..Context::default() };
    let wanted = Probe {
        columns: Some(
            b"(`a` BIGINT UNSIGNED, `b` varchar(9) charset latin1 COLLATE latin1_bin) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci"
                .to_vec(),
        ),
        expressions: vec![b"a + 1".to_vec()],
    };
    assert_eq!(rewritten(text.as_bytes(), Dialect::OWN, &context), Ok(Rewritten::NeedsTypes(wanted)));
    let text = "alter table t add key ((a + 1), (b))";
    let Ok(Rewritten::NeedsTypes(probe)) = rewritten(text.as_bytes(), Dialect::OWN, &context) else {
        panic!()
    };
    assert_eq!((probe.columns, probe.expressions.len()), (None, 2));
}

#[test]
fn what_has_no_counterpart_is_refused() {
    for (text, why) in [
        ("create table t (j json, key m ((cast(j->'$.x' as unsigned array))))", "elements of JSON arrays"),
        (
            "create table t (a binary(16) default (uuid_to_bin(uuid())))",
            "a function of which it is not known",
        ),
        ("create table t (a int, check (a member of ('[1]')))", "MEMBER OF"),
        (
            "create table t (j json, a int as (json_value(j, '$.a' returning signed)))",
            "JSON_VALUE with a type",
        ),
        ("create table t (j json default (cast('1' as json)))", "CAST"),
        ("create table t (a text collate utf8mb4_xx_0900_ai_ci)", "a collation"),
        ("create table t (a text character set gb18030)", "a character set"),
        ("create table t (a text, fulltext (a) with parser ngram)", "a parser of texts"),
        ("create table t (a int, b int references p)", "names no columns"),
        ("create table t (a int as (1) primary key)", "primary key of a computed"),
        ("create table t (a int) frobnicate = 1", "a clause that is not known"),
        ("create table t (a int frobnicate)", "something else than )"),
        ("create table t (a frob)", "a type that is not known"),
        ("create table t (a int) as select 1 as a", "a query"),
        ("create table t as select 1 as a", "made by a query"),
        ("alter table t alter a set invisible", "shown or hidden"),
        ("alter table t discard tablespace", "not known here"),
        ("alter database d read only = 1", "nothing that MariaDB has"),
        ("create json relational duality view v as select 1", "a statement about this"),
        ("create tablespace x", "a statement about this"),
        ("create function f() returns int language javascript as $$ 1 $$", "another language"),
        ("create table t (a int) /*M!100000 engine=x */", "only MariaDB"),
        ("create table t (a int /*!80000 /* x */ invisible */)", "in one that is carried out"),
        ("create table t (a int) /*!80000 comment='x'", "without an end"),
        ("create table t (a int) */", "not begun"),
        ("create table t (a int default 0x1g)", "a number that is not"),
        ("create table t (a int default foo)", "a default"),
        ("create table t (a int", "something else than )"),
        ("frobnicate", "a statement of this kind"),
    ] {
        assert!(of(text).is_err_and(|found| found.contains(why)), "{text}: {:?}", of(text));
    }
}

#[test]
fn what_both_have_stays_as_it_is_byte_for_byte() {
    for text in [
        "create  table if not exists `d` . `t` ( a INT(11) unsigned zerofill NOT  NULL auto_increment primary key -- x\n, b\tvarchar(20) DEFAULT 'it''s', /* y */ c decimal(10,2) default -1.5e-3)",
        "CREATE TABLE t (a enum('x','y') character set latin1 collate latin1_bin, b set('a'), c bit(3) default b'101', d timestamp(3) default current_timestamp(3) on update current_timestamp(3))",
        "create table t (a int, b int generated always as (a * 2) stored comment 'x', unique key u (b desc), fulltext key f (c), constraint x foreign key (a) references d.p (b) on delete set null on update cascade) row_format=dynamic key_block_size 8",
        "create table t (a int, b date default (curdate() + interval 1 day), constraint c check (a between 1 and 5 or b is null and length(d) in (1, 2)))",
        "create table t (a int) engine=innodb /*!50100 PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB, PARTITION p1 VALUES LESS THAN MAXVALUE) */",
        "create table t (a date, b int) partition by list columns (a) subpartition by key (b) subpartitions 2 (partition p values in ('2000-01-01', null))",
        "alter table t drop primary key, add primary key (a, b), rename column x to y, rename index i to j, alter column c set default (uuid()), order by a desc, b",
        "alter table t add column (a int, b int), drop foreign key k, comment 'x', engine = innodb",
        "alter table t reorganize partition p, q into (partition r values less than (to_days('2000-01-01')))",
        "alter table t add partition partitions 4", "alter table t remove partitioning", "alter table t truncate partition all",
        "alter table t rename to d.u", "drop table if exists a, b /* generated by server */", "truncate table t",
        "create database d character set latin1 collate latin1_bin", "drop view v", "rename table a to b, c to d.e",
        "create definer=current_user() trigger g before insert on t for each row set new.a = 'collate \u{e9} ->' -- '",
        "create procedure p(in a int) comment 'x' language sql begin select match (a) against ('x' in natural language mode); end",
        "/* x */ create index i using btree on t (a(10) asc) key_block_size = 4 # end",
    ] {
        assert_eq!(with(text, &Context { has_inline_references: true, ..Context::default() }).as_deref(), Ok(text));
    }
}
