//! Whether a statement that changes definitions is about what is followed.

use super::Applier;
use crate::exclusions::Kind;
use crate::failure::Failure;
use crate::statement::{Definition, Object};
use crate::steps;
use crate::tables;
use teak_binlog::{Family, Query};
use teak_sql::tokens::Tokens;

impl Applier<'_> {
    /// Whether a statement is to be carried out: all that it is about is followed, or nothing is. An error if that
    /// cannot be told, or if it would change what is not the source's.
    pub(super) fn is_followed(
        &mut self,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<bool, Failure> {
        let routes = &self.source.routes;
        let of = |object: &Object| object.database.clone().unwrap_or_else(|| query.database.to_vec());
        let is_table = |object: &Object| object.kind == "TABLE" && !definition.has_body;
        let follows = |object: &&Object| match is_table(object) {
            true => routes.follows_table(&of(object), &object.name),
            false => routes.follows(&of(object)),
        };
        let followed = definition.objects.iter().filter(follows).count();
        if followed == 0 {
            return Ok(false);
        }
        if followed < definition.objects.len() {
            let why = match routes.are_of_tables() {
                true => "a statement about tables that are followed and others that are not",
                false => "a statement about databases that are followed and others that are not",
            };
            return Err(self.stop(why.into()));
        }
        if !self.source.follows_bodies() && definition.has_body {
            let why = "what it names may be called otherwise here, or is not there";
            let words = String::from_utf8_lossy(&query.statement);
            let words: Vec<&str> = words.split_whitespace().take(3).collect();
            self.say(&format!("{}: {} ... is passed over: {why}", self.gtid(), words.join(" ")));
            return Ok(false);
        }
        if definition.has_body && !self.copying.is_done() {
            if self.position_family() == Family::MySql {
                let words = String::from_utf8_lossy(&query.statement);
                let words: Vec<&str> = words.split_whitespace().take(3).collect();
                let why = "tables are not whole yet, and no views, triggers and routines are copied";
                self.say(&format!("{}: {} ... is passed over: {why}", self.gtid(), words.join(" ")));
            }
            return Ok(false);
        }
        let mut tokens = Tokens::new(&query.statement, steps::dialect_of(query));
        let mut first = tokens.next();
        if first.as_ref().is_some_and(|token| token.is("SET")) && tokens.any(|token| token.is("FOR")) {
            first = tokens.next();
        }
        let drops = first.as_ref().is_some_and(|token| token.is("DROP"));
        let empties = first.is_some_and(|token| token.is("TRUNCATE"));
        for object in &definition.objects {
            let [database, name] =
                [&of(object), &object.name].map(|text| String::from_utf8_lossy(text).into_owned());
            if is_table(object) {
                if empties && self.source.exclusions.leaves_out(&database, &name, Kind::Truncate) {
                    self.say(&format!("{}: TRUNCATE of `{database}`.`{name}` is left out", self.gtid()));
                    return Ok(false);
                }
                if routes.part(&database, &name).is_some() {
                    let why =
                        "a statement about a table that is one with others here: change that, and skip it";
                    return Err(self.stop(why.into()));
                }
                let here = routes.names_of(&database, &name);
                let free = self.target.claims().is_free(&self.source.name, &(database, name), &here);
                free.map_err(|failure| self.named(failure))?;
            } else if object.kind == "DATABASE" && drops {
                self.is_alone_in(&database)?;
            }
        }
        Ok(true)
    }

    /// An error if a database of the target has tables of others, or some of this one's are elsewhere.
    fn is_alone_in(&mut self, database: &str) -> Result<(), Failure> {
        let routes = &self.source.routes;
        let here = routes.text_name_of(database);
        if routes.cross(database) {
            let why = format!("DROP DATABASE of {database}, of which rename_tables has tables come or go");
            return Err(self.stop(format!("{why}: drop them here, and skip it")));
        }
        if let Some(other) = self.target.claims().other_in(&self.source.name, &here) {
            return Err(self.stop(format!(
                "DROP DATABASE of {database}, in which the source {other} has tables here: drop those of this one, and skip it"
            )));
        }
        if routes.are_of_tables() {
            let is_own = |other: &str, table: &str| other == here && routes.leave_out(other, table);
            let own = tables::all(self.target.connection(), &is_own);
            let own = own.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
            if let Some((_, table)) = own.keys().next() {
                let why = format!(
                    "DROP DATABASE of {database}, in which `{table}` here is no table of this source"
                );
                return Err(self.stop(format!("{why}: drop those of this one, and skip it")));
            }
        }
        Ok(())
    }
}
