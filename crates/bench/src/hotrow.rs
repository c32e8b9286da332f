//! Clients that update one row as fast as they can, first without and then with an old snapshot. Every update makes a
//! version that the snapshot does not see and nobody else needs; engines that keep them all become slower with each.

use super::linkbench::is_conflict;
use super::server::{checked_engine, Server};
use super::{conclude, Error};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use teak_client::{Connection, Settings};

/// Options of `teak-bench hotrow`.
#[derive(clap::Args)]
pub struct Options {
    /// Clients that update the row
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    clients: u64,
    /// Seconds without the snapshot, and then with it
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: u64,
    /// Write what was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    // Last, since its heading in the help is that of all options after it.
    #[command(flatten)]
    server: Server,
}

/// What was measured.
#[derive(Default, Serialize)]
struct Outcome {
    engine: String,
    clients: u64,
    without: Part,
    with: Part,
    /// Rate with the snapshot to that without it.
    ratio: f64,
    /// How long the snapshot took to read the row at the end, in milliseconds.
    snapshot_read_ms: f64,
    errors: Vec<String>,
}

/// The updates of one part.
#[derive(Default, Serialize)]
struct Part {
    updates: u64,
    per_second: f64,
    /// Updates in each second.
    series: Vec<u64>,
    conflicts: u64,
}

/// Runs both parts and prints the rates.
pub fn run(options: &Options) -> Result<(), Error> {
    let settings = options.server.settings()?;
    let mut connection = settings.connect()?;
    make_table(&mut connection, &options.server.engine)?;
    let without = part(&settings, options)?;
    let mut snapshot = settings.connect()?;
    snapshot.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    snapshot.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let seen = counter(&mut snapshot)?;
    let with = part(&settings, options)?;
    let reading = Instant::now();
    let still_seen = counter(&mut snapshot);
    let snapshot_read_ms = reading.elapsed().as_secs_f64() * 1e3;
    snapshot.execute("COMMIT")?;

    let mut outcome = Outcome {
        engine: options.server.engine.clone(),
        clients: options.clients,
        ratio: if without.per_second > 0.0 { with.per_second / without.per_second } else { 0.0 },
        snapshot_read_ms,
        ..Outcome::default()
    };
    match still_seen {
        Ok(still_seen) if still_seen == seen => {}
        Ok(still_seen) => outcome.errors.push(format!("the snapshot read {seen}, then {still_seen}")),
        Err(error) => outcome.errors.push(format!("the snapshot was lost: {error}")),
    }
    let (counted, updates) = (counter(&mut connection)?, without.updates + with.updates);
    if counted != updates {
        outcome.errors.push(format!("the row counted {counted} updates, the clients {updates}"));
    }
    (outcome.without, outcome.with) = (without, with);
    show(options, &outcome)
}

fn show(options: &Options, outcome: &Outcome) -> Result<(), Error> {
    println!(
        "{}: {} clients update one row: {:.0} per second without a snapshot, {:.0} with it ({:.3}); the snapshot reads the row in {:.2} ms",
        outcome.engine,
        outcome.clients,
        outcome.without.per_second,
        outcome.with.per_second,
        outcome.ratio,
        outcome.snapshot_read_ms
    );
    conclude(outcome, &outcome.errors, options.json.as_deref(), "the row has not what it should have")
}

fn make_table(connection: &mut Connection, engine: &str) -> Result<(), Error> {
    let engine = checked_engine(engine)?;
    connection.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ENGINE_SUBSTITUTION')")?;
    connection.execute("DROP TABLE IF EXISTS hotrow")?;
    connection.execute(format!(
        "CREATE TABLE hotrow (id int NOT NULL PRIMARY KEY, counter bigint unsigned NOT NULL, filler char(100) NOT NULL) ENGINE={engine}"
    ))?;
    connection.execute("INSERT INTO hotrow VALUES (1, 0, REPEAT('x', 100))")?;
    Ok(())
}

fn counter(connection: &mut Connection) -> Result<u64, Error> {
    let value = connection.value("SELECT counter FROM hotrow WHERE id = 1")?;
    value
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::Usage("the row of the table hotrow is gone".into()))
}

/// Updates for the given time.
fn part(settings: &Settings, options: &Options) -> Result<Part, Error> {
    let connections = (0..options.clients).map(|_| settings.connect()).collect::<Result<Vec<_>, _>>()?;
    let (updates, conflicts, end) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let series = std::thread::scope(|scope| -> Result<Vec<u64>, Error> {
        let clients: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(|| update_until(connection, &updates, &conflicts, &end)))
            .collect();
        let mut series = Vec::new();
        let mut before = 0;
        for second in 1..=options.seconds {
            std::thread::sleep(
                (began + Duration::from_secs(second)).saturating_duration_since(Instant::now()),
            );
            let now = updates.load(Ordering::SeqCst);
            series.push(now - before);
            before = now;
        }
        end.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().map_err(|_| Error::Panic("a client"))??;
        }
        Ok(series)
    })?;
    let per_second = series.iter().sum::<u64>() as f64 / options.seconds as f64;
    Ok(Part { updates: updates.into_inner(), per_second, series, conflicts: conflicts.into_inner() })
}

fn update_until(
    mut connection: Connection,
    updates: &AtomicU64,
    conflicts: &AtomicU64,
    end: &AtomicBool,
) -> Result<(), Error> {
    while !end.load(Ordering::SeqCst) {
        match connection.execute("UPDATE hotrow SET counter = counter + 1 WHERE id = 1") {
            Ok(_) => updates.fetch_add(1, Ordering::SeqCst),
            Err(error) if is_conflict(&error) => conflicts.fetch_add(1, Ordering::SeqCst),
            Err(error) => return Err(error.into()),
        };
    }
    Ok(())
}
