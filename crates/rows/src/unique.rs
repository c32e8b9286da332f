//! Uniqueness: claiming a key that nobody else may have.
//!
//! Whoever puts a key into a unique tree, or takes it out, holds its exclusive lock to the end of the transaction. So
//! under a lock of the key the newest committed version decides.

use std::sync::Arc;

use teak_core::{Error, LockMode, WaitPolicy};

use crate::outcome::{Result, Stop};
use crate::session::Session;
use teak_core::server::{LockOutcome, Tree};

/// The primary key in the value of a unique index's entry: two bytes of length, little-endian, then the key.
pub fn primary_key(value: &[u8]) -> Option<&[u8]> {
    let (length, rest) = value.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

impl Session {
    /// Locks `key` exclusively and makes sure that it is free. If it is taken it stays locked with `duplicate`
    /// strength, or as strongly as it was before: shared is enough to make the error true to the end of the
    /// transaction. Of one that is free: what has become of its lock.
    pub(crate) fn claim(&mut self, tree: &Arc<Tree>, key: &[u8], duplicate: LockMode) -> Result<LockOutcome> {
        let mut waited_for_ranges = false;
        // What a wait for the exclusive lock has done.
        let mut waited = None;
        loop {
            // Most claims succeed, and most locks are free: the exclusive lock first, without waiting.
            let locked = match waited.take() {
                Some(outcome) => Ok(outcome),
                None => self.lock(tree, key, LockMode::Exclusive, WaitPolicy::NoWait),
            };
            match locked {
                Ok(outcome) => {
                    if !self.probe(tree, key)? {
                        if waited_for_ranges || self.may_insert(tree, key)? {
                            return Ok(outcome);
                        }
                        // Without the key's lock: the one with the range may want the key.
                        self.give_back(tree, key, outcome);
                        self.check_insert(tree, key)?;
                        waited_for_ranges = true;
                        continue;
                    }
                    if outcome == LockOutcome::Held || duplicate == LockMode::Exclusive {
                        return Err(Stop::Duplicate);
                    }
                    // A lock that was shared before is so again: others have passed it and are to pass it on.
                    self.give_back(tree, key, outcome);
                }
                Err(Stop::Core(Error::WouldBlock)) => {
                    if duplicate == LockMode::Exclusive || !self.probe(tree, key)? {
                        waited = Some(self.lock(tree, key, LockMode::Exclusive, WaitPolicy::Wait)?);
                        continue;
                    }
                }
                Err(error) => return Err(error),
            }
            self.lock(tree, key, LockMode::Shared, WaitPolicy::Wait)?;
            if self.probe(tree, key)? {
                return Err(Stop::Duplicate);
            }
            // It went while nobody had it locked: the next round takes it.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::primary_key;

    #[test]
    fn the_primary_key_is_found_in_a_value() {
        assert_eq!(primary_key(b"\x02\x00abrest"), Some(&b"ab"[..]));
        assert_eq!(primary_key(b"\x05\x00ab"), None);
        assert_eq!(primary_key(b"\x05"), None);
    }
}
