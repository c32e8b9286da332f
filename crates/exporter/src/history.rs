//! The last hour of some numbers, for the page: as they were each quarter of a minute, in memory that is bounded.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;
use teak_metrics::Family;

/// How far apart points are; a round that nobody asked for is made for them.
pub const EVERY: Duration = Duration::from_secs(15);
/// An hour of them.
const POINTS: usize = 240;
/// Rounds do not come to the second.
const NEARLY: u64 = EVERY.as_secs() - 1;

/// Families whose numbers are kept; of several with labels the largest, and of histograms `_sum` and `_count`.
const KEPT: [&str; 34] = [
    "mysql_global_status_bytes_received",
    "mysql_global_status_bytes_sent",
    "mysql_global_status_innodb_buffer_pool_read_requests",
    "mysql_global_status_innodb_buffer_pool_reads",
    "mysql_global_status_innodb_row_lock_waits",
    "mysql_global_status_queries",
    "mysql_global_status_slow_queries",
    "mysql_global_status_threads_connected",
    "mysql_global_status_threads_running",
    "mysql_global_status_uptime",
    "mysql_slave_status_seconds_behind_master",
    "teak_buffer_pool_read_requests_total",
    "teak_buffer_pool_reads_total",
    "teak_cache_budget_bytes",
    "teak_cache_used_bytes",
    "teak_checkpoint_age_bytes",
    "teak_checkpoint_max_age_bytes",
    "teak_commit_seconds",
    "teak_commits_total",
    "teak_data_directory_free_bytes",
    "teak_data_directory_size_bytes",
    "teak_data_read_bytes_total",
    "teak_data_written_bytes_total",
    "teak_deadlocks_total",
    "teak_history_bytes",
    "teak_lock_wait_seconds",
    "teak_log_sync_seconds",
    "teak_log_written_bytes_total",
    "teak_read_seconds",
    "teak_rollbacks_total",
    "teak_row_lock_current_waits",
    "teak_row_lock_waits_total",
    "teak_snapshot_oldest_seconds",
    "teak_transactions_active",
];

/// What a point has: numbers by their names.
type Point = Vec<(String, f64)>;

/// Points, the newest last.
#[derive(Default)]
pub struct History {
    /// Of the round that goes on.
    seen: Point,
    points: VecDeque<(u64, Point)>,
}

impl History {
    /// A family of the round that goes on.
    pub fn see(&mut self, family: &Family) {
        if !KEPT.contains(&family.name()) {
            return;
        }
        for suffix in ["", "_sum", "_count"] {
            if let Some(value) = family.values(suffix).map(|(_, value)| value).reduce(f64::max) {
                self.seen.push((format!("{}{suffix}", family.name()), value));
            }
        }
    }

    /// A round has ended at this second of Unix time, and the server has answered, or not. It is a point if the one
    /// before is old enough.
    pub fn round(&mut self, now: u64, is_up: bool) {
        let mut point = std::mem::take(&mut self.seen);
        // A clock that was put back makes it a point as well.
        if self.points.back().is_some_and(|&(last, _)| (last..last + NEARLY).contains(&now)) {
            return;
        }
        point.push(("mysql_up".into(), f64::from(u8::from(is_up))));
        self.points.push_back((now, point));
        while self.points.len() > POINTS {
            self.points.pop_front();
        }
    }

    /// `{"every":15,"points":240,"times":[...],"series":{"name":[1,null,...],...}}`; null where nothing was known.
    pub fn json(&self) -> String {
        let mut names: Vec<&str> =
            self.points.iter().flat_map(|(_, point)| point).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let times: Vec<String> = self.points.iter().map(|(time, _)| time.to_string()).collect();
        let (every, times) = (EVERY.as_secs(), times.join(","));
        let mut text = format!("{{\"every\":{every},\"points\":{POINTS},\"times\":[{times}],\"series\":{{");
        for (at, name) in names.iter().enumerate() {
            let value = |(_, point): &(u64, Point)| {
                let found = point.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
                found.filter(|value| value.is_finite()).map_or("null".into(), |value| value.to_string())
            };
            let values: Vec<String> = self.points.iter().map(value).collect();
            let comma = if at > 0 { "," } else { "" };
            // Writing to a String does not fail.
            let _ = write!(text, "{comma}\"{name}\":[{}]", values.join(","));
        }
        text + "}}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_metrics::Kind;

    #[test]
    fn an_hour_of_points_is_kept_and_gaps_are_null() {
        let mut history = History::default();
        let mut family = Family::new("teak_commit_seconds", Kind::Histogram, "x");
        family.add_ranges(&[(1.0, 2)], 0.5);
        history.see(&family);
        history.see(&Family::of("teak_other", Kind::Gauge, "x", 1.0));
        history.round(1000, true);
        // Too early for a point.
        history.see(&Family::of("teak_history_bytes", Kind::Gauge, "x", 1.0));
        history.round(1010, true);
        let mut lag = Family::new("mysql_slave_status_seconds_behind_master", Kind::Untyped, "x");
        lag.add(&[("connection_name", "a")], 3.0);
        lag.add(&[("connection_name", "b")], 2.0);
        history.see(&lag);
        history.round(1015, false);
        let wanted = "{\"every\":15,\"points\":240,\"times\":[1000,1015],\"series\":{\
            \"mysql_slave_status_seconds_behind_master\":[null,3],\"mysql_up\":[1,0],\
            \"teak_commit_seconds_count\":[2,null],\"teak_commit_seconds_sum\":[0.5,null]}}\n";
        assert_eq!(history.json(), wanted);
        for round in 0..1000 {
            history.round(2000 + 15 * round, true);
        }
        let text = history.json();
        assert!(text.contains("\"mysql_up\":[1,1,") && !text.contains("teak_commit"), "{text}");
        assert_eq!(history.points.len(), POINTS);
        // The clock was put back.
        history.round(500, true);
        assert_eq!(history.points.back().map(|&(time, _)| time), Some(500));
    }
}
