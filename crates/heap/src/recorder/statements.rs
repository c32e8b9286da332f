//! Digests of statements, each kept once with its text: an object has the number of its own.
//!
//! Number 0 is no statement, or one that found no place.

use std::io;

use super::pages::{Pages, Zeros};
use super::spin::Spin;
use crate::digest::{Digest, TEXT_BYTES};

const SLOTS: usize = 4096;
/// No statement.
pub const NONE: u32 = 0;

#[derive(Clone, Copy)]
struct Slot {
    /// 0: free.
    hash: u64,
    bytes: u16,
    text: [u8; TEXT_BYTES],
}

// SAFETY: numbers.
unsafe impl Zeros for Slot {}

/// All of them.
pub struct Statements {
    lock: Spin,
    slots: Pages<Slot>,
}

impl Statements {
    /// No statements.
    ///
    /// # Errors
    /// There is no address space.
    pub fn new() -> io::Result<Statements> {
        Ok(Statements { lock: Spin::new(), slots: Pages::reserve(SLOTS)? })
    }

    /// The number of a statement. The calling thread is marked `INSIDE`.
    pub fn number_of(&self, query: &[u8]) -> u32 {
        if query.is_empty() {
            return NONE;
        }
        let digest = Digest::of(query);
        let _held = self.lock.lock();
        // SAFETY: under the lock.
        let slots = unsafe { self.slots.part(0, SLOTS) };
        for step in 0..SLOTS {
            let at = (digest.hash as usize).wrapping_add(step) % SLOTS;
            if slots[at].hash == 0 {
                slots[at] =
                    Slot { hash: digest.hash, bytes: digest.text().len() as u16, text: *digest.room() };
            }
            if slots[at].hash == digest.hash {
                return at as u32 + NONE + 1;
            }
        }
        NONE
    }

    /// The digest with a number, and its text; `None` if it is of no statement.
    pub fn read(&self, number: u32) -> Option<(u64, String)> {
        let at = (number as usize).checked_sub(NONE as usize + 1).filter(|&at| at < SLOTS)?;
        // SAFETY: a slot that was given a number was written under the lock, before its number went into a record from
        // which this one comes, by another lock; it is never written again.
        let slot = &unsafe { self.slots.written(at, 1) }[0];
        let text = slot.text.get(..usize::from(slot.bytes))?;
        Some((slot.hash, String::from_utf8_lossy(text).into_owned()))
    }

    /// Address space.
    pub fn reserved_bytes(&self) -> usize {
        self.slots.bytes()
    }
}
