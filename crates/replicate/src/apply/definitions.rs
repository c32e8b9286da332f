//! Statements that change definitions, each of which is carried out once.

use super::Applier;
use crate::copying;
use crate::failure::Failure;
use crate::of_mysql::Foreign;
use crate::session;
use crate::statement::{classify, Definition, Repeat, Statement};
use crate::steps;
use crate::target::Intent;
use teak_binlog::{Event, Family, Query};
use teak_client::Error;
use teak_sql::quoting::quoted_name;

/// Whether a statement may have been carried out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// It was not.
    First,
    /// Its end was not seen.
    Repeated,
}

impl Applier<'_> {
    /// Carries out a statement that changes definitions. It ends what was open, so its position comes behind it: what
    /// it names is noted before, so that a restart finds out whether it was carried out.
    pub(super) fn definition(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<(), Failure> {
        if !self.is_followed(query, definition)? {
            return Ok(());
        }
        let gtid = self.gtid();
        // Transactions before it are whole, and rows of its own come behind it.
        self.alone()?;
        self.commit()?;
        if self.target.is_open() {
            return Err(
                self.stop("a statement that changes definitions behind rows of its transaction".into())
            );
        }
        // One that was carried out has made the table another one, for which the text would not be what it was.
        let is_noted = self.target.intent().is_some_and(|intent| intent.gtid == gtid);
        let text = if is_noted { None } else { Some(self.text_for_target(event, query, definition)?) };
        let copied = self.copies_before(query, definition)?;
        if copied.is_empty() {
            self.defined = self.named_tables(query, definition);
        }
        let before = self.definitions(query, definition)?;
        let attempt = match self.target.intent().cloned() {
            Some(intent) if intent.gtid != gtid => {
                let why =
                    format!("teak_replicate.ddl has a statement of {}, whose end was not seen", intent.gtid);
                return Err(self.stop(why));
            }
            Some(intent) => {
                let was_done = match definition.repeat {
                    Repeat::Harmless => false,
                    Repeat::ByDefinitions => intent.before != before,
                    Repeat::ByMark => !self.target.has_mark()?,
                    Repeat::Unclear => return Err(self.unclear()),
                };
                if was_done {
                    self.say(&format!("{gtid}: its statement was carried out already"));
                    return self.copies_after(&copied);
                }
                Attempt::Repeated
            }
            None => {
                if definition.repeat == Repeat::ByMark {
                    self.target.make_mark()?;
                }
                self.target.note(Intent { gtid, before }, &query.statement)?;
                Attempt::First
            }
        };
        let text = match text {
            Some(text) => text,
            None => self.text_for_target(event, query, definition)?,
        };
        self.carry_out(event, query, definition, &text, attempt)?;
        self.copies_after(&copied)
    }

    /// The transaction that is open has no end in the log: its source died within CREATE TABLE ... SELECT, and has the
    /// table not any more; with OR REPLACE the one before it neither. A restart that comes to it makes the table anew,
    /// and is back here.
    pub(super) fn take_back(&mut self) -> Result<(), Failure> {
        let gtid = self.gtid();
        if self.is_passed_over() || self.target.intent().is_none_or(|intent| intent.gtid != gtid) {
            return Ok(());
        }
        for table in std::mem::take(&mut self.defined) {
            self.say(&format!(
                "{gtid}: {} is dropped, as its CREATE TABLE ... SELECT has no end in the source's log",
                String::from_utf8_lossy(&copying::quoted(&table))
            ));
            let dropped = self.target.drop_table(&copying::quoted(&table));
            dropped.map_err(|error| Failure::of_target(&error, || gtid.clone()))?;
        }
        self.keys.forget();
        self.target.forget()
    }

    /// A statement as the target is to have it.
    fn text_for_target(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<Vec<u8>, Failure> {
        let dialect = steps::dialect_of(query);
        let rewritten = |text: &[u8], definition: &Definition| {
            self.source.rewritten(text, definition, dialect, query.database)
        };
        if self.position_family() == Family::MariaDb {
            return rewritten(&query.statement, definition).map_err(|why| self.stop(why));
        }
        let foreign = Foreign {
            text: &query.statement,
            definition,
            dialect,
            database: query.database,
            session: &session::of(&event.header, query, Family::MySql, false),
            utf8mb4_collation: query.session.utf8mb4_collation,
            has_inline_references: self.has_inline_references,
        };
        let other = foreign.in_mariadb(&mut self.target, self.source, self.plan.engine.as_deref());
        let text = match other.map_err(|failure| self.named(failure))? {
            None => rewritten(&query.statement, definition),
            // Names have other places in it.
            Some(text) => match classify(&text, dialect) {
                Statement::Definition(definition) => rewritten(&text, &definition),
                _ => Err("a statement that is another one in MariaDB".into()),
            },
        };
        text.map_err(|why| self.stop(why))
    }

    fn carry_out(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        definition: &Definition,
        text: &[u8],
        attempt: Attempt,
    ) -> Result<(), Failure> {
        // Not there, of tables, databases, views, triggers, routines, sequences.
        const GONE: [u16; 7] = [1008, 1051, 1146, 1305, 1360, 4091, 4092];
        let has_database = !query.database.is_empty() && self.source.routes.follows(query.database);
        let database = if has_database { query.database } else { &[] };
        let needs_database = definition.objects.iter().any(|object| object.database.is_none());
        let is_table = definition.objects.iter().any(|object| object.kind == "TABLE");
        let substitutes = self.target.has_engine() && is_table;
        let session = session::of(&event.header, query, self.position_family(), substitutes);
        let database = self.source.routes.name_of(database);
        let with_mark = definition.repeat == Repeat::ByMark;
        let marked = with_mark.then(|| [text, &self.target.renaming_of_mark()].concat());
        self.keys.forget();
        let done = self.target.define(&session, database, needs_database, marked.as_deref().unwrap_or(text));
        let was_done = attempt == Attempt::Repeated && definition.repeat == Repeat::Harmless;
        match done {
            Ok(()) => Ok(()),
            Err(Error::Server { code, .. }) if code == query.error_code => Ok(()),
            Err(Error::Server { code, .. }) if was_done && GONE.contains(&code) => Ok(()),
            Err(error @ Error::Server { .. }) => {
                self.target.forget()?;
                let text = String::from_utf8_lossy(&query.statement).into_owned();
                Err(Failure::of_target(&error, || format!("{}, {text}", self.gtid())))
            }
            Err(error) => Err(Failure::of_target(&error, || self.gtid())),
        }
    }

    /// How all that a statement names is defined.
    fn definitions(&mut self, query: &Query<'_>, definition: &Definition) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        for object in &definition.objects {
            let database = object.database.as_deref().unwrap_or(query.database);
            let routes = &self.source.routes;
            let quoted = match object.kind {
                "DATABASE" => quoted_name(routes.name_of(database)),
                "TABLE" => {
                    let [database, table] = [database, &object.name].map(String::from_utf8_lossy);
                    copying::quoted(&routes.names_of(&database, &table))
                }
                _ => [quoted_name(routes.name_of(database)), quoted_name(&object.name)].join(&b"."[..]),
            };
            let shown = self.target.definition(object.kind, &quoted);
            let shown = shown.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
            all.extend_from_slice(&shown);
            all.push(0);
        }
        Ok(all)
    }

    fn unclear(&self) -> Failure {
        let source = &self.source.name;
        self.stop(format!(
            "whether its statement was carried out cannot be told, as definitions may be the same before and after it: \
             teak_replicate.ddl has it. If it was not, DELETE FROM teak_replicate.ddl WHERE source = '{source}'; if it \
             was, UPDATE teak_replicate.position for the transaction as well"
        ))
    }
}
