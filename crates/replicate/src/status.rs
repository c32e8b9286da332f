//! `teak replicate status`: how far each source is, as the target and the sources tell it. Whether a source is followed
//! is told by the lock that the program holds for it in the target.

use crate::above;
use crate::configuration::{Configuration, SourcePlan};
use crate::control::{self, Wish};
use crate::dump::{family_of, newest};
use crate::position::Position;
use crate::tables;
use crate::target::lock_of;
use serde::Serialize;
use std::io::Write;
use teak_binlog::Family;
use teak_client::{Connection, Error};

/// How far a source is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Status {
    source: String,
    /// Somebody follows it.
    is_followed: bool,
    /// Somebody has asked for a pause.
    is_paused: bool,
    /// Transactions that are to be skipped, and have not come yet.
    to_skip: Vec<String>,
    /// What was applied; None if it was not begun.
    gtid: Option<String>,
    /// How many transactions are applied besides, by workers, while some before them are not.
    done_above: usize,
    log_file: Option<String>,
    log_position: Option<u64>,
    /// When the last transaction was committed at the source, and here, in seconds of Unix time.
    source_time: Option<u64>,
    applied: Option<u64>,
    /// What the source's log has; None if it cannot be asked.
    source_gtid: Option<String>,
    /// What it says if it cannot be.
    source_error: Option<String>,
    /// Tables that are not copied yet, or in part.
    tables_to_copy: u64,
    /// 0 if all was applied; otherwise, at least 1, how long ago the last applied transaction was committed. None if
    /// nothing is known.
    seconds_behind: Option<u64>,
}

/// Asks, and writes a line for each source, or a JSON array.
pub fn show(configuration: &Configuration, as_json: bool, out: &mut dyn Write) -> Result<(), StatusError> {
    let mut target = configuration.target.settings.connect()?;
    let mut all = Vec::new();
    for source in &configuration.sources {
        all.push(Status::of(source, &mut target)?);
    }
    if as_json {
        let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::from)?;
        return Ok(writeln!(out, "{text}")?);
    }
    for status in &all {
        writeln!(out, "{}", status.line())?;
    }
    Ok(())
}

/// Why nothing could be told.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The target.
    #[error("target: {0}")]
    Target(#[from] Error),
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl Status {
    fn of(source: &SourcePlan, target: &mut Connection) -> Result<Status, Error> {
        let name = &source.name;
        let lock = target.value(format!("SELECT IS_USED_LOCK({})", lock_of(name)))?;
        let row = format!(
            "SELECT gtid, log_file, log_position, UNIX_TIMESTAMP(source_time), FLOOR(UNIX_TIMESTAMP(applied)),
                UNIX_TIMESTAMP() - UNIX_TIMESTAMP(source_time) FROM teak_replicate.position WHERE source = '{name}'"
        );
        // A target in which nothing was begun has no such table.
        const MISSING: [u16; 2] = [1049, 1146];
        let wanted = control::read(target, name)?.map(|state| state.wanted);
        let to_skip =
            format!("SELECT gtid FROM teak_replicate.skip WHERE source = '{name}' AND skipped IS NULL");
        let to_skip = match target.query(to_skip) {
            Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => Vec::new(),
            rows => tables::texts(rows?).flatten().collect(),
        };
        let rows = match target.query(row) {
            Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => Vec::new(),
            rows => rows?,
        };
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |at: usize| Some(String::from_utf8_lossy(row.get(at)?.as_ref()?).into_owned());
        let number = |at: usize| text(at)?.parse().ok();
        let left = format!("SELECT COUNT(*) FROM teak_replicate.copy WHERE source = '{name}'");
        let tables_to_copy = match target.value(left) {
            Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => None,
            count => count?,
        };
        let (source_gtid, source_error) = match position_of(source) {
            Ok(gtid) => (Some(gtid), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let done_above = above::read(target, name, "")?.done.len();
        let gtid = text(0);
        let has_all =
            gtid.as_ref().zip(source_gtid.as_ref()).is_some_and(|(ours, theirs)| has_all(ours, theirs));
        Ok(Status {
            source: name.clone(),
            is_followed: lock.is_some(),
            is_paused: wanted == Some(Wish::Pause),
            to_skip,
            gtid,
            done_above,
            log_file: text(1),
            log_position: number(2),
            source_time: number(3),
            applied: number(4),
            source_gtid,
            source_error,
            tables_to_copy: tables_to_copy.and_then(|text| text.parse().ok()).unwrap_or(0),
            seconds_behind: if has_all { Some(0) } else { number(5).map(|seconds| seconds.max(1)) },
        })
    }

    fn line(&self) -> String {
        let state = match (self.is_followed, self.is_paused) {
            (true, false) => "followed",
            (true, true) => "paused",
            (false, false) => "not followed",
            (false, true) => "paused, not followed",
        };
        let place = match (&self.gtid, &self.log_file, self.log_position) {
            (None, ..) => "not begun".into(),
            (Some(gtid), Some(file), Some(position)) => format!("at {gtid} ({file}, {position})"),
            (Some(gtid), ..) => format!("at {gtid}"),
        };
        let behind = match (self.seconds_behind, &self.source_error) {
            (Some(0), None) => ", has all".into(),
            (Some(seconds), None) => format!(", {seconds} s behind"),
            (None, None) => String::new(),
            (_, Some(error)) => format!(", source: {error}"),
        };
        let copied = match self.tables_to_copy {
            0 => String::new(),
            left => format!(", {left} tables to be copied"),
        };
        let skipped = match self.to_skip.len() {
            0 => String::new(),
            _ => format!(", to be skipped: {}", self.to_skip.join(", ")),
        };
        let above = match self.done_above {
            0 => String::new(),
            done => format!(" and {done} above"),
        };
        format!("{}: {state}, {place}{above}{behind}{copied}{skipped}", self.source)
    }
}

/// What the source's log has.
fn position_of(source: &SourcePlan) -> Result<String, Error> {
    let mut connection = source.settings.connect()?;
    let family = family_of(&mut connection)?;
    Ok(newest(&mut connection, family)?.unwrap_or_default())
}

/// Whether a position has all of another one: of MariaDB if it is the same in all its domains.
pub fn has_all(ours: &str, theirs: &str) -> bool {
    let family = Position::family_of(theirs);
    match (Position::parse(ours, family), Position::parse(theirs, family)) {
        (Ok(Position::MySql(ours)), Ok(Position::MySql(theirs))) => ours.has_all(&theirs),
        (Ok(Position::MariaDb(ours)), Ok(Position::MariaDb(theirs))) if family == Family::MariaDb => {
            theirs.iter().all(|(domain, gtid)| ours.get(domain) == Some(gtid))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_has_all_if_each_domain_is_there() {
        for (ours, theirs, all) in [
            ("0-1-5,7-1-3", "0-1-5", true),
            ("0-1-5", "0-1-5,7-1-3", false),
            ("0-1-5", "0-2-5", false),
            ("", "", true),
            ("5ccc1033-44a8-11ea-bd59-0242ac190003:1-9", "5ccc1033-44a8-11ea-bd59-0242ac190003:1-8", true),
            ("5ccc1033-44a8-11ea-bd59-0242ac190003:1-9", "5ccc1033-44a8-11ea-bd59-0242ac190003:1-10", false),
        ] {
            assert_eq!(has_all(ours, theirs), all, "{ours} {theirs}");
        }
    }

    #[test]
    fn a_line_tells_what_is_known() {
        let begun = Status {
            source: "s".into(),
            is_followed: true,
            is_paused: false,
            to_skip: Vec::new(),
            gtid: Some("0-1-5".into()),
            done_above: 0,
            log_file: Some("b.1".into()),
            log_position: Some(4),
            source_time: Some(1),
            applied: Some(2),
            source_gtid: Some("0-1-6".into()),
            source_error: None,
            tables_to_copy: 0,
            seconds_behind: Some(3),
        };
        let copied = Status { tables_to_copy: 2, ..begun.clone() };
        assert!(copied.line().ends_with(", 3 s behind, 2 tables to be copied"), "{}", copied.line());
        let paused = Status { is_paused: true, to_skip: vec!["0-1-7".into()], ..begun.clone() };
        assert_eq!(paused.line(), "s: paused, at 0-1-5 (b.1, 4), 3 s behind, to be skipped: 0-1-7");
        let above = Status { done_above: 3, ..begun.clone() };
        assert_eq!(above.line(), "s: followed, at 0-1-5 (b.1, 4) and 3 above, 3 s behind");
        assert_eq!(begun.line(), "s: followed, at 0-1-5 (b.1, 4), 3 s behind");
        assert_eq!(
            Status { is_followed: false, seconds_behind: Some(0), ..begun.clone() }.line(),
            "s: not followed, at 0-1-5 (b.1, 4), has all"
        );
        let away = Status { source_error: Some("it is away".into()), gtid: None, ..begun };
        assert_eq!(away.line(), "s: followed, not begun, source: it is away");
    }
}
