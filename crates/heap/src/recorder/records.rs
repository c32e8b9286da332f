//! Live objects by address.
//!
//! ```text
//! hash of the address   | shard, 8 bits | home, 13 bits |        each shard: a lock, places with linear probing
//!                       | filter, 20 bits        |               how many objects have these bits: `free` of what is
//!                                                                not recorded, which is nearly all, looks here only
//! ```
//!
//! What holds: the places from an object's home to where it is are all taken; a filter's number counts the objects of
//! its shard that have these bits, and is changed under the shard's lock.

use std::io;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use super::pages::{Pages, Zeros};
use super::spin::Spin;
use super::thread::{ThreadState, INSIDE};

/// Of an allocation by a statement that is followed.
pub const EXACT: u32 = 1;
/// Of an allocation that stands for those of its size that were not looked at.
pub const SAMPLED: u32 = 2;

const SHARD_BITS: u32 = 8;
const PLACE_BITS: u32 = 13;
const FILTER_BITS: u32 = 20;
const SHARDS: usize = 1 << SHARD_BITS;
const PLACES: usize = 1 << PLACE_BITS;
/// Beyond that, probing would take long.
const FULL: usize = PLACES / 8 * 7;

/// An object that was allocated and not freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Where it is; 0: no object.
    pub address: usize,
    /// What was asked for.
    pub bytes: u64,
    /// Of the connection; 0: of no session.
    pub session: u64,
    /// Which of the session's statements that were followed.
    pub statement: u32,
    /// In [`super::statements`].
    pub digest: u32,
    /// In [`super::stacks`].
    pub stack: u32,
    /// [`EXACT`], [`SAMPLED`], or both.
    pub kind: u32,
}

// SAFETY: numbers.
unsafe impl Zeros for Record {}

struct Shard {
    lock: Spin,
    /// Changed under the lock.
    used: AtomicU64,
}

/// All of them.
pub struct Records {
    shards: [Shard; SHARDS],
    places: Pages<Record>,
    filter: Pages<u16>,
    lost: AtomicU64,
}

fn hash(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn shard_of(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

fn home_of(address: usize) -> usize {
    (hash(address) >> (64 - SHARD_BITS - PLACE_BITS)) as usize & (PLACES - 1)
}

impl Records {
    /// No objects.
    ///
    /// # Errors
    /// There is no address space.
    pub fn new() -> io::Result<Records> {
        Ok(Records {
            shards: std::array::from_fn(|_| Shard { lock: Spin::new(), used: AtomicU64::new(0) }),
            places: Pages::reserve(SHARDS * PLACES)?,
            filter: Pages::reserve(1 << FILTER_BITS)?,
            lost: AtomicU64::new(0),
        })
    }

    fn filter_of(&self, hash: u64) -> &AtomicU16 {
        // SAFETY: a place of the mapping, aligned, which is looked at in this way only while it is not cleared; zeros
        // are an atomic's value.
        unsafe { AtomicU16::from_ptr(self.filter.place((hash >> (64 - FILTER_BITS)) as usize)) }
    }

    /// False: no object at `address` is recorded. Nobody can free an object before he has learned of it from who
    /// allocated it, so that he sees the number as it was then or later.
    pub fn may_have(&self, address: usize) -> bool {
        // Guards nothing: what is recorded is looked at under the shard's lock.
        self.filter_of(hash(address)).load(Ordering::Relaxed) != 0
    }

    /// Under the lock of the shard `number`.
    #[allow(clippy::mut_from_ref)]
    unsafe fn places_of(&self, number: usize) -> &mut [Record] {
        // SAFETY: each shard has its own places, and who calls this has its lock, and one such reference.
        unsafe { self.places.part(number * PLACES, PLACES) }
    }

    /// Records an object, in place of what may be known of its address, unless `wanted` says no by now.
    pub fn insert(&self, record: Record, wanted: impl FnOnce() -> bool) {
        let hash = hash(record.address);
        let shard = &self.shards[shard_of(hash)];
        let _held = shard.lock.lock();
        if !wanted() {
            return;
        }
        // SAFETY: under the shard's lock.
        let places = unsafe { self.places_of(shard_of(hash)) };
        let mut at = home_of(record.address);
        while places[at].address != 0 {
            if places[at].address == record.address {
                places[at] = record;
                return;
            }
            at = (at + 1) & (PLACES - 1);
        }
        // Numbers under the lock; others only read them.
        let used = shard.used.load(Ordering::Relaxed);
        if used as usize >= FULL {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        places[at] = record;
        shard.used.store(used + 1, Ordering::Relaxed);
        let filter = self.filter_of(hash);
        filter.store(filter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Where an object is among the places of its shard.
    fn find(places: &[Record], address: usize) -> Option<usize> {
        let mut at = home_of(address);
        while places[at].address != 0 {
            if places[at].address == address {
                return Some(at);
            }
            at = (at + 1) & (PLACES - 1);
        }
        None
    }

    /// Forgets what is known of an object at `address`, if that is what is meant.
    pub fn remove(&self, address: usize, is_meant: impl Fn(&Record) -> bool) {
        let hash = hash(address);
        let shard = &self.shards[shard_of(hash)];
        let _held = shard.lock.lock();
        // SAFETY: under the shard's lock.
        let places = unsafe { self.places_of(shard_of(hash)) };
        let Some(mut hole) = Self::find(places, address).filter(|&at| is_meant(&places[at])) else { return };
        // Those behind move up as long as that brings them no further up than their home.
        let mut at = hole;
        loop {
            at = (at + 1) & (PLACES - 1);
            if places[at].address == 0 {
                break;
            }
            let distance = at.wrapping_sub(home_of(places[at].address)) & (PLACES - 1);
            if distance >= (at.wrapping_sub(hole) & (PLACES - 1)) {
                places[hole] = places[at];
                hole = at;
            }
        }
        places[hole] = Record::default();
        // Under the lock; others only read them.
        shard.used.fetch_sub(1, Ordering::Relaxed);
        let filter = self.filter_of(hash);
        filter.store(filter.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// An object, if it is known, has another size.
    pub fn resize(&self, address: usize, bytes: u64) {
        let number = shard_of(hash(address));
        let _held = self.shards[number].lock.lock();
        // SAFETY: under the shard's lock.
        let places = unsafe { self.places_of(number) };
        if let Some(at) = Self::find(places, address) {
            places[at].bytes = bytes;
        }
    }

    /// All of them, shard by shard.
    pub fn copy(&self, thread: &ThreadState) -> Vec<Record> {
        let mut all = Vec::new();
        // Room is made while no lock is held: it is the allocator that waits for the lock.
        let mut some = Vec::with_capacity(PLACES);
        for (number, shard) in self.shards.iter().enumerate() {
            {
                let _marked = thread.mark(INSIDE);
                let _held = shard.lock.lock();
                // SAFETY: under the shard's lock.
                let places = unsafe { self.places_of(number) };
                // Under the lock.
                if shard.used.load(Ordering::Relaxed) != 0 {
                    some.extend(places.iter().filter(|record| record.address != 0));
                }
            }
            all.append(&mut some);
        }
        all
    }

    /// Forgets those of a session's statement.
    pub fn forget_statement(&self, thread: &ThreadState, session: u64, statement: u32) {
        self.forget_if(thread, |record| record.session == session && record.statement == statement);
    }

    /// Forgets those that are of this kind alone.
    pub fn forget_kind(&self, thread: &ThreadState, kind: u32) {
        self.forget_if(thread, |record| record.kind == kind);
    }

    fn forget_if(&self, thread: &ThreadState, is_one: impl Fn(&Record) -> bool) {
        for record in self.copy(thread).iter().filter(|record| is_one(record)) {
            let _marked = thread.mark(INSIDE);
            // By now there may be another object at this address.
            self.remove(record.address, |found| is_one(found));
        }
    }

    /// Forgets all. The calling thread is marked `INSIDE`.
    pub fn clear(&self) {
        let held = self.shards.each_ref().map(|shard| shard.lock.lock());
        // SAFETY: all locks of its parts are held.
        unsafe { self.places.clear() };
        // SAFETY: its places are only changed under those locks. Who reads one sees it as it was, or zero; what it
        // counted is no longer known either.
        unsafe { self.filter.clear() };
        for shard in &self.shards {
            // Under the lock.
            shard.used.store(0, Ordering::Relaxed);
        }
        self.lost.store(0, Ordering::SeqCst);
        drop(held);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        // Of no moment.
        self.shards.iter().map(|shard| shard.used.load(Ordering::Relaxed)).sum()
    }

    /// How many found no place.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::SeqCst)
    }

    /// Address space.
    pub fn reserved_bytes(&self) -> usize {
        self.places.bytes() + self.filter.bytes()
    }
}
