//! Reading a tree: point look-ups and scans in both directions.
//!
//! A cursor pins one leaf's view (so that what it returned stays valid until its next call) and merges base and delta
//! while it moves. It holds no latch and no guard between calls. When the leaf has published another view since, the
//! cursor finds its place again by its key. Readers older than the view's horizon scan an ephemeral block of the leaf
//! as of their snapshot; look-ups of single keys never need that.

mod kept;
mod look_up;
mod passed;
mod pin;
mod top;

use super::expected::Expected;
use super::run::Run;
use crate::mvcc::State;
use crate::tree::block::Value;
use crate::tree::change::vacancy::Towards;
use crate::tree::leaf::node::Node;
use crate::tree::read::listing::Listing;
use crate::tree::storing::tree::Tree;
use crate::tree::versions::delta::{EntryRef, Version};
use crate::tree::versions::visibility::{seen, visible, Reader, Seen};
use crate::types::Seek;
use crate::{Error, Result};
use passed::Passed;
use pin::{greatest_key, Asked, Pin};
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};
use top::Top;

/// Looking a key up in a delta costs as much as passing this many entries.
const LOOK_UP_COST: u32 = 2;
/// So much is told to a leaf at once, also if the cursor stays there.
const MOST_MERGED: u32 = 128;

/// So many uses are told to a tree at once.
const USES_AT_ONCE: u32 = 16;

/// What the cursor stands on.
#[derive(Clone, Copy)]
pub(in crate::tree) enum Item {
    None,
    Base(usize),
    /// A version in the pinned delta.
    Version(*const Version),
    /// A value of the past, in the pinned view's history: (index of the entry).
    Past(usize),
    /// An entry of the listing, of the pinned base or delta.
    Listed(usize),
}

/// Where a scan goes on, relative to the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tree) enum Ready {
    No,
    Forward,
    Backward,
}

/// Moves over one tree. See [`crate::engine`] for the cursor of a transaction.
pub struct TreeCursor {
    pub(in crate::tree) tree: Arc<Tree>,
    pub(in crate::tree) pin: Option<Pin>,
    top: Top,
    pub(in crate::tree) key: Vec<u8>,
    pub(in crate::tree) item: Item,
    /// Nothing about the item was undecided when it was read: it is not another transaction's, nor did one write to its
    /// key after it.
    pub(in crate::tree) settled: bool,
    /// Versions of the pinned delta, from before it was read last.
    pub(in crate::tree) versions: usize,
    pub(in crate::tree) blob: OnceLock<Arc<[u8]>>,
    /// The value of the item, if the pin is packed and the item is one of its base.
    row: Vec<u8>,
    pub(in crate::tree) ready: Ready,
    /// Forward: next base entry; backward: one past the next.
    pub(in crate::tree) base_at: usize,
    /// Though it stands nowhere, `base_at` is behind the key: the pinned base was just searched for it.
    pub(super) placed: bool,
    /// Forward only: the next entry of the pinned delta.
    pub(in crate::tree) delta_at: Option<EntryRef<'static>>,
    passed: Passed,
    /// Rows returned from the pinned leaf.
    pub(in crate::tree) yielded: usize,
    /// Entries of the pinned leaf's delta that were merged, weighted by what each cost.
    pub(in crate::tree) merged: u32,
    /// What windows show where the delta is dense.
    pub(in crate::tree) listing: Listing,
    /// Whether the last window showed that.
    pub(in crate::tree) is_listed: bool,
    /// What cannot be read of a leaf is noted and taken for empty: see `pass_over`.
    pub(in crate::tree) lenient: bool,
    /// The base of the leaf that was pinned last was not in memory, or would not have been.
    pub(super) was_cold: bool,
    pub(super) run: Run,
    pub(super) expected: Option<Box<Expected>>,
    /// Single keys that were looked up, and ranges that were begun, of which the tree does not know; and at how many of
    /// them it is told.
    look_ups: u32,
    scans: u32,
    uses_to_tell: u32,
    /// Leaves that were pinned so far.
    #[cfg(test)]
    pub(in crate::tree) pinned: usize,
}

// SAFETY: the raw pointers (`item`, `delta_at`, `listing`) point into `pin.base` and `pin.delta`, which the cursor owns
// by Arcs, or by that of their view, and which are Send and Sync.
unsafe impl Send for TreeCursor {}

impl Drop for TreeCursor {
    fn drop(&mut self) {
        self.tell_uses();
    }
}

impl TreeCursor {
    /// A cursor that stands nowhere.
    pub fn new(tree: Arc<Tree>) -> TreeCursor {
        TreeCursor {
            tree,
            pin: None,
            top: Top::default(),
            key: Vec::new(),
            item: Item::None,
            settled: false,
            versions: 0,
            blob: OnceLock::new(),
            row: Vec::new(),
            ready: Ready::No,
            base_at: 0,
            placed: false,
            delta_at: None,
            passed: Passed::default(),
            yielded: 0,
            merged: 0,
            listing: Listing::default(),
            is_listed: false,
            lenient: false,
            was_cold: false,
            run: Run::default(),
            expected: None,
            look_ups: 0,
            scans: 0,
            uses_to_tell: 1,
            #[cfg(test)]
            pinned: 0,
        }
    }

    /// The tree it reads.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Lets go of the leaf.
    pub fn reset(&mut self) {
        self.forget();
        self.pin = None;
        self.passed.begin();
        self.top.forget();
        self.run.stop();
        self.expected = None;
        if self.look_ups.saturating_add(self.scans) >= self.uses_to_tell {
            self.tell_uses();
        }
    }

    /// All who use the tree share what this writes to: so the first time, and then for some at a time.
    #[cold]
    fn tell_uses(&mut self) {
        let (look_ups, scans) = (std::mem::take(&mut self.look_ups), std::mem::take(&mut self.scans));
        self.tree.shared.uses.add(look_ups.into(), scans.into());
        self.uses_to_tell = USES_AT_ONCE;
    }

    fn forget(&mut self) {
        self.item = Item::None;
        self.settled = false;
        self.blob.take();
        self.ready = Ready::No;
        self.delta_at = None;
        self.placed = false;
    }

    /// The current key; after a move that returned true.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The current value; valid until the next call on this cursor. A large value is read from disk here.
    pub fn value(&self) -> Result<&[u8]> {
        match self.current() {
            None => Ok(&[]),
            Some(Value::Inline(bytes)) => Ok(bytes),
            Some(Value::Blob(blob)) => {
                if let Some(bytes) = self.blob.get() {
                    return Ok(bytes);
                }
                let bytes = blob.bytes()?;
                Ok(self.blob.get_or_init(|| bytes))
            }
        }
    }

    /// Whether it stands on an item: the last call found one.
    pub fn has_item(&self) -> bool {
        !matches!(self.item, Item::None)
    }

    fn current(&self) -> Option<Value<'_>> {
        let pin = self.pin.as_ref()?;
        match self.item {
            Item::None => None,
            Item::Base(_) if pin.packed.is_some() => Some(Value::Inline(&self.row)),
            Item::Base(at) => Some(pin.base.value(at)),
            // SAFETY: `item` points into `pin.delta`, which is alive and never moves its versions.
            Item::Version(version) => match seen(Some(unsafe { &*version })) {
                Seen::Value(value) => Some(value),
                _ => None,
            },
            Item::Past(at) => pin.history.as_ref().and_then(|h| h.entry(at).past),
            // SAFETY: `item` is set anew before anything else is listed, and when the pin goes.
            Item::Listed(at) => Some(Value::Inline(unsafe { self.listing.rows(&pin.base) }.value(at))),
        }
    }

    /// The leaf that is pinned.
    pub(crate) fn leaf(&self) -> Option<&Arc<Node>> {
        self.pin.as_ref().map(|pin| &pin.node)
    }

    /// Whether the current item is what [`TreeCursor::refresh`] would find, too, for a reader of the latest that has
    /// locked the key since it was read: then whoever wrote to it before is done, and has left something to be seen
    /// here. `false` if that is not sure.
    pub fn is_current(&self, reader: &Reader<'_>) -> bool {
        self.settled
            && !matches!(self.item, Item::None | Item::Past(_))
            && self.is_at_home(reader, &self.key)
            && self.pin.as_ref().is_some_and(|pin| pin.delta.versions() == self.versions)
    }

    /// Reads the current key again, as `reader` sees it now; false if it is gone. The position stays.
    pub fn refresh(&mut self, reader: &Reader<'_>) -> Result<bool> {
        let key = std::mem::take(&mut self.key);
        let pinned = match self.is_at_home(reader, &key) {
            true => self.stay(reader),
            // The scan goes on from here.
            false => self.pin_for(reader, &key, Asked::Rows),
        };
        let found = pinned.and_then(|()| self.get_pinned(reader, &key, None));
        self.key = key;
        found
    }

    /// Goes to the first key at or after / after, or the last key at or before / before `key`.
    pub fn seek(&mut self, reader: &Reader<'_>, seek: Seek, key: &[u8]) -> Result<bool> {
        self.scans = self.scans.saturating_add(1);
        let found = match seek {
            Seek::AtOrAfter | Seek::AtOrBefore => match self.get_asked(reader, key, Asked::Rows) {
                Err(error) if self.tree.passes_over(&error) => {
                    self.stand_between(key);
                    false
                }
                found => found?,
            },
            Seek::After | Seek::Before => {
                self.run.jump(false);
                self.stand_between(key);
                false
            }
        };
        match seek {
            Seek::AtOrAfter if found && self.tree.is_salvaged() => self.pass_over(reader, Ok(true)),
            _ if found => Ok(true),
            Seek::AtOrAfter | Seek::After => self.next(reader),
            Seek::AtOrBefore | Seek::Before => self.prev(reader),
        }
    }

    /// Nowhere in particular, but before what is greater than `key` and after what is less.
    pub(in crate::tree) fn stand_between(&mut self, key: &[u8]) {
        self.forget();
        self.pin = None;
        self.listing.restart();
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// Goes to the first key.
    pub fn first(&mut self, reader: &Reader<'_>) -> Result<bool> {
        self.seek(reader, Seek::AtOrAfter, &[])
    }

    /// Goes to the last key.
    pub fn last(&mut self, reader: &Reader<'_>) -> Result<bool> {
        self.scans = self.scans.saturating_add(1);
        self.pin_last(reader)?;
        self.listing.restart();
        self.run.jump(self.was_cold);
        self.prepare_backward(reader, None)?;
        self.step_backward(reader, true)
    }

    /// Goes to the next key.
    #[inline]
    pub fn next(&mut self, reader: &Reader<'_>) -> Result<bool> {
        let found = self.next_readable(reader);
        match self.tree.is_salvaged() {
            true => self.pass_over(reader, found),
            false => found,
        }
    }

    #[inline]
    pub(in crate::tree) fn next_readable(&mut self, reader: &Reader<'_>) -> Result<bool> {
        if self.ready != Ready::Forward || !self.is_fresh(reader) {
            self.stand_behind_key(reader)?;
        } else {
            self.see_pushed();
        }
        self.step_forward(reader)
    }

    /// Somebody has pushed onto the pinned delta since the position in it was taken: the scan's own transaction, as a
    /// rule.
    #[inline]
    fn see_pushed(&mut self) {
        let Some(pin) = &self.pin else { return };
        let versions = pin.delta.versions();
        if versions != self.versions {
            self.versions = versions;
            // SAFETY: as in `prepare_forward`.
            self.delta_at = pin
                .delta
                .first_after(&self.key)
                .map(|entry| unsafe { std::mem::transmute::<EntryRef<'_>, EntryRef<'static>>(entry) });
        }
    }

    /// Goes to the previous key.
    pub fn prev(&mut self, reader: &Reader<'_>) -> Result<bool> {
        if self.ready != Ready::Backward || !self.is_fresh(reader) {
            self.stand_before_key(reader)?;
        }
        self.step_backward(reader, false)
    }

    /// Pins the leaf in which a step up from the key begins, and places it there.
    pub(super) fn stand_behind_key(&mut self, reader: &Reader<'_>) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        // A cursor that has come to an end may have left the leaf of its key.
        let is_here = self.pin.as_ref().is_some_and(|pin| pin.view.holds(&key)) && self.is_fresh(reader);
        let pinned = if is_here { Ok(()) } else { self.pin_for(reader, &key, Asked::Rows) };
        self.key = key;
        pinned?;
        self.prepare_forward(reader, true)
    }

    /// The same of a step down.
    pub(super) fn stand_before_key(&mut self, reader: &Reader<'_>) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        let pinned = self.pin_before(reader, &key).and_then(|()| self.prepare_backward(reader, Some(&key)));
        self.key = key;
        pinned
    }

    /// Sets the forward position after `key` (or at its first key, when the leaf was entered from its left).
    fn prepare_forward(&mut self, reader: &Reader<'_>, after_key: bool) -> Result<()> {
        let placed = self.placed;
        self.forget();
        let adapted = self.adapt(reader)?;
        let Some(pin) = &self.pin else { return Ok(()) };
        self.versions = pin.delta.versions();
        let delta_at = if after_key { pin.delta.first_after(&self.key) } else { pin.delta.first() };
        if !after_key {
            self.base_at = 0;
        } else if !placed || adapted {
            self.base_at = pin.base.upper_bound(&self.key);
        }
        // SAFETY: the entry lives in `pin.delta`; `delta_at` is cleared before the pin is replaced (`forget`,
        // `pin_leaf`).
        self.delta_at =
            delta_at.map(|entry| unsafe { std::mem::transmute::<EntryRef<'_>, EntryRef<'static>>(entry) });
        self.ready = Ready::Forward;
        Ok(())
    }

    fn prepare_backward(&mut self, reader: &Reader<'_>, before: Option<&[u8]>) -> Result<()> {
        self.forget();
        self.adapt(reader)?;
        let Some(pin) = &self.pin else { return Ok(()) };
        self.base_at = before.map_or(pin.base.len(), |key| pin.base.lower_bound(key));
        // Backward steps look the delta up by key; without one, from its end.
        match before {
            Some(_) => {}
            None => {
                self.key.clear();
                if let Some(high) = greatest_key(&pin.base, &pin.delta) {
                    self.key.extend_from_slice(&high);
                    self.key.push(0);
                }
            }
        }
        self.ready = Ready::Backward;
        Ok(())
    }

    #[inline]
    fn step_forward(&mut self, reader: &Reader<'_>) -> Result<bool> {
        self.blob.take();
        self.begin_step(reader);
        loop {
            let Some(pin) = &self.pin else { return Ok(false) };
            let in_base = self.base_at < pin.base.len();
            let order = match self.delta_at {
                Some(entry) if in_base => pin.base.compare(self.base_at, entry.key()),
                Some(_) => Ordering::Greater,
                None if in_base => Ordering::Less,
                None => match self.enter_next_leaf(reader)? {
                    true => continue,
                    false => return Ok(false),
                },
            };
            let Some(entry) = self.delta_at.filter(|_| order != Ordering::Less) else {
                if !self.has_left_as_found(reader) {
                    self.begin_again(reader)?;
                    continue;
                }
                self.item = Item::Base(self.base_at);
                self.settled = true;
                pin.base.key_into(self.base_at, &mut self.key);
                self.base_at += 1;
                self.yielded += 1;
                return Ok(true);
            };
            self.merged += 1;
            let base_at = (order == Ordering::Equal).then_some(self.base_at);
            self.base_at += usize::from(base_at.is_some());
            self.delta_at = entry.next();
            if let Some((item, settled)) = merged(entry, base_at, reader) {
                if !self.is_as_found(reader, self.versions) {
                    self.begin_again(reader)?;
                    continue;
                }
                (self.item, self.settled) = (item, settled);
                self.key.clear();
                self.key.extend_from_slice(entry.key());
                self.yielded += 1;
                return Ok(true);
            }
        }
    }

    /// There is nothing further.
    pub(in crate::tree) fn end(&mut self) -> bool {
        self.item = Item::None;
        self.ready = Ready::No;
        false
    }

    fn enter_next_leaf(&mut self, reader: &Reader<'_>) -> Result<bool> {
        let Some(pin) = &self.pin else { return Ok(false) };
        let high = pin.view.high.clone();
        self.leave(reader, self.versions);
        let Some(high) = high else { return Ok(self.end()) };
        if !self.pin_next(reader, Towards::Greater, &high)? {
            return Ok(self.end());
        }
        if self.pin.as_ref().is_some_and(|pin| pin.view.high.as_ref().is_some_and(|next| *next <= high)) {
            return Err(Error::corrupt(self.tree.space().path(), 0, "leaves that do not follow each other"));
        }
        // The leaf may begin before `high` (its left neighbour was removed): keys below were seen already.
        let begins_there = self.pin.as_ref().is_some_and(|pin| *pin.view.low == *high);
        if begins_there {
            self.prepare_forward(reader, false)?;
        } else {
            self.adapt(reader)?;
            self.forget();
            let Some(pin) = &self.pin else { return Ok(false) };
            self.versions = pin.delta.versions();
            self.base_at = pin.base.lower_bound(&high);
            let entry = pin.delta.first_at_or_after(&high);
            // SAFETY: as in `prepare_forward`.
            self.delta_at =
                entry.map(|e| unsafe { std::mem::transmute::<EntryRef<'_>, EntryRef<'static>>(e) });
            self.ready = Ready::Forward;
        }
        Ok(true)
    }

    /// `is_last`: from the end of the tree, and not from the key.
    fn step_backward(&mut self, reader: &Reader<'_>, is_last: bool) -> Result<bool> {
        self.blob.take();
        self.begin_step(reader);
        // Where it began, if it has gone on from there; versions of the pinned delta from before the first look.
        let (mut began_at, mut before) = (None, None);
        loop {
            let Some(pin) = &self.pin else { return Ok(false) };
            self.versions = pin.delta.versions();
            let seen = *before.get_or_insert(self.versions);
            let entry = if self.versions == 0 { None } else { pin.delta.last_before(&self.key) };
            let in_base = self.base_at > 0;
            let order = match entry {
                None if !in_base => {
                    self.note_beginning(reader, &mut began_at);
                    if !self.enter_previous_leaf(reader, seen)? {
                        return Ok(false);
                    }
                    before = None;
                    continue;
                }
                None => Ordering::Greater,
                Some(entry) if in_base => pin.base.compare(self.base_at - 1, entry.key()),
                Some(_) => Ordering::Less,
            };
            let (Some(entry), Ordering::Less | Ordering::Equal) = (entry, order) else {
                if !self.has_left_as_found(reader) {
                    self.begin_again_backward(reader, began_at.take(), is_last)?;
                    before = None;
                    continue;
                }
                self.base_at -= 1;
                self.item = Item::Base(self.base_at);
                self.settled = true;
                pin.base.key_into(self.base_at, &mut self.key);
                self.yielded += 1;
                return Ok(true);
            };
            self.merged += LOOK_UP_COST;
            let base_at = (order == Ordering::Equal).then(|| self.base_at - 1);
            self.base_at -= usize::from(base_at.is_some());
            let item = merged(entry, base_at, reader);
            if item.is_some() && !self.is_as_found(reader, seen) {
                self.begin_again_backward(reader, began_at.take(), is_last)?;
                before = None;
                continue;
            }
            if item.is_none() {
                self.note_beginning(reader, &mut began_at);
            }
            self.key.clear();
            self.key.extend_from_slice(entry.key());
            if let Some((item, settled)) = item {
                (self.item, self.settled) = (item, settled);
                self.yielded += 1;
                return Ok(true);
            }
        }
    }

    fn enter_previous_leaf(&mut self, reader: &Reader<'_>, versions: usize) -> Result<bool> {
        let Some(pin) = &self.pin else { return Ok(false) };
        let low = pin.view.low.clone();
        self.leave(reader, versions);
        if low.is_empty() || !self.pin_next(reader, Towards::Lesser, &low)? {
            return Ok(self.end());
        }
        self.prepare_backward(reader, Some(&low))?;
        self.key.clear();
        self.key.extend_from_slice(&low);
        Ok(true)
    }
}

/// What the reader sees of a key that the delta knows, and whether that is settled.
#[inline]
fn merged(entry: EntryRef<'_>, base_at: Option<usize>, reader: &Reader<'_>) -> Option<(Item, bool)> {
    let newest = entry.newest();
    let version = visible(newest, reader);
    let item = match seen(version) {
        Seen::Value(_) => version.map(|v| Item::Version(v)),
        Seen::Gone => None,
        Seen::Nothing => base_at.map(Item::Base),
    };
    item.map(|item| (item, is_settled(newest, version, reader)))
}

/// Whether the version that the reader sees is the newest of its key, and nobody else's undecided write.
#[inline]
fn is_settled(newest: Option<&Version>, seen: Option<&Version>, reader: &Reader<'_>) -> bool {
    let (Some(newest), Some(seen)) = (newest, seen) else { return false };
    std::ptr::eq(newest, seen)
        && match seen.status.state() {
            State::Committed(_) => true,
            State::Active => reader.own.is_some_and(|own| std::ptr::eq(own, &*seen.status)),
            State::Aborted => false,
        }
}
