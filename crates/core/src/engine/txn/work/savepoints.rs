//! Savepoints: going back to a moment within a transaction.
//!
//! What was written since is a range of numbers, void in O(1) for the trees. The redo since is dropped from the buffer,
//! or declared void in the log if part of it is there. Marks make both, and the row counts, cheap and exact.

use super::Work;
use crate::engine::shared::Shared;
use crate::log::{RedoBuffer, RedoMark};
use crate::types::TreeId;
use crate::Result;

/// A savepoint.
pub(super) struct Mark {
    sequence: u32,
    /// Position in the redo buffer, while what is before it is there.
    redo: Option<RedoMark>,
    /// What a commit at this moment would have added to the row counts.
    rows: Vec<(TreeId, i64)>,
}

impl Mark {
    /// As memory for another.
    pub(super) fn start_anew(&mut self) {
        (self.sequence, self.redo) = (0, None);
        super::spent::empty(&mut self.rows);
    }

    fn memory(&self) -> usize {
        size_of::<Mark>() + self.rows.capacity() * size_of::<(TreeId, i64)>()
    }
}

/// So many marks are kept: each statement of a long transaction leaves one, and the server goes back to the last, as a
/// rule. Redo that goes to the log leaves none, or the marks of few savepoints would give way to those of much redo.
const MARKS: usize = 64;

impl Work {
    /// What the buffer had is in the log, or void; the log has operations up to `sequence`.
    pub(super) fn redo_is_logged(&mut self, sequence: u32) {
        debug_assert!(sequence <= self.sequence, "the log has operations that were not written");
        self.redo.clear();
        self.forget_redo_marks();
        self.logged_redo = Some(sequence);
    }

    fn forget_redo_marks(&mut self) {
        self.marks.iter_mut().chain(&mut self.row).for_each(|mark| mark.redo = None);
    }

    fn mark(&mut self) {
        // Before the first write there is nothing to come back to but nothing: most statements of short transactions
        // begin there.
        if self.sequence == 0 {
            return;
        }
        if self.marks.last().is_some_and(|mark| mark.sequence == self.sequence) {
            return;
        }
        let rows = self.touched.iter().map(|(&tree, touched)| (tree, touched.rows)).collect();
        self.keep_mark(Mark { sequence: self.sequence, redo: Some(self.redo.mark()), rows });
    }

    fn keep_mark(&mut self, mark: Mark) {
        if self.marks.len() >= MARKS {
            // Every other of the older half.
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number > MARKS / 2 || number % 2 == 0
            });
        }
        debug_assert!(
            self.marks.last().is_none_or(|last| last.sequence < mark.sequence),
            "savepoints are ascending"
        );
        self.marks.push(mark);
        self.count_marks();
    }

    /// A transaction over many partitions has much in each.
    fn count_marks(&mut self) {
        self.marks_memory = self.marks.iter().map(Mark::memory).sum();
    }

    /// What was appended before a savepoint goes where it can stay. If that fails the transaction cannot commit before
    /// it has gone back to one from before: the failure is kept.
    fn settle_append(&mut self, shared: &Shared) {
        let _ = self.finish_append(shared);
    }

    pub(in crate::engine) fn savepoint(&mut self, shared: &Shared) -> u32 {
        self.settle_append(shared);
        self.mark();
        self.charge_memory(shared);
        self.sequence
    }

    /// A savepoint for what one row takes, good until the next one.
    pub(in crate::engine) fn row_savepoint(&mut self, shared: &Shared) -> u32 {
        self.settle_append(shared);
        let redo = Some(self.redo.mark());
        let row = self.row.get_or_insert_with(|| Mark { sequence: 0, redo: None, rows: Vec::new() });
        (row.sequence, row.redo) = (self.sequence, redo);
        row.rows.clear();
        row.rows.extend(self.touched.iter().map(|(&tree, touched)| (tree, touched.rows)));
        self.sequence
    }

    pub(in crate::engine) fn rollback_to(&mut self, shared: &Shared, sequence: u32) -> Result<()> {
        let undone = self.undo_to(shared, sequence);
        self.charge_memory(shared);
        undone
    }

    fn undo_to(&mut self, shared: &Shared, sequence: u32) -> Result<()> {
        debug_assert!(sequence <= self.sequence, "a savepoint of another transaction");
        self.direct.drop_after(sequence);
        if sequence >= self.sequence {
            return Ok(());
        }
        // Numbers are not given twice, but what a later mark says of the redo is void now.
        if let Some(row) = self.row.take_if(|row| row.sequence >= sequence) {
            if row.sequence == sequence {
                self.marks.retain(|mark| mark.sequence < sequence);
                self.keep_mark(row);
            }
        }
        self.deferred.drop_after(sequence);
        self.unlogged.take_if(|first| *first > sequence);
        if let Some(status) = &self.status {
            status.void(sequence, self.sequence);
        }
        while self.marks.last().is_some_and(|mark| mark.sequence > sequence) {
            self.marks.pop();
        }
        self.count_marks();
        let logged = self.logged_redo.is_some_and(|last| last > sequence);
        self.restore_rows(sequence, logged);
        if logged {
            return self.void_in_log(shared, sequence);
        }
        // What was written after the savepoint is all in the buffer.
        let mark = self.marks.last().filter(|mark| mark.sequence == sequence).and_then(|mark| mark.redo);
        if !mark.is_some_and(|mark| self.redo.truncate_to(mark)) {
            self.keep_redo_up_to(sequence);
        }
        Ok(())
    }

    /// Exact if the savepoint has its mark or all that is undone is in the buffer. Otherwise the counts are those of
    /// the last mark before it, and drift by what was written between the two: they are statistics.
    fn restore_rows(&mut self, sequence: u32, logged: bool) {
        let mark = self.marks.last();
        if sequence == 0 || mark.is_some_and(|mark| mark.sequence == sequence) || logged {
            for (tree, touched) in &mut self.touched {
                let rows = mark.and_then(|mark| mark.rows.iter().find(|(id, _)| id == tree));
                touched.rows = rows.map_or(0, |&(_, rows)| rows);
            }
            return;
        }
        for op in self.redo.iter().filter(|op| op.sequence > sequence) {
            if let Some(touched) = self.touched.get_mut(&op.tree) {
                touched.rows -= op.rows_added();
            }
        }
    }

    /// Without a mark to truncate to.
    fn keep_redo_up_to(&mut self, sequence: u32) {
        let mut kept = RedoBuffer::new();
        for op in self.redo.iter().take_while(|op| op.sequence <= sequence) {
            kept.put(&op);
        }
        self.redo = kept;
        self.forget_redo_marks();
    }

    /// Part of what is undone is in the log.
    fn void_in_log(&mut self, shared: &Shared, sequence: u32) -> Result<()> {
        if let Err(error) = self.hold_log(shared).roll_back_to(&shared.log, sequence) {
            shared.log_failed(&error);
            self.doomed = Some(error.clone());
            return Err(error);
        }
        self.redo_is_logged(sequence);
        Ok(())
    }
}
