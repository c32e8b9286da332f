//! Both sides of a source, the source and the target, as who compares them asks them; and the wait until the second has
//! what the first had.

use crate::chunks;
use crate::configuration::{SourcePlan, Start, TargetPlan};
use crate::copying;
use crate::counterpart::Counterpart;
use crate::dump::{family_of, newest};
use crate::status::has_all;
use crate::tables::{self, Table};
use crate::target::lock_of;
use std::time::{Duration, Instant};
use teak_binlog::Family;
use teak_client::{Connection, Error};
use teak_console::signals;
use teak_sql::columns::Digest;
use teak_sql::quoting::literal;

/// How long a position may stand still while somebody follows the source.
const PATIENCE: Duration = Duration::from_secs(30);
/// And how long while nobody does: who follows it may be about to begin anew.
const PATIENCE_ALONE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);
/// No such database, no such table.
const MISSING: [u16; 2] = [1049, 1146];

/// A file of a log, and where in it.
pub type LogPlace = (String, u64);

/// A source and the target.
pub struct Sides {
    source_name: String,
    start: Start,
    family: Family,
    /// Where the position stood still the last time.
    stands: Option<String>,
    /// What both have to make numbers of rows.
    pub digest: Digest,
    /// Where rows come from.
    pub source: Connection,
    /// Where they go.
    pub target: Connection,
}

/// A server could not tell.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// The one that is followed.
    #[error("source: {0}")]
    Source(Error),
    /// The one that rows go to.
    #[error("target: {0}")]
    Target(Error),
}

impl SideError {
    /// The server's own.
    pub fn error(&self) -> &Error {
        match self {
            SideError::Source(error) | SideError::Target(error) => error,
        }
    }
}

/// One table on both sides.
#[derive(Debug, Clone)]
pub struct Pair {
    /// At the source: database and table, with quotes.
    pub there: Vec<u8>,
    /// In the target: its rows as the source has them.
    pub here: Vec<u8>,
    /// What it is in the target.
    pub counterpart: Counterpart,
}

impl Pair {
    /// Of a table of the source.
    pub fn of(plan: &SourcePlan, (database, name): (&str, &str), table: &Table) -> Pair {
        let there = copying::quoted(&(database.into(), name.into()));
        let counterpart = Counterpart::of(plan, database, name);
        Pair { there, here: counterpart.rows(table.columns.iter()), counterpart }
    }
}

impl Sides {
    /// Connects to both.
    pub fn connect(target: &TargetPlan, plan: &SourcePlan) -> Result<Sides, SideError> {
        let mut source = plan.settings.connect().map_err(SideError::Source)?;
        let family = family_of(&mut source).map_err(SideError::Source)?;
        chunks::prepare(&mut source).map_err(SideError::Source)?;
        let mut target = target.settings.connect().map_err(SideError::Target)?;
        chunks::prepare(&mut target).map_err(SideError::Target)?;
        let has_md5 = match source.value("SELECT MD5('')") {
            Err(Error::Server { .. }) => false,
            asked => asked.map_err(SideError::Source)?.is_some(),
        };
        let digest = if has_md5 { Digest::Md5 } else { Digest::Sha256 };
        Ok(Sides {
            source_name: plan.name.clone(),
            start: plan.start.clone(),
            family,
            stands: None,
            digest,
            source,
            target,
        })
    }

    /// Asks both at once.
    pub fn both<T: Send>(
        &mut self,
        pair: &Pair,
        ask: impl Fn(&mut Connection, &[u8]) -> Result<T, Error> + Sync,
    ) -> Result<(T, T), SideError> {
        let (source, target) = (&mut self.source, &mut self.target);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("source".into());
            let there = thread.spawn_scoped(scope, || ask(source, &pair.there));
            let here = ask(target, &pair.here).map_err(SideError::Target);
            let what = || "a thread".to_string();
            let there = there.map_err(|error| SideError::Source(Error::Io { what: what(), error }))?;
            let there = there.join().unwrap_or_else(|_| Err(Error::Protocol("a thread has panicked".into())));
            Ok((there.map_err(SideError::Source)?, here?))
        })
    }

    /// Waits until the target has what the source's log has now. False: it does not get it, as nobody follows the
    /// source or the position stands still; or a signal came.
    pub fn catch_up(&mut self) -> Result<bool, SideError> {
        let wanted = newest(&mut self.source, self.family).map_err(SideError::Source)?.unwrap_or_default();
        let place = self.place_of_source();
        let (mut last, mut since) = (None, Instant::now());
        while !signals::interrupted() {
            let applied = self.applied().map_err(SideError::Target)?;
            let Some((gtid, applied)) = applied.or_else(|| self.beginning(&wanted)) else { return Ok(false) };
            if has_all(&gtid, &wanted) || is_beyond(applied.as_ref(), place.as_ref()) {
                return Ok(true);
            }
            if last.as_ref() != Some(&gtid) {
                (last, since) = (Some(gtid), Instant::now());
            }
            let lock = format!("SELECT IS_USED_LOCK({})", lock_of(&self.source_name));
            let is_followed = self.target.value(lock).map_err(SideError::Target)?.is_some();
            let patience = if is_followed { PATIENCE } else { PATIENCE_ALONE };
            // One that stood still once is not waited for at each table.
            if since.elapsed() > patience || self.stands == last {
                self.stands = last;
                return Ok(false);
            }
            std::thread::sleep(TICK);
        }
        Ok(false)
    }

    /// Whether a table of the target has not all rows yet.
    pub fn is_to_be_copied(&mut self, database: &str, table: &str) -> Result<bool, SideError> {
        let [schema, name] = [database, table].map(|text| literal(text.as_bytes()));
        let query = format!(
            "SELECT 1 FROM teak_replicate.copy WHERE source = '{}' AND table_schema = {schema} AND table_name = {name}",
            self.source_name
        );
        match self.target.value(query) {
            Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => Ok(false),
            found => Ok(found.map_err(SideError::Target)?.is_some()),
        }
    }

    /// Where the source's log ends; None if it may not be asked.
    fn place_of_source(&mut self) -> Option<LogPlace> {
        let row = self.source.query("SHOW MASTER STATUS").ok()?;
        let row = tables::texts(row).next()?;
        Some((row.first()?.clone(), row.get(1)?.parse().ok()?))
    }

    /// What counts as applied where nobody has followed the source: what `start` says the target has. With "now" it is
    /// what the source has.
    fn beginning(&self, newest: &str) -> Option<(String, Option<LogPlace>)> {
        match &self.start {
            Start::Now => Some((newest.to_string(), None)),
            Start::Gtid(gtid) => Some((gtid.clone(), None)),
            Start::Copy | Start::File { .. } => None,
        }
    }

    /// What was applied, and where in the source's log that ends.
    fn applied(&mut self) -> Result<Option<(String, Option<LogPlace>)>, Error> {
        let query = format!(
            "SELECT gtid, log_file, log_position FROM teak_replicate.position WHERE source = '{}'",
            self.source_name
        );
        let row = match self.target.query(query) {
            Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => return Ok(None),
            rows => tables::texts(rows?).next(),
        };
        let Some(row) = row else { return Ok(None) };
        let [gtid, file, position] = row.try_into().unwrap_or_default();
        Ok(Some((gtid, position.parse().ok().map(|position| (file, position)))))
    }
}

/// Whether a place of a log is known not to be before another one. Files are counted by what is behind the last point
/// of their names.
pub fn is_beyond(ours: Option<&LogPlace>, theirs: Option<&LogPlace>) -> bool {
    let number = |(file, position): &LogPlace| {
        let (base, number) = file.rsplit_once('.')?;
        Some((base.to_string(), number.parse::<u64>().ok()?, *position))
    };
    match (ours.and_then(number), theirs.and_then(number)) {
        (Some((base, file, at)), Some((other, there, end))) => base == other && (file, at) >= (there, end),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_compared_by_the_numbers_of_files() {
        let place = |file: &str, position| Some((file.to_string(), position));
        for (ours, theirs, is) in [
            (place("b.000009", 500), place("b.000010", 4), false),
            (place("b.000010", 4), place("b.000010", 4), true),
            (place("b.1000000", 4), place("b.999999", 9), true),
            (place("c.000010", 4), place("b.000010", 4), false),
            (None, place("b.000010", 4), false),
        ] {
            assert_eq!(is_beyond(ours.as_ref(), theirs.as_ref()), is, "{ours:?} {theirs:?}");
        }
    }
}
