//! What a simulated file holds: bytes, which of its blocks take space, and the changes that no sync has made durable.

use std::collections::BTreeSet;

/// Writes are torn at multiples of this, in bytes.
const SECTOR_BYTES: usize = 512;
/// Space is given out in blocks of so many bytes.
const BLOCK_BYTES: u64 = 4096;

/// Bytes of a file; what lies in a block that takes no space is zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes {
    bytes: Vec<u8>,
    /// Numbers of the blocks that take space.
    allocated: BTreeSet<u64>,
}

impl Bytes {
    /// As readers see them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that its blocks take.
    pub fn allocated_bytes(&self) -> u64 {
        let end = self.bytes.len() as u64;
        debug_assert!(
            self.allocated.last().is_none_or(|block| block * BLOCK_BYTES < end),
            "a block behind the end takes space"
        );
        self.allocated.len() as u64 * BLOCK_BYTES
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (begin, end) = (offset as usize, offset as usize + bytes.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[begin..end].copy_from_slice(bytes);
        self.allocated.extend(offset / BLOCK_BYTES..(end as u64).div_ceil(BLOCK_BYTES));
    }

    fn set_len(&mut self, bytes: u64) {
        self.bytes.resize(bytes as usize, 0);
        self.allocated.retain(|block| block * BLOCK_BYTES < bytes);
    }

    fn punch(&mut self, offset: u64, bytes: u64) {
        let length = self.bytes.len() as u64;
        let end = offset.saturating_add(bytes);
        self.bytes[offset.min(length) as usize..end.min(length) as usize].fill(0);
        self.allocated.retain(|block| block * BLOCK_BYTES < offset || (block + 1) * BLOCK_BYTES > end);
    }
}

/// A change of the content.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// These bytes, from this offset on.
    Write(u64, Vec<u8>),
    /// The file has this length.
    Length(u64),
    /// From this offset on so many bytes are zeros, and take no space.
    Hole(u64, u64),
}

impl Change {
    /// Makes the change.
    pub fn apply(&self, content: &mut Bytes) {
        match self {
            Change::Write(offset, bytes) => content.write(*offset, bytes),
            Change::Length(bytes) => content.set_len(*bytes),
            Change::Hole(offset, bytes) => content.punch(*offset, *bytes),
        }
    }

    /// The parts that survive or not each for itself.
    pub fn sectors(self) -> Vec<Change> {
        let (mut offset, mut rest) = match &self {
            Change::Write(offset, bytes) => (*offset, bytes.len()),
            Change::Hole(offset, bytes) => (*offset, *bytes as usize),
            Change::Length(_) => return vec![self],
        };
        let mut parts = Vec::new();
        let mut done = 0;
        while rest > 0 {
            let part = (SECTOR_BYTES - offset as usize % SECTOR_BYTES).min(rest);
            parts.push(match &self {
                Change::Write(_, bytes) => Change::Write(offset, bytes[done..done + part].to_vec()),
                _ => Change::Hole(offset, part as u64),
            });
            offset += part as u64;
            done += part;
            rest -= part;
        }
        parts
    }
}

/// Content of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// What a power loss leaves in any case.
    pub durable: Bytes,
    /// What readers see.
    pub current: Bytes,
    /// What a power loss may undo, in the order in which it was done.
    pub unsynced: Vec<Change>,
}

impl Content {
    /// After a power loss.
    pub fn survived(durable: Bytes) -> Content {
        Content { current: durable.clone(), durable, unsynced: Vec::new() }
    }

    /// Makes a change that is not durable yet.
    pub fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }
}
