//! `--into`: a dump of one database goes into another. Only for directories of mydumper: there names of files say which
//! database they are for, and statements do not. One that does is refused, so that nothing goes where it came from.

use super::error::LoadError;
use super::input::{self, Source};
use std::io::Read;
use std::sync::Arc;
use teak_sql::charset::Dialect;
use teak_sql::quoting::quoted_name;
use teak_sql::statement::Kind;
use teak_sql::tokens::{Token, Tokens};

/// Where all files of a directory go, and the statement that makes the database.
#[derive(Debug)]
pub struct Redirected {
    pub sources: Vec<Source>,
    pub create: Vec<u8>,
}

/// `-D` means something else: it does not move what has a database of its own.
pub fn refuse_other_default(sources: &[Source], database: Option<&str>) -> Result<(), LoadError> {
    let Some(database) = database else { return Ok(()) };
    let dumped = sources.iter().filter_map(|source| source.of_mydumper.as_deref());
    match dumped.into_iter().find(|dumped| *dumped != database) {
        None => Ok(()),
        Some(dumped) => Err(LoadError::Usage(format!(
            "the files of this directory are for the database {dumped}: --into={database} loads them there; without \
             --database they go into {dumped}"
        ))),
    }
}

/// Sends the files of a directory of mydumper to `database`.
pub fn redirect(sources: Vec<Source>, database: &str) -> Result<Redirected, LoadError> {
    let mut dumped: Vec<&str> = Vec::new();
    for source in &sources {
        let Some(name) = source.of_mydumper.as_deref() else {
            let detail =
                "--into is for directories of mydumper; other dumps go where --database says, unless their \
                          statements name a database";
            return Err(LoadError::Usage(format!("{}: {detail}", source.name)));
        };
        if !dumped.contains(&name) {
            dumped.push(name);
        }
    }
    if dumped.len() > 1 {
        return Err(LoadError::Usage(format!("the dump is of several databases: {}", dumped.join(", "))));
    }
    let mut create = [b"CREATE DATABASE IF NOT EXISTS ", &quoted_name(database.as_bytes())[..]].concat();
    let (makes, mut sources): (Vec<_>, Vec<_>) = sources.into_iter().partition(Source::makes_database);
    for source in makes {
        create.extend_from_slice(&settings_of(&source)?);
    }
    for source in &mut sources {
        source.database = Some(database.to_string());
    }
    Ok(Redirected { sources, create })
}

/// What the dump says behind the name of its database: the character set.
fn settings_of(source: &Source) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error| LoadError::Read { name: source.name.clone(), error };
    let mut text = Vec::new();
    let mut input = input::open(source, Arc::default()).map_err(unreadable)?;
    input.read_to_end(&mut text).map_err(unreadable)?;
    let mut tokens = Tokens::new(&text, Dialect::OWN);
    let found = tokens.accept("CREATE") && (tokens.accept("DATABASE") || tokens.accept("SCHEMA"));
    let _ = tokens.accept("IF") && tokens.accept("NOT") && tokens.accept("EXISTS");
    if !found || tokens.name().is_none() {
        return Err(LoadError::Usage(format!("{}: it does not begin with CREATE DATABASE", source.name)));
    }
    let begin = tokens.at;
    // A comment of the database may have semicolons.
    let end = tokens.by_ref().find(|token| *token == Token::Mark(b';')).map_or(text.len(), |_| tokens.at - 1);
    Ok(text[begin..end].to_vec())
}

/// Whether a statement says by itself that it is about the database.
pub fn names_database(text: &[u8], kind: &Kind, dialect: Dialect, database: &str) -> bool {
    let is = |name: &[u8]| name.eq_ignore_ascii_case(database.as_bytes());
    match kind {
        Kind::Use(name) => is(name),
        Kind::Insert(insert) => insert.table.0.as_deref().is_some_and(is),
        _ => {
            let mut tokens = Tokens::new(text, dialect);
            while let Some(token) = tokens.next() {
                let named = match &token {
                    Token::Word(word) => is(word),
                    Token::Name(name) => is(name),
                    _ => false,
                };
                if named && tokens.peek() == Some(Token::Mark(b'.')) {
                    return true;
                }
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_sql::statement::classify;

    #[test]
    fn statements_that_name_the_database_are_found() {
        let names = |text: &str| {
            let kind = classify(text.as_bytes(), Dialect::OWN, false);
            names_database(text.as_bytes(), &kind, Dialect::OWN, "wp")
        };
        for text in ["USE `wp`", "INSERT INTO wp.t VALUES (1)", "CREATE VIEW v AS SELECT a FROM `wp` . `t`"] {
            assert!(names(text), "{text}");
        }
        for text in
            ["INSERT INTO t VALUES ('wp.t')", "CREATE TABLE wp (a INT)", "CREATE VIEW v AS SELECT wp FROM w"]
        {
            assert!(!names(text), "{text}");
        }
    }
}
