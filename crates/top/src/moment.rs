//! A sample beside an earlier one: what there is, and how fast it grows.

use crate::sample::{Part, Sample};
use serde::Serialize;

/// Two samples, of which the earlier one may be missing or of another start of the server.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// What is shown.
    pub now: &'a Sample,
    before: Option<&'a Sample>,
}

impl<'a> Moment<'a> {
    /// Rates are of the time between the two.
    pub fn new(now: &'a Sample, before: Option<&'a Sample>) -> Moment<'a> {
        let is_comparable = |before: &&Sample| {
            before.at < now.at
                && before.status("uptime").is_some_and(|uptime| Some(uptime) <= now.status("uptime"))
        };
        Moment { now, before: before.filter(is_comparable) }
    }

    /// The earlier one, if it is of the same server.
    pub fn before(&self) -> Option<&'a Sample> {
        self.before
    }

    /// Between the two.
    pub fn seconds(&self) -> Option<f64> {
        self.before.map(|before| (self.now.at - before.at) as f64 / 1000.0)
    }

    /// How fast the sum of these counters grows, in a second.
    pub fn rate(&self, names: &[&str]) -> Option<f64> {
        let sum = |sample: &Sample| names.iter().map(|name| sample.status(name)).sum::<Option<f64>>();
        let grown = sum(self.now)? - sum(self.before?)?;
        Some(grown.max(0.0) / self.seconds()?)
    }

    /// The numbers above every view.
    pub fn header(&self) -> Header {
        let now = self.now;
        let server = now.first(Part::Server);
        let text = |column| server.and_then(|row| row.text(column)).map(str::to_string);
        // Of a server without Teak the same of InnoDB, where it has it.
        let teak = now.has_teak();
        let rate = |of_teak: &str, of_innodb: &str| self.rate(&[if teak { of_teak } else { of_innodb }]);
        let number = |of_teak: &str, of_innodb: &str| now.status(if teak { of_teak } else { of_innodb });
        let ratio = |part: Option<f64>, all: Option<f64>| Some(part? / all.filter(|all| *all > 0.0)?);
        let misses = rate("teak_buffer_pool_reads", "innodb_buffer_pool_reads");
        let requests = rate("teak_buffer_pool_read_requests", "innodb_buffer_pool_read_requests");
        Header {
            version: text("version"),
            host: text("host"),
            engine: if teak { "Teak" } else { "InnoDB" },
            uptime_seconds: now.status("uptime"),
            sessions: now.status("threads_connected"),
            sessions_running: now.status("threads_running"),
            interval_seconds: self.seconds(),
            queries: self.rate(&["queries"]),
            commits: rate("teak_commits", "handler_commit"),
            rows_read: self.rate(&["rows_read"]),
            rows_written: self.rate(&["handler_write", "handler_update", "handler_delete"]),
            slow_queries: self.rate(&["slow_queries"]),
            log_bytes: rate("teak_log_bytes_written", "innodb_os_log_written"),
            log_syncs: rate("teak_os_log_fsyncs", "innodb_os_log_fsyncs"),
            disk_read_bytes: rate("teak_data_read", "innodb_data_read"),
            disk_written_bytes: rate("teak_data_written", "innodb_data_written"),
            cache_hits: ratio(misses, requests).map(|misses| 1.0 - misses.min(1.0)),
            cache_bytes: number("teak_cache_bytes_used", "innodb_buffer_pool_bytes_data"),
            checkpoint: ratio(
                number("teak_checkpoint_age", "innodb_checkpoint_age"),
                number("teak_checkpoint_max_age", "innodb_checkpoint_max_age"),
            ),
            lock_waits: [
                now.status("teak_row_lock_current_waits"),
                now.status("innodb_row_lock_current_waits"),
            ]
            .into_iter()
            .flatten()
            .reduce(|one, other| one + other),
            deadlocks: number("teak_deadlocks", "innodb_deadlocks"),
            oldest_snapshot_seconds: now.status("teak_snapshot_oldest_seconds"),
            history_bytes: now.status("teak_history_bytes"),
            memory_bytes: now.status("teak_memory_resident").or(now.status("memory_used")),
        }
    }
}

/// Numbers of the whole server; what grows is for a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Header {
    pub version: Option<String>,
    pub host: Option<String>,
    /// Whose numbers of commits, log, disk, cache and checkpoints these are.
    pub engine: &'static str,
    pub uptime_seconds: Option<f64>,
    pub sessions: Option<f64>,
    pub sessions_running: Option<f64>,
    /// What rates are of.
    pub interval_seconds: Option<f64>,
    pub queries: Option<f64>,
    pub commits: Option<f64>,
    pub rows_read: Option<f64>,
    pub rows_written: Option<f64>,
    pub slow_queries: Option<f64>,
    pub log_bytes: Option<f64>,
    pub log_syncs: Option<f64>,
    pub disk_read_bytes: Option<f64>,
    pub disk_written_bytes: Option<f64>,
    /// Share of the pages that were asked for.
    pub cache_hits: Option<f64>,
    pub cache_bytes: Option<f64>,
    /// Share of the age at which writes wait.
    pub checkpoint: Option<f64>,
    pub lock_waits: Option<f64>,
    /// Since the start.
    pub deadlocks: Option<f64>,
    pub oldest_snapshot_seconds: Option<f64>,
    pub history_bytes: Option<f64>,
    /// Resident.
    pub memory_bytes: Option<f64>,
}
