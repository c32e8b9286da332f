//! What must hold of all trees together.

use super::{read_timed_key, Archive};
use crate::rows::{read_list, Content, ListName, Record, LIST_END};
use crate::{Digest, Error, Oid, Result};
use std::collections::{BTreeMap, BTreeSet};
use teak_core::Snapshot;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

impl Archive {
    /// Compares all rows with each other, but for the bytes of chunks ([`Archive::scrub`] reads those): what is wrong,
    /// or nothing. All of them are in memory for that, some 300 bytes a chunk and 500 a record.
    pub fn check_references(&self) -> Result<Vec<String>> {
        let (snapshot, schema) = (self.engine.snapshot(), self.schema());
        let mut wrong = self.check_folders(&snapshot)?;
        let contents = self.contents(&snapshot)?;
        let records = self.all_records(&snapshot)?;
        let mut uses = self.uses_by_lists(&snapshot, &contents, &mut wrong)?;
        let named: BTreeSet<Digest> = records.iter().map(|record| record.data).collect();
        for name in
            named.iter().filter(|name| contents.get(name).is_none_or(|content| content.data.is_none()))
        {
            wrong.push(format!("a record names {name}, which there is not"));
        }
        let orphans = self.rows(&snapshot, &self.trees.orphans)?;
        let mut counted = 0;
        for (name, content) in &contents {
            if let Some(data) = &content.data {
                if data.list.is_none() && data.size > 0 {
                    *uses.entry(*name).or_default() += 1;
                }
                if data.orphaned.is_some() == named.contains(name) {
                    wrong.push(format!("{name}: orphaned is {:?}", data.orphaned));
                }
                if let Some(since) = data.orphaned {
                    counted += 1;
                    if !orphans.contains_key(&super::timed_key(since, &name.0)) {
                        wrong.push(format!("{name} is no row of orphans"));
                    }
                }
            }
            let expected = uses.remove(name).unwrap_or(0);
            let chunk = content.chunk.map_or(0, |chunk| chunk.uses);
            if chunk != expected || content.chunk.is_some_and(|chunk| chunk.uses == 0) {
                wrong.push(format!("chunk {name} has {chunk} uses, and is named {expected} times"));
            }
        }
        wrong.extend(uses.into_keys().map(|name| format!("a list names {name}, which there is not")));
        if counted != orphans.len() || orphans.keys().any(|key| read_timed_key(key).is_none()) {
            wrong.push(format!("{} rows of orphans, and {counted} orphans", orphans.len()));
        }
        let stored: BTreeSet<u64> =
            contents.values().filter_map(|content| content.chunk).map(|c| c.number).collect();
        let mut rows = snapshot.rows(&self.trees.chunks);
        let mut there = BTreeSet::new();
        while rows.advance()? {
            there.insert(
                rows.key()
                    .try_into()
                    .map(u64::from_be_bytes)
                    .map_err(|_| Error::row("chunks", rows.key()))?,
            );
        }
        wrong.extend(
            stored
                .symmetric_difference(&there)
                .map(|n| format!("chunk number {n} is stored, or named, alone")),
        );
        let expected: BTreeSet<Vec<u8>> = records.iter().flat_map(|record| record.entries(&schema)).collect();
        let is_of =
            |numbers: &[u32], key: &[u8]| numbers.iter().any(|number| key.starts_with(&number.to_be_bytes()));
        let found = self.rows(&snapshot, &self.trees.entries)?.into_keys();
        let found: BTreeSet<Vec<u8>> = found.filter(|key| !is_of(&schema.dropped, key)).collect();
        let growing = schema.indexes.iter().filter(|index| !index.is_ready);
        let growing: Vec<u32> = growing.map(|index| index.number).collect();
        let missing = expected.difference(&found).filter(|key| !is_of(&growing, key));
        wrong.extend(missing.map(|key| format!("entry {} is missing", key.escape_ascii())));
        wrong.extend(
            found.difference(&expected).map(|key| format!("entry {} is nobody's", key.escape_ascii())),
        );
        Ok(wrong)
    }

    fn contents(&self, snapshot: &Snapshot) -> Result<BTreeMap<Digest, Content>> {
        let rows = self.rows(snapshot, &self.trees.contents)?.into_iter();
        rows.map(|(key, row)| {
            let broken = || Error::row("contents", &key);
            let name = Digest(<[u8; 32]>::try_from(&*key).map_err(|_| broken())?);
            Ok((name, Content::read(&row).ok_or_else(broken)?))
        })
        .collect()
    }

    fn all_records(&self, snapshot: &Snapshot) -> Result<Vec<Record>> {
        let rows = self.rows(snapshot, &self.trees.records)?;
        let records: Vec<Record> =
            rows.iter().map(|(key, row)| self.record_of_row(key, row)).collect::<Result<_>>()?;
        for key in self.rows(snapshot, &self.trees.versions)?.into_keys() {
            let oid = key.first_chunk::<16>().map(|oid| Oid(*oid));
            if !oid.is_some_and(|oid| rows.contains_key(&oid.0[..])) {
                return Err(Error::row("versions", &key));
            }
        }
        Ok(records)
    }

    /// How often lists name each chunk; each list is one of data that names it, or pending.
    fn uses_by_lists(
        &self,
        snapshot: &Snapshot,
        contents: &BTreeMap<Digest, Content>,
        wrong: &mut Vec<String>,
    ) -> Result<BTreeMap<Digest, u64>> {
        let mut uses = BTreeMap::new();
        let mut sizes: BTreeMap<ListName, u64> = BTreeMap::new();
        let mut ends: BTreeMap<ListName, Vec<u8>> = BTreeMap::new();
        for (key, row) in self.rows(snapshot, &self.trees.lists)? {
            let broken = || Error::row("lists", &key);
            let (list, at) = key.split_first_chunk::<16>().ok_or_else(broken)?;
            if at == LIST_END.to_be_bytes() {
                ends.insert(*list, row);
                continue;
            }
            let size = sizes.entry(*list).or_default();
            if at != size.to_be_bytes() {
                wrong.push(format!("a part of list {} does not follow the one before", key.escape_ascii()));
            }
            for chunk in read_list(&row).ok_or_else(broken)? {
                *uses.entry(chunk.name).or_default() += 1;
                *size += chunk.length;
                let stored = contents.get(&chunk.name).and_then(|content| content.chunk);
                if stored.is_none_or(|stored| (stored.number, stored.length) != (chunk.number, chunk.length))
                {
                    wrong.push(format!(
                        "list {} names {}, which is not so stored",
                        key.escape_ascii(),
                        chunk.name
                    ));
                }
            }
        }
        let pending = self.rows(snapshot, &self.trees.pending)?;
        for (name, content) in contents {
            let Some((data, list)) = content.data.as_ref().and_then(|data| Some((data, data.list?))) else {
                continue;
            };
            let fits =
                sizes.remove(&list) == Some(data.size) && ends.get(&list).is_some_and(|end| *end == name.0);
            if !fits || pending.contains_key(&list[..]) {
                wrong.push(format!("the list of {name} is not its own"));
            }
        }
        let lost = sizes.keys().filter(|list| !pending.contains_key(&list[..]));
        wrong.extend(lost.map(|list| format!("list {} is nobody's", list.escape_ascii())));
        Ok(uses)
    }

    fn rows(&self, snapshot: &Snapshot, tree: &std::sync::Arc<teak_core::Tree>) -> Result<Rows> {
        Ok(snapshot.rows(tree).collect::<Result<_, _>>()?)
    }
}
