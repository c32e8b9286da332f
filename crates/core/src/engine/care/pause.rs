//! Times without checkpoints, for who copies the files of an engine while it runs.
//!
//! As long as a [`CheckpointPause`] lives, the newest superblock stays the newest: nothing that it leads to is
//! overwritten, nothing of the log that it needs is released, and the log gets no record of a later checkpoint. Work
//! goes on, but files of tables that are dropped stay to the end of the pause. Whoever needs a checkpoint (an index
//! build, for one) gets an error; the log grows meanwhile, and writers wait when there is [`PATIENCE`] times as much of
//! it as they usually wait for.

use crate::engine::shared::{Engine, Shared};
use crate::log::Lsn;
use crate::Result;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// How many times the log that writers usually wait at may be written during a pause before they wait.
pub(in crate::engine) const PATIENCE: u64 = 8;

/// How many pauses there are.
#[derive(Default)]
pub(in crate::engine) struct Pauses(AtomicU32);

impl Pauses {
    /// Whether checkpoints are paused. Certain only for who keeps checkpoints from running.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// No checkpoint begins, or becomes durable, while this lives.
pub struct CheckpointPause {
    shared: Arc<Shared>,
}

impl Engine {
    /// Waits for the checkpoint that is under way, if one is, and holds further ones back.
    pub fn pause_checkpoints(&self) -> CheckpointPause {
        let shared = self.shared.clone();
        shared.care.checkpointer.paused(|| shared.care.progress.pauses.0.fetch_add(1, Ordering::SeqCst));
        CheckpointPause { shared }
    }

    /// Makes everything committed so far durable. Where the log ends with it, in bytes: what is committed later has its
    /// record behind that.
    pub fn durable_log_end(&self) -> Result<Lsn> {
        let shared = &self.shared;
        let end = shared.log.end();
        shared.log.sync_up_to(end).inspect_err(|error| shared.log_failed(error))?;
        Ok(end)
    }
}

impl Drop for CheckpointPause {
    fn drop(&mut self) {
        let before = self.shared.care.progress.pauses.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a pause ends twice");
        // Whoever waits for a checkpoint looks again, and the thread whether one is due.
        self.shared.care.progress.ask();
        if before == 1 && self.shared.care.progress.is_running() {
            self.shared.remove_left_over();
        }
    }
}
