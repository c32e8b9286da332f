//! The primitives under shuttle's scheduler.

pub use shuttle::sync::atomic;
pub use shuttle::thread::yield_now;
pub use shuttle_parking_lot_impl::{Mutex, MutexGuard, RwLock};

use shuttle::rand::{thread_rng, Rng};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that who waits for some time lets others go on before the time is up.
const LONGEST_WAIT: u32 = 8;

/// As parking_lot's, with its guards, which stay with who waits.
#[derive(Default)]
pub struct Condvar {
    waiting: shuttle::sync::Mutex<Waiting>,
    changed: shuttle::sync::Condvar,
}

/// Those who wait, by number, in their order.
#[derive(Default)]
struct Waiting {
    last: u64,
    numbers: Vec<u64>,
}

/// How a wait with a time limit has ended.
#[derive(Clone, Copy)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    fn waiting(&self) -> shuttle::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn enter(&self) -> u64 {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let number = waiting.last;
        waiting.numbers.push(number);
        number
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let number = self.enter();
        MutexGuard::unlocked(guard, || {
            let mut waiting = self.waiting();
            while waiting.numbers.contains(&number) {
                waiting = self.changed.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        });
    }

    /// There is no clock: the time is up after a random number of turns of others.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _until: Instant) -> WaitTimeoutResult {
        let number = self.enter();
        let turns = thread_rng().gen_range(0..=LONGEST_WAIT);
        MutexGuard::unlocked(guard, || {
            for _ in 0..turns {
                if !self.waiting().numbers.contains(&number) {
                    break;
                }
                yield_now();
            }
        });
        let mut waiting = self.waiting();
        let place = waiting.numbers.iter().position(|&other| other == number);
        place.map(|place| waiting.numbers.remove(place));
        WaitTimeoutResult(place.is_some())
    }

    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _limit: Duration) -> WaitTimeoutResult {
        self.wait_until(guard, Instant::now())
    }

    pub fn notify_one(&self) -> bool {
        let mut waiting = self.waiting();
        let someone = !waiting.numbers.is_empty();
        if someone {
            waiting.numbers.remove(0);
            self.changed.notify_all();
        }
        someone
    }

    pub fn notify_all(&self) -> usize {
        let mut waiting = self.waiting();
        let woken = std::mem::take(&mut waiting.numbers).len();
        self.changed.notify_all();
        woken
    }
}

/// As arc-swap's: each operation happens at once, and others may go on before it.
pub struct ArcSwapAny<T> {
    here: Mutex<T>,
}

pub type ArcSwap<T> = ArcSwapAny<Arc<T>>;
pub type ArcSwapOption<T> = ArcSwapAny<Option<Arc<T>>>;

/// What was there when it was loaded.
pub struct Guard<T>(T);

impl<T> Guard<T> {
    pub fn from_inner(value: T) -> Guard<T> {
        Guard(value)
    }

    pub fn into_inner(guard: Guard<T>) -> T {
        guard.0
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> ArcSwapAny<T> {
    pub fn load(&self) -> Guard<T> {
        Guard(self.load_full())
    }

    pub fn load_full(&self) -> T {
        self.here.lock().clone()
    }

    pub fn store(&self, value: T) {
        drop(self.swap(value));
    }

    pub fn swap(&self, value: T) -> T {
        std::mem::replace(&mut *self.here.lock(), value)
    }
}

impl<T> ArcSwapAny<T> {
    pub fn new(value: T) -> Self {
        ArcSwapAny { here: Mutex::new(value) }
    }
}

impl<T> ArcSwapAny<Arc<T>> {
    pub fn from_pointee(value: T) -> Self {
        ArcSwapAny { here: Mutex::new(Arc::new(value)) }
    }
}

impl<T> ArcSwapAny<Option<Arc<T>>> {
    pub fn empty() -> Self {
        ArcSwapAny { here: Mutex::new(None) }
    }

    pub fn from_pointee(value: impl Into<Option<T>>) -> Self {
        ArcSwapAny { here: Mutex::new(value.into().map(Arc::new)) }
    }
}
