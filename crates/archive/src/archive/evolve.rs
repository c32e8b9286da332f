//! Another schema: what is there is compared with it, and new indexes are built.
//!
//! A change holds the schema alone, so that each writer's transaction is by the one before or by the one after. New
//! indexes are written from then on, and read once [`Archive::build_indexes`] has put in what was there.

use super::open::json_value;
use super::Archive;
use crate::rows::Record;
use crate::schema::{Definition, Schema, Type};
use crate::view::{with_indexes, View};
use crate::{Error, Name, Oid, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLockWriteGuard};

/// Records whose entries one transaction puts in.
const AT_ONCE: usize = 1000;

/// Changes views, which are to do with the schema.
pub(crate) type ChangeViews<'a> = dyn FnMut(&mut BTreeMap<String, View>, &Schema) -> Result<()> + 'a;

impl Archive {
    /// Gives it another schema, as a whole: fields and indexes that the definition does not have are dropped. If it
    /// contradicts a record, nothing changes. Writers wait while records are compared, which only new required fields,
    /// shorter ones and dropped ones need; not while indexes are built.
    pub fn set_schema(&self, definition: &Definition) -> Result<()> {
        let _care = self.care();
        self.change_schema(definition, &self.views()?)?;
        self.build_indexes()?;
        self.answered()
    }

    /// Changes the views, and the schema where they need another index; `name` is that of the view.
    pub(crate) fn change_views(&self, change: &mut ChangeViews<'_>, name: &str) -> Result<()> {
        let _care = self.care();
        let mut views = self.views()?;
        change(&mut views, &self.schema())?;
        // An index without its view does no harm, if a crash leaves it.
        self.change_schema(&Definition::of(&self.schema()), &views)?;
        self.transact(|txn| {
            self.write_setting(txn, "views", &views)?;
            if !views.contains_key(name) {
                self.forget_folders(txn, name)?;
            }
            self.note(txn, "view", name, json_value(&views.get(name))?)
        })?;
        self.build_indexes()?;
        self.answered()
    }

    fn change_schema(&self, definition: &Definition, views: &BTreeMap<String, View>) -> Result<()> {
        let mut schema = self.schema_alone();
        let after = with_indexes(definition, views, &schema)?.after(&schema)?;
        if (&after.fields, &after.indexes) == (&schema.fields, &schema.indexes) {
            return Ok(());
        }
        self.compare(&schema, &after)?;
        self.write_schema(&mut schema, after)
    }

    fn schema_alone(&self) -> RwLockWriteGuard<'_, Arc<Schema>> {
        self.schema.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write_schema(&self, schema: &mut Arc<Schema>, after: Schema) -> Result<()> {
        let is_another = after.version != schema.version;
        self.transact(|txn| {
            self.write_setting(txn, "schema", &after)?;
            match is_another {
                true => self.note(txn, "schema", "", json_value(&Definition::of(&after))?),
                false => Ok(()),
            }
        })?;
        *schema = Arc::new(after);
        Ok(())
    }

    /// Whether all records can have the schema that comes after, and no protected one loses a field.
    fn compare(&self, before: &Schema, after: &Schema) -> Result<()> {
        let is_gone = |number: u32| after.by_number(number).is_none();
        let drops = before.fields.iter().any(|field| is_gone(field.number));
        let narrows = after.fields.iter().any(|field| match before.by_number(field.number) {
            Some(old) => (field.required && !old.required) || field.of_type.is_shorter_than(old.of_type),
            None => field.required,
        });
        if !drops && !narrows {
            return Ok(());
        }
        let (snapshot, now) = (self.engine.snapshot(), self.now());
        let mut rows = snapshot.rows(&self.trees.records);
        while rows.advance()? {
            let record = self.record_of_row(rows.key(), rows.value()?)?;
            after.check(&record.values).map_err(|error| match error {
                Error::Field { field, problem } => {
                    Error::Field { field, problem: format!("{problem} (record {})", record.oid) }
                }
                error => error,
            })?;
            let Some(by) = record.protection.reason(now) else { continue };
            if let Some((lost, _)) = record.values.iter().find(|(number, _)| is_gone(*number)) {
                let field = before.by_number(*lost).map_or("", |field| &field.name);
                let by = format!("{by}, so its field {field} cannot be dropped");
                return Err(Error::Protected { name: Name::Record(record.oid), by });
            }
        }
        Ok(())
    }

    pub(crate) fn record_of_row(&self, key: &[u8], row: &[u8]) -> Result<Record> {
        let oid = key.try_into().map_err(|_| Error::row("records", key))?;
        self.read_record(Oid(oid), row)
    }

    /// Puts what was there into indexes that are new; also into those that a crash has left half built.
    pub(super) fn build_indexes(&self) -> Result<()> {
        let new: Vec<_> = self.schema().indexes.iter().filter(|index| !index.is_ready).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut from = Vec::new();
        loop {
            let keys = self
                .engine
                .snapshot()
                .range(&self.trees.records, from.clone()..)
                .take(AT_ONCE)
                .map(|row| row.map(|(key, _)| key))
                .collect::<Result<Vec<_>, _>>()?;
            let Some(last) = keys.last() else { break };
            from = [last, &[0][..]].concat();
            self.transact(|txn| {
                for key in &keys {
                    // Locked: its entry is not of a version that somebody replaces meanwhile.
                    let Some(row) = txn.get_for_update(&self.trees.records, key)? else { continue };
                    let record = self.record_of_row(key, &row)?;
                    for entry in new.iter().filter_map(|index| record.entry(index)) {
                        txn.put(&self.trees.entries, entry, [])?;
                    }
                }
                Ok(())
            })?;
        }
        let mut schema = self.schema_alone();
        let mut after = Schema::clone(&schema);
        for index in &mut after.indexes {
            index.is_ready |= new.iter().any(|built| built.number == index.number);
        }
        self.write_schema(&mut schema, after)
    }

    /// An index that is gone has no entries any more.
    pub(super) fn forget_index(&self, number: u32) -> Result<()> {
        let mut schema = self.schema_alone();
        let mut after = Schema::clone(&schema);
        after.dropped.retain(|dropped| *dropped != number);
        self.write_schema(&mut schema, after)
    }
}

impl Type {
    fn is_shorter_than(self, other: Type) -> bool {
        self.key_bytes() < other.key_bytes()
    }
}
