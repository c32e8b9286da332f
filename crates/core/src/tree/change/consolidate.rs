//! Folding committed changes into a new base, in memory.
//!
//! [`fold`] is pure: from a view and the set of active snapshots it computes the pieces that replace the view: one, or
//! more when the leaf has grown past its block size. What is committed goes to the base, what an active snapshot still
//! sees of the past goes to history, what is undecided stays in a new delta, and the rest is garbage (interval
//! collection).

use crate::mvcc::{ActiveSnapshots, State};
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{shared_bytes, Block, Value};
use crate::tree::versions::delta::{Delta, EntryRef, Version, VersionOp};
use crate::tree::versions::history::{self, History, HistoryEntry};
use crate::tree::versions::past::shares_of;
use crate::tree::versions::visibility::{seen, Content, Seen};
use crate::types::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

/// What replaces a leaf, or a part of it.
pub(crate) struct Piece {
    /// First key it is responsible for; empty for the first piece (which keeps the leaf's own bound).
    pub low: Vec<u8>,
    /// `None`: as it is.
    pub base: Option<Block>,
    pub delta: Delta,
    pub history: Option<Arc<History>>,
}

pub(crate) struct Folded {
    pub pieces: Vec<Piece>,
    pub horizon: Timestamp,
    /// All pieces but the last are full, because appends have filled the leaf or because it is packed.
    pub full: bool,
}

/// How many pieces [`fold`] may make.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pieces {
    One,
    /// Pieces of equal weight, if it passes the block size; full ones, if appends have filled the leaf.
    Many,
    /// Full ones, but for the last.
    Full,
}

/// Versions of a key that are undecided: a part of [`Folder::undecided`].
type Undecided = std::ops::Range<usize>;

/// One stretch of the merged leaf, in key order.
enum Run<'a> {
    /// Base entries that no change touches.
    Base(std::ops::Range<usize>),
    /// A key of the delta.
    Changed { key: &'a [u8], value: Option<Value<'a>>, undecided: Undecided },
}

impl<'a> Run<'a> {
    /// The key, if the new base does not have it.
    fn gone(&self) -> Option<&'a [u8]> {
        match self {
            Run::Changed { key, value: None, .. } => Some(key),
            _ => None,
        }
    }
}

/// About what an entry of a block takes besides its key and its value.
const ENTRY_BYTES: usize = 12;

/// What a changed key will take in a base, whichever way its undecided versions go. Not what they take in the delta:
/// several versions of one key cannot be told apart by a cut, and a transaction that updates all rows must not leave
/// behind leaves that are half empty.
fn weight(key: &[u8], value: Option<Value<'_>>, undecided: &[&Version]) -> usize {
    let newest = undecided.first().map(|version| op_bytes(version.op()));
    match value.map(value_bytes).max(newest) {
        Some(bytes) => key.len() + ENTRY_BYTES + bytes,
        None => 0,
    }
}

struct Folder<'a> {
    content: Content<'a>,
    base: &'a Block,
    active: &'a ActiveSnapshots,
    horizon: Timestamp,
    history: Vec<HistoryEntry<'a>>,
    runs: Vec<Run<'a>>,
    /// Of each chain newest first, one chain after the other.
    undecided: Vec<&'a Version>,
    /// Of the present chain, newest first.
    chain: Vec<(Timestamp, &'a Version)>,
    /// Something changes the base.
    committed: bool,
}

impl<'a> Folder<'a> {
    fn remember(&mut self, key: &'a [u8], begin: Timestamp, end: Timestamp, past: Option<Value<'a>>) {
        if self.active.needs(begin, end) {
            self.history.push(HistoryEntry { key, begin, end, past });
        }
    }

    /// Takes a chain apart: what is committed to `chain`, what is not to `undecided`, of which it returns the part.
    fn split_chain(&mut self, entry: EntryRef<'a>) -> Undecided {
        let first = self.undecided.len();
        self.chain.clear();
        for version in std::iter::successors(entry.newest(), |version| version.older()) {
            if version.status.is_void(version.sequence) {
                continue;
            }
            match version.status.state() {
                State::Active => self.undecided.push(version),
                State::Aborted => {}
                State::Committed(timestamp) => {
                    // Of several writes of one transaction only the newest counts.
                    if self.chain.last().is_none_or(|&(newer, _)| newer != timestamp) {
                        self.chain.push((timestamp, version));
                    }
                }
            }
        }
        first..self.undecided.len()
    }

    fn change(&mut self, entry: EntryRef<'a>, base_at: Option<usize>) {
        let key = entry.key();
        let undecided = self.split_chain(entry);
        let in_base = base_at.map(|at| self.base.value(at));
        let (Some(&(newest, version)), Some(&(oldest, _))) = (self.chain.first(), self.chain.last()) else {
            self.runs.push(Run::Changed { key, value: in_base, undecided });
            return;
        };
        self.committed = true;
        self.horizon = self.horizon.max(newest);
        for later in 1..self.chain.len() {
            let ((end, _), (begin, past)) = (self.chain[later - 1], self.chain[later]);
            self.remember(key, begin, end, value_of(past));
        }
        let since = self.content.history.map_or(0, |history| history.current_since(key));
        self.remember(key, since, oldest, in_base);
        self.runs.push(Run::Changed { key, value: value_of(version), undecided });
    }

    fn merge(&mut self, delta: &'a Delta) {
        let mut at = 0;
        for entry in delta.iter() {
            let (found, to) = match self.base.search_from(at, entry.key()) {
                Ok(index) => (Some(index), index),
                Err(index) => (None, index),
            };
            if at < to {
                self.runs.push(Run::Base(at..to));
            }
            self.change(entry, found);
            at = to + usize::from(found.is_some());
        }
        if at < self.base.len() {
            self.runs.push(Run::Base(at..self.base.len()));
        }
    }
}

fn value_of(version: &Version) -> Option<Value<'_>> {
    match seen(Some(version)) {
        Seen::Value(value) => Some(value),
        _ => None,
    }
}

fn value_bytes(value: Value<'_>) -> usize {
    match value {
        Value::Inline(bytes) => bytes.len(),
        Value::Blob(_) => 40,
    }
}

/// Where a piece begins, its base and its delta.
type Cut = (Vec<u8>, Option<Block>, Delta);

/// Cuts the merged runs into pieces.
struct Cutter<'a> {
    base: &'a Block,
    undecided: &'a [&'a Version],
    limit: usize,
    builder: BlockBuilder,
    delta: Delta,
    /// What undecided versions may add to the base.
    kept_bytes: usize,
    low: Vec<u8>,
    last_key: Vec<u8>,
    pieces: Vec<Cut>,
}

impl<'a> Cutter<'a> {
    fn cut_before(&mut self, key: &[u8]) {
        if self.builder.estimated_bytes() + self.kept_bytes < self.limit {
            return;
        }
        let separator = shortest_separator(&self.last_key, key);
        let low = std::mem::replace(&mut self.low, separator);
        let delta = std::mem::take(&mut self.delta);
        self.kept_bytes = 0;
        self.pieces.push((low, Some(self.builder.finish()), delta));
    }

    fn add(&mut self, run: &Run<'a>) {
        match run {
            Run::Base(range) => self.add_base(range.clone()),
            Run::Changed { key, value, undecided } => {
                let undecided = &self.undecided[undecided.clone()];
                if value.is_none() && undecided.is_empty() {
                    return;
                }
                self.cut_before(key);
                self.kept_bytes += weight(key, *value, undecided);
                if let Some(value) = value {
                    self.builder.push(key, *value);
                    self.kept_bytes -= weight(key, Some(*value), &[]);
                }
                self.keep_undecided(key, undecided);
                self.last_key.clear();
                self.last_key.extend_from_slice(key);
            }
        }
    }

    fn keep_undecided(&mut self, key: &[u8], undecided: &[&Version]) {
        for version in undecided.iter().rev() {
            self.delta.add(key, version.status.clone(), version.sequence, version.op());
        }
    }

    fn add_base(&mut self, range: std::ops::Range<usize>) {
        let mut at = range.start;
        let mut key = Vec::new();
        while at < range.end {
            if !(self.builder.is_empty() && self.delta.is_empty()) {
                self.base.key_into(at, &mut key);
                self.cut_before(&key);
            }
            let room = self.limit.saturating_sub(self.builder.estimated_bytes() + self.kept_bytes);
            let average = (self.base.bytes().len() / self.base.len().max(1)).max(1);
            let to = if self.limit == usize::MAX {
                range.end
            } else {
                range.end.min(at + (room / average).max(1))
            };
            self.builder.push_range(self.base, at..to);
            self.base.key_into(to - 1, &mut self.last_key);
            at = to;
        }
    }

    fn finish(mut self) -> Vec<Cut> {
        let last = self.builder.finish();
        self.pieces.push((self.low, Some(last), self.delta));
        self.builder.give_back();
        self.pieces
    }
}

fn op_bytes(op: VersionOp<'_>) -> usize {
    match op {
        VersionOp::Put(bytes) => bytes.len(),
        VersionOp::Blob(_) => 16,
        VersionOp::Delete => 0,
    }
}

/// The shortest key that is greater than `left` and not greater than `right`.
pub(in crate::tree) fn shortest_separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let shared = shared_bytes(left, right);
    right[..(shared + 1).min(right.len())].to_vec()
}

/// Folds what is committed of a leaf into new pieces.
pub(crate) fn fold(
    content: &Content<'_>,
    active: &ActiveSnapshots,
    block_bytes: usize,
    pieces: Pieces,
) -> Folded {
    let Content { horizon, base, delta, history } = *content;
    let history = history.map_or_else(Vec::new, |history| history.needed(active).collect());
    let mut folder = Folder {
        content: *content,
        base,
        active,
        horizon,
        history,
        runs: Vec::with_capacity(2 * delta.len() + 1),
        undecided: Vec::new(),
        chain: Vec::new(),
        committed: false,
    };
    folder.merge(delta);
    let (limit, full) = match pieces {
        Pieces::One => (usize::MAX, false),
        Pieces::Many | Pieces::Full => cut_limit(&folder, block_bytes, pieces),
    };
    let mut cutter = Cutter {
        base,
        undecided: &folder.undecided,
        limit,
        builder: BlockBuilder::reused(),
        delta: Delta::new(),
        kept_bytes: 0,
        low: Vec::new(),
        last_key: Vec::new(),
        pieces: Vec::new(),
    };
    // A base that nobody has changed need not be written again.
    let keeps_base = !folder.committed && limit == usize::MAX;
    for run in &folder.runs {
        match run {
            Run::Changed { key, undecided, .. } if keeps_base => {
                cutter.keep_undecided(key, &folder.undecided[undecided.clone()]);
            }
            _ if keeps_base => {}
            _ => cutter.add(run),
        }
    }
    let mut cut = cutter.finish();
    if keeps_base {
        cut.iter_mut().for_each(|piece| piece.1 = None);
    }
    let (horizon, mut history) = (folder.horizon, folder.history);
    if !history.is_empty() {
        // A key that the base does not have and that had no value for any snapshot needs no history to say so.
        let mut gone: HashSet<&[u8]> = folder.runs.iter().filter_map(Run::gone).collect();
        history.iter().filter(|e| e.past.is_some()).for_each(|e| {
            gone.remove(e.key);
        });
        history.retain(|entry| !gone.contains(entry.key));
        history::sort(&mut history);
    }
    Folded { pieces: with_history(cut, &history, active), horizon, full }
}

/// At what weight to begin a new piece: an append-only leaf is cut when full, so that a full base is never rewritten;
/// otherwise the pieces are of equal weight, unless they are to be full. And whether they are.
fn cut_limit(folder: &Folder<'_>, block_bytes: usize, pieces: Pieces) -> (usize, bool) {
    let (runs, base) = (&folder.runs[..], folder.base);
    let mut total = 0;
    for run in runs {
        total += match run {
            Run::Base(range) => base.bytes().len() * range.len() / base.len().max(1),
            Run::Changed { key, value, undecided } => {
                weight(key, *value, &folder.undecided[undecided.clone()])
            }
        };
    }
    // A full leaf ends with the entry that filled it, so it may be larger by that one; to update it must not split it.
    if total <= block_bytes + block_bytes / 8 {
        return (usize::MAX, false);
    }
    // All the base as it was, then new keys only; updates that made a leaf grow are no appends.
    let untouched = match runs {
        [Run::Base(range), ..] => range.len(),
        _ => 0,
    };
    if untouched == base.len() || pieces == Pieces::Full {
        return (block_bytes, true);
    }
    let pieces = total.div_ceil(block_bytes * 7 / 10).max(2);
    (total.div_ceil(pieces).max(256), false)
}

/// Gives each piece its part of the sorted history.
fn with_history(cut: Vec<Cut>, mut history: &[HistoryEntry<'_>], active: &ActiveSnapshots) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(cut.len());
    let mut cut = cut.into_iter().peekable();
    while let Some((low, base, delta)) = cut.next() {
        let own =
            cut.peek().map_or(history.len(), |(next, _, _)| history.partition_point(|e| *e.key < **next));
        let (own, rest) = history.split_at(own);
        history = rest;
        pieces.push(Piece { low, base, delta, history: History::from_sorted(own, shares_of(own, active)) });
    }
    pieces
}
