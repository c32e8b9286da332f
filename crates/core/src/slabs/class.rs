//! Slots of one size each, in slabs of 1 MiB.
//!
//! Address space is reserved in regions of 64 MiB and never given back; memory is: a slot that is free and not wanted
//! soon loses its pages (`madvise`), and takes none until it is used; of slots smaller than a page, all in it together.
//! A slab whose slots are all free may serve another size. Sizes are a KiB apart, so a buffer wastes half of one: a
//! sixtieth of a leaf.
//!
//! One latch a size, held for some tens of nanoseconds; reading a block from a file takes a thousand times that. A
//! class takes from the slab that something was freed in last, and of that the slots that have their pages.

use std::ptr::NonNull;
use std::sync::OnceLock;

use parking_lot::Mutex;

/// What slots differ by.
const STEP_BYTES: usize = 1 << 10;
/// The smallest slot, and the largest.
const LEAST_BYTES: usize = 1 << 10;
const MOST_BYTES: usize = 64 << 10;
const CLASSES: usize = (MOST_BYTES - LEAST_BYTES) / STEP_BYTES + 1;
const SLAB_BYTES: usize = 1 << 20;
const REGION_BYTES: usize = 64 << 20;
/// Free slots of a class that keep their pages, whatever is in use; and beyond that, one for so many in use. The
/// evictor works between 95 and 92 % of the cache: what that frees and takes again stays.
const KEPT_SLOTS: usize = 4;
const USED_PER_KEPT: usize = 16;
/// Of a slab.
const MOST_SLOTS: usize = SLAB_BYTES / LEAST_BYTES;
/// Of a slab that is not among those with free slots.
const NOWHERE: usize = usize::MAX;

/// A bit a slot.
type Slots = [u64; MOST_SLOTS / 64];

/// Buffers of all sizes come from here; unit tests under a scheduler share it, as all of a process does.
static ALL: [Mutex<Class>; CLASSES] = [const { Mutex::new(Class::NEW) }; CLASSES];
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
    let keeps = state.keeps();
    let by_itself = slot.bytes() >= page_bytes();
    if !keeps && by_itself {
        // Still this thread's alone: nobody waits for the operating system.
        drop(state);
        lose_pages(start, slot.bytes());
        state = ALL[class].lock();
    }
    let number = (start - state.slabs[slab].start) / slot.bytes();
    state.put(slab, number, keeps || !by_itself);
    if !keeps && !by_itself && page_bytes() % slot.bytes() == 0 {
        let together = page_bytes() / slot.bytes();
        let first = number / together * together;
        if state.cool(slab, first..first + together) {
            lose_pages(start / page_bytes() * page_bytes(), page_bytes());
        }
    }
    if let Some(start) = state.remove_unused(slab) {
        drop(state);
        lose_pages(start, SLAB_BYTES);
        POOL.lock().free.push(start);
    }
}

/// Bytes of slots that are free and have their pages: takes each latch for a moment.
pub fn kept_bytes() -> usize {
    ALL.iter().enumerate().map(|(class, state)| state.lock().warm * slot_bytes(class)).sum()
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
}

struct Slab {
    start: usize,
    slots: usize,
    used: usize,
    free: Slots,
    /// Of those that are free, which have their pages.
    warm: Slots,
    /// Where it stands among the slabs with free slots.
    place: usize,
}

impl Class {
    const NEW: Class = Class { slabs: Vec::new(), vacant: Vec::new(), partial: Vec::new(), used: 0, warm: 0 };

    /// Whether one more free slot may keep its pages.
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
        let slab = Slab { start, slots, used: 0, free, warm: Slots::default(), place: self.partial.len() };
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
            flip(&mut slab.warm, slot);
            self.warm -= 1;
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
                flip(&mut slab.warm, slot);
                self.warm -= 1;
            }
        }
        true
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
        let start = slab.start;
        self.warm -= slab.warm.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        self.leave_partial(number);
        self.vacant.push(number);
        Some(start)
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

/// Address space whose pages are zero, and come when they are used. No huge pages: they would bring back what was given
/// back, as soon as one slot of them is in use.
fn map(bytes: usize) -> Option<usize> {
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever there is room, changes nothing that is there.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind | libc::MAP_NORESERVE, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the mapping was made just now, and the advice changes no bytes. That the kernel knows no huge pages is no
    // failure.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE)
    };
    Some(start as usize)
}

/// What the operating system gives and takes back memory by.
fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: asks for a number.
    *PAGE_BYTES.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize)
}

/// Gives back the whole pages of a range that nobody uses: they are zero when they are used again.
fn lose_pages(start: usize, bytes: usize) {
    let page = page_bytes();
    let (first, end) = (start.next_multiple_of(page), (start + bytes) / page * page);
    if first < end {
        // SAFETY: the range lies within a mapping of `map`, in a slot or a slab that nobody has: what is in it is not
        // read again, and zero is a value of each byte. A failure leaves what was.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_DONTNEED) };
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
                let warm = |slab: &Slab| slab.warm.iter().map(|word| word.count_ones() as usize).sum::<usize>();
                let live = state.slabs.iter().enumerate().filter(|(number, _)| !state.vacant.contains(number));
                prop_assert_eq!(live.map(|(_, slab)| warm(slab)).sum::<usize>(), state.warm);
            }
        }
    }
}
