//! What a statement of a dump is about: what it may run beside, and what must wait for it.

use super::charset::Dialect;
use super::tokens::{Token, Tokens};

/// `None` is the default database.
pub type TableName = (Option<Vec<u8>>, Vec<u8>);

/// What a statement is, for the order in which statements run.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// `INSERT ... VALUES` or `REPLACE ... VALUES`.
    Insert(Insert),
    /// Changes one table, or something that belongs to it, and waits for nothing but what was done to it.
    Table(TableName),
    /// `CREATE TABLE`, likewise.
    CreateTable(TableName),
    /// `ALTER TABLE ... DISABLE KEYS`, likewise.
    DisableKeys(TableName),
    /// Changes the session only.
    SessionState,
    /// Changes the default database to this one.
    Use(Vec<u8>),
    /// Begins or ends a transaction, or locks tables: the loader has its own order and transactions instead.
    Dropped,
    /// Waits for everything before it, and everything after waits for it.
    Exclusive,
    /// Means nothing, or something else, on several connections. The text says what it is.
    SerialOnly(&'static str),
}

/// The head of `INSERT INTO t (a, b) VALUES`.
#[derive(Debug, PartialEq)]
pub struct Insert {
    /// Where the rows go.
    pub table: TableName,
    /// `None` if the statement names none: all that are visible.
    pub columns: Option<Vec<Vec<u8>>>,
    /// Where the rows begin.
    pub rows_at: usize,
    /// `REPLACE` and `INSERT IGNORE`: of rows that exclude each other, the order decides which stays.
    pub order_matters: bool,
}

/// Functions and variables that tell of the statement before on the same connection.
const OF_BEFORE: &[&str] = &[
    "LAST_INSERT_ID",
    "ROW_COUNT",
    "FOUND_ROWS",
    "IDENTITY",
    "INSERT_ID",
    "WARNING_COUNT",
    "ERROR_COUNT",
    "LASTVAL",
];

/// Tells what a statement is. `foreign_keys`: whether they are checked, so that tables depend on each other.
pub fn classify(text: &[u8], dialect: Dialect, foreign_keys: bool) -> Kind {
    let mut tokens = Tokens::new(text, dialect);
    let Some(Token::Word(first)) = tokens.next() else {
        return Kind::Exclusive;
    };
    let kind = match first.to_ascii_uppercase().as_slice() {
        b"INSERT" | b"REPLACE" => insert(tokens.clone(), first.len() == "REPLACE".len()).map(Kind::Insert),
        b"SET" => return set(&tokens),
        b"USE" => tokens.name().map(Kind::Use),
        b"CREATE" => create(tokens.clone(), foreign_keys),
        b"DROP" => drop(tokens.clone(), foreign_keys),
        b"ALTER" => alter(tokens.clone()),
        b"TRUNCATE" => {
            (tokens.accept("TABLE") || !foreign_keys).then(|| tokens.qualified()).flatten().map(Kind::Table)
        }
        b"BEGIN" | b"COMMIT" => Some(Kind::Dropped),
        b"START" => tokens.accept("TRANSACTION").then_some(Kind::Dropped),
        b"LOCK" => (tokens.accept("TABLES") || tokens.accept("TABLE")).then_some(Kind::Dropped),
        b"UNLOCK" => Some(Kind::Dropped),
        b"ROLLBACK" => Some(Kind::SerialOnly("ROLLBACK")),
        b"SAVEPOINT" => Some(Kind::SerialOnly("SAVEPOINT")),
        b"UPDATE" | b"DELETE" | b"SELECT" | b"DO" | b"CALL" | b"EXECUTE" => of_before(&tokens),
        _ => None,
    };
    kind.unwrap_or(Kind::Exclusive)
}

/// The kind of an INSERT whose rows are not plain values.
pub fn classify_complex_insert(text: &[u8], dialect: Dialect) -> Kind {
    of_before(&Tokens::new(text, dialect)).unwrap_or(Kind::Exclusive)
}

fn of_before(tokens: &Tokens<'_>) -> Option<Kind> {
    tokens
        .any_of(OF_BEFORE)
        .then_some(Kind::SerialOnly("a function of the statement before, such as LAST_INSERT_ID()"))
}

fn insert(mut tokens: Tokens<'_>, replace: bool) -> Option<Insert> {
    let mut order_matters = replace;
    loop {
        if tokens.accept("IGNORE") {
            order_matters = true;
        } else if !(tokens.accept("LOW_PRIORITY")
            || tokens.accept("HIGH_PRIORITY")
            || tokens.accept("DELAYED"))
        {
            break;
        }
    }
    let _ = tokens.accept("INTO");
    let table = tokens.qualified()?;
    let mut columns = None;
    if tokens.accept_mark(b'(') {
        let mut names = Vec::new();
        while !tokens.accept_mark(b')') {
            names.push(tokens.name()?);
            let _ = tokens.accept_mark(b',');
        }
        columns = Some(names);
    }
    if !(tokens.accept("VALUES") || tokens.accept("VALUE")) {
        return None;
    }
    Some(Insert { table, columns, rows_at: tokens.at, order_matters })
}

fn set(tokens: &Tokens<'_>) -> Kind {
    if let Some(kind) = of_before(tokens) {
        return kind;
    }
    if tokens.peek().is_some_and(|token| token.is("AUTOCOMMIT"))
        && !tokens.clone().any(|token| token == Token::Mark(b','))
    {
        return Kind::Dropped;
    }
    // Of the server and not of the session, or only for one statement, or with a value that the tables decide.
    const ONCE: &[&str] = &["GLOBAL", "PERSIST", "PASSWORD", "ROLE", "STATEMENT", "SELECT", "DEFAULT_ROLE"];
    if tokens.peek().is_some_and(|token| token.is("DEFAULT")) || tokens.any_of(ONCE) {
        return Kind::Exclusive;
    }
    Kind::SessionState
}

fn create(mut tokens: Tokens<'_>, foreign_keys: bool) -> Option<Kind> {
    if tokens.accept("OR") {
        tokens.next();
    }
    if tokens.accept("TEMPORARY") {
        return Some(Kind::SerialOnly("CREATE TEMPORARY TABLE"));
    }
    if tokens.accept("TABLE") {
        if_exists(&mut tokens);
        let table = tokens.qualified()?;
        let own = tokens.peek() == Some(Token::Mark(b'('));
        let others = if foreign_keys {
            &["SELECT", "LIKE", "UNION", "REFERENCES"][..]
        } else {
            &["SELECT", "LIKE", "UNION"]
        };
        return (own && !tokens.any_of(others)).then_some(Kind::CreateTable(table));
    }
    // DEFINER=`root`@`localhost` and such may stand before.
    let mut ahead = tokens.clone();
    let what = ahead.by_ref().take(16).find(|token| token.is("TRIGGER") || token.is("VIEW"))?;
    if_exists(&mut ahead);
    let name = ahead.qualified()?;
    if what.is("VIEW") {
        // mariadb-dump's place holder: a view of constants under the name of a later one.
        return (!ahead.any_of(&["FROM", "JOIN", "TABLE"])
            && ahead.clone().all(|token| token != Token::Mark(b'(')))
        .then_some(Kind::Table(name));
    }
    ahead.by_ref().find(|token| token.is("ON"))?;
    Some(Kind::Table(ahead.qualified()?))
}

fn if_exists(tokens: &mut Tokens<'_>) {
    if tokens.accept("IF") {
        let _ = tokens.accept("NOT");
        let _ = tokens.accept("EXISTS");
    }
}

fn drop(mut tokens: Tokens<'_>, foreign_keys: bool) -> Option<Kind> {
    let table = tokens.accept("TABLE");
    if !table && !tokens.accept("VIEW") || table && foreign_keys {
        return None;
    }
    if_exists(&mut tokens);
    let name = tokens.qualified()?;
    // Several tables are several things to wait for.
    tokens.next().is_none().then_some(Kind::Table(name))
}

fn alter(mut tokens: Tokens<'_>) -> Option<Kind> {
    let _ = tokens.accept("IGNORE");
    if !tokens.accept("TABLE") {
        return None;
    }
    let table = tokens.qualified()?;
    if tokens.any_of(&["REFERENCES", "FOREIGN", "RENAME", "EXCHANGE", "UNION", "CONVERT"]) {
        return None;
    }
    Some(if tokens.accept("DISABLE") && tokens.accept("KEYS") && tokens.next().is_none() {
        Kind::DisableKeys(table)
    } else {
        Kind::Table(table)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        classify(text.as_bytes(), Dialect::OWN, false)
    }

    fn table(name: &str) -> TableName {
        (None, name.into())
    }

    #[test]
    fn what_concerns_one_table() {
        assert_eq!(kind("DROP TABLE IF EXISTS `a b`"), Kind::Table(table("a b")));
        assert_eq!(kind("/*!50001 DROP VIEW IF EXISTS `v`*/"), Kind::Table(table("v")));
        assert_eq!(kind("CREATE TABLE `t` (\n `select` int)"), Kind::CreateTable(table("t")));
        assert_eq!(
            kind("CREATE TABLE IF NOT EXISTS d.t (a int)"),
            Kind::CreateTable((Some(b"d".to_vec()), b"t".to_vec()))
        );
        assert_eq!(kind("/*!40000 ALTER TABLE `t` ENABLE KEYS */"), Kind::Table(table("t")));
        assert_eq!(kind("/*!40000 ALTER TABLE `t` DISABLE KEYS */"), Kind::DisableKeys(table("t")));
        assert_eq!(kind("ALTER TABLE `t` DISABLE KEYS, ADD c INT"), Kind::Table(table("t")));
        assert_eq!(kind("ALTER TABLE `t` ADD PRIMARY KEY (`id`)"), Kind::Table(table("t")));
        let trigger = "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `g` BEFORE INSERT ON `t` FOR EACH ROW BEGIN\nSET NEW.a=1; END */";
        assert_eq!(kind(trigger), Kind::Table(table("t")));
        assert_eq!(kind("/*!50001 CREATE VIEW `v` AS SELECT 1 AS `from`*/"), Kind::Table(table("v")));
    }

    #[test]
    fn what_concerns_more_waits_for_all() {
        for text in [
            "DROP TABLE a, b",
            "CREATE TABLE a LIKE b",
            "CREATE TABLE a (x int) SELECT 1",
            "CREATE TABLE a AS SELECT * FROM b",
            "RENAME TABLE a TO b",
            "ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (y)",
            "ALTER TABLE a RENAME TO b",
            "CREATE DATABASE x",
            "CREATE PROCEDURE p() SELECT LAST_INSERT_ID()",
            "SET GLOBAL a=1",
            "SET @x=(SELECT 1)",
            "/*!50001 CREATE VIEW v AS SELECT a FROM t */",
            "CREATE EVENT e ON SCHEDULE AT NOW() DO SELECT 1",
            "INSERT INTO t SELECT * FROM u",
            "INSERT t SET a=1",
            "UPDATE t SET a=1",
            "whatever",
            "",
            "`x`",
            "CREATE",
            "DROP",
            "ALTER",
            "INSERT",
            "CREATE VIEW v AS SELECT f()",
        ] {
            assert_eq!(kind(text), Kind::Exclusive, "{text}");
        }
        assert_eq!(classify(b"DROP TABLE a", Dialect::OWN, true), Kind::Exclusive);
        assert_eq!(classify(b"CREATE TABLE a (x int REFERENCES b (y))", Dialect::OWN, true), Kind::Exclusive);
    }

    #[test]
    fn sessions_and_transactions() {
        for text in [
            "SET NAMES utf8mb4",
            "/*!40101 SET @saved_cs_client     = @@character_set_client */",
            "/*!40014 SET @O=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */",
        ] {
            assert_eq!(kind(text), Kind::SessionState, "{text}");
        }
        for text in [
            "LOCK TABLES `a` WRITE",
            "UNLOCK TABLES",
            "BEGIN",
            "COMMIT",
            "START TRANSACTION",
            "SET AUTOCOMMIT = 0",
        ] {
            assert_eq!(kind(text), Kind::Dropped, "{text}");
        }
        assert_eq!(kind("USE `a`"), Kind::Use(b"a".to_vec()));
        for text in [
            "SET @a = LAST_INSERT_ID()",
            "ROLLBACK",
            "CREATE TEMPORARY TABLE a (b int)",
            "UPDATE t SET a = LAST_INSERT_ID()",
            "SET @x=@@identity",
        ] {
            assert!(matches!(kind(text), Kind::SerialOnly(_)), "{text}");
        }
    }

    #[test]
    fn heads_of_inserts() {
        let Kind::Insert(insert) = kind("INSERT /* x */ INTO `d`.`t` (`a`, b) VALUES\n(1,2)") else {
            panic!()
        };
        assert_eq!((insert.table.0.as_deref(), insert.table.1.as_slice()), (Some(&b"d"[..]), &b"t"[..]));
        assert_eq!(insert.columns, Some(vec![b"a".to_vec(), b"b".to_vec()]));
        assert!(!insert.order_matters);
        for text in ["REPLACE INTO t VALUES (1)", "INSERT LOW_PRIORITY IGNORE t VALUES (1)"] {
            assert!(matches!(kind(text), Kind::Insert(Insert { order_matters: true, .. })), "{text}");
        }
    }
}
