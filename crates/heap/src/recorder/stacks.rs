//! Stacks, each kept once: an object has the number of its own.
//!
//! A stripe of the table is chosen by the stack's hash, and has a lock; frames lie in one array, one stack behind the
//! other. Number 0 stands for all stacks that found no place.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pages::{Pages, Zeros};
use super::spin::Spin;
use super::walk::Stack;

const STRIPES: usize = 64;
const SLOTS: usize = 1024;
const FRAMES: usize = STRIPES * SLOTS * 32;

#[derive(Clone, Copy)]
struct Slot {
    hash: u64,
    /// Of its first frame.
    from: u32,
    /// 0: free.
    frames: u16,
    is_whole: u16,
}

// SAFETY: numbers.
unsafe impl Zeros for Slot {}

/// All of them.
pub struct Stacks {
    locks: [Spin; STRIPES],
    slots: Pages<Slot>,
    frames: Pages<usize>,
    used_frames: AtomicUsize,
}

impl Stacks {
    /// No stacks.
    ///
    /// # Errors
    /// There is no address space.
    pub fn new() -> io::Result<Stacks> {
        Ok(Stacks {
            locks: [const { Spin::new() }; STRIPES],
            slots: Pages::reserve(STRIPES * SLOTS)?,
            frames: Pages::reserve(FRAMES)?,
            used_frames: AtomicUsize::new(0),
        })
    }

    /// The number of a stack.
    pub fn number_of(&self, stack: &Stack) -> u32 {
        let frames = stack.frames();
        if frames.is_empty() {
            return 0;
        }
        let hash = frames.iter().fold(u64::from(stack.is_whole()), |hash, &frame| {
            (hash ^ frame as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        });
        let stripe = hash as usize % STRIPES;
        let _held = self.locks[stripe].lock();
        // SAFETY: under the stripe's lock.
        let slots = unsafe { self.slots.part(stripe * SLOTS, SLOTS) };
        let home = (hash >> 32) as usize % SLOTS;
        for step in 0..SLOTS {
            let at = (home + step) % SLOTS;
            let slot = &mut slots[at];
            if slot.frames == 0 {
                let Some(from) = self.keep(frames) else { return 0 };
                *slot =
                    Slot { hash, from, frames: frames.len() as u16, is_whole: u16::from(stack.is_whole()) };
            } else if slot.hash != hash || self.frames_of(slot) != frames {
                continue;
            }
            return (stripe * SLOTS + at + 1) as u32;
        }
        0
    }

    /// Puts frames behind all others; where they begin.
    fn keep(&self, frames: &[usize]) -> Option<u32> {
        // The numbers alone matter; who gets them has these places for himself.
        let from = self.used_frames.fetch_add(frames.len(), Ordering::Relaxed);
        if from + frames.len() > FRAMES {
            return None;
        }
        // SAFETY: places that nobody else was given.
        unsafe { self.frames.part(from, frames.len()) }.copy_from_slice(frames);
        u32::try_from(from).ok()
    }

    fn frames_of(&self, slot: &Slot) -> &[usize] {
        // SAFETY: written before the slot was, under the lock of its stripe, which whoever has the slot had since; they
        // are cleared only while all those locks are held.
        unsafe { self.frames.written(slot.from as usize, usize::from(slot.frames)) }
    }

    /// Frames of a stack, the innermost first, and whether they go up to where the thread begins. The calling thread is
    /// marked `INSIDE`; `into` has room for all frames.
    pub fn read(&self, number: u32, into: &mut Stack) {
        into.forget();
        let Some(at) = (number as usize).checked_sub(1) else { return };
        let _held = self.locks[at / SLOTS].lock();
        // SAFETY: under the stripe's lock.
        let slots = unsafe { self.slots.part(at / SLOTS * SLOTS, SLOTS) };
        let slot = &slots[at % SLOTS];
        if slot.frames != 0 {
            into.fill(self.frames_of(slot), slot.is_whole != 0);
        }
    }

    /// Forgets all. The calling thread is marked `INSIDE`.
    pub fn clear(&self) {
        let held = self.locks.each_ref().map(Spin::lock);
        // SAFETY: all locks of its parts are held.
        unsafe { self.slots.clear() };
        // SAFETY: likewise: frames are looked at, and written, under the lock of a stripe.
        unsafe { self.frames.clear() };
        self.used_frames.store(0, Ordering::SeqCst);
        drop(held);
    }

    /// Address space.
    pub fn reserved_bytes(&self) -> usize {
        self.slots.bytes() + self.frames.bytes()
    }
}
