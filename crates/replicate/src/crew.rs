//! The workers of a source, and who of them is given what.

use crate::configuration::{SourcePlan, TargetPlan};
use crate::failure::Failure;
use crate::position::Position;
use crate::schedule::{Batch, CommitOrder, Passed, Schedule, Touch};
use crate::target::{Place, Target};
use crate::worker::{ApplyWorker, Moving, Outcome, Turns, Work};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use teak_binlog::Problem;
use teak_console::Status;

/// So many transactions of the source are one in the target at most.
pub const JOINED: usize = 200;
/// Fewer are not divided among several workers.
const FEW: usize = 8;
/// While more come, they are given out when there are so many.
const SOME: usize = 64;
/// So many of each worker may be behind the mark.
const BEHIND: usize = 2 * JOINED;
/// And so many bytes may wait.
const WAITING_BYTES: usize = 2 << 20;
/// So many are in one transaction, about.
const BATCH_BYTES: usize = 512 << 10;
/// When the mark has passed so many the target is told.
const UNRECORDED: u64 = 2 * JOINED as u64;

/// What a transaction does, and where it ends.
#[derive(Debug)]
struct Apart {
    end: Passed,
    statements: Vec<Vec<u8>>,
}

/// The workers of a source.
#[derive(Debug)]
pub struct Crew {
    schedule: Schedule<Apart>,
    order: CommitOrder,
    workers: Vec<ApplyWorker>,
    is_busy: Vec<bool>,
    answers: Receiver<(usize, Outcome)>,
    turns: Arc<Turns>,
    /// The position with all that was given out, and its text in the target; only if the order is kept.
    given: Position,
    given_text: String,
    /// The position with all up to the mark, and where in the log that is.
    passed: Position,
    place: Option<Place>,
}

impl Crew {
    /// Those of a source, which begin behind a position that the target has. They connect when they are here.
    pub fn start(
        source: &SourcePlan,
        plan: &TargetPlan,
        target: &Target<'_>,
        position: &Position,
        server_id: u32,
    ) -> Result<Crew, Failure> {
        let (answer, answers) = channel();
        let mark = target.last_number();
        let turns = Arc::new(Turns::from(mark + 1));
        let workers: Result<Vec<_>, _> = (0..source.workers)
            .map(|number| ApplyWorker::start(number, source, server_id, plan, &turns, answer.clone()))
            .collect();
        Ok(Crew {
            schedule: Schedule::new(source.commit_order, source.workers, mark),
            order: source.commit_order,
            workers: workers?,
            is_busy: vec![false; source.workers],
            answers,
            turns,
            given: position.clone(),
            given_text: String::new(),
            passed: position.clone(),
            place: None,
        })
    }

    /// Others have moved the position meanwhile; no worker has anything.
    pub fn is_at(&mut self, position: &Position, target: &Target<'_>) {
        self.given = position.clone();
        // As it was written first, somebody may have written domains in another order.
        self.given_text = target.position().unwrap_or_default().into();
        self.passed = position.clone();
    }

    /// Whether all that it was given is done, and the target knows it.
    pub fn has_nothing(&self) -> bool {
        self.schedule.len() == 0 && self.schedule.unrecorded() == 0
    }

    /// How many transactions are done above the mark.
    pub fn done_above(&self) -> usize {
        self.schedule.done_above()
    }

    /// Whether a worker has something to do.
    pub fn is_busy(&self) -> bool {
        self.is_busy.contains(&true)
    }

    /// Whether another transaction can be taken; what is open at the source cannot be held up for ever.
    pub fn is_full(&self) -> bool {
        self.schedule.len() >= BEHIND * self.workers.len() || self.schedule.waiting().1 >= WAITING_BYTES
    }

    /// Whether a transaction has to wait until [`Crew::has_nothing`], as one of its GTID is there.
    pub fn has(&self, gtid: &crate::position::Gtid) -> bool {
        self.schedule.has(gtid)
    }

    /// The log's next transaction.
    pub fn add(&mut self, end: Passed, touched: &[Touch], statements: Vec<Vec<u8>>, bytes: usize) {
        self.schedule.add(end.clone(), touched, Apart { end, statements }, bytes);
    }

    /// Gives those who have nothing what need not wait. `more_come`: not while that is little.
    pub fn give_out(&mut self, target: &Target<'_>, more_come: bool) -> Result<(), Failure> {
        loop {
            let (waiting, _) = self.schedule.waiting();
            let mut idle = (0..self.workers.len()).filter(|&worker| !self.is_busy[worker]);
            let Some(worker) = idle.next().filter(|_| waiting > 0) else { return Ok(()) };
            if more_come && waiting < SOME && !self.is_full() {
                return Ok(());
            }
            let most = waiting.div_ceil(1 + idle.count()).clamp(FEW, JOINED);
            let Some(batch) = self.schedule.give(worker, most, BATCH_BYTES) else { return Ok(()) };
            let work = self.work(worker, batch, target)?;
            self.workers[worker].give(work)?;
            self.is_busy[worker] = true;
        }
    }

    fn work(&mut self, worker: usize, batch: Batch<Apart>, target: &Target<'_>) -> Result<Work, Failure> {
        let moving = match self.order {
            CommitOrder::Free => None,
            CommitOrder::Kept => {
                for apart in &batch.transactions {
                    self.given.add(&apart.end.gtid).map_err(|problem| other_family(&problem))?;
                }
                let before = std::mem::replace(&mut self.given_text, self.given.to_string());
                batch.transactions.last().map(|last| Moving {
                    numbers: (batch.first, batch.last + 1),
                    statement: target.moving_of_worker(&before, &self.given_text, &last.end.place),
                    before,
                })
            }
        };
        let noting = target.noting_of_worker(worker, &batch.noted);
        let rows = batch.transactions.into_iter().flat_map(|apart| apart.statements);
        let statements = std::iter::once(b"BEGIN".to_vec()).chain(rows).collect();
        Ok(Work { statements, noting, moving })
    }

    /// Takes what workers have to say; for a first word it waits so long. How many transactions the mark has passed.
    /// After a failure that does not pass others end what they have begun.
    pub fn hear(&mut self, target: &mut Target<'_>, mut wait: Duration) -> Result<u64, Failure> {
        let mut passed = 0;
        while self.is_busy() {
            let heard = match wait.is_zero() {
                true => self.answers.try_recv().map_err(|error| error == TryRecvError::Disconnected),
                false => {
                    let heard = self.answers.recv_timeout(std::mem::take(&mut wait));
                    heard.map_err(|error| error == RecvTimeoutError::Disconnected)
                }
            };
            let (worker, answer) = match heard {
                Ok(heard) => heard,
                Err(false) => break,
                Err(true) => return Err(Failure::Passing("all workers have ended".into())),
            };
            match self.take(worker, answer)? {
                None => continue,
                Some(more) => passed += more,
            }
            if self.order == CommitOrder::Free && self.schedule.unrecorded() >= UNRECORDED {
                self.record(target)?;
            }
        }
        if passed > 0 && self.order == CommitOrder::Kept {
            target.is_at(self.passed.to_string());
        }
        Ok(passed)
    }

    /// How many transactions the mark passes with an answer.
    fn take(&mut self, worker: usize, answer: Outcome) -> Result<Option<u64>, Failure> {
        self.is_busy[worker] = false;
        match answer {
            // The one before it has failed, and is heard of next.
            Outcome::NotItsTurn => Ok(None),
            Outcome::Failed(failure) => Err(failure),
            Outcome::Committed => {
                let passed = self.schedule.done(worker);
                for one in &passed {
                    self.passed.add(&one.gtid).map_err(|problem| other_family(&problem))?;
                }
                let number = passed.len() as u64;
                self.place = passed.into_iter().next_back().map(|one| one.place).or(self.place.take());
                Ok(Some(number))
            }
        }
    }

    /// Lets those who have begun something end it, for so long at most, and notes what is done.
    pub fn end(&mut self, target: &mut Target<'_>, at_most: Duration) -> Result<(), Failure> {
        let until = Instant::now() + at_most;
        while self.is_busy() {
            match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                // What others could not do is known already, or comes again.
                Ok((worker, answer)) => drop(self.take(worker, answer)),
                Err(_) => break,
            }
        }
        self.record(target)
    }

    /// Tells the target how far the mark is.
    pub fn record(&mut self, target: &mut Target<'_>) -> Result<(), Failure> {
        let position = self.passed.to_string();
        if self.schedule.unrecorded() > 0 {
            if let Some(place) = &self.place {
                target.move_mark(&position, place, self.schedule.mark())?;
            }
            self.schedule.is_recorded();
        }
        Ok(())
    }

    /// When the last transaction below the mark was committed at the source.
    pub fn source_time(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.time)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.turns.end_at(0);
    }
}

fn other_family(problem: &Problem) -> Failure {
    Failure::Final(format!("source: {problem}"), Status::Damage)
}
