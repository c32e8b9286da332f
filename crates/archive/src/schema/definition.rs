//! A schema as people write it.
//!
//! ```json
//! {"namespaces": {"music": {"artist": "string(100)", "track": {"type": "long", "required": true}}},
//!  "indexes": [["music.artist", "music.track"]]}
//! ```

use super::{built_in, Field, Index, Schema, Type};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of the values in an entry of an index, at most; the core takes keys of 16 KiB.
const MOST_KEY_BYTES: usize = 16_000;
/// Fields, and indexes, that a schema may have.
const MOST: usize = 1000;

/// The archive's own fields and indexes. Those of `system` and `file` are always there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Fields by namespace and name.
    #[serde(default)]
    pub namespaces: BTreeMap<String, BTreeMap<String, FieldDefinition>>,
    /// Lists of full names of fields.
    #[serde(default)]
    pub indexes: Vec<Vec<String>>,
}

/// A field: its type alone, or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldDefinition {
    /// Its type; it is not required, and queryable.
    Type(String),
    /// All of it.
    Full(FullDefinition),
}

/// A field in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullDefinition {
    /// Such as `string(100)`.
    #[serde(rename = "type")]
    pub of_type: String,
    /// Whether each record has it.
    #[serde(default)]
    pub required: bool,
    /// Whether expressions may name it.
    #[serde(default = "yes")]
    pub queryable: bool,
}

fn yes() -> bool {
    true
}

impl Definition {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Definition> {
        serde_json::from_str(text).map_err(|problem| Error::Schema(problem.to_string()))
    }

    /// What an archive has.
    pub fn of(schema: &Schema) -> Definition {
        let mut made = Definition::default();
        for field in schema.fields.iter().filter(|field| !field.is_built_in()) {
            let Some((namespace, name)) = field.name.split_once('.') else { continue };
            let full = FullDefinition {
                of_type: field.of_type.to_string(),
                required: field.required,
                queryable: field.queryable,
            };
            let of_namespace = made.namespaces.entry(namespace.to_string()).or_default();
            of_namespace.insert(name.to_string(), FieldDefinition::Full(full));
        }
        for index in schema.indexes.iter().filter(|index| index.number >= built_in::FIRST_OWN_INDEX) {
            made.indexes.push(schema.names(index).into_iter().map(str::to_string).collect());
        }
        made
    }

    /// The schema that comes after `before`: fields and indexes that are the same keep their numbers.
    pub(crate) fn after(&self, before: &Schema) -> Result<Schema> {
        let mut after = Schema { version: before.version + 1, ..before.clone() };
        after.fields.retain(Field::is_built_in);
        for (namespace, fields) in &self.namespaces {
            check_name(namespace)?;
            if ["system", "file"].contains(&&**namespace) {
                return Err(Error::Schema(format!("namespace {namespace} is the archive's own")));
            }
            for (name, definition) in fields {
                check_name(name)?;
                after.add_field(before, format!("{namespace}.{name}"), definition)?;
            }
        }
        if after.fields.len() > MOST || self.indexes.len() > MOST {
            return Err(Error::Schema(format!("there can be {MOST} fields and indexes at most")));
        }
        after.indexes.retain(|index| index.number < built_in::FIRST_OWN_INDEX);
        for names in &self.indexes {
            after.add_index(before, names)?;
        }
        let gone = before.indexes.iter().map(|index| index.number);
        let gone = gone.filter(|number| !after.indexes.iter().any(|index| index.number == *number));
        after.dropped.extend(gone);
        Ok(after)
    }
}

impl Schema {
    fn add_field(&mut self, before: &Schema, name: String, definition: &FieldDefinition) -> Result<()> {
        let (of_type, required, queryable) = match definition {
            FieldDefinition::Type(of_type) => (of_type, false, true),
            FieldDefinition::Full(full) => (&full.of_type, full.required, full.queryable),
        };
        let of_type: Type = of_type.parse().map_err(|problem| Error::field(&name, problem))?;
        let number = match before.fields.iter().find(|field| field.name == name) {
            Some(old) if !old.of_type.may_become(of_type) => {
                let problem = format!("is a {} and cannot become a {of_type}: drop it first", old.of_type);
                return Err(Error::field(name, problem));
            }
            Some(old) => old.number,
            None => {
                self.next_field += 1;
                self.next_field - 1
            }
        };
        self.fields.push(Field { number, name, of_type, required, queryable });
        Ok(())
    }

    fn add_index(&mut self, before: &Schema, names: &[String]) -> Result<()> {
        let shown = names.join(", ");
        let (mut fields, mut bytes) = (Vec::new(), 0);
        for name in names {
            let field = self.field(name)?;
            let problem = match field {
                _ if fields.contains(&field.number) => "is in it twice",
                Field { number: built_in::OID, .. } => "is what each index ends with",
                _ if !field.queryable => "is not queryable",
                _ if field.of_type.list => "is a list: records are found by lists without an index",
                _ => "",
            };
            if !problem.is_empty() {
                return Err(Error::field(&field.name, format!("{problem} (index {shown})")));
            }
            bytes += field.of_type.key_bytes();
            fields.push(field.number);
        }
        if fields.is_empty() || bytes > MOST_KEY_BYTES {
            let why = format!("has fields of {bytes} bytes: {MOST_KEY_BYTES} at most, 4 for each character");
            return Err(Error::Schema(format!("index ({shown}) {why}")));
        }
        if self.indexes.iter().any(|index| index.fields == fields) {
            return Err(Error::Schema(format!("index ({shown}) is there twice")));
        }
        let index = before.indexes.iter().find(|index| index.fields == fields).cloned();
        self.indexes.push(index.unwrap_or_else(|| {
            self.next_index += 1;
            Index { number: self.next_index - 1, fields, is_ready: false }
        }));
        Ok(())
    }
}

impl Type {
    /// Whether values of this type can be ones of the other, if they are short enough.
    fn may_become(self, other: Type) -> bool {
        use super::Scalar::{Binary, String};
        let kind = |of: Type| match of.scalar {
            String(_) => String(0),
            Binary(_) => Binary(0),
            scalar => scalar,
        };
        self.list == other.list && kind(self) == kind(other)
    }
}

fn check_name(name: &str) -> Result<()> {
    let mut letters = name.bytes();
    let first = letters.next().is_some_and(|byte| byte.is_ascii_lowercase());
    match first
        && name.len() <= 64
        && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    {
        true => Ok(()),
        false => Err(Error::Schema(format!(
            "'{}' cannot be a name: a to z, then a to z, 0 to 9 and _, 64 at most",
            name.escape_debug()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(before: &Schema, text: &str) -> Result<Schema> {
        Definition::parse(text)?.after(before)
    }

    #[test]
    fn what_stays_keeps_its_number_and_what_comes_again_gets_another() {
        let first = after(
            &Schema::default(),
            r#"{"namespaces": {"m": {"a": "string(10)", "b": {"type": "long", "required": true}}}, "indexes": [["m.a"], ["m.b", "m.a"]]}"#,
        )
        .unwrap();
        assert_eq!(Definition::of(&first).after(&first).unwrap(), Schema { version: 2, ..first.clone() });
        let second =
            after(&first, r#"{"namespaces": {"m": {"a": "string(20)"}}, "indexes": [["m.a"]]}"#).unwrap();
        assert_eq!(second.field("a").unwrap().number, first.field("m.a").unwrap().number);
        assert_eq!(second.dropped.len(), 1);
        let third = after(&second, r#"{"namespaces": {"m": {"b": "long"}}}"#).unwrap();
        assert_ne!(third.field("b").unwrap().number, first.field("b").unwrap().number);
        let stored = serde_json::to_string(&third).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&stored).unwrap(), third);
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_name() {
        let long = r#"{"namespaces": {"m": {"a": "long", "l": "list of long", "s": "string(9000)", "q": {"type": "long", "queryable": false}}}, "#;
        let own = after(&Schema::default(), &format!("{long} \"indexes\": []}}")).unwrap();
        for (text, part) in [
            ("{", "schema"),
            (r#"{"fields": {}}"#, "fields"),
            (r#"{"namespaces": {"system": {"a": "long"}}}"#, "system"),
            (r#"{"namespaces": {"M": {"a": "long"}}}"#, "'M'"),
            (r#"{"namespaces": {"m": {"a.b": "long"}}}"#, "a.b"),
            (r#"{"namespaces": {"m": {"a": "int"}}}"#, "field m.a: 'int' is no type"),
            (r#"{"namespaces": {"m": {"a": "string(5)"}}}"#, "field m.a: is a long and cannot become"),
            (&format!("{long} \"indexes\": [[]]}}"), "index ()"),
            (&format!("{long} \"indexes\": [[\"m.x\"]]}}"), "m.x"),
            (&format!("{long} \"indexes\": [[\"m.l\"]]}}"), "m.l"),
            (&format!("{long} \"indexes\": [[\"m.q\"]]}}"), "m.q"),
            (&format!("{long} \"indexes\": [[\"m.s\"]]}}"), "16000 at most"),
            (&format!("{long} \"indexes\": [[\"m.a\", \"m.a\"]]}}"), "twice"),
            (&format!("{long} \"indexes\": [[\"m.a\"], [\"a\"]]}}"), "twice"),
        ] {
            let told = after(&own, text).unwrap_err().to_string();
            assert!(told.contains(part), "{text}: {told}");
        }
        let two =
            after(&Schema::default(), r#"{"namespaces": {"a": {"x": "long"}, "b": {"x": "long"}}}"#).unwrap();
        assert!(two.field("x").unwrap_err().to_string().contains("a.x or b.x"));
        assert_eq!(two.field("file_name").unwrap().name, "file.name");
        assert!(two.parse("system.size", "3").is_err());
    }
}
