//! The locks of an owner of many in one tree and mode, on their way from entries to covers.

use super::cover::follows;
use super::row::RowId;

/// Rows of consecutive keys that become a cover.
pub(super) const RUN: usize = if cfg!(test) { 4 } else { 256 };
/// How far back a row that is unlocked is looked for; one that is further back stays as a harmless leftover.
pub(super) const UNLOCK_WINDOW: usize = 64;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Gathered {
    /// Rows with an entry in the table of rows. The last ones, as many as the run has, are of consecutive keys.
    rows: Vec<RowId>,
    run: usize,
    /// The run's least and greatest key.
    low: Vec<u8>,
    high: Vec<u8>,
    /// The least and the greatest key of the other rows, shorter keys first.
    hull: Option<(Vec<u8>, Vec<u8>)>,
}

fn set(key: &mut Vec<u8>, to: &[u8]) {
    key.clear();
    key.extend_from_slice(to);
}

impl Gathered {
    /// Adds a row that was locked.
    pub(super) fn push(&mut self, id: RowId, key: &[u8]) {
        let up = self.run > 0 && follows(&self.high, key);
        let down = self.run > 0 && !up && follows(key, &self.low);
        if !up && !down {
            self.break_run();
        }
        if !down {
            set(&mut self.high, key);
        }
        if !up {
            set(&mut self.low, key);
        }
        self.run += 1;
        self.rows.push(id);
    }

    /// The next row begins a new run.
    fn break_run(&mut self) {
        if std::mem::take(&mut self.run) == 0 {
            return;
        }
        let before = |a: &[u8], b: &[u8]| (a.len(), a) < (b.len(), b);
        match &mut self.hull {
            None => self.hull = Some((self.low.clone(), self.high.clone())),
            Some((least, greatest)) => {
                if before(&self.low, least) {
                    set(least, &self.low);
                }
                if before(greatest, &self.high) {
                    set(greatest, &self.high);
                }
            }
        }
    }

    /// The ends of the run, if it is long enough for a cover.
    pub(super) fn full_run(&self) -> Option<(&[u8], &[u8])> {
        (self.run >= RUN).then_some((&self.low, &self.high))
    }

    /// Takes the rows of the run.
    pub(super) fn take_run(&mut self) -> Vec<RowId> {
        let run = std::mem::take(&mut self.run);
        self.rows.split_off(self.rows.len() - run)
    }

    /// The least and the greatest key of all its rows.
    pub(super) fn ends(&mut self) -> Option<(&[u8], &[u8])> {
        self.break_run();
        self.hull.as_ref().map(|(least, greatest)| (&least[..], &greatest[..]))
    }

    /// Takes all rows.
    pub(super) fn take(&mut self) -> Vec<RowId> {
        self.run = 0;
        self.hull = None;
        std::mem::take(&mut self.rows)
    }

    /// A row of it is locked no longer; `false` if it was not found.
    pub(super) fn forget(&mut self, id: RowId) -> bool {
        // In the run it must be found: a cover would lock the row again.
        let window = self.rows.len() - self.run.max(UNLOCK_WINDOW).min(self.rows.len());
        let Some(place) = self.rows[window..].iter().rposition(|row| *row == id) else { return false };
        self.break_run();
        self.rows.swap_remove(window + place);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * std::mem::size_of::<RowId>()
    }
}
