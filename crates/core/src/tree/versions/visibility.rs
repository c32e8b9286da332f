//! Which version of a key a reader sees.

use super::delta::{Delta, Version, VersionOp};
use super::history::History;
use crate::counts::Count;
use crate::mvcc::{Fate, State, TxnStatus};
use crate::tree::block::{Block, Value};
use crate::types::Timestamp;
use crate::Result;

/// Through whose eyes a tree is read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Commits up to this timestamp are visible; `Timestamp::MAX` for the latest.
    pub snapshot: Timestamp,
    /// The reader's own transaction, whose writes it sees.
    pub own: Option<&'a TxnStatus>,
    /// Other transactions' uncommitted puts count as present (see `View::Pending`).
    pub pending: bool,
    /// What may become of its snapshot; `None`: it stays.
    pub fate: Option<&'a Fate>,
}

impl Reader<'static> {
    /// Sees what was committed up to `snapshot`.
    pub fn at(snapshot: Timestamp) -> Reader<'static> {
        Reader { snapshot, own: None, pending: false, fate: None }
    }
}

impl<'a> Reader<'a> {
    /// Sees what is committed by now, whoever did it, and what `own` has written.
    pub(crate) fn latest(own: Option<&'a TxnStatus>) -> Reader<'a> {
        Reader { own, ..Reader::at(Timestamp::MAX) }
    }

    /// To be called when it has got hold of a leaf's view: whether everything it needs is there.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.fate.map_or(Ok(()), Fate::check)
    }
}

/// What the versions of one key say to one reader.
pub(crate) enum Seen<'a> {
    /// The key has this value.
    Value(Value<'a>),
    /// The key is gone.
    Gone,
    /// Nothing: ask the history and the base.
    Nothing,
}

/// Whether `reader` sees what the transaction has written; `puts`: it is no deletion.
#[inline]
pub(crate) fn is_shown(status: &TxnStatus, sequence: u32, puts: bool, reader: &Reader<'_>) -> bool {
    let shown = match status.state() {
        State::Committed(timestamp) => timestamp <= reader.snapshot,
        State::Active => reader.own.is_some_and(|own| std::ptr::eq(own, status)) || (reader.pending && puts),
        State::Aborted => false,
    };
    shown && !status.is_void(sequence)
}

/// Whether somebody else than `own` committed the write after `snapshot`.
pub(crate) fn is_committed_after(
    status: &TxnStatus,
    sequence: u32,
    snapshot: Timestamp,
    own: &TxnStatus,
) -> bool {
    let later = matches!(status.state(), State::Committed(timestamp) if timestamp > snapshot);
    later && !std::ptr::eq(own, status) && !status.is_void(sequence)
}

/// The operation of the version that `reader` sees, newest first.
#[inline]
pub(crate) fn visible<'a>(newest: Option<&'a Version>, reader: &Reader<'_>) -> Option<&'a Version> {
    let newest = newest?;
    if shows(newest, reader) {
        return Some(newest);
    }
    let (mut next, mut passed) = (newest.older(), 1);
    while let Some(version) = next.filter(|version| !shows(version, reader)) {
        next = version.older();
        passed += 1;
    }
    Count::OldVersions.add(passed);
    next
}

#[inline]
fn shows(version: &Version, reader: &Reader<'_>) -> bool {
    let puts = !matches!(version.op(), VersionOp::Delete);
    is_shown(&version.status, version.sequence, puts, reader)
}

pub(crate) fn seen(version: Option<&Version>) -> Seen<'_> {
    match version.map(|v| v.op()) {
        None => Seen::Nothing,
        Some(VersionOp::Put(bytes)) => Seen::Value(Value::Inline(bytes)),
        Some(VersionOp::Blob(blob)) => Seen::Value(Value::Blob(blob)),
        Some(VersionOp::Delete) => Seen::Gone,
    }
}

/// All of a leaf in memory.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    /// Newest commit that is in the base: snapshots at or after it need no history.
    pub horizon: Timestamp,
    pub base: &'a Block,
    pub delta: &'a Delta,
    pub history: Option<&'a History>,
}

impl<'a> Content<'a> {
    /// What `reader` sees of `key` in history and base, the delta having said nothing.
    pub(crate) fn below_delta(
        &self,
        base_at: Option<usize>,
        key: &[u8],
        reader: &Reader<'_>,
    ) -> Option<Value<'a>> {
        if reader.snapshot < self.horizon {
            let past =
                |history: &'a History| history.find(key, reader.snapshot).map(|at| history.entry(at).past);
            if let Some(past) = self.history.and_then(past) {
                return past;
            }
        }
        base_at.map(|at| self.base.value(at))
    }
}

/// Whether somebody else committed a change of `key` after `snapshot`. `snapshot` must not have given way when the view
/// was got hold of: what it could see and what replaced it are then still in delta or history.
pub(crate) fn changed_since(
    horizon: Timestamp,
    delta: &Delta,
    history: Option<&History>,
    key: &[u8],
    snapshot: Timestamp,
    own: &TxnStatus,
) -> bool {
    let mut next = delta.find(key).and_then(|entry| entry.newest());
    while let Some(version) = next {
        if is_committed_after(&version.status, version.sequence, snapshot, own) {
            return true;
        }
        next = version.older();
    }
    snapshot < horizon && history.is_some_and(|history| history.find(key, snapshot).is_some())
}
