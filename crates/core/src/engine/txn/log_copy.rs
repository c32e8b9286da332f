//! Keeps the log bounded that undecided transactions pin: what an old one did is copied to the end of the log, and the
//! log before the copy can go.
//!
//! ```text
//!   o  o   r  o  .  .  .  .  .  .  .  .  c  c  o  c  c  E      o operations, r rollback to a savepoint,
//!   └ kept from here              └ start               │      c copies, E end of the copy
//!                                 └ kept from here ─────┘
//! ```
//!
//! Only the end makes the copy count, and then nothing else of the transaction counts that lies before it. See
//! `docs/design/recovery.md`, "What pins the log", for what may happen meanwhile.

use crate::engine::data::trail::{Next, Original, Trail};
use crate::engine::shared::Shared;
use crate::log::{LogRecord, RecordReader, RedoBuffer};
use crate::options::LogLevel;
use crate::types::TxnId;
use crate::{Error, Result};

/// What undecided transactions have in the log is copied when the log has grown by so many times that, besides what a
/// checkpoint is made for: so the copies are a third of the log, at most.
const LOG_PER_REDO: u64 = 2;

impl Shared {
    /// Copies forward what old undecided transactions have in the log; of much, as much as goes with one checkpoint.
    /// Called before each.
    pub(in crate::engine) fn copy_pinned_log(&self) {
        if self.health.check().is_err() {
            return;
        }
        // Where the log is kept for another reason, or where a full disk would get fuller, it is of no use.
        let in_vain = self.reserve.is_spent() || self.care.has_damage();
        let Some(_alone) = self.undecided.holds.copying.try_lock().filter(|_| !in_vain) else { return };
        let checkpoint = self.settings.checkpoint_log_bytes();
        let limit = checkpoint.saturating_add(self.undecided.holds.redo_bytes().saturating_mul(LOG_PER_REDO));
        let mut budget = checkpoint / 2;
        let mut reader = self.log.record_reader();
        for (txn, trail) in self.undecided.holds.before(self.log.end().saturating_sub(limit)) {
            if let Err(error) = self.copy_redo(txn, &trail, &mut reader, &mut budget) {
                return self.log_failed(&error);
            }
            if budget == 0 {
                return;
            }
        }
    }

    /// Goes on with the copy of one transaction until it is complete or `budget`, in bytes of log that are read or
    /// written (of what is void nothing is written), is used up. An error is one of writing the log.
    fn copy_redo(
        &self,
        txn: TxnId,
        trail: &Trail,
        reader: &mut RecordReader<'_>,
        budget: &mut u64,
    ) -> Result<()> {
        while *budget > 0 {
            let original = match trail.next(&self.log)? {
                Next::Nothing => return Ok(()),
                Next::Complete(start) => {
                    self.undecided.holds.move_to(txn, start);
                    return Ok(());
                }
                Next::Record(original) => original,
            };
            if self.log.written() <= original.lsn {
                self.log.write_up_to(self.log.end())?;
            }
            debug_assert!(self.log.written() > original.lsn, "a record is read before it is written");
            let (copy, read) = match read_redo(txn, original, reader) {
                Ok(copy) => copy,
                Err(error) => {
                    self.cannot_copy(txn, trail, &error);
                    return Ok(());
                }
            };
            let taken = trail.copied(&self.log, original, copy)?.unwrap_or(0);
            self.counted.log_copied.add(taken);
            *budget = budget.saturating_sub(taken.max(read));
        }
        Ok(())
    }

    /// A record of the transaction could not be read: the log is kept for it.
    fn cannot_copy(&self, txn: TxnId, trail: &Trail, error: &Error) {
        // Its end may have let the log go; and a lack of descriptors passes.
        if trail.is_decided() || matches!(error, Error::NoDescriptor { .. }) {
            return;
        }
        trail.give_up();
        let text = format!(
            "transaction {txn} keeps the log until it ends, and a restart would need what cannot be read of it: {error}"
        );
        self.observer.message(LogLevel::Warning, &text);
    }
}

/// What of a record has to be copied, as a record; `None`: nothing. And the bytes of what was read.
fn read_redo(
    txn: TxnId,
    original: Original,
    reader: &mut RecordReader<'_>,
) -> Result<(Option<Vec<u8>>, u64)> {
    let Original { lsn, kept } = original;
    reader.read(lsn, |record| match record {
        LogRecord::Ops { txn: of, ops }
        | LogRecord::Prepare { txn: of, ops, .. }
        | LogRecord::Copy { txn: of, ops }
            if of == txn =>
        {
            let (mut left, read) = (RedoBuffer::new(), ops.encoded_bytes() as u64);
            let ops = match ops.iter().any(|op| op.sequence > kept) {
                true => {
                    ops.iter().filter(|op| op.sequence <= kept).for_each(|op| left.put(&op));
                    left.ops()
                }
                false => ops,
            };
            Ok(((!ops.is_empty()).then(|| LogRecord::Copy { txn, ops }.encode()), read))
        }
        _ => Err("not the operations that were put there"),
    })
}
