//! What a record has that is to be at a path.

use super::look::Look;
use super::parent_of;
use crate::rows::Record;
use crate::schema::Schema;
use crate::{Metadata, Result};

/// Where records go: to one path, or below it.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) path: &'a str,
    pub(super) is_directory: bool,
}

impl Look<'_> {
    /// The fields of a record that is to be there; below a directory it has `rest` behind it.
    pub(super) fn fields_at(&self, schema: &Schema, to: Target<'_>, rest: &str) -> Result<Metadata> {
        if let Some(walk) = &self.walk {
            return walk.fields_at(schema, to.path, to.is_directory);
        }
        let path = format!("{}{rest}", to.path);
        let mut metadata = Metadata::default();
        metadata.text("file.name", parent_of(&path).1).text("system.path", path);
        Ok(metadata)
    }

    /// Whether it is to be seen there.
    pub(super) fn check_shown(&self, record: &Record, to: Target<'_>) -> Result<()> {
        match &self.walk {
            Some(walk) => walk.check_shown(record, to.path, to.is_directory),
            None => Ok(()),
        }
    }

    /// Whether a directory can have this path.
    pub(super) fn check_directory(&self, path: &str) -> Result<()> {
        match &self.walk {
            Some(walk) => walk.check_directory(path),
            None => Ok(()),
        }
    }
}
