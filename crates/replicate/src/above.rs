//! Transactions of a source that are done above its position, as `teak_replicate.worker` has them:
//!
//! ```text
//! 17 0-1-4711,18 0-1-4712      a number, by which the mark of the position is counted, and the GTID
//! ```
//!
//! The row of worker 0 has what former programs left: all of it counts, and it changes together with the position.
//! That of each other worker changes with each of its transactions; of it counts what is above the mark.

use crate::tables;
use std::collections::BTreeSet;
use std::fmt::Write;
use teak_client::{Connection, Error};

/// No such database, table, or column: there were no workers yet.
const MISSING: [u16; 3] = [1049, 1146, 1054];

/// The text of these.
pub fn noted<'n>(transactions: impl Iterator<Item = (u64, &'n String)>) -> String {
    let mut text = String::new();
    for (number, gtid) in transactions {
        let comma = if text.is_empty() { "" } else { "," };
        // A String takes all.
        let _ = write!(text, "{comma}{number} {gtid}");
    }
    text
}

/// The GTIDs of a text whose numbers are above this one; None: all.
pub fn read_noted(text: &str, mark: Option<u64>) -> impl Iterator<Item = String> + '_ {
    text.split(',').filter_map(move |one| {
        let (number, gtid) = one.split_once(' ')?;
        let is_above = mark.is_none_or(|mark| number.parse::<u64>().is_ok_and(|number| number > mark));
        is_above.then(|| gtid.to_string())
    })
}

/// What the target knows of a source's workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Above {
    /// Transactions that are done above the position.
    pub done: BTreeSet<String>,
    /// Of the programs that had workers, counted, the last one; 0: there were none.
    pub generation: u64,
    /// The number of the last transaction that is part of the position.
    pub mark: u64,
}

/// Reads it; `lock`: nothing, or `FOR UPDATE`, which waits for what workers commit just now.
pub fn read(target: &mut Connection, source: &str, lock: &str) -> Result<Above, Error> {
    let is_missing = |error: &Error| error.code().is_some_and(|code| MISSING.contains(&code));
    let query = format!(
        "SELECT worker, generation, done FROM teak_replicate.worker WHERE source = '{source}' {lock}"
    );
    let rows = match target.query(query) {
        Err(error) if is_missing(&error) => return Ok(Above::default()),
        rows => rows?,
    };
    // Behind the rows of workers, which change before it does.
    let mark = target.value(format!("SELECT mark FROM teak_replicate.position WHERE source = '{source}'"));
    let mark = match mark {
        Err(error) if is_missing(&error) => None,
        mark => mark?.and_then(|text| text.parse().ok()),
    };
    let mut above = Above { mark: mark.unwrap_or(0), ..Above::default() };
    for row in tables::texts(rows) {
        let [worker, generation, done] = row.try_into().unwrap_or_default();
        above.generation = above.generation.max(generation.parse().unwrap_or(0));
        // Where the position was deleted, what was done above it is nothing to who begins anew.
        if let Some(mark) = mark {
            above.done.extend(read_noted(&done, (worker != "0").then_some(mark)));
        }
    }
    Ok(above)
}

/// From its commit on no worker of now commits anything more.
pub fn end_generation(target: &mut Connection, source: &str) -> Result<(), Error> {
    let update =
        format!("UPDATE teak_replicate.worker SET generation = generation + 1 WHERE source = '{source}'");
    match target.execute(update) {
        Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => Ok(()),
        done => done.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_what_the_mark_has_is_left_out() {
        let gtids = ["0-1-5".to_string(), "5ccc1033-44a8-11ea-bd59-0242ac190003:tag:6".to_string()];
        let text = noted([(7, &gtids[0]), (9, &gtids[1])].into_iter());
        assert_eq!(text, "7 0-1-5,9 5ccc1033-44a8-11ea-bd59-0242ac190003:tag:6");
        let read = |mark| read_noted(&text, mark).collect::<Vec<_>>();
        assert_eq!(read(None), gtids);
        assert_eq!(read(Some(6)), gtids);
        assert_eq!(read(Some(7)), gtids[1..]);
        assert!(read(Some(9)).is_empty() && read_noted("", None).next().is_none());
    }
}
