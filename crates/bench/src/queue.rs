//! A table used as a queue, rows inserted at one end and deleted at the other, under an old snapshot: how long does the
//! query for its first row take? Engines whose readers wade through deleted rows that the snapshot still needs take
//! longer with each of them.

use super::linkbench::is_conflict;
use super::server::{checked_engine, Server};
use super::{conclude, Error};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;
use teak_client::Connection;

/// Rows of one statement.
const BATCH: u64 = 1000;
/// How often the query is timed at each point.
const TIMES: usize = 15;
/// Points at which it is timed while rows are deleted.
const POINTS: u64 = 10;
const FIRST_ROW: &str = "SELECT id FROM queue ORDER BY id LIMIT 1";

/// Options of `teak-bench queue`.
#[derive(clap::Args)]
pub struct Options {
    /// Rows that are deleted, and as many inserted, while the snapshot is open
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(BATCH..=1 << 40))]
    rows: u64,
    /// Write what was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    // Last, since its heading in the help is that of all options after it.
    #[command(flatten)]
    server: Server,
}

/// What was measured.
#[derive(Serialize)]
struct Outcome {
    engine: String,
    rows: u64,
    /// Before anything was deleted.
    before: Timing,
    /// While the snapshot is open: deleted rows, and the times then.
    points: Vec<Point>,
    /// After all rows were deleted; the snapshot is still open.
    under_snapshot: Timing,
    /// The snapshot is closed.
    after: Timing,
    /// Seconds that deleting and inserting took, without the queries.
    seconds: f64,
    errors: Vec<String>,
}

#[derive(Serialize)]
struct Point {
    deleted: u64,
    timing: Timing,
}

/// Times of the query, in milliseconds.
#[derive(Clone, Copy, Serialize)]
struct Timing {
    median: f64,
    max: f64,
}

/// Fills the queue, turns it over under a snapshot, and prints the times.
pub fn run(options: &Options) -> Result<(), Error> {
    let settings = options.server.settings()?;
    let mut writer = settings.connect()?;
    // More rows than are deleted, so that the queue is never empty.
    let rows = options.rows / BATCH * BATCH;
    fill(&mut writer, &options.server.engine, rows + BATCH)?;
    let mut reader = settings.connect()?;
    let before = time(&mut reader)?;
    let mut snapshot = settings.connect()?;
    snapshot.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    snapshot.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let seen = snapshot.value(FIRST_ROW)?;

    let mut points = Vec::new();
    let mut seconds = 0.0;
    for point in 1..=POINTS {
        let (from, to) = (rows / BATCH * (point - 1) / POINTS * BATCH, rows / BATCH * point / POINTS * BATCH);
        let began = Instant::now();
        turn_over(&mut writer, from, to, rows + BATCH)?;
        seconds += began.elapsed().as_secs_f64();
        points.push(Point { deleted: to, timing: time(&mut reader)? });
    }
    let under_snapshot = time(&mut reader)?;
    let mut errors = Vec::new();
    match snapshot.value(FIRST_ROW) {
        Ok(still_seen) if still_seen == seen => {}
        Ok(still_seen) => errors.push(format!("the snapshot's first row was {seen:?}, then {still_seen:?}")),
        Err(error) => errors.push(format!("the snapshot was lost: {error}")),
    }
    snapshot.execute("ROLLBACK")?;
    let first = reader.value(FIRST_ROW)?;
    if first != Some((rows + 1).to_string()) {
        errors.push(format!("the first row is {first:?} after {rows} were deleted"));
    }
    let after = time(&mut reader)?;
    show(
        options,
        &Outcome {
            engine: options.server.engine.clone(),
            rows,
            before,
            points,
            under_snapshot,
            after,
            seconds,
            errors,
        },
    )
}

fn show(options: &Options, outcome: &Outcome) -> Result<(), Error> {
    println!(
        "{}: first row of a queue, median (max): {:.3} ({:.3}) ms before; after {} deletes under a snapshot {:.3} ({:.3}) ms; without the snapshot {:.3} ({:.3}) ms; {:.0} rows turned over per second",
        outcome.engine,
        outcome.before.median,
        outcome.before.max,
        outcome.rows,
        outcome.under_snapshot.median,
        outcome.under_snapshot.max,
        outcome.after.median,
        outcome.after.max,
        outcome.rows as f64 / outcome.seconds
    );
    conclude(outcome, &outcome.errors, options.json.as_deref(), "the queue has not what it should have")
}

fn fill(connection: &mut Connection, engine: &str, rows: u64) -> Result<(), Error> {
    let engine = checked_engine(engine)?;
    connection.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ENGINE_SUBSTITUTION')")?;
    connection.execute("DROP TABLE IF EXISTS queue")?;
    connection.execute(format!(
        "CREATE TABLE queue (id bigint unsigned NOT NULL PRIMARY KEY, payload varchar(100) NOT NULL) ENGINE={engine}"
    ))?;
    for first in (1..=rows).step_by(BATCH as usize) {
        insert(connection, first, BATCH.min(rows - first + 1))?;
    }
    Ok(())
}

fn insert(connection: &mut Connection, first: u64, rows: u64) -> Result<(), Error> {
    let mut statement = String::from("INSERT INTO queue VALUES ");
    for id in first..first + rows {
        let comma = if id > first { "," } else { "" };
        let _ = write!(statement, "{comma}({id},'message {id} of the queue')");
    }
    execute(connection, &statement)
}

/// Deletes the rows after number `from` up to number `to`, and inserts as many after the `length` rows that the queue
/// has.
fn turn_over(connection: &mut Connection, from: u64, to: u64, length: u64) -> Result<(), Error> {
    for done in (from..to).step_by(BATCH as usize) {
        execute(connection, &format!("DELETE FROM queue WHERE id > {done} AND id <= {}", done + BATCH))?;
        insert(connection, length + done + 1, BATCH)?;
    }
    Ok(())
}

fn execute(connection: &mut Connection, statement: &str) -> Result<(), Error> {
    while let Err(error) = connection.execute(statement) {
        if !is_conflict(&error) {
            return Err(error.into());
        }
    }
    Ok(())
}

fn time(connection: &mut Connection) -> Result<Timing, Error> {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        connection.query(FIRST_ROW)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(Timing { median: times[TIMES / 2], max: times[TIMES - 1] })
}
