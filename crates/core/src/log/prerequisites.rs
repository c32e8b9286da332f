//! What has to be durable before the log is.
//!
//! A record may name blocks in another file. They were written before the record was queued; whoever syncs the log
//! syncs that file first. The log knows nothing of it but how to do that.
//!
//! Several threads sync the log, so this is where one waits for the other.

use crate::counts::Timed;
use crate::file::File;
use crate::sync::Mutex;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Makes something durable that records name.
pub trait Prerequisite: Send + Sync {
    /// Returns when it is durable.
    fn make_durable(&self) -> Result<()>;
}

/// What is to be synced before the log, by number.
#[derive(Default)]
pub(super) struct Prerequisites {
    waiting: Mutex<BTreeMap<u32, Arc<dyn Prerequisite>>>,
    /// Locked by who syncs: another finds nothing in `waiting` as soon as the first has begun. And the kernel tells of
    /// a failure once, so the next sync of the same file would succeed without what the failed one has lost.
    failed: Mutex<Option<Error>>,
}

impl Prerequisites {
    /// To be called after the writes that count and before the record that relies on them is queued.
    pub fn add(&self, number: u32, prerequisite: Arc<dyn Prerequisite>) {
        self.waiting.lock().insert(number, prerequisite);
    }

    /// Makes durable what was added so far, and then what is written of the segment. After a failure it fails for
    /// good.
    pub fn sync(&self, segment: &dyn File) -> Result<()> {
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let made = waiting.values().try_for_each(|prerequisite| prerequisite.make_durable());
        let begun = Instant::now();
        let synced = made.and_then(|()| segment.sync());
        Timed::LogSync.add(begun.elapsed());
        synced.inspect_err(|error| *failed = Some(error.clone()))
    }
}
