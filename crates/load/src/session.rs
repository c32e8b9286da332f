//! The session that the dump's SET and USE statements make, on as many connections as there are.
//!
//! The main connection carries out these statements themselves, in their order. Which variables they changed is read
//! out of the statement, and what they are then, out of the main connection. A worker is brought to the same values
//! when it gets work that was met under them: whatever order it gets its work in, it never has to go back.

use std::collections::BTreeMap;
use std::sync::Arc;
use teak_client::{Connection, Error};
use teak_sql::charset::{Charset, Dialect};
use teak_sql::quoting::{literal, quoted_name};
use teak_sql::tokens::{Token, Tokens};

/// What a new connection is like: by its options, and by what the server makes of them (`init_connect`,
/// `character_set_client_handshake`).
#[derive(Debug, PartialEq)]
pub struct Initial {
    sql_mode: String,
    character_set: String,
}

impl Initial {
    /// Without a server: what the options say, and the modes that a server has if nothing is set.
    pub fn of_options(character_set: &str) -> Arc<Initial> {
        Arc::new(Initial { sql_mode: String::new(), character_set: character_set.to_string() })
    }

    /// As this new connection is.
    pub fn ask(connection: &mut Connection) -> Result<Arc<Initial>, Error> {
        let mut value =
            |name: &str| connection.value(format!("SELECT @@SESSION.{name}")).map(Option::unwrap_or_default);
        let (sql_mode, character_set) = (value("sql_mode")?, value("character_set_client")?);
        Ok(Arc::new(Initial { sql_mode, character_set }))
    }
}

/// What a connection must be like for a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    pub database: Option<Vec<u8>>,
    initial: Arc<Initial>,
    /// Session variables that the dump has set, with their values; sorted, since a character set must come before its
    /// collation.
    variables: Arc<BTreeMap<String, Option<Vec<u8>>>>,
}

impl SessionState {
    /// At the beginning of a source.
    pub fn new(database: Option<Vec<u8>>, initial: Arc<Initial>) -> SessionState {
        SessionState { database, initial, variables: Arc::default() }
    }

    /// Reads back what `statement`, which was just carried out on `main`, has set.
    pub fn update(&mut self, statement: &[u8], dialect: Dialect, main: &mut Connection) -> Result<(), Error> {
        for name in variables_of(statement, dialect).into_iter().filter(|name| name != "autocommit") {
            let value = match main.query(format!("SELECT @@SESSION.{name}")) {
                Ok(rows) => rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten(),
                // Unknown to this server, so it did not read this part of a versioned comment either.
                Err(Error::Server { .. }) => continue,
                Err(error) => return Err(error),
            };
            if self.variables.get(&name) != Some(&value) {
                Arc::make_mut(&mut self.variables).insert(name, value);
            }
        }
        Ok(())
    }

    /// Whether the statement, perhaps among others, sets `autocommit`: the loader makes its own transactions.
    pub fn sets_autocommit(statement: &[u8], dialect: Dialect) -> bool {
        variables_of(statement, dialect).iter().any(|name| name == "autocommit")
    }

    /// For a run without a server: what the text alone tells.
    pub fn guess(&mut self, statement: &[u8]) {
        let text = String::from_utf8_lossy(statement).to_ascii_lowercase();
        let mut insert = |name: &str, value: &str| {
            Arc::make_mut(&mut self.variables).insert(name.into(), Some(value.as_bytes().to_vec()));
        };
        if let Some(names) = text.split("names ").nth(1) {
            insert(
                "character_set_client",
                names.trim_matches(|c: char| !c.is_alphanumeric()).split(' ').next().unwrap_or(""),
            );
        }
        if text.contains("sql_mode") && text.contains('\'') {
            insert("sql_mode", &text.to_ascii_uppercase());
        }
    }

    /// The value of a variable that the dump has set.
    fn get(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name)?.as_deref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// How strings are written: as the dump has set it, or as the connection began.
    pub fn dialect(&self) -> Dialect {
        let mode = self.get("sql_mode").unwrap_or_else(|| self.initial.sql_mode.clone());
        let has = |flag: &str| mode.split([',', '\'', ' ', '=', '"']).any(|part| part == flag);
        let charset = self.get("character_set_client").unwrap_or_else(|| self.initial.character_set.clone());
        Dialect {
            backslash: !has("NO_BACKSLASH_ESCAPES"),
            ansi_quotes: has("ANSI_QUOTES") || has("ANSI"),
            charset: Charset::named(&charset),
        }
    }

    /// Whether foreign keys are checked; they are unless the dump says not.
    pub fn checks_foreign_keys(&self) -> bool {
        self.get("foreign_key_checks").is_none_or(|value| value != "0" && !value.eq_ignore_ascii_case("off"))
    }

    /// What brings a connection from `before` to this session. `None`: only a new connection can be brought there.
    pub fn changes_from(&self, before: &SessionState) -> Option<Vec<Vec<u8>>> {
        let forgotten = before.variables.keys().any(|name| !self.variables.contains_key(name));
        if forgotten || (self.database.is_none() && before.database.is_some()) {
            return None;
        }
        let mut statements = Vec::new();
        if let Some(database) = self.database.as_ref().filter(|_| self.database != before.database) {
            statements.push([b"USE ", &quoted_name(database)[..]].concat());
        }
        if !Arc::ptr_eq(&self.variables, &before.variables) {
            let changed =
                self.variables.iter().filter(|(name, value)| before.variables.get(*name) != Some(value));
            let mut list = Vec::new();
            for (name, value) in changed {
                list.extend_from_slice(if list.is_empty() { b"SET SESSION " } else { b", SESSION " });
                list.extend_from_slice(name.as_bytes());
                list.push(b'=');
                list.extend_from_slice(&assigned(value.as_deref()));
            }
            statements.extend((!list.is_empty()).then_some(list));
        }
        Some(statements)
    }
}

/// A value as it stands after `SET x =`.
fn assigned(value: Option<&[u8]>) -> Vec<u8> {
    let Some(value) = value else { return b"NULL".to_vec() };
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let number = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && digits.iter().filter(|&&byte| byte == b'.').count() < 2;
    if number {
        return value.to_vec();
    }
    literal(value).into_bytes()
}

/// The session variables that a SET statement assigns to.
fn variables_of(statement: &[u8], dialect: Dialect) -> Vec<String> {
    let mut tokens = Tokens::new(statement, dialect);
    let mut found = Vec::new();
    if !tokens.accept("SET") {
        return found;
    }
    loop {
        found.extend(target(&mut tokens).into_iter().map(str::to_ascii_lowercase));
        let mut depth = 0;
        loop {
            match tokens.next() {
                None => {
                    found.sort();
                    found.dedup();
                    return found;
                }
                Some(Token::Mark(b'(')) => depth += 1,
                Some(Token::Mark(b')')) => depth -= 1,
                Some(Token::Mark(b',')) if depth == 0 => break,
                Some(_) => {}
            }
        }
    }
}

/// The variables of one assignment, none for a user's variable.
fn target<'a>(tokens: &mut Tokens<'a>) -> Vec<&'a str> {
    const OF_NAMES: &[&str] = &[
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "collation_connection",
    ];
    if tokens.accept_mark(b'@') {
        if !tokens.accept_mark(b'@') {
            return Vec::new();
        }
        let mut ahead = tokens.clone();
        if (ahead.accept("SESSION") || ahead.accept("LOCAL")) && ahead.accept_mark(b'.') {
            *tokens = ahead;
        }
    } else if tokens.accept("SESSION") || tokens.accept("LOCAL") {
    } else if tokens.accept("NAMES") || tokens.accept("CHARSET") {
        return OF_NAMES.to_vec();
    }
    let Some(Token::Word(word)) = tokens.next() else { return Vec::new() };
    if word.eq_ignore_ascii_case(b"CHARACTER") && tokens.accept("SET") {
        return OF_NAMES.to_vec();
    }
    if word.eq_ignore_ascii_case(b"TRANSACTION") {
        return vec!["tx_isolation", "tx_read_only"];
    }
    Vec::from_iter(std::str::from_utf8(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statement: &str) -> Vec<String> {
        variables_of(statement.as_bytes(), Dialect::OWN)
    }

    #[test]
    fn variables_that_are_set() {
        assert_eq!(of("SET NAMES utf8mb4").len(), 4);
        assert_eq!(of("/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='a,b=c' */"), ["sql_mode"]);
        assert_eq!(of("SET @saved = @@character_set_client"), [""; 0]);
        assert_eq!(
            of("SET @@session.time_zone = '+00:00', LOCAL a := f(1, b=2), @@x=1"),
            ["a", "time_zone", "x"]
        );
        assert_eq!(of("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"), ["tx_isolation", "tx_read_only"]);
        assert_eq!(of("SET"), [""; 0]);
        assert!(SessionState::sets_autocommit(
            b"SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0",
            Dialect::OWN
        ));
    }

    fn session(database: &str, variables: &[(&str, &str)]) -> SessionState {
        let variables = variables
            .iter()
            .map(|(name, value)| (name.to_string(), Some(value.as_bytes().to_vec())))
            .collect();
        let variables = Arc::new(variables);
        SessionState { database: Some(database.into()), initial: Initial::of_options("utf8mb4"), variables }
    }

    #[test]
    fn a_connection_gets_only_what_differs() {
        let before = session("a", &[("x", "1"), ("y", "2")]);
        assert_eq!(before.changes_from(&before), Some(vec![]));
        let after = session("a`b", &[("x", "1"), ("y", "+1"), ("z", "-1.5")]);
        let changes = after.changes_from(&before).unwrap();
        assert_eq!(changes, [&b"USE `a``b`"[..], b"SET SESSION y=_utf8mb4 x'2b31', SESSION z=-1.5"]);
        assert_eq!(before.changes_from(&after), None);
    }

    #[test]
    fn dialects_follow_the_session() {
        let began = |variables: &[(&str, &str)]| {
            let initial = Initial { sql_mode: "X,NO_BACKSLASH_ESCAPES".into(), character_set: "gbk".into() };
            SessionState { initial: Arc::new(initial), ..session("a", variables) }.dialect()
        };
        assert_eq!(session("a", &[]).dialect(), Dialect::OWN);
        assert!(!began(&[]).backslash && began(&[]).charset == Charset::Gbk);
        assert!(began(&[("sql_mode", "ANSI_QUOTES")]).ansi_quotes);
        assert!(began(&[("sql_mode", "ANSI_QUOTES")]).backslash);
        assert_eq!(began(&[("character_set_client", "sjis")]).charset, Charset::Sjis);
        assert_eq!(began(&[("character_set_client", "utf8mb4")]).charset, Charset::Plain);
        assert!(
            session("a", &[]).checks_foreign_keys()
                && !session("a", &[("foreign_key_checks", "0")]).checks_foreign_keys()
        );
    }
}
