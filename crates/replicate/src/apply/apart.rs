//! Transactions that workers apply, beside others: those of rows, if they are not long. All others are alone: before
//! one begins all before it are done, and part of the position, and it goes over the connection that has the lock.

use super::{Applier, Care, Received};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::routes::Name;
use crate::schedule::Passed;
use crate::target::Place;
use crate::touched::{AddError, Touched};
use std::time::Duration;
use teak_binlog::Rows;
use teak_console::{signals, Status};

/// A transaction with more bytes of statements is alone.
const LONG: usize = 512 << 10;
/// How often a wait for workers looks whether the program is to end.
const TICK: Duration = Duration::from_millis(200);
/// So long they may take for what they have begun when it is to.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// What a transaction does, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    statements: Vec<Vec<u8>>,
    bytes: usize,
    touched: Touched,
}

impl Applier<'_> {
    /// The transaction that has begun goes to a worker, if it can.
    pub(super) fn begin_apart(&mut self, server_id: u32) -> Result<(), Failure> {
        let is_for_workers = self.source.workers > 1
            && self.care == Care::Usual
            && self.copying.is_done()
            // Theirs are sessions of the source's own number.
            && (self.source.gtid_domain_id.is_none() || server_id == self.source_id)
            && !self.target.has_above()
            && !self.is_passed_over();
        let comes_again =
            self.crew.as_ref().zip(self.gtid.as_ref()).is_some_and(|(crew, gtid)| crew.has(gtid));
        if !is_for_workers || comes_again {
            self.settle()?;
        }
        if !self.is_passed_over() && self.target.comes_from_another(server_id) {
            self.settle()?;
            self.commit()?;
            self.target.comes_from(server_id)?;
        }
        if is_for_workers {
            // What went over this connection is before it.
            self.commit()?;
            self.gathering = Some(Gathering::default());
        }
        Ok(())
    }

    /// The transaction that is open is alone.
    pub(super) fn alone(&mut self) -> Result<(), Failure> {
        let Some(gathering) = self.gathering.take() else { return Ok(()) };
        self.settle()?;
        gathering.statements.into_iter().try_for_each(|statement| self.target.add(statement))
    }

    /// Takes a statement for a worker; None: it was not taken, as the transaction is alone.
    pub(super) fn gather(&mut self, statement: Vec<u8>) -> Result<Option<Vec<u8>>, Failure> {
        let Some(gathering) = &mut self.gathering else { return Ok(Some(statement)) };
        gathering.bytes += statement.len();
        gathering.statements.push(statement);
        if gathering.bytes > LONG {
            self.alone()?;
        }
        Ok(None)
    }

    /// Notes what rows of a table of the target touch.
    pub(super) fn touch(&mut self, here: &Name, rows: &Rows<'_>) -> Result<(), Failure> {
        let Some(gathering) = &mut self.gathering else { return Ok(()) };
        let added = self.keys.add(self.target.connection(), here, rows, &mut gathering.touched);
        added.map_err(|error| match error {
            AddError::Log(error) => self.stop(error.to_string()),
            AddError::Target(error) => {
                Failure::of_target(&error, || format!("keys of {}", rows.table.quoted_name()))
            }
        })
    }

    /// The transaction is at its end. False: it was alone.
    pub(super) fn hand_over(&mut self, sent: &Received<'_, '_>) -> Result<bool, Failure> {
        let Some(gathering) = self.gathering.take() else { return Ok(false) };
        let is_empty = gathering.statements.is_empty() && self.crew.as_ref().is_none_or(Crew::has_nothing);
        if is_empty && self.source.gtid_domain_id.is_some() {
            // It does nothing but to move the position, which workers would tell the target's log.
            return Ok(false);
        }
        let Some(gtid) = self.gtid.take() else { return Ok(true) };
        if self.crew.is_none() {
            let crew = Crew::start(self.source, self.plan, &self.target, &self.position, self.source_id)?;
            self.crew = Some(crew);
        }
        let Some(crew) = &mut self.crew else { return Ok(true) };
        if crew.has_nothing() {
            crew.is_at(&self.position, &self.target);
        }
        let added = self.position.add(&gtid);
        added.map_err(|problem| Failure::Final(format!("source: {problem}"), Status::Damage))?;
        let (file, time) = (sent.file.to_string(), sent.event.header.time);
        self.ended = Some((file.clone(), sent.end));
        let end = Passed { gtid, place: Place { file, position: sent.end, time } };
        crew.add(end, &gathering.touched.all, gathering.statements, gathering.bytes);
        self.tend(Tending::MoreComes)?;
        while self.crew.as_ref().is_some_and(Crew::is_full) {
            self.tend(Tending::Wait(TICK))?;
        }
        Ok(true)
    }

    /// Gives workers something to do, and hears what they have done.
    pub(super) fn tend(&mut self, how: Tending) -> Result<(), Failure> {
        let Some(crew) = &mut self.crew else { return Ok(()) };
        let mut tended = crew.hear(&mut self.target, Duration::ZERO);
        if let Ok(passed) = &mut tended {
            let given = crew.give_out(&self.target, how == Tending::MoreComes);
            tended = match (given, how) {
                (Err(failure), _) => Err(failure),
                (Ok(()), Tending::Wait(wait)) => crew.hear(&mut self.target, wait).map(|more| more + *passed),
                (Ok(()), _) => Ok(*passed),
            };
        }
        match tended {
            Ok(passed) => {
                let time = crew.source_time();
                self.count(passed, time);
                if signals::interrupted() && matches!(how, Tending::Wait(_)) {
                    self.end_in_order()?;
                    return Err(Failure::Passing("the program is to end".into()));
                }
                Ok(())
            }
            Err(failure) => {
                // What is before it is done, and what is done beside it noted, before it is looked at one by one.
                if matches!(failure, Failure::Unclear(_) | Failure::Final(..)) {
                    crew.end(&mut self.target, LAST_WAIT)?;
                }
                Err(failure)
            }
        }
    }

    fn count(&mut self, passed: u64, time: Option<u32>) {
        self.progress.transactions.add(passed);
        if let Some(time) = time.filter(|_| passed > 0) {
            self.progress.source_time.set(u64::from(time));
        }
        self.committed += passed;
    }

    /// How many transactions are done above those that have no gap before them.
    pub fn done_above(&self) -> usize {
        self.target.done_above() + self.crew.as_ref().map_or(0, Crew::done_above)
    }

    /// Waits until all that workers have is done, and part of the position.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        while self.crew.as_ref().is_some_and(|crew| !crew.has_nothing()) {
            self.tend(Tending::Wait(TICK))?;
            self.note_idle()?;
        }
        Ok(())
    }

    /// Tells the target how far the mark is, if no worker has anything to do.
    pub(super) fn note_idle(&mut self) -> Result<(), Failure> {
        match &mut self.crew {
            Some(crew) if !crew.is_busy() => crew.record(&mut self.target),
            _ => Ok(()),
        }
    }

    /// Waits a little for workers, if they have something to do, and whether they have.
    pub fn waits_for_workers(&mut self, at_most: Duration) -> Result<bool, Failure> {
        if !self.crew.as_ref().is_some_and(Crew::is_busy) {
            return Ok(false);
        }
        self.tend(Tending::Wait(at_most))?;
        Ok(true)
    }

    /// The program is to end: what workers have begun may come to its end.
    pub fn end_in_order(&mut self) -> Result<(), Failure> {
        match &mut self.crew {
            Some(crew) => crew.end(&mut self.target, LAST_WAIT),
            None => Ok(()),
        }
    }
}

/// What is known while workers are looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tending {
    /// The log has more to send.
    MoreComes,
    /// It has not.
    AllCame,
    /// Nothing else can be done for so long.
    Wait(Duration),
}
