//! New versions of records, and their removal.

use super::get::{by_data, version_key};
use super::{timed_key, Archive};
use crate::rows::Record;
use crate::schema::{Schema, Value};
use crate::{Digest, Error, Name, Oid, Result};
use serde_json::json;
use teak_core::Transaction;

/// Fields that a record is to have, or not to have any more.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    given: Vec<(String, Given)>,
}

#[derive(Debug, Clone)]
enum Given {
    Text(String),
    Value(Value),
    Nothing,
}

impl Metadata {
    /// A field by a text, as its type has it; of a list, one more value.
    pub fn text(&mut self, field: impl Into<String>, text: impl Into<String>) -> &mut Metadata {
        self.given.push((field.into(), Given::Text(text.into())));
        self
    }

    /// A field by its value.
    pub fn value(&mut self, field: impl Into<String>, value: Value) -> &mut Metadata {
        self.given.push((field.into(), Given::Value(value)));
        self
    }

    /// A field that is to go.
    pub fn nothing(&mut self, field: impl Into<String>) -> &mut Metadata {
        self.given.push((field.into(), Given::Nothing));
        self
    }

    /// Whether nothing is said of the field with this full name.
    pub fn lacks(&self, schema: &Schema, name: &str) -> bool {
        !self.given.iter().any(|(given, _)| schema.field(given).is_ok_and(|field| field.name == name))
    }

    pub(super) fn of_new_record(&self, schema: &Schema) -> Result<Vec<(u32, Value)>> {
        self.over(schema, Vec::new())
    }

    /// What a record with `values` has then; what the schema does not know any more goes.
    pub(crate) fn over(&self, schema: &Schema, mut values: Vec<(u32, Value)>) -> Result<Vec<(u32, Value)>> {
        values.retain(|(number, _)| schema.by_number(*number).is_some());
        let mut seen = Vec::new();
        for (name, given) in &self.given {
            let field = schema.settable(name)?;
            let said = seen.contains(&field.number);
            if said && !(field.of_type.list && matches!(given, Given::Text(_))) {
                return Err(Error::field(&field.name, format!("is given twice, and is a {}", field.of_type)));
            }
            seen.push(field.number);
            let place = values.binary_search_by_key(&field.number, |(number, _)| *number);
            let value = match given {
                Given::Text(text) => schema.parse(name, text)?.1,
                Given::Value(value) => value.clone(),
                Given::Nothing => {
                    if let Ok(at) = place {
                        values.remove(at);
                    }
                    continue;
                }
            };
            match (place, value) {
                (Ok(at), Value::List(more)) if said => {
                    if let Value::List(all) = &mut values[at].1 {
                        all.extend(more);
                    }
                }
                (Ok(at), value) => values[at].1 = value,
                (Err(at), value) => values.insert(at, (field.number, value)),
            }
        }
        Ok(values)
    }
}

impl Archive {
    /// Changes fields of a record, and leaves the others: a new version; its number. With nothing to change it is the
    /// present one.
    pub fn update(&self, oid: Oid, metadata: &Metadata) -> Result<u64> {
        self.update_from(oid, None, metadata)
    }

    /// The same, if the record has this version still.
    pub fn update_version(&self, oid: Oid, version: u64, metadata: &Metadata) -> Result<u64> {
        self.update_from(oid, Some(version), metadata)
    }

    fn update_from(&self, oid: Oid, wanted: Option<u64>, metadata: &Metadata) -> Result<u64> {
        let schema = self.schema_shared();
        let version = self.transact(|txn| {
            let old = self.lock_record(txn, oid)?;
            if let Some(wanted) = wanted.filter(|wanted| *wanted != old.version) {
                return Err(Error::OtherVersion { oid, found: old.version, wanted });
            }
            Ok(self.update_in(txn, &schema, &old, metadata)?.version)
        })?;
        drop(schema);
        self.answered()?;
        Ok(version)
    }

    /// The new version of a record, which is locked.
    pub(crate) fn update_in(
        &self,
        txn: &mut Transaction,
        schema: &Schema,
        old: &Record,
        metadata: &Metadata,
    ) -> Result<Record> {
        let oid = old.oid;
        self.refuse_protected(Name::Record(oid), &old.protection)?;
        let values = metadata.over(schema, old.values.clone())?;
        schema.check(&values)?;
        if values == old.values {
            return Ok(old.clone());
        }
        let new = Record { version: old.version + 1, changed: self.now(), values, ..old.clone() };
        self.write_entries(txn, old.entries(schema), new.entries(schema))?;
        txn.put(&self.trees.records, oid.0, new.bytes())?;
        txn.insert(&self.trees.versions, version_key(oid, old.version), old.bytes())?;
        self.remove_versions(txn, oid, new.version.saturating_sub(self.rules().keep_versions))?;
        self.note(txn, "update", &oid.to_string(), json!({ "version": new.version }))?;
        Ok(new)
    }

    /// Removes a record with all its versions. Data that no record names any more goes when its grace period is over.
    pub fn remove(&self, oid: Oid) -> Result<()> {
        let schema = self.schema_shared();
        self.transact(|txn| {
            let record = self.lock_record(txn, oid)?;
            self.remove_in(txn, &schema, &record)
        })?;
        drop(schema);
        self.answered()
    }

    /// Removes a record, which is locked, unless it or its data is protected.
    pub(crate) fn remove_in(&self, txn: &mut Transaction, schema: &Schema, record: &Record) -> Result<()> {
        let oid = record.oid;
        self.refuse_protected(Name::Record(oid), &record.protection)?;
        let mut content = self.lock_content(txn, record.data)?;
        let missing = || Error::Inconsistent(format!("{oid} names {}, which there is not", record.data));
        let data = content.data.as_mut().ok_or_else(missing)?;
        self.refuse_protected(Name::Data(record.data), &data.protection)?;
        self.write_entries(txn, record.entries(schema), Vec::new())?;
        self.remove_versions(txn, oid, u64::MAX)?;
        txn.delete(&self.trees.records, oid.0)?;
        if !self.has_records(txn, record.data)? {
            let since = self.now();
            data.orphaned = Some(since);
            txn.insert(&self.trees.orphans, timed_key(since, &record.data.0), [])?;
            self.write_content(txn, record.data, &content)?;
        }
        let details = json!({ "data": record.data.to_string(), "size": record.size });
        self.note(txn, "remove", &oid.to_string(), details)
    }

    /// Whether a record names the data; exact if its content is locked.
    pub(super) fn has_records(&self, txn: &mut Transaction, data: Digest) -> Result<bool> {
        let prefix = by_data(data);
        let mut entries = txn.range(&self.trees.entries, prefix.clone()..)?;
        Ok(entries.advance()? && entries.key().starts_with(&prefix))
    }

    fn write_entries(&self, txn: &mut Transaction, old: Vec<Vec<u8>>, new: Vec<Vec<u8>>) -> Result<()> {
        for key in old.iter().filter(|key| !new.contains(key)) {
            txn.delete(&self.trees.entries, key)?;
        }
        for key in new.iter().filter(|key| !old.contains(key)) {
            txn.put(&self.trees.entries, key, [])?;
        }
        Ok(())
    }

    /// Those before a number.
    fn remove_versions(&self, txn: &mut Transaction, oid: Oid, before: u64) -> Result<()> {
        let mut keys = Vec::new();
        let mut rows = txn.range(&self.trees.versions, version_key(oid, 0)..version_key(oid, before))?;
        while rows.advance()? {
            keys.push(rows.key().to_vec());
        }
        drop(rows);
        keys.iter().try_for_each(|key| Ok(txn.delete(&self.trees.versions, key).map(|_| ())?))
    }
}
