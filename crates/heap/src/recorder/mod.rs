//! What the allocator's hooks do: an allocation that is wanted is kept with its stack until it is freed.
//!
//! Called by `malloc` and `free` of every thread of the server while something is recorded. Nothing here allocates but
//! by `mmap` before the first hook ([`pages`]), so a hook never comes back into the allocator; and nothing waits but at
//! spin locks over a few instructions, which nobody holds who may be interrupted by himself ([`thread`]).
//!
//! | file | has |
//! |---|---|
//! | `pages` | arrays of zeros that the kernel fills in as they are touched |
//! | `spin` | the lock of a part of a table |
//! | `records` | live objects by address |
//! | `stacks` | stacks, each once, by number |
//! | `statements` | digests of statements, each once, by number |
//! | `thread` | what a thread knows of itself: whose statement it works for |
//! | `walk` | the way up the stack |

pub mod pages;
pub mod records;
pub mod spin;
pub mod stacks;
pub mod statements;
pub mod thread;
pub mod walk;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

use records::{Record, Records, EXACT, SAMPLED};
use stacks::Stacks;
use statements::Statements;
use thread::{ThreadState, INSIDE, PAUSED};

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// All that is recorded in this process.
pub struct Recorder {
    /// Mean bytes between two samples of a thread; 0: nothing is sampled.
    period: AtomicU64,
    /// Counts how often everything was forgotten, so that a hook that is late leaves nothing behind.
    generation: AtomicU64,
    /// A child after fork has the memory of its parent, and perhaps locks that no thread of it will ever open.
    forked: AtomicBool,
    /// Live objects.
    pub records: Records,
    /// Where they come from.
    pub stacks: Stacks,
    /// Whose they are.
    pub statements: Statements,
}

/// The recorder, once [`prepare`] was called.
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get()
}

/// The recorder; its memory is reserved by the first call.
///
/// # Errors
/// The kernel refuses the address space.
pub fn prepare() -> std::io::Result<&'static Recorder> {
    if let Some(there) = RECORDER.get() {
        return Ok(there);
    }
    let fresh = Recorder {
        period: AtomicU64::new(0),
        generation: AtomicU64::new(1),
        forked: AtomicBool::new(false),
        records: Records::new()?,
        stacks: Stacks::new()?,
        statements: Statements::new()?,
    };
    let kept = RECORDER.get_or_init(|| fresh);
    // SAFETY: the function only stores to an atomic; glibc takes it off again should the library ever be unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(forget_in_child)) };
    Ok(kept)
}

extern "C" fn forget_in_child() {
    if let Some(recorder) = RECORDER.get() {
        recorder.forked.store(true, Ordering::SeqCst);
    }
}

impl Recorder {
    /// A thread has `bytes` at `address`, which nobody else knows yet.
    pub fn allocated(&self, thread: &ThreadState, address: usize, bytes: u64) {
        if address == 0 || thread.is_marked(INSIDE | PAUSED) {
            return;
        }
        // A number that decides for itself; who sees it late begins or ends late.
        let period = self.period.load(Ordering::Relaxed);
        let sampled = period != 0 && thread.is_sampled(bytes, period);
        if !(sampled || thread.exact.get()) {
            return;
        }
        // Guards nothing: the child has one thread, which stored it.
        if self.forked.load(Ordering::Relaxed) {
            return;
        }
        let _marked = thread.mark(INSIDE);
        let generation = self.generation.load(Ordering::SeqCst);
        let mut stack = walk::Stack::new();
        stack.walk();
        let kind = if thread.exact.get() { EXACT } else { 0 } | if sampled { SAMPLED } else { 0 };
        let record = Record {
            address,
            bytes,
            session: thread.session.get(),
            statement: thread.statement.get(),
            digest: thread.digest.get(),
            stack: self.stacks.number_of(&stack),
            kind,
        };
        self.records.insert(record, || self.generation.load(Ordering::SeqCst) == generation);
    }

    /// A thread is about to free what is at `address`.
    pub fn freed(&self, thread: &ThreadState, address: usize) {
        if !self.records.may_have(address) {
            return;
        }
        // Guards nothing: see above.
        if thread.is_marked(INSIDE) || self.forked.load(Ordering::Relaxed) {
            return;
        }
        let _marked = thread.mark(INSIDE);
        self.records.remove(address, |_| true);
    }

    /// An object has another size by now, at the same place.
    pub fn resized(&self, thread: &ThreadState, address: usize, bytes: u64) {
        // Guards nothing: see above.
        if !self.records.may_have(address) || thread.is_marked(INSIDE) || self.forked.load(Ordering::Relaxed)
        {
            return;
        }
        let _marked = thread.mark(INSIDE);
        self.records.resize(address, bytes);
    }

    /// From now on every thread samples an allocation after so many bytes, in the mean; 0: none does.
    pub fn set_period(&self, bytes: u64) {
        self.period.store(bytes, Ordering::SeqCst);
    }

    /// Mean bytes between two samples; 0: nothing is sampled.
    pub fn period(&self) -> u64 {
        self.period.load(Ordering::SeqCst)
    }

    /// Forgets all objects and stacks. The calling thread must not be able to come back by a hook: it is marked so.
    pub fn forget(&self, thread: &ThreadState) {
        let _marked = thread.mark(INSIDE);
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.records.clear();
        self.stacks.clear();
    }

    /// All live objects. The list is made while other threads go on: it is none of one moment.
    pub fn live(&self, thread: &ThreadState) -> Vec<Record> {
        self.records.copy(thread)
    }

    /// Bytes of address space that are reserved, of which the kernel gives memory to what is used.
    pub fn reserved_bytes(&self) -> usize {
        self.records.reserved_bytes() + self.stacks.reserved_bytes() + self.statements.reserved_bytes()
    }
}

#[cfg(test)]
mod tests;
