//! Directories made of fields: a view has a pattern, and perhaps a condition; its index is over the pattern's fields.
//!
//! | file | is about |
//! |---|---|
//! | `names.rs` | escaping, names that are too long or given twice |
//! | `pattern.rs` | fields to names and back |
//! | `walk.rs` | directories and files of a view |
//! | `at.rs` | a view as a tree of names, for `tree/` |

mod at;
pub(crate) mod names;
mod pattern;
mod walk;

pub(crate) use walk::Walk;
pub use walk::{Item, Listing};

use crate::archive::Archive;
use crate::query::{parse, Expression};
use crate::schema::{Definition, Schema};
use crate::{Error, Result};
use pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A view, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Such as `/{artist}/{track:02}-{title}.{ext}`.
    pub pattern: String,
    /// Which records it shows, of those that have all fields of the pattern; empty: all.
    #[serde(default)]
    pub condition: String,
}

/// A view by the fields of a schema.
pub(crate) struct Reading {
    pattern: Pattern,
    condition: Option<Expression>,
}

/// Of a view's name, in bytes.
const MOST_NAME_BYTES: usize = 255;

impl Archive {
    /// Makes a view, and an index over the fields of its pattern if there is none.
    pub fn create_view(&self, name: &str, view: &View) -> Result<()> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let parts_are = name.split('/').all(|part| !["", ".", ".."].contains(&part));
        if name.len() > MOST_NAME_BYTES || !name.bytes().all(is_name) || !parts_are {
            let name = name.escape_debug();
            return Err(Error::Usage(format!(
                "'{name}' is no name of a view: letters, digits and . _ - / are, {MOST_NAME_BYTES} at most"
            )));
        }
        self.change_views(
            &mut |views, schema| {
                view.read(schema)?;
                match views.insert(name.to_string(), view.clone()) {
                    Some(_) => Err(Error::Conflict(format!("there is a view {name} already"))),
                    None => Ok(()),
                }
            },
            name,
        )
    }

    /// Removes a view. Its index stays until the schema goes without it.
    pub fn drop_view(&self, name: &str) -> Result<()> {
        self.change_views(&mut |views, _| views.remove(name).map(|_| ()).ok_or_else(|| no_view(name)), name)
    }

    /// The views by name.
    pub fn views(&self) -> Result<BTreeMap<String, View>> {
        Ok(self.setting("views")?.unwrap_or_default())
    }

    fn view(&self, schema: &Schema, name: &str) -> Result<Reading> {
        self.views()?.get(name).ok_or_else(|| no_view(name))?.read(schema)
    }
}

fn no_view(name: &str) -> Error {
    Error::Unknown(format!("there is no view '{}'", name.escape_debug()))
}

impl View {
    fn read(&self, schema: &Schema) -> Result<Reading> {
        let condition = match self.condition.trim() {
            "" => None,
            _ => Some(parse(schema, &self.condition)?),
        };
        Ok(Reading { pattern: Pattern::parse(schema, &self.pattern)?, condition })
    }
}

/// The definition with the indexes that views need and it lacks; each view must be able to do with it.
pub(crate) fn with_indexes(
    definition: &Definition,
    views: &BTreeMap<String, View>,
    before: &Schema,
) -> Result<Definition> {
    let mut definition = definition.clone();
    for (name, view) in views {
        let after = definition.after(before)?;
        let of_view =
            |error: Error| Error::Schema(format!("view {name} needs what it would not have: {error}"));
        let fields = view.read(&after).map_err(of_view)?.pattern.fields();
        if !after.indexes.iter().any(|index| index.fields == fields) {
            let names =
                fields.iter().filter_map(|number| after.by_number(*number)).map(|field| field.name.clone());
            definition.indexes.push(names.collect());
        }
    }
    Ok(definition)
}
