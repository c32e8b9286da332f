//! The memory budget: who holds how much, what is given up when it runs short, and who waits.
//!
//! The cache owns no data. Owners of memory (leaves, inner pages, histories) charge and discharge what they hold and
//! register themselves as [`Evictable`]; those about to take more call [`Cache::make_room`] (or, if they must not be
//! refused, `make_room_if_possible`) *before they latch anything*, since eviction latches leaves and may write to the
//! spill file. How entries free memory is theirs to know.
//!
//! | used, of the budget | who evicts |
//! |---|---|
//! | below 95 % | nobody |
//! | above 95 % | the evictor thread, down to 92 % |
//! | above 100 % | also each caller of `make_room`, a bounded amount |
//! | above 105 % | callers stay until it is below, or until a double sweep of the clock frees nothing |
//!
//! Invariants: `make_room` never waits for another thread without a time limit, so that a budget which cannot be met
//! (all of it held by open transactions) slows writers and never stops them. Without the evictor thread everything
//! happens on the callers' threads, in an order that depends on their calls only.

mod clock;
mod evictor;
mod purpose;
mod quota;
mod rest;
mod usage;

use std::mem::Discriminant;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::counts::Count;
use crate::sync::Mutex;

use crate::{Error, LogLevel, Observer, Result};
use clock::Clock;
use evictor::{Evictor, Progress};
use purpose::ByPurpose;
pub use purpose::Purpose;
use quota::Quota;
use rest::Rest;
pub(crate) use usage::Usage;

/// What a caller above 100 % frees at most, and how many entries it looks at.
const CALLER_GOAL_BYTES: u64 = 256 << 10;
const CALLER_VISITS: usize = 256;
/// What the evictor frees between two looks at whether it shall stop.
const SLICE_BYTES: u64 = 4 << 20;
/// How long a caller waits for the evictor after a sweep that freed nothing.
const PAUSE: Duration = Duration::from_millis(2);
/// After a double sweep that freed nothing, so many callers do only bounded work before the next one tries it.
const CALLS_BETWEEN_SWEEPS: u32 = 64;
/// Likewise after a bounded one: memory that nobody can evict, for sorting say, is not looked for at each write.
const CALLS_BETWEEN_HELPS: u32 = 16;

/// Something that holds memory and can give it up.
pub trait Evictable: Send + Sync {
    /// Whether it was used since the last call; forgets it.
    fn touched(&self) -> bool;
    /// Frees what it can, also by writing it to disk, and discharges it from the cache. Returns the bytes freed; 0 if
    /// it cannot now. Must not wait for a latch that a caller of [`Cache::make_room`] may hold.
    fn evict(&self) -> Result<u64>;
    /// Bytes that an eviction might free.
    fn resident(&self) -> u64;
    /// Whether it is to leave the clock, since it holds nothing; it registers again before it does. Called under a
    /// latch of the clock: must not wait.
    fn leaves(&self) -> bool {
        false
    }
}

/// The memory budget of an engine.
pub struct Cache {
    state: Arc<State>,
    evictor: Evictor,
    /// Of what cannot leave memory.
    quota: Option<Quota>,
}

/// What the evictor thread shares with the callers.
struct State {
    budget: AtomicU64,
    /// 95 % of the budget, so that `make_room` compares and does not divide.
    threshold: AtomicU64,
    usage: Usage,
    by_purpose: ByPurpose,
    rest: OnceLock<Rest>,
    clock: Clock,
    /// Calls left until the next double sweep is worth its time; 0 unless the last one freed nothing.
    futile: AtomicU32,
    observer: Arc<dyn Observer>,
    reported: Mutex<Vec<Discriminant<Error>>>,
}

/// What a sweep did.
#[derive(Default)]
struct Sweep {
    freed: u64,
    /// The last failure of an eviction.
    failure: Option<Error>,
}

impl Cache {
    /// A cache without evictor thread; failures of evictions go to `observer`, once per kind.
    pub fn new(budget_bytes: u64, observer: Arc<dyn Observer>) -> Cache {
        let state = Arc::new(State {
            budget: AtomicU64::new(0),
            threshold: AtomicU64::new(0),
            usage: Usage::new(budget_bytes),
            by_purpose: ByPurpose::default(),
            rest: OnceLock::new(),
            clock: Clock::new(),
            futile: AtomicU32::new(0),
            observer,
            reported: Mutex::new(Vec::new()),
        });
        state.set_budget(budget_bytes);
        Cache { evictor: Evictor::new(), state, quota: None }
    }

    /// The budget in bytes.
    pub fn budget(&self) -> u64 {
        self.state.budget()
    }

    /// Changes the budget; the evictor begins to meet it at once, callers with their next [`Cache::make_room`].
    pub fn set_budget(&self, bytes: u64) {
        self.state.set_budget(bytes);
        if self.state.usage.approximate() > self.state.threshold() {
            self.evictor.wake();
        }
    }

    /// From now on what is in memory and was charged to nobody counts as used, but for what an engine has by itself:
    /// `taken` says how many bytes are in memory that this cache is to pay for, and `holes` how many more in which
    /// nothing is; the evictor thread asks for these. Neither may charge anything, and `taken` must not wait.
    pub fn count_rest(
        &self,
        taken: impl Fn() -> u64 + Send + Sync + 'static,
        holes: impl Fn() -> u64 + Send + Sync + 'static,
    ) {
        // Whoever comes second is of the same engine, and of no use.
        let _ = self.state.rest.set(Rest::new(Box::new(taken), Box::new(holes)));
    }

    /// Bytes charged now, and what counts without.
    pub fn used(&self) -> u64 {
        self.state.usage.exact()
    }

    /// Bytes charged now, by what for. The sum is exact while nobody charges.
    pub fn used_for(&self) -> [u64; Purpose::COUNT] {
        let charged = self.used().saturating_sub(self.state.rest.get().map_or(0, Rest::counted));
        self.state.by_purpose.of(charged)
    }

    /// Adds to what is used. Never waits.
    #[inline]
    pub fn charge(&self, purpose: Purpose, bytes: usize) {
        self.count(purpose, bytes as i64);
    }

    /// Takes off what was charged.
    #[inline]
    pub fn discharge(&self, purpose: Purpose, bytes: usize) {
        self.count(purpose, -(bytes as i64));
    }

    #[inline]
    fn count(&self, purpose: Purpose, bytes: i64) {
        self.state.by_purpose.add(purpose, bytes);
        let changed = self.state.usage.add(bytes);
        match &self.quota {
            Some(quota) => quota.count(bytes),
            None if changed => self.state.lend(),
            None => {}
        }
    }

    /// Makes an entry known to the clock, for as long as it lives.
    pub fn register(&self, entry: Weak<dyn Evictable>) {
        self.state.clock.register(entry);
    }

    /// Entries that the clock has.
    #[cfg(test)]
    pub fn known(&self) -> usize {
        self.state.clock.len()
    }

    /// Back-pressure: call it before taking memory, holding no latch. Below 95 % of the budget it costs two loads. It
    /// fails only far above the budget (by a quarter) and only if evictions fail: for example with [`Error::DiskFull`]
    /// when history cannot be spilled.
    #[inline]
    pub fn make_room(&self) -> Result<()> {
        if self.state.usage.approximate() <= self.state.threshold() {
            return Ok(());
        }
        self.make_room_slowly()
    }

    /// Whether a quarter of the budget is left: then nothing is done to save memory.
    pub fn is_roomy(&self) -> bool {
        let budget = self.state.budget();
        self.state.usage.approximate() <= budget - budget / 4
    }

    /// Whether there is room for what nobody has asked for yet: not above the budget. Above 95 % of it the evictor
    /// begins to work.
    pub fn has_room(&self) -> bool {
        let used = self.state.usage.approximate();
        if used > self.state.threshold() {
            self.evictor.wake();
        }
        used <= self.state.budget()
    }

    /// Like [`Cache::make_room`], and never refused: for checkpoints, which clean what could not be evicted, and for
    /// reads, which take what can be dropped or put back where it was. Failures were told to the observer.
    #[inline]
    pub fn make_room_if_possible(&self) {
        let _ = self.make_room();
    }

    #[cold]
    fn make_room_slowly(&self) -> Result<()> {
        if let Some(quota) = &self.quota {
            return quota.make_room(&self.state);
        }
        self.evictor.wake();
        let (used, budget) = (self.state.usage.approximate(), self.state.budget());
        if used <= budget {
            return Ok(());
        }
        // For what nobody can evict nobody waits.
        let rest = self.state.rest.get().map_or(0, Rest::counted);
        let limit = budget.saturating_add(budget / 20).saturating_add(rest);
        if used <= limit {
            self.state.help(CALLER_GOAL_BYTES.min(used - budget));
            return Ok(());
        }
        let sweep = self.state.reduce_to(limit);
        if self.state.usage.approximate() <= limit {
            return Ok(());
        }
        match sweep.failure {
            Some(failure) if self.state.usage.approximate() > limit.saturating_add(budget / 5) => {
                Err(failure)
            }
            _ => {
                Count::MemoryWaits.add(1);
                self.evictor.pause(PAUSE);
                Ok(())
            }
        }
    }

    /// Starts the evictor thread (`teak-evict`), if it does not run.
    pub fn start(&self) -> Result<()> {
        let state = self.state.clone();
        self.evictor.start(move || {
            if let Some(rest) = state.rest.get() {
                rest.measure();
            }
            let (used, goal) = (state.usage.approximate(), state.budget() / 100 * 92);
            if used <= goal {
                return Progress::Done;
            }
            let sweep = state.sweep(SLICE_BYTES.min(used - goal), 2 * state.clock.len() + 2);
            match sweep.freed {
                0 => Progress::Nothing,
                _ => Progress::More,
            }
        })
    }

    /// Stops the evictor thread and waits for its end; without it, callers evict.
    pub fn stop(&self) {
        self.evictor.stop();
    }
}

/// Bytes charged to a cache for as long as this lives.
pub struct Charge {
    cache: Arc<Cache>,
    purpose: Purpose,
    bytes: usize,
}

impl Charge {
    /// Charges `bytes`. Never waits.
    pub fn new(cache: &Arc<Cache>, purpose: Purpose, bytes: usize) -> Charge {
        cache.charge(purpose, bytes);
        Charge { cache: cache.clone(), purpose, bytes }
    }

    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges `bytes` from now on. Never waits.
    pub fn change(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.cache.charge(self.purpose, bytes.saturating_sub(before));
        self.cache.discharge(self.purpose, before.saturating_sub(bytes));
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.cache.discharge(self.purpose, self.bytes);
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn budget(&self) -> u64 {
        // Relaxed: a number, nothing is reached through it; likewise below.
        self.budget.load(Ordering::Relaxed)
    }

    fn threshold(&self) -> u64 {
        // Relaxed: see `budget`.
        self.threshold.load(Ordering::Relaxed)
    }

    /// What is not used may be kept warm for who uses it next.
    #[cold]
    fn lend(&self) {
        let budget = self.budget();
        if let Some(rest) = self.rest.get() {
            self.usage.add(rest.look(self.usage.approximate(), budget));
        }
        let room = budget.saturating_sub(self.usage.approximate());
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        crate::slabs::settle(bytes(room), bytes(budget));
    }

    fn set_budget(&self, bytes: u64) {
        // Relaxed: see `budget`.
        self.budget.store(bytes, Ordering::Relaxed);
        self.threshold.store(bytes - bytes / 20, Ordering::Relaxed);
        self.usage.set_precision(bytes);
    }

    /// Moves the clock on until `goal` bytes are freed or `visits` entries were looked at.
    fn sweep(&self, goal: u64, visits: usize) -> Sweep {
        let mut sweep = Sweep::default();
        let mut left = visits;
        while left > 0 && sweep.freed < goal {
            let batch = self.clock.next(left);
            if batch.is_empty() {
                break;
            }
            left = left.saturating_sub(batch.len());
            for entry in batch {
                self.visit(&*entry, &mut sweep);
                if sweep.freed >= goal {
                    break;
                }
            }
        }
        if sweep.freed > 0 {
            // Relaxed: a hint how much to try.
            self.futile.store(0, Ordering::Relaxed);
        }
        sweep
    }

    /// A bounded sweep, for a caller that may go on without; not while the last ones have freed nothing.
    fn help(&self, goal: u64) {
        // Relaxed: see `reduce_to`.
        let futile = self.futile.load(Ordering::Relaxed);
        if futile > 0 {
            return self.futile.store(futile - 1, Ordering::Relaxed);
        }
        if self.sweep(goal, CALLER_VISITS).freed == 0 {
            self.futile.store(CALLS_BETWEEN_HELPS, Ordering::Relaxed);
        }
    }

    fn visit(&self, entry: &dyn Evictable, sweep: &mut Sweep) {
        if entry.touched() || entry.resident() == 0 {
            return;
        }
        match entry.evict() {
            Ok(bytes) => {
                Count::Evictions.add(u64::from(bytes > 0));
                Count::EvictedBytes.add(bytes);
                sweep.freed += bytes;
            }
            Err(failure) => {
                self.report(&failure);
                sweep.failure = Some(failure);
            }
        }
    }

    /// Sweeps until at most `limit` bytes are used or a double sweep frees nothing: the first may only forget touches.
    fn reduce_to(&self, limit: u64) -> Sweep {
        // Relaxed: a hint; two callers that both decrement only sweep a little earlier.
        let futile = self.futile.load(Ordering::Relaxed);
        if futile > 0 {
            self.futile.store(futile - 1, Ordering::Relaxed);
            return self.sweep(CALLER_GOAL_BYTES, CALLER_VISITS);
        }
        loop {
            let used = self.usage.approximate();
            if used <= limit {
                return Sweep::default();
            }
            let sweep = self.sweep(used - limit, 2 * self.clock.len() + 2);
            if sweep.freed == 0 {
                // Relaxed: see above.
                self.futile.store(CALLS_BETWEEN_SWEEPS, Ordering::Relaxed);
                return sweep;
            }
        }
    }

    fn report(&self, failure: &Error) {
        let kind = std::mem::discriminant(failure);
        let mut reported = self.reported.lock();
        if !reported.contains(&kind) {
            reported.push(kind);
            drop(reported);
            self.observer.message(LogLevel::Error, &format!("memory could not be freed: {failure}"));
        }
    }
}

#[cfg(test)]
mod tests;
