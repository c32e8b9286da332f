//! Statements of a MySQL that change definitions, as MariaDB takes them.

use crate::configuration::SourcePlan;
use crate::copying;
use crate::failure::Failure;
use crate::statement::Definition;
use crate::target::Target;
use teak_binlog::{Family, Format};
use teak_console::Status;
use teak_sql::charset::Dialect;
use teak_sql::mysql::{self, Context, KnownTable, Rewritten};

/// From this version on REFERENCES behind a column makes a foreign key.
const INLINE_REFERENCES: u32 = 9;
/// And from this one on `CHARACTER SET utf8mb4` means a collation of Unicode 9.
const UNICODE_9: u32 = 8;
/// Its number.
const UTF8MB4_0900_AI_CI: u16 = 255;

/// Whether a log is of a server whose columns refer to others.
pub fn has_inline_references(format: &Format) -> bool {
    format.family == Family::MySql && major(&format.server_version) >= INLINE_REFERENCES
}

/// What utf8mb4 alone means in what a server of this version shows; None: the same as in MariaDB.
pub fn shown_utf8mb4(version: &str) -> Option<u16> {
    (major(version) >= UNICODE_9).then_some(UTF8MB4_0900_AI_CI)
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A statement.
pub struct Foreign<'s> {
    /// Its text.
    pub text: &'s [u8],
    /// What it is about.
    pub definition: &'s Definition,
    /// How its strings are written.
    pub dialect: Dialect,
    /// The default database at the source.
    pub database: &'s [u8],
    /// What sets its session.
    pub session: &'s str,
    /// What `CHARACTER SET utf8mb4` means there.
    pub utf8mb4_collation: Option<u16>,
    /// REFERENCES behind a column makes a foreign key there.
    pub has_inline_references: bool,
}

impl Foreign<'_> {
    /// As MariaDB takes it; None: as it is. What has no such form is a failure.
    pub fn in_mariadb(
        &self,
        target: &mut Target<'_>,
        plan: &SourcePlan,
        engine: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let objects = &self.definition.objects;
        let table = objects.first().filter(|object| object.kind == "TABLE" && !self.definition.has_body);
        let there = table.map(|table| {
            let database = table.database.as_deref().unwrap_or(self.database);
            [database, &table.name].map(|name| String::from_utf8_lossy(name).into_owned())
        });
        let here = there.as_ref().map(|[database, table]| plan.routes.names_of(database, table));
        let mut known = None;
        if let Some(here) = &here {
            let read = target.known_table(here);
            known = read.map_err(|error| Failure::of_target(&error, || "a table's definition".into()))?;
        }
        let has_other_names = there
            .as_ref()
            .is_some_and(|[database, table]| !plan.renamed_columns.of(database, table).is_empty());
        if has_other_names && known.as_ref().is_some_and(|known: &KnownTable| !known.functions.is_empty()) {
            return Err(self.no_form("a table whose columns have other names, with a key of an expression"));
        }
        let mut types = Vec::new();
        loop {
            let context = Context {
                engine,
                utf8mb4_collation: self.utf8mb4_collation,
                has_inline_references: self.has_inline_references,
                table: known.as_ref(),
                types: &types,
            };
            match mysql::rewritten(self.text, self.dialect, &context) {
                Ok(Rewritten::Same) => return Ok(None),
                Ok(Rewritten::Other(text)) => return Ok(Some(text)),
                Err(refusal) => return Err(self.no_form(&refusal.to_string())),
                Ok(Rewritten::NeedsTypes(_)) if has_other_names || !types.is_empty() => {
                    return Err(self.no_form("a key of an expression, of columns that have other names"));
                }
                Ok(Rewritten::NeedsTypes(probe)) => {
                    let database = plan.routes.name_of(self.database);
                    let quoted = here.as_ref().map(copying::quoted).unwrap_or_default();
                    let told = target.types_of(self.session, database, &quoted, &probe);
                    types = told.map_err(|error| {
                        match Failure::of_target(&error, || "types of expressions".into()) {
                            Failure::Final(..) => {
                                self.no_form(&format!("the type of an expression in a key: target: {error}"))
                            }
                            other => other,
                        }
                    })?;
                    let is_long = |kind: &&String| kind.contains("text") || kind.contains("blob");
                    if let Some(long) = types.iter().find(is_long) {
                        let why = "which MariaDB keeps no key of";
                        return Err(self.no_form(&format!("an expression of the type {long}, {why}")));
                    }
                }
            }
        }
    }

    fn no_form(&self, why: &str) -> Failure {
        let text = String::from_utf8_lossy(self.text);
        Failure::Final(format!("{text}: has no form that MariaDB takes: {why}"), Status::Damage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_what_utf8mb4_means() {
        assert_eq!(shown_utf8mb4("9.7.4-2"), Some(255));
        assert_eq!(shown_utf8mb4("8.0.36"), Some(255));
        assert_eq!(shown_utf8mb4("5.7.44-log"), None);
    }
}
