//! What a log record says, as bytes; and [`RedoBuffer`], in which a transaction collects its operations.
//!
//! ```text
//! record   kind u8 | txn varint | (Prepare: xid length varint, xid) | (RollbackTo: sequence varint) | ops to the end
//!          (Counter: table varint | value varint | how u8, nothing else)
//!          (Checkpoint: its number in place of the transaction, nothing else)
//!          (CopyEnd: start varint | (if it is prepared: xid), nothing else)
//! op       kind u8 | tree varint | sequence varint (minus that of the op before, mod 2^32) | key length varint | key
//!          | (all but Delete: value length varint | value)
//!          (Block: no key; the value is the number of rows, u32 little-endian, and what says where they are)
//!          (InsertStored, UpdateStored: the value is the same, of the one value)
//! ```
//!
//! The frame around a record carries its length and checksum, so a decoder that fails has met a bug or a newer format
//! and not a torn write; it nevertheless checks every bound. Decoding checks all ops once, iterating them cannot fail
//! afterwards.

#[cfg(test)]
mod tests;

use super::{packed, varint, Lsn};
use crate::{Error, Result, TreeId, TxnId, WriteOp};

/// Longest key that an op may have, in bytes.
pub const MAX_KEY_BYTES: u64 = 64 << 10;
/// Memory that a [`RedoBuffer`] keeps when it is emptied, in bytes.
const KEPT_BYTES: usize = 2 << 20;
/// Memory that a [`RedoBuffer`] keeps from one transaction to the next, in bytes.
const KEPT_BETWEEN: usize = 4 << 10;
/// A [`RedoBuffer`] of so many bytes keeps them, however few of them a rollback to a savepoint leaves in use.
const SMALL_BYTES: usize = 16 << 10;

/// Longest value that an op may have, in bytes: a record with one op of the longest key and value still fits a frame.
pub const MAX_VALUE_BYTES: u64 = u32::MAX as u64 - (1 << 20);

/// What an [`Op`] does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    /// The key is new.
    Insert = 1,
    /// The key exists and gets another value.
    Update = 2,
    /// The key goes.
    Delete = 3,
    /// Many keys are new. They are not here but in the table's file; the value names the place (see
    /// `checkpoint::direct`).
    Block = 4,
    /// As `Insert`, with a large value that is not here but in the table's file; what is here names the place.
    InsertStored = 5,
    /// As `Update`, with such a value.
    UpdateStored = 6,
}

impl OpKind {
    /// Whether what it writes is in the table's file and not in the log.
    pub fn names_extent(self) -> bool {
        matches!(self, OpKind::Block | OpKind::InsertStored | OpKind::UpdateStored)
    }

    /// The write that it is, with this value; a block's rows are one insert each.
    pub fn write(self, value: &[u8]) -> WriteOp<'_> {
        match self {
            OpKind::Insert | OpKind::Block | OpKind::InsertStored => WriteOp::Insert(value),
            OpKind::Update | OpKind::UpdateStored => WriteOp::Update(value),
            OpKind::Delete => WriteOp::Delete,
        }
    }
}

/// One change to one key of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op<'a> {
    /// What happens.
    pub kind: OpKind,
    /// To which tree.
    pub tree: TreeId,
    /// Position of the op in its transaction; savepoints refer to it.
    pub sequence: u32,
    /// The key.
    pub key: &'a [u8],
    /// The value; empty for a delete.
    pub value: &'a [u8],
}

impl<'a> Op<'a> {
    /// What it adds to the number of its tree's rows.
    pub fn rows_added(&self) -> i64 {
        match self.kind {
            OpKind::Insert | OpKind::InsertStored => 1,
            OpKind::Update | OpKind::UpdateStored => 0,
            OpKind::Delete => -1,
            OpKind::Block => self.value.first_chunk().map_or(0, |rows| i64::from(u32::from_le_bytes(*rows))),
        }
    }

    /// Takes one op from the front of `input`; `previous` is the sequence of the op before it, 0 for the first.
    fn take(input: &mut &'a [u8], previous: u32) -> Option<Op<'a>> {
        let (&kind, rest) = input.split_first()?;
        *input = rest;
        let kind = match kind {
            1 => OpKind::Insert,
            2 => OpKind::Update,
            3 => OpKind::Delete,
            4 => OpKind::Block,
            5 => OpKind::InsertStored,
            6 => OpKind::UpdateStored,
            _ => return None,
        };
        let tree = varint::take(input)?;
        let step = u32::try_from(varint::take(input)?).ok()?;
        let key = varint::take_bytes(input)?;
        if key.len() as u64 > MAX_KEY_BYTES {
            return None;
        }
        let value = if kind == OpKind::Delete { &[] } else { varint::take_bytes(input)? };
        if kind == OpKind::Block && value.len() < 4 {
            return None;
        }
        Some(Op { kind, tree, sequence: previous.wrapping_add(step), key, value })
    }
}

/// Encoded ops that were checked when they were decoded or built.
#[derive(Debug, Clone, Copy)]
pub struct Ops<'a> {
    bytes: &'a [u8],
    least_tree: TreeId,
    names_extents: bool,
}

impl PartialEq for Ops<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Ops<'_> {}

impl<'a> Ops<'a> {
    /// No ops.
    pub const NONE: Ops<'static> = Ops { bytes: &[], least_tree: TreeId::MAX, names_extents: false };

    fn checked(bytes: &'a [u8]) -> Result<Ops<'a>, &'static str> {
        let (mut input, mut previous, mut least_tree, mut names_extents) = (bytes, 0, TreeId::MAX, false);
        while !input.is_empty() {
            let op = Op::take(&mut input, previous).ok_or("malformed operation")?;
            previous = op.sequence;
            least_tree = least_tree.min(op.tree);
            names_extents |= op.kind.names_extent();
        }
        Ok(Ops { bytes, least_tree, names_extents })
    }

    /// No operation is on a tree with a smaller number.
    pub fn least_tree(&self) -> TreeId {
        self.least_tree
    }

    /// Whether any of them may have what it writes in the table's file.
    pub fn may_name_extents(&self) -> bool {
        self.names_extents
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Size of the encoding in bytes.
    pub fn encoded_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The ops in the order in which they were done.
    pub fn iter(&self) -> OpIter<'a> {
        OpIter { input: self.bytes, previous: 0 }
    }
}

impl<'a> IntoIterator for Ops<'a> {
    type Item = Op<'a>;
    type IntoIter = OpIter<'a>;

    fn into_iter(self) -> OpIter<'a> {
        self.iter()
    }
}

/// Iterator over [`Ops`].
#[derive(Debug, Clone)]
pub struct OpIter<'a> {
    input: &'a [u8],
    previous: u32,
}

impl<'a> Iterator for OpIter<'a> {
    type Item = Op<'a>;

    fn next(&mut self) -> Option<Op<'a>> {
        let op = Op::take(&mut self.input, self.previous)?;
        self.previous = op.sequence;
        Some(op)
    }
}

/// What a buffer takes at first, in bytes: all that a small transaction needs, and nothing beside its other memory.
const FIRST_BYTES: usize = 512;

/// The operations of a transaction that are not in the log yet, in encoded form.
///
/// When it has grown large its owner appends it to the log as [`LogRecord::Ops`] and calls [`RedoBuffer::clear`].
#[derive(Debug, Default)]
pub struct RedoBuffer {
    bytes: Vec<u8>,
    /// Sequence of the last op in `bytes`, 0 if there is none.
    last_sequence: u32,
    /// How often the content went to the log; marks from before are void.
    generation: u32,
}

/// A position in a [`RedoBuffer`], for savepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoMark {
    bytes: usize,
    last_sequence: u32,
    generation: u32,
}

impl RedoBuffer {
    /// An empty buffer; allocates nothing.
    pub fn new() -> RedoBuffer {
        RedoBuffer::default()
    }

    /// Adds an op; [`Error::TooLarge`] if key or value exceed what a record can hold, and then nothing was added.
    pub fn push(&mut self, tree: TreeId, sequence: u32, key: &[u8], op: WriteOp<'_>) -> Result<()> {
        let (kind, value) = match op {
            WriteOp::Insert(value) => (OpKind::Insert, value),
            WriteOp::Update(value) => (OpKind::Update, value),
            WriteOp::Delete => (OpKind::Delete, &[][..]),
        };
        let limits =
            [("key", key.len() as u64, MAX_KEY_BYTES), ("value", value.len() as u64, MAX_VALUE_BYTES)];
        for (what, bytes, maximum) in limits {
            if bytes > maximum {
                return Err(Error::TooLarge { what, bytes, maximum });
            }
        }
        self.put(&Op { kind, tree, sequence, key, value });
        Ok(())
    }

    /// Adds an op that was in a buffer before, or is known to be within the limits.
    pub fn put(&mut self, op: &Op<'_>) {
        let Op { kind, tree, sequence, key, value } = *op;
        let bytes = 32 + key.len() + value.len();
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(bytes.max(FIRST_BYTES));
        }
        self.bytes.reserve(bytes);
        self.bytes.push(kind as u8);
        varint::put(&mut self.bytes, tree);
        varint::put(&mut self.bytes, u64::from(sequence.wrapping_sub(self.last_sequence)));
        varint::put(&mut self.bytes, key.len() as u64);
        self.bytes.extend_from_slice(key);
        if kind != OpKind::Delete {
            varint::put(&mut self.bytes, value.len() as u64);
            self.bytes.extend_from_slice(value);
        }
        self.last_sequence = sequence;
    }

    /// Size of the encoded ops in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that it has.
    #[inline]
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether there are no ops.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The ops, to be put into a record or iterated.
    pub fn ops(&self) -> Ops<'_> {
        // They are not looked through again: any tree may be among them.
        Ops { bytes: &self.bytes, least_tree: 0, names_extents: true }
    }

    /// The ops in the order in which they were pushed.
    pub fn iter(&self) -> OpIter<'_> {
        self.ops().iter()
    }

    /// The current position.
    pub fn mark(&self) -> RedoMark {
        RedoMark { bytes: self.bytes.len(), last_sequence: self.last_sequence, generation: self.generation }
    }

    /// Drops the ops pushed since `mark`. Returns `false` if ops since then went to the log already: then the buffer is
    /// empty and a [`LogRecord::RollbackTo`] is due.
    #[must_use]
    pub fn truncate_to(&mut self, mark: RedoMark) -> bool {
        if mark.generation != self.generation {
            self.bytes.clear();
            self.last_sequence = 0;
            return false;
        }
        self.bytes.truncate(mark.bytes);
        self.last_sequence = mark.last_sequence;
        if self.bytes.capacity() > SMALL_BYTES && self.bytes.len() < self.bytes.capacity() / 4 {
            // Its transaction may be idle for long.
            self.bytes.shrink_to(2 * self.bytes.len());
        }
        true
    }

    /// Empties the buffer for another transaction. Memory that a small one needs stays.
    pub fn start_anew(&mut self) {
        match self.bytes.capacity() > KEPT_BETWEEN {
            true => self.bytes = Vec::new(),
            false => self.bytes.clear(),
        }
        (self.last_sequence, self.generation) = (0, 0);
    }

    /// Empties the buffer after its content went to the log; marks taken before are void. The memory stays, for what
    /// follows is likely to be as much, unless it is far more than a transaction gathers as a rule.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.last_sequence = 0;
        self.generation = self.generation.wrapping_add(1);
    }
}

/// One record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRecord<'a> {
    /// Operations of a transaction that has not ended yet, written early.
    Ops {
        /// The transaction.
        txn: TxnId,
        /// Some of its operations.
        ops: Ops<'a>,
    },
    /// The transaction committed. Records are committed in log order.
    Commit {
        /// The transaction.
        txn: TxnId,
        /// Those of its operations that are in no earlier record.
        ops: Ops<'a>,
    },
    /// The transaction is prepared: it neither commits nor rolls back without a later record.
    Prepare {
        /// The transaction.
        txn: TxnId,
        /// Its global identifier.
        xid: &'a [u8],
        /// Those of its operations that are in no earlier record.
        ops: Ops<'a>,
    },
    /// The transaction rolled back; all its operations are void.
    Rollback {
        /// The transaction.
        txn: TxnId,
    },
    /// The operations of the transaction with a sequence greater than `sequence`, in earlier records, are void.
    RollbackTo {
        /// The transaction.
        txn: TxnId,
        /// The last sequence that stays.
        sequence: u32,
    },
    /// A table's counter, whatever becomes of the transaction.
    Counter {
        /// The transaction on whose behalf it was raised.
        txn: TxnId,
        /// The table's first tree.
        table: TreeId,
        /// The next value to give out.
        value: u64,
        /// What `value` does to the one before.
        change: CounterChange,
    },
    /// The checkpoint of this number is durable. What comes later in the log may rely on what only its image has, and
    /// what it replaced may be overwritten: whoever meets it must not have started from an older image.
    Checkpoint {
        /// Its number.
        number: u64,
    },
    /// Operations of an undecided transaction once more, from records before, so that these need not be kept. It counts
    /// for nothing unless [`LogRecord::CopyEnd`] says so.
    Copy {
        /// The transaction.
        txn: TxnId,
        /// Some of its operations.
        ops: Ops<'a>,
    },
    /// The copy of an undecided transaction is complete: of all its operations in records before, those count that are
    /// in [`LogRecord::Copy`] records from `start` on, and no others.
    CopyEnd {
        /// The transaction.
        txn: TxnId,
        /// Where the copy begins.
        start: Lsn,
        /// Its global identifier, if it is prepared.
        xid: Option<&'a [u8]>,
    },
}

/// How a [`LogRecord::Counter`] acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CounterChange {
    /// The greater of both stays: transactions log their values in any order.
    Raise = 1,
    /// The value replaces the one before, also downwards.
    Set = 2,
}

impl<'a> LogRecord<'a> {
    /// The transaction that the record belongs to; 0, which none has, if it belongs to none.
    pub fn txn(&self) -> TxnId {
        match *self {
            LogRecord::Checkpoint { .. } => 0,
            LogRecord::Ops { txn, .. }
            | LogRecord::Commit { txn, .. }
            | LogRecord::Prepare { txn, .. }
            | LogRecord::Rollback { txn }
            | LogRecord::RollbackTo { txn, .. }
            | LogRecord::Counter { txn, .. }
            | LogRecord::Copy { txn, .. }
            | LogRecord::CopyEnd { txn, .. } => txn,
        }
    }

    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, ops, extra) = match *self {
            LogRecord::Ops { ops, .. } => (1, ops, 0),
            LogRecord::Commit { ops, .. } => (2, ops, 0),
            LogRecord::Prepare { ops, xid, .. } => (3, ops, xid.len()),
            LogRecord::Rollback { .. } => (4, Ops::NONE, 0),
            LogRecord::RollbackTo { .. } => (5, Ops::NONE, 0),
            LogRecord::Counter { .. } => (6, Ops::NONE, 0),
            // 7 is a packed record.
            LogRecord::Checkpoint { .. } => (8, Ops::NONE, 0),
            LogRecord::Copy { ops, .. } => (9, ops, 0),
            LogRecord::CopyEnd { xid, .. } => (10, Ops::NONE, 16 + xid.map_or(0, <[u8]>::len)),
        };
        let mut out = packed::room_for_record(24 + extra + ops.bytes.len());
        out.push(kind);
        let first = if let LogRecord::Checkpoint { number } = *self { number } else { self.txn() };
        varint::put(&mut out, first);
        match *self {
            LogRecord::Prepare { xid, .. } => {
                varint::put(&mut out, xid.len() as u64);
                out.extend_from_slice(xid);
            }
            LogRecord::RollbackTo { sequence, .. } => varint::put(&mut out, u64::from(sequence)),
            LogRecord::Counter { table, value, change, .. } => {
                varint::put(&mut out, table);
                varint::put(&mut out, value);
                out.push(change as u8);
            }
            LogRecord::CopyEnd { start, xid, .. } => {
                varint::put(&mut out, start);
                if let Some(xid) = xid {
                    varint::put(&mut out, xid.len() as u64);
                    out.extend_from_slice(xid);
                }
            }
            _ => {}
        }
        out.extend_from_slice(ops.bytes);
        packed::pack(out)
    }

    /// Reads what [`LogRecord::encode`] wrote, after [`packed::unpack`]; the error says what is wrong.
    pub fn decode(bytes: &'a [u8]) -> Result<LogRecord<'a>, &'static str> {
        let (&kind, mut input) = bytes.split_first().ok_or("empty record")?;
        let txn = varint::take(&mut input).ok_or("malformed transaction id")?;
        let record = match kind {
            1 => LogRecord::Ops { txn, ops: Ops::checked(input)? },
            2 => LogRecord::Commit { txn, ops: Ops::checked(input)? },
            3 => {
                let xid = varint::take_bytes(&mut input).ok_or("malformed transaction identifier")?;
                LogRecord::Prepare { txn, xid, ops: Ops::checked(input)? }
            }
            4 | 5 => {
                let record = if kind == 4 {
                    LogRecord::Rollback { txn }
                } else {
                    let sequence = varint::take(&mut input).and_then(|s| u32::try_from(s).ok());
                    LogRecord::RollbackTo { txn, sequence: sequence.ok_or("malformed sequence")? }
                };
                if !input.is_empty() {
                    return Err("bytes after the end of a record");
                }
                record
            }
            6 => {
                let table = varint::take(&mut input).ok_or("malformed tree id")?;
                let value = varint::take(&mut input).ok_or("malformed counter")?;
                let change = match input {
                    [1] => CounterChange::Raise,
                    [2] => CounterChange::Set,
                    _ => return Err("malformed counter"),
                };
                LogRecord::Counter { txn, table, value, change }
            }
            8 if input.is_empty() => LogRecord::Checkpoint { number: txn },
            9 => LogRecord::Copy { txn, ops: Ops::checked(input)? },
            10 => {
                let start = varint::take(&mut input).ok_or("malformed position")?;
                let xid = match input.is_empty() {
                    true => None,
                    false => Some(varint::take_bytes(&mut input).ok_or("malformed transaction identifier")?),
                };
                if !input.is_empty() {
                    return Err("bytes after the end of a record");
                }
                LogRecord::CopyEnd { txn, start, xid }
            }
            _ => return Err("unknown kind of record"),
        };
        Ok(record)
    }
}
