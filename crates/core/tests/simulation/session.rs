//! Random work on one engine between two restarts, and what it lets one expect of the next.

/// Turns an error of the engine into the end of a step.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Step::Failed(error),
        }
    };
}

#[path = "definitions.rs"]
mod definitions;
#[path = "exports.rs"]
mod exports;
#[path = "packing.rs"]
mod packing;
#[path = "prepared.rs"]
mod prepared;
#[path = "versions.rs"]
mod versions;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::subject;
use teak_core::file::{Fault, SimulatedFileSystem};
use teak_core::{CommitFlush, Error, Isolation, LockMode, Options, Result, Time, View, WaitRequest, WriteOp};

use crate::backups::{assert_restored, Backup, Finished, Progress};
use crate::durable::{rows_differ, rows_in, Change, Durable, Found};
use crate::seeds::{key, shown, tell, value, Random, Steps};
use crate::sound::assert_sound;
use crate::{plan, Expectation};
use versions::one_of_versions;

const KEYS: usize = 80;
const LARGEST_VALUE: usize = 60 << 10;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Steps between two looks at all structures: a look costs as much as many steps.
const CHECK_EVERY: [usize; 6] = [3, 100, 500, 500, 500, 500];
/// So many percent of the commits, rollbacks and decisions happen in sessions in which transactions stay open and
/// prepared over many checkpoints, while others commit.
const FEW_ENDS: [usize; 3] = [30, 8, 2];
/// And so many percent of the steps are such others.
const OTHERS: usize = 25;
/// Keys in such sessions: most should be free.
const MANY_KEYS: usize = 400;
/// Failed operations after which a session with I/O errors ends, or a full disk gets space again.
const ERRORS: usize = 4;

/// A transaction that has not ended.
pub struct Open {
    /// By the order in which they begin in this life of the engine, from 1.
    number: usize,
    txn: subject::Transaction,
    changes: Vec<Change>,
    savepoints: Vec<(subject::Savepoint, usize)>,
    tables: BTreeSet<String>,
    /// Values noted.
    counters: Vec<(String, u64)>,
    /// It was open while the disk was full: a block of its rows may not have been written, which its end tells.
    pub met_full_disk: bool,
}

/// What a step came to.
enum Step {
    Done,
    /// The step failed; whatever it left open is closed.
    Failed(Error),
}

/// Whether all is as before when it is over.
fn passes(fault: Fault) -> bool {
    matches!(fault, Fault::Enospc | Fault::Emfile)
}

pub struct Session<'a> {
    engine: &'a subject::Engine,
    fs: &'a SimulatedFileSystem,
    time: Time,
    expected: &'a mut Expectation,
    flush: CommitFlush,
    fault: Option<Fault>,
    /// The disk is full, or was: what old snapshots need may have found no space.
    had_no_space: bool,
    /// The transaction that was ended last was open while the disk was full.
    ended_met_full_disk: bool,
    random: &'a mut Random,
    open: Vec<Open>,
    /// Transactions that have begun.
    begun: usize,
    /// Open snapshots, and what was there when they were taken.
    snapshots: Vec<(subject::Transaction, Durable)>,
    /// A backup that is being made.
    backup: Option<Backup>,
    /// The last that was finished.
    finished: Option<Finished>,
    errors: usize,
    /// So many steps between two looks at all structures.
    check_every: usize,
    /// See [`FEW_ENDS`]; `None`: transactions come and go.
    few_ends: Option<usize>,
}

impl<'a> Session<'a> {
    pub fn new(
        engine: &'a subject::Engine,
        fs: &'a SimulatedFileSystem,
        expected: &'a mut Expectation,
        options: &Options,
        fault: Option<Fault>,
        undecided: bool,
        random: &'a mut Random,
    ) -> Session<'a> {
        let check_every = random.pick(&CHECK_EVERY);
        let few_ends = undecided.then(|| random.pick(&FEW_ENDS));
        Session {
            engine,
            fs,
            time: options.time.clone(),
            expected,
            flush: options.commit_flush,
            fault,
            had_no_space: fault == Some(Fault::Enospc),
            ended_met_full_disk: false,
            random,
            open: Vec::new(),
            begun: 0,
            snapshots: Vec::new(),
            backup: None,
            finished: None,
            errors: 0,
            check_every,
            few_ends,
        }
    }

    /// Works until the fault has done its harm or the work is done; `true` if the engine is as good as before, and the
    /// transactions that are open.
    pub fn run(mut self, life: usize, steps: &mut Steps) -> (bool, Vec<Open>) {
        for step in 0..self.random.pick(&[20, 60, 150, 500]) {
            if !steps.plays((life, step + 1), self.random) {
                continue;
            }
            if let Step::Failed(error) = self.step() {
                self.failed(error);
                if self.fault.is_some_and(|fault| !passes(fault)) && self.errors >= ERRORS {
                    return (false, self.open);
                }
            }
            if self.fs.power_is_off() {
                return (false, self.open);
            }
            if step % self.check_every == self.check_every - 1 {
                if let Step::Failed(error) = self.check() {
                    self.failed(error);
                }
            }
        }
        // They may change files when they go: the fault may strike in that, too.
        (self.backup, self.finished) = (None, None);
        self.snapshots.clear();
        if self.fs.power_is_off() {
            return (false, self.open);
        }
        self.ask_for_end_of_writing();
        // A fault that nobody was told of, because the work went on without what failed, is for the next checkpoint to
        // meet.
        let harmless = self.fault.is_none_or(passes);
        (harmless || (self.errors == 0 && !self.fs.has_struck()), self.open)
    }

    /// A checkpoint that nobody asked for may have ended all writing; who would decide a transaction is told.
    fn ask_for_end_of_writing(&mut self) {
        if let Err(error @ Error::ReadOnly(_)) = self.engine.rollback_prepared(b"nobody's") {
            self.failed(error);
        }
    }

    fn failed(&mut self, error: Error) {
        self.errors += 1;
        match (&error, self.fault) {
            // A superblock lies in space that it has: few disks are full there, and whether it was written is unknown.
            (Error::DiskFull { .. } | Error::ReadOnly(_), Some(Fault::Enospc))
                if error.to_string().contains("teak.super") =>
            {
                self.fault = Some(Fault::Eio);
                self.fs.heal();
            }
            (Error::DiskFull { .. }, Some(Fault::Enospc)) => {}
            (Error::DiskFull { .. }, None) if self.met_full_disk() => {}
            // The oldest gives way with the next write that looks, when there may be space again.
            (Error::SnapshotTooOld { .. }, _) if self.had_no_space => {}
            (Error::NoDescriptor { .. }, Some(Fault::Emfile)) => {}
            (Error::Io { .. } | Error::ReadOnly(_), Some(Fault::PowerCut | Fault::Eio)) => {}
            _ => panic!("{error} with {:?}", self.fault),
        }
        if self.fault.is_some_and(passes) && self.errors == ERRORS {
            // Space again, or descriptors: nothing may fail from now on.
            self.fs.heal();
            self.fault = None;
            self.open.iter_mut().for_each(|open| open.met_full_disk |= self.had_no_space);
        }
    }

    /// Whether a transaction that was open while the disk was full has just ended, or is still open.
    fn met_full_disk(&self) -> bool {
        self.ended_met_full_disk || self.open.iter().any(|open| open.met_full_disk)
    }

    fn step(&mut self) -> Step {
        self.ended_met_full_disk = false;
        if self.expected.current.tables.is_empty() {
            return self.create_table();
        }
        if self.open.is_empty() || (self.open.len() < 4 && self.random.percent(10)) {
            self.begin();
        }
        let chosen = self.random.below(self.open.len());
        if self.few_ends.is_some() && self.random.percent(OTHERS) {
            return self.others();
        }
        if self.random.percent(3) {
            return self.time_passes();
        }
        let ends = self.few_ends.unwrap_or(100);
        match self.random.below(100) {
            51..=68 | 71..=73 | 78..=80 if !self.random.percent(ends) => self.write(chosen),
            0..=43 => self.write(chosen),
            44 => self.pack(),
            45..=46 => self.load(chosen),
            47..=50 => self.savepoint(chosen),
            51..=68 => self.commit(chosen),
            69..=70 => self.checkpoint(),
            71..=73 => self.rollback(chosen),
            74..=77 => self.prepare(chosen),
            78..=80 => self.decide_prepared(),
            81..=84 => self.checkpoint(),
            85..=86 => self.everything_durable(subject::Engine::sync_log),
            87..=93 => self.change_tables(),
            94..=95 => self.note_counter(chosen),
            96..=97 => self.look_back(),
            98 => self.backup(),
            _ => self.compare(),
        }
    }

    /// What the engine's threads would do meanwhile is done: after a second everything is durable, unless that failed.
    fn time_passes(&mut self) -> Step {
        let milliseconds = self.random.pick(&[10, 400, 1000, 3000, 7_200_000]);
        tell(0, || format!("{milliseconds} ms pass"));
        self.time.pass(Duration::from_millis(milliseconds));
        let (_, end) = self.engine.log_positions();
        self.engine.do_what_is_due();
        let (synced, _) = self.engine.log_positions();
        if milliseconds >= 1000 && synced >= end {
            let current = self.expected.current.clone();
            self.expected.durable(current);
        }
        if milliseconds >= 1000 && self.errors == 0 && self.fault.is_none() {
            assert!(synced >= end, "a second has passed, and what was committed is not durable");
        }
        Step::Done
    }

    /// All structures are whole. After an I/O error nothing more is asked than correct restarts.
    fn check(&mut self) -> Step {
        if self.errors == 0 && self.fault.is_some() {
            self.ask_for_end_of_writing();
        }
        if self.errors == 0 || self.fault.is_none() {
            attempt!(assert_sound(self.engine, "while running", true));
        }
        Step::Done
    }

    fn begin(&mut self) {
        self.begun += 1;
        tell(self.begun, || "begin".into());
        self.open.push(Open {
            number: self.begun,
            txn: self.engine.begin(Isolation::Repeatable),
            changes: Vec::new(),
            savepoints: Vec::new(),
            tables: BTreeSet::new(),
            counters: Vec::new(),
            met_full_disk: false,
        });
    }

    /// A table that may be used, and one of its trees.
    fn any_table(&mut self) -> Option<(String, usize)> {
        let tables = self.expected.current.tables.iter().filter(|(_, table)| table.instead.is_none());
        let (name, table) = tables.clone().nth(self.random.below(tables.count()))?;
        Some((name.clone(), self.random.below(table.trees.len())))
    }

    fn write(&mut self, chosen: usize) -> Step {
        let Some((name, tree)) = self.any_table() else { return Step::Done };
        let key = key(self.random, if self.few_ends.is_some() { MANY_KEYS } else { KEYS });
        let new = (!self.random.percent(30)).then(|| Arc::from(value(self.random, LARGEST_VALUE)));
        self.change(chosen, Change { table: name, tree, key, value: new }, false)
    }

    /// A transaction of its own, from beginning to end.
    fn others(&mut self) -> Step {
        self.begin();
        let chosen = self.open.len() - 1;
        for _ in 0..self.random.below(12) {
            if let Step::Failed(error) = self.write(chosen) {
                return Step::Failed(error);
            }
        }
        self.commit(chosen)
    }

    fn load(&mut self, chosen: usize) -> Step {
        let Some((name, tree)) = self.any_table() else { return Step::Done };
        // Few: many runs are written again, over others or after they were deleted.
        let run = self.random.below(12) as u32;
        // The longer ones make a transaction larger than the redo buffer, and than the smaller caches; values above a
        // KiB are large ones.
        let longest = self.random.pick(&[20, 200, 900, 6000, 20_000]);
        let deleted = self.random.percent(25);
        // Some of those that are deleted leave a few rows behind, in leaves that are then too many.
        let stays = self.random.pick(&[usize::MAX, 7, 20]);
        // New rows in the order of their keys may go past the log.
        let appended = self.random.percent(60);
        let length = self.random.below(longest);
        let alike = self.random.percent(40).then(|| self.random.below(1000));
        for i in 0..50 + self.random.below(200) as u32 {
            let key = [&b"run/"[..], &run.to_be_bytes(), &i.to_be_bytes()].concat();
            if deleted && (i as usize).is_multiple_of(stays) {
                continue;
            }
            let content = || match alike {
                Some(version) => one_of_versions(i as usize % 4, version + i as usize, length),
                None => vec![i as u8; length],
            };
            let value = (!deleted).then(|| Arc::from(content()));
            let change = Change { table: name.clone(), tree, key, value };
            if let Step::Failed(error) = self.change(chosen, change, appended) {
                return Step::Failed(error);
            }
        }
        Step::Done
    }

    /// Locks, reads and writes a row. After an error the transaction is rolled back.
    fn change(&mut self, chosen: usize, change: Change, appended: bool) -> Step {
        match self.try_change(chosen, change, appended) {
            Ok(()) | Err(Error::WouldBlock) => Step::Done,
            Err(error) => {
                self.roll_back(chosen);
                Step::Failed(error)
            }
        }
    }

    fn roll_back(&mut self, chosen: usize) {
        let open = self.open.swap_remove(chosen);
        self.ended_met_full_disk = open.met_full_disk;
        open.txn.rollback();
    }

    fn try_change(&mut self, chosen: usize, change: Change, appended: bool) -> Result<()> {
        // The ends of a transaction find something that waits.
        let later = self.random.percent(20);
        let Open { number, txn, changes, tables, .. } = &mut self.open[chosen];
        tell(*number, || {
            let bytes = change.value.as_ref().map(|value| value.len());
            format!("change {}/{} {} to {bytes:?}", change.table, change.tree, shown(&change.key))
        });
        let table = self.engine.open_table(&change.table)?;
        let tree = table.tree(change.tree);
        txn.lock(tree, &change.key, LockMode::Exclusive, &WaitRequest::no_wait())?;
        tables.insert(change.table.clone());
        let mut cursor = subject::Cursor::new(tree.clone());
        let exists = cursor.get(txn, View::Latest, &change.key)?;
        let own = changes
            .iter()
            .rev()
            .find(|c| c.table == change.table && c.tree == change.tree && c.key == change.key);
        let expected = match own {
            Some(own) => own.value.as_ref(),
            None => self.expected.current.tables[&change.table].trees[change.tree].get(&change.key),
        };
        let found = if exists { Some(cursor.value()?) } else { None };
        assert!(
            found == expected.map(|v| &**v),
            "{}: {:?} is not what was written",
            change.table,
            change.key
        );
        match &change.value {
            Some(value) if exists && later => txn.write_later(tree, &change.key, WriteOp::Update(value))?,
            Some(value) if exists => txn.write(tree, &change.key, WriteOp::Update(value))?,
            Some(value) if appended => txn.append(tree, &change.key, value)?,
            Some(value) if later && change.tree == 0 => {
                txn.write_later(tree, &change.key, WriteOp::Insert(value))?;
            }
            Some(value) if later => txn.claim_later(tree, &change.key, value)?,
            Some(value) => txn.write(tree, &change.key, WriteOp::Insert(value))?,
            None if exists && later => txn.write_later(tree, &change.key, WriteOp::Delete)?,
            None if exists => txn.write(tree, &change.key, WriteOp::Delete)?,
            None => return Ok(()),
        }
        changes.push(change);
        Ok(())
    }

    fn savepoint(&mut self, chosen: usize) -> Step {
        let Open { number, txn, changes, savepoints, .. } = &mut self.open[chosen];
        if self.random.percent(50) {
            tell(*number, || "savepoint".into());
            savepoints.push((txn.savepoint(), changes.len()));
        } else if let Some((savepoint, mark)) = savepoints.pop() {
            tell(*number, || "rollback to savepoint".into());
            if let Err(error) = txn.rollback_to(savepoint) {
                self.roll_back(chosen);
                return Step::Failed(error);
            }
            changes.truncate(mark);
        }
        Step::Done
    }

    fn note_counter(&mut self, chosen: usize) -> Step {
        let Some((name, _)) = self.any_table() else { return Step::Done };
        let table = attempt!(self.engine.open_table(&name));
        self.expected.highest_counter += 1 + self.random.below(100) as u64;
        let open = &mut self.open[chosen];
        tell(open.number, || format!("note counter {} of {name}", self.expected.highest_counter));
        open.txn.note_counter(&table, self.expected.highest_counter);
        open.tables.insert(name.clone());
        open.counters.push((name, self.expected.highest_counter));
        Step::Done
    }

    /// The present state with the changes of a transaction.
    fn with(&self, open: &Open) -> Durable {
        let mut next = self.expected.current.clone();
        next.apply(&open.changes);
        next
    }

    fn commit(&mut self, chosen: usize) -> Step {
        let open = self.open.swap_remove(chosen);
        tell(open.number, || format!("commit, {:?}", self.flush));
        self.ended_met_full_disk = open.met_full_disk;
        let mut next = self.with(&open);
        let wrote = !open.changes.is_empty();
        let committed = open.txn.commit();
        if committed.is_ok() && wrote {
            // The counter travels with the commit.
            for (table, value) in &open.counters {
                let table = next.tables.get_mut(table).expect("its tables are left alone");
                table.counter = table.counter.max(*value);
            }
        }
        match committed {
            // Nothing was written, so nothing was made durable.
            Ok(()) if !wrote => Step::Done,
            Ok(()) => {
                self.expected.acknowledged(next, self.flush);
                Step::Done
            }
            Err(error) => {
                self.expected.undecided(next);
                Step::Failed(error)
            }
        }
    }

    fn rollback(&mut self, chosen: usize) -> Step {
        let open = self.open.swap_remove(chosen);
        tell(open.number, || "rollback".into());
        if self.random.percent(50) {
            open.txn.rollback();
        }
        Step::Done
    }

    /// A step of a backup, or the first of the next one.
    fn backup(&mut self) -> Step {
        let backup = self.backup.take();
        // After an I/O error nothing more is asked than correct restarts.
        if self.errors > 0 && self.fault.is_some() {
            return Step::Done;
        }
        tell(0, || "step of a backup".into());
        let backup = backup.unwrap_or_else(|| Backup::begin(self.fs, self.finished.take(), self.random));
        match attempt!(backup.step(self.engine, self.random)) {
            Progress::GoesOn(backup) => {
                self.backup = Some(*backup);
                Step::Done
            }
            Progress::Restored(engine, finished, wanted) => {
                self.finished = Some(finished);
                assert_restored(&engine, &self.expected.current, wanted);
                self.everything_durable(|_| Ok(()))
            }
        }
    }

    fn checkpoint(&mut self) -> Step {
        tell(0, || "checkpoint".into());
        if self.backup.as_ref().is_some_and(Backup::pauses) {
            let refused = self.engine.checkpoint();
            assert!(matches!(refused, Err(Error::CheckpointsPaused)), "{refused:?}");
            return Step::Done;
        }
        // Left to chance, a fault would seldom hit the few operations of a checkpoint.
        if let Some(fault) = self.fault.filter(|_| self.errors == 0 && self.random.percent(40)) {
            plan(self.fs, fault, self.random.below(40) as u64);
        }
        attempt!(self.engine.checkpoint());
        self.expected.checkpointed();
        Step::Done
    }

    fn everything_durable(&mut self, make: fn(&subject::Engine) -> Result<()>) -> Step {
        tell(0, || "all is durable".into());
        attempt!(make(self.engine));
        let current = self.expected.current.clone();
        self.expected.durable(current);
        Step::Done
    }

    /// Old snapshots show every table that they have seen as it was, whatever it is called now, and no other.
    fn look_back(&mut self) -> Step {
        if self.errors > 0 && self.fault.is_some() {
            return Step::Done;
        }
        if self.snapshots.is_empty() || (self.snapshots.len() < 3 && self.random.percent(40)) {
            tell(0, || "a snapshot that stays".into());
            let mut txn = self.engine.begin(Isolation::Repeatable);
            txn.open_snapshot();
            self.snapshots.push((txn, self.expected.current.clone()));
            return Step::Done;
        }
        let chosen = self.random.below(self.snapshots.len());
        let (mut txn, seen) = self.snapshots.swap_remove(chosen);
        tell(0, || "look by an old snapshot".into());
        for (name, now) in &self.expected.current.tables {
            let table = attempt!(self.engine.open_table(name));
            let then = seen.tables.values().find(|then| then.identity == now.identity);
            for i in 0..table.trees() {
                match (rows_in(&mut txn, table.tree(i), View::Snapshot), then) {
                    (Ok(rows), Some(then)) => {
                        if let Some(difference) = rows_differ(&then.trees[i], &rows) {
                            panic!("an old snapshot of {name}, tree {i}: {difference}");
                        }
                    }
                    (Err(Error::TableChanged), None) => {}
                    (Err(error), _) if !matches!(error, Error::TableChanged) => return Step::Failed(error),
                    (found, _) => panic!(
                        "an old snapshot of {name}, tree {i}, which {} known to it: {:?}",
                        if then.is_some() { "is" } else { "is not" },
                        found.map(|rows| rows.len())
                    ),
                }
            }
        }
        if self.random.percent(60) {
            self.snapshots.push((txn, seen));
        }
        Step::Done
    }

    /// What the running engine shows is exactly what was acknowledged.
    fn compare(&mut self) -> Step {
        // Opening a table may need the disk, and after an I/O error nothing more is asked than correct restarts.
        if self.errors > 0 && self.fault.is_some() {
            return Step::Done;
        }
        let found = attempt!(Found::read(self.engine));
        if let Some(difference) = self.expected.current.difference(&found) {
            panic!("while running: {difference}");
        }
        for (name, value) in self.open.iter().flat_map(|open| &open.counters) {
            let counter = found.tables[name].counter;
            assert!(counter >= *value, "{name}: counter {counter} was {value} already");
        }
        Step::Done
    }
}
