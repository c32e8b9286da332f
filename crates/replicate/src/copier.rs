//! A copy of a source's tables, beside following it: which rows are read next, and when those that were read go to the
//! target, namely when all that the log has before their snapshot, and nothing behind it, was applied.
//!
//! ```text
//! reader   snapshot 1 ─ rows ──┐          snapshot 2 ─ rows ──┐
//! log      ────────────────────┴─> up to 1 ─ add rows, commit ┴─> up to 2 ─ add rows, commit
//! ```

use crate::apply::Applier;
use crate::chunk_reader::{refusal, Answer, Chunk, ChunkReader, Planned, Request};
use crate::configuration::SourcePlan;
use crate::copying::{self, Copying, Part, TableName};
use crate::failure::Failure;
use crate::sides::is_beyond;
use crate::status::has_all;
use crate::tables::{self, Tables};
use crate::target::Target;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::quoting::{literal, quoted_name};

/// How long a wait for rows is, before signals are looked for.
const TICK: Duration = Duration::from_millis(100);
/// So often definitions are read until they stand still.
const ATTEMPTS: u32 = 100;
/// The session of statements that SHOW CREATE gives.
const SESSION: &str = "SET SESSION sql_mode = '', foreign_key_checks = 0";

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This again: something was done, or waited for.
    Again,
    /// What comes in the log.
    Log,
    /// All tables are whole.
    Done,
}

/// The copy of a source's tables.
pub struct Copier {
    reader: ChunkReader,
    /// Parents before their children.
    plan: Vec<Planned>,
    /// What is to be asked for next.
    left: VecDeque<(Planned, Option<i128>)>,
    generation: u64,
    /// Rows that wait for the log.
    waiting: Option<Box<Chunk>>,
    /// Requests without an answer.
    asked: u32,
    /// Its place was asked for as GTIDs.
    is_asked_by_gtid: bool,
}

impl Copier {
    /// Of the tables that are not whole.
    pub fn begin(source: &mut Connection, plan: &SourcePlan, copying: &Copying) -> Result<Copier, Failure> {
        let of_source = |error: Error| Failure::of_source(&error);
        let follows = |database: &str| plan.routes.follows(database.as_bytes());
        let theirs = tables::all(source, &follows).map_err(of_source)?;
        let order = in_order(source, &theirs)
            .map_err(of_source)?
            .map_err(|why| Failure::Final(why, Status::Usage))?;
        let mut all: Vec<Planned> = order
            .into_iter()
            .map(|(there, at_once)| {
                let here = (plan.routes.text_name_of(&there.0), there.1.clone());
                Planned { there, here, at_once }
            })
            .collect();
        all.retain(|table| copying.part(&table.here.0, &table.here.1).is_some());
        let reader = ChunkReader::start(plan)?;
        let mut copier = Copier {
            reader,
            plan: all,
            left: VecDeque::new(),
            generation: copying.changes,
            waiting: None,
            asked: 0,
            is_asked_by_gtid: false,
        };
        copier.anew(copying)?;
        Ok(copier)
    }

    /// Forgets what was read, and asks for what is missing now.
    fn anew(&mut self, copying: &Copying) -> Result<(), Failure> {
        self.generation = copying.changes;
        self.waiting = None;
        self.left.clear();
        for table in &self.plan {
            match copying.part(&table.here.0, &table.here.1) {
                None => (),
                Some(Part::None) => self.left.push_back((table.clone(), None)),
                Some(Part::UpTo { last, .. }) => self.left.push_back((table.clone(), Some(last))),
            }
        }
        self.ask()
    }

    fn ask(&mut self) -> Result<(), Failure> {
        let Some((table, above)) = self.left.pop_front() else { return Ok(()) };
        self.asked += 1;
        self.reader.ask(Request { table, above })
    }

    /// Does what can be done now. `is_idle`: nothing of the log waits to be applied; `source` is there to be asked.
    pub fn step(
        &mut self,
        applier: &mut Applier<'_>,
        source: &mut Connection,
        is_idle: bool,
    ) -> Result<Next, Failure> {
        if applier.copying().is_done() {
            return Ok(Next::Done);
        }
        if applier.copying().changes != self.generation {
            // Tables may have other names. Answers of the reader that was go with it.
            *self = Copier::begin(source, applier.plan(), applier.copying())?;
        }
        let Some(chunk) = &self.waiting else { return self.receive() };
        if is_beyond(applier.place(), Some(&chunk.place)) {
            let ended = applier.ended();
            let is_there = ended.is_none() || is_beyond(Some(&chunk.place), ended);
            let Some(chunk) = self.waiting.take() else { return Ok(Next::Again) };
            match is_there {
                true => applier.add_copied(*chunk)?,
                // A snapshot has what its server has committed, which its log may have sooner.
                false => self.once_more(applier)?,
            }
            return Ok(Next::Again);
        }
        if is_idle && !self.is_asked_by_gtid {
            self.is_asked_by_gtid = true;
            let (file, position) = (&chunk.place.0, chunk.place.1);
            let gtid = format!("SELECT BINLOG_GTID_POS({}, {position})", literal(file.as_bytes()));
            let gtid = source.value(gtid).map_err(|error| Failure::of_source(&error))?;
            let ours = applier.position().to_string();
            if gtid.is_some_and(|gtid| has_all(&ours, &gtid) && has_all(&gtid, &ours)) {
                applier.is_at(&chunk.place);
                return Ok(Next::Again);
            }
        }
        Ok(Next::Log)
    }

    /// Waits a little for rows, without applying what comes: else the log might be further than their snapshot.
    fn receive(&mut self) -> Result<Next, Failure> {
        if self.asked == 0 {
            // What is missing is not at the source: the log tells what has become of it.
            return Ok(Next::Log);
        }
        match self.reader.answer(TICK)? {
            None => (),
            Some(Answer::Failed(failure)) => return Err(failure),
            Some(Answer::Gone) => {
                self.asked -= 1;
                self.ask()?;
            }
            Some(Answer::Chunk(chunk)) => {
                self.asked -= 1;
                self.is_asked_by_gtid = false;
                if chunk.upto.is_some() {
                    self.left.push_front((chunk.request.table.clone(), chunk.upto));
                }
                self.ask()?;
                self.waiting = Some(chunk);
            }
        }
        Ok(Next::Again)
    }

    /// Begins again with what is not there.
    fn once_more(&mut self, applier: &Applier<'_>) -> Result<(), Failure> {
        // What was asked for meanwhile is answered first, and passed over.
        while self.asked > 0 {
            match self.reader.answer(TICK)? {
                None if teak_console::signals::interrupted() => return Ok(()),
                None => (),
                Some(Answer::Failed(failure)) => return Err(failure),
                Some(_) => self.asked -= 1,
            }
        }
        self.anew(applier.copying())
    }
}

/// A table's name at the source, and whether all its rows are to be taken at once.
type Ordered = (TableName, bool);

/// Tables with parents before their children; an inner error if that cannot be.
fn in_order(source: &mut Connection, tables: &Tables) -> Result<Result<Vec<Ordered>, String>, Error> {
    let mut waits: Vec<(TableName, TableName)> = Vec::new();
    let mut at_once = BTreeSet::new();
    for reference in tables::references(source)? {
        let (child, parent) = (reference.child, reference.parent);
        let Some(table) = tables.get(&child) else { continue };
        // What the parent's row does to such a number is in no log, so rows would come to where nobody looks for them.
        let moves = reference.changes_with_parent && table.key.first() == Some(&reference.column);
        if child == parent || moves {
            at_once.insert(child.clone());
        }
        if child != parent && tables.contains_key(&parent) {
            waits.push((child, parent));
        }
    }
    let mut left: Vec<TableName> = tables.keys().cloned().collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free = |name: &TableName| !waits.iter().any(|(child, _)| child == name);
        let (free, others): (Vec<TableName>, Vec<TableName>) = left.into_iter().partition(is_free);
        if free.is_empty() {
            let names = others.iter().map(|(database, table)| format!("`{database}`.`{table}`"));
            let names = names.collect::<Vec<_>>().join(", ");
            return Ok(Err(format!(
                "source: foreign keys of these tables are a circle: load them from a dump: {names}"
            )));
        }
        waits.retain(|(_, parent)| !free.contains(parent));
        order.extend(free.into_iter().map(|name| {
            let is_whole = at_once.contains(&name);
            (name, is_whole)
        }));
        left = others;
    }
    Ok(Ok(order))
}

/// Makes the tables of a source in the target, and notes that they are to be copied; the position that they are of.
pub fn define(
    target: &mut Target<'_>,
    source: &mut Connection,
    plan: &SourcePlan,
) -> Result<String, Failure> {
    let of_source = |error: Error| Failure::of_source(&error);
    let of_target = |error: Error| Failure::of_target(&error, || "the tables of a copy".into());
    let usage = |why: String| Failure::Final(why, Status::Usage);
    if !source.version().contains("MariaDB") {
        return Err(usage(
            "start = \"copy\" of a MySQL is not built yet: load a dump, and give its position".into(),
        ));
    }
    let image = source.value("SELECT @@GLOBAL.binlog_row_image").map_err(of_source)?.unwrap_or_default();
    if image != "FULL" {
        return Err(usage(format!(
            "source: binlog_row_image is {image}, and must be FULL while tables are copied"
        )));
    }
    crate::chunks::prepare(source).map_err(of_source)?;
    let follows = |database: &str| plan.routes.follows(database.as_bytes());
    let theirs = tables::all(source, &follows).map_err(of_source)?;
    in_order(source, &theirs).map_err(of_source)?.map_err(usage)?;
    for ((database, table), found) in &theirs {
        if let Some(why) = refusal(found) {
            return Err(usage(format!("source: `{database}`.`{table}` {why}")));
        }
    }
    tell_others(source, plan).map_err(of_source)?;
    let (position, definitions) = standing(source, plan)
        .map_err(of_source)?
        .ok_or_else(|| Failure::Passing("source: its definitions change all the time".into()))?;
    let ours = tables::all(target.connection(), &|_| true).map_err(of_target)?;
    let noted = Copying::read(target)?;
    let names = definitions.iter().map(|(name, _)| (plan.routes.text_name_of(&name.0), name.1.clone()));
    let names: Vec<TableName> = names.collect();
    // One that was noted before was made by a copy that did not come to its beginning.
    if let Some((database, table)) =
        names.iter().find(|name| ours.contains_key(*name) && noted.part(&name.0, &name.1).is_none())
    {
        let why = format!("target: `{database}`.`{table}` is there already: start = \"copy\" makes the tables that it copies");
        return Err(usage(why));
    }
    // Those that such a copy made, and that are gone since, were nobody's.
    for name in noted.names().iter().filter(|name| !names.contains(name)) {
        let gone = [b"DROP TABLE IF EXISTS ", &copying::quoted(name)[..]].concat();
        target.connection().execute(gone).map_err(of_target)?;
    }
    let forget = format!("DELETE FROM teak_replicate.copy WHERE source = '{}'", plan.name);
    target.add(forget.into_bytes())?;
    let mut copying = Copying::default();
    names.iter().try_for_each(|name| copying.set(target, name, Some(Part::None)))?;
    target.send()?;
    target.connection().execute("COMMIT").map_err(of_target)?;
    target.end_transaction();
    for ((there, text), here) in definitions.iter().zip(&names) {
        make(target, source, plan, (&there.0, &here.0), text)?;
    }
    Ok(position)
}

/// Says what is not copied.
fn tell_others(source: &mut Connection, plan: &SourcePlan) -> Result<(), Error> {
    let named = source.query(
        "SELECT TABLE_SCHEMA, 'view' FROM information_schema.VIEWS UNION ALL
        SELECT TRIGGER_SCHEMA, 'trigger' FROM information_schema.TRIGGERS UNION ALL
        SELECT ROUTINE_SCHEMA, 'routine' FROM information_schema.ROUTINES",
    )?;
    let count = tables::texts(named).filter(|row| plan.routes.follows(row[0].as_bytes())).count();
    if count > 0 {
        let why = "views, triggers and routines are not copied: load them when the tables are, from a dump without rows";
        teak_console::terminal::message(&format!("{}: {count} {why}", plan.name));
    }
    Ok(())
}

/// Makes a table, and its database if that is missing.
fn make(
    target: &mut Target<'_>,
    source: &mut Connection,
    plan: &SourcePlan,
    (there, here): (&str, &str),
    text: &[u8],
) -> Result<(), Failure> {
    let of_target = |error: Error| Failure::of_target(&error, || "the tables of a copy".into());
    let defaults = format!(
        "SELECT CONCAT('CHARACTER SET ', DEFAULT_CHARACTER_SET_NAME, ' COLLATE ', DEFAULT_COLLATION_NAME)
        FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}",
        literal(there.as_bytes())
    );
    let defaults = source.value(defaults).map_err(|error| Failure::of_source(&error))?.unwrap_or_default();
    let database =
        [b"CREATE DATABASE IF NOT EXISTS ", &quoted_name(here.as_bytes())[..], b" ", defaults.as_bytes()]
            .concat();
    target.connection().execute(database).map_err(of_target)?;
    let dialect = crate::statement::dialect(0, None);
    let rewritten = match crate::statement::classify(text, dialect) {
        crate::statement::Statement::Definition(definition) => {
            plan.routes.rewritten(text, &definition, dialect)
        }
        _ => None,
    };
    let rewritten = rewritten.and_then(|text| {
        let rest = text.strip_prefix(b"CREATE TABLE ")?.to_vec();
        Some([&b"CREATE OR REPLACE TABLE "[..], &rest].concat())
    });
    let rewritten = rewritten.ok_or_else(|| {
        Failure::Final(
            format!("source: this cannot be made here: {}", String::from_utf8_lossy(text)),
            Status::Usage,
        )
    })?;
    target.define(SESSION, here.as_bytes(), true, &rewritten).map_err(of_target)
}

/// A table at the source and what defines it.
type Defined = (TableName, Vec<u8>);

/// All definitions, and a position at which they are so: they are the same before and behind it. None: they are never.
fn standing(source: &mut Connection, plan: &SourcePlan) -> Result<Option<(String, Vec<Defined>)>, Error> {
    let mut before = defined(source, plan)?;
    for _ in 0..ATTEMPTS {
        let position = source.value("SELECT @@GLOBAL.gtid_binlog_pos")?.unwrap_or_default();
        let after = defined(source, plan)?;
        if before == after {
            return Ok(Some((position, after)));
        }
        before = after;
    }
    Ok(None)
}

fn defined(source: &mut Connection, plan: &SourcePlan) -> Result<Vec<Defined>, Error> {
    const GONE: [u16; 2] = [1049, 1146];
    let follows = |database: &str| plan.routes.follows(database.as_bytes());
    let mut all = Vec::new();
    for name in tables::all(source, &follows)?.into_keys() {
        match source.query([b"SHOW CREATE TABLE ", &copying::quoted(&name)[..]].concat()) {
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => (),
            shown => {
                let text = shown?.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten();
                all.push((name, crate::target::without_counter(text.unwrap_or_default())));
            }
        }
    }
    Ok(all)
}
