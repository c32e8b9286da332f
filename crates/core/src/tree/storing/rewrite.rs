//! Rows that say the same in other bytes, put in the place of what they were: rows of an older layout of their table.
//!
//! A walk over the leaves, one a call. The rows of a leaf's base are exchanged ([`super::exchange`]): no version is
//! made, nothing is logged and nobody waits, since who reads a row finds what it said before. What is undecided, and
//! what only old snapshots see, keeps its bytes. So does a leaf that changes each time that it is tried. After a crash
//! the log may bring back rows as they were. Whoever reads rows must go on to know the old bytes, therefore.

use super::exchange::{Exchanged, Other, MOST_TRIES};
use super::tree::Tree;
use crate::tree::block::Value;
use crate::Result;
use std::borrow::Cow;

/// Told each row, its key and its value: puts what the value is to be into the buffer; `false`: it stays. It must not
/// call into the engine.
pub type Rewriter<'a> = &'a mut dyn FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<bool>;

impl Tree {
    /// Exchanges the rows of the leaf that holds `key`. Where the walk goes on; `None`: that was the last leaf.
    pub(crate) fn rewrite_at(&self, key: &[u8], rewrite: Rewriter<'_>) -> Result<Option<Vec<u8>>> {
        let (leaf, _) = self.leaf_of(key)?;
        // One large value at a time is in memory.
        let came = self.exchange_base(&leaf, MOST_TRIES, |base| {
            base.with(|key, value, changed| {
                let value = match value {
                    Value::Inline(bytes) => Cow::Borrowed(bytes),
                    Value::Blob(blob) => Cow::Owned(blob.bytes()?.to_vec()),
                };
                Ok(match rewrite(key, &value, changed)? {
                    false => Other::Keep,
                    true if self.is_large(changed) => Other::Large(self.stored_value(changed)?),
                    true => Other::Bytes,
                })
            })
        })?;
        if leaf.view().dead {
            // Another leaf has its rows, and that one may be behind the walk already.
            return Ok(Some(key.to_vec()));
        }
        if came == Exchanged::Done {
            self.divide_grown(leaf.node(), &leaf)?;
        }
        Ok(leaf.view().next_key())
    }
}
