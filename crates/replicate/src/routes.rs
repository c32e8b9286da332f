//! Which databases of a source are followed, and what they are called in the target.

use crate::statement::Definition;
use std::collections::BTreeMap;
use teak_binlog::Table;
use teak_sql::charset::Dialect;
use teak_sql::quoting::quoted_name;
use teak_sql::tokens::{Token, Tokens};

/// A server's own, and that of this program: never followed.
pub const OWN: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", "teak_replicate"];

/// Which databases are followed, and where they go.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// None: all.
    patterns: Option<Vec<String>>,
    /// Those that have another name in the target.
    renamed: BTreeMap<String, String>,
}

impl Routes {
    /// Those whose names one of the patterns has: `*` is any characters, `?` one. None: all.
    pub fn new(patterns: Option<Vec<String>>) -> Routes {
        Routes { patterns, renamed: BTreeMap::new() }
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> &[String] {
        self.patterns.as_deref().unwrap_or_default()
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

    /// Whether a database is followed.
    pub fn follows(&self, database: &[u8]) -> bool {
        let is_own = OWN.iter().any(|own| database.eq_ignore_ascii_case(own.as_bytes()));
        let mut patterns = self.patterns.iter().flatten();
        let is_wanted =
            self.patterns.is_none() || patterns.any(|pattern| WILDCARDS.fit(pattern.as_bytes(), database));
        !is_own && is_wanted
    }

    /// What a database is called in the target.
    pub fn name_of<'d>(&'d self, database: &'d [u8]) -> &'d [u8] {
        self.other_name(database).unwrap_or(database)
    }

    /// The same of text.
    pub fn text_name_of(&self, database: &str) -> String {
        self.renamed.get(database).cloned().unwrap_or_else(|| database.into())
    }

    /// If it has another name there.
    fn other_name(&self, database: &[u8]) -> Option<&[u8]> {
        let name = std::str::from_utf8(database).ok()?;
        self.renamed.get(name).map(String::as_bytes)
    }

    /// The table as it is called in the target, if that is otherwise.
    pub fn renamed(&self, table: &Table) -> Option<Table> {
        let database = self.renamed.get(&table.database)?;
        Some(Table { database: database.clone(), ..table.clone() })
    }

    /// A statement as the target is to have it. None: it names databases in a place where it cannot be told whether
    /// the name is one.
    pub fn rewritten(&self, text: &[u8], definition: &Definition, dialect: Dialect) -> Option<Vec<u8>> {
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
            let made = routes.rewritten(text.as_bytes(), &definition, dialect);
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
}
