use super::*;
use crate::SilentObserver;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// Holds memory like a leaf that can be read again.
struct Fake {
    cache: Arc<Cache>,
    bytes: AtomicU64,
    touched: AtomicBool,
    pinned: AtomicBool,
    failure: Mutex<Option<Error>>,
    evictions: AtomicUsize,
}

impl Fake {
    fn new(cache: &Arc<Cache>, bytes: u64) -> Arc<Fake> {
        let fake = Arc::new(Fake {
            cache: cache.clone(),
            bytes: AtomicU64::new(0),
            touched: AtomicBool::new(false),
            pinned: AtomicBool::new(false),
            failure: Mutex::new(None),
            evictions: AtomicUsize::new(0),
        });
        let weak: Weak<dyn Evictable> = Arc::downgrade(&fake) as Weak<dyn Evictable>;
        cache.register(weak);
        fake.load(bytes);
        fake
    }

    fn load(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.cache.charge(Purpose::Values, bytes as usize);
    }

    fn evictions(&self) -> usize {
        self.evictions.load(Ordering::SeqCst)
    }
}

impl Evictable for Fake {
    fn touched(&self) -> bool {
        self.touched.swap(false, Ordering::SeqCst)
    }

    fn evict(&self) -> Result<u64> {
        if let Some(failure) = &*self.failure.lock() {
            return Err(failure.clone());
        }
        if self.pinned.load(Ordering::SeqCst) {
            return Ok(0);
        }
        let bytes = self.bytes.swap(0, Ordering::SeqCst);
        self.cache.discharge(Purpose::Values, bytes as usize);
        self.evictions.fetch_add(1, Ordering::SeqCst);
        Ok(bytes)
    }

    fn resident(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.cache.discharge(Purpose::Values, self.bytes.load(Ordering::SeqCst) as usize);
    }
}

#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Observer for Messages {
    fn message(&self, _level: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

const KB: u64 = 1 << 10;

fn cache(budget: u64) -> Arc<Cache> {
    Arc::new(Cache::new(budget, Arc::new(SilentObserver)))
}

fn total_evictions(fakes: &[Arc<Fake>]) -> usize {
    fakes.iter().map(|fake| fake.evictions()).sum()
}

#[test]
fn below_the_budget_nothing_is_evicted() {
    let cache = cache(1000 * KB);
    let fakes: Vec<_> = (0..9).map(|_| Fake::new(&cache, 100 * KB)).collect();
    cache.make_room().unwrap();
    assert_eq!((cache.used(), total_evictions(&fakes)), (900 * KB, 0));
}

#[test]
fn a_caller_evicts_itself_when_there_is_no_thread() {
    let cache = cache(1000 * KB);
    let mut fakes = Vec::new();
    for _ in 0..200 {
        cache.make_room().unwrap();
        fakes.push(Fake::new(&cache, 10 * KB));
        assert!(cache.used() <= 1050 * KB + 10 * KB);
    }
    assert!(total_evictions(&fakes) >= 95);
}

#[test]
fn eviction_without_thread_depends_on_the_calls_only() {
    let run = || {
        let cache = cache(300 * KB);
        let fakes: Vec<_> = (0..200u64)
            .map(|i| {
                let fake = Fake::new(&cache, 3 * KB + i);
                fake.touched.store(i % 3 == 0, Ordering::SeqCst);
                cache.make_room().unwrap();
                fake
            })
            .collect();
        fakes.iter().map(|fake| fake.evictions()).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn what_was_touched_survives_what_was_not() {
    let cache = cache(1000 * KB);
    let fakes: Vec<_> = (0..100).map(|_| Fake::new(&cache, 10 * KB)).collect();
    fakes.iter().take(50).for_each(|fake| fake.touched.store(true, Ordering::SeqCst));
    cache.charge(Purpose::Values, 100 * KB as usize);
    cache.make_room().unwrap();
    assert!(total_evictions(&fakes) >= 5);
    assert_eq!(total_evictions(&fakes[..50]), 0);
}

#[test]
fn a_budget_of_pinned_memory_slows_callers_and_stops_none() {
    let cache = cache(100 * KB);
    let fakes: Vec<_> = (0..50).map(|_| Fake::new(&cache, 10 * KB)).collect();
    fakes.iter().for_each(|fake| fake.pinned.store(true, Ordering::SeqCst));
    (0..200).for_each(|_| cache.make_room().unwrap());
    fakes.iter().for_each(|fake| fake.pinned.store(false, Ordering::SeqCst));
    (0..2).for_each(|_| cache.make_room().unwrap());
    assert!(cache.used() <= 105 * KB);
}

#[test]
fn a_failure_is_reported_once_and_reaches_callers_only_far_above_the_budget() {
    let messages = Arc::new(Messages::default());
    let cache = Arc::new(Cache::new(100 * KB, messages.clone()));
    let fakes: Vec<_> = (0..11).map(|_| Fake::new(&cache, 10 * KB)).collect();
    let full = Error::DiskFull { path: "spill".into() };
    fakes.iter().for_each(|fake| *fake.failure.lock() = Some(full.clone()));
    cache.make_room().unwrap();
    cache.charge(Purpose::Values, 50 * KB as usize);
    assert!((0..3).all(|_| matches!(cache.make_room(), Err(Error::DiskFull { .. }))));
    assert_eq!(messages.0.lock().len(), 1);
    *fakes[3].failure.lock() = Some(Error::OutOfMemory("latch"));
    let _ = cache.make_room();
    assert_eq!(messages.0.lock().len(), 2);
}

#[test]
fn dead_entries_leave_the_clock_as_it_turns() {
    let cache = cache(100 * KB);
    let dying: Vec<_> = (0..500).map(|_| Fake::new(&cache, 0)).collect();
    drop(dying);
    cache.charge(Purpose::Values, 200 * KB as usize);
    cache.make_room().unwrap();
    assert_eq!(cache.state.clock.len(), 0);
}

#[test]
fn dead_entries_leave_the_clock_as_others_join() {
    let cache = cache(100 * KB);
    (0..10_000).for_each(|_| drop(Fake::new(&cache, 0)));
    assert!(cache.state.clock.len() < 100);
}

#[test]
fn the_thread_meets_a_smaller_budget_without_any_caller() {
    let cache = cache(1000 * KB);
    cache.start().unwrap();
    let _fakes: Vec<_> = (0..90).map(|_| Fake::new(&cache, 10 * KB)).collect();
    let deadline = Instant::now() + Duration::from_secs(10);
    while cache.used() > 475 * KB && Instant::now() < deadline {
        cache.set_budget(500 * KB);
        std::thread::yield_now();
    }
    cache.stop();
    assert!(cache.used() <= 475 * KB);
    cache.stop();
}

#[test]
fn the_thread_stops_though_nothing_can_be_freed() {
    let cache = cache(100 * KB);
    cache.start().unwrap();
    let pinned = Fake::new(&cache, 200 * KB);
    pinned.pinned.store(true, Ordering::SeqCst);
    (0..20).for_each(|_| cache.make_room().unwrap());
    cache.stop();
    assert_eq!(cache.used(), 200 * KB);
}

#[test]
fn many_threads_stay_near_the_budget_and_the_count_stays_exact() {
    let cache = cache(4000 * KB);
    cache.start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let fakes: Vec<_> = (0..50).map(|_| Fake::new(&cache, 0)).collect();
                for i in 0..2000 {
                    cache.make_room().unwrap();
                    fakes[i % 50].load(30 * KB);
                    assert!(cache.used() <= 4000 * KB / 20 * 21 + 4 * 30 * KB + 80 * KB);
                }
            });
        }
    });
    cache.stop();
    assert_eq!(cache.used(), 0);
}

/// Holds memory now and then, and is in the clock then.
struct Passing {
    cache: Arc<Cache>,
    bytes: AtomicU64,
    listed: Mutex<bool>,
}

impl Passing {
    fn load(self: &Arc<Passing>, bytes: u64) {
        let mut listed = self.listed.lock();
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.cache.charge(Purpose::Values, bytes as usize);
        if !std::mem::replace(&mut *listed, true) {
            let weak: Weak<dyn Evictable> = Arc::downgrade(self) as Weak<dyn Evictable>;
            self.cache.register(weak);
        }
    }
}

impl Evictable for Passing {
    fn touched(&self) -> bool {
        false
    }

    fn evict(&self) -> Result<u64> {
        let bytes = self.bytes.swap(0, Ordering::SeqCst);
        self.cache.discharge(Purpose::Values, bytes as usize);
        Ok(bytes)
    }

    fn resident(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    fn leaves(&self) -> bool {
        let Some(mut listed) = self.listed.try_lock() else { return false };
        let leaves = self.resident() == 0;
        *listed &= !leaves;
        leaves
    }
}

#[test]
fn the_clock_has_what_holds_memory_however_much_has_ever_held_some() {
    let cache = cache(100 * KB);
    let new = || Passing { cache: cache.clone(), bytes: AtomicU64::new(0), listed: Mutex::new(false) };
    let all: Vec<_> = (0..5000).map(|_| Arc::new(new())).collect();
    for round in 0..20_000 {
        cache.make_room().unwrap();
        all[round * 7 % all.len()].load(KB);
        if round % 1000 == 999 {
            let held = all.iter().filter(|one| one.resident() > 0).count();
            // Those that gave up all since the hands' last turn are met on the next.
            assert!(cache.state.clock.len() >= held && cache.state.clock.len() <= 3 * held + 64);
        }
    }
    assert!(cache.used() <= 106 * KB);
}
