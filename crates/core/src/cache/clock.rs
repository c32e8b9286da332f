//! The clock: all entries in a few rings, each with a hand.
//!
//! Entries join the rings in turn and the hands move in turn, so the order of visits depends on the calls only. Entries
//! are looked at outside the latches of the rings. Dead ones are dropped when a hand or the broom meets them, and those
//! that hold nothing when a hand does: the rings have what is in memory, not all that ever was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::sync::Mutex;

use super::Evictable;

const RINGS: usize = 8;
/// Entries taken from a ring at once.
const BATCH: usize = 16;

#[derive(Default)]
struct Ring {
    entries: Vec<Weak<dyn Evictable>>,
    hand: usize,
    /// Looks for dead entries, two for each that joins, so that their memory goes also while no hand moves.
    broom: usize,
}

pub(super) struct Clock {
    rings: [Mutex<Ring>; RINGS],
    next_to_join: AtomicUsize,
    next_to_sweep: AtomicUsize,
    entries: AtomicUsize,
}

impl Clock {
    pub fn new() -> Clock {
        Clock {
            rings: std::array::from_fn(|_| Mutex::default()),
            next_to_join: AtomicUsize::new(0),
            next_to_sweep: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
        }
    }

    /// Entries in the rings, those included that no hand has met since they died or gave up all.
    pub fn len(&self) -> usize {
        // Relaxed: a count, as everywhere here.
        self.entries.load(Ordering::Relaxed)
    }

    /// Adds an entry, the last that its ring's hand will meet on this turn.
    pub fn register(&self, entry: Weak<dyn Evictable>) {
        let ring = self.next_to_join.fetch_add(1, Ordering::Relaxed) % RINGS;
        self.entries.fetch_add(1, Ordering::Relaxed);
        let dead = self.rings[ring].lock().join(entry);
        self.entries.fetch_sub(dead, Ordering::Relaxed);
    }

    /// The next entries, at most `limit` and at most a batch; empty only if there are none.
    pub fn next(&self, limit: usize) -> Vec<Arc<dyn Evictable>> {
        let mut batch = Vec::new();
        for _ in 0..RINGS {
            let ring = self.next_to_sweep.fetch_add(1, Ordering::Relaxed) % RINGS;
            let gone = self.rings[ring].lock().advance(limit.min(BATCH), &mut batch);
            self.entries.fetch_sub(gone, Ordering::Relaxed);
            if !batch.is_empty() {
                break;
            }
        }
        batch
    }
}

impl Ring {
    /// Adds an entry; returns how many dead ones it removed.
    fn join(&mut self, entry: Weak<dyn Evictable>) -> usize {
        self.entries.push(entry);
        let before = self.entries.len();
        for _ in 0..2 {
            if self.broom >= self.entries.len() {
                self.broom = 0;
            }
            match self.entries.get(self.broom) {
                Some(entry) if entry.strong_count() == 0 => drop(self.entries.swap_remove(self.broom)),
                _ => self.broom += 1,
            }
        }
        before - self.entries.len()
    }

    /// Moves the hand over up to `limit` living entries, once around at most; returns how many it removed: dead ones,
    /// and those that leave.
    fn advance(&mut self, limit: usize, batch: &mut Vec<Arc<dyn Evictable>>) -> usize {
        let before = self.entries.len();
        let mut left = self.entries.len();
        while left > 0 && batch.len() < limit {
            left -= 1;
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            match self.entries[self.hand].upgrade() {
                // Dropped by who takes the batch, not under the latch.
                Some(entry) => {
                    match entry.leaves() {
                        true => drop(self.entries.swap_remove(self.hand)),
                        false => self.hand += 1,
                    }
                    batch.push(entry);
                }
                None => drop(self.entries.swap_remove(self.hand)),
            }
        }
        let gone = before - self.entries.len();
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            let room = self.entries.len() * 2;
            self.entries.shrink_to(room);
        }
        gone
    }
}
