//! The lock of a part of a table: held for some instructions, and taken in hooks, where nothing may allocate.

use std::sync::atomic::{AtomicBool, Ordering};

/// So often a thread looks before it lets others run.
const LOOKS: u32 = 100;

/// A lock on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub struct Spin(AtomicBool);

/// Who has it has the lock.
pub struct Held<'a>(&'a Spin);

impl Spin {
    /// A lock that nobody has.
    pub const fn new() -> Spin {
        Spin(AtomicBool::new(false))
    }

    /// Waits for it. A thread that comes back here by a signal would wait for ever: who takes it is marked `INSIDE`.
    pub fn lock(&self) -> Held<'_> {
        let mut looks = 0;
        // Taking it synchronises with the store in `drop`; looking at it guards nothing.
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                looks += 1;
                if looks % LOOKS == 0 {
                    // SAFETY: a system call without arguments.
                    unsafe { libc::sched_yield() };
                }
                std::hint::spin_loop();
            }
        }
        Held(self)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Synchronises with who takes it next.
        self.0 .0.store(false, Ordering::Release);
    }
}
