//! What the connection that holds the lock of a source has to do with the source's workers: `teak_replicate.worker`.

use super::{lock_of_worker, Place, Target};
use crate::above;
use crate::configuration::MOST_WORKERS;
use crate::failure::Failure;
use teak_client::Error;

impl Target<'_> {
    /// Ends what workers of former programs are at, reads what they did, and makes room for so many of this one. From
    /// its end on nothing is committed but by this connection, and by workers that it tells the generation.
    pub fn take_over(&mut self, workers: usize) -> Result<(), Failure> {
        let of_target = |error: Error| Failure::of_target(&error, || "teak_replicate.worker".into());
        let source = self.source.clone();
        let connection = &mut self.connection;
        let before = above::read(connection, &source, "").map_err(of_target)?;
        if before.generation == 0 && workers == 1 {
            return Ok(());
        }
        self.end_former_workers().map_err(of_target)?;
        let connection = &mut self.connection;
        connection.execute("BEGIN").map_err(of_target)?;
        let mut above = above::read(connection, &source, "FOR UPDATE").map_err(of_target)?;
        above.generation += 1;
        let generation = above.generation;
        let left = above::noted(above.done.iter().map(|gtid| (0, gtid)));
        let mut rows = format!("('{source}', 0, {generation}, '{left}')");
        // One worker is none: its transactions are those of this connection.
        let last = if workers == 1 { 0 } else { workers };
        for worker in 1..=last {
            rows += &format!(", ('{source}', {worker}, {generation}, '')");
        }
        for statement in [
            format!("DELETE FROM teak_replicate.worker WHERE source = '{source}' AND worker > {last}"),
            format!(
                "INSERT INTO teak_replicate.worker (source, worker, generation, done) VALUES {rows}
                ON DUPLICATE KEY UPDATE generation = VALUES(generation), done = VALUES(done)"
            ),
            "COMMIT".into(),
        ] {
            connection.execute(statement).map_err(of_target)?;
        }
        self.done_above = above.done.len();
        self.above = above;
        self.read_state()
    }

    /// Ends connections of workers of former programs. What they have begun could not be committed, and hold locks for
    /// longer than anybody can wait, if nobody has told the server that the program is gone.
    fn end_former_workers(&mut self) -> Result<(), Error> {
        let holder = |worker| format!("IS_USED_LOCK({})", lock_of_worker(&self.source, worker));
        let holders: Vec<String> = (0..MOST_WORKERS).map(holder).collect();
        let holders = self.connection.query(format!("SELECT {}", holders.join(", ")))?;
        for holder in holders.into_iter().flatten().flatten() {
            match self.connection.execute([b"KILL ", &holder[..]].concat()) {
                // It has ended meanwhile, or is of another account.
                Ok(_) | Err(Error::Server { .. }) => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a transaction is done already, above the position.
    pub fn is_above(&self, gtid: &str) -> bool {
        self.above.done.contains(gtid)
    }

    /// Whether any is.
    pub fn has_above(&self) -> bool {
        !self.above.done.is_empty()
    }

    /// How many are, as it is committed.
    pub fn done_above(&self) -> usize {
        self.done_above
    }

    /// With the next commit one that was above the position is part of it.
    pub fn is_not_above(&mut self, gtid: &str) {
        self.above_has_changed |= self.above.done.remove(gtid);
    }

    /// What notes those that are left above it.
    pub(super) fn noting_above(&self) -> String {
        let left = above::noted(self.above.done.iter().map(|gtid| (0, gtid)));
        format!(
            "UPDATE teak_replicate.worker SET done = '{left}' WHERE source = '{}' AND worker = 0",
            self.source
        )
    }

    /// The number, as workers count transactions, of the last one that is part of the position.
    pub fn last_number(&self) -> u64 {
        self.above.mark
    }

    /// What changes a worker's row in its transaction, if it is a worker of now. Workers are counted from 0 on.
    pub fn noting_of_worker(&self, worker: usize, done: &str) -> String {
        let (source, generation) = (&self.source, self.above.generation);
        // A row that does not change is none that was changed.
        let counted = "commits = commits + 1";
        format!(
            "UPDATE teak_replicate.worker SET done = '{done}', {counted} WHERE source = '{source}' AND worker = {} \
             AND generation = {generation}",
            worker + 1
        )
    }

    /// What moves the position in a worker's transaction, from one to the next.
    pub fn moving_of_worker(&self, before: &str, position: &str, place: &Place) -> String {
        self.moving(position, place, "", &format!("gtid = '{before}' AND asked = {}", self.asked))
    }

    /// Workers have moved the position.
    pub fn is_at(&mut self, position: String) {
        self.position = Some(position);
    }

    /// Moves the position and its mark over transactions of workers that are committed.
    pub fn move_mark(&mut self, position: &str, place: &Place, mark: u64) -> Result<(), Failure> {
        let before = self.position.as_deref().unwrap_or_default();
        let condition = format!("gtid = '{before}' AND asked = {}", self.asked);
        let update = self.moving(position, place, &format!("mark = {mark}, "), &condition);
        let updated = self.connection.execute(update);
        let updated = updated.map_err(|error| Failure::of_target(&error, || "its position".into()))?;
        if updated.affected_rows != 1 {
            return Err(self.moved());
        }
        self.position = Some(position.into());
        self.above.mark = mark;
        Ok(())
    }
}
