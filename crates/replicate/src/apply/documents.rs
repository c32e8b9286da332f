//! Rows with MySQL's own types as the target has them: JSON as text, VECTOR as bytes.
//!
//! Under `binlog_row_value_options=PARTIAL_JSON` the log has of a document what changed, and what it was before only in
//! full images. Otherwise the target is asked, in the transaction that changes it, so such a transaction is alone.

use super::conflicts::{same, Same};
use super::Applier;
use crate::failure::Failure;
use crate::keys;
use crate::tables;
use crate::target::Fit;
use teak_binlog::{Conversion, Row, Rows};
use teak_client::{Connection, Error};
use teak_sql::columns::Column;
use teak_sql::quoting::quoted_name;

impl Applier<'_> {
    /// Rows with columns as they fit what the target has.
    pub(super) fn converted(&mut self, rows: &Rows<'_>, fit: &Fit) -> Result<Rows<'static>, Failure> {
        let here = |&(at, conversion)| match fit.left_out.contains(&at) {
            true => (at, Conversion::Nothing),
            false => (at, conversion),
        };
        let conversions: Vec<(usize, Conversion)> = fit.columns.conversions.iter().map(here).collect();
        let conversions = &conversions[..];
        let is_known = |(at, conversion): &(usize, Conversion)| {
            *conversion != Conversion::Text || !rows.has_new(*at) || rows.has_old(*at)
        };
        if !rows.has_partial_json() || conversions.iter().all(is_known) {
            return rows
                .converted(conversions, &mut |_, _| None)
                .map_err(|error| self.stop(error.to_string()));
        }
        if self.prepared.is_some() {
            let why = "changes of parts of documents in an XA transaction, of which the log has not the whole: that is \
                       not built yet; binlog_row_image must be FULL";
            return Err(self.stop(format!("table {}: {why}", rows.table.quoted_name())));
        }
        self.alone()?;
        if self.target.is_open() {
            self.target.send()?;
        }
        let here = self.source.routes.here(&rows.table);
        let of_target =
            |error: Error| Failure::of_target(&error, || format!("columns of {}", here.quoted_name()));
        let connection = self.target.connection();
        let table = tables::one(connection, &here.database, &here.name).map_err(of_target)?;
        let columns = table.map(|table| table.columns).unwrap_or_default();
        let key = keys::columns(connection, &here)?;
        let key: Vec<(String, bool)> = key.into_iter().map(|(_, name)| (name, true)).collect();
        let names = [quoted_name(here.database.as_bytes()), quoted_name(here.name.as_bytes())];
        let mut asked =
            Asked { connection, table: names.join(&b"."[..]), columns: &columns, key, failed: None };
        let converted = rows.converted(conversions, &mut |row, at| asked.document(row, at));
        match asked.failed {
            Some(error) => Err(of_target(error)),
            None => converted.map_err(|error| {
                let why = "it is read from the target's row where the log has not the whole (binlog_row_image), by a \
                           key of integers, times or texts";
                self.stop(format!("{error}; {why}"))
            }),
        }
    }
}

/// The target, which is asked for documents.
struct Asked<'a> {
    connection: &'a mut Connection,
    table: Vec<u8>,
    columns: &'a [Column],
    key: Vec<(String, bool)>,
    failed: Option<Error>,
}

impl Asked<'_> {
    /// What a column has in the row that is to be changed.
    fn document(&mut self, row: &Row<'_>, at: usize) -> Option<String> {
        let Same::As(condition) = same(self.columns, &self.key, row.old.as_ref())? else { return None };
        let column = quoted_name(&self.columns.get(at)?.name);
        if self.key.is_empty() {
            return None;
        }
        let query = [b"SELECT ", &column[..], b" FROM ", &self.table, b" WHERE ", &condition, b" FOR UPDATE"]
            .concat();
        match self.connection.value(query) {
            Ok(document) => document,
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}
