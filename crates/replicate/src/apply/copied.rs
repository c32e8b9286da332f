//! What applying a log has to do with tables that are not whole: rows that are not there are left out, statements that
//! name such a table let it begin anew, and rows that were read are added.

use super::{Applier, Care, Received};
use crate::chunk_reader::Planned;
use crate::configuration::SourcePlan;
use crate::copy_others::Others;
use crate::copying::{self, Copying, Part, TableName};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::position::Position;
use crate::prepared::Snapshot;
use crate::sides::LogPlace;
use crate::statement::{Definition, Repeat};
use crate::tables;
use teak_binlog::{Family, Query, Rows};

/// No such table; a sequence, which has nothing to be emptied.
const NOT_EMPTIED: [u16; 3] = [1049, 1146, 1031];

impl<'p> Applier<'p> {
    /// The tables that are not whole.
    pub fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Reads anew which these are.
    pub fn read_copying(&mut self) -> Result<(), Failure> {
        self.copying = Copying::read(&mut self.target)?;
        Ok(())
    }

    /// The source.
    pub fn plan(&self) -> &'p SourcePlan {
        self.source
    }

    /// What was applied, also if it is not committed yet.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// All before this place of the log was applied; None: not known.
    pub fn place(&self) -> Option<&LogPlace> {
        self.place.as_ref().filter(|_| self.gtid.is_none())
    }

    /// Where the last transaction ends that was applied since the connection was made.
    pub fn ended(&self) -> Option<&LogPlace> {
        self.ended.as_ref()
    }

    /// It is known from elsewhere that all before a place was applied.
    pub fn is_at(&mut self, place: &LogPlace) {
        self.place = Some(place.clone());
    }

    /// Applies those rows of a table that is not whole which are there; of some columns no values come.
    pub(super) fn some_rows(
        &mut self,
        sent: &Received<'_, '_>,
        rows: &Rows<'_>,
        left_out: &[usize],
        part: Part,
    ) -> Result<(), Failure> {
        if self.prepared.is_some() && self.position_family() == Family::MySql {
            let table = rows.table.quoted_name();
            return Err(self.stop(format!(
                "table {table}: XA transactions of a MySQL while it is copied are not built yet"
            )));
        }
        let header = &sent.event.header;
        let mut full = Vec::new();
        let kept = part.keep(rows, left_out, &mut |row, (change, images)| {
            if self.care == Care::Each && self.prepared.is_none() {
                return match self.gathered.row(header, rows, change, images) {
                    // A copy has nothing that a row could stand in the way of, so whose rows these are is not known.
                    Some(statement) => {
                        let done = self.target.carry_out(&statement);
                        done.map_err(|error| self.row_failure(&error, row, rows))
                    }
                    None => Ok(()),
                };
            }
            let taken =
                self.gathered.some_row(header, rows, change, images, &mut |statement| full.push(statement));
            taken.map_err(|long| self.too_long(rows, &long))
        });
        kept.map_err(|failure| self.named(failure))?;
        full.into_iter().try_for_each(|statement| self.add(statement))
    }

    /// Nothing of any table is copied yet, so that all ranges will have what was prepared before the copy.
    pub(super) fn is_before_copies(&mut self) -> Result<bool, Failure> {
        Ok(!self.copying.is_done() && self.target.kept("")? > 0)
    }

    /// XA transactions that the source lists before any of its log is applied over this connection.
    pub fn were_prepared(&mut self, listed: Vec<String>) {
        self.copying.prepared.were_listed(listed);
    }

    /// What forbids to take rows of a table from a snapshot up to which the log was applied.
    pub fn in_the_way(&mut self, snapshot: &Snapshot, table: &Planned) -> Option<String> {
        self.copying.prepared.in_the_way(snapshot, table)
    }

    /// Tells that one of them holds up the copy.
    pub fn wait_for_prepared(&self, xid: &str) {
        self.say(&format!("the copy waits for XA transactions that the source has prepared, such as {xid}"));
    }

    /// No transaction of the source is open, and none is with workers.
    pub fn is_between(&self) -> bool {
        self.gtid.is_none() && self.crew.as_ref().is_none_or(Crew::has_nothing)
    }

    /// The position as it is committed, and how often somebody had wanted something.
    pub fn committed_position(&self) -> (String, u64) {
        (self.target.position().unwrap_or_default().to_string(), self.target.wanted().1)
    }

    /// So much of a table is there, as it was committed; None: all of it.
    pub fn has_copied(&mut self, name: &TableName, part: Option<Part>) {
        self.copying.set(name, part);
        self.committed += 1;
        if part.is_none() {
            self.say(&format!("{} is copied", String::from_utf8_lossy(&copying::quoted(name))));
        }
    }

    /// Makes what there is besides tables, at its place of the log.
    pub fn make_others(&mut self, others: &Others, is_new: bool) -> Result<(), Failure> {
        self.commit()?;
        if is_new {
            others.must_be_new(&mut self.target, self.source)?;
            self.note_part(&copying::others(), Some(Part::Rows))?;
            self.target.commit_beside()?;
        }
        others.make(&mut self.target, self.source)?;
        self.note_part(&copying::others(), None)?;
        self.target.commit_beside()
    }

    /// Before the first rows of a table, between two transactions: nothing of it is there. `defers_keys`: its keys that
    /// are not unique are to be built at the end.
    pub fn make_room(&mut self, name: &TableName, defers_keys: bool) -> Result<(), Failure> {
        self.commit()?;
        self.empty(name, if defers_keys { "DISABLE" } else { "ENABLE" })
    }

    /// Empties a table of which nothing is there, so that this is true whatever there was, and enables or disables its
    /// keys: statements of the log find it with all of them. Of one that has rows of others only its own go.
    fn empty(&mut self, name: &TableName, keys: &str) -> Result<(), Failure> {
        let quoted = copying::quoted(name);
        if let Some(part) = self.source.routes.part_here(name) {
            let delete = [b"DELETE FROM ", &quoted[..], b" WHERE ", &part.condition()].concat();
            let done = self.target.connection().execute(delete).map(|_| ());
            return done.map_err(|error| {
                Failure::of_target(&error, || String::from_utf8_lossy(&quoted).into_owned())
            });
        }
        let truncate = [b"SET STATEMENT foreign_key_checks = 0 FOR TRUNCATE TABLE ", &quoted[..]].concat();
        let connection = self.target.connection();
        let done = match connection.execute(truncate) {
            Err(error) if error.code().is_some_and(|code| NOT_EMPTIED.contains(&code)) => return Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                connection.execute([b"ALTER TABLE ", &quoted[..], b" ", keys.as_bytes(), b" KEYS"].concat())
            }
        };
        let done = done.map(|_| ());
        done.map_err(|error| Failure::of_target(&error, || String::from_utf8_lossy(&quoted).into_owned()))
    }

    /// Adds to the transaction that so much of a table is there.
    fn note_part(&mut self, name: &TableName, part: Option<Part>) -> Result<(), Failure> {
        self.copying.set(name, part);
        self.target.add(copying::noting(self.target.source(), name, part))
    }

    /// The tables in the target that a statement names.
    pub(super) fn named_tables(&self, query: &Query<'_>, definition: &Definition) -> Vec<TableName> {
        let routes = &self.source.routes;
        let mut names = Vec::new();
        for object in &definition.objects {
            let database = object.database.as_deref().unwrap_or(query.database);
            let [there, table] = [database, &object.name].map(String::from_utf8_lossy);
            match object.kind {
                "TABLE" => names.push(routes.names_of(&there, &table)),
                "DATABASE" => {
                    let database = routes.text_name_of(&there);
                    names.extend(self.copying.names().into_iter().filter(|(other, _)| *other == database))
                }
                _ => (),
            }
        }
        names
    }

    /// Before a statement: of the tables that it names and that are not whole nothing is there any more. Those that it
    /// names, if one of them is not whole.
    pub(super) fn copies_before(
        &mut self,
        query: &Query<'_>,
        definition: &Definition,
    ) -> Result<Vec<TableName>, Failure> {
        if self.copying.is_done() {
            return Ok(Vec::new());
        }
        let names = self.named_tables(query, definition);
        let part = |name: &TableName| self.copying.part(&name.0, &name.1);
        let missing: Vec<TableName> = names.iter().filter(|name| part(name).is_some()).cloned().collect();
        if missing.is_empty() {
            return Ok(missing);
        }
        if definition.repeat != Repeat::Harmless {
            self.must_be_alone(&names)?;
        }
        for name in &missing {
            if self.copying.part(&name.0, &name.1) != Some(Part::None) {
                self.note_part(name, Some(Part::None))?;
            }
        }
        if self.target.is_open() {
            self.target.commit_beside()?;
        }
        missing.iter().try_for_each(|name| self.empty(name, "ENABLE"))?;
        Ok(names)
    }

    /// A table that is whole may become one of which nothing is there only if no other one's rows go with its rows.
    fn must_be_alone(&mut self, names: &[TableName]) -> Result<(), Failure> {
        let mut whole = 0;
        for name in names.iter().filter(|name| self.copying.part(&name.0, &name.1).is_none()) {
            let shown = self.target.definition("TABLE", &copying::quoted(name));
            let shown = shown.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
            whole += usize::from(!shown.is_empty());
        }
        if whole == 0 {
            return Ok(());
        }
        let cascades = tables::cascades(self.target.connection(), &|_, _| true, &tables::as_they_are);
        let cascades = cascades.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
        let is_named = |key: &String| {
            names.iter().any(|(database, table)| key.contains(&format!("`{database}`.`{table}` ")))
        };
        match cascades.iter().find(|key| is_named(key)) {
            None => Ok(()),
            Some(key) => Err(self.stop(format!(
                "a table that is copied changes its name with one that is whole, beside a foreign key that cascades: that \
                 is not built yet: {key}"
            ))),
        }
    }

    /// After it: those that are there are copied from their beginning, in the transaction of its position.
    pub(super) fn copies_after(&mut self, names: &[TableName]) -> Result<(), Failure> {
        for name in names {
            let shown = self.target.definition("TABLE", &copying::quoted(name));
            let shown = shown.map_err(|error| Failure::of_target(&error, || self.gtid()))?;
            match shown.is_empty() {
                true => self.note_part(name, None)?,
                false => self.note_part(name, Some(Part::None))?,
            }
            self.copying.changes += 1;
        }
        Ok(())
    }
}
