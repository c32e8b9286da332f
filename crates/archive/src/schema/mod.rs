//! Which fields records have, and which indexes there are. Knows no archive: whether its records fit a schema is for
//! who changes one.
//!
//! | file | is about |
//! |---|---|
//! | `value.rs` | types, and values as texts and as bytes |
//! | `definition.rs` | a schema as people write it: JSON |

mod definition;
mod value;

pub use definition::{Definition, FieldDefinition, FullDefinition};
use value::MOST_LENGTH;
pub(crate) use value::NO_VALUE;
pub use value::{Scalar, Type, Value};

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Numbers of the fields that are always there.
pub(crate) mod built_in {
    pub(crate) const OID: u32 = 1;
    pub(crate) const DATA: u32 = 2;
    pub(crate) const SIZE: u32 = 3;
    pub(crate) const CREATED: u32 = 4;
    pub(crate) const CHANGED: u32 = 5;
    pub(crate) const VERSION: u32 = 6;
    pub(crate) const CONTENT_TYPE: u32 = 7;
    pub(crate) const PATH: u32 = 8;
    pub(crate) const PROPERTIES: u32 = 9;
    pub(crate) const FILE_NAME: u32 = 20;
    pub(crate) const FILE_MODIFIED: u32 = 21;
    /// The first that an archive's own schema gives.
    pub(crate) const FIRST_OWN: u32 = 100;

    /// The index over `system.data`, by which the archive itself knows whether data is in use.
    pub(crate) const BY_DATA: u32 = 1;
    /// The index over `system.path`.
    pub(crate) const BY_PATH: u32 = 2;
    pub(crate) const FIRST_OWN_INDEX: u32 = 100;
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// In records; never another field's, also when this one is gone.
    pub(crate) number: u32,
    /// With its namespace: `music.artist`.
    pub name: String,
    /// Of its values.
    #[serde(rename = "type", with = "as_text")]
    pub of_type: Type,
    /// Whether each record has it.
    pub required: bool,
    /// Whether expressions may name it.
    pub queryable: bool,
}

impl Field {
    /// Whether the archive itself sets it.
    pub fn is_computed(&self) -> bool {
        self.number <= built_in::VERSION
    }

    /// Whether it is always there, in each archive.
    pub fn is_built_in(&self) -> bool {
        self.number < built_in::FIRST_OWN
    }
}

mod as_text {
    use super::Type;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(of_type: &Type, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(of_type)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Type, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An index by a list of fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// In keys of entries; never another index's.
    pub(crate) number: u32,
    /// Numbers of its fields.
    pub(crate) fields: Vec<u32>,
    /// Whether it has all records.
    pub(crate) is_ready: bool,
}

/// The fields and indexes of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// How often it was changed.
    pub version: u64,
    /// The archive's own, and those that are always there.
    pub(crate) fields: Vec<Field>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) next_field: u32,
    pub(crate) next_index: u32,
    /// Indexes that are gone and may have entries still.
    pub(crate) dropped: Vec<u32>,
}

impl Default for Schema {
    /// With the fields that are always there.
    fn default() -> Schema {
        use built_in::*;
        let string = |length| Type::from(Scalar::String(length));
        let field = |number, name: &str, of_type: Type| Field {
            number,
            name: name.to_string(),
            of_type,
            required: false,
            queryable: true,
        };
        let fields = vec![
            field(OID, "system.oid", string(36)),
            field(DATA, "system.data", string(67)),
            field(SIZE, "system.size", Scalar::Long.into()),
            field(CREATED, "system.created", Scalar::Timestamp.into()),
            field(CHANGED, "system.changed", Scalar::Timestamp.into()),
            field(VERSION, "system.version", Scalar::Long.into()),
            field(CONTENT_TYPE, "system.content_type", string(255)),
            field(PATH, "system.path", string(3500)),
            Field {
                queryable: false,
                ..field(PROPERTIES, "system.properties", Type { list: true, ..string(MOST_LENGTH) })
            },
            field(FILE_NAME, "file.name", string(255)),
            field(FILE_MODIFIED, "file.modified", Scalar::Timestamp.into()),
        ];
        let index = |number, field| Index { number, fields: vec![field], is_ready: true };
        Schema {
            version: 0,
            fields,
            indexes: vec![index(BY_DATA, DATA), index(BY_PATH, PATH)],
            next_field: FIRST_OWN,
            next_index: FIRST_OWN_INDEX,
            dropped: Vec::new(),
        }
    }
}

impl Schema {
    /// With the fields that are always there now; when it was written there may have been fewer.
    pub(crate) fn with_built_in(mut self) -> Schema {
        for (at, field) in Schema::default().fields.into_iter().enumerate() {
            if self.by_number(field.number).is_none() {
                self.fields.insert(at.min(self.fields.len()), field);
            }
        }
        self
    }

    /// All fields.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The names of the fields of each index, and whether it can be used yet.
    pub fn indexes(&self) -> impl Iterator<Item = (Vec<&str>, bool)> {
        self.indexes.iter().map(|index| (self.names(index), index.is_ready))
    }

    pub(crate) fn names(&self, index: &Index) -> Vec<&str> {
        index.fields.iter().filter_map(|number| self.by_number(*number)).map(|field| &*field.name).collect()
    }

    pub(crate) fn by_number(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number)
    }

    /// The field of that name: with its namespace; without, if only one namespace has it; `file_name` is `file.name`,
    /// and so for all that are always there.
    pub fn field(&self, name: &str) -> Result<&Field> {
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            return Ok(field);
        }
        let (mut found, mut others) = (None, Vec::new());
        for field in &self.fields {
            if field.name.split_once('.').is_some_and(|(_, own)| own == name) {
                others.push(&*field.name);
                found = Some(field);
            }
        }
        if others.len() > 1 {
            return Err(Error::field(name, format!("could be {}: say which", others.join(" or "))));
        }
        let built_in = || self.fields.iter().find(|f| f.is_built_in() && f.name.replace('.', "_") == name);
        let none = || Error::field(name, "there is no field of that name, see `teak archive schema`");
        found.or_else(built_in).ok_or_else(none)
    }

    /// The value of a field that a text means, for a record.
    pub(crate) fn parse(&self, name: &str, text: &str) -> Result<(u32, Value)> {
        let field = self.settable(name)?;
        let value = field.of_type.parse(text).map_err(|problem| Error::field(&field.name, problem))?;
        Ok((field.number, value))
    }

    /// A field that who puts a record may set.
    pub(crate) fn settable(&self, name: &str) -> Result<&Field> {
        let field = self.field(name)?;
        match field.is_computed() {
            true => Err(Error::field(&field.name, "is set by the archive itself")),
            false => Ok(field),
        }
    }

    /// Whether a record can have these values, which are sorted by number.
    pub(crate) fn check(&self, values: &[(u32, Value)]) -> Result<()> {
        for (number, value) in values {
            let Some(field) = self.by_number(*number) else { continue };
            field.of_type.check(value).map_err(|problem| Error::field(&field.name, problem))?;
        }
        for field in self.fields.iter().filter(|field| field.required) {
            if !values.iter().any(|(number, _)| *number == field.number) {
                return Err(Error::field(&field.name, format!("is required, a {}", field.of_type)));
            }
        }
        Ok(())
    }
}
