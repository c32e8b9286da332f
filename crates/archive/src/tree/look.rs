//! What is at a path, in it, and below it, at a moment.

use super::folders::{key, key_below};
use super::{below, joined_new, Folder, Node, Root, TellChild};
use crate::archive::{oid_of_entry, Archive};
use crate::query::after;
use crate::rows::Record;
use crate::schema::{built_in, Schema, Value};
use crate::view::{names, Walk};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use teak_core::Snapshot;

/// A tree at a moment.
pub(super) struct Look<'a> {
    pub(super) archive: &'a Archive,
    pub(super) root: Root<'a>,
    pub(super) snapshot: Arc<Snapshot>,
    /// Of a view.
    pub(super) walk: Option<Walk<'a>>,
}

/// A file of a path.
pub(super) struct Found {
    pub(super) record: Record,
    /// Whether no other record has this path.
    pub(super) is_alone: bool,
}

/// All that is at a path: what it is itself has an empty name, and what lies below it the rest of the path.
#[derive(Default)]
pub(super) struct Below {
    pub(super) is_directory: bool,
    pub(super) folders: Vec<(String, Folder)>,
    pub(super) files: Vec<(String, Record)>,
}

/// Of what one change may concern.
const MOST_BELOW: usize = 100_000;

impl Archive {
    pub(super) fn look<'a>(&'a self, root: Root<'a>) -> Result<Look<'a>> {
        self.look_in(Arc::new(self.engine().snapshot()), &self.schema(), root)
    }

    pub(super) fn look_in<'a>(
        &'a self,
        snapshot: Arc<Snapshot>,
        schema: &Schema,
        root: Root<'a>,
    ) -> Result<Look<'a>> {
        let walk = match root {
            Root::Files => None,
            Root::View(name) => Some(self.walk_in(Arc::clone(&snapshot), schema, name)?),
        };
        Ok(Look { archive: self, root, snapshot, walk })
    }
}

impl Look<'_> {
    pub(super) fn node(&self, path: &str) -> Result<Option<Node>> {
        if let Some(folder) = self.directory(path)? {
            return Ok(Some(Node::Directory(folder)));
        }
        Ok(self.file(path)?.map(|found| Node::File(Box::new(found.record))))
    }

    /// The directory at a path, whether it was made or is there because of what is in it.
    pub(super) fn directory(&self, path: &str) -> Result<Option<Folder>> {
        if let Some(folder) = self.folder(path)? {
            return Ok(Some(folder));
        }
        let is_there = path.is_empty() || self.has_folders(path)? || self.has_records(path)?;
        Ok(is_there.then(Folder::default))
    }

    fn folder(&self, path: &str) -> Result<Option<Folder>> {
        let key = key(self.root, path);
        let row = self.snapshot.get(&self.archive.trees().directories, &key)?;
        row.map(|row| Folder::read(&key, &row)).transpose()
    }

    fn has_folders(&self, path: &str) -> Result<bool> {
        let prefix = key_below(self.root, path);
        let mut rows = self.snapshot.range(&self.archive.trees().directories, prefix.clone()..after(prefix));
        Ok(rows.advance()?)
    }

    /// Whether a record is below the path.
    fn has_records(&self, path: &str) -> Result<bool> {
        if let Some(walk) = &self.walk {
            return Ok(walk.place(&split(path))?.is_some());
        }
        let prefix = entries_below(path);
        let mut entries = self.snapshot.range(&self.archive.trees().entries, prefix.clone()..after(prefix));
        Ok(entries.advance()?)
    }

    /// The file at a path, by its plain name or by one with digits of the OID.
    pub(super) fn file(&self, path: &str) -> Result<Option<Found>> {
        if path.is_empty() {
            return Ok(None);
        }
        if let Some(walk) = &self.walk {
            return walk
                .file_at(&split(path))
                .map(|found| found.map(|(record, is_alone)| Found { record, is_alone }));
        }
        let mut plain = Vec::new();
        if self.directory(path)?.is_none() {
            plain = self.records_of(path, 2)?;
        }
        if !plain.is_empty() {
            let is_alone = plain.len() == 1;
            return Ok(Some(Found { record: plain.swap_remove(0), is_alone }));
        }
        let (parent, name) = super::parent_of(path);
        let Some(base) = names::without_suffix(name) else { return Ok(None) };
        let base = below(parent) + &base;
        let is_beside = self.directory(&base)?.is_some();
        let of_base = self.records_of(&base, usize::MAX)?.into_iter().skip(usize::from(!is_beside));
        let own = |record: &Record| names::of_file(super::parent_of(&base).1, record.oid, false) == name;
        Ok(of_base.into_iter().find(own).map(|record| Found { record, is_alone: true }))
    }

    /// Records of one path, the oldest first.
    fn records_of(&self, path: &str, most: usize) -> Result<Vec<Record>> {
        let mut prefix = built_in::BY_PATH.to_be_bytes().to_vec();
        Value::String(path.to_string()).put_key(&mut prefix);
        let mut entries = self.snapshot.range(&self.archive.trees().entries, prefix.clone()..after(prefix));
        let mut records = Vec::new();
        while records.len() < most && entries.advance()? {
            records.push(self.record_of(entries.key())?);
        }
        Ok(records)
    }

    fn record_of(&self, entry: &[u8]) -> Result<Record> {
        let oid = oid_of_entry(entry)?;
        let lost = || Error::Inconsistent(format!("an index has {oid}, which there is not"));
        self.archive.record_in(&self.snapshot, oid)?.ok_or_else(lost)
    }

    pub(super) fn each_child(&self, path: &str, call: &mut TellChild<'_>) -> Result<()> {
        let mut directories = self.made_in(path)?;
        match &self.walk {
            Some(walk) => walk.each_directory(&split(path), &mut |name| {
                directories.entry(name).or_default();
            })?,
            None => self.each_implied(path, &mut |name| {
                directories.entry(name).or_default();
            })?,
        }
        for (name, folder) in &directories {
            if !call(name, Node::Directory(folder.clone()))? {
                return Ok(());
            }
        }
        let mut tell = |name: &str, record| call(name, Node::File(Box::new(record)));
        match &self.walk {
            Some(walk) => walk.each_file_of(&split(path), &mut tell),
            None => self.each_file(path, &directories, &mut tell),
        }
    }

    /// Directories in one that have rows, or have directories with rows.
    fn made_in(&self, path: &str) -> Result<BTreeMap<String, Folder>> {
        let (prefix, mut made) = (key_below(self.root, path), BTreeMap::new());
        let (mut from, end) = (prefix.clone(), after(prefix.clone()));
        loop {
            let mut rows = self.snapshot.range(&self.archive.trees().directories, from.clone()..end.clone());
            let mut skip = None;
            while skip.is_none() && rows.advance()? {
                let (name, is_deeper) = first_name(&rows.key()[prefix.len()..])?;
                match is_deeper {
                    false => drop(made.insert(name, Folder::read(rows.key(), rows.value()?)?)),
                    true => {
                        skip = Some(after([&prefix[..], name.as_bytes(), b"/"].concat()));
                        made.entry(name).or_default();
                    }
                }
            }
            match skip {
                Some(next) => from = next,
                None => break,
            }
        }
        // The tree itself may have a row.
        made.remove("");
        Ok(made)
    }

    /// Directories in one that paths of records imply.
    fn each_implied(&self, path: &str, call: &mut dyn FnMut(String)) -> Result<()> {
        let prefix = entries_below(path);
        let (mut from, end) = (prefix.clone(), after(prefix.clone()));
        loop {
            let mut entries = self.snapshot.range(&self.archive.trees().entries, from.clone()..end.clone());
            let mut skip = None;
            while skip.is_none() && entries.advance()? {
                let rest = path_of_entry(entries.key(), prefix.len())?;
                if let Some((name, _)) = rest.split_once('/') {
                    skip = Some(after(entries_beginning(&(below(path) + name + "/"))));
                    if is_name(name) {
                        call(name.to_string());
                    }
                }
            }
            match skip {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    /// Files in a directory that has these directories.
    fn each_file(
        &self,
        path: &str,
        directories: &BTreeMap<String, Folder>,
        call: &mut dyn FnMut(&str, Record) -> Result<bool>,
    ) -> Result<()> {
        let prefix = entries_below(path);
        let (mut from, end) = (prefix.clone(), after(prefix.clone()));
        let mut last = String::new();
        loop {
            let mut entries = self.snapshot.range(&self.archive.trees().entries, from.clone()..end.clone());
            let mut skip = None;
            while skip.is_none() && entries.advance()? {
                let name = path_of_entry(entries.key(), prefix.len())?;
                if let Some((directory, _)) = name.split_once('/') {
                    skip = Some(after(entries_beginning(&(below(path) + directory + "/"))));
                } else if is_name(&name) {
                    let record = self.record_of(entries.key())?;
                    let is_plain = name != last && !directories.contains_key(&name);
                    let shown =
                        if is_plain { name.clone() } else { names::of_file(&name, record.oid, false) };
                    last = name;
                    if !call(&shown, record)? {
                        return Ok(());
                    }
                }
            }
            match skip {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }

    /// All that is at a path; `None`: nothing is.
    pub(super) fn below(&self, path: &str) -> Result<Option<Below>> {
        let Some(folder) = self.directory(path)? else {
            let of_file =
                |found: Found| Below { files: vec![(String::new(), found.record)], ..Below::default() };
            return Ok(self.file(path)?.map(of_file));
        };
        let mut all = Below { is_directory: true, folders: vec![(String::new(), folder)], files: Vec::new() };
        let (own, prefix) = (key(self.root, path), key_below(self.root, path));
        let mut rows = self.snapshot.range(&self.archive.trees().directories, prefix.clone()..after(prefix));
        while rows.advance()? {
            let rest = String::from_utf8_lossy(&rows.key()[own.len()..]).into_owned();
            all.folders.push((rest, Folder::read(rows.key(), rows.value()?)?));
            self.bounded(path, &all)?;
        }
        if let Some(walk) = &self.walk {
            walk.each_below(&split(path), &mut |record| {
                all.files.push((String::new(), record));
                self.bounded(path, &all).map(|()| true)
            })?;
            return Ok(Some(all));
        }
        let prefix = entries_below(path);
        let mut entries =
            self.snapshot.range(&self.archive.trees().entries, prefix.clone()..after(prefix.clone()));
        while entries.advance()? {
            let rest = format!("/{}", path_of_entry(entries.key(), prefix.len())?);
            all.files.push((rest, self.record_of(entries.key())?));
            self.bounded(path, &all)?;
        }
        Ok(Some(all))
    }

    fn bounded(&self, path: &str, all: &Below) -> Result<()> {
        match all.folders.len() + all.files.len() > MOST_BELOW {
            true => Err(Error::Conflict(format!(
                "{path} has more than {MOST_BELOW} files and directories: change it part by part"
            ))),
            false => Ok(()),
        }
    }

    /// Whether something can be made at a path: its directory is there, and none of its name.
    pub(super) fn check_new(&self, path: &str) -> Result<()> {
        joined_new(path)?;
        let (parent, _) = super::parent_of(path);
        // In a view directories are what records make them.
        match self.walk.is_none() && self.directory(parent)?.is_none() {
            true => Err(Error::Conflict(format!("there is no directory {parent}"))),
            false => Ok(()),
        }
    }
}

pub(super) fn split(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

fn is_name(name: &str) -> bool {
    !["", ".", ".."].contains(&name) && !name.contains('\0')
}

/// What is before the first slash, and whether there is one.
fn first_name(rest: &[u8]) -> Result<(String, bool)> {
    let end = rest.iter().position(|byte| *byte == b'/');
    let name = &rest[..end.unwrap_or(rest.len())];
    let name = String::from_utf8(name.to_vec()).map_err(|_| Error::row("directories", rest))?;
    Ok((name, end.is_some()))
}

/// What entries of records below a path begin with, in the index over paths.
fn entries_below(path: &str) -> Vec<u8> {
    entries_beginning(&below(path))
}

fn entries_beginning(path: &str) -> Vec<u8> {
    let mut prefix = built_in::BY_PATH.to_be_bytes().to_vec();
    Value::put_key_prefix(path, &mut prefix);
    prefix
}

/// Behind so many bytes of an entry in the index over paths: the rest of the path. A zero byte in it stays two.
fn path_of_entry(key: &[u8], prefix: usize) -> Result<String> {
    let rest = key.len().checked_sub(18).and_then(|end| key.get(prefix..end));
    let rest = rest.ok_or_else(|| Error::row("entries", key))?;
    Ok(String::from_utf8_lossy(rest).into_owned())
}
