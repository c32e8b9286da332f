//! Look-ups of single keys, for which the pin need not have all rows of its leaf.

use super::kept::Kept;
use super::pin::Asked;
use super::{is_settled, Item, TreeCursor, LOOK_UP_COST};
use crate::counts::Count;
use crate::tree::versions::visibility::{seen, visible, Reader, Seen};
use crate::Result;
use std::sync::Arc;

impl TreeCursor {
    /// Looks `key` up. If it is absent, the cursor stands between its neighbours, and `next` and `prev` go there.
    #[inline]
    pub fn get(&mut self, reader: &Reader<'_>, key: &[u8]) -> Result<bool> {
        self.look_ups = self.look_ups.saturating_add(1);
        self.get_asked(reader, key, Asked::Row)
    }

    pub(super) fn get_asked(&mut self, reader: &Reader<'_>, key: &[u8], asked: Asked) -> Result<bool> {
        let near = self.is_at_home(reader, key).then_some(self.base_at);
        match near {
            Some(_) => self.stay(reader)?,
            None => {
                self.pin_for(reader, key, asked)?;
                self.run.jump(self.was_cold);
                self.came_to(key);
            }
        }
        self.get_pinned(reader, key, near)
    }

    /// `key` in the leaf that is pinned; `near`: perhaps its entry in the base.
    pub(super) fn get_pinned(
        &mut self,
        reader: &Reader<'_>,
        key: &[u8],
        near: Option<usize>,
    ) -> Result<bool> {
        if self.key.as_ptr() != key.as_ptr() {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.listing.restart();
        self.item = self.look_up(reader, near)?;
        if self.pin.as_ref().is_some_and(|pin| !pin.delta.is_empty()) {
            self.merged += LOOK_UP_COST;
        }
        let found = !matches!(self.item, Item::None);
        self.yielded += usize::from(found);
        Ok(found)
    }

    fn look_up(&mut self, reader: &Reader<'_>, near: Option<usize>) -> Result<Item> {
        let Some(pin) = &mut self.pin else { return Ok(Item::None) };
        self.versions = pin.delta.versions();
        self.settled = true;
        if self.versions > 0 {
            if let Some(entry) = pin.delta.find(&self.key) {
                let newest = entry.newest();
                let version = visible(newest, reader);
                self.settled = is_settled(newest, version, reader);
                match seen(version) {
                    Seen::Value(_) => return Ok(version.map_or(Item::None, |v| Item::Version(v))),
                    Seen::Gone => return Ok(Item::None),
                    Seen::Nothing => {}
                }
            }
        }
        if reader.snapshot < pin.view.horizon && !pin.view.history.is_empty() {
            if let Some(leaf) = pin.node.leaf() {
                pin.history = leaf.history(&pin.view)?;
            }
            if let Some(history) = &pin.history {
                if let Some(at) = history.find(&self.key, reader.snapshot) {
                    Count::OldVersions.add(1);
                    return Ok(history.entry(at).past.map_or(Item::None, |_| Item::Past(at)));
                }
            }
        }
        // Of look-ups in the order of the keys each is the neighbour of the one before.
        let found = match near.filter(|at| *at < pin.base.len() && pin.base.compare(*at, &self.key).is_eq()) {
            Some(at) => Ok(at),
            None => pin.base.search(&self.key),
        };
        (self.base_at, self.placed) = (found.map_or_else(|at| at, |at| at + 1), true);
        if pin.packed.is_some() {
            return self.look_up_packed(found);
        }
        if let Some(at) = found.ok().or(found.err().filter(|at| *at < pin.base.len())) {
            pin.base.fetch_value(at);
        }
        Ok(found.map_or(Item::None, Item::Base))
    }

    /// The value of the entry that was found in a packed base; of one that is looked up again and again all are made.
    #[cold]
    fn look_up_packed(&mut self, found: std::result::Result<usize, usize>) -> Result<Item> {
        let Ok(at) = found else { return Ok(Item::None) };
        let packed = self.pin.as_ref().and_then(|pin| pin.packed.as_ref());
        match packed.filter(|packed| !packed.is_hot()) {
            Some(packed) => packed.value_into(at, &mut self.row)?,
            None => self.unpack()?,
        }
        Ok(Item::Base(at))
    }

    /// Has the pin have all rows of the leaf, if it has them packed: then it may be scanned.
    #[inline]
    pub(super) fn unpack(&mut self) -> Result<()> {
        match self.pin.as_ref().is_some_and(|pin| pin.packed.is_some()) {
            true => self.unpack_pin(),
            false => Ok(()),
        }
    }

    #[cold]
    fn unpack_pin(&mut self) -> Result<()> {
        let Some(pin) = &mut self.pin else { return Ok(()) };
        let Some(leaf) = pin.node.leaf() else { return Ok(()) };
        // Its entries have the numbers that they have in the keys. That the leaf gets another view by it only makes the
        // next call look for its place again.
        pin.base = Kept::from(match pin.packed.take().filter(|packed| !pin.view.base.is_packed(packed)) {
            None => leaf.base(&pin.node, &pin.view)?,
            // Others have not got it.
            Some(packed) => Arc::new(packed.whole()?),
        });
        Ok(())
    }
}
