//! Where who has queued something for the log waits, and what it is told.

use crate::sync::{Condvar, Mutex};

use crate::Result;

/// Where a member waits for the outcome of its group.
#[derive(Default)]
pub(super) struct Slot {
    pub state: Mutex<SlotState>,
    pub changed: Condvar,
}

#[derive(Default)]
pub(super) enum SlotState {
    #[default]
    Waiting,
    /// It is to lead its group.
    Lead,
    Done(Result<()>),
}

impl Slot {
    pub fn set(&self, state: SlotState) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }
}
