//! First committer wins, also where there is nothing left to meet.
//!
//! A locking scan goes over what is committed now. A row that its transaction's snapshot sees, and that another
//! transaction has deleted since, is no candidate: passed over, it would be as if the snapshot had never seen it. So
//! where the level is strict a second cursor goes over the rows of the snapshot, and what it meets that the scan does
//! not is a conflict. InnoDB meets such rows as records that are marked as deleted, in scans by primary key; so do we.

use teak_core::server::Cursor;
use teak_core::View;

use crate::bounds::Direction;
use crate::outcome::Result;
use crate::scan::{place, Busy, TableCursor};
use crate::session::Session;

/// The scan's second cursor.
pub(crate) struct Vanished {
    snapshot: Cursor,
    /// Whether it stands on a row.
    found: bool,
}

impl TableCursor {
    /// A locking scan begins at `self.from`.
    pub(crate) fn follow_snapshot(&mut self, session: &mut Session) -> Result<()> {
        // Who skips locked rows asks for no repeatable answer.
        if !self.is_rows() || !session.may_conflict() || self.read.busy == Busy::Skip {
            return Ok(());
        }
        let Some(from) = self.from.bound() else { return Ok(()) };
        let mut snapshot = Cursor::new(self.tree().clone());
        let found = place(&mut snapshot, session.txn()?, View::Snapshot, self.direction, from)?;
        self.vanished = Some(Vanished { snapshot, found });
        Ok(())
    }

    /// The scan has come to its present candidate, or to its end: an error if a row of the snapshot that lies before
    /// that has gone since.
    pub(crate) fn meet_vanished(&mut self, session: &mut Session, at_candidate: bool) -> Result<()> {
        let Some(mut vanished) = self.vanished.take() else { return Ok(()) };
        while vanished.found {
            let key = vanished.snapshot.key();
            let is_passed = match at_candidate {
                true => match self.direction {
                    Direction::Up => key <= self.core.key(),
                    Direction::Down => key >= self.core.key(),
                },
                false => self.end.admits(key, self.direction),
            };
            if !is_passed {
                break;
            }
            // The candidate itself is looked at when it is locked.
            if !at_candidate || key != self.core.key() {
                session.check_unchanged(self.table.tree(0), key)?;
            }
            vanished.found = match self.direction {
                Direction::Up => vanished.snapshot.next(session.txn()?)?,
                Direction::Down => vanished.snapshot.prev(session.txn()?)?,
            };
        }
        self.vanished = Some(vanished);
        Ok(())
    }
}
