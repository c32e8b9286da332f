//! `--check`: whether the tables hold what the dump says, value by value.
//!
//! Every row of the dump is inserted a second time, into a temporary table of the same columns (`scratch`), where the
//! server converts it as it did for the table itself. Of each such portion the rows are counted and their numbers added
//! up (`teak_sql::columns`); in the end the table's must be the same. A sum does not depend on the order of rows or on
//! which connection had them.
//!
//! ```text
//! what was there before  +  sum of the dump's portions  =  what is there in the end
//! ```
//!
//! Statements whose effect is not that of their rows alone leave a *doubt* about a table: then equal sums still prove
//! it equal, and different ones prove nothing and are told as such.
//!
//! Dumps are loaded without a look at foreign keys. Tables of Teak that have some are checked for rows without a parent
//! (`orphans`): the server merges the indexes of both sides.

mod orphans;
mod scratch;

pub use scratch::Checker;

use super::error::LoadError;
use super::state::LoadState;
use super::task::{Facts, Table, Task};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use teak_client::{Connection, Error};
use teak_sql::charset::Dialect;
use teak_sql::columns::{self, Column, Digest};
use teak_sql::tokens::Tokens;

const NOT_KNOWN: &str = "what it held before the interrupted load is not known";
/// Connections that compare tables in the end, each one at a time.
const COMPARERS: usize = 4;

/// A number of rows, and the sum of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    rows: u64,
    hashes: u128,
}

impl Sum {
    /// The answer to a statement of `columns::sum`.
    fn ask(connection: &mut Connection, statement: &[u8]) -> Result<Sum, Error> {
        let row = connection.query(statement)?.into_iter().next().unwrap_or_default();
        let text = |place: usize| match row.get(place) {
            Some(Some(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => "0".to_string(),
        };
        let broken = |_| Error::Protocol("a sum that is no number".into());
        Ok(Sum { rows: text(0).parse().map_err(broken)?, hashes: text(1).parse().map_err(broken)? })
    }

    fn add(self, other: Sum) -> Sum {
        Sum { rows: self.rows + other.rows, hashes: self.hashes.wrapping_add(other.hashes) }
    }
}

/// Why different sums would prove nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// Of values; the number of rows is known.
    Values(String),
    /// Of the rows too.
    Rows(String),
}

impl Doubt {
    fn text(&self) -> &str {
        match self {
            Doubt::Values(text) | Doubt::Rows(text) => text,
        }
    }
}

/// What a table should hold.
#[derive(Debug)]
struct Expected {
    table: Arc<Table>,
    columns: Vec<Column>,
    before: Sum,
    /// Of the dump, as it was read.
    rows: u64,
    /// Of the dump, as the server converted it.
    sum: Sum,
    doubt: Option<Doubt>,
    /// The server's answer that made the sum impossible.
    failure: Option<String>,
}

/// What is known of all tables.
pub struct Verify {
    tables: Mutex<BTreeMap<String, Expected>>,
    resumes: bool,
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Equal,
    /// Only the number of rows is known to be equal, or not even that.
    Unknown,
    Different,
}

impl Verify {
    pub fn new(resumes: bool) -> Verify {
        Verify { tables: Mutex::default(), resumes }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Expected>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement about the table was carried out: after all before it in the table, before all after it.
    pub fn defined(
        &self,
        connection: &mut Connection,
        table: &Arc<Table>,
        (statement, dialect): (&[u8], Dialect),
    ) -> Result<(), Error> {
        let mut tokens = Tokens::new(statement, dialect);
        if tokens.accept("DROP") {
            self.lock().remove(&table.shown());
        } else if tokens.accept("TRUNCATE") {
            self.begin(table, Vec::new(), Sum::default());
        } else if tokens.accept("CREATE") {
            let replaces = tokens.accept("OR") && tokens.accept("REPLACE");
            let is_table = tokens.accept("TABLE");
            self.created(connection, table, replaces && is_table, is_table && tokens.accept("IF"))?;
        }
        Ok(())
    }

    /// The table is there now, or was there already.
    fn created(
        &self,
        connection: &mut Connection,
        table: &Arc<Table>,
        replaced: bool,
        perhaps: bool,
    ) -> Result<(), Error> {
        if self.lock().contains_key(&table.shown()) && !replaced {
            return Ok(());
        }
        // One that has rows is summed before the dump adds some.
        let is_empty = match connection.query([b"SELECT 1 FROM ", &table.quoted()[..], b" LIMIT 1"].concat())
        {
            Ok(rows) => rows.is_empty(),
            Err(Error::Server { .. }) => false,
            Err(error) => return Err(error),
        };
        if self.resumes || is_empty {
            self.begin(table, Vec::new(), Sum::default());
        }
        if self.resumes && perhaps {
            self.doubt(table, Doubt::Rows(NOT_KNOWN.into()));
        }
        Ok(())
    }

    fn begin(&self, table: &Arc<Table>, columns: Vec<Column>, before: Sum) {
        let (rows, sum, doubt, failure) = Default::default();
        let expected = Expected { table: table.clone(), columns, before, rows, sum, doubt, failure };
        self.lock().insert(table.shown(), expected);
    }

    /// Rows of the dump are about to go into the table.
    pub fn expect(
        &self,
        shared: &LoadState,
        table: &Arc<Table>,
        facts: &Facts,
        rows: u64,
    ) -> Result<(), LoadError> {
        if !self.lock().contains_key(&table.shown()) {
            let before = match self.resumes {
                true => Sum::default(),
                false => before(shared, table, facts)?,
            };
            self.begin(table, facts.definition.clone(), before);
            if self.resumes {
                self.doubt(table, Doubt::Rows(NOT_KNOWN.into()));
            }
        }
        let mut changed = false;
        if let Some(expected) = self.lock().get_mut(&table.shown()) {
            expected.rows += rows;
            if expected.columns.is_empty() {
                expected.columns.clone_from(&facts.definition);
            }
            changed = !columns::are_alike(&expected.columns, &facts.definition);
        }
        if changed {
            self.doubt(table, Doubt::Values("its columns changed between its rows".into()));
        }
        Ok(())
    }

    /// Keeps the first doubt of a kind about a table; one about its rows comes before one about values.
    pub fn doubt(&self, table: &Table, doubt: Doubt) {
        if let Some(expected) = self.lock().get_mut(&table.shown()) {
            expected.doubt(doubt);
        }
    }

    /// A statement may have changed any table.
    pub fn doubt_all(&self, why: &str) {
        self.lock().values_mut().for_each(|expected| expected.doubt(Doubt::Rows(why.to_string())));
    }

    /// The sum of a portion of the dump's rows, or the server's answer that makes it impossible.
    pub fn add(&self, table: &Table, portion: Result<Sum, LoadError>) -> Result<(), LoadError> {
        let mut tables = self.lock();
        let Some(expected) = tables.get_mut(&table.shown()) else { return Ok(()) };
        match portion {
            Ok(portion) => expected.sum = expected.sum.add(portion),
            Err(LoadError::Server(error @ Error::Server { .. })) => {
                expected.failure.get_or_insert_with(|| error.to_string());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether sums of the table's rows are of any use.
    pub fn is_summed(&self, table: &Table) -> bool {
        self.lock().get(&table.shown()).is_some_and(|expected| expected.failure.is_none())
    }

    /// Inserts a task's rows a second time, on a checker that is made when it is needed.
    pub fn sum_of<'a>(
        shared: &'a LoadState,
        checker: &mut Option<Checker<'a>>,
        (task, facts): (&Task, &Arc<Facts>),
    ) -> Result<(), LoadError> {
        let Some(verify) = shared.verify.as_ref().filter(|verify| verify.is_summed(&task.table)) else {
            return Ok(());
        };
        let checker = match checker {
            Some(checker) => checker,
            None => checker.insert(Checker::new(shared, shared.connect()?)?),
        };
        let statements = task.units.iter().map(|unit| &unit.text[..]);
        verify.add(&task.table, checker.sum(&task.session, &task.table, facts, statements))
    }

    /// Compares all tables; the number of those that differ, or could not be compared.
    pub fn compare(&self, shared: &LoadState) -> Result<Compared, LoadError> {
        let tables = std::mem::take(&mut *self.lock());
        let tables: Vec<Expected> = tables.into_values().collect();
        let (next, different, unknown) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || -> Result<(), LoadError> {
            let mut connection = scratch::for_comparison(shared)?;
            while let Some(expected) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                let count = match expected.compare(shared, &mut connection)? {
                    Verdict::Equal => continue,
                    Verdict::Different => &different,
                    Verdict::Unknown => &unknown,
                };
                // Relaxed: a number that is read when the threads have ended.
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..COMPARERS.min(tables.len()))
                .map(|number| {
                    std::thread::Builder::new().name(format!("check-{number}")).spawn_scoped(scope, work)
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread?.join().map_err(|_| LoadError::Usage("a thread of the check ended by a bug".into()))?
            })
        })?;
        Ok(Compared {
            tables: tables.len(),
            different: different.into_inner(),
            unknown: unknown.into_inner(),
        })
    }
}

/// How many tables were looked at, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    pub tables: usize,
    pub different: usize,
    /// Those that could not be compared.
    pub unknown: usize,
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Compared { tables, different, unknown } = *self;
        let compared = tables - unknown;
        write!(f, "{compared} {} compared: ", if compared == 1 { "table" } else { "tables" })?;
        match different {
            0 => write!(f, "all equal")?,
            _ => write!(f, "{different} different")?,
        }
        match unknown {
            0 => Ok(()),
            _ => write!(f, "; {unknown} not compared"),
        }
    }
}

/// The columns of a table, in order; none if there is no such table.
pub fn columns_of(connection: &mut Connection, database: &[u8], table: &[u8]) -> Result<Vec<Column>, Error> {
    let maria = connection.version().contains("MariaDB");
    let rows = connection.query(columns::query(database, table))?;
    Ok(rows.into_iter().map(|row| Column::read(row, maria)).collect())
}

/// What a table holds that the dump did not make.
fn before(shared: &LoadState, table: &Table, facts: &Facts) -> Result<Sum, LoadError> {
    let mut connection = scratch::for_comparison(shared)?;
    Ok(Sum::ask(&mut connection, &columns::sum(&table.quoted(), &facts.definition, Digest::Md5))?)
}

impl Expected {
    fn doubt(&mut self, doubt: Doubt) {
        match (&self.doubt, &doubt) {
            (None, _) | (Some(Doubt::Values(_)), Doubt::Rows(_)) => self.doubt = Some(doubt),
            _ => {}
        }
    }

    /// Compares the table and tells what came of it.
    fn compare(&self, shared: &LoadState, connection: &mut Connection) -> Result<Verdict, LoadError> {
        let present = columns_of(connection, &self.table.database, &self.table.name)?;
        if present.is_empty() && self.rows == 0 {
            // Renamed, or dropped together with others.
            return Ok(Verdict::Equal);
        }
        let found = match Sum::ask(connection, &columns::sum(&self.table.quoted(), &present, Digest::Md5)) {
            Ok(found) => found,
            Err(error @ Error::Server { .. }) => {
                self.tell(shared, None, Verdict::Different, &error.to_string());
                return Ok(Verdict::Different);
            }
            Err(error) => return Err(error.into()),
        };
        let (verdict, why) =
            self.verdict(found, self.columns.is_empty() || columns::are_alike(&self.columns, &present));
        let (verdict, why) = match orphans::complaint(connection, &self.table)? {
            Some(complaint) if why.is_empty() => (Verdict::Different, complaint),
            Some(complaint) => (Verdict::Different, format!("{why}; {complaint}")),
            None => (verdict, why),
        };
        self.tell(shared, Some(found), verdict, &why);
        Ok(verdict)
    }

    /// What equal or different sums mean. `alike`: the table's columns are those whose values were summed.
    fn verdict(&self, found: Sum, alike: bool) -> (Verdict, String) {
        let expected = self.before.add(Sum { rows: self.rows, ..self.sum });
        let unknown = |doubt: &Doubt| (Verdict::Unknown, format!("not compared: {}", doubt.text()));
        if self.failure.is_none() && alike && self.sum.rows == self.rows && found == expected {
            return (Verdict::Equal, String::new());
        }
        match &self.doubt {
            Some(doubt @ Doubt::Rows(_)) => return unknown(doubt),
            _ if found.rows != expected.rows => {
                let why = format!("{} rows in the dump, {} in the server", expected.rows, found.rows);
                return (Verdict::Different, why);
            }
            Some(doubt @ Doubt::Values(_)) => return unknown(doubt),
            None => {}
        }
        if let Some(failure) = &self.failure {
            return (Verdict::Different, format!("its values cannot be compared: {failure}"));
        }
        if !alike {
            return unknown(&Doubt::Values("its columns changed after its rows".into()));
        }
        (Verdict::Different, format!("{} rows as in the dump, but with other values", found.rows))
    }

    fn tell(&self, shared: &LoadState, found: Option<Sum>, verdict: Verdict, why: &str) {
        let name = self.table.shown();
        let fields = serde_json::json!({
            "table": name, "dump": self.before.rows + self.rows, "server": found.map(|found| found.rows.to_string()),
            "equal": verdict == Verdict::Equal, "compared": verdict != Verdict::Unknown, "why": why,
        });
        shared.report.event("check", fields);
        if verdict != Verdict::Equal {
            shared.report.warn(&format!("{name}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(doubt: Option<Doubt>) -> Expected {
        let table = Arc::new(Table { lane: 0, database: b"d".to_vec(), name: b"t".to_vec() });
        let (before, sum) = (Sum { rows: 1, hashes: 5 }, Sum { rows: 2, hashes: 7 });
        Expected { table, columns: Vec::new(), before, rows: 2, sum, doubt, failure: None }
    }

    #[test]
    fn equal_sums_prove_and_different_ones_do_unless_there_is_a_doubt() {
        let (equal, values, rows) =
            (Sum { rows: 3, hashes: 12 }, Sum { rows: 3, hashes: 13 }, Sum { rows: 4, hashes: 12 });
        let verdicts = |doubt: Option<Doubt>| {
            [equal, values, rows].map(|found| expected(doubt.clone()).verdict(found, true).0)
        };
        assert_eq!(verdicts(None), [Verdict::Equal, Verdict::Different, Verdict::Different]);
        assert_eq!(
            verdicts(Some(Doubt::Values("x".into()))),
            [Verdict::Equal, Verdict::Unknown, Verdict::Different]
        );
        assert_eq!(
            verdicts(Some(Doubt::Rows("x".into()))),
            [Verdict::Equal, Verdict::Unknown, Verdict::Unknown]
        );
        assert_eq!(expected(None).verdict(equal, false).0, Verdict::Unknown);
    }

    #[test]
    fn what_could_not_be_summed_is_not_equal() {
        let mut failed = expected(None);
        failed.failure = Some("denied".into());
        assert_eq!(failed.verdict(Sum { rows: 3, hashes: 12 }, true).0, Verdict::Different);
        let mut short = expected(None);
        short.sum.rows = 1;
        assert_eq!(short.verdict(Sum { rows: 3, hashes: 12 }, true).0, Verdict::Different);
    }

    #[test]
    fn a_doubt_about_rows_is_stronger() {
        let mut table = expected(Some(Doubt::Values("a".into())));
        table.doubt(Doubt::Rows("b".into()));
        table.doubt(Doubt::Values("c".into()));
        assert_eq!(table.doubt, Some(Doubt::Rows("b".into())));
    }
}
