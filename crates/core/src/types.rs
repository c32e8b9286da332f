//! Small types of the public interface that every module shares.

/// Commit timestamp: a number that grows with each commit. 0 is before every commit.
pub type Timestamp = u64;
/// Identifies a tree for ever; never reused.
pub type TreeId = u64;
/// Identifies a transaction; never reused, also not after a restart.
pub type TxnId = u64;

/// Isolation levels, with their SQL meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot per statement.
    ReadCommitted,
    /// A snapshot per transaction; a write to a row committed after it is [`crate::Error::SnapshotConflict`].
    Repeatable,
    /// A snapshot per transaction, writes read the newest committed version instead of failing.
    RepeatableLenient,
    /// Every read locks; a write to a row committed after a snapshot that was taken all the same is a conflict.
    Serializable,
    /// Every read locks; nothing is a conflict.
    SerializableLenient,
}

impl Isolation {
    /// Whether every read locks.
    pub fn is_serializable(self) -> bool {
        matches!(self, Isolation::Serializable | Isolation::SerializableLenient)
    }

    /// First committer wins: whether a write to a row that was committed after the snapshot is a conflict.
    pub fn is_strict(self) -> bool {
        matches!(self, Isolation::Repeatable | Isolation::Serializable)
    }

    /// Whether a transaction keeps one snapshot and may write over what was committed after it.
    pub fn is_lenient(self) -> bool {
        matches!(self, Isolation::RepeatableLenient | Isolation::SerializableLenient)
    }
}

/// Which version of a key a read returns. A transaction always sees its own writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As of the transaction's snapshot (taken now if there is none).
    Snapshot,
    /// The newest committed version; what locking reads and unique checks use.
    Latest,
    /// As `Latest`, but a key whose newest version is another transaction's uncommitted put counts as present, with
    /// that value. Locking scans find their candidates with it (then lock, then `refresh` with `Latest`): otherwise a
    /// row inserted but not yet committed would be passed over instead of waited for.
    Pending,
}

/// Where a cursor is to be placed relative to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// First key >= the given one; then move with `next`.
    AtOrAfter,
    /// First key > the given one.
    After,
    /// Last key <= the given one; then move with `prev`.
    AtOrBefore,
    /// Last key < the given one.
    Before,
}

/// One change to one key. Insert and update store the same; the distinction keeps the row count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOp<'a> {
    /// The key is new to this transaction's view.
    Insert(&'a [u8]),
    /// The key exists.
    Update(&'a [u8]),
    /// The key exists and goes.
    Delete,
}

/// Strength of a row or range lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Compatible with other shared locks.
    Shared,
    /// Compatible with nothing.
    Exclusive,
}
