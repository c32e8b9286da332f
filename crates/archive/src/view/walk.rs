//! Directories and files of a view. What lies in one directory is one range of the view's index: its directories are
//! found by going from value to value, whatever lies below them, and its files are read in the order of their fields.

use super::{names, no_view, Reading};
use crate::archive::{oid_of_entry, Archive};
use crate::query::after;
use crate::rows::Record;
use crate::schema::{Index, Schema, NO_VALUE};
use crate::{Error, Metadata, Oid, Result};
use std::sync::Arc;
use teak_core::Snapshot;

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A directory.
    Directory(String),
    /// A file: its name, record, size in bytes.
    File(String, Oid, u64),
}

impl Item {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Item::Directory(name) | Item::File(name, ..) => name,
        }
    }
}

/// A part of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their fields.
    pub items: Vec<Item>,
    /// Where to go on, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// Is told name, record and entry of a file, and says whether it wants more.
type TellFile<'a> = dyn FnMut(String, Record, &[u8]) -> Result<bool> + 'a;

/// A directory.
pub(crate) struct Place {
    /// What the entries of all that is in it begin with.
    pub(super) prefix: Vec<u8>,
    /// How many names lead to it.
    pub(super) depth: usize,
}

/// A view, at a moment.
pub(crate) struct Walk<'a> {
    pub(super) archive: &'a Archive,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) reading: Reading,
    pub(super) index: Index,
}

impl Archive {
    /// What is in a directory of a view: at most `limit`, behind what `from` says.
    pub fn list_view(&self, view: &str, path: &str, from: Option<&[u8]>, limit: usize) -> Result<Listing> {
        let walk = self.walk(view)?;
        let place = walk.place(&components(path)?)?;
        let place = place.ok_or_else(|| Error::Unknown(format!("there is no {path} in view {view}")))?;
        walk.list(&place, from, limit)
    }

    /// The record of a file of a view.
    pub fn find_in_view(&self, view: &str, path: &str) -> Result<Oid> {
        let walk = self.walk(view)?;
        let components = components(path)?;
        let found = match components.split_last() {
            Some((file, directories)) if directories.len() == walk.reading.pattern.directories.len() => {
                walk.place(directories)?.map(|place| walk.find(&place, file)).transpose()?.flatten()
            }
            _ => None,
        };
        found.ok_or_else(|| Error::Unknown(format!("there is no file {path} in view {view}")))
    }

    /// The fields that a record has which is to be at a path of a view; what does not fit is told.
    pub fn fields_of_path(&self, view: &str, path: &str) -> Result<Metadata> {
        let schema = self.schema();
        let pattern = self.view(&schema, view)?.pattern;
        let given = components(path)?;
        if given.len() != pattern.directories.len() + 1 {
            let text = format!(
                "{path} has {} names, and a file of view {view} {}",
                given.len(),
                pattern.directories.len() + 1
            );
            return Err(Error::Usage(text));
        }
        pattern.fields_of(&schema, path, &given)
    }

    fn walk(&self, view: &str) -> Result<Walk<'_>> {
        self.walk_in(Arc::new(self.engine().snapshot()), &self.schema(), view)
    }

    /// A view as of a snapshot.
    pub(crate) fn walk_in(&self, snapshot: Arc<Snapshot>, schema: &Schema, view: &str) -> Result<Walk<'_>> {
        let views = self.views()?;
        let reading = views.get(view).ok_or_else(|| no_view(view))?.read(schema)?;
        let index = index_of(schema, &reading)
            .ok_or_else(|| Error::Conflict(format!("the index of view {view} is being built")))?;
        Ok(Walk { archive: self, snapshot, reading, index })
    }
}

fn index_of(schema: &Schema, reading: &Reading) -> Option<Index> {
    let fields = reading.pattern.fields();
    schema.indexes.iter().find(|index| index.is_ready && index.fields == fields).cloned()
}

/// Names of a path; slashes at its ends count for nothing.
fn components(path: &str) -> Result<Vec<&str>> {
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = trimmed.split('/').collect();
    match names.iter().any(|name| ["", ".", ".."].contains(name)) || path.contains('\0') {
        true => Err(Error::Usage(format!("'{}' is no path of a view", path.escape_debug()))),
        false => Ok(names),
    }
}

impl Walk<'_> {
    /// The directory with these names; `None`: there is none, or nothing is in it.
    pub(crate) fn place(&self, names: &[&str]) -> Result<Option<Place>> {
        let mut place = Place { prefix: self.index.number.to_be_bytes().to_vec(), depth: 0 };
        if names.len() > self.reading.pattern.directories.len() {
            return Ok(None);
        }
        for (component, name) in self.reading.pattern.directories.iter().zip(names) {
            match component.read(name) {
                Ok(values) if !names::has_suffix(name) => {
                    values.iter().for_each(|value| value.put_key(&mut place.prefix))
                }
                _ if names::has_suffix(name) => match self.cut_directory(&place, name)? {
                    Some(prefix) => place.prefix = prefix,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
            place.depth += 1;
            // By another form of its name it is not to be found.
            let first = self.first_visible(&place.prefix, &after(place.prefix.clone()))?;
            if first.and_then(|record| component.compose(&record)).map(names::of_directory).as_deref()
                != Some(*name)
            {
                return Ok(None);
            }
        }
        Ok(Some(place))
    }

    /// The directory of a name that was too long: found by looking at all.
    fn cut_directory(&self, place: &Place, name: &str) -> Result<Option<Vec<u8>>> {
        let mut from = None;
        loop {
            let Some((found, prefix)) = self.next_directory(place, from.as_deref())? else { return Ok(None) };
            if found == name {
                return Ok(Some(prefix));
            }
            from = Some(after(prefix));
        }
    }

    fn list(&self, place: &Place, from: Option<&[u8]>, limit: usize) -> Result<Listing> {
        let mut listing = Listing::default();
        if place.depth == self.reading.pattern.directories.len() {
            self.each_file(&place.prefix, from, &mut |name, record, key| {
                listing.items.push(Item::File(name, record.oid, record.size));
                let is_full = listing.items.len() >= limit;
                listing.next = is_full.then(|| key.to_vec());
                Ok(!is_full)
            })?;
            return Ok(listing);
        }
        let mut from = from.map(<[u8]>::to_vec);
        while let Some((name, prefix)) = self.next_directory(place, from.as_deref())? {
            listing.items.push(Item::Directory(name));
            let next = after(prefix);
            if listing.items.len() >= limit {
                listing.next = Some(next);
                break;
            }
            from = Some(next);
        }
        Ok(listing)
    }

    /// The first directory at or behind a key, with what its entries begin with.
    pub(super) fn next_directory(
        &self,
        place: &Place,
        from: Option<&[u8]>,
    ) -> Result<Option<(String, Vec<u8>)>> {
        let component = &self.reading.pattern.directories[place.depth];
        let low =
            [&place.prefix[..], if component.fields.is_empty() { &[] } else { &[NO_VALUE + 1] }].concat();
        let low = from.map_or(low.clone(), |from| from.to_vec().max(low));
        let Some(record) = self.first_visible(&low, &after(place.prefix.clone()))? else { return Ok(None) };
        let mut prefix = place.prefix.clone();
        for field in &component.fields {
            record.value(field.number).iter().for_each(|value| value.put_key(&mut prefix));
        }
        if component.fields.is_empty() {
            // Text alone: there is one, and nothing behind it.
            return Ok(from.is_none().then_some((component.to_string(), prefix)));
        }
        Ok(component.compose(&record).map(|name| (names::of_directory(name), prefix)))
    }

    /// The first record of a range that the view shows.
    fn first_visible(&self, low: &[u8], high: &[u8]) -> Result<Option<Record>> {
        let mut found = None;
        self.each_visible(low, high, &mut |record, _| {
            found = Some(record);
            Ok(false)
        })?;
        Ok(found)
    }

    pub(super) fn each_visible(
        &self,
        low: &[u8],
        high: &[u8],
        call: &mut dyn FnMut(Record, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let mut entries = self.snapshot.range(&self.archive.trees().entries, low..high);
        while entries.advance()? {
            let oid = oid_of_entry(entries.key())?;
            let lost = || Error::Inconsistent(format!("an index has {oid}, which there is not"));
            let record = self.archive.record_in(&self.snapshot, oid)?.ok_or_else(lost)?;
            if self.shows(&record) && !call(record, entries.key())? {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn shows(&self, record: &Record) -> bool {
        let has = |number: &u32| record.value(*number).is_some();
        self.reading.pattern.fields().iter().all(has)
            && self.reading.condition.as_ref().is_none_or(|condition| condition.is_true(record))
    }

    /// Calls for each file of a directory, behind the entry of one.
    pub(super) fn each_file(
        &self,
        prefix: &[u8],
        from: Option<&[u8]>,
        call: &mut TellFile<'_>,
    ) -> Result<()> {
        // Those of one name are beside each other, the oldest first.
        let without_oid = |key: &[u8]| key[..key.len().saturating_sub(16)].to_vec();
        let mut last = from.map(without_oid);
        let low = from.map_or(prefix.to_vec(), |from| [from, &[0]].concat());
        self.each_visible(&low.max(prefix.to_vec()), &after(prefix.to_vec()), &mut |record, key| {
            let own = without_oid(key);
            let is_oldest = last.as_ref() != Some(&own);
            last = Some(own);
            match self.reading.pattern.file.compose(&record) {
                Some(plain) => call(names::of_file(&plain, record.oid, is_oldest), record, key),
                None => Ok(true),
            }
        })
    }

    /// The record of a file in a directory.
    pub(super) fn find(&self, place: &Place, name: &str) -> Result<Option<Oid>> {
        let mut plain = vec![name.to_string()];
        plain.extend(names::without_suffix(name));
        for base in &plain {
            let Ok(values) = self.reading.pattern.file.read(base) else { continue };
            let mut prefix = place.prefix.clone();
            let of_directories =
                self.reading.pattern.directories.iter().flat_map(|component| &component.fields);
            let mut seen: Vec<u32> = of_directories.map(|field| field.number).collect();
            for (field, value) in self.reading.pattern.file.fields.iter().zip(&values) {
                if !seen.contains(&field.number) {
                    seen.push(field.number);
                    value.put_key(&mut prefix);
                }
            }
            if let Some(found) = self.named(&prefix, name)? {
                return Ok(Some(found));
            }
        }
        // A name that was cut says nothing of its fields: all of the directory are looked at.
        match names::has_suffix(name) {
            true => self.named(&place.prefix, name),
            false => Ok(None),
        }
    }

    /// The file of this name among those whose entries begin so.
    fn named(&self, prefix: &[u8], name: &str) -> Result<Option<Oid>> {
        let mut found = None;
        self.each_file(prefix, None, &mut |own, record, _| {
            found = (own == name).then_some(record.oid);
            Ok(found.is_none())
        })?;
        Ok(found)
    }
}
