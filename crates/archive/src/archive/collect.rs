//! Giving back what nobody names: data whose grace period is over, lists that are nobody's, entries of indexes that are
//! gone. Steps of one small transaction each, beside whoever reads and writes.

use super::{read_timed_key, timed_key, Archive};
use crate::rows::{list_key, read_list, Content, ListName, Listed, LIST_END};
use crate::{Digest, Error, Name, Result};
use serde_json::json;
use std::collections::BTreeMap;
use teak_core::Transaction;

/// Orphans that are looked at with one snapshot, and entries that one transaction removes.
const AT_ONCE: usize = 1000;

/// What was given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Data that no record named.
    pub data: u64,
    /// Data that no record names, and which is protected.
    pub kept: u64,
    /// Lists of chunks: of this data, and of puts that did not end.
    pub lists: u64,
    /// Chunks.
    pub chunks: u64,
    /// Their bytes, before compression.
    pub bytes: u64,
    /// Entries of indexes that are gone.
    pub entries: u64,
}

/// What a step has found.
enum Step {
    Removed,
    Protected,
    Passed,
}

impl Archive {
    /// Gives back what nobody has named for `grace_seconds`, or for as long as the rules say. `stop` is asked now and
    /// then.
    pub fn collect(&self, grace_seconds: Option<u64>, stop: &dyn Fn() -> bool) -> Result<Collected> {
        let _care = self.care();
        let grace = grace_seconds.unwrap_or(self.rules().grace_seconds);
        let grace = i64::try_from(grace).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        let mut collected = Collected::default();
        self.collect_orphans(self.now().saturating_sub(grace), &mut collected, stop)?;
        self.collect_lists(&mut collected, stop)?;
        self.build_indexes()?;
        self.collect_entries(&mut collected, stop)?;
        self.answered()?;
        Ok(collected)
    }

    fn collect_orphans(&self, before: i64, collected: &mut Collected, stop: &dyn Fn() -> bool) -> Result<()> {
        let (mut from, end) = (Vec::new(), timed_key(before, &[0xff; 33]));
        loop {
            let rows = self
                .engine
                .snapshot()
                .range(&self.trees.orphans, from.clone()..end.clone())
                .take(AT_ONCE)
                .map(|row| row.map(|(key, _)| key))
                .collect::<Result<Vec<_>, _>>()?;
            let Some(last) = rows.last() else { return Ok(()) };
            from = [last, &[0][..]].concat();
            for key in &rows {
                if stop() {
                    return Ok(());
                }
                let (since, name) = read_timed_key(key).ok_or_else(|| Error::row("orphans", key))?;
                let name = Digest(name.try_into().map_err(|_| Error::row("orphans", key))?);
                let mut freed = Collected::default();
                let step = self.transact(|txn| {
                    freed = Collected::default();
                    self.remove_data(txn, name, since, &mut freed)
                })?;
                match step {
                    Step::Removed => collected.data += 1,
                    Step::Protected => collected.kept += 1,
                    Step::Passed => {}
                }
                collected.chunks += freed.chunks;
                collected.bytes += freed.bytes;
            }
        }
    }

    fn remove_data(
        &self,
        txn: &mut Transaction,
        name: Digest,
        since: i64,
        freed: &mut Collected,
    ) -> Result<Step> {
        let mut content = self.lock_content(txn, name)?;
        // A put may have taken it since.
        let Some(data) = content.data.as_ref().filter(|data| data.orphaned == Some(since)) else {
            return Ok(Step::Passed);
        };
        if self.refuse_protected(Name::Data(name), &data.protection).is_err() {
            return Ok(Step::Protected);
        }
        if self.has_records(txn, name)? {
            return Err(Error::Inconsistent(format!("{name} has a record, and counts as having none")));
        }
        let size = data.size;
        match data.list {
            Some(list) => drop(txn.put(&self.trees.pending, list, [])?),
            None if size > 0 => self.release(txn, name, &mut content, 1, freed)?,
            None => {}
        }
        content.data = None;
        self.write_content(txn, name, &content)?;
        txn.delete(&self.trees.orphans, timed_key(since, &name.0))?;
        self.note(txn, "collect", &name.to_string(), json!({ "size": size }))?;
        Ok(Step::Removed)
    }

    /// So many uses fewer of a chunk whose content is locked; at zero its bytes go.
    fn release(
        &self,
        txn: &mut Transaction,
        name: Digest,
        content: &mut Content,
        uses: u64,
        freed: &mut Collected,
    ) -> Result<()> {
        let wrong = || Error::Inconsistent(format!("chunk {name} is used less often than lists name it"));
        let chunk = content.chunk.as_mut().ok_or_else(wrong)?;
        chunk.uses = chunk.uses.checked_sub(uses).ok_or_else(wrong)?;
        if chunk.uses == 0 {
            freed.chunks += 1;
            freed.bytes += chunk.length;
            txn.delete(&self.trees.chunks, chunk.number.to_be_bytes())?;
            content.chunk = None;
        }
        Ok(())
    }

    fn collect_lists(&self, collected: &mut Collected, stop: &dyn Fn() -> bool) -> Result<()> {
        let pending = self
            .engine
            .snapshot()
            .rows(&self.trees.pending)
            .map(|row| row.map(|(key, _)| key))
            .collect::<Result<Vec<_>, _>>()?;
        for key in pending {
            let list = ListName::try_from(&*key).map_err(|_| Error::row("pending", &key))?;
            loop {
                if stop() {
                    return Ok(());
                }
                let mut freed = Collected::default();
                let is_left = self.transact(|txn| {
                    freed = Collected::default();
                    self.release_part(txn, &list, &mut freed)
                })?;
                collected.chunks += freed.chunks;
                collected.bytes += freed.bytes;
                collected.lists += freed.lists;
                if !is_left {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives the last part of a list back; whether there may be more.
    fn release_part(&self, txn: &mut Transaction, list: &ListName, freed: &mut Collected) -> Result<bool> {
        // Whose put has ended well since is not pending any more; with the row locked, none ends.
        if txn.get_for_update(&self.trees.pending, list)?.is_none() || self.live().contains(list) {
            return Ok(false);
        }
        let mut rows =
            txn.range(&self.trees.lists, list_key(list, 0)..=list_key(list, LIST_END))?.descending();
        if !rows.advance()? {
            drop(rows);
            txn.delete(&self.trees.pending, list)?;
            freed.lists += 1;
            return Ok(false);
        }
        let key = rows.key().to_vec();
        let is_end = key == list_key(list, LIST_END);
        let chunks = if is_end { Some(Vec::new()) } else { read_list(rows.value()?) };
        drop(rows);
        let chunks = chunks.ok_or_else(|| Error::row("lists", &key))?;
        for (name, uses) in uses(&chunks) {
            let mut content = self.lock_content(txn, name)?;
            self.release(txn, name, &mut content, uses, freed)?;
            self.write_content(txn, name, &content)?;
        }
        txn.delete(&self.trees.lists, key)?;
        Ok(true)
    }

    fn collect_entries(&self, collected: &mut Collected, stop: &dyn Fn() -> bool) -> Result<()> {
        for index in self.schema().dropped.clone() {
            let range = index.to_be_bytes()..(index + 1).to_be_bytes();
            loop {
                if stop() {
                    return Ok(());
                }
                let removed = self.transact(|txn| {
                    let keys = txn
                        .range(&self.trees.entries, range.clone())?
                        .take(AT_ONCE)
                        .map(|row| row.map(|(key, _)| key))
                        .collect::<Result<Vec<_>, _>>()?;
                    keys.iter().try_for_each(|key| txn.delete(&self.trees.entries, key).map(|_| ()))?;
                    Ok(keys.len())
                })?;
                collected.entries += removed as u64;
                if removed < AT_ONCE {
                    break;
                }
            }
            self.forget_index(index)?;
        }
        Ok(())
    }
}

/// How often each chunk is there, by name.
fn uses(chunks: &[Listed]) -> BTreeMap<Digest, u64> {
    let mut uses = BTreeMap::new();
    chunks.iter().for_each(|chunk| *uses.entry(chunk.name).or_default() += 1);
    uses
}
