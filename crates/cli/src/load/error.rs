//! Why a load failed: each names the place in the input.

use std::fmt;
use teak_client as client;
use teak_sql::splitter::SplitError;

/// Of a statement this much is shown.
const SHOWN: usize = 150;
/// Of statements that are left to be done, so many.
const STATEMENTS: usize = 20;

/// Where a statement begins, and how.
#[derive(Debug, Clone)]
pub struct Place {
    pub source: String,
    pub line: u64,
    pub begin: String,
}

impl Place {
    pub fn new(source: &str, line: u64, text: &[u8]) -> Place {
        let shown = on_one_line(&text[..text.len().min(SHOWN)]);
        let begin = if text.len() > SHOWN { format!("{shown}...") } else { shown };
        Place { source: source.to_string(), line, begin }
    }
}

/// As text on one line that does nothing to a terminal: bytes of no character, and characters that control something,
/// are escaped, white space is one blank.
fn on_one_line(text: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                ' ' | '\t' | '\r' | '\n' if shown.ends_with(' ') => {}
                '\t' | '\r' | '\n' => shown.push(' '),
                _ if character.is_control() => shown.extend(character.escape_default()),
                _ => shown.push(character),
            }
        }
        shown.push_str(&chunk.invalid().escape_ascii().to_string());
    }
    shown
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.source, self.line, self.begin)
    }
}

/// Why a load, or a statement of it, failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{name}: cannot read: {error}")]
    Read { name: String, error: std::io::Error },
    #[error("{name}, {error}")]
    Split { name: String, error: SplitError },
    #[error("{error}\n  in {place}")]
    Statement { place: Place, error: client::Error },
    #[error(
        "{what} of {size} bytes is longer than the server takes: its max_allowed_packet is {limit}\n  in {place}"
    )]
    TooLong { what: &'static str, size: usize, limit: usize, place: Place },
    #[error("{what} works only on one connection: load this dump with --serial\n  in {place}")]
    SerialOnly { what: &'static str, place: Place },
    #[error("a statement names the database {database}, and --into another\n  in {place}")]
    OtherDatabase { database: String, place: Place },
    #[error("{0}")]
    Server(#[from] client::Error),
    #[error("{0}")]
    Usage(String),
    #[error("{0} of the dump's statements failed and were skipped")]
    Skipped(u64),
    #[error("interrupted")]
    Interrupted,
    #[error(
        "{error}\n  what was loaded stays; --resume goes on from here (the records for that are in the database teak_load){}",
        missing_keys(missing)
    )]
    Unfinished { error: Box<LoadError>, missing: Vec<String> },
    #[error("nothing to resume: of these files no load into this database has begun that did not end well")]
    NothingToResume,
    #[error("the check found differences in {0} tables")]
    Different(usize),
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// Another thread failed, and tells why.
    #[error("stopped")]
    Stopped,
}

/// What is said of statements that give tables their keys back.
fn missing_keys(statements: &[String]) -> String {
    if statements.is_empty() {
        return String::new();
    }
    let mut text = "; until then keys are missing, which these statements build:".to_string();
    statements.iter().take(STATEMENTS).for_each(|statement| text.push_str(&format!("\n    {statement};")));
    if statements.len() > STATEMENTS {
        text.push_str(&format!("\n    and {} more, in teak_load.deferred", statements.len() - STATEMENTS));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_statement_is_one_line_without_control_characters() {
        let shown = |text: &[u8]| Place::new("d.sql", 1, text).begin;
        assert_eq!(shown(b"INSERT\n  INTO\tt"), "INSERT INTO t");
        assert_eq!(shown("\u{1b}[2J\0 ä".as_bytes()), "\\u{1b}[2J\\u{0} ä");
        assert_eq!(shown(b"x\xff\x1by"), "x\\xff\\u{1b}y");
        assert_eq!(shown(&[b'a'; 200]), format!("{}...", "a".repeat(SHOWN)));
    }
}
