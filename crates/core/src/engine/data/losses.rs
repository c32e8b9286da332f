//! What a restart has taken: the rows of tables that live in memory alone.
//!
//! Who writes a log of changes for others has to tell them once (`untold`). Who applies changes that others have made
//! may meet rows that are gone for as long as nobody has emptied the table for all (`lost`).

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
