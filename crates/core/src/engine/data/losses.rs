//! What a restart has taken: the rows of tables that live in memory alone.
//!
//! Two things are known of such a table, until somebody ends them:
//!
//! - `untold` is for who writes a log of changes for others: they have the table's rows still, and before he uses it he
//!   tells them once that they are gone ([`Engine::note_told`] ends it).
//! - `lost` is for who applies changes that others have made: a row that he does not find they may have, and that is no
//!   error then. It ends when the table is truncated, or dropped.
//!
//! Both begin with the start of the engine that finds the table ([`Table::note_emptied`]).
//!
//! In a replication, of a server that is started again while a replica of it and its own primary stay up:
//!
//! ```text
//! primary ── row events ──> this server ── binary log ──> replica
//!                           starts: untold, lost
//!                           opens the table, writes TRUNCATE ──> empties it
//!                           note_told: lost
//!   UPDATE of a row that was there ──> is not found: passed over, as lost says
//!   TRUNCATE ────────────────────────> neither any more
//! ```
//!
//! Both go along with the rows: to the table that takes this one's place in an ALTER (`passed_on`, `add`), also one
//! that the server fills by copying ([`Engine::inherit_losses`]). A partition is a table of its own here, and the parts
//! of one are told of together.

use super::tables::Table;
use crate::engine::shared::Engine;
use crate::Result;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of one table.
#[derive(Default)]
pub(in crate::engine) struct Losses {
    untold: AtomicBool,
    lost: AtomicBool,
}

// Relaxed throughout this file: nothing is reached through these; the caller orders his own telling.
impl Losses {
    /// Those of a table that takes the place of this one, with its rows.
    pub(in crate::engine) fn passed_on(&self) -> Losses {
        let untold = AtomicBool::new(self.untold.load(Ordering::Relaxed));
        Losses { untold, lost: AtomicBool::new(self.lost.load(Ordering::Relaxed)) }
    }

    pub(in crate::engine) fn add(&self, other: &Losses) {
        self.untold.fetch_or(other.untold.load(Ordering::Relaxed), Ordering::Relaxed);
        self.lost.fetch_or(other.lost.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Table {
    /// It was made in an earlier run of the engine, and may have had rows that are gone.
    pub(in crate::engine) fn note_emptied(&self) {
        debug_assert!(!self.is_logged(), "a restart keeps the rows that a file has");
        self.losses.untold.store(true, Ordering::Relaxed);
        self.losses.lost.store(true, Ordering::Relaxed);
    }

    /// Whether a restart may have emptied it, as it lives in memory alone, and nobody has told others so
    /// ([`Engine::note_told`]).
    pub fn is_untold(&self) -> bool {
        self.losses.untold.load(Ordering::Relaxed)
    }

    /// Whether it may be without rows that a restart has taken: until it is truncated or dropped. What takes its place
    /// with its rows is without them, too.
    pub fn has_lost_rows(&self) -> bool {
        self.losses.lost.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Others know that the table has been emptied, and those whose names begin with `parts`.
    pub fn note_told(&self, name: &str, parts: &str) -> Result<()> {
        for name in self.with_parts(name, parts)? {
            self.open_table(&name)?.losses.untold.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// `copy` is about to get the rows of table `of`, or of those whose names begin with `parts`: what they have lost,
    /// it will not have.
    pub fn inherit_losses(&self, copy: &str, of: &str, parts: &str) -> Result<()> {
        let copy = self.open_table(copy)?;
        for name in self.with_parts(of, parts)? {
            copy.losses.add(&self.open_table(&name)?.losses);
        }
        Ok(())
    }

    fn with_parts(&self, name: &str, parts: &str) -> Result<Vec<String>> {
        let mut names = self.table_names(parts)?;
        names.extend(self.shared.system.table(name)?.map(|_| name.to_string()));
        Ok(names)
    }
}
