//! What is told while loading and after: a line on a terminal, events as JSON, a summary.

use super::verify::Compared;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use teak_console::amounts::{bytes, clock};
use teak_console::terminal;

/// Time between two signs of progress.
const INTERVAL: Duration = Duration::from_millis(500);
/// Columns of the bar: with it and all numbers the line has some 80.
const BAR: usize = 16;

/// Counts of a load, which its threads add to. Only shown: no ordering between them is needed.
#[derive(Default)]
pub struct Counters {
    /// Bytes of the inputs, compressed as they may be.
    pub read: Arc<AtomicU64>,
    /// Bytes of SQL.
    pub sql: AtomicU64,
    pub statements: AtomicU64,
    rows: AtomicU64,
    pub skipped: AtomicU64,
    /// That insert at present.
    pub connections: AtomicUsize,
}

impl Counters {
    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// Tells people and programs how far the load is.
pub struct Report {
    pub counters: Arc<Counters>,
    began: Instant,
    total: Option<u64>,
    json: bool,
    terminal: bool,
    ended: Mutex<bool>,
    wake: Condvar,
}

impl Report {
    /// `total`: bytes of all inputs, if known. With `json` an event a line goes to standard output.
    pub fn new(total: Option<u64>, json: bool) -> Report {
        Report {
            counters: Arc::default(),
            began: Instant::now(),
            total,
            json,
            terminal: !json && terminal::is_there(),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// Shows progress from time to time until `end`.
    pub fn run(&self) {
        if !self.json && !self.terminal {
            return;
        }
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            ended = self.wake.wait_timeout(ended, INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            if !*ended {
                self.show();
            }
        }
    }

    /// Ends `run`.
    pub fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    fn show(&self) {
        let read = self.counters.read.load(Ordering::Relaxed);
        let connections = self.counters.connections.load(Ordering::Relaxed);
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let share = self.total.filter(|&total| total > 0).map(|total| read as f64 / total as f64);
        if self.json {
            return self.event(
                "progress",
                serde_json::json!({
                    "bytes": read, "total": self.total, "rows": self.counters.rows(), "seconds": seconds, "connections": connections,
                }),
            );
        }
        let bar = share.map_or(String::new(), |share| {
            let full = (share * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
            let left = Duration::from_secs_f64((seconds / share.max(1e-6) - seconds).clamp(0.0, 1e7));
            format!(
                "[{}{}] {:3.0}% ETA {} ",
                "#".repeat(full),
                " ".repeat(BAR - full),
                share * 100.0,
                clock(left)
            )
        });
        let rows = self.counters.rows();
        terminal::show_line(&format!(
            "{bar}{} {}/s {rows} rows {:.0}/s {connections} conn.",
            bytes(read as f64),
            bytes(read as f64 / seconds),
            rows as f64 / seconds
        ));
    }

    /// Writes an event; its fields come from an object.
    pub fn event(&self, name: &str, fields: serde_json::Value) {
        if !self.json {
            return;
        }
        let mut event = serde_json::json!({"event": name});
        if let (Some(event), serde_json::Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        // Nobody may read any more; the load goes on.
        let _ = writeln!(std::io::stdout(), "{event}");
    }

    /// A message that does not wait for the end.
    pub fn warn(&self, text: &str) {
        self.event("warning", serde_json::json!({"message": text}));
        terminal::message(&format!("teak: {text}"));
    }

    /// What was done, in the end, and what a comparison came to.
    pub fn summary(&self, compared: Option<Compared>) {
        let connections = self.counters.connections.load(Ordering::Relaxed);
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let (rows, sql) = (self.counters.rows(), self.counters.sql.load(Ordering::Relaxed));
        let statements = self.counters.statements.load(Ordering::Relaxed);
        let skipped = self.counters.skipped.load(Ordering::Relaxed);
        self.event(
            "summary",
            serde_json::json!({
                "rows": rows, "statements": statements, "sql_bytes": sql, "skipped": skipped, "seconds": seconds, "connections": connections,
                "tables_compared": compared.map(|compared| compared.tables - compared.unknown),
                "tables_not_compared": compared.map(|compared| compared.unknown),
                "tables_different": compared.map(|compared| compared.different),
            }),
        );
        if self.json {
            return;
        }
        terminal::message(&format!(
            "{rows} rows, {statements} statements, {} of SQL in {seconds:.1} s: {:.0} rows/s, {}/s, {connections} connections",
            bytes(sql as f64), rows as f64 / seconds, bytes(sql as f64 / seconds)
        ));
        if let Some(compared) = compared {
            terminal::message(&compared.to_string());
        }
    }
}
