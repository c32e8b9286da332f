//! The trickle of new revisions: inserts that are due at even intervals, whatever the answers take. Each counts from
//! when it was due, so that a stall is in all the inserts that waited for it, and from when it was sent.

use super::corpus::Later;
use super::reading::{connect, read_one};
use super::tables::insert;
use crate::histogram::Histogram;
use crate::linkbench::is_conflict;
use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use teak_client::Settings;

/// A writer looks this often whether it is to end.
const STEP: Duration = Duration::from_millis(100);

/// What was inserted.
pub struct Written {
    /// From when each was due, and from when it was sent.
    pub times: Histogram,
    pub sent_times: Histogram,
    pub seconds: f64,
    /// Table, id and hash.
    values: Vec<(u64, u64, u64)>,
}

/// Inserts so many a second until `stop`; sets it when one fails.
pub fn write(
    settings: &Settings,
    later: &mut Later,
    tables: u64,
    per_second: f64,
    stop: &AtomicBool,
) -> Result<Written, Error> {
    let result = write_until(settings, later, tables, per_second, stop);
    if result.is_err() {
        stop.store(true, Ordering::SeqCst);
    }
    result
}

fn write_until(
    settings: &Settings,
    later: &mut Later,
    tables: u64,
    per_second: f64,
    stop: &AtomicBool,
) -> Result<Written, Error> {
    let mut connection = connect(settings)?;
    let (times, sent_times) = (Histogram::default(), Histogram::default());
    let mut written = Written { times, sent_times, seconds: 0.0, values: Vec::new() };
    let began = Instant::now();
    loop {
        let (table, record) = later.next_of(tables);
        let statement = insert(table, &record);
        let due = began + Duration::from_secs_f64((written.values.len() + 1) as f64 / per_second);
        if !wait_until(due, stop) {
            break;
        }
        let sent = Instant::now();
        let completed = loop {
            match connection.execute(&statement) {
                Err(error) if is_conflict(&error) && !stop.load(Ordering::SeqCst) => {}
                other => break other?,
            }
        };
        let now = Instant::now();
        written.times.record(now.saturating_duration_since(due));
        written.sent_times.record(now.saturating_duration_since(sent));
        written.values.push((table, completed.last_insert_id, record.hash));
    }
    written.seconds = began.elapsed().as_secs_f64();
    Ok(written)
}

/// False if the writer is to end before.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::SeqCst) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(STEP));
    }
}

impl Written {
    /// Reads all of it back; how many that were.
    pub fn verify(&self, settings: &Settings) -> Result<u64, Error> {
        let mut connection = connect(settings)?;
        for (table, id, hash) in &self.values {
            read_one(&mut connection, *table, *id, *hash)?;
        }
        Ok(self.values.len() as u64)
    }
}
