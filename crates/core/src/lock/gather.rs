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
    /// Of the other rows.
    hull: Hull,
}

/// The least and the greatest of some keys, shorter keys first.
#[derive(Default)]
pub(super) struct Hull(Option<(Vec<u8>, Vec<u8>)>);

impl Hull {
    /// All keys between two, and these.
    pub(super) fn add(&mut self, (low, high): (&[u8], &[u8])) {
        match &mut self.0 {
            None => self.0 = Some((low.to_vec(), high.to_vec())),
            Some((least, greatest)) => {
                if is_before(low, least) {
                    set(least, low);
                }
                if is_before(greatest, high) {
                    set(greatest, high);
                }
            }
        }
    }

    /// Whether `key` lies between them.
    pub(super) fn holds(&self, key: &[u8]) -> bool {
        let between = |(low, high): &(Vec<u8>, Vec<u8>)| !is_before(key, low) && !is_before(high, key);
        self.0.as_ref().is_some_and(between)
    }
}

fn is_before(a: &[u8], b: &[u8]) -> bool {
    (a.len(), a) < (b.len(), b)
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
        self.hull.add((&self.low, &self.high));
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
        self.hull.0.as_ref().map(|(least, greatest)| (&least[..], &greatest[..]))
    }

    /// Takes all rows.
    pub(super) fn take(&mut self) -> Vec<RowId> {
        self.run = 0;
        self.hull = Hull::default();
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
