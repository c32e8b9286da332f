//! Slots of one size each, in slabs of 1 MiB.
//!
//! Address space is reserved in regions of 64 MiB and never given back; memory is: a slot that is free and for which
//! there is no room loses its pages (`madvise`), and takes none until it is used; of slots smaller than a page, all in
//! it together. A slab whose slots are all free may serve another size. Sizes are a KiB apart, so a buffer wastes half
//! of one: a sixtieth of a leaf.
//!
//! There is room for what the cache does not use of its budget ([`settle`]): where all is in memory, nothing goes to
//! the operating system and comes back page by page. When the cache fills, what is free elsewhere goes first.
//!
//! One latch a size, held for some tens of nanoseconds; reading a block from a file takes a thousand times that. A
//! class takes from the slab that something was freed in last, and of that the slots that have their pages.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::pages::{lose_pages, map, page_bytes};

/// What slots differ by.
const STEP_BYTES: usize = 1 << 10;
/// The smallest slot, and the largest.
const LEAST_BYTES: usize = 1 << 10;
const MOST_BYTES: usize = 64 << 10;
const CLASSES: usize = (MOST_BYTES - LEAST_BYTES) / STEP_BYTES + 1;
const SLAB_BYTES: usize = 1 << 20;
const REGION_BYTES: usize = 64 << 20;
/// Free slots of a class that keep their pages, also without room; and beyond that, one for so many in use. The evictor
/// works between 95 and 92 % of the cache: what that frees and takes again stays.
const KEPT_SLOTS: usize = 1;
const USED_PER_KEPT: usize = 32;
/// Of a slab.
const MOST_SLOTS: usize = SLAB_BYTES / LEAST_BYTES;
/// What is cooled at once, of so many classes, and how many slabs of each are looked at: who charges the cache does it.
const COOLED_BYTES: usize = 256 << 10;
const COOLED_CLASSES: usize = 16;
const COOLED_LOOKS: usize = 16;
/// Of a slab that is not among those with free slots.
const NOWHERE: usize = usize::MAX;

/// A bit a slot.
type Slots = [u64; MOST_SLOTS / 64];

/// Buffers of all sizes come from here; unit tests under a scheduler share it, as all of a process does.
static ALL: [Mutex<Class>; CLASSES] = [const { Mutex::new(Class::NEW) }; CLASSES];
// Relaxed, as all numbers here: nothing is reached through them.
/// Bytes of free slots that have their pages.
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// What these may be.
static ROOM: AtomicUsize = AtomicUsize::new(0);
/// The class to cool next.
static COOLS: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), next: 0, end: 0 });

/// A place for a buffer, which is its only owner.
pub(super) struct Slot {
    start: NonNull<u8>,
    class: u32,
    slab: u32,
}

/// The class of slots for so many bytes; None: there is none.
pub(super) fn of(bytes: usize) -> Option<usize> {
    (LEAST_BYTES / 2 < bytes && bytes <= MOST_BYTES).then(|| (bytes - 1) / STEP_BYTES)
}

fn slot_bytes(class: usize) -> usize {
    LEAST_BYTES + class * STEP_BYTES
}

impl Slot {
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        slot_bytes(self.class as usize)
    }
}

/// A slot; None if there is no memory.
pub(super) fn take(class: usize) -> Option<Slot> {
    let mut state = ALL[class].lock();
    let slab = match state.partial.last() {
        Some(&slab) => slab,
        None => state.add(slot_bytes(class), POOL.lock().take()?),
    };
    let number = state.take(slab);
    // The slab is a slab's worth of bytes from its start, and the slot one of those that fit into it.
    let start = NonNull::new((state.slabs[slab].start + number * slot_bytes(class)) as *mut u8)?;
    Some(Slot { start, class: class as u32, slab: slab as u32 })
}

/// Frees a slot.
pub(super) fn give_back(slot: Slot) {
    let (class, slab) = (slot.class as usize, slot.slab as usize);
    let start = slot.start.as_ptr() as usize;
    let mut state = ALL[class].lock();
    let keeps = state.keeps() || KEPT.load(Ordering::Relaxed) + slot.bytes() <= ROOM.load(Ordering::Relaxed);
    let by_itself = slot.bytes() >= page_bytes();
    if !keeps && by_itself {
        // Still this thread's alone: nobody waits for the operating system.
        drop(state);
        lose_pages(start, slot.bytes());
        state = ALL[class].lock();
    }
    let number = (start - state.slabs[slab].start) / slot.bytes();
    state.put(slab, number, keeps || !by_itself);
    if let Some(together) = together(slot.bytes()).filter(|_| !keeps && !by_itself) {
        let first = number / together * together;
        if state.cool(slab, first..first + together) {
            lose_pages(start / page_bytes() * page_bytes(), page_bytes());
        }
    }
    let unused = if keeps { None } else { state.remove_unused(slab) };
    drop(state);
    unused.into_iter().for_each(free_slab);
}

/// A slab of which no slot is used serves any size.
fn free_slab(start: usize) {
    lose_pages(start, SLAB_BYTES);
    POOL.lock().free.push(start);
}

/// Bytes of slots that are in use: takes each latch for a moment.
pub fn used_bytes() -> usize {
    ALL.iter().enumerate().map(|(class, state)| state.lock().used * slot_bytes(class)).sum()
}

/// Bytes of slots that are free and have their pages.
pub fn kept_bytes() -> usize {
    KEPT.load(Ordering::Relaxed)
}

/// Free slots may keep `room` bytes; if they have more, some lose their pages.
pub(super) fn settle(room: usize) {
    ROOM.store(room, Ordering::Relaxed);
    let mut left = KEPT.load(Ordering::Relaxed).saturating_sub(room).min(COOLED_BYTES);
    for _ in 0..COOLED_CLASSES {
        if left == 0 {
            break;
        }
        let class = COOLS.fetch_add(1, Ordering::Relaxed) % CLASSES;
        let Some(mut state) = ALL[class].try_lock().filter(|state| !state.keeps()) else { continue };
        let (cooled, unused) = state.cool_some();
        drop(state);
        unused.into_iter().for_each(free_slab);
        left = left.saturating_sub(cooled);
    }
}

/// The slabs of one size of slots.
struct Class {
    slabs: Vec<Slab>,
    /// Numbers of slabs that are none any more.
    vacant: Vec<usize>,
    /// Slabs with free slots; the last one is taken from.
    partial: Vec<usize>,
    used: usize,
    /// Free slots that have their pages.
    warm: usize,
    /// The slab to cool next, among those with free slots.
    cools: usize,
}

struct Slab {
    start: usize,
    slot_bytes: usize,
    slots: usize,
    used: usize,
    free: Slots,
    /// Of those that are free, which have their pages.
    warm: Slots,
    /// Where it stands among the slabs with free slots.
    place: usize,
}

impl Class {
    const NEW: Class =
        Class { slabs: Vec::new(), vacant: Vec::new(), partial: Vec::new(), used: 0, warm: 0, cools: 0 };

    /// Whether one more free slot may keep its pages, whether there is room or not.
    fn keeps(&self) -> bool {
        self.warm < KEPT_SLOTS + self.used / USED_PER_KEPT
    }

    /// A new slab from `start` on. Its number.
    fn add(&mut self, slot_bytes: usize, start: usize) -> usize {
        let slots = SLAB_BYTES / slot_bytes;
        let free = std::array::from_fn(|word| match slots.saturating_sub(64 * word) {
            all if all >= 64 => u64::MAX,
            some => (1 << some) - 1,
        });
        let slab = Slab {
            start,
            slot_bytes,
            slots,
            used: 0,
            free,
            warm: Slots::default(),
            place: self.partial.len(),
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.slabs[number] = slab;
                number
            }
            None => {
                self.slabs.push(slab);
                self.slabs.len() - 1
            }
        };
        self.partial.push(number);
        number
    }

    /// Takes a free slot of a slab that has some. Its number.
    fn take(&mut self, number: usize) -> usize {
        let slab = &mut self.slabs[number];
        let (from, is_warm) = match slab.warm == Slots::default() {
            true => (&slab.free, false),
            false => (&slab.warm, true),
        };
        let word = from.iter().position(|word| *word != 0).expect("a slab with free slots");
        let slot = 64 * word + from[word].trailing_zeros() as usize;
        flip(&mut slab.free, slot);
        if is_warm {
            self.warm -= slab.cool(slot);
        }
        slab.used += 1;
        self.used += 1;
        if slab.used == slab.slots {
            self.leave_partial(number);
        }
        slot
    }

    fn put(&mut self, number: usize, slot: usize, is_warm: bool) {
        let slab = &mut self.slabs[number];
        debug_assert!(slab.free[slot / 64] >> (slot % 64) & 1 == 0, "a slot is freed once");
        flip(&mut slab.free, slot);
        if is_warm {
            flip(&mut slab.warm, slot);
            self.warm += 1;
            // Relaxed: a number.
            KEPT.fetch_add(slab.slot_bytes, Ordering::Relaxed);
        }
        slab.used -= 1;
        self.used -= 1;
        if slab.place == NOWHERE {
            slab.place = self.partial.len();
            self.partial.push(number);
        }
    }

    /// Of these slots, if all of them are free: they lose their pages.
    fn cool(&mut self, number: usize, slots: std::ops::Range<usize>) -> bool {
        let slab = &mut self.slabs[number];
        let has = |set: &Slots, slot: usize| set[slot / 64] >> (slot % 64) & 1 != 0;
        if slots.end > slab.slots || !slots.clone().all(|slot| has(&slab.free, slot)) {
            return false;
        }
        for slot in slots {
            if has(&slab.warm, slot) {
                self.warm -= slab.cool(slot);
            }
        }
        true
    }

    /// Free slots of some slab lose their pages, if there are such: their bytes. And a slab without a used slot, which
    /// is not this class's any more.
    fn cool_some(&mut self) -> (usize, Option<usize>) {
        for _ in 0..COOLED_LOOKS.min(self.partial.len()) {
            self.cools = (self.cools + 1) % self.partial.len();
            let number = self.partial[self.cools];
            let (warm, slot_bytes) = (self.slabs[number].warm_slots(), self.slabs[number].slot_bytes);
            if warm == 0 {
                continue;
            }
            if let Some(start) = self.remove_unused(number) {
                return (warm * slot_bytes, Some(start));
            }
            let cooled = self.cool_slots(number);
            if cooled > 0 {
                return (cooled, None);
            }
        }
        (0, None)
    }

    /// The free slots of a slab lose their pages, as far as these are theirs alone.
    fn cool_slots(&mut self, number: usize) -> usize {
        let Slab { start, slot_bytes, slots, .. } = self.slabs[number];
        let Some(together) = together(slot_bytes) else { return 0 };
        let before = self.warm;
        for first in (0..slots).step_by(together) {
            let warm = self.warm;
            if self.cool(number, first..first + together) && self.warm < warm {
                lose_pages(start + first * slot_bytes, together * slot_bytes);
            }
        }
        (before - self.warm) * slot_bytes
    }

    fn leave_partial(&mut self, number: usize) {
        let place = std::mem::replace(&mut self.slabs[number].place, NOWHERE);
        self.partial.swap_remove(place);
        if let Some(&moved) = self.partial.get(place) {
            self.slabs[moved].place = place;
        }
    }

    /// Removes a slab without a used slot, unless it is the only one to take from. Where it was.
    fn remove_unused(&mut self, number: usize) -> Option<usize> {
        let slab = &self.slabs[number];
        if slab.used > 0 || self.partial.len() == 1 {
            return None;
        }
        let (start, warm) = (slab.start, slab.warm_slots());
        self.warm -= warm;
        KEPT.fetch_sub(warm * slab.slot_bytes, Ordering::Relaxed);
        self.leave_partial(number);
        self.vacant.push(number);
        Some(start)
    }
}

/// How many slots next to each other lose their pages together; None: they do with their slab only.
fn together(slot_bytes: usize) -> Option<usize> {
    match page_bytes() / slot_bytes {
        0 => Some(1),
        many => page_bytes().is_multiple_of(slot_bytes).then_some(many),
    }
}

impl Slab {
    /// How many slots are free and have their pages.
    fn warm_slots(&self) -> usize {
        self.warm.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// A slot is not one that is kept any more: 1, to be taken off their number.
    fn cool(&mut self, slot: usize) -> usize {
        flip(&mut self.warm, slot);
        KEPT.fetch_sub(self.slot_bytes, Ordering::Relaxed);
        1
    }
}

fn flip(slots: &mut Slots, slot: usize) {
    slots[slot / 64] ^= 1 << (slot % 64);
}

/// Slabs for all sizes.
struct Pool {
    free: Vec<usize>,
    /// What is left of the newest region.
    next: usize,
    end: usize,
}

impl Pool {
    /// Where a slab may be; None if there is no memory.
    fn take(&mut self) -> Option<usize> {
        if let Some(start) = self.free.pop() {
            return Some(start);
        }
        if self.next == self.end {
            self.next = map(REGION_BYTES)?;
            self.end = self.next + REGION_BYTES;
        }
        let start = self.next;
        self.next += SLAB_BYTES;
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_size_has_the_smallest_slot_that_it_fits_into() {
        assert_eq!((of(0), of(LEAST_BYTES / 2), of(MOST_BYTES + 1)), (None, None, None));
        for bytes in LEAST_BYTES / 2 + 1..=MOST_BYTES {
            let class = of(bytes).unwrap();
            assert!(slot_bytes(class) >= bytes && (class == 0 || slot_bytes(class - 1) < bytes), "{bytes}");
            assert!(class < CLASSES);
        }
    }

    proptest! {
        /// A class's books beside a map of its slots; slabs are numbers here, no memory is touched.
        #[test]
        fn a_class_knows_its_slots(class in 0..CLASSES, steps in proptest::collection::vec(any::<(bool, u16)>(), 1..2000)) {
            let bytes = slot_bytes(class);
            let mut state = Class::NEW;
            let (mut next, mut pool, mut used) = (1, Vec::new(), BTreeMap::new());
            for (takes, which) in steps {
                if takes || used.is_empty() {
                    let slab = match state.partial.last() {
                        Some(&slab) => slab,
                        None => {
                            let start = pool.pop().unwrap_or_else(|| {
                                next += 1;
                                (next - 1) * SLAB_BYTES
                            });
                            state.add(bytes, start)
                        }
                    };
                    let number = state.take(slab);
                    prop_assert!((number + 1) * bytes <= SLAB_BYTES);
                    let start = state.slabs[slab].start + number * bytes;
                    prop_assert_eq!(used.insert(start, slab), None, "a slot has one owner");
                } else {
                    let (&start, &slab) = used.iter().nth(usize::from(which) % used.len()).unwrap();
                    used.remove(&start);
                    let (keeps, number) = (state.keeps(), (start - state.slabs[slab].start) / bytes);
                    let together = 4096 / bytes;
                    state.put(slab, number, keeps || together > 0);
                    if !keeps && together > 0 {
                        let first = number / together * together;
                        let cooled = state.cool(slab, first..first + together);
                        let begins = state.slabs[slab].start + first * bytes;
                        prop_assert_eq!(cooled, used.range(begins..begins + together * bytes).next().is_none());
                    }
                    pool.extend(state.remove_unused(slab));
                }
                prop_assert_eq!(state.used, used.len());
                for (place, &slab) in state.partial.iter().enumerate() {
                    prop_assert_eq!(state.slabs[slab].place, place);
                    prop_assert!(state.slabs[slab].used < state.slabs[slab].slots);
                }
                let live = state.slabs.iter().enumerate().filter(|(number, _)| !state.vacant.contains(number));
                prop_assert_eq!(live.map(|(_, slab)| slab.warm_slots()).sum::<usize>(), state.warm);
            }
            KEPT.fetch_sub(state.warm * bytes, Ordering::Relaxed);
        }
    }
}
