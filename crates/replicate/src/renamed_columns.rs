//! Columns that have other names in the target. A log has rows by the places of columns, so only statements that change
//! definitions, and who compares or copies rows, need to know.
//!
//! Which words of a statement are columns is told by where they stand, as the same word may be an index, a type or a
//! function. `statements.rs` is about that.

mod statements;

use crate::exclusions::{are_for_nobody, of_tables, said_of, ByPattern, OfTables};
use crate::failure::Failure;
use crate::routes::Name;
use crate::statement::Definition;
use crate::tables::{self, Table};
use std::collections::BTreeMap;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::charset::Dialect;

/// Which tables have such columns.
#[derive(Debug, Clone, Default)]
pub struct RenamedColumns {
    all: OfTables<(String, String)>,
}

/// The columns of one table, each by its name at the source and in the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnNames(Vec<(String, String)>);

impl RenamedColumns {
    /// By patterns of the source's tables; what cannot be is the error.
    pub fn new(all: &BTreeMap<String, BTreeMap<String, String>>) -> Result<RenamedColumns, String> {
        let pairs = |names: &BTreeMap<String, String>| names.clone().into_iter().collect::<Vec<_>>();
        for (pattern, names) in all {
            for (from, to) in names {
                if !from.is_ascii() || !to.is_ascii() || from.is_empty() || to.is_empty() {
                    return Err(format!("{pattern}: {from} to {to}: names are of ASCII, and not empty"));
                }
                if names.iter().any(|(other, one)| other != from && one.eq_ignore_ascii_case(to)) {
                    return Err(format!("{pattern}: two columns would be {to}"));
                }
            }
        }
        let all: ByPattern<_> = all.iter().map(|(pattern, names)| (pattern.clone(), pairs(names))).collect();
        Ok(RenamedColumns { all: of_tables(&all)? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of a table of the source.
    pub fn of(&self, database: &str, table: &str) -> ColumnNames {
        ColumnNames(said_of(&self.all, database, table).next().unwrap_or_default().to_vec())
    }

    /// Whether a pattern fits none of a source's tables.
    pub fn has_none_of(&self, tables: &[&Name]) -> bool {
        are_for_nobody(&self.all, tables)
    }

    /// A statement with the columns' names in the target; None: it names none. The error says why that cannot be told.
    /// `database`: the default one at the source.
    pub fn rewritten(
        &self,
        text: &[u8],
        definition: &Definition,
        dialect: Dialect,
        database: &[u8],
    ) -> Result<Option<Vec<u8>>, String> {
        if self.is_empty() || definition.has_body {
            return Ok(None);
        }
        let of = |mention: &crate::statement::Mention| {
            let database = mention.database.as_deref().unwrap_or(database);
            let [database, table] = [database, &mention.name].map(String::from_utf8_lossy);
            self.of(&database, &table)
        };
        statements::rewritten(text, definition, dialect, &of)
    }
}

impl ColumnNames {
    /// Whether all columns are called as at the source.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a column is called in the target, if that is another name.
    pub fn other(&self, name: &[u8]) -> Option<&str> {
        let mut names = self.0.iter();
        names.find(|(from, _)| name.eq_ignore_ascii_case(from.as_bytes())).map(|(_, to)| to.as_str())
    }

    /// What it is called there.
    pub fn name<'n>(&'n self, name: &'n [u8]) -> &'n [u8] {
        self.other(name).map_or(name, str::as_bytes)
    }

    /// A table of the source with the names that it has there.
    pub fn here(&self, table: &Table) -> Table {
        let mut table = table.clone();
        for column in &mut table.columns {
            column.name = self.name(&column.name).to_vec();
        }
        for column in &mut table.key {
            *column = self.other(column.as_bytes()).map_or(column.clone(), str::to_string);
        }
        table
    }

    /// The first one that a table of the source has not.
    pub fn missing(&self, there: &Table) -> Option<&str> {
        let has = |name: &str| there.columns.iter().any(|column| is(&column.name, name));
        self.0.iter().map(|(from, _)| from.as_str()).find(|from| !has(from))
    }

    /// A column that a table of the target has by the name that it has at the source, and should not.
    pub fn left_in<'n>(&'n self, here: &Table) -> Option<&'n (String, String)> {
        let is_wanted = |name: &str| self.0.iter().any(|(_, to)| to.eq_ignore_ascii_case(name));
        let has = |name: &str| here.columns.iter().any(|column| is(&column.name, name));
        self.0.iter().find(|(from, _)| has(from) && !is_wanted(from))
    }

    /// Fails if a table of the target has one by its name at the source.
    pub fn must_be_in(&self, target: &mut Connection, here: &Name) -> Result<(), Failure> {
        let shown = format!("`{}`.`{}`", here.0, here.1);
        let of_target = |error: Error| Failure::of_target(&error, || format!("columns of {shown}"));
        let table = tables::one(target, &here.0, &here.1).map_err(of_target)?;
        match table.as_ref().and_then(|table| self.left_in(table)) {
            None => Ok(()),
            Some((from, to)) => {
                let why = format!("{shown} has a column `{from}`, which is to be called `{to}` here");
                Err(Failure::Final(why, Status::Damage))
            }
        }
    }
}

fn is(one: &[u8], other: &str) -> bool {
    one.eq_ignore_ascii_case(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{classify, dialect, Statement};

    fn renamed() -> RenamedColumns {
        let names = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect::<BTreeMap<_, _>>()
        };
        let t = names(&[("old", "new"), ("date", "on_day"), ("a", "b"), ("b", "a")]);
        let all = [
            ("d.t".to_string(), t.clone()),
            ("d.t_*".to_string(), t),
            ("d.p".to_string(), names(&[("id", "no")])),
        ];
        RenamedColumns::new(&all.into_iter().collect()).unwrap()
    }

    /// What a statement becomes; what it cannot be is in brackets.
    fn rewritten(text: &str) -> String {
        let Statement::Definition(definition) = classify(text.as_bytes(), dialect(0, None)) else {
            panic!("{text}")
        };
        match renamed().rewritten(text.as_bytes(), &definition, dialect(0, None), b"d") {
            Ok(None) => "as it is".into(),
            Ok(Some(text)) => String::from_utf8(text).unwrap(),
            Err(why) => format!("[{why}]"),
        }
    }

    #[test]
    fn columns_are_told_from_other_words_by_where_they_stand() {
        for (text, wanted) in [
            ("ALTER TABLE t ADD x INT AFTER old", "ALTER TABLE t ADD x INT AFTER `new`"),
            ("ALTER TABLE other ADD x INT AFTER old", "as it is"),
            ("ALTER TABLE e.t ADD x INT AFTER old", "as it is"),
            ("ALTER TABLE t ADD x INT FIRST", "as it is"),
            ("ALTER TABLE t ADD COLUMN IF NOT EXISTS date DATE DEFAULT '2000-01-01' COMMENT 'old'",
             "ALTER TABLE t ADD COLUMN IF NOT EXISTS `on_day` DATE DEFAULT '2000-01-01' COMMENT 'old'"),
            ("ALTER TABLE `d`.`t` ADD (`old` INT, c DECIMAL(10, 2), INDEX old (old))",
             "ALTER TABLE `d`.`t` ADD (`new` INT, c DECIMAL(10, 2), INDEX old (`new`))"),
            ("ALTER TABLE t CHANGE OLD older INT, DROP date, MODIFY COLUMN a INT AFTER b, ALTER a SET DEFAULT 5",
             "ALTER TABLE t CHANGE `new` older INT, DROP `on_day`, MODIFY COLUMN `b` INT AFTER `a`, ALTER `b` SET DEFAULT 5"),
            ("ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN d TO old, RENAME INDEX old TO date",
             "ALTER TABLE t RENAME COLUMN `b` TO c, RENAME COLUMN d TO `new`, RENAME INDEX old TO date"),
            ("ALTER TABLE t DROP INDEX old, DROP KEY date, DROP CONSTRAINT a, DROP FOREIGN KEY b, DROP PRIMARY KEY", "as it is"),
            ("ALTER TABLE t NOWAIT ADD UNIQUE KEY old (old(10), a DESC), ENGINE=InnoDB",
             "ALTER TABLE t NOWAIT ADD UNIQUE KEY old (`new`(10), `b` DESC), ENGINE=InnoDB"),
            ("ALTER TABLE t ORDER BY c, old DESC, a", "ALTER TABLE t ORDER BY c, `new` DESC, `b`"),
            ("ALTER TABLE t ADD CONSTRAINT old CHECK (old > 0 AND date(`date`) > DATE '2000-01-01' AND a(1) = t.b)",
             "ALTER TABLE t ADD CONSTRAINT old CHECK (`new` > 0 AND date(`on_day`) > DATE '2000-01-01' AND a(1) = t.`a`)"),
            ("ALTER TABLE t ADD c DATE AS (CAST(old AS date)) STORED", "ALTER TABLE t ADD c DATE AS (CAST(`new` AS date)) STORED"),
            ("CREATE UNIQUE INDEX old ON t (old, c)", "CREATE UNIQUE INDEX old ON t (`new`, c)"),
            ("DROP INDEX old ON t", "as it is"),
            ("ALTER TABLE t ADD KEY (old, c), ADD UNIQUE INDEX(c, old), ADD CONSTRAINT x UNIQUE (a), ADD PRIMARY KEY (a)",
             "ALTER TABLE t ADD KEY `old`(`new`, c), ADD UNIQUE INDEX(c, `new`), ADD CONSTRAINT x UNIQUE (`b`), ADD PRIMARY KEY (`b`)"),
            ("CREATE TABLE t (old INT UNIQUE)", "[an index without a name, of a column that has another name here]"),
            ("CREATE TABLE t (c INT UNIQUE, old INT)", "CREATE TABLE t (c INT UNIQUE, `new` INT)"),
            ("CREATE TABLE t (old INT PRIMARY KEY, date DATE, c VARCHAR(9) CHARACTER SET latin1, KEY a (a, `b`), id INT, \
              FOREIGN KEY old (old, a) REFERENCES p (id, old)) COMMENT='old' PARTITION BY HASH (old) PARTITIONS 3",
             "CREATE TABLE t (`new` INT PRIMARY KEY, `on_day` DATE, c VARCHAR(9) CHARACTER SET latin1, KEY a (`b`, `a`), id INT, \
              FOREIGN KEY old (`new`, `b`) REFERENCES p (`no`, old)) COMMENT='old' PARTITION BY HASH (`new`) PARTITIONS 3"),
            ("ALTER TABLE t PARTITION BY RANGE (a) (PARTITION old VALUES LESS THAN (5) COMMENT 'a', PARTITION b VALUES LESS THAN (9))",
             "ALTER TABLE t PARTITION BY RANGE (`b`) (PARTITION old VALUES LESS THAN (5) COMMENT 'a', PARTITION b VALUES LESS THAN (9))"),
            ("ALTER TABLE c ADD FOREIGN KEY (id) REFERENCES p (id) ON DELETE CASCADE",
             "ALTER TABLE c ADD FOREIGN KEY (id) REFERENCES p (`no`) ON DELETE CASCADE"),
            ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t DROP COLUMN old",
             "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t DROP COLUMN `new`"),
            ("RENAME TABLE t TO t_del, t_gho TO t", "as it is"),
            ("RENAME TABLE t TO u", "[`t` has columns of other names here, and `u` other ones]"),
            ("RENAME TABLE x TO t", "[`x` has columns of other names here, and `t` other ones]"),
            ("CREATE TABLE t_gho LIKE t", "as it is"),
            ("CREATE TABLE u LIKE t", "[`u` has columns of other names here, and `t` other ones]"),
            ("ALTER TABLE t RENAME TO u", "[`t` has columns of other names here, and `u` other ones]"),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "[`t` has columns of other names here, and `u` other ones]"),
            ("DROP TABLE t, u", "as it is"),
            ("TRUNCATE t", "as it is"),
        ] {
            assert_eq!(rewritten(text), wanted, "{text}");
        }
    }

    #[test]
    fn words_that_may_be_something_else_are_refused() {
        let all =
            BTreeMap::from([("d.t".to_string(), BTreeMap::from([("month".to_string(), "m".to_string())]))]);
        let renamed = RenamedColumns::new(&all).unwrap();
        let of = |text: &str| {
            let Statement::Definition(definition) = classify(text.as_bytes(), dialect(0, None)) else {
                panic!("{text}")
            };
            renamed.rewritten(text.as_bytes(), &definition, dialect(0, None), b"d")
        };
        assert!(of("ALTER TABLE t ADD c INT AS (TIMESTAMPDIFF(month, x, y))").is_err());
        assert!(of("ALTER TABLE t ADD CHECK (x + INTERVAL 1 month > 5)").is_err());
        assert!(of("CREATE TABLE t (a INT) SELECT 1").is_err());
        assert_eq!(
            of("ALTER TABLE t ADD CHECK (`month` > 5)").unwrap().unwrap(),
            b"ALTER TABLE t ADD CHECK (`m` > 5)"
        );
        assert_eq!(
            of("ALTER TABLE t ADD KEY (month)").unwrap().unwrap(),
            b"ALTER TABLE t ADD KEY `month`(`m`)"
        );
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        for (names, is_taken) in [
            (&[("a", "b"), ("b", "a")][..], true),
            (&[("a", "x"), ("b", "X")], false),
            (&[("a", "")], false),
            (&[("a", "\u{e9}")], false),
        ] {
            let names = names.iter().map(|(from, to)| (from.to_string(), to.to_string())).collect();
            let all = BTreeMap::from([("d.t".to_string(), names)]);
            assert_eq!(RenamedColumns::new(&all).is_ok(), is_taken, "{all:?}");
        }
    }
}
