//! Which databases and tables of a source are followed, and what they are called in the target.

use crate::part::PartOf;
use crate::statement::Definition;
use std::collections::BTreeMap;
use teak_binlog::Table;
use teak_sql::charset::Dialect;
use teak_sql::quoting::quoted_name;
use teak_sql::tokens::{Token, Tokens};

/// A server's own, and that of this program: never followed.
pub const OWN: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", "teak_replicate"];

/// What is followed, and where it goes.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// Of databases; None: all.
    patterns: Option<Vec<String>>,
    /// Databases that have another name in the target.
    renamed: BTreeMap<String, String>,
    /// Of tables in these; None: all.
    tables: Option<Vec<TablePattern>>,
    /// Tables that are not.
    excluded: Vec<TablePattern>,
    /// Tables that have another name in the target, by databases and their own.
    renamed_tables: BTreeMap<Name, Renamed>,
}

/// A table, by its database and its own name.
pub type Name = (String, String);

/// What a table is in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Renamed {
    here: Name,
    part: Option<PartOf>,
}

impl Renamed {
    /// Both are in one table, and their rows cannot be told apart.
    fn clashes(&self, other: &Renamed) -> bool {
        self.here == other.here && !PartOf::are_apart(self.part.as_ref(), other.part.as_ref())
    }
}

/// Which tables are meant: patterns of their databases' names and their own.
#[derive(Debug, Clone)]
pub struct TablePattern {
    database: String,
    table: String,
}

impl TablePattern {
    /// `database.table`; None: there is no point, or a name is empty.
    pub fn parse(text: &str) -> Option<TablePattern> {
        let (database, table) = two_names(text)?;
        Some(TablePattern { database, table })
    }

    /// Whether a table is meant.
    pub fn fits(&self, database: &[u8], table: &[u8]) -> bool {
        WILDCARDS.fit(self.database.as_bytes(), database) && WILDCARDS.fit(self.table.as_bytes(), table)
    }
}

fn two_names(text: &str) -> Option<(String, String)> {
    let (database, table) = text.split_once('.')?;
    (!database.is_empty() && !table.is_empty()).then(|| (database.into(), table.into()))
}

impl Routes {
    /// Those whose names one of the patterns has: `*` is any characters, `?` one. None: all.
    pub fn new(patterns: Option<Vec<String>>) -> Routes {
        Routes { patterns, ..Routes::default() }
    }

    /// The patterns of databases, in their order.
    pub fn patterns(&self) -> &[String] {
        self.patterns.as_deref().unwrap_or_default()
    }

    /// Follows only some tables, all for None, and leaves out others.
    pub fn choose(&mut self, tables: Option<Vec<TablePattern>>, excluded: Vec<TablePattern>) {
        (self.tables, self.excluded) = (tables, excluded);
    }

    /// The patterns of tables that are followed, in their order.
    pub fn tables(&self) -> &[TablePattern] {
        self.tables.as_deref().unwrap_or_default()
    }

    /// Adds another name; an error if that cannot be.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        if !from.is_ascii() || !to.is_ascii() || to.is_empty() {
            return Err(format!(
                "rename_databases: {from} to {to}: other names than of ASCII are not built yet"
            ));
        }
        if !self.follows(from.as_bytes()) {
            return Err(format!("rename_databases: {from} is not followed"));
        }
        if OWN.iter().any(|own| to.eq_ignore_ascii_case(own)) {
            return Err(format!("rename_databases: {from} cannot be {to}"));
        }
        if self.renamed.values().any(|other| other == to) {
            return Err(format!("rename_databases: two databases would be {to}"));
        }
        self.renamed.insert(from.into(), to.into());
        Ok(())
    }

    /// The same of a table, both as `database.table`; `part`: with others it is one there.
    pub fn rename_table(&mut self, from: &str, to: &str, part: Option<PartOf>) -> Result<(), String> {
        let both = two_names(from).zip(two_names(to)).filter(|_| from.is_ascii() && to.is_ascii());
        let Some((there, here)) = both else {
            return Err(format!("rename_tables: {from} to {to}: not both are database.table, of ASCII"));
        };
        if !self.follows_table(there.0.as_bytes(), there.1.as_bytes()) {
            return Err(format!("rename_tables: {from} is not followed"));
        }
        if OWN.iter().any(|own| here.0.eq_ignore_ascii_case(own)) {
            return Err(format!("rename_tables: {from} cannot be {to}"));
        }
        let renamed = Renamed { here, part };
        if self.renamed_tables.values().any(|other| renamed.clashes(other)) {
            return Err(format!("rename_tables: two tables would be {to}"));
        }
        self.renamed_tables.insert(there, renamed);
        Ok(())
    }

    /// What a table of both is renamed to, if there is one.
    pub fn shares(&self, other: &Routes) -> Option<String> {
        let mut names = self.renamed_tables.values();
        let shared = names.find(|name| other.renamed_tables.values().any(|one| one.clashes(name)))?;
        Some(format!("{}.{}", shared.here.0, shared.here.1))
    }

    /// Tables of the source that have another name, by databases and their own.
    pub fn renamed_tables(&self) -> impl Iterator<Item = &(String, String)> {
        self.renamed_tables.keys()
    }

    /// Not all tables of the databases are followed, or not by their own names.
    pub fn are_of_tables(&self) -> bool {
        self.tables.is_some() || !self.excluded.is_empty() || !self.renamed_tables.is_empty()
    }

    /// Tables come into a database from others, or go from it to others.
    pub fn cross(&self, database: &str) -> bool {
        let here = self.text_name_of(database);
        self.renamed_tables.iter().any(|((from, _), renamed)| {
            let to = &renamed.here.0;
            self.text_name_of(from) != *to && (from == database || *to == here)
        })
    }

    /// Whether a database is followed.
    pub fn follows(&self, database: &[u8]) -> bool {
        let is_own = OWN.iter().any(|own| database.eq_ignore_ascii_case(own.as_bytes()));
        let mut patterns = self.patterns.iter().flatten();
        let is_wanted =
            self.patterns.is_none() || patterns.any(|pattern| WILDCARDS.fit(pattern.as_bytes(), database));
        !is_own && is_wanted
    }

    /// Whether a table is.
    pub fn follows_table(&self, database: &[u8], table: &[u8]) -> bool {
        let one_of = |patterns: &[TablePattern]| patterns.iter().any(|one| one.fits(database, table));
        self.follows(database) && self.tables.as_deref().is_none_or(one_of) && !one_of(&self.excluded)
    }

    /// Whether a table of the target would be one of a followed database, and is none that is followed.
    pub fn leave_out(&self, database: &str, table: &str) -> bool {
        let there = self.renamed.iter().find(|(_, here)| *here == database).map(|(there, _)| there.as_str());
        let there = there.or((!self.renamed.contains_key(database)).then_some(database));
        let follows = |there: &str| self.follows(there.as_bytes());
        there.is_some_and(|there| follows(there) && !self.follows_table(there.as_bytes(), table.as_bytes()))
    }

    /// What a database is called in the target.
    pub fn name_of<'d>(&'d self, database: &'d [u8]) -> &'d [u8] {
        self.other_name(database).unwrap_or(database)
    }

    /// The same of text.
    pub fn text_name_of(&self, database: &str) -> String {
        self.renamed.get(database).cloned().unwrap_or_else(|| database.into())
    }

    /// What a table is called there: its database, and itself.
    pub fn names_of(&self, database: &str, table: &str) -> (String, String) {
        let names = self.other_names(database, table).map(|renamed| renamed.here.clone());
        names.unwrap_or_else(|| (self.text_name_of(database), table.into()))
    }

    /// If it is one there with others.
    pub fn part(&self, database: &str, table: &str) -> Option<&PartOf> {
        self.other_names(database, table)?.part.as_ref()
    }

    /// The same by its name there; of two that are one there the first.
    pub fn part_here(&self, here: &Name) -> Option<&PartOf> {
        self.renamed_tables.values().find(|renamed| renamed.here == *here)?.part.as_ref()
    }

    /// If it has a name of its own there.
    fn other_names(&self, database: &str, table: &str) -> Option<&Renamed> {
        if self.renamed_tables.is_empty() {
            return None;
        }
        self.renamed_tables.get(&(database.to_string(), table.to_string()))
    }

    /// If it has another name there.
    fn other_name(&self, database: &[u8]) -> Option<&[u8]> {
        let name = std::str::from_utf8(database).ok()?;
        self.renamed.get(name).map(String::as_bytes)
    }

    /// The table as it is called in the target.
    pub fn here(&self, table: &Table) -> Table {
        let (database, name) = self.names_of(&table.database, &table.name);
        Table { database, name, ..table.clone() }
    }

    /// A statement as the target is to have it. None: it names databases in a place where it cannot be told whether
    /// the name is one. `database`: the default one at the source.
    pub fn rewritten(
        &self,
        text: &[u8],
        definition: &Definition,
        dialect: Dialect,
        database: &[u8],
    ) -> Option<Vec<u8>> {
        if let Some(names) = self.renamed_mentions(definition, database) {
            let (mut out, mut taken) = (Vec::new(), 0);
            for (mention, (database, table)) in definition.mentions.iter().zip(names) {
                out.extend_from_slice(&text[taken..mention.place.start]);
                let both = [quoted_name(database.as_bytes()), quoted_name(table.as_bytes())];
                out.extend_from_slice(&both.join(&b"."[..]));
                taken = mention.place.end;
            }
            out.extend_from_slice(&text[taken..]);
            return Some(out);
        }
        if self.renamed.is_empty() {
            return Some(text.to_vec());
        }
        let of_database = definition.objects.iter().all(|object| object.kind == "DATABASE");
        let mut tokens = Tokens::new(text, dialect);
        let (mut out, mut taken, mut found) = (Vec::new(), 0, 0);
        let (mut before, mut is_behind) = (None, false);
        loop {
            let from = tokens.begin_of_next();
            let Some(token) = tokens.next() else { break };
            let name = match &token {
                Token::Word(word) => Some(self.other_name(word)),
                Token::Name(name) => Some(self.other_name(name)),
                _ => None,
            };
            let is_qualifier = tokens.peek() == Some(Token::Mark(b'.')) && before != Some(Token::Mark(b'.'));
            // Of a database the first one behind what it is.
            let is_database = of_database && is_behind && found == 0;
            is_behind |= token.is("DATABASE") || token.is("SCHEMA");
            if let Some(Some(other)) = name.filter(|_| is_qualifier || is_database) {
                out.extend_from_slice(&text[taken..from]);
                out.extend_from_slice(&quoted_name(other));
                (taken, found) = (tokens.at, found + 1);
            }
            before = Some(token);
        }
        out.extend_from_slice(&text[taken..]);
        let qualified = definition.objects.iter().filter_map(|object| object.database.as_deref());
        let of_objects = qualified.filter(|database| self.other_name(database).is_some()).count();
        // Behind the name of a view or a routine anything may come, such as an alias of the same name.
        let is_certain = !definition.has_body || found == of_objects;
        is_certain.then_some(out)
    }

    /// The names of all tables that a statement mentions, if one of them has a name of its own: without their databases
    /// the others may not be what they were.
    fn renamed_mentions(&self, definition: &Definition, default: &[u8]) -> Option<Vec<(String, String)>> {
        if self.renamed_tables.is_empty() || definition.has_body {
            return None;
        }
        let mut is_renamed = false;
        let names = definition.mentions.iter().map(|mention| {
            let database = mention.database.as_deref().unwrap_or(default);
            let [database, table] = [database, &mention.name].map(String::from_utf8_lossy);
            is_renamed |= self.other_names(&database, &table).is_some();
            self.names_of(&database, &table)
        });
        let names = names.collect();
        is_renamed.then_some(names)
    }
}

/// What patterns of names have that does not stand for itself.
pub struct Wildcards {
    /// Any characters.
    pub any: u8,
    /// One.
    pub one: u8,
    /// What is behind it stands for itself.
    pub escape: Option<u8>,
}

/// Those of a configuration.
pub const WILDCARDS: Wildcards = Wildcards { any: b'*', one: b'?', escape: None };

impl Wildcards {
    /// Whether a name is as a pattern says.
    pub fn fit(&self, pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([escape, byte, rest @ ..], [first, name @ ..]) if Some(*escape) == self.escape => {
                byte == first && self.fit(rest, name)
            }
            ([any, rest @ ..], _) if *any == self.any => {
                (0..=name.len()).any(|at| self.fit(rest, &name[at..]))
            }
            ([one, rest @ ..], [_, name @ ..]) if *one == self.one => self.fit(rest, name),
            ([byte, rest @ ..], [first, name @ ..]) => byte == first && self.fit(rest, name),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{classify, dialect, Statement};

    #[test]
    fn patterns_choose_databases_and_those_of_servers_are_never_followed() {
        let some = Routes::new(Some(vec!["enwiki".into(), "de*".into(), "s?_x*y".into()]));
        for (name, followed) in [
            ("enwiki", true),
            ("enwiki2", false),
            ("dewiki", true),
            ("de", true),
            ("s1_xy", true),
            ("s1_xaay", true),
            ("s_xy", false),
            ("mysql", false),
        ] {
            assert_eq!(some.follows(name.as_bytes()), followed, "{name}");
        }
        let all = Routes::default();
        assert!(all.follows(b"x") && !all.follows(b"MySQL") && !all.follows(b"teak_replicate"));
        assert!(!Routes::new(Some(vec![])).follows(b"x"));
        assert!(!Routes::new(Some(vec!["*".into()])).follows(b"mysql"));
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let mut routes = Routes::new(Some(vec!["a".into(), "b".into()]));
        for (from, to, is_taken) in [
            ("a", "x", true),
            ("b", "x", false),
            ("c", "y", false),
            ("b", "mysql", false),
            ("b", "", false),
            ("b", "\u{e9}", false),
            ("b", "a", true),
        ] {
            assert_eq!(routes.rename(from, to).is_ok(), is_taken, "{from} {to}");
        }
        assert_eq!((routes.name_of(b"a"), routes.name_of(b"z")), (&b"x"[..], &b"z"[..]));
    }

    #[test]
    fn statements_get_the_names_of_the_target() {
        let mut routes = Routes::default();
        routes.rename("a", "x`y").unwrap();
        routes.rename("b", "a").unwrap();
        routes.rename("database", "data").unwrap();
        let rewritten = |text: &str| {
            let dialect = dialect(0, None);
            let Statement::Definition(definition) = classify(text.as_bytes(), dialect) else {
                panic!("{text}")
            };
            let made = routes.rewritten(text.as_bytes(), &definition, dialect, b"other");
            made.map(|made| String::from_utf8(made).unwrap())
        };
        for (text, wanted) in [
            ("CREATE TABLE a.t (a int, b int)", "CREATE TABLE `x``y`.t (a int, b int)"),
            ("create table `a` . `t` like b.u", "create table `x``y` . `t` like `a`.u"),
            (
                "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES a.p (a) /* a.x */",
                "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES `x``y`.p (a) /* a.x */",
            ),
            ("RENAME TABLE a.t TO b.a, c.a TO c.b", "RENAME TABLE `x``y`.t TO `a`.a, c.a TO c.b"),
            (
                "CREATE TABLE c.t (a int default (c.a.b), e enum('a.b'))",
                "CREATE TABLE c.t (a int default (c.a.b), e enum('a.b'))",
            ),
            ("CREATE DATABASE a COMMENT 'a'", "CREATE DATABASE `x``y` COMMENT 'a'"),
            ("DROP DATABASE IF EXISTS `b`", "DROP DATABASE IF EXISTS `a`"),
            ("create database database", "create database `data`"),
            ("CREATE VIEW a.v AS SELECT 1 AS a", "CREATE VIEW `x``y`.v AS SELECT 1 AS a"),
            ("CREATE VIEW v AS SELECT t.a FROM t", "CREATE VIEW v AS SELECT t.a FROM t"),
        ] {
            assert_eq!(rewritten(text).as_deref(), Some(wanted));
        }
        for text in [
            "CREATE VIEW v AS SELECT a.x FROM t AS a",
            "CREATE VIEW a.v AS SELECT * FROM b.t",
            "CREATE PROCEDURE p() SELECT * FROM a.t",
            "CREATE TRIGGER b.t AFTER INSERT ON u FOR EACH ROW INSERT INTO a.v VALUES (1)",
        ] {
            assert_eq!(rewritten(text), None, "{text}");
        }
    }

    fn patterns(all: &[&str]) -> Vec<TablePattern> {
        all.iter().map(|text| TablePattern::parse(text).unwrap()).collect()
    }

    #[test]
    fn tables_are_chosen_within_databases() {
        let mut routes = Routes::new(Some(vec!["en*".into(), "s".into()]));
        assert!(!routes.are_of_tables());
        routes.choose(Some(patterns(&["en*.page*", "s.*"])), patterns(&["*.*_tmp"]));
        routes.rename("s", "t").unwrap();
        for (database, table, followed) in [
            ("enwiki", "page", true),
            ("enwiki", "pages", true),
            ("enwiki", "user", false),
            ("enwiki", "page_tmp", false),
            ("s", "user", true),
            ("s", "x_tmp", false),
            ("dewiki", "page", false),
            ("mysql", "page", false),
        ] {
            assert_eq!(routes.follows_table(database.as_bytes(), table.as_bytes()), followed, "{table}");
        }
        for (database, table, left_out) in
            [("enwiki", "user", true), ("enwiki", "page", false), ("t", "x_tmp", true), ("s", "x_tmp", false)]
        {
            assert_eq!(routes.leave_out(database, table), left_out, "{database}.{table}");
        }
        for text in ["page", ".page", "en."] {
            assert!(TablePattern::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn tables_get_names_that_can_be() {
        let mut routes = Routes::new(Some(vec!["a".into(), "b".into()]));
        routes.choose(None, patterns(&["a.no"]));
        routes.rename("b", "c").unwrap();
        for (from, to, is_taken) in [
            ("a.t", "all.a_t", true),
            ("b.t", "all.a_t", false),
            ("b.t", "all.b_t", true),
            ("a.no", "all.no", false),
            ("z.t", "all.z_t", false),
            ("a.u", "teak_replicate.u", false),
            ("a.u", "u", false),
            ("a.u", "all.\u{e9}", false),
        ] {
            assert_eq!(routes.rename_table(from, to, None).is_ok(), is_taken, "{from} {to}");
        }
        let name = |database: &str, table: &str| {
            let (database, table) = routes.names_of(database, table);
            format!("{database}.{table}")
        };
        assert_eq!((name("a", "t"), name("a", "u")), ("all.a_t".into(), "a.u".into()));
        assert_eq!((name("b", "t"), name("b", "u")), ("all.b_t".into(), "c.u".into()));
        assert!(routes.cross("a") && routes.cross("all") && !routes.cross("d"));
        let mut other = Routes::default();
        assert_eq!(other.shares(&routes), None);
        other.rename_table("x.y", "all.b_t", None).unwrap();
        assert_eq!(other.shares(&routes), Some("all.b_t".into()));
    }

    #[test]
    fn tables_are_one_if_a_column_tells_them_apart() {
        let part = |column: &str, value: &str| Some(PartOf { column: column.into(), value: value.into() });
        let mut routes = Routes::default();
        routes.rename_table("a.t", "all.t", part("wiki", "a")).unwrap();
        for (from, part, is_taken) in [
            ("b.t", None, false),
            ("b.t", part("wiki", "a"), false),
            ("b.t", part("other", "b"), false),
            ("b.t", part("wiki", "b"), true),
        ] {
            assert_eq!(routes.rename_table(from, "all.t", part).is_ok(), is_taken, "{from}");
        }
        assert_eq!(routes.part("b", "t").map(|part| part.value.as_str()), Some("b"));
        assert!(routes.part("c", "t").is_none());
        let mut other = Routes::default();
        other.rename_table("a.t", "all.t", part("wiki", "c")).unwrap();
        assert_eq!(other.shares(&routes), None);
        other.rename_table("a.u", "all.t", part("wiki", "b")).unwrap();
        assert_eq!(other.shares(&routes), Some("all.t".into()));
    }

    #[test]
    fn statements_get_the_names_of_tables() {
        let mut routes = Routes::default();
        routes.rename("c", "d").unwrap();
        routes.rename_table("a.t", "all.a_t", None).unwrap();
        routes.rename_table("a.p", "a.parent", None).unwrap();
        let dialect = dialect(0, None);
        for (text, wanted) in [
            (
                "CREATE TABLE t (t int, check (t > 0)) /* t */",
                "CREATE TABLE `all`.`a_t` (t int, check (t > 0)) /* t */",
            ),
            (
                "create table if not exists a . `t` like u",
                "create table if not exists `all`.`a_t` like `a`.`u`",
            ),
            ("CREATE TABLE x.t (LIKE a.t)", "CREATE TABLE `x`.`t` (LIKE `all`.`a_t`)"),
            ("CREATE TABLE c.t (a int, b int default (1))", "CREATE TABLE `d`.t (a int, b int default (1))"),
            (
                "ALTER TABLE u ADD FOREIGN KEY (p) REFERENCES p (a), ADD REFERENCES_ int",
                "ALTER TABLE `a`.`u` ADD FOREIGN KEY (p) REFERENCES `a`.`parent` (a), ADD REFERENCES_ int",
            ),
            // Of the database that the table is in, not of the session's.
            (
                "CREATE TABLE x.t (a int REFERENCES p (a), b int REFERENCES a.p (b))",
                "CREATE TABLE `x`.`t` (a int REFERENCES `x`.`p` (a), b int REFERENCES `a`.`parent` (b))",
            ),
            (
                "RENAME TABLE t TO _t_old, _t_new TO t",
                "RENAME TABLE `all`.`a_t` TO `a`.`_t_old`, `a`.`_t_new` TO `all`.`a_t`",
            ),
            ("ALTER TABLE x.u RENAME t", "ALTER TABLE `x`.`u` RENAME `all`.`a_t`"),
            (
                "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t",
                "ALTER TABLE `a`.`u` EXCHANGE PARTITION p WITH TABLE `all`.`a_t`",
            ),
            (
                "DROP TABLE IF EXISTS u,`t` /* generated */",
                "DROP TABLE IF EXISTS `a`.`u`,`all`.`a_t` /* generated */",
            ),
            ("CREATE UNIQUE INDEX t ON t (t)", "CREATE UNIQUE INDEX t ON `all`.`a_t` (t)"),
            ("TRUNCATE t", "TRUNCATE `all`.`a_t`"),
            ("CREATE SEQUENCE t START 5", "CREATE SEQUENCE `all`.`a_t` START 5"),
            ("DROP DATABASE a", "DROP DATABASE a"),
        ] {
            let Statement::Definition(definition) = classify(text.as_bytes(), dialect) else {
                panic!("{text}")
            };
            let made = routes.rewritten(text.as_bytes(), &definition, dialect, b"a").unwrap();
            assert_eq!(String::from_utf8(made).unwrap(), wanted);
        }
    }
}
