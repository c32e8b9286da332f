//! Why a load failed: each names the place in the input.

use std::fmt;
use teak_client as client;
use teak_console::Status;
use teak_sql::splitter::SplitError;

/// Of a statement this much is shown.
const SHOWN: usize = 150;
/// Of statements that are left to be done, so many.
const STATEMENTS: usize = 20;

/// Where a statement begins, and how.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file's name.
    pub source: String,
    /// From 1.
    pub line: u64,
    /// On one line, without what would do something to a terminal.
    pub begin: String,
}

impl Place {
    /// Of a statement with this text, or with a text that begins so.
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
    /// A file could not be read.
    #[error("{name}: cannot read: {error}")]
    Read {
        /// Of the file.
        name: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file is no whole dump.
    #[error("{name}, {error}")]
    Split {
        /// Of the file.
        name: String,
        /// What is wrong, and where.
        error: SplitError,
    },
    /// The server refused a statement of the dump, or the connection broke meanwhile.
    #[error("{error}\n  in {place}")]
    Statement {
        /// Where it is.
        place: Place,
        /// Why.
        error: client::Error,
    },
    /// The server would not take it.
    #[error(
        "{what} of {size} bytes is longer than the server takes: its max_allowed_packet is {limit}\n  in {place}"
    )]
    TooLong {
        /// A statement, or a row.
        what: &'static str,
        /// In bytes.
        size: usize,
        /// In bytes.
        limit: usize,
        /// Where it is.
        place: Place,
    },
    /// Several connections would carry it out as something else.
    #[error("{what} works only on one connection: load this dump with --serial\n  in {place}")]
    SerialOnly {
        /// What does.
        what: &'static str,
        /// Where it is.
        place: Place,
    },
    /// Not all of the dump would go where `--into` says.
    #[error("a statement names the database {database}, and --into another\n  in {place}")]
    OtherDatabase {
        /// The one that is named.
        database: String,
        /// Where it is.
        place: Place,
    },
    /// What the loader itself asked failed.
    #[error("{0}")]
    Server(#[from] client::Error),
    /// What the command line asks for cannot be done.
    #[error("{0}")]
    Usage(String),
    /// All else was loaded: `--on-error=skip`.
    #[error("{0} of the dump's statements failed and were skipped")]
    Skipped(u64),
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// It ended early, and can be resumed.
    #[error(
        "{error}\n  what was loaded stays; --resume goes on from here (the records for that are in the database teak_load){}",
        missing_keys(missing)
    )]
    Unfinished {
        /// Why.
        error: Box<LoadError>,
        /// Statements that build the keys that tables have not yet.
        missing: Vec<String>,
    },
    /// `--resume` without records.
    #[error("nothing to resume: of these files no load into this database has begun that did not end well")]
    NothingToResume,
    /// So many tables do not hold what the dump says: `--check`.
    #[error("the check found differences in {0} tables")]
    Different(usize),
    /// Standard output, or a thread, could not be had.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// Another thread failed, and tells why.
    #[error("stopped")]
    Stopped,
}

impl LoadError {
    /// The exit status of a command that fails by it.
    pub fn status(&self) -> Status {
        match self {
            LoadError::Read { .. } | LoadError::Output(_) => Status::InputOutput,
            LoadError::Split { error, .. } if error.is_of_reading() => Status::InputOutput,
            LoadError::Split { .. } | LoadError::Different(_) => Status::Damage,
            LoadError::Statement { error, .. } | LoadError::Server(error) => error.status(),
            LoadError::TooLong { .. } | LoadError::SerialOnly { .. } | LoadError::OtherDatabase { .. } => {
                Status::Usage
            }
            LoadError::Usage(_) => Status::Usage,
            LoadError::Unfinished { error, .. } => error.status(),
            LoadError::NothingToResume => Status::NothingToResume,
            LoadError::Skipped(_) | LoadError::Interrupted | LoadError::Stopped => Status::Other,
        }
    }
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
