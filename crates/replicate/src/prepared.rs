//! XA transactions beside a copy: whether a snapshot of a table tells what the log will do with it.
//!
//! An XA COMMIT is in the log before the engine carries it out, so a snapshot may lack what the log before its place
//! has; and what is prepared when the rows are read is carried out later, though the log has its rows before. A range
//! is taken only if neither can be of its table, in one of two ways: nothing is prepared at all, at the source or in
//! the log; or the table was locked for reading, which waits for all who have written to it and are connected. Those
//! who are not are listed by the source (`XA RECOVER`) from XA PREPARE until the engine is done, so of all that it has
//! listed just before the snapshot the log tells what they touch. What the log does not know has changed nothing,
//! unless it was prepared before the log was begun with: what was listed then and is still is nobody's to judge.

use crate::chunk_reader::Planned;
use crate::copying::TableName;
use crate::failure::Failure;
use crate::sides::LogPlace;
use crate::target::Target;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use teak_client::{Connection, Error};
use teak_sql::quoting::hex;

/// So many that have ended are remembered. The source lists what has ended in the log for moments only.
const ENDED: usize = 4096;
/// Between names of tables in what is kept.
const END_OF_NAME: char = '\0';

/// Tables of the target.
pub type TouchedTables = BTreeSet<TableName>;

/// A snapshot of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Where in the source's log it is.
    pub place: LogPlace,
    /// XA transactions that were prepared just before, as the log names them.
    pub prepared: Vec<String>,
    /// Nobody could write to the table while it was made.
    pub is_locked: bool,
}

/// XA transactions of a source's log, while tables are copied.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Those that are prepared where the log was applied to.
    pending: BTreeMap<String, TouchedTables>,
    /// Some that are not any more, the last one at the end.
    ended: VecDeque<(String, TouchedTables)>,
    /// What was prepared before the log was begun with, as far as it may not have ended yet.
    older: BTreeSet<String>,
}

impl Prepared {
    /// What the target has of those that are prepared.
    pub fn read(target: &mut Target<'_>) -> Result<Prepared, Failure> {
        let query = format!(
            "SELECT xid, statement FROM teak_replicate.xa WHERE source = '{}' AND part = 0 AND xid <> ''",
            target.source()
        );
        let rows = target.connection().query(query);
        let rows = rows.map_err(|error| Failure::of_target(&error, || "teak_replicate.xa".into()))?;
        let pending = crate::tables::texts(rows).filter_map(|row| {
            let [xid, tables] = <[String; 2]>::try_from(row).ok()?;
            Some((xid, from_text(&tables)))
        });
        Ok(Prepared { pending: pending.collect(), ..Prepared::default() })
    }

    /// The source lists these before the log is begun with.
    pub fn were_listed(&mut self, listed: Vec<String>) {
        self.older = listed.into_iter().filter(|xid| !self.pending.contains_key(xid)).collect();
    }

    /// The log has prepared one.
    pub fn begins(&mut self, xid: &str, touched: TouchedTables) {
        self.pending.insert(xid.into(), touched);
    }

    /// One was committed, or rolled back.
    pub fn ends(&mut self, xid: &str) {
        let touched = self.pending.remove(xid).unwrap_or_default();
        self.ended.push_back((xid.into(), touched));
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
    }

    /// Where the log was applied up to a snapshot: what forbids to take rows of a table from it. If something does, all
    /// snapshots that were made so far are to be forgotten.
    pub fn in_the_way(&mut self, snapshot: &Snapshot, table: &Planned) -> Option<String> {
        let found = match snapshot.is_locked {
            false => self.of_any_table(snapshot),
            true => self.of_table(snapshot, table),
        };
        let found = found.cloned();
        if found.is_some() {
            // Later snapshots have what is not listed any more. Earlier ones may not.
            self.older.retain(|xid| snapshot.prepared.contains(xid));
        }
        found
    }

    fn of_any_table<'a>(&'a self, snapshot: &'a Snapshot) -> Option<&'a String> {
        let listed = snapshot.prepared.first();
        let ended = || self.ended.back().map(|(xid, _)| xid);
        listed.or_else(|| self.pending.keys().next()).or_else(ended)
    }

    fn of_table<'a>(&'a self, snapshot: &'a Snapshot, table: &Planned) -> Option<&'a String> {
        let is_touched = |touched: &TouchedTables| {
            touched.contains(&table.here) || table.parents.iter().any(|parent| touched.contains(parent))
        };
        let known = |xid: &String| {
            let ended = || self.ended.iter().rev().find(|(ended, _)| ended == xid);
            self.pending.get(xid).or_else(|| ended().map(|(_, touched)| touched))
        };
        let is_in_the_way = |xid: &String| known(xid).map_or_else(|| self.older.contains(xid), is_touched);
        let listed = snapshot.prepared.iter().find(|xid| is_in_the_way(xid));
        let pending = || self.pending.iter().find(|(_, touched)| is_touched(touched));
        listed.or_else(|| pending().map(|(xid, _)| xid))
    }
}

/// The statements that note that nothing of any table is copied yet, and that of former copies nothing is prepared.
/// What was prepared before is in the first snapshots then, as nothing else could be taken beside it.
pub fn nothing_is_copied(source: &str) -> [String; 2] {
    let delete = format!("DELETE FROM teak_replicate.xa WHERE source = '{source}'");
    let note = format!(
        "INSERT INTO teak_replicate.xa (source, xid, part, statement) VALUES ('{source}', '', 0, '')"
    );
    [delete, note]
}

/// The statement that notes that something is.
pub fn something_is_copied(source: &str) -> String {
    format!("DELETE FROM teak_replicate.xa WHERE source = '{source}' AND xid = '' AND part = 0")
}

/// Names of tables, as they are kept beside an XA transaction.
pub fn as_text(touched: &TouchedTables) -> Vec<u8> {
    let names = touched.iter().flat_map(|(database, table)| [database, table]);
    names.flat_map(|name| name.chars().chain([END_OF_NAME])).collect::<String>().into_bytes()
}

fn from_text(text: &str) -> TouchedTables {
    let mut names = text.split_terminator(END_OF_NAME).map(str::to_string);
    std::iter::from_fn(|| Some((names.next()?, names.next()?))).collect()
}

/// What a MariaDB has prepared, and not ended.
pub fn listed(source: &mut Connection) -> Result<Vec<String>, Error> {
    let name = |row: Vec<Option<Vec<u8>>>| {
        let [format, global, branch, data] = <[_; 4]>::try_from(row).ok()?.map(Option::unwrap_or_default);
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<usize>().ok();
        let (global, branch) =
            data.split_at_checked(number(&global)?).filter(|_| number(&branch).is_some())?;
        Some(format!("X'{}',X'{}',{}", hex(global), hex(branch), String::from_utf8_lossy(&format)))
    };
    let rows = source.query("XA RECOVER")?;
    let all: Option<Vec<String>> = rows.into_iter().map(name).collect();
    all.ok_or_else(|| Error::Protocol("XA RECOVER with other columns".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counterpart::Counterpart;

    fn name(table: &str) -> TableName {
        ("d".into(), table.into())
    }

    fn table(here: &str, parents: &[&str]) -> Planned {
        Planned {
            there: name(here),
            here: name(here),
            counterpart: Counterpart::default(),
            left_out: Vec::new(),
            at_once: false,
            parents: parents.iter().map(|parent| name(parent)).collect(),
            is_apart: true,
            defers_keys: false,
        }
    }

    fn snapshot(prepared: &[&str], is_locked: bool) -> Snapshot {
        let prepared = prepared.iter().map(|xid| xid.to_string()).collect();
        Snapshot { place: ("b.1".into(), 4), prepared, is_locked }
    }

    #[test]
    fn without_a_lock_nothing_may_be_prepared_at_all() {
        let mut of_log = Prepared::default();
        assert_eq!(of_log.in_the_way(&snapshot(&[], false), &table("t", &[])), None);
        assert_eq!(of_log.in_the_way(&snapshot(&["x"], false), &table("t", &[])), Some("x".into()));
        of_log.begins("a", BTreeSet::from([name("other")]));
        assert_eq!(of_log.in_the_way(&snapshot(&[], false), &table("t", &[])), Some("a".into()));
        of_log.ends("a");
        assert_eq!(of_log.in_the_way(&snapshot(&[], false), &table("t", &[])), Some("a".into()));
    }

    #[test]
    fn with_a_lock_only_what_has_touched_the_table_or_is_not_known() {
        let mut of_log = Prepared::default();
        of_log.begins("a", BTreeSet::from([name("other")]));
        of_log.begins("b", BTreeSet::from([name("t"), name("u")]));
        assert_eq!(of_log.in_the_way(&snapshot(&["a"], true), &table("v", &[])), None);
        assert_eq!(of_log.in_the_way(&snapshot(&["a"], true), &table("t", &[])), Some("b".into()));
        assert_eq!(of_log.in_the_way(&snapshot(&["a"], true), &table("v", &["u"])), Some("b".into()));
        assert_eq!(of_log.in_the_way(&snapshot(&["c"], true), &table("v", &[])), None);
        of_log.ends("b");
        assert_eq!(of_log.in_the_way(&snapshot(&["a"], true), &table("t", &[])), None);
        // In the log it has ended, in the source's engine it has not.
        assert_eq!(of_log.in_the_way(&snapshot(&["a", "b"], true), &table("t", &[])), Some("b".into()));
        assert_eq!(of_log.in_the_way(&snapshot(&["a", "b"], true), &table("v", &[])), None);
    }

    #[test]
    fn what_was_prepared_before_the_log_is_in_the_way_until_it_has_ended() {
        let mut of_log = Prepared::default();
        of_log.begins("a", BTreeSet::new());
        of_log.were_listed(vec!["a".into(), "b".into(), "c".into()]);
        assert_eq!(of_log.in_the_way(&snapshot(&["a", "b"], true), &table("t", &[])), Some("b".into()));
        assert_eq!(of_log.in_the_way(&snapshot(&["a", "c"], true), &table("t", &[])), None);
        assert_eq!(of_log.in_the_way(&snapshot(&["b"], true), &table("t", &[])), Some("b".into()));
        assert_eq!(of_log.in_the_way(&snapshot(&[], true), &table("t", &[])), None);
    }

    #[test]
    fn names_of_tables_are_kept() {
        for tables in [vec![], vec!["t"], vec!["", "t,`u", "\u{e9}"]] {
            let touched: TouchedTables = tables.iter().map(|table| name(table)).collect();
            assert_eq!(from_text(std::str::from_utf8(&as_text(&touched)).unwrap()), touched);
        }
    }
}
