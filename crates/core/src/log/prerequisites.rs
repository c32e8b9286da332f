//! What has to be durable before the log is.
//!
//! A record may name blocks in another file. They were written before the record was queued; whoever syncs the log
//! syncs that file first. The log knows nothing of it but how to do that.

use crate::sync::Mutex;
use crate::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes something durable that records name.
pub trait Prerequisite: Send + Sync {
    /// Returns when it is durable.
    fn make_durable(&self) -> Result<()>;
}

/// What is to be synced before the log, by number.
#[derive(Default)]
pub(super) struct Prerequisites {
    waiting: Mutex<BTreeMap<u32, Arc<dyn Prerequisite>>>,
}

impl Prerequisites {
    /// To be called after the writes that count and before the record that relies on them is queued.
    pub fn add(&self, number: u32, prerequisite: Arc<dyn Prerequisite>) {
        self.waiting.lock().insert(number, prerequisite);
    }

    /// Makes durable what was added so far.
    pub fn make_durable(&self) -> Result<()> {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.values().try_for_each(|prerequisite| prerequisite.make_durable())
    }
}
