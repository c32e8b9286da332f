//! Statements of a MySQL that change definitions, as MariaDB takes them. What has no such form stops the source
//! before anything is carried out.

use super::Applier;
use crate::copying;
use crate::failure::Failure;
use crate::session;
use crate::statement::{classify, Definition, Statement};
use crate::steps;
use teak_binlog::{Event, Family, Format, Query};
use teak_sql::mysql::{self, Context, KnownTable, Rewritten};

/// From this version on REFERENCES behind a column makes a foreign key.
const INLINE_REFERENCES: u32 = 9;

/// Whether a log is of such a version.
pub(super) fn has_inline_references(format: &Format) -> bool {
    let major = format.server_version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    format.family == Family::MySql && major.is_some_and(|major| major >= INLINE_REFERENCES)
}

impl Applier<'_> {
    /// A statement as the target is to have it.
    pub(super) fn text_for_target(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<Vec<u8>, Failure> {
        let dialect = steps::dialect_of(query);
        let other = match self.position_family() {
            Family::MySql => self.of_mysql(event, query, definition)?,
            Family::MariaDb => None,
        };
        let text = match &other {
            None => self.source.rewritten(&query.statement, definition, dialect, query.database),
            // Names have other places in it.
            Some(text) => match classify(text, dialect) {
                Statement::Definition(definition) => {
                    self.source.rewritten(text, &definition, dialect, query.database)
                }
                _ => Err("a statement that is another one in MariaDB".into()),
            },
        };
        text.map_err(|why| self.stop(why))
    }

    /// A statement of a MySQL as MariaDB takes it; None: as it is.
    fn of_mysql(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let table =
            definition.objects.first().filter(|object| object.kind == "TABLE" && !definition.has_body);
        let there = table.map(|table| {
            let database = table.database.as_deref().unwrap_or(query.database);
            [database, &table.name].map(|name| String::from_utf8_lossy(name).into_owned())
        });
        let here = there.as_ref().map(|[database, table]| self.source.routes.names_of(database, table));
        let mut known = None;
        if let Some(here) = &here {
            let read = self.target.known_table(here);
            known = read.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
        }
        let has_other_names = there
            .as_ref()
            .is_some_and(|[database, table]| !self.source.renamed_columns.of(database, table).is_empty());
        if has_other_names && known.as_ref().is_some_and(|known: &KnownTable| !known.functions.is_empty()) {
            return Err(
                self.no_form(query, "a table whose columns have other names, with a key of an expression")
            );
        }
        let session = session::of(&event.header, query, Family::MySql, false);
        let mut types = Vec::new();
        loop {
            let context = Context {
                engine: self.plan.engine.as_deref(),
                utf8mb4_collation: query.session.utf8mb4_collation,
                has_inline_references: self.has_inline_references,
                table: known.as_ref(),
                types: &types,
            };
            match mysql::rewritten(&query.statement, steps::dialect_of(query), &context) {
                Ok(Rewritten::Same) => return Ok(None),
                Ok(Rewritten::Other(text)) => return Ok(Some(text)),
                Err(refusal) => return Err(self.no_form(query, &refusal.to_string())),
                Ok(Rewritten::NeedsTypes(_)) if has_other_names || !types.is_empty() => {
                    return Err(
                        self.no_form(query, "a key of an expression, of columns that have other names")
                    );
                }
                Ok(Rewritten::NeedsTypes(probe)) => {
                    let database = self.source.routes.name_of(query.database).to_vec();
                    let quoted = here.as_ref().map(copying::quoted).unwrap_or_default();
                    let told = self.target.types_of(&session, &database, &quoted, &probe);
                    let told = told.map_err(|error| match Failure::of_target(&error, || self.gtid()) {
                        Failure::Final(..) => self
                            .no_form(query, &format!("the type of an expression in a key: target: {error}")),
                        other => other,
                    })?;
                    if let Some(long) =
                        told.iter().find(|kind| kind.contains("text") || kind.contains("blob"))
                    {
                        let why =
                            format!("a key of an expression of the type {long}, which MariaDB keeps none of");
                        return Err(self.no_form(query, &why));
                    }
                    types = told;
                }
            }
        }
    }

    fn no_form(&self, query: &Query<'_>, why: &str) -> Failure {
        let text = String::from_utf8_lossy(&query.statement);
        self.stop(format!("{text}: has no form that MariaDB takes: {why}"))
    }
}
