//! A thread with a connection to the target, which applies transactions of a source beside others.
//!
//! Each batch is one transaction there: rows, and the row of the worker in `teak_replicate.worker`, which must have the
//! generation of the program that has begun last. A program that was killed may leave connections whose servers are
//! still at work; none of them can commit once the next program has begun, which ends those that it finds.
//!
//! If the order of commits is kept, the position is part of it as well, and a worker waits for its turn between rows
//! and position. It holds locks then, for which one before it in the log may wait, a circle that no server sees. So it
//! waits for some time only; then it takes its transaction back, and carries it out again when it is its turn.

use crate::configuration::{SourcePlan, TargetPlan};
use crate::control;
use crate::failure::Failure;
use crate::rows_variable::RowsVariable;
use crate::target;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use teak_client::{Connection, Error};

/// So long one that is ready waits for its turn at least before it gives its locks back.
const PATIENCE: Duration = Duration::from_millis(250);
/// And so many times as long as its statements took, up to so long.
const TIMES: u32 = 4;
const LONGEST_PATIENCE: Duration = Duration::from_secs(2);
/// Conflicts with others: the row has changed, a lock was not had, a circle. The same may be done at once.
const AGAIN: [u16; 3] = [1020, 1205, 1213];
/// So many times, one behind the other.
const TRIES: u32 = 10;
/// And so long after.
const PAUSE: Duration = Duration::from_millis(5);

/// What a worker applies at once.
#[derive(Debug)]
pub struct Work {
    /// BEGIN, and those of its rows, in the log's order.
    pub statements: Vec<Vec<u8>>,
    /// Changes the worker's row.
    pub noting: String,
    /// Moves the position, if the order is kept.
    pub moving: Option<Moving>,
}

/// What moves the position in the transaction of rows.
#[derive(Debug)]
pub struct Moving {
    /// The first number of the batch, and the one behind its last.
    pub numbers: (u64, u64),
    /// The statement.
    pub statement: String,
    /// What the position is before it.
    pub before: String,
}

/// What has become of it.
#[derive(Debug)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It is not, as one before it is not.
    NotItsTurn,
    /// It is not. Nothing more comes.
    Failed(Failure),
}

/// Whose turn it is to commit, where the order is kept.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug)]
struct Turn {
    /// The number that is to be committed next.
    next: u64,
    /// From this number on nothing is.
    end: u64,
}

/// What a wait for a turn ends with.
#[derive(Debug, PartialEq, Eq)]
enum Waited {
    Turn,
    TooLong,
    Over,
}

impl Turns {
    /// From this number on.
    pub fn from(next: u64) -> Turns {
        Turns { state: Mutex::new(Turn { next, end: u64::MAX }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, number: u64, at_most: Option<Duration>) -> Waited {
        let until = at_most.map(|at_most| Instant::now() + at_most);
        let mut turn = self.lock();
        loop {
            if turn.next == number {
                return Waited::Turn;
            }
            if number >= turn.end {
                return Waited::Over;
            }
            turn = match until {
                None => self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Waited::TooLong;
                    }
                    self.changed.wait_timeout(turn, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn pass(&self, next: u64) {
        self.lock().next = next;
        self.changed.notify_all();
    }

    /// Those who wait for this number, or for a later one, wait for nothing.
    pub fn end_at(&self, number: u64) {
        let mut turn = self.lock();
        turn.end = turn.end.min(number);
        drop(turn);
        self.changed.notify_all();
    }
}

/// A worker; its thread ends when this is dropped, behind what it does.
#[derive(Debug)]
pub struct ApplyWorker {
    orders: Sender<Work>,
}

impl ApplyWorker {
    /// The `number`th one of a source, whose own number is told to the target's log if that is to know. What it answers
    /// goes to `answers`, with its number.
    pub fn start(
        number: usize,
        source: &SourcePlan,
        server_id: u32,
        target: &TargetPlan,
        turns: &Arc<Turns>,
        answers: Sender<(usize, Outcome)>,
    ) -> Result<ApplyWorker, Failure> {
        let (orders, told) = channel();
        let (target, turns, of_source) = (target.clone(), Arc::clone(turns), source.name.clone());
        let origin = source.gtid_domain_id.map(|domain| (domain, server_id));
        let work = move || {
            let failed = match connect(&target, &of_source, number, origin) {
                Ok((connection, rows)) => Applying { connection, rows, source: of_source, turns: &turns }
                    .work(&told, &|answer| answers.send((number, answer)).is_ok()),
                Err(failure) => Some(failure),
            };
            if let Some(failure) = failed {
                // Where nobody listens any more, there is nothing to tell.
                let _ = answers.send((number, Outcome::Failed(failure)));
            }
        };
        let thread = std::thread::Builder::new().name(format!("{} {number}", source.name)).spawn(work);
        thread.map_err(|error| Failure::Passing(format!("no thread for a worker: {error}")))?;
        Ok(ApplyWorker { orders })
    }

    /// Gives it something to do; it has nothing.
    pub fn give(&self, work: Work) -> Result<(), Failure> {
        self.orders.send(work).map_err(|_| Failure::Passing("a worker has ended".into()))
    }
}

fn connect(
    target: &TargetPlan,
    source: &str,
    number: usize,
    origin: Option<(u32, u32)>,
) -> Result<(Connection, RowsVariable), Failure> {
    let connect = || -> Result<(Connection, RowsVariable, bool), Error> {
        let mut connection = target.settings.connect()?;
        let rows = target::begin_session(&mut connection)?;
        if let Some((domain, server_id)) = origin {
            target::set_origin(&mut connection, domain, Some(server_id))?;
        }
        // By it the next program finds the connection.
        let has_lock = target::take_free_lock(&mut connection, &target::lock_of_worker(source, number))?;
        Ok((connection, rows, has_lock))
    };
    let connected = connect();
    match connected.map_err(|error| Failure::of_target(&error, || "the beginning of a worker".into()))? {
        (connection, rows, true) => Ok((connection, rows)),
        (_, _, false) => Err(Failure::Passing("target: what a former worker began has not ended".into())),
    }
}

struct Applying<'t> {
    connection: Connection,
    rows: RowsVariable,
    source: String,
    turns: &'t Turns,
}

/// Why a batch is not committed.
enum NotYet {
    /// It may be at once.
    Again(Failure),
    /// It waited too long for its turn.
    TooLong,
    /// One before it was not committed.
    Over,
    Failed(Failure),
}

impl Applying<'_> {
    /// Does what it is told until nobody tells anything, or listens; or why it cannot.
    fn work(&mut self, told: &Receiver<Work>, answer: &dyn Fn(Outcome) -> bool) -> Option<Failure> {
        for work in told {
            let answered = match self.apply(&work) {
                Ok(answered) => answered,
                Err(failure) => {
                    // What is before it may come to its end.
                    self.turns.end_at(work.moving.map_or(0, |moving| moving.numbers.0));
                    return Some(failure);
                }
            };
            if !answer(answered) {
                break;
            }
        }
        None
    }

    fn apply(&mut self, work: &Work) -> Result<Outcome, Failure> {
        let mut tries = 0;
        loop {
            match self.transaction(work) {
                Ok(()) => return Ok(Outcome::Committed),
                Err(NotYet::Failed(failure)) => return Err(failure),
                Err(NotYet::Again(failure)) if tries == TRIES => return Err(failure),
                Err(NotYet::Again(_)) => {
                    tries += 1;
                    self.roll_back()?;
                    std::thread::sleep(PAUSE * tries);
                }
                Err(NotYet::Over) => {
                    self.roll_back()?;
                    return Ok(Outcome::NotItsTurn);
                }
                Err(NotYet::TooLong) => {
                    self.roll_back()?;
                    let first = work.moving.as_ref().map_or(0, |moving| moving.numbers.0);
                    if self.turns.wait(first, None) == Waited::Over {
                        return Ok(Outcome::NotItsTurn);
                    }
                }
            }
        }
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        let done = self.connection.execute("ROLLBACK");
        done.map(|_| ()).map_err(|error| Failure::of_target(&error, || "ROLLBACK".into()))
    }

    fn transaction(&mut self, work: &Work) -> Result<(), NotYet> {
        let began = Instant::now();
        self.connection.execute_all(self.rows.requests(&work.statements)).map_err(|error| not_yet(&error))?;
        if let Some(moving) = &work.moving {
            let patience = (began.elapsed() * TIMES).clamp(PATIENCE, LONGEST_PATIENCE);
            match self.turns.wait(moving.numbers.0, Some(patience)) {
                Waited::Turn => (),
                Waited::TooLong => return Err(NotYet::TooLong),
                Waited::Over => return Err(NotYet::Over),
            }
            let moved = self.connection.execute(&moving.statement).map_err(|error| not_yet(&error))?;
            if moved.affected_rows != 1 {
                return Err(NotYet::Failed(control::moved(
                    &mut self.connection,
                    &self.source,
                    &moving.before,
                )));
            }
        }
        let noted = self.connection.execute(&work.noting).map_err(|error| not_yet(&error))?;
        if noted.affected_rows != 1 {
            // Somebody wants something of the source, or follows it now.
            return Err(NotYet::Failed(Failure::Asked));
        }
        // An end that is not seen may have been one: the next connection reads what is done.
        let committed = self.connection.execute("COMMIT");
        committed.map_err(|error| NotYet::Failed(Failure::of_target(&error, || "COMMIT".into())))?;
        if let Some(moving) = &work.moving {
            self.turns.pass(moving.numbers.1);
        }
        Ok(())
    }
}

fn not_yet(error: &Error) -> NotYet {
    match error.code() {
        Some(code) if AGAIN.contains(&code) => NotYet::Again(Failure::Passing(format!("target: {error}"))),
        _ => NotYet::Failed(Failure::of_several(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_order_and_end() {
        let turns = Turns::from(5);
        assert_eq!(turns.wait(5, None), Waited::Turn);
        assert_eq!(turns.wait(7, Some(Duration::from_millis(1))), Waited::TooLong);
        std::thread::scope(|scope| {
            let seven = scope.spawn(|| turns.wait(7, None));
            turns.pass(7);
            assert_eq!(seven.join().unwrap(), Waited::Turn);
            let nine = scope.spawn(|| turns.wait(9, None));
            turns.end_at(9);
            turns.end_at(11);
            assert_eq!(nine.join().unwrap(), Waited::Over);
        });
        // What is before that may still be committed.
        assert_eq!(turns.wait(8, Some(Duration::ZERO)), Waited::TooLong);
        assert_eq!(turns.wait(7, None), Waited::Turn);
    }
}
