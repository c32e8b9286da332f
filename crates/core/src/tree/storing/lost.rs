//! What cannot be read, when the engine was started to save what is left: see [`crate::tree::read::pass_over`].

use super::tree::TreeContext;
use crate::options::{LogLevel, Observer};
use crate::sync::Mutex;
use crate::types::TreeId;
use crate::Error;
use std::sync::Arc;

/// Keys whose entries cannot be read.
#[derive(Debug, Clone)]
pub struct Lost {
    /// In this tree.
    pub tree: TreeId,
    /// From this key on.
    pub low: Vec<u8>,
    /// Up to this one, which is not lost; `None`: up to the end of the tree.
    pub high: Option<Vec<u8>>,
    /// They are there, but as they were before some checkpoint.
    pub is_older: bool,
    /// Why.
    pub error: Error,
}

/// What was passed over.
pub(in crate::tree) struct LostRanges {
    observer: Arc<dyn Observer>,
    ranges: Mutex<Vec<Lost>>,
}

impl LostRanges {
    pub(in crate::tree) fn note(&self, lost: Lost) {
        let mut ranges = self.ranges.lock();
        if ranges.iter().any(|known| known.tree == lost.tree && known.low == lost.low) {
            return;
        }
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let text = format!(
            "entries of tree {} from key {} to {} {}: {}",
            lost.tree,
            hex(&lost.low),
            lost.high.as_ref().map_or("the end".to_string(), |high| hex(high)),
            match lost.is_older {
                true => "lack their latest changes, which cannot be read",
                false => "cannot be read and are passed over",
            },
            lost.error
        );
        ranges.push(lost);
        drop(ranges);
        self.observer.message(LogLevel::Error, &text);
    }
}

impl TreeContext {
    /// From now on scans of all trees pass over what cannot be read, and `observer` is told.
    pub fn pass_over_damage(&self, observer: Arc<dyn Observer>) {
        self.lost.get_or_init(|| LostRanges { observer, ranges: Mutex::default() });
    }

    /// What was passed over so far.
    pub fn lost(&self) -> Vec<Lost> {
        self.lost.get().map_or_else(Vec::new, |lost| lost.ranges.lock().clone())
    }
}
