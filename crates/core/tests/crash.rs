//! Power cuts, killed processes, I/O errors and full disks at random moments of random work; after each restart the
//! engine must show a state that is allowed.
//!
//! Allowed is: what was acknowledged as durable, the operation under way wholly or not at all, and nothing else. With a
//! weaker commit flush setting, the newest commits may be missing, but only from the end. Several restarts follow one
//! another, and the faults hit recovery as well.

#[path = "simulation/backups.rs"]
mod backups;
#[path = "simulation/durable.rs"]
mod durable;
#[path = "simulation/seeds.rs"]
mod seeds;
#[path = "simulation/session.rs"]
mod session;
#[path = "simulation/sound.rs"]
mod sound;
#[path = "simulation/subject.rs"]
mod subject;

use durable::{assert_locked, Durable, Found};
use seeds::{for_each_seed, tell, Random, Steps};
use session::Session;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use teak_core::file::{Fault, SimulatedFileSystem};
use teak_core::{CommitFlush, Error, Options, Time};

/// How an engine's life ends; what follows later in this list may lose more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Close,
    /// The process dies, perhaps in the middle of an operation; what it wrote is in the operating system's hands. No
    /// destructor has any effect.
    Kill,
    PowerLoss,
}

impl Ending {
    /// One that an engine in any condition can meet.
    fn sudden(random: &mut Random) -> Ending {
        random.pick(&[Ending::Kill, Ending::PowerLoss, Ending::PowerLoss])
    }
}

/// The states a restart may find.
#[derive(Default)]
pub struct Expectation {
    /// As the engine shows it while it runs.
    pub current: Durable,
    /// Also allowed after a power loss.
    after_power_loss: Vec<Durable>,
    /// Also allowed after the death of the process.
    after_kill: Vec<Durable>,
    /// Counters may not be past this.
    pub highest_counter: u64,
}

impl Expectation {
    /// Everything up to `next` is durable.
    pub fn durable(&mut self, next: Durable) {
        self.current = next;
        self.after_power_loss.clear();
        self.after_kill.clear();
    }

    /// There was a checkpoint of all that the engine shows.
    pub fn checkpointed(&mut self) {
        self.durable(self.current.clone().with_imports_settled());
    }

    /// `next` was acknowledged as the flush setting promises.
    pub fn acknowledged(&mut self, next: Durable, flush: CommitFlush) {
        match flush {
            CommitFlush::Sync => self.durable(next),
            CommitFlush::Write => {
                self.after_kill.clear();
                self.after_power_loss.push(std::mem::replace(&mut self.current, next));
            }
            CommitFlush::Lazy => self.promised_nothing(next),
        }
    }

    /// `next` is what the engine shows, but nothing is said about the disk.
    pub fn promised_nothing(&mut self, next: Durable) {
        let old = std::mem::replace(&mut self.current, next);
        self.after_kill.push(old.clone());
        self.after_power_loss.push(old);
    }

    /// An operation failed that would have led to `next`: the engine goes on without, but a restart may find it.
    pub fn undecided(&mut self, next: Durable) {
        self.after_kill.push(next.clone());
        self.after_power_loss.push(next);
    }

    /// Finds the state that a restart after `ending` has found, and expects it from now on.
    fn settle(&mut self, ending: Ending, found: &Found) {
        let others: &[Durable] = match ending {
            Ending::PowerLoss => &self.after_power_loss,
            Ending::Kill => &self.after_kill,
            Ending::Close => &[],
        };
        for (name, table) in &found.tables {
            assert!(table.counter <= self.highest_counter, "{name}: counter {} was never set", table.counter);
        }
        // Whatever a restart shows has become durable by then.
        let Some(difference) = self.current.difference(found) else {
            return self.checkpointed();
        };
        let mut allowed =
            std::iter::once(&self.current).chain(others.iter().rev()).flat_map(Durable::after_restart);
        match allowed.find(|state| state.difference(found).is_none()) {
            Some(state) => self.durable(state),
            None => {
                let nearest = others.iter().rev().take(3).map(|state| state.difference(found));
                let nearest: Vec<_> = nearest.collect();
                panic!(
                    "after {ending:?}: {difference}; {} other states allowed, e.g. {nearest:?}",
                    others.len()
                );
            }
        }
    }
}

/// With `small`, a few transactions are many checkpoints' worth of log, and most have records in it before they end: of
/// those that stay undecided, the engine copies them.
fn options(random: &mut Random, small: bool) -> Options {
    let options = Options {
        cache_bytes: random.pick(&[128 << 10, 512 << 10, 2 << 20, 16 << 20]),
        log_segment_bytes: random.pick(&[64 << 10, 256 << 10, 4 << 20]),
        // With the small ones, writers checkpoint in the middle of transactions.
        checkpoint_log_bytes: random.pick(&[64 << 10, 512 << 10, 16 << 20]),
        redo_bytes: random.pick(&[4 << 10, 64 << 10, 1 << 20]),
        commit_flush: match random.below(10) {
            0 => CommitFlush::Lazy,
            1 => CommitFlush::Write,
            _ => CommitFlush::Sync,
        },
        // With one, a table file is closed whenever another is used.
        open_files: random.pick(&[1, 2, 100]),
        dictionary_sample_bytes: random.pick(&[0, 16 << 10, 60 << 10]),
        frame_bytes: random.pick(&[0, 300, 1000]),
        background: false,
        time: Time::simulated(),
        recovery_threads: 1,
        ..Options::new("/teak")
    };
    if !small {
        return options;
    }
    Options {
        log_segment_bytes: random.pick(&[4 << 10, 16 << 10]),
        checkpoint_log_bytes: random.pick(&[1 << 10, 4 << 10, 12 << 10]),
        redo_bytes: random.pick(&[100, 500, 2000]),
        ..options
    }
}

fn plan_fault(fs: &SimulatedFileSystem, random: &mut Random) -> Option<Fault> {
    // Many faults early: opening and recovering take few operations.
    let reach = random.pick(&[8, 40, 200, 1000, 4000]);
    let after = random.below(reach) as u64;
    let fault = match random.below(20) {
        0..=11 => Fault::PowerCut,
        12..=14 => Fault::Eio,
        15..=16 => Fault::Enospc,
        17..=18 => Fault::Emfile,
        _ => return None,
    };
    plan(fs, fault, after);
    Some(fault)
}

/// A full disk stays full, and in half of the cases there are no descriptors for some time; the others happen once.
pub fn plan(fs: &SimulatedFileSystem, fault: Fault, after: u64) {
    match fault {
        Fault::Enospc => fs.fail_from(after, fault),
        // What opens something is one of some ten operations.
        Fault::Emfile if after.is_multiple_of(2) => fs.fail_from(after / 8, fault),
        Fault::Emfile => fs.fail_after(after / 8, fault),
        Fault::PowerCut | Fault::Eio => fs.fail_after(after, fault),
    }
}

/// Opens the engine; `None` if that failed, which only a fault may cause.
fn open(fs: &SimulatedFileSystem, options: &Options, fault: Option<Fault>) -> Option<subject::Engine> {
    match subject::Engine::open(Arc::new(fs.clone()), options.clone()) {
        Ok(engine) => Some(engine),
        Err(error) => {
            assert!(fault.is_some(), "opening failed without a fault: {error}");
            None
        }
    }
}

/// Whether everything could be looked at: only a power cut prevents that.
fn check(
    engine: &subject::Engine,
    expected: &mut Expectation,
    ending: Ending,
    fs: &SimulatedFileSystem,
) -> bool {
    let found = Found::read(engine).or_else(|error| {
        // Reading may need the spill file; nothing is lost by such a failure.
        if !matches!(error, Error::DiskFull { .. } | Error::NoDescriptor { .. } | Error::Io { .. }) {
            return Err(error);
        }
        fs.heal();
        Found::read(engine)
    });
    let found = match found {
        Ok(found) => found,
        Err(_) if fs.power_is_off() => return false,
        Err(error) => panic!("reading after {ending:?}: {error}"),
    };
    expected.settle(ending, &found);
    let when = format!("after {ending:?}");
    let sound = sound::assert_sound(engine, &when, true).or_else(|error| {
        if !matches!(error, Error::DiskFull { .. } | Error::NoDescriptor { .. } | Error::Io { .. }) {
            return Err(error);
        }
        fs.heal();
        sound::assert_sound(engine, &when, true)
    });
    if let Err(error) = sound {
        assert!(fs.power_is_off(), "checking {when}: {error}");
        return false;
    }
    if let Err(error) = assert_locked(engine, &expected.current.prepared) {
        assert!(fs.power_is_off(), "locks after {ending:?}: {error}");
    }
    true
}

/// What the next process finds.
fn restart(fs: SimulatedFileSystem, ending: Ending) -> SimulatedFileSystem {
    match ending {
        Ending::Close => fs,
        Ending::Kill => fs.kill(),
        Ending::PowerLoss => fs.crash(),
    }
}

/// Leaves that were merged, in all histories.
static MERGED: AtomicU64 = AtomicU64::new(0);

fn history(seed: u64, steps: &mut Steps) {
    let random = &mut Random::new(seed);
    let mut fs = SimulatedFileSystem::new(seed);
    let mut expected = Expectation::default();
    let mut ending = Ending::PowerLoss;
    for life in 0..2 + random.below(7) {
        if !steps.plays((life, 0), random) {
            continue;
        }
        let fault = plan_fault(&fs, random);
        let small = random.percent(30);
        let options = options(random, small);
        tell(0, || format!("open with {fault:?}{}", if small { ", small" } else { "" }));
        let engine = open(&fs, &options, fault);
        let Some(engine) = engine.filter(|engine| check(engine, &mut expected, ending, &fs)) else {
            let next = Ending::sudden(random);
            tell(0, || format!("{next:?} while it starts"));
            fs = restart(fs, next);
            // Nothing is known yet of what the endings before have lost.
            ending = ending.max(next);
            continue;
        };
        let session = Session::new(&engine, &fs, &mut expected, &options, fault, small, random);
        let (unharmed, open) = session.run(life, steps);
        steps.at((life, usize::MAX), random);
        MERGED.fetch_add(engine.statistics().merged_leaves, Ordering::SeqCst);
        fs.heal();
        ending = match random.below(3) {
            0 if unharmed => Ending::Close,
            _ => Ending::sudden(random),
        };
        tell(0, || format!("{ending:?}"));
        if ending == Ending::Close {
            drop(open);
            engine.close().unwrap_or_else(|error| panic!("closing: {error}"));
            // That makes a checkpoint, too.
            expected.checkpointed();
        } else {
            fs = restart(fs, ending);
        }
    }
    fs.heal();
    for _ in 0..2 {
        let engine = open(&fs, &options(random, false), None).expect("no fault is planned");
        check(&engine, &mut expected, ending, &fs);
        engine.close().unwrap_or_else(|error| panic!("closing: {error}"));
        ending = Ending::Close;
    }
}

#[test]
fn every_restart_finds_an_allowed_state() {
    for_each_seed("crash", history);
    let merged = MERGED.load(Ordering::SeqCst);
    // One history alone need not have any.
    assert!(merged > 0 || std::env::var_os("TEAK_SEED").is_some(), "no leaf was merged in any history");
    println!("{merged} leaves were merged");
}

/// Rows that arrived with a checkpoint of which nobody knows are the only ones that are in no log.
#[test]
fn a_failed_import_is_expected_either_way_until_a_checkpoint_has_it() {
    let none = vec![durable::Rows::new()];
    let some = vec![durable::Rows::from([(b"key".to_vec(), Arc::from(*b"value"))])];
    let table = |trees: &Vec<_>, instead| {
        let table =
            durable::Table { identity: 1, meta: Vec::new(), trees: trees.clone(), counter: 0, instead };
        Durable { tables: [("t".to_string(), table)].into(), ..Durable::default() }
    };
    let found = |trees| Found { tables: table(trees, None).tables, prepared: Vec::new() };
    let unfinished = table(&some, Some((none.clone(), 0)));
    let is_allowed = |checkpoint: bool, ending, trees| {
        let mut expected = Expectation::default();
        expected.durable(unfinished.clone());
        if checkpoint {
            expected.checkpointed();
        }
        catch_unwind(AssertUnwindSafe(|| expected.settle(ending, &found(trees)))).is_ok()
            // What was found stays.
            && catch_unwind(AssertUnwindSafe(|| expected.settle(ending, &found(&none)))).is_ok()
    };
    for ending in [Ending::Kill, Ending::PowerLoss] {
        assert!(is_allowed(false, ending, &none));
        assert!(!is_allowed(false, ending, &some), "found with its rows, and then without");
        assert!(!is_allowed(true, ending, &none));
    }
    // What the engine itself shows is never another state.
    assert!(unfinished.difference(&found(&some)).is_none() && unfinished.difference(&found(&none)).is_some());
}
