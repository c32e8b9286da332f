//! What a copy is of: the tables of a source, in an order in which they can be copied, and how they are made in the
//! target.

use crate::chunk_reader::{refusal, Planned};
use crate::configuration::SourcePlan;
use crate::copying::{self, noting, Copying, Part, TableName};
use crate::counterpart::Counterpart;
use crate::dump::{greeted, newest};
use crate::exclusions::{places_in, unique_columns};
use crate::failure::Failure;
use crate::of_mysql::{shown_utf8mb4, Foreign};
use crate::prepared;
use crate::statement::{classify, Statement};
use crate::tables::{self, Tables};
use crate::target::Target;
use std::collections::BTreeSet;
use teak_binlog::Family;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::quoting::{literal, quoted_name};

/// So often definitions are read until they stand still.
const ATTEMPTS: u32 = 100;
/// The session of statements that SHOW CREATE gives.
const SESSION: &str = "SET SESSION sql_mode = '', foreign_key_checks = 0";

/// The way out for a table that is not copied.
const LOAD_IT: &str = "load it, and begin behind that";

/// Why rows cannot be added.
pub const NO_LOADING: &str =
    "local_infile is OFF, and must be ON for start = \"copy\": rows are added by LOAD DATA LOCAL";

/// Whether the target takes rows.
pub fn takes_rows(target: &mut Connection) -> Result<bool, Error> {
    Ok(target.value("SELECT @@GLOBAL.local_infile")?.as_deref() == Some("1"))
}

/// The tables of a source that are not whole, parents before their children.
pub fn tables(
    source: &mut Connection,
    plan: &SourcePlan,
    copying: &Copying,
) -> Result<Vec<Planned>, Failure> {
    let of_source = |error: Error| Failure::of_source(&error);
    let follows =
        |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
    let theirs = tables::all(source, &follows).map_err(of_source)?;
    let order = in_order(source, &theirs).map_err(of_source)?;
    let order = order.map_err(|why| Failure::Final(why, Status::Usage))?;
    let here = |name: &TableName| plan.routes.names_of(&name.0, &name.1);
    let planned = |ordered: Ordered| {
        let counterpart = Counterpart::of(plan, &ordered.name.0, &ordered.name.1);
        Planned {
            here: counterpart.name.clone(),
            parents: ordered.parents.iter().map(here).collect(),
            at_once: ordered.at_once,
            // What keys it has is not known from the source's, and others may read by them.
            is_apart: ordered.is_apart && !counterpart.has_more_columns(),
            defers_keys: ordered.defers_keys && !counterpart.has_more_columns(),
            left_out: left_out(plan, &ordered.name),
            counterpart,
            there: ordered.name,
        }
    };
    let mut all: Vec<Planned> = order.into_iter().map(planned).collect();
    all.retain(|table| copying.part(&table.here.0, &table.here.1).is_some());
    Ok(all)
}

/// A table at the source.
struct Ordered {
    name: TableName,
    /// All its rows are to be taken at once.
    at_once: bool,
    parents: BTreeSet<TableName>,
    is_apart: bool,
    defers_keys: bool,
}

/// Tables with parents before their children; an inner error if that cannot be.
fn in_order(source: &mut Connection, tables: &Tables) -> Result<Result<Vec<Ordered>, String>, Error> {
    let mut all: Vec<Ordered> = tables
        .iter()
        .map(|(name, table)| Ordered {
            name: name.clone(),
            at_once: false,
            parents: BTreeSet::new(),
            is_apart: !table.has_more_unique_keys && !table.is_sequence,
            defers_keys: table.has_other_keys,
        })
        .collect();
    for reference in tables::references(source)? {
        let (child, parent) = (reference.child, reference.parent);
        for table in &mut all {
            if table.name == child {
                // What the parent's row does to such a number is in no log, so rows would come to where nobody looks
                // for them.
                let moves = reference.changes_with_parent
                    && tables.get(&child).is_some_and(|table| table.key.first() == Some(&reference.column));
                table.at_once |= child == parent || moves;
                if child != parent && tables.contains_key(&parent) {
                    table.parents.insert(parent.clone());
                }
            }
            // Rows of one are looked for, and locked, with those of the other.
            let is_alone = table.name != child && table.name != parent;
            table.defers_keys &= is_alone;
            table.is_apart &= is_alone;
        }
    }
    let (mut left, mut order): (Vec<Ordered>, Vec<Ordered>) = (all, Vec::new());
    while !left.is_empty() {
        let waiting: BTreeSet<TableName> = left.iter().map(|table| table.name.clone()).collect();
        let (free, others): (Vec<Ordered>, Vec<Ordered>) =
            left.into_iter().partition(|table| table.parents.is_disjoint(&waiting));
        if free.is_empty() {
            let names = others
                .iter()
                .map(|Ordered { name: (database, table), .. }| format!("`{database}`.`{table}`"));
            let names = names.collect::<Vec<_>>().join(", ");
            return Ok(Err(format!(
                "source: foreign keys of these tables are a circle: load them from a dump: {names}"
            )));
        }
        order.extend(free);
        left = others;
    }
    for at in 0..order.len() {
        // Also those that are changed through others.
        let further = order[..at].iter().filter(|table| order[at].parents.contains(&table.name));
        let further: BTreeSet<TableName> = further.flat_map(|table| table.parents.clone()).collect();
        order[at].parents.extend(further);
    }
    Ok(Ok(order))
}

/// Makes the tables of a source in the target, and notes that they are to be copied; the position that they are of.
pub fn define(
    target: &mut Target<'_>,
    source: &mut Connection,
    plan: &SourcePlan,
    engine: Option<&str>,
) -> Result<String, Failure> {
    let of_source = |error: Error| Failure::of_source(&error);
    let of_target = |error: Error| Failure::of_target(&error, || "the tables of a copy".into());
    let usage = |why: String| Failure::Final(why, Status::Usage);
    if !takes_rows(target.connection()).map_err(of_target)? {
        return Err(usage(format!("target: {NO_LOADING}")));
    }
    let image = source.value("SELECT @@GLOBAL.binlog_row_image").map_err(of_source)?.unwrap_or_default();
    if image != "FULL" {
        return Err(usage(format!(
            "source: binlog_row_image is {image}, and must be FULL while tables are copied"
        )));
    }
    crate::chunks::prepare(source).map_err(of_source)?;
    let follows =
        |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
    let theirs = tables::all(source, &follows).map_err(of_source)?;
    in_order(source, &theirs).map_err(of_source)?.map_err(usage)?;
    for ((database, table), found) in &theirs {
        if let Some(why) = refusal(found).or_else(|| refused_by(plan, &theirs, (database, table))) {
            return Err(usage(format!("source: `{database}`.`{table}` {why}")));
        }
        let left_out = plan.exclusions.columns(database, table);
        if !left_out.is_empty() {
            let unique = unique_columns(source, &(database.clone(), table.clone())).map_err(of_source)?;
            places_in(found, &unique, &left_out)
                .map_err(|why| usage(format!("source: `{database}`.`{table}` {why}")))?;
        }
    }
    let (position, definitions) = standing(source, plan)
        .map_err(of_source)?
        .ok_or_else(|| Failure::Passing("source: its definitions change all the time".into()))?;
    let ours = tables::all(target.connection(), &|_, _| true).map_err(of_target)?;
    let noted = Copying::read(target)?;
    let counterparts: Vec<Counterpart> =
        definitions.iter().map(|(name, _)| Counterpart::of(plan, &name.0, &name.1)).collect();
    let names: Vec<TableName> = counterparts.iter().map(|counterpart| counterpart.name.clone()).collect();
    must_be_ready(target, plan, &theirs, &ours).map_err(of_target)?.map_err(usage)?;
    // One that was noted before was made by a copy that did not come to its beginning.
    let is_new = |counterpart: &&Counterpart| !counterpart.has_more_columns();
    let made = counterparts.iter().filter(is_new).map(|counterpart| &counterpart.name);
    if let Some((database, table)) =
        made.into_iter().find(|name| ours.contains_key(*name) && noted.part(&name.0, &name.1).is_none())
    {
        let why = format!("target: `{database}`.`{table}` is there already: start = \"copy\" makes the tables that it copies");
        return Err(usage(why));
    }
    // Those that such a copy made, and that are gone since, were nobody's; none has a row.
    for name in noted.names().iter().filter(|name| !names.contains(name) && ours.contains_key(*name)) {
        let quoted = copying::quoted(name);
        let row = [b"SELECT 1 FROM ", &quoted[..], b" LIMIT 1"].concat();
        if target.connection().value(row).map_err(of_target)?.is_none() {
            target
                .connection()
                .execute([b"DROP TABLE IF EXISTS ", &quoted[..]].concat())
                .map_err(of_target)?;
        }
    }
    let forget = format!("DELETE FROM teak_replicate.copy WHERE source = '{}'", plan.name);
    target.add(forget.into_bytes())?;
    let mut noted = prepared::nothing_is_copied(&plan.name).into_iter();
    noted.try_for_each(|statement| target.add(statement.into_bytes()))?;
    // Those of a MySQL are not copied.
    let has_others = plan.follows_bodies() && greeted(source) == Family::MariaDb;
    let others = has_others.then(copying::others);
    let mut all = names.iter().chain(&others);
    all.try_for_each(|name| target.add(noting(&plan.name, name, Some(Part::None))))?;
    target.send()?;
    target.connection().execute("COMMIT").map_err(of_target)?;
    target.end_transaction();
    for ((there, text), counterpart) in definitions.iter().zip(&counterparts) {
        if counterpart.has_more_columns() {
            continue;
        }
        let here = &counterpart.name;
        make(target, source, (plan, engine), (&there.0, &here.0), text)?;
    }
    Ok(position)
}

/// Why a table is not copied for what the configuration says of it; `all` are those of the source.
pub fn refused_by(plan: &SourcePlan, all: &Tables, (database, table): (&str, &str)) -> Option<String> {
    if plan.exclusions.leaves_some_out(database, table) {
        let why = "which of those that are made while it is copied would be left out is chance";
        return Some(format!("has changes that are left out (exclude_changes): {why}: {LOAD_IT}"));
    }
    let here = plan.routes.names_of(database, table);
    let is_other = |name: &&TableName| (&name.0[..], &name.1[..]) != (database, table);
    let mut others = all.keys().filter(is_other);
    let other = others.find(|name| plan.routes.names_of(&name.0, &name.1) == here)?;
    let why = "how far each of them is copied is noted by the target's name";
    Some(format!("is one with `{}`.`{}` of the same source: {why}: {LOAD_IT}", other.0, other.1))
}

/// Columns of a table of which no values come.
fn left_out(plan: &SourcePlan, name: &TableName) -> Vec<String> {
    plan.exclusions.columns(&name.0, &name.1).into_iter().map(str::to_string).collect()
}

/// Tables that the target must have before it: an inner error if one is not there, is another one, or has rows.
fn must_be_ready(
    target: &mut Target<'_>,
    plan: &SourcePlan,
    theirs: &Tables,
    ours: &Tables,
) -> Result<Result<(), String>, Error> {
    let connection = target.connection();
    let engines = tables::engines(connection)?;
    for ((database, table), there) in theirs {
        let counterpart = Counterpart::of(plan, database, table);
        if !counterpart.has_more_columns() {
            continue;
        }
        let why = match ours.get(&counterpart.name) {
            None => Some(counterpart.missing()),
            Some(found) => counterpart.differences(there, found, &engines).into_iter().next(),
        };
        if let Some(why) = why {
            return Ok(Err(format!("source: `{database}`.`{table}` {why}")));
        }
        if counterpart.has_rows(connection)? {
            return Ok(Err(format!("source: `{database}`.`{table}` {}", counterpart.filled())));
        }
    }
    Ok(Ok(()))
}

/// Makes a table, and its database if that is missing.
fn make(
    target: &mut Target<'_>,
    source: &mut Connection,
    (plan, engine): (&SourcePlan, Option<&str>),
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
    let dialect = crate::statement::dialect(0, None);
    let (mut database, mut text) = (database, text.to_vec());
    if greeted(source) == Family::MySql {
        let mut in_mariadb = |text: &[u8]| {
            let Statement::Definition(definition) = classify(text, dialect) else { return Ok(None) };
            let foreign = Foreign {
                text,
                definition: &definition,
                dialect,
                database: there.as_bytes(),
                session: SESSION,
                utf8mb4_collation: shown_utf8mb4(source.version()),
                has_inline_references: true,
            };
            foreign.in_mariadb(target, plan, engine)
        };
        database = in_mariadb(&database)?.unwrap_or(database);
        text = in_mariadb(&text)?.unwrap_or(text);
    }
    target.connection().execute(database).map_err(of_target)?;
    let rewritten = match classify(&text, dialect) {
        Statement::Definition(definition) => {
            plan.rewritten(&text, &definition, dialect, there.as_bytes()).ok()
        }
        _ => None,
    };
    let rewritten = rewritten.and_then(|text| {
        let rest = text.strip_prefix(b"CREATE TABLE ")?.to_vec();
        Some([&b"CREATE OR REPLACE TABLE "[..], &rest].concat())
    });
    let rewritten = rewritten.ok_or_else(|| {
        Failure::Final(
            format!("source: this cannot be made here: {}", String::from_utf8_lossy(&text)),
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
        // A statement that changes definitions keeps them to itself until it is part of the position.
        let family = greeted(source);
        let position = newest(source, family)?.unwrap_or_default();
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
    let follows =
        |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
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
