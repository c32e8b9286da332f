//! What a server has answered at one moment, as it came: what is shown, recorded and told as JSON is made of this.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many rows of a part are asked for at most: the worst.
pub const MOST_ROWS: usize = 200;
/// So many characters of a value are kept.
pub const MOST_CHARACTERS: usize = 4096;

/// What is asked by itself. Each may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Version and name of the server, and what it has; asked once for each connection.
    Server,
    /// `GLOBAL_STATUS`: counters of the server, of Teak and of InnoDB.
    Status,
    /// `PROCESSLIST`, those that work.
    Sessions,
    /// `TEAK_LOCK_WAITS`.
    Waits,
    /// `INNODB_LOCK_WAITS`, if somebody waits there.
    InnodbWaits,
    /// `METADATA_LOCK_INFO` of tables for whose metadata somebody waits.
    Metadata,
    /// `PROCESSLIST`, those that wait or are in others' way.
    Parties,
    /// `TEAK_TRX`, those that are prepared, if one that nobody works on is in others' way.
    Prepared,
    /// `TEAK_TRX`.
    Transactions,
    /// `TEAK_SNAPSHOTS`, the oldest.
    Snapshots,
    /// Digests of statements in `performance_schema`, or what runs at the moment.
    Statements,
    /// `TEAK_DEADLOCKS`.
    Deadlocks,
    /// `SHOW ALL SLAVES STATUS`.
    Replicas,
}

impl Part {
    /// Whether no more than [`MOST_ROWS`] of it are asked for.
    pub fn has_limit(self) -> bool {
        !matches!(self, Part::Status | Part::Replicas)
    }

    /// What it is called where it is missing.
    pub fn name(self) -> &'static str {
        match self {
            Part::Server => "server",
            Part::Status => "GLOBAL_STATUS",
            Part::Sessions => "PROCESSLIST",
            Part::Waits => "TEAK_LOCK_WAITS",
            Part::InnodbWaits => "INNODB_LOCK_WAITS",
            Part::Metadata => "METADATA_LOCK_INFO",
            Part::Parties => "PROCESSLIST of waits",
            Part::Prepared => "TEAK_TRX of prepared ones",
            Part::Transactions => "TEAK_TRX",
            Part::Snapshots => "TEAK_SNAPSHOTS",
            Part::Statements => "statements",
            Part::Deadlocks => "TEAK_DEADLOCKS",
            Part::Replicas => "SHOW ALL SLAVES STATUS",
        }
    }
}

/// The rows of a part, as texts; NULL is None.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Names, as the server has them.
    pub columns: Vec<String>,
    /// In the order in which they came.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether there were more, which were not asked for.
    pub is_cut: bool,
}

/// A row by the names of its columns.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    columns: &'a [String],
    values: &'a [Option<String>],
}

impl<'a> Record<'a> {
    /// The text of a column; None if it is NULL, or this server has no such column.
    pub fn text(self, column: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|name| name.eq_ignore_ascii_case(column))?;
        self.values.get(at)?.as_deref()
    }

    /// The number of a column.
    pub fn number(self, column: &str) -> Option<f64> {
        self.text(column)?.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The number of a session or transaction, exactly.
    pub fn id(self, column: &str) -> Option<u64> {
        self.text(column)?.parse().ok()
    }
}

impl Answer {
    /// All rows.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.rows.iter().map(|values| Record { columns: &self.columns, values })
    }
}

/// What a server has answered at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds of Unix time.
    pub at: u64,
    /// What was asked for and has come.
    pub parts: BTreeMap<Part, Answer>,
    /// What was asked for and has not, and why.
    pub missing: BTreeMap<Part, String>,
}

impl Sample {
    /// The rows of a part that has come.
    pub fn records(&self, part: Part) -> impl Iterator<Item = Record<'_>> {
        self.parts.get(&part).into_iter().flat_map(Answer::records)
    }

    /// The first of them.
    pub fn first(&self, part: Part) -> Option<Record<'_>> {
        self.records(part).next()
    }

    /// A status variable.
    pub fn status(&self, name: &str) -> Option<f64> {
        let row = self
            .parts
            .get(&Part::Status)?
            .rows
            .iter()
            .find(|row| matches!(row.first(), Some(Some(known)) if known.eq_ignore_ascii_case(name)))?;
        row.get(1)?.as_ref()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether the server has Teak, as far as its status tells.
    pub fn has_teak(&self) -> bool {
        self.status("teak_commits").is_some()
    }
}

/// The first so many characters of a text that may be anything.
pub fn beginning(text: &str) -> String {
    text.chars().take(MOST_CHARACTERS).collect()
}
