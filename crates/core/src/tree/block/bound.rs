//! Where the keys of a leaf begin and end.

use crate::tree::block::wide_head;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

/// A key between two leaves, which share it, with its first bytes beside the pointer: most comparisons need no look at
/// the key, which would be a cache miss in each descent.
#[derive(Clone)]
pub(crate) struct Bound {
    head: u64,
    key: Arc<[u8]>,
}

impl Bound {
    /// Compares the bound with a key, of which `head` is the [`wide_head`].
    #[inline]
    pub(crate) fn order(&self, head: u64, key: &[u8]) -> Ordering {
        match self.head.cmp(&head) {
            Ordering::Equal => (*self.key).cmp(key),
            decided => decided,
        }
    }

    /// Whether both are one object.
    #[cfg(test)]
    pub(crate) fn is_shared_with(&self, other: &Bound) -> bool {
        Arc::ptr_eq(&self.key, &other.key)
    }
}

impl From<&[u8]> for Bound {
    fn from(key: &[u8]) -> Bound {
        Bound { head: wide_head(key), key: Arc::from(key) }
    }
}

impl Deref for Bound {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.key
    }
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.key == other.key
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Bound) -> Option<Ordering> {
        Some(self.order(other.head, other))
    }
}
