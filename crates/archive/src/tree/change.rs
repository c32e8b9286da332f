//! Changes of what is at paths: each is one transaction, in which it looks first. So whoever is refused, by a
//! protection of one of a thousand files, finds all as it was.

use super::look::{Below, Found, Look};
use super::place::Target;
use super::{below, joined, joined_new, parent_of, Folder, Node, Root};
use crate::archive::{Archive, Upload};
use crate::rows::Record;
use crate::schema::{Schema, Value};
use crate::{Error, Metadata, Name, Result, Stored};
use std::io::Read;
use std::sync::Arc;
use teak_core::{Snapshot, Transaction};

/// Is asked, in the transaction, whether what is at a path is what is to be changed.
pub type Check<'a> = dyn Fn(Option<&Node>) -> Result<()> + 'a;

/// Is told what is at a path: the properties that it is to have, and metadata that a record is to have besides.
pub type ChangeProperties<'a> = dyn FnMut(&Node) -> Result<(Vec<String>, Metadata)> + 'a;

/// How often something that a record's change has come between is looked at again.
const ATTEMPTS: usize = 100;

/// What a change works with.
struct Now<'a> {
    archive: &'a Archive,
    snapshot: Arc<Snapshot>,
    schema: &'a Schema,
}

impl<'a> Now<'a> {
    fn look<'r>(&'r self, root: Root<'r>) -> Result<Look<'r>> {
        self.archive.look_in(Arc::clone(&self.snapshot), self.schema, root)
    }

    /// Locks a record, which must be as it was seen.
    fn lock(&self, txn: &mut Transaction, seen: &Record) -> Result<Record> {
        let record = self.archive.lock_record(txn, seen.oid)?;
        match record.version == seen.version {
            true => Ok(record),
            false => {
                let (oid, found, wanted) = (seen.oid, record.version, seen.version);
                Err(Error::OtherVersion { oid, found, wanted })
            }
        }
    }

    fn remove(&self, txn: &mut Transaction, root: Root<'_>, path: &str, all: &Below) -> Result<()> {
        for (_, seen) in &all.files {
            let record = self.lock(txn, seen)?;
            self.archive.remove_in(txn, self.schema, &record)?;
        }
        self.remove_folders(txn, root, path, all)
    }

    fn remove_folders(&self, txn: &mut Transaction, root: Root<'_>, path: &str, all: &Below) -> Result<()> {
        let mut folders = all.folders.iter();
        folders.try_for_each(|(rest, _)| self.archive.remove_folder(txn, root, &format!("{path}{rest}")))
    }

    /// The directory of something that goes stays, though nothing may be in it.
    fn keep_parent(&self, txn: &mut Transaction, look: &Look<'_>, path: &str) -> Result<()> {
        let (parent, _) = parent_of(path);
        match look.directory(parent)? {
            Some(folder) if folder.created.is_none() && !parent.is_empty() && look.root == Root::Files => {
                self.archive.write_folder(txn, look.root, parent, &folder)
            }
            _ => Ok(()),
        }
    }
}

impl Archive {
    fn change_paths<T>(&self, work: &mut dyn FnMut(&Now<'_>, &mut Transaction) -> Result<T>) -> Result<T> {
        let paths = self.paths();
        let schema = self.schema_shared();
        let mut attempt = 0;
        let done = loop {
            attempt += 1;
            let done = self.transact(|txn| {
                let snapshot = Arc::new(self.engine().snapshot());
                work(&Now { archive: self, snapshot, schema: &schema }, txn)
            });
            match done {
                Err(Error::OtherVersion { .. } | Error::Missing(Name::Record(_))) if attempt < ATTEMPTS => {}
                done => break done,
            }
        };
        drop((schema, paths));
        let done = done?;
        self.answered()?;
        Ok(done)
    }

    /// Makes a directory.
    pub fn make_directory(&self, root: Root<'_>, path: &str) -> Result<()> {
        let path = joined_new(path)?;
        self.change_paths(&mut |now, txn| {
            let look = now.look(root)?;
            look.check_new(&path)?;
            look.check_directory(&path)?;
            match look.node(&path)? {
                Some(_) => Err(Error::Conflict(format!("{path} is there already"))),
                None => self.write_folder(txn, root, &path, &Folder::default()),
            }
        })
    }

    /// Stores bytes as the file of a path, with metadata besides what the path says. A file that is there goes in the
    /// transaction in which the new one comes; what was told of it and is not told of the new one stays.
    pub fn put_at(
        &self,
        root: Root<'_>,
        path: &str,
        source: &mut dyn Read,
        metadata: &Metadata,
        check: &Check<'_>,
    ) -> Result<(Stored, bool)> {
        let path = joined_new(path)?;
        let schema = self.schema();
        let mut metadata = metadata.clone();
        if metadata.lacks(&schema, "file.modified") {
            metadata.nothing("file.modified");
        }
        // What cannot be is told before a terabyte was read.
        let look = self.look(root)?;
        let old = of_file(&look, &path, check)?;
        self.values_at(&look, &schema, &path, &metadata, old.as_ref())?;
        drop((look, schema));
        let mut upload = Upload::new(self);
        let (data, size) = upload.read(source)?;
        self.change_paths(&mut |now, txn| {
            let look = now.look(root)?;
            let old = of_file(&look, &path, check)?;
            let old = old.map(|old| now.lock(txn, &old)).transpose()?;
            let values = self.values_at(&look, now.schema, &path, &metadata, old.as_ref())?;
            let record = self.new_record(data, size, values);
            look.check_shown(&record, Target { path: &path, is_directory: false })?;
            let was_there = upload.store(txn, now.schema, &record)?;
            if let Some(old) = &old {
                self.remove_in(txn, now.schema, old)?;
            }
            Ok((Stored { oid: record.oid, data, size, was_there }, old.is_some()))
        })
    }

    fn values_at(
        &self,
        look: &Look<'_>,
        schema: &Schema,
        path: &str,
        metadata: &Metadata,
        old: Option<&Record>,
    ) -> Result<Vec<(u32, Value)>> {
        let fields = look.fields_at(schema, Target { path, is_directory: false }, "")?;
        let values = old.map(|old| old.values.clone()).unwrap_or_default();
        let values = fields.over(schema, metadata.over(schema, values)?)?;
        schema.check(&values)?;
        Ok(values)
    }

    /// Removes a file, or a directory with all that is below it.
    pub fn remove_at(&self, root: Root<'_>, path: &str, check: &Check<'_>) -> Result<()> {
        let path = joined_new(path)?;
        self.change_paths(&mut |now, txn| {
            let look = now.look(root)?;
            check(look.node(&path)?.as_ref())?;
            let all = look.below(&path)?.ok_or_else(|| nothing_at(&path))?;
            now.keep_parent(txn, &look, &path)?;
            now.remove(txn, root, &path, &all)
        })
    }

    /// Gives a file, or a directory with all that is below it, another path: the records stay, with other metadata.
    /// Whether something that was there went for it, which it does only if `overwrite` says so.
    pub fn move_at(&self, root: Root<'_>, from: &str, to: &str, overwrite: bool) -> Result<bool> {
        let (from, to) = (joined_new(from)?, joined_new(to)?);
        apart(&from, &to)?;
        self.change_paths(&mut |now, txn| {
            let look = now.look(root)?;
            let all = look.below(&from)?.ok_or_else(|| nothing_at(&from))?;
            let target = Target { path: &to, is_directory: all.is_directory };
            let replaced = self.make_room(now, txn, &look, target, overwrite)?;
            if look.walk.is_some() && all.is_directory && from.split('/').count() != to.split('/').count() {
                return Err(Error::Conflict(format!("{to} has another level than {from} in this view")));
            }
            now.keep_parent(txn, &look, &from)?;
            for (rest, seen) in &all.files {
                let old = now.lock(txn, seen)?;
                let fields = look.fields_at(now.schema, target, rest)?;
                let new = self.update_in(txn, now.schema, &old, &fields)?;
                look.check_shown(&new, target)?;
            }
            now.remove_folders(txn, root, &from, &all)?;
            let mut folders = all.folders.iter();
            folders.try_for_each(|(rest, folder)| {
                self.write_folder(txn, root, &format!("{to}{rest}"), folder)
            })?;
            Ok(replaced)
        })
    }

    /// Makes records of the same data at another path, perhaps of another tree, with what the old ones were told. Of a
    /// directory that alone, unless `deep`. Whether something that was there went for it.
    pub fn copy_at(
        &self,
        (root, from): (Root<'_>, &str),
        (to_root, to): (Root<'_>, &str),
        overwrite: bool,
        deep: bool,
    ) -> Result<bool> {
        let (from, to) = (joined(from)?, joined_new(to)?);
        if root == to_root {
            apart(&from, &to)?;
        }
        self.change_paths(&mut |now, txn| {
            let (look, of_target) = (now.look(root)?, now.look(to_root)?);
            let mut all = look.below(&from)?.ok_or_else(|| nothing_at(&from))?;
            if all.is_directory && !deep {
                all.folders.truncate(1);
                all.files.clear();
            }
            let target = Target { path: &to, is_directory: all.is_directory };
            let replaced = self.make_room(now, txn, &of_target, target, overwrite)?;
            for (rest, seen) in &all.files {
                let old = now.lock(txn, seen)?;
                let mut fields = of_target.fields_at(now.schema, target, rest)?;
                if fields.lacks(now.schema, "system.path") {
                    // There is a record at that path, and it stays the only one.
                    fields.nothing("system.path");
                }
                let values = fields.over(now.schema, old.values)?;
                now.schema.check(&values)?;
                let record = self.new_record(old.data, old.size, values);
                of_target.check_shown(&record, target)?;
                if !self.store_again(txn, now.schema, &record)? {
                    return Err(Error::Missing(Name::Data(old.data)));
                }
            }
            let mut folders = all.folders.iter();
            folders.try_for_each(|(rest, folder)| {
                let copy = Folder { created: None, ..folder.clone() };
                self.write_folder(txn, to_root, &format!("{to}{rest}"), &copy)
            })?;
            Ok(replaced)
        })
    }

    /// Removes what is at a path that something is to have; whether there was something.
    fn make_room(
        &self,
        now: &Now<'_>,
        txn: &mut Transaction,
        look: &Look<'_>,
        target: Target<'_>,
        overwrite: bool,
    ) -> Result<bool> {
        look.check_new(target.path)?;
        if target.is_directory {
            look.check_directory(target.path)?;
        }
        if let Some(Found { is_alone: false, .. }) = look.file(target.path)? {
            return Err(several(target.path));
        }
        let Some(there) = look.below(target.path)? else { return Ok(false) };
        if !overwrite {
            return Err(Error::Precondition(format!("{} is there already", target.path)));
        }
        now.remove(txn, look.root, target.path, &there)?;
        Ok(true)
    }

    /// Changes the properties of what is at a path, and perhaps the metadata of a record besides.
    pub fn change_properties(
        &self,
        root: Root<'_>,
        path: &str,
        change: &mut ChangeProperties<'_>,
    ) -> Result<()> {
        let path = joined(path)?;
        self.change_paths(&mut |now, txn| {
            let look = now.look(root)?;
            let mut node = look.node(&path)?.ok_or_else(|| nothing_at(&path))?;
            if let Node::File(record) = &mut node {
                **record = now.lock(txn, record)?;
            }
            let (properties, mut metadata) = change(&node)?;
            match &node {
                Node::File(record) => {
                    match properties.is_empty() {
                        true => metadata.nothing("system.properties"),
                        false => {
                            let list = properties.into_iter().map(Value::String).collect();
                            metadata.value("system.properties", Value::List(list))
                        }
                    };
                    self.update_in(txn, now.schema, record, &metadata).map(|_| ())
                }
                Node::Directory(folder) => {
                    let folder = Folder { created: folder.created, properties };
                    self.write_folder(txn, root, &path, &folder)
                }
            }
        })
    }
}

/// The file that is at a path, if what is there may be overwritten by one.
fn of_file(look: &Look<'_>, path: &str, check: &Check<'_>) -> Result<Option<Record>> {
    look.check_new(path)?;
    if let Some(folder) = look.directory(path)? {
        check(Some(&Node::Directory(folder)))?;
        return Err(Error::Conflict(format!("{path} is a directory")));
    }
    let Some(found) = look.file(path)? else {
        check(None)?;
        return Ok(None);
    };
    let node = Node::File(Box::new(found.record));
    check(Some(&node))?;
    match node {
        Node::File(record) if found.is_alone => Ok(Some(*record)),
        _ => Err(several(path)),
    }
}

fn several(path: &str) -> Error {
    Error::Conflict(format!("several records have the path {path}: remove or move all but one first"))
}

fn nothing_at(path: &str) -> Error {
    Error::Unknown(format!("there is nothing at {path}"))
}

/// Neither path may lie in the other.
fn apart(from: &str, to: &str) -> Result<()> {
    let is_in = |one: &str, other: &str| one == other || one.starts_with(&below(other));
    match is_in(from, to) || is_in(to, from) {
        true => Err(Error::Conflict(format!("{from} and {to} are in one another"))),
        false => Ok(()),
    }
}
