//! A worker: one connection that carries out tasks.
//!
//! Rows of an engine with transactions go in one transaction with the record that they are loaded. If something is
//! wrong with joined statements, or they raise a warning that one row alone might raise as an error, they are taken
//! back and carried out one by one, as a serial load would.

use super::error::{LoadError, Place};
use super::queue::Work;
use super::session::SessionState;
use super::state::LoadState;
use super::task::{Action, Facts, Piece, Task, Unit};
use super::verify::{Checker, Doubt, Verify};
use std::sync::Arc;
use teak_client::{Connection, Error};

/// How often a transaction that others pushed aside is repeated.
const ATTEMPTS: usize = 30;

/// One connection and the session that it is in.
pub struct Worker<'a> {
    shared: &'a LoadState,
    connection: Connection,
    session: SessionState,
    checker: Option<Checker<'a>>,
    /// Rows that the server says the task changed.
    affected: u64,
}

/// Why a transaction of a task did not end.
enum Obstacle {
    /// Other transactions were in the way: it can be repeated as it is.
    Conflict(Error),
    /// A statement fails, or warns: they must be carried out one by one.
    Doubt,
    Lost(LoadError),
}

/// A lock conflict: the transaction is over, or must be ended.
pub fn is_conflict(error: &Error) -> bool {
    matches!(error.code(), Some(1020 | 1205 | 1213))
}

/// Ends the load for everybody if its thread panics: the others would wait for the task that it had.
struct EndOnPanic<'a>(&'a LoadState);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(LoadError::Usage("a thread of the load ended by a bug".into()));
        }
    }
}

/// The worker of this number: works when it is admitted, until there is nothing more to do, or something failed.
pub fn run(shared: &LoadState, number: usize) {
    let _guard = EndOnPanic(shared);
    while shared.queue.admit(number) {
        let worked = Worker::connect(shared, number).and_then(|worker| match worker {
            Some(worker) => worker.work(number),
            None => Ok(()),
        });
        if let Err(error) = worked {
            return shared.fail(error);
        }
    }
}

impl<'a> Worker<'a> {
    /// With all the connections that its tasks need, so that no worker keeps one while it waits for another. `None`:
    /// there are not enough.
    fn connect(shared: &'a LoadState, number: usize) -> Result<Option<Worker<'a>>, LoadError> {
        let Some(mut connection) = shared.connect_worker(number)? else { return Ok(None) };
        shared.join(&mut connection)?;
        let mut checker = None;
        if shared.verify.is_some() {
            let Some(second) = shared.connect_worker(number)? else { return Ok(None) };
            checker = Some(Checker::new(shared, second)?);
        }
        Ok(Some(Worker { shared, connection, session: shared.first_session(), checker, affected: 0 }))
    }

    /// Carries out tasks while it is admitted and there are any.
    fn work(mut self, number: usize) -> Result<(), LoadError> {
        while let Some(task) = self.shared.queue.take(number) {
            let (lane, bytes) = (task.lane(), task.bytes());
            self.carry_out(&task)?;
            self.shared.queue.done(lane, bytes);
        }
        Ok(())
    }

    fn carry_out(&mut self, task: &Task) -> Result<(), LoadError> {
        self.enter(&task.session)?;
        let Action::Rows(facts) = &task.action else { return self.define(task) };
        if !task.loaded {
            self.insert(task, facts)?;
        }
        self.sum(task, facts)
    }

    /// What the check needs to know of rows that were inserted.
    fn sum(&mut self, task: &Task, facts: &Arc<Facts>) -> Result<(), LoadError> {
        let Some(verify) = &self.shared.verify else { return Ok(()) };
        if task.barrier && !task.loaded && self.affected != task.rows() {
            let why = "of rows that exclude each other, REPLACE or IGNORE has kept some";
            verify.doubt(&task.table, Doubt::Rows(why.into()));
        }
        Verify::sum_of(self.shared, &mut self.checker, (task, facts))
    }

    /// Brings the connection into the session in which the dump has these statements.
    fn enter(&mut self, wanted: &SessionState) -> Result<(), LoadError> {
        let shared = self.shared;
        shared.enter((&mut self.connection, &mut self.session), wanted, || shared.connect_to_change())
    }

    fn insert(&mut self, task: &Task, facts: &Facts) -> Result<(), LoadError> {
        if !facts.can_repeat() {
            return self.insert_for_good(task);
        }
        for _ in 0..ATTEMPTS {
            match self.transaction(task, facts) {
                Ok(()) => {
                    self.shared.counters.add_rows(task.rows());
                    return Ok(());
                }
                Err(Obstacle::Lost(error)) => return Err(error),
                Err(Obstacle::Conflict(_)) => self.rollback()?,
                Err(Obstacle::Doubt) => {
                    self.rollback()?;
                    break;
                }
            }
        }
        self.one_by_one(task, facts)
    }

    fn transaction(&mut self, task: &Task, facts: &Facts) -> Result<(), Obstacle> {
        self.affected = 0;
        let lost = |error: Error| match error {
            error if is_conflict(&error) => Obstacle::Conflict(error),
            error => Obstacle::Lost(error.into()),
        };
        let record = self.shared.record_of(task, facts, task.range().1);
        let together = facts.transactional
            && (record.is_some() || task.units.len() > 1 || task.units[0].pieces.len() > 1);
        if together {
            self.connection.execute("BEGIN").map_err(lost)?;
        }
        for unit in &task.units {
            match self.connection.execute(&unit.text) {
                Ok(completed) if completed.warnings > 0 && unit.pieces.len() > 1 => {
                    return Err(Obstacle::Doubt)
                }
                Ok(completed) => self.affected += completed.affected_rows,
                Err(error) if is_conflict(&error) => return Err(Obstacle::Conflict(error)),
                Err(Error::Server { .. }) => return Err(Obstacle::Doubt),
                Err(error) => return Err(Obstacle::Lost(error.into())),
            }
        }
        if let Some(record) = record {
            self.connection.execute(record).map_err(lost)?;
        }
        if together {
            self.connection.execute("COMMIT").map_err(lost)?;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), LoadError> {
        self.connection.execute("ROLLBACK")?;
        Ok(())
    }

    /// Each statement by itself, still in one transaction; what comes before one that fails stays.
    fn one_by_one(&mut self, task: &Task, facts: &Facts) -> Result<(), LoadError> {
        for attempt in 1.. {
            self.connection.execute("BEGIN")?;
            match self.one_by_one_once(task, facts) {
                Ok((rows, result)) => {
                    self.connection.execute("COMMIT")?;
                    self.shared.counters.add_rows(rows);
                    return result;
                }
                Err(Obstacle::Conflict(error)) if attempt >= ATTEMPTS => {
                    let (unit, piece) = (&task.units[0], &task.units[0].pieces[0]);
                    return Err(self.failed(task, unit, piece, error));
                }
                Err(Obstacle::Lost(error)) => return Err(error),
                Err(_) => self.rollback()?,
            }
        }
        Ok(())
    }

    /// The rows inserted, and the failure that ended it.
    #[allow(clippy::type_complexity)] // Read at one place, right above.
    fn one_by_one_once(
        &mut self,
        task: &Task,
        facts: &Facts,
    ) -> Result<(u64, Result<(), LoadError>), Obstacle> {
        let (mut rows, mut last, mut skipped) = (0, None, Vec::new());
        self.affected = 0;
        let pieces = task.units.iter().flat_map(|unit| unit.pieces.iter().map(move |piece| (unit, piece)));
        for (unit, piece) in pieces {
            match self.connection.execute(unit.statement(piece)) {
                Ok(completed) => {
                    rows += piece.rows;
                    self.affected += completed.affected_rows;
                }
                Err(error) if is_conflict(&error) => return Err(Obstacle::Conflict(error)),
                Err(error @ Error::Server { .. }) => {
                    let error = self.failed(task, unit, piece, error);
                    if task.is_cut() {
                        self.take_back()?;
                        rows = 0;
                    }
                    if !self.shared.skips_errors() {
                        self.record(task, facts, last)?;
                        return Ok((rows, Err(error)));
                    }
                    skipped.push(error);
                    if task.is_cut() {
                        last = Some(piece.offset);
                        break;
                    }
                }
                Err(error) => return Err(Obstacle::Lost(error.into())),
            }
            last = Some(piece.offset);
        }
        self.record(task, facts, last)?;
        skipped.into_iter().for_each(|error| self.shared.skip(error));
        Ok((rows, Ok(())))
    }

    /// Begins the transaction again, without what was done in it.
    fn take_back(&mut self) -> Result<(), Obstacle> {
        let again = self.connection.execute("ROLLBACK").and_then(|_| self.connection.execute("BEGIN"));
        again.map(drop).map_err(|error| Obstacle::Lost(error.into()))
    }

    /// Writes the record up to the statement at `last` into the open transaction, unless the server has ended that.
    fn record(&mut self, task: &Task, facts: &Facts, last: Option<u64>) -> Result<(), Obstacle> {
        let Some(record) = last.and_then(|last| self.shared.record_of(task, facts, last)) else {
            return Ok(());
        };
        let open =
            self.connection.value("SELECT @@in_transaction").map_err(|error| Obstacle::Lost(error.into()))?;
        if facts.transactional && open.as_deref() == Some("1") {
            self.connection.execute(record).map_err(|error| Obstacle::Lost(error.into()))?;
        }
        Ok(())
    }

    /// An engine without transactions: what is done stays done, and that it was begun is recorded before.
    fn insert_for_good(&mut self, task: &Task) -> Result<(), LoadError> {
        self.shared.note_begun(&mut self.connection, task)?;
        self.affected = 0;
        for (unit, piece) in
            task.units.iter().flat_map(|unit| unit.pieces.iter().map(move |piece| (unit, piece)))
        {
            match self.connection.execute(unit.statement(piece)) {
                Ok(completed) => {
                    self.affected += completed.affected_rows;
                    self.shared.counters.add_rows(piece.rows);
                }
                Err(error @ Error::Server { .. }) => {
                    self.shared.pass_over(self.failed(task, unit, piece, error))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.shared.note_done(&mut self.connection, task)?)
    }

    /// CREATE, ALTER, DROP and such.
    fn define(&mut self, task: &Task) -> Result<(), LoadError> {
        self.shared.note_begun(&mut self.connection, task)?;
        if matches!(task.action, Action::Define) {
            self.shared.deferred.build(&mut self.connection, &task.table, self.shared)?;
        }
        for unit in &task.units {
            let piece = &unit.pieces[0];
            match self.connection.execute(&unit.text) {
                Ok(_) => {}
                Err(error) if task.maybe_done && says_it_is_done(&error) => {}
                Err(error @ Error::Server { .. }) => {
                    self.shared.pass_over(self.failed(task, unit, piece, error))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let (Some(verify), Some(unit)) = (&self.shared.verify, task.units.first()) {
            let dialect = task.session.dialect();
            verify.defined(&mut self.connection, &task.table, (&unit.text, dialect))?;
        }
        if matches!(task.action, Action::Create) {
            self.shared.deferred.put_off(&mut self.connection, &task.table, self.shared)?;
        }
        Ok(self.shared.note_done(&mut self.connection, task)?)
    }

    fn failed(&self, task: &Task, unit: &Unit, piece: &Piece, error: Error) -> LoadError {
        LoadError::Statement {
            place: Place::new(&task.origin.name, piece.line, &unit.statement(piece)),
            error,
        }
    }
}

/// What a statement that was carried out before, by a run that then ended, is answered when it is repeated.
pub fn says_it_is_done(error: &Error) -> bool {
    // Database, table, view, column, key, routine, trigger, event, sequence: exists, or is gone.
    matches!(
        error.code(),
        Some(
            1007 | 1008
                | 1050
                | 1051
                | 1060
                | 1061
                | 1068
                | 1091
                | 1304
                | 1305
                | 1359
                | 1360
                | 1396
                | 1537
                | 1539
                | 4092
        )
    )
}
