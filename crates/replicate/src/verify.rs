//! `teak replicate verify`: compares the rows of both sides, while they are followed or not.
//!
//! ```text
//! range of keys ─> sums of both sides ─> equal: next range
//!                          └─> other: numbers of each row ─> suspects
//! suspects      ─> the source, then the target once it has what the source's log had, then the source again
//! ```
//!
//! A suspect whose row was the same at the source both times, and is another one in the target at a position between,
//! is taken for a difference if that is so several times on end. One that is as one of the two is none. All others are
//! looked at again.

use crate::chunks::{Key, Range, Shape, Sum};
use crate::configuration::{Configuration, SourcePlan};
use crate::dump::DumpError;
use crate::repair;
use crate::sides::{Pair, SideError, Sides};
use crate::tables::{self, Table, Tables};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::time::Duration;
use teak_client::{Connection, Error};
use teak_console::signals;

/// Rows of a range.
const ROWS: u64 = 10_000;
/// So many suspects are asked for in one statement.
const BATCH: usize = 200;
/// So many wait for that at most.
const SUSPECTS: usize = 20_000;
/// So often suspects are looked at all together, and then a few of them at a time, between which less happens.
const ATTEMPTS: u32 = 10;
const MORE_ATTEMPTS: u32 = 40;
/// And so often a table whose definition changes meanwhile.
const TABLE_ATTEMPTS: u32 = 3;
/// How often in a row a difference must have been seen: a row that comes and goes all the time may be gone at the
/// source twice, and be there in between.
const CERTAIN: u32 = 8;
const PAUSE: Duration = Duration::from_millis(10);
/// So many differences of a table are told one by one.
const TOLD: u64 = 100;

/// What is to be done with differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Tell the values that differ.
    pub values: bool,
    /// Make the target's rows those of the source.
    pub repair: bool,
}

/// Why both sides are not known to be the same.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// They are not, or it could not be told; each was.
    #[error("{0} differences are left")]
    Different(u64),
    /// Somebody else has changed so many rows in the target.
    #[error("somebody else has changed {0} rows")]
    WrittenHere(u64),
    /// The target's log does not tell what is of the source.
    #[error("{0}: without gtid_domain_id the target's log does not tell what somebody else has changed")]
    NoOrigin(String),
    /// It cannot be read.
    #[error("target: its log: {0}")]
    Log(#[from] DumpError),
    /// A server.
    #[error("{source_name}: {error}")]
    Side {
        /// Of which source.
        source_name: String,
        /// What it says.
        error: SideError,
    },
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

/// What was found in a source, or in a table.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    tables: u64,
    rows: u64,
    differences: u64,
    repaired: u64,
    undecided: u64,
}

/// Compares all tables of all sources.
pub fn show(configuration: &Configuration, wanted: Wanted, out: &mut dyn Write) -> Result<(), VerifyError> {
    signals::catch();
    let mut left = 0;
    let mut all = BTreeSet::new();
    for plan in &configuration.sources {
        let of = |error| VerifyError::Side { source_name: plan.name.clone(), error };
        let sides = Sides::connect(&configuration.target, plan).map_err(of)?;
        let mut verify = Verify { plan, sides, wanted, out: &mut *out, tally: Tally::default() };
        all.extend(verify.source().map_err(|error| match error {
            Stop::Side(error) => of(error),
            Stop::Output(error) => VerifyError::Output(error),
        })?);
        let Tally { tables, rows, differences, repaired, undecided } = verify.tally;
        let name = &plan.name;
        writeln!(
            out,
            "{name}: {tables} tables, {rows} rows, {differences} differences, {repaired} repaired, {undecided} not decided"
        )?;
        left += differences - repaired + undecided;
    }
    left += extra_tables(configuration, &all, out)?;
    match left {
        0 => Ok(()),
        left => Err(VerifyError::Different(left)),
    }
}

/// Tables of the target that no source has, in databases in which sources have some, but for those that the
/// configuration leaves out; how many. `all` is what sources have.
fn extra_tables(
    configuration: &Configuration,
    all: &BTreeSet<(String, String)>,
    out: &mut dyn Write,
) -> Result<u64, VerifyError> {
    let databases: BTreeSet<&str> = all.iter().map(|(database, _)| database.as_str()).collect();
    let is_left_out = |database: &str, table: &str| {
        configuration.sources.iter().any(|source| source.routes.leave_out(database, table))
    };
    let is_meant =
        |database: &str, table: &str| databases.contains(database) && !is_left_out(database, table);
    let plan = &configuration.target;
    let here = plan.settings.connect().and_then(|mut target| tables::all(&mut target, &is_meant));
    let here = here
        .map_err(|error| VerifyError::Side { source_name: "all".into(), error: SideError::Target(error) })?;
    let mut extra = 0;
    for (database, table) in here.keys().filter(|name| !all.contains(*name)) {
        writeln!(out, "`{database}`.`{table}` of the target is at no source")?;
        extra += 1;
    }
    Ok(extra)
}

/// Why a comparison ends.
#[derive(Debug)]
enum Stop {
    Side(SideError),
    Output(std::io::Error),
}

impl From<SideError> for Stop {
    fn from(error: SideError) -> Stop {
        Stop::Side(error)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

struct Verify<'v> {
    plan: &'v SourcePlan,
    sides: Sides,
    wanted: Wanted,
    out: &'v mut dyn Write,
    tally: Tally,
}

/// A row that differs: its key, and its numbers at the source and in the target.
type Difference = (Key, Option<Vec<u8>>, Option<Vec<u8>>);

/// A row that was not the same on both sides.
struct Suspect {
    key: Key,
    /// How often in a row it was seen that it differs.
    seen: u32,
    /// The target's number of it then.
    here: Option<Vec<u8>>,
}

impl Suspect {
    fn new(key: Key) -> Suspect {
        Suspect { key, seen: 0, here: None }
    }

    /// It was seen once more: whether as a difference, and what the target has.
    fn count(&mut self, differs: bool, here: Option<&Vec<u8>>) {
        self.seen = match (differs, self.here.as_ref() == here) {
            (false, _) => 0,
            (true, true) => self.seen + 1,
            (true, false) => 1,
        };
        self.here = here.cloned();
    }
}

impl Verify<'_> {
    /// All tables; returns their names in the target.
    fn source(&mut self) -> Result<BTreeSet<(String, String)>, Stop> {
        let theirs = self.tables()?;
        let routes = &self.plan.routes;
        let names = theirs.keys().map(|(database, table)| routes.names_of(database, table));
        let names: BTreeSet<(String, String)> = names.collect();
        for ((database, name), table) in theirs {
            if signals::interrupted() {
                break;
            }
            self.table(&database, &name, table)?;
        }
        Ok(names)
    }

    fn tables(&mut self) -> Result<Tables, SideError> {
        let routes = &self.plan.routes;
        let follows =
            |database: &str, table: &str| routes.follows_table(database.as_bytes(), table.as_bytes());
        let tables = tables::all(&mut self.sides.source, &follows).map_err(SideError::Source)?;
        let compared = tables.into_iter().map(|(name, table)| {
            let table = self.plan.exclusions.without_columns((&name.0, &name.1), table);
            (name, table)
        });
        Ok(compared.collect())
    }

    /// A table, again if its definition changes meanwhile.
    fn table(&mut self, database: &str, name: &str, mut table: Table) -> Result<(), Stop> {
        let ours = self.plan.routes.names_of(database, name);
        if self.plan.exclusions.leaves_some_out(database, name) {
            let why = "is not compared, as some of its changes are left out";
            writeln!(self.out, "{}: `{database}`.`{name}` {why}", self.plan.name)?;
            return Ok(());
        }
        if self.sides.is_to_be_copied(&ours.0, &ours.1)? {
            writeln!(self.out, "{}: `{database}`.`{name}` is not copied yet", self.plan.name)?;
            self.tally.undecided += 1;
            return Ok(());
        }
        let before = self.tally;
        for attempt in 1..=TABLE_ATTEMPTS {
            self.tally = before;
            let shown = format!("{}: `{database}`.`{name}`", self.plan.name);
            let pair = Pair::of(self.plan, (database, name), &table);
            let shape = match pair.counterpart.is_alike() {
                true => Shape::of(&table),
                false => Shape::of(&table).without_hint(),
            };
            let shape = shape.by_digest(self.sides.digest);
            match self.rows(&shown, &pair, &shape) {
                Err(Stop::Side(error)) if error.error().code().is_some() => {
                    let is_applied = self.sides.catch_up()?;
                    let mut now = self.tables()?;
                    match now.remove(&(database.to_string(), name.to_string())) {
                        None => return Ok(()),
                        Some(other) => table = other,
                    }
                    if attempt == TABLE_ATTEMPTS || !is_applied {
                        writeln!(self.out, "{shown} cannot be compared: {error}")?;
                        self.tally.undecided += 1;
                        return Ok(());
                    }
                }
                other => {
                    self.tally.tables += 1;
                    return other;
                }
            }
        }
        Ok(())
    }

    fn rows(&mut self, shown: &str, pair: &Pair, shape: &Shape) -> Result<(), Stop> {
        if !shape.has_key() {
            return self.without_key(shown, pair, shape);
        }
        let (mut above, mut suspects) = (None, Vec::new());
        let mut told = 0;
        while !signals::interrupted() {
            let upto = shape.bound(&mut self.sides.source, &pair.there, above.as_ref(), ROWS);
            let upto = upto.map_err(SideError::Source)?;
            let range = Range::Of(above.as_ref(), upto.as_ref());
            let (there, here) = self.sides.both(pair, |side, table| shape.sum(side, table, range))?;
            self.tally.rows += there.rows;
            if there != here {
                self.suspect(pair, shape, range, &mut suspects)?;
            }
            if suspects.len() > SUSPECTS || upto.is_none() {
                self.judge(shown, pair, shape, std::mem::take(&mut suspects), &mut told)?;
            }
            if upto.is_none() {
                break;
            }
            above = upto;
        }
        Ok(())
    }

    /// Adds the keys of rows that are not the same.
    fn suspect(
        &mut self,
        pair: &Pair,
        shape: &Shape,
        range: Range<'_>,
        suspects: &mut Vec<Suspect>,
    ) -> Result<(), SideError> {
        let (there, here) = self.sides.both(pair, |side, table| shape.numbers(side, table, range))?;
        let mut here: HashMap<Key, Vec<u8>> = here.into_iter().collect();
        let unlike = there.into_iter().filter(|(key, number)| here.remove(key).as_ref() != Some(number));
        let unlike: Vec<Key> = unlike.map(|(key, _)| key).collect();
        // What is left is not at the source.
        suspects.extend(unlike.into_iter().chain(here.into_keys()).map(Suspect::new));
        Ok(())
    }

    /// Looks at suspects again, until each is known to be a difference or none.
    fn judge(
        &mut self,
        shown: &str,
        pair: &Pair,
        shape: &Shape,
        suspects: Vec<Suspect>,
        told: &mut u64,
    ) -> Result<(), Stop> {
        let mut found = self.certain(shown, pair, shape, suspects)?;
        // What goes makes room for what comes in unique keys, and for the same key in other letters.
        found.sort_by_key(|(_, there, _)| there.is_some());
        for (key, there, here) in found {
            self.tally.differences += 1;
            *told += 1;
            let row = Row { shown, pair, shape, key: &key };
            self.tell(&row, there.is_some(), here.is_some(), *told)?;
            if self.wanted.repair {
                let states = (there.as_deref(), here.as_deref());
                match repair::row(&mut self.sides, pair, shape, &key, states)? {
                    Ok(()) => self.tally.repaired += 1,
                    Err(why) => {
                        writeln!(self.out, "{shown}, key {}: not repaired: {why}", shape.shown(&key))?
                    }
                }
            }
        }
        if *told > TOLD {
            writeln!(self.out, "{shown}: {} more differences", *told - TOLD)?;
        }
        Ok(())
    }

    /// Those that are differences.
    fn certain(
        &mut self,
        shown: &str,
        pair: &Pair,
        shape: &Shape,
        mut suspects: Vec<Suspect>,
    ) -> Result<Vec<Difference>, Stop> {
        let mut found = Vec::new();
        let mut is_applied = self.look(pair, shape, &mut suspects, ATTEMPTS, &mut found)?;
        let mut left = Vec::new();
        while is_applied && !suspects.is_empty() {
            let rest = suspects.split_off(suspects.len().min(BATCH));
            let mut batch = std::mem::replace(&mut suspects, rest);
            is_applied = self.look(pair, shape, &mut batch, MORE_ATTEMPTS, &mut found)?;
            left.append(&mut batch);
        }
        left.append(&mut suspects);
        if !left.is_empty() && !signals::interrupted() {
            let why = match is_applied {
                true => "have changed whenever they were looked at",
                false => "differ, and what the source's log has is not applied",
            };
            writeln!(self.out, "{shown}: {} rows {why}", left.len())?;
            self.tally.undecided += left.len() as u64;
        }
        Ok(found)
    }

    /// Looks at suspects, and leaves those of which nothing is certain. False: the target does not get what the source
    /// has, so that nothing can be certain.
    fn look(
        &mut self,
        pair: &Pair,
        shape: &Shape,
        suspects: &mut Vec<Suspect>,
        attempts: u32,
        found: &mut Vec<Difference>,
    ) -> Result<bool, SideError> {
        let sides = &mut self.sides;
        let mut before =
            numbers(shape, &mut sides.source, &pair.there, suspects).map_err(SideError::Source)?;
        for attempt in 0..attempts {
            if suspects.is_empty() || signals::interrupted() {
                break;
            }
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            let is_applied = sides.catch_up()?;
            let ours = numbers(shape, &mut sides.target, &pair.here, suspects).map_err(SideError::Target)?;
            let after =
                numbers(shape, &mut sides.source, &pair.there, suspects).map_err(SideError::Source)?;
            suspects.retain_mut(|suspect| {
                let of = |rows: &HashMap<Key, Vec<u8>>| rows.get(&suspect.key).cloned();
                let (first, here, second) = (of(&before), of(&ours), of(&after));
                if here == first || here == second {
                    return false;
                }
                suspect.count(is_applied && first == second, here.as_ref());
                if suspect.seen >= CERTAIN {
                    found.push((suspect.key.clone(), second, here));
                }
                suspect.seen < CERTAIN
            });
            before = after;
            if !is_applied {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A difference, as a line.
    fn tell(&mut self, row: &Row<'_>, is_there: bool, is_here: bool, number: u64) -> Result<(), Stop> {
        if number > TOLD {
            return Ok(());
        }
        let what = match (is_there, is_here) {
            (true, false) => "is missing in the target".to_string(),
            (false, _) => "is not at the source".to_string(),
            (true, true) => self.columns_of(row)?,
        };
        Ok(writeln!(self.out, "{}, key {}: {what}", row.shown, row.shape.shown(row.key))?)
    }

    /// The columns in which a row differs.
    fn columns_of(&mut self, row: &Row<'_>) -> Result<String, SideError> {
        let (columns, keys) = (row.shape.compared(), [row.key.clone()]);
        let range = Range::Keys(&keys);
        let (there, here) =
            self.sides.both(row.pair, |side, table| row.shape.values(side, table, &columns, range))?;
        let (Some(there), Some(here)) = (there.first(), here.first()) else { return Ok("differs".into()) };
        let unlike = columns.iter().zip(there.iter().zip(here)).filter(|(_, (there, here))| there != here);
        let names = unlike.map(|(column, (there, here))| {
            let name = String::from_utf8_lossy(&column.name);
            match self.wanted.values {
                false => name.into_owned(),
                true => format!(
                    "{name} is {} at the source, {} in the target",
                    crate::chunks::shown(there.as_deref()),
                    crate::chunks::shown(here.as_deref())
                ),
            }
        });
        Ok(format!("differs in {}", names.collect::<Vec<_>>().join(", ")))
    }

    /// A table whose rows cannot be told apart: all of them at once.
    fn without_key(&mut self, shown: &str, pair: &Pair, shape: &Shape) -> Result<(), Stop> {
        let all = Range::Of(None, None);
        let (mut there, mut here) = self.sides.both(pair, |side, table| shape.sum(side, table, all))?;
        self.tally.rows += there.rows;
        let mut seen = 0;
        for _ in 0..MORE_ATTEMPTS {
            if there == here {
                return Ok(());
            }
            let is_applied = self.sides.catch_up()?;
            here = shape.sum(&mut self.sides.target, &pair.here, all).map_err(SideError::Target)?;
            if there == here {
                return Ok(());
            }
            let again = shape.sum(&mut self.sides.source, &pair.there, all).map_err(SideError::Source)?;
            seen = if is_applied && there == again { seen + 1 } else { 0 };
            there = again;
            if seen >= CERTAIN {
                self.tally.differences += 1;
                return self.tell_sums(shown, &there, &here);
            }
            if !is_applied || signals::interrupted() {
                break;
            }
        }
        if there != here {
            writeln!(self.out, "{shown} has no key, and was another one whenever it was looked at")?;
            self.tally.undecided += 1;
        }
        Ok(())
    }

    fn tell_sums(&mut self, shown: &str, there: &Sum, here: &Sum) -> Result<(), Stop> {
        let more = if self.wanted.repair { "; not repaired, as its rows have no key" } else { "" };
        let (theirs, ours) = (there.rows, here.rows);
        match theirs == ours {
            true => writeln!(self.out, "{shown}: some of its {theirs} rows differ{more}")?,
            false => writeln!(self.out, "{shown}: {theirs} rows at the source, {ours} in the target{more}")?,
        }
        Ok(())
    }
}

/// The numbers of rows of one side.
fn numbers(
    shape: &Shape,
    side: &mut Connection,
    table: &[u8],
    suspects: &[Suspect],
) -> Result<HashMap<Key, Vec<u8>>, Error> {
    let mut found = HashMap::new();
    for batch in suspects.chunks(BATCH) {
        let keys: Vec<Key> = batch.iter().map(|suspect| suspect.key.clone()).collect();
        found.extend(shape.numbers(side, table, Range::Keys(&keys))?);
    }
    Ok(found)
}

/// A row of a table.
struct Row<'r> {
    shown: &'r str,
    pair: &'r Pair,
    shape: &'r Shape,
    key: &'r Key,
}
