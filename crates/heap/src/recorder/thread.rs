//! What a thread of the server knows of itself. It lives in the thread's own storage, which C++ declares
//! (shim/thread_state.cc): there it can be said that reaching it must not allocate.

use std::cell::Cell;
use std::sync::atomic::{compiler_fence, Ordering};

/// A hook of this thread is at work: what it allocates or frees meanwhile, in a signal handler, is not looked at.
pub const INSIDE: u32 = 1;
/// The thread reads what is recorded: what it allocates for that is not recorded, what it frees is.
pub const PAUSED: u32 = 2;

/// Of one thread, and used by it alone. Zeros are a thread that works for nobody.
///
/// It is shared and not borrowed for changes: whoever has it may allocate, and the hook that this calls has it, too.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ThreadState {
    flags: Cell<u32>,
    /// Whether everything that it allocates is recorded, for the statement that it works on.
    pub exact: Cell<bool>,
    /// Of the connection it works for; 0: for none.
    pub session: Cell<u64>,
    /// Which of the session's statements that are followed.
    pub statement: Cell<u32>,
    /// Of the statement, in `statements`.
    pub digest: Cell<u32>,
    /// While which plugin was there the server told of the statement.
    pub epoch: Cell<u64>,
    /// Bytes until the next sample, by this mean.
    until_sample: Cell<i64>,
    period: Cell<u64>,
    random: Cell<u64>,
}

/// The thread is marked as long as this is there.
pub struct Marked<'a> {
    thread: &'a ThreadState,
    before: u32,
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        // What a signal handler of this thread sees is what the program says, in its order.
        compiler_fence(Ordering::SeqCst);
        self.thread.flags.set(self.before);
    }
}

impl ThreadState {
    /// Marks it with these flags, and those that it has.
    pub fn mark(&self, flags: u32) -> Marked<'_> {
        let before = self.flags.replace(self.flags.get() | flags);
        compiler_fence(Ordering::SeqCst);
        Marked { thread: self, before }
    }

    /// Whether it is marked with one of these flags.
    pub fn is_marked(&self, flags: u32) -> bool {
        self.flags.get() & flags != 0
    }

    /// It works for this session from now on.
    pub fn begin(&self, session: u64, digest: u32) {
        self.session.set(session);
        self.digest.set(digest);
    }

    /// It works for nobody.
    pub fn end(&self) {
        self.exact.set(false);
        self.session.set(0);
        self.statement.set(0);
        self.digest.set(0);
    }

    /// Whether this allocation is taken: each byte is one that is, with a chance of 1 in `period`.
    pub fn is_sampled(&self, bytes: u64, period: u64) -> bool {
        if period <= 1 {
            return true;
        }
        if self.period.replace(period) != period {
            self.until_sample.set(self.draw(period));
        }
        let until = self.until_sample.get().saturating_sub(bytes.min(i64::MAX as u64) as i64);
        self.until_sample.set(if until > 0 { until } else { self.draw(period) });
        until <= 0
    }

    /// Bytes up to the next one that is taken.
    fn draw(&self, period: u64) -> i64 {
        // Where it lies is another place for each thread.
        let mut random = self.random.get();
        if random == 0 {
            random = (std::ptr::from_ref(self) as u64 ^ 0x9E37_79B9_7F4A_7C15) | 1;
        }
        // xorshift64*: without memory, and good enough for waiting times.
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        self.random.set(random);
        let chance = ((random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-chance.ln() * period as f64).ceil().max(1.0) as i64
    }
}
