//! A view as a tree of names: what is at a path of it, and what a record has that is to be there.

use super::names;
use super::walk::Walk;
use crate::query::after;
use crate::rows::Record;
use crate::schema::Schema;
use crate::{Error, Metadata, Result};

impl Walk<'_> {
    /// The record of a file, and whether no other has its fields.
    pub(crate) fn file_at(&self, given: &[&str]) -> Result<Option<(Record, bool)>> {
        let Some((file, directories)) = given.split_last() else { return Ok(None) };
        if directories.len() != self.reading.pattern.directories.len() {
            return Ok(None);
        }
        let Some(place) = self.place(directories)? else { return Ok(None) };
        let Some(oid) = self.find(&place, file)? else { return Ok(None) };
        let Some(record) = self.archive.record_in(&self.snapshot, oid)? else { return Ok(None) };
        if self.reading.pattern.file.compose(&record).as_deref() != Some(*file) {
            return Ok(Some((record, true)));
        }
        let mut prefix = record.entry(&self.index).unwrap_or_default();
        prefix.truncate(prefix.len().saturating_sub(16));
        let mut count = 0;
        self.each_visible(&prefix, &after(prefix.clone()), &mut |_, _| {
            count += 1;
            Ok(count < 2)
        })?;
        Ok(Some((record, count < 2)))
    }

    /// Names of the directories in one.
    pub(crate) fn each_directory(&self, given: &[&str], call: &mut dyn FnMut(String)) -> Result<()> {
        if given.len() >= self.reading.pattern.directories.len() {
            return Ok(());
        }
        let Some(place) = self.place(given)? else { return Ok(()) };
        let mut from = None;
        while let Some((name, prefix)) = self.next_directory(&place, from.as_deref())? {
            call(name);
            from = Some(after(prefix));
        }
        Ok(())
    }

    /// The files in a directory.
    pub(crate) fn each_file_of(
        &self,
        given: &[&str],
        call: &mut dyn FnMut(&str, Record) -> Result<bool>,
    ) -> Result<()> {
        match self.place(given)? {
            Some(place) if place.depth == self.reading.pattern.directories.len() => {
                self.each_file(&place.prefix, None, &mut |name, record, _| call(&name, record))
            }
            _ => Ok(()),
        }
    }

    /// All records below a directory.
    pub(crate) fn each_below(
        &self,
        given: &[&str],
        call: &mut dyn FnMut(Record) -> Result<bool>,
    ) -> Result<()> {
        let Some(place) = self.place(given)? else { return Ok(()) };
        self.each_visible(&place.prefix, &after(place.prefix.clone()), &mut |record, _| call(record))
    }

    /// The fields of a record that is to be at a path, or of all that are to be below it.
    pub(crate) fn fields_at(&self, schema: &Schema, path: &str, is_directory: bool) -> Result<Metadata> {
        let (pattern, given) = (&self.reading.pattern, path.split('/').collect::<Vec<_>>());
        let fits = match is_directory {
            true => given.len() <= pattern.directories.len(),
            false => given.len() == pattern.directories.len() + 1,
        };
        match fits {
            true => pattern.fields_of(schema, path, &given),
            false => Err(Error::Conflict(format!(
                "{path} has {} names: in this view files are below {} directories",
                given.len(),
                pattern.directories.len()
            ))),
        }
    }

    /// Whether a directory can have this path.
    pub(crate) fn check_directory(&self, path: &str) -> Result<()> {
        let directories = &self.reading.pattern.directories;
        let given: Vec<&str> = path.split('/').collect();
        if given.len() > directories.len() {
            let text = format!("{path}: this view has {} levels of directories", directories.len());
            return Err(Error::Conflict(text));
        }
        for (component, name) in directories.iter().zip(given) {
            let own = component.canonical(name)?.map(names::of_directory);
            if own.as_deref() != Some(name) {
                let own = own.unwrap_or_default();
                return Err(Error::Conflict(format!("{name} would be {own} in this view")));
            }
        }
        Ok(())
    }

    /// Whether the view shows a record at that path, or below it.
    pub(crate) fn check_shown(&self, record: &Record, path: &str, is_directory: bool) -> Result<()> {
        let pattern = &self.reading.pattern;
        let of_directories = pattern.directories.iter();
        let composed = of_directories.map(|component| component.compose(record).map(names::of_directory));
        let file = pattern.file.compose(record).map(|plain| names::of_file(&plain, record.oid, true));
        let composed = composed.chain([file]).collect::<Option<Vec<String>>>();
        let Some(composed) = composed.filter(|_| self.shows(record)) else {
            return Err(Error::Conflict(format!("{path}: what would be there does not satisfy the view")));
        };
        let (own, given) = (composed.join("/"), path.split('/').count());
        match is_directory || own == path {
            true if composed[..given.min(composed.len())].join("/") == path => Ok(()),
            _ => Err(Error::Conflict(format!("{path} would be {own} in this view"))),
        }
    }
}
