//! What a statement of a log is: the frame of a transaction, a definition and of what, or something else.

use std::ops::Range;
use teak_sql::charset::{Charset, Dialect};
use teak_sql::tokens::{Token, Tokens};

/// `sql_mode`, of both families.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

/// What a statement is.
#[derive(Debug, PartialEq)]
pub enum Statement {
    /// A transaction begins.
    Begin,
    /// It ends.
    Commit,
    /// It is taken back.
    Rollback,
    /// SAVEPOINT, and what goes back to one or forgets it.
    Savepoint,
    /// Of an XA transaction, and its name.
    Xa(Xa, String),
    /// It changes definitions.
    Definition(Definition),
    /// It changes nothing that is followed: why.
    PassedOver(&'static str),
    /// It changes rows, and the log does not have these.
    Rows,
    /// None of them.
    Unknown,
}

/// What happens to an XA transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xa {
    /// It begins.
    Start,
    /// All of it has come.
    End,
    /// What was prepared is committed.
    Commit,
    /// What was prepared is rolled back.
    Rollback,
}

/// A statement that changes definitions.
#[derive(Debug, PartialEq)]
pub struct Definition {
    /// What it names: of tables that are renamed both names.
    pub objects: Vec<Object>,
    /// What a restart makes of it.
    pub repeat: Repeat,
    /// It is about something that has a query or a routine.
    pub has_body: bool,
    /// Where it names tables, in the order of its text.
    pub mentions: Vec<Mention>,
}

/// A place at which a statement names a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// None: the default database.
    pub database: Option<Vec<u8>>,
    /// The table.
    pub name: Vec<u8>,
    /// The name's bytes in the statement, with that of the database if there is one.
    pub place: Range<usize>,
}

/// Something that is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// As `SHOW CREATE` has it. Views and sequences are tables to it.
    pub kind: &'static str,
    /// None: the default database.
    pub database: Option<Vec<u8>>,
    /// Of a database empty.
    pub name: Vec<u8>,
}

/// How to find out whether a statement was carried out when its end was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// No need: a second time does no harm, and that something is gone already is no error.
    Harmless,
    /// If its objects are defined as before, it was not, or a second time does no harm.
    ByDefinitions,
    /// Tables change places, and a second time would change them back: a table of our own, which the same statement
    /// renames, tells.
    ByMark,
    /// Definitions are the same before and after, and a second time would take the first one back.
    Unclear,
}

/// How the strings of a statement are written.
pub fn dialect(sql_mode: u64, character_set: Option<&str>) -> Dialect {
    Dialect {
        backslash: sql_mode & NO_BACKSLASH_ESCAPES == 0,
        ansi_quotes: sql_mode & ANSI_QUOTES != 0,
        charset: character_set.map_or(Charset::Plain, Charset::named),
    }
}

/// Tells what a statement is.
pub fn classify(text: &[u8], dialect: Dialect) -> Statement {
    let mut tokens = Tokens::new(text, dialect);
    if tokens.clone().next().is_some_and(|token| token.is("SET")) {
        let mut ahead = tokens.clone().skip(1);
        if !ahead.next().is_some_and(|token| token.is("STATEMENT")) {
            return Statement::PassedOver("it is about passwords or roles");
        }
        if !tokens.by_ref().any(|token| token.is("FOR")) {
            return Statement::Unknown;
        }
    }
    let Some(Token::Word(first)) = tokens.next() else { return Statement::Unknown };
    match first.to_ascii_uppercase().as_slice() {
        b"BEGIN" => Statement::Begin,
        b"START" if tokens.accept("TRANSACTION") => Statement::Begin,
        b"COMMIT" => Statement::Commit,
        b"ROLLBACK" => match tokens.any_of(&["TO"]) {
            true => Statement::Savepoint,
            false => Statement::Rollback,
        },
        b"SAVEPOINT" | b"RELEASE" => Statement::Savepoint,
        b"XA" => xa(tokens),
        b"CREATE" => create(tokens),
        b"ALTER" => alter(tokens),
        b"DROP" => drop(tokens),
        b"RENAME" => rename(tokens),
        b"TRUNCATE" => {
            let _ = tokens.accept("TABLE");
            one("TABLE", tokens, Repeat::Harmless)
        }
        b"ANALYZE" | b"OPTIMIZE" | b"REPAIR" | b"CHECK" | b"FLUSH" | b"RESET" | b"PURGE" => {
            Statement::PassedOver("it changes neither rows nor definitions")
        }
        b"GRANT" | b"REVOKE" => Statement::PassedOver("it is about accounts"),
        b"INSTALL" | b"UNINSTALL" => Statement::PassedOver("it is about plugins"),
        b"INSERT" | b"REPLACE" | b"UPDATE" | b"DELETE" | b"LOAD" | b"CALL" | b"DO" | b"SELECT" | b"WITH"
        | b"EXECUTE" => Statement::Rows,
        _ => Statement::Unknown,
    }
}

/// A name is the rest of the statement, as logs have it: `X'78',X'79',9`.
fn xa(mut tokens: Tokens<'_>) -> Statement {
    let steps = [
        ("START", Xa::Start),
        ("BEGIN", Xa::Start),
        ("END", Xa::End),
        ("COMMIT", Xa::Commit),
        ("ROLLBACK", Xa::Rollback),
    ];
    let Some((_, step)) = steps.into_iter().find(|(word, _)| tokens.accept(word)) else {
        return Statement::Unknown;
    };
    let name = String::from_utf8_lossy(&tokens.text[tokens.at..]);
    let is_name = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'X' | b'\'' | b',');
    match name.trim() {
        name if !name.is_empty() && name.bytes().all(is_name) => Statement::Xa(step, name.to_string()),
        _ => Statement::Unknown,
    }
}

const ACCOUNTS: Statement = Statement::PassedOver("it is about accounts");
const EVENTS: Statement = Statement::PassedOver("events would act twice, at the source and here");
const TEMPORARY: Statement = Statement::PassedOver("it is about a temporary table");

/// The keyword that says what is made, changed or dropped, behind what may stand before it.
fn kind_of(tokens: &mut Tokens<'_>) -> Option<&'static str> {
    const KINDS: [&str; 15] = [
        "TEMPORARY",
        "TABLE",
        "TABLES",
        "VIEW",
        "SEQUENCE",
        "TRIGGER",
        "PROCEDURE",
        "FUNCTION",
        "EVENT",
        "INDEX",
        "DATABASE",
        "SCHEMA",
        "USER",
        "ROLE",
        "PACKAGE",
    ];
    let mut previous = None;
    for token in tokens.by_ref() {
        // A definer may be the current user, or a role.
        let is_definer = previous == Some(Token::Mark(b'='));
        if let Some(kind) = KINDS.into_iter().find(|kind| !is_definer && token.is(kind)) {
            return Some(kind);
        }
        previous = Some(token);
    }
    None
}

/// Of statements about one or several objects of a kind that `SHOW CREATE` has; None if it has not.
fn shown_as(kind: &'static str) -> Option<&'static str> {
    match kind {
        "TABLE" | "TABLES" | "VIEW" | "SEQUENCE" => Some("TABLE"),
        "DATABASE" | "SCHEMA" => Some("DATABASE"),
        "TRIGGER" | "PROCEDURE" | "FUNCTION" => Some(kind),
        _ => None,
    }
}

fn passed_over(kind: &str) -> Statement {
    match kind {
        "EVENT" => EVENTS,
        "USER" | "ROLE" => ACCOUNTS,
        "TEMPORARY" => TEMPORARY,
        _ => Statement::Unknown,
    }
}

fn if_exists(tokens: &mut Tokens<'_>) {
    if tokens.accept("IF") {
        let _ = tokens.accept("NOT");
        let _ = tokens.accept("EXISTS");
    }
}

/// An object that is named next; a table is one of the `mentions` as well.
fn object(kind: &'static str, tokens: &mut Tokens<'_>, mentions: &mut Vec<Mention>) -> Option<Object> {
    if kind == "DATABASE" {
        return Some(Object { kind, database: Some(tokens.name()?), name: Vec::new() });
    }
    let from = tokens.begin_of_next();
    let (database, name) = tokens.qualified()?;
    if kind == "TABLE" {
        mentions.push(Mention { database: database.clone(), name: name.clone(), place: from..tokens.at });
    }
    Some(Object { kind, database, name })
}

fn one(kind: &'static str, mut tokens: Tokens<'_>, repeat: Repeat) -> Statement {
    if_exists(&mut tokens);
    let mut mentions = Vec::new();
    let Some(object) = object(kind, &mut tokens, &mut mentions) else { return Statement::Unknown };
    if kind == "TABLE" {
        others(tokens, &object, &mut mentions);
    }
    Statement::Definition(Definition { objects: vec![object], repeat, has_body: false, mentions })
}

/// The tables that the definition of one names behind it: the one that it is made like, and those that it refers to.
fn others(mut tokens: Tokens<'_>, table: &Object, mentions: &mut Vec<Mention>) {
    let mut ahead = tokens.clone();
    let _ = ahead.accept_mark(b'(');
    if ahead.accept("LIKE") {
        let _ = object("TABLE", &mut ahead, mentions);
        return;
    }
    while tokens.any(|token| token.is("REFERENCES")) {
        reference(&mut tokens, table, mentions);
    }
}

/// Behind REFERENCES: without a database that of the table that has the key.
fn reference(tokens: &mut Tokens<'_>, table: &Object, mentions: &mut Vec<Mention>) {
    if object("TABLE", tokens, mentions).is_some() {
        if let Some(parent) = mentions.last_mut().filter(|parent| parent.database.is_none()) {
            parent.database.clone_from(&table.database);
        }
    }
}

/// `INDEX name [USING kind] ON table`, or ALTER DATABASE without a name, are about a table, and the default database.
fn index(mut tokens: Tokens<'_>) -> Statement {
    match tokens.any(|token| token.is("ON")) {
        true => one("TABLE", tokens, Repeat::ByDefinitions),
        false => Statement::Unknown,
    }
}

fn create(mut tokens: Tokens<'_>) -> Statement {
    let replaces = tokens.accept("OR");
    let Some(kind) = kind_of(&mut tokens) else { return Statement::Unknown };
    let repeat = if replaces { Repeat::Harmless } else { Repeat::ByDefinitions };
    match (kind, shown_as(kind)) {
        ("INDEX", _) => index(tokens),
        (made, Some(kind)) => with_body(made, one(kind, tokens, repeat)),
        (other, None) => passed_over(other),
    }
}

/// The statement about something of this kind; some of them have more than definitions of columns.
fn with_body(kind: &str, statement: Statement) -> Statement {
    let has_body = matches!(kind, "VIEW" | "TRIGGER" | "PROCEDURE" | "FUNCTION");
    match statement {
        Statement::Definition(definition) => Statement::Definition(Definition { has_body, ..definition }),
        other => other,
    }
}

fn alter(mut tokens: Tokens<'_>) -> Statement {
    let Some(changed) = kind_of(&mut tokens) else { return Statement::Unknown };
    let Some(kind) = shown_as(changed) else { return passed_over(changed) };
    if changed != "TABLE" {
        return with_body(changed, one(kind, tokens, Repeat::Harmless));
    }
    if_exists(&mut tokens);
    let mut mentions = Vec::new();
    let Some(table) = object("TABLE", &mut tokens, &mut mentions) else { return Statement::Unknown };
    let mut objects = vec![table.clone()];
    let mut repeat = Repeat::ByDefinitions;
    let mut rest = tokens;
    // EXCHANGE PARTITION p WITH TABLE, CONVERT PARTITION p TO TABLE, CONVERT TABLE: the rows of another table.
    let mut moves_rows = false;
    while let Some(token) = rest.next() {
        if token.is("REFERENCES") {
            reference(&mut rest, &table, &mut mentions);
        }
        if token.is("EXCHANGE") && rest.peek().is_some_and(|next| next.is("PARTITION")) {
            repeat = Repeat::Unclear;
            moves_rows = true;
        }
        moves_rows |= token.is("CONVERT") && !rest.peek().is_some_and(|next| next.is("TO"));
        if moves_rows && token.is("TABLE") {
            objects.extend(object("TABLE", &mut rest, &mut mentions));
            moves_rows = false;
        }
        let parts = ["COLUMN", "INDEX", "KEY"];
        if token.is("RENAME") && !rest.peek().is_some_and(|next| parts.iter().any(|part| next.is(part))) {
            let _ = rest.accept("TO") || rest.accept("AS") || rest.accept_mark(b'=');
            objects.extend(object("TABLE", &mut rest, &mut mentions));
        }
    }
    Statement::Definition(Definition { objects, repeat, has_body: false, mentions })
}

fn drop(mut tokens: Tokens<'_>) -> Statement {
    let Some(kind) = kind_of(&mut tokens) else { return Statement::Unknown };
    let (dropped, kind) = match (kind, shown_as(kind)) {
        ("INDEX", _) => return index(tokens),
        (dropped, Some(kind)) => (dropped, kind),
        (other, None) => return passed_over(other),
    };
    if_exists(&mut tokens);
    let (mut objects, mut mentions) = (Vec::new(), Vec::new());
    loop {
        match object(kind, &mut tokens, &mut mentions) {
            Some(object) => objects.push(object),
            None => return Statement::Unknown,
        }
        if !tokens.accept_mark(b',') {
            let repeat = Repeat::Harmless;
            let definition = Definition { objects, repeat, has_body: false, mentions };
            return with_body(dropped, Statement::Definition(definition));
        }
    }
}

fn rename(mut tokens: Tokens<'_>) -> Statement {
    if tokens.accept("USER") {
        return ACCOUNTS;
    }
    if !(tokens.accept("TABLE") || tokens.accept("TABLES")) {
        return Statement::Unknown;
    }
    if_exists(&mut tokens);
    let (mut from, mut to, mut mentions) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let Some(old) = object("TABLE", &mut tokens, &mut mentions) else { return Statement::Unknown };
        // NOWAIT, or WAIT and a number.
        if !tokens.any(|token| token.is("TO")) {
            return Statement::Unknown;
        }
        let Some(new) = object("TABLE", &mut tokens, &mut mentions) else { return Statement::Unknown };
        from.push(old);
        to.push(new);
        if !tokens.accept_mark(b',') {
            break;
        }
    }
    // If each name is there before and after, tables have changed places.
    let repeat = match from.iter().all(|old| to.contains(old)) {
        true => Repeat::ByMark,
        false => Repeat::ByDefinitions,
    };
    for object in to {
        if !from.contains(&object) {
            from.push(object);
        }
    }
    Statement::Definition(Definition { objects: from, repeat, has_body: false, mentions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Statement {
        classify(text.as_bytes(), dialect(0, None))
    }

    /// The objects as kind, database, name, and how it is repeated.
    fn definition(text: &str) -> (Vec<String>, Repeat) {
        let Statement::Definition(definition) = of(text) else { panic!("{text}: {:?}", of(text)) };
        let shown = definition.objects.iter().map(|object| {
            let database = object.database.as_deref().unwrap_or_default();
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            format!("{} {}.{}", object.kind, text(database), text(&object.name))
        });
        (shown.collect(), definition.repeat)
    }

    #[test]
    fn definitions_name_their_objects() {
        use Repeat::{ByDefinitions, ByMark, Harmless, Unclear};
        for (text, objects, repeat) in [
            ("CREATE TABLE IF NOT EXISTS `a`.`b c` (x int)", &["TABLE a.b c"][..], ByDefinitions),
            ("/* x */ create or replace table t like u", &["TABLE .t"], Harmless),
            (
                "CREATE DEFINER=`root`@`table` SQL SECURITY DEFINER VIEW v AS SELECT 1",
                &["TABLE .v"],
                ByDefinitions,
            ),
            (
                "CREATE DEFINER=role TRIGGER a.t BEFORE INSERT ON x FOR EACH ROW SET @a = 1",
                &["TRIGGER a.t"],
                ByDefinitions,
            ),
            ("CREATE UNIQUE INDEX i USING BTREE ON d.t (a)", &["TABLE d.t"], ByDefinitions),
            ("DROP INDEX IF EXISTS i ON t", &["TABLE .t"], ByDefinitions),
            ("CREATE DATABASE `d`", &["DATABASE d."], ByDefinitions),
            (
                "DROP TABLE IF EXISTS `a`,`b`.`c` /* generated by server */",
                &["TABLE .a", "TABLE b.c"],
                Harmless,
            ),
            ("ALTER IGNORE TABLE t ADD COLUMN a INT, RENAME INDEX i TO j", &["TABLE .t"], ByDefinitions),
            ("ALTER TABLE t RENAME d.u", &["TABLE .t", "TABLE d.u"], ByDefinitions),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", &["TABLE .t", "TABLE .u"], Unclear),
            ("ALTER TABLE t CONVERT PARTITION p TO TABLE d.u", &["TABLE .t", "TABLE d.u"], ByDefinitions),
            ("ALTER TABLE t CONVERT TABLE u TO PARTITION p", &["TABLE .t", "TABLE .u"], ByDefinitions),
            ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", &["TABLE .t"], ByDefinitions),
            ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t FORCE", &["TABLE .t"], ByDefinitions),
            ("RENAME TABLE t TO _old, _new TO t", &["TABLE .t", "TABLE ._new", "TABLE ._old"], ByDefinitions),
            ("RENAME TABLE a TO x, b TO a, x TO b", &["TABLE .a", "TABLE .b", "TABLE .x"], ByMark),
            ("TRUNCATE d.t", &["TABLE d.t"], Harmless),
        ] {
            let objects = objects.iter().map(|object| object.to_string()).collect();
            assert_eq!(definition(text), (objects, repeat), "{text}");
        }
    }

    #[test]
    fn frames_and_rows_and_what_is_passed_over_are_told() {
        for (text, wanted) in [
            ("BEGIN", Statement::Begin),
            ("COMMIT", Statement::Commit),
            ("ROLLBACK", Statement::Rollback),
            ("ROLLBACK TO `s`", Statement::Savepoint),
            ("SAVEPOINT `s`", Statement::Savepoint),
            ("XA END X'78',X'',1", Statement::Xa(Xa::End, "X'78',X'',1".into())),
            ("XA COMMIT  X'78',X'79',9 ", Statement::Xa(Xa::Commit, "X'78',X'79',9".into())),
            ("XA COMMIT X'78',X'79',9 ONE PHASE", Statement::Unknown),
            ("XA RECOVER", Statement::Unknown),
            ("insert into t values (1)", Statement::Rows),
            ("LOAD DATA INFILE 'x' INTO TABLE t", Statement::Rows),
            ("GRANT ALL ON *.* TO x", ACCOUNTS),
            ("DROP USER x", ACCOUNTS),
            ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", EVENTS),
            ("DROP TEMPORARY TABLE IF EXISTS `t`", TEMPORARY),
            ("SET PASSWORD FOR x = 'y'", Statement::PassedOver("it is about passwords or roles")),
            ("CREATE SERVER s FOREIGN DATA WRAPPER mysql", Statement::Unknown),
            ("FROBNICATE", Statement::Unknown),
            ("", Statement::Unknown),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }
}
