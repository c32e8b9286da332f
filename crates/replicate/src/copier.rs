//! A copy of a source's tables, beside following it: which ranges are read next, and when those that were read are
//! committed in the target, namely when all that the log has before their snapshot, and nothing behind it, was applied.
//!
//! ```text
//! worker 1   snapshot 1 ─ rows ─ write ──┐commit    snapshot 3 ─ rows ─ write ─┐commit
//! worker 2       snapshot 2 ─ rows ─ write ────┐commit
//! log        ────────────────────────────┴─────┴───────────────────────────────┴───────
//! ```

use crate::apply::Applier;
use crate::chunk_reader::{end_of_log, Planned, Request};
use crate::configuration::TargetPlan;
use crate::copy_others::Others;
use crate::copy_plan;
use crate::copy_worker::{Answer, Order, Worker};
use crate::copying::{Part, TableName};
use crate::dump::greeted;
use crate::failure::Failure;
use crate::prepared::{listed, Snapshot};
use crate::sides::{is_beyond, LogPlace};
use crate::status::has_all;
use crate::tables::texts;
use std::collections::VecDeque;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use teak_binlog::Family;
use teak_client::Connection;
use teak_console::signals;
use teak_sql::quoting::literal;

/// How long a wait for workers is, before signals are looked for.
const TICK: Duration = Duration::from_millis(100);
/// And how long one is in which the log goes on, if something comes.
const SHORT: Duration = Duration::from_millis(10);

/// How long a range waits that XA transactions were in the way of.
const PAUSE: Duration = Duration::from_millis(200);
/// And that is told after so many times.
const PATIENCE: u32 = 25;

/// While more threads than that run at the source, one range at a time is read.
const CROWD: u64 = 32;
/// How often it is asked how many these are.
const LOOK: Duration = Duration::from_millis(500);

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This again: something was done, or waited for.
    Again,
    /// What comes in the log.
    Log,
    /// All tables are whole.
    Done,
}

/// How far a worker is with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its snapshot is made, at a place that is not known yet.
    Begins,
    /// Rows are being read.
    Reads,
    /// They are there.
    HasRows,
    /// They are being added to the target.
    Writes,
    /// They are in its transaction.
    HasWritten,
    /// They are being committed.
    Commits,
    /// It is no range: keys are being built.
    BuildsKeys,
}

/// What a worker does.
struct Task {
    request: Request,
    stage: Stage,
    snapshot: Option<Snapshot>,
    /// The place was asked for as GTIDs.
    is_asked_by_gtid: bool,
    /// Its rows may be added before the log was applied up to the snapshot.
    may_be_ahead: bool,
    /// How much of the table is there afterwards; None: all.
    part: Option<Part>,
}

impl Task {
    /// Whether the log was applied up to its snapshot.
    fn is_due(&self, applied: Option<&LogPlace>) -> bool {
        self.snapshot.is_some() && is_beyond(applied, self.place())
    }

    /// Where in the source's log the snapshot is.
    fn place(&self) -> Option<&LogPlace> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.place)
    }
}

/// The copy of a source's tables.
pub struct Copier {
    workers: Vec<(Worker, Option<Task>)>,
    answers: Receiver<(usize, Answer)>,
    /// What is to be asked for next, parents before their children; of a table one range at most.
    left: VecDeque<Request>,
    generation: u64,
    /// What is to be made when the log is at its place.
    others: Option<Others>,
    /// When it was looked how many threads run at the source, and whether these were many.
    crowd: Option<(Instant, bool)>,
    /// The source has XA transactions, so tables are locked while snapshots are made.
    locks: bool,
    /// How often these were in the way since a range was taken, and the last time.
    in_the_way: Option<(u32, Instant)>,
}

impl Copier {
    /// Of the tables that are not whole, by so many workers.
    pub fn begin(
        workers: usize,
        target: &TargetPlan,
        source: &mut Connection,
        applier: &mut Applier<'_>,
    ) -> Result<Copier, Failure> {
        let (answer, answers) = channel();
        let start = |number| Worker::start((number, workers), target, applier.plan(), answer.clone());
        let threads: Vec<Worker> = (0..workers).map(start).collect::<Result<_, _>>()?;
        let workers = threads.into_iter().map(|worker| (worker, None)).collect();
        let mut copier = Copier {
            workers,
            answers,
            left: VecDeque::new(),
            generation: 0,
            others: None,
            crowd: None,
            locks: false,
            in_the_way: None,
        };
        let mut missing = copier.workers.len();
        while missing > 0 && !signals::interrupted() {
            match copier.answer(TICK)? {
                None => (),
                Some((_, Answer::Failed(failure))) => return Err(failure),
                Some(_) => missing -= 1,
            }
        }
        // Their locks are held now, and this source's still is: who takes that one later waits for theirs. Until then a
        // range of a former program could be committed.
        applier.must_go_on()?;
        applier.read_copying()?;
        if greeted(source) == Family::MariaDb {
            applier.were_prepared(listed(source).map_err(|error| Failure::of_source(&error))?);
        }
        copier.plan(source, applier)?;
        Ok(copier)
    }

    /// All is copied.
    pub fn end(self) {
        self.workers.into_iter().for_each(|(worker, _)| worker.end());
    }

    /// Forgets what was read, and plans what is missing now.
    fn plan(&mut self, source: &mut Connection, applier: &Applier<'_>) -> Result<(), Failure> {
        let copying = applier.copying();
        self.generation = copying.changes;
        self.left.clear();
        for table in copy_plan::tables(source, applier.plan(), copying)? {
            let above = match copying.part(&table.here.0, &table.here.1) {
                None => continue,
                Some(Part::Rows) if self.tasks().any(|task| task.request.table.here == table.here) => {
                    continue
                }
                Some(Part::None | Part::Rows) => None,
                Some(Part::UpTo { last, .. }) => Some(last),
            };
            self.left.push_back(Request { table, above, locks: self.locks });
        }
        Ok(())
    }

    /// Does what can be done now. `is_idle`: nothing of the log waits to be applied; `source` is there to be asked.
    pub fn step(
        &mut self,
        applier: &mut Applier<'_>,
        source: &mut Connection,
        is_idle: bool,
    ) -> Result<Next, Failure> {
        if applier.copying().is_done() {
            return Ok(Next::Done);
        }
        while self.hear(applier, Duration::ZERO)? {}
        if applier.copying().changes != self.generation {
            // Tables may have other names.
            self.anew(applier, source)?;
        }
        if let Some(is_new) = applier.copying().awaits_others() {
            return self.make_others(applier, source, is_idle, is_new);
        }
        if self.is_too_late(applier) {
            // A snapshot has what its server has committed, which its log may have sooner.
            self.anew(applier, source)?;
        }
        if self.is_in_the_way(applier) {
            self.anew(applier, source)?;
        }
        self.advance(applier)?;
        let pauses = self.in_the_way.is_some_and(|(_, since)| since.elapsed() < PAUSE);
        if applier.is_between() && !pauses {
            self.ask(applier, source)?;
        }
        let waits = |task: &Task| task.stage == Stage::Begins || task.is_due(applier.place());
        if self.tasks().any(waits) {
            // What comes is not applied before the rows are there: else the log might be further than their snapshot.
            self.hear(applier, TICK)?;
            return Ok(Next::Again);
        }
        if is_idle && self.is_at_place(applier, source)? {
            return Ok(Next::Again);
        }
        if is_idle && self.tasks().any(|task| task.stage == Stage::BuildsKeys) {
            applier.nothing_waits()?;
            self.hear(applier, SHORT)?;
            return Ok(Next::Again);
        }
        Ok(Next::Log)
    }

    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.workers.iter().filter_map(|(_, task)| task.as_ref())
    }

    /// Waits for an answer, at most so long.
    fn answer(&self, at_most: Duration) -> Result<Option<(usize, Answer)>, Failure> {
        match self.answers.recv_timeout(at_most) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Passing("source: the threads that copy have ended".into()))
            }
        }
    }

    /// Takes an answer, if one comes.
    fn hear(&mut self, applier: &mut Applier<'_>, at_most: Duration) -> Result<bool, Failure> {
        let Some((number, answer)) = self.answer(at_most)? else { return Ok(false) };
        if let Answer::Failed(failure) = answer {
            return Err(failure);
        }
        let (_, slot) = &mut self.workers[number];
        let Some(task) = slot.as_mut() else { return Ok(true) };
        let name = &task.request.table.here;
        match answer {
            Answer::Connected | Answer::Failed(_) => (),
            Answer::Begun(snapshot) => (task.snapshot, task.stage) = (Some(snapshot), Stage::Reads),
            Answer::Read(upto) => {
                task.stage = Stage::HasRows;
                let table = task.request.table.clone();
                task.part = match upto {
                    None if table.defers_keys => Some(Part::Rows),
                    upto => upto,
                };
                if let Some(Part::UpTo { last, .. }) = upto {
                    self.left.push_front(Request { table, above: Some(last), locks: self.locks });
                }
            }
            // What is missing is not at the source: the log tells what has become of it.
            Answer::Gone => *slot = None,
            Answer::Written => task.stage = Stage::HasWritten,
            Answer::NotYet => (task.stage, task.may_be_ahead) = (Stage::HasRows, false),
            Answer::Committed => {
                applier.has_copied(name, task.part);
                if task.part == Some(Part::Rows) {
                    self.left.push_front(Request {
                        table: task.request.table.clone(),
                        above: None,
                        locks: false,
                    });
                }
                self.in_the_way = None;
                *slot = None;
            }
            Answer::Built => {
                if applier.copying().part(&name.0, &name.1) == Some(Part::Rows) {
                    applier.has_copied(name, None);
                }
                *slot = None;
            }
        }
        Ok(true)
    }

    /// Whether the log was applied further than a range's snapshot.
    fn is_too_late(&self, applier: &Applier<'_>) -> bool {
        self.tasks().any(|task| {
            task.stage != Stage::Commits
                && task.is_due(applier.place())
                && applier.ended().is_some_and(|ended| !is_beyond(task.place(), Some(ended)))
        })
    }

    /// Whether XA transactions forbid to take a range that is due: then tables are locked from now on, and those that
    /// are not connected any more, or go on over other tables, are waited for.
    fn is_in_the_way(&mut self, applier: &mut Applier<'_>) -> bool {
        let place = applier.place().cloned();
        let found = self.tasks().find_map(|task| {
            let has_rows = matches!(task.stage, Stage::HasRows | Stage::HasWritten);
            let snapshot = task.snapshot.as_ref().filter(|_| has_rows && task.is_due(place.as_ref()))?;
            let xid = applier.in_the_way(snapshot, &task.request.table)?;
            Some((xid, snapshot.is_locked))
        });
        let Some((xid, was_locked)) = found else { return false };
        self.locks = true;
        if was_locked {
            let times = self.in_the_way.map_or(0, |(times, _)| times) + 1;
            self.in_the_way = Some((times, Instant::now()));
            if times == PATIENCE {
                applier.wait_for_prepared(&xid);
            }
        }
        true
    }

    /// Writes and commits what is due.
    fn advance(&mut self, applier: &mut Applier<'_>) -> Result<(), Failure> {
        for at in 0..self.workers.len() {
            let (worker, Some(task)) = &mut self.workers[at] else { continue };
            if !task.is_due(applier.place()) {
                if task.stage == Stage::HasRows && task.may_be_ahead {
                    task.stage = Stage::Writes;
                    worker.tell(Order::Write { ahead: true })?;
                }
                continue;
            }
            applier.nothing_waits()?;
            let (name, above) = (&task.request.table.here, task.request.above);
            let is_next = match (applier.copying().part(&name.0, &name.1), above) {
                (Some(Part::None), None) => true,
                (Some(Part::UpTo { last, .. }), Some(above)) => last == above,
                _ => false,
            };
            match task.stage {
                Stage::HasRows => {
                    task.stage = Stage::Writes;
                    worker.tell(Order::Write { ahead: false })?;
                }
                Stage::HasWritten if is_next => {
                    task.stage = Stage::Commits;
                    let (position, asked) = applier.committed_position();
                    worker.tell(Order::Commit { part: task.part, position, asked })?;
                }
                _ => (),
            }
        }
        Ok(())
    }

    /// Gives those that do nothing something to do.
    fn ask(&mut self, applier: &mut Applier<'_>, source: &mut Connection) -> Result<(), Failure> {
        for at in 0..self.workers.len() {
            if self.workers[at].1.is_some() || self.left.is_empty() {
                continue;
            }
            if self.tasks().count() > 0 && self.is_crowded(source)? {
                return Ok(());
            }
            let copying = applier.copying();
            let is_whole = |name: &TableName| copying.part(&name.0, &name.1).is_none();
            let next = self.left.iter().position(|request| request.table.parents.iter().all(is_whole));
            let Some(request) = next.and_then(|next| self.left.remove(next)) else { return Ok(()) };
            let Planned { here, defers_keys, .. } = &request.table;
            let (order, stage) = match applier.copying().part(&here.0, &here.1) {
                Some(Part::Rows) => (Order::BuildKeys(request.table.clone()), Stage::BuildsKeys),
                _ => {
                    if request.above.is_none() {
                        applier.make_room(here, *defers_keys)?;
                    }
                    (Order::Read(request.clone()), Stage::Begins)
                }
            };
            let (worker, task) = &mut self.workers[at];
            worker.tell(order)?;
            *task = Some(Task {
                stage,
                snapshot: None,
                is_asked_by_gtid: false,
                may_be_ahead: request.table.is_apart,
                part: None,
                request,
            });
        }
        Ok(())
    }

    /// Whether the source has much to do.
    fn is_crowded(&mut self, source: &mut Connection) -> Result<bool, Failure> {
        if let Some((_, is_crowded)) = self.crowd.filter(|(at, _)| at.elapsed() < LOOK) {
            return Ok(is_crowded);
        }
        let running = source.query("SHOW GLOBAL STATUS LIKE 'Threads_running'");
        let running = texts(running.map_err(|error| Failure::of_source(&error))?).next();
        let running: u64 = running.and_then(|row| row.get(1)?.parse().ok()).unwrap_or(0);
        self.crowd = Some((Instant::now(), running > CROWD));
        Ok(running > CROWD)
    }

    /// Before a statement that changes definitions: what was added before its turn is taken back, as its transaction
    /// holds tables as they are.
    pub fn make_way(&mut self, applier: &mut Applier<'_>) -> Result<(), Failure> {
        while self.tasks().any(|task| task.stage == Stage::Writes) {
            self.hear(applier, TICK)?;
        }
        for (worker, task) in &mut self.workers {
            let Some(task) = task.as_mut().filter(|task| task.stage == Stage::HasWritten) else { continue };
            (task.stage, task.may_be_ahead) = (Stage::HasRows, false);
            worker.tell(Order::TakeBack)?;
        }
        Ok(())
    }

    /// Whether the source says that what was applied ends where a snapshot is, of which nothing has told yet.
    fn is_at_place(&mut self, applier: &mut Applier<'_>, source: &mut Connection) -> Result<bool, Failure> {
        let tasks = self.workers.iter_mut().filter_map(|(_, task)| task.as_mut());
        let mut unknown = tasks.filter(|task| !task.is_asked_by_gtid);
        let Some((task, place)) = unknown.find_map(|task| task.place().cloned().map(|place| (task, place)))
        else {
            return Ok(false);
        };
        task.is_asked_by_gtid = true;
        is_at(&place, applier, source)
    }

    /// Makes what there is besides tables, if the log is where that was read.
    fn make_others(
        &mut self,
        applier: &mut Applier<'_>,
        source: &mut Connection,
        is_idle: bool,
        is_new: bool,
    ) -> Result<Next, Failure> {
        let others = self.others.take();
        let mut others = others.map_or_else(|| Others::read(source, applier.plan()), Ok)?;
        let place = Some(&others.place);
        if applier.ended().is_some_and(|ended| !is_beyond(place, Some(ended))) {
            // It is read once more.
            return Ok(Next::Again);
        }
        if is_beyond(applier.place(), place) {
            applier.make_others(&others, is_new)?;
            return Ok(Next::Again);
        }
        let asks = is_idle && !std::mem::replace(&mut others.is_asked_by_gtid, is_idle);
        let is_there = asks && is_at(&others.place, applier, source)?;
        self.others = Some(others);
        Ok(if is_there { Next::Again } else { Next::Log })
    }

    /// Begins again with what is not there.
    fn anew(&mut self, applier: &mut Applier<'_>, source: &mut Connection) -> Result<(), Failure> {
        // What was asked for meanwhile is answered first.
        while self
            .tasks()
            .any(|task| !matches!(task.stage, Stage::HasRows | Stage::HasWritten | Stage::BuildsKeys))
        {
            self.hear(applier, TICK)?;
            if signals::interrupted() {
                return Ok(());
            }
        }
        for (worker, task) in &mut self.workers {
            if task.take_if(|task| task.stage != Stage::BuildsKeys).is_some() {
                worker.tell(Order::Withdraw)?;
            }
        }
        self.plan(source, applier)
    }
}

/// Whether the source says that what was applied ends at a place.
fn is_at(place: &LogPlace, applier: &mut Applier<'_>, source: &mut Connection) -> Result<bool, Failure> {
    let (file, position) = (&place.0, place.1);
    let gtid = match greeted(source) {
        Family::MariaDb => {
            source.value(format!("SELECT BINLOG_GTID_POS({}, {position})", literal(file.as_bytes())))
        }
        // If it has gone on meanwhile, what comes tells.
        Family::MySql => {
            end_of_log(source).map(|end| end.filter(|(end, _)| end == place).map(|(_, gtids)| gtids))
        }
    };
    let gtid = gtid.map_err(|error| Failure::of_source(&error))?;
    let ours = applier.position().to_string();
    let is_there = gtid.is_some_and(|gtid| has_all(&ours, &gtid) && has_all(&gtid, &ours));
    if is_there {
        applier.is_at(place);
    }
    Ok(is_there)
}
