//! SHOW GLOBAL STATUS, by the names that prometheus-mysqld-exporter has: what InnoDB counts is among it. Teak's own
//! variables are not: `engine` has them, with their kinds and units.

use crate::part::Missing;
use crate::session::Asking;
use crate::value::number;
use std::collections::BTreeMap;
use teak_metrics::{Family, Kind};

/// Variables that are one metric, with the rest of their name as a label: what they begin with, the metric, its label,
/// kind and meaning. The first that fits counts.
const GROUPS: [(&str, &str, &str, Kind, &str); 7] = [
    ("com_", "commands_total", "command", Kind::Counter, "Statements, by what they do"),
    ("handler_", "handlers_total", "handler", Kind::Counter, "Calls of storage engines, by what they do"),
    (
        "connection_errors_",
        "connection_errors_total",
        "error",
        Kind::Counter,
        "Connections that could not be made",
    ),
    ("innodb_rows_", "innodb_row_ops_total", "operation", Kind::Counter, "Rows, by what InnoDB did to them"),
    (
        "performance_schema_",
        "performance_schema_lost_total",
        "instrumentation",
        Kind::Counter,
        "What performance_schema had no room for",
    ),
    ("innodb_buffer_pool_pages_", "buffer_pool_pages", "state", Kind::Gauge, "Pages of InnoDB's buffer pool"),
    (
        "innodb_buffer_pool_pages_",
        "buffer_pool_page_changes_total",
        "operation",
        Kind::Counter,
        "What InnoDB did to pages of its buffer pool",
    ),
];
/// Of pages of the buffer pool, those that are a state; the others were done.
const STATES: [&str; 4] = ["data", "free", "misc", "old"];
const PREFIX: &str = "mysql_global_status_";

/// All of it that is a number.
pub fn families(asking: &mut Asking<'_>) -> Result<Vec<Family>, Missing> {
    let mut status = StatusNumbers::default();
    asking.each("SHOW GLOBAL STATUS", &mut |row| {
        if let [Some(name), Some(value)] = row {
            status.add(name, value);
        }
    })?;
    Ok(status.0.into_values().collect())
}

#[derive(Default)]
struct StatusNumbers(BTreeMap<String, Family>);

impl StatusNumbers {
    fn add(&mut self, name: &str, text: &str) {
        let name = name.to_ascii_lowercase();
        let Some(value) = number(text).filter(|_| !name.starts_with("teak_")) else { return };
        match name.strip_prefix("innodb_buffer_pool_pages_") {
            Some("total") => return,
            Some("dirty") => {
                let help = "Pages of InnoDB's buffer pool that are changed";
                return self.plain("buffer_pool_dirty_pages", Kind::Gauge, help, value);
            }
            _ => (),
        }
        let fits = |(prefix, metric, ..): &&(&str, &str, _, _, _)| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| *metric != "buffer_pool_pages" || STATES.contains(&rest))
        };
        match GROUPS.iter().find(fits) {
            Some(&(prefix, metric, label, kind, help)) => {
                let full = format!("{PREFIX}{metric}");
                let family = self.0.entry(full).or_insert_with_key(|full| Family::new(full, kind, help));
                let rest = &name[prefix.len()..];
                if !family.values("").any(|(labels, _)| labels.iter().any(|(_, value)| value == rest)) {
                    family.add(&[(label, rest)], value);
                }
            }
            None if is_well_named(&name) => {
                self.plain(&name, Kind::Untyped, "The server's status variable of this name", value);
            }
            None => (),
        }
    }

    fn plain(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        let family = Family::of(&format!("{PREFIX}{name}"), kind, help, value);
        self.0.entry(family.name().into()).or_insert(family);
    }
}

/// Whether a variable of the server may be a metric of the same name. Words that mean a kind of metric to Prometheus,
/// or another unit than it asks for, would be refused by `promtool check metrics`; few variables have them.
pub fn is_well_named(name: &str) -> bool {
    const LAST: [&str; 4] = ["total", "count", "sum", "bucket"];
    const WORDS: [&str; 10] = [
        "days",
        "hours",
        "minutes",
        "weeks",
        "milliseconds",
        "microseconds",
        "counter",
        "gauge",
        "histogram",
        "summary",
    ];
    !name.split('_').next_back().is_some_and(|last| LAST.contains(&last))
        && !name.split('_').any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_as_the_other_exporter_names_them() {
        let mut status = StatusNumbers::default();
        for (name, text) in [
            ("Threads_running", "3"),
            ("Com_select", "7"),
            ("Com_insert", "8"),
            ("Com_insert", "9"),
            ("Handler_read_rnd_next", "1"),
            ("Connection_errors_accept", "0"),
            ("Innodb_rows_read", "5"),
            ("Innodb_buffer_pool_pages_data", "4"),
            ("Innodb_buffer_pool_pages_dirty", "2"),
            ("Innodb_buffer_pool_pages_flushed", "6"),
            ("Innodb_buffer_pool_pages_total", "99"),
            ("Innodb_buffer_pool_load_status", "loaded"),
            ("Rpl_status", ""),
            ("Teak_commits", "1"),
            ("Slave_running", "ON"),
            ("threads_running", "4"),
            ("Some_count", "4"),
            ("Some_microseconds_of", "4"),
        ] {
            status.add(name, text);
        }
        let text: String = status.0.values().map(Family::to_string).collect();
        let numbers: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let wanted = [
            "mysql_global_status_buffer_pool_dirty_pages 2",
            "mysql_global_status_buffer_pool_page_changes_total{operation=\"flushed\"} 6",
            "mysql_global_status_buffer_pool_pages{state=\"data\"} 4",
            "mysql_global_status_commands_total{command=\"select\"} 7",
            "mysql_global_status_commands_total{command=\"insert\"} 8",
            "mysql_global_status_connection_errors_total{error=\"accept\"} 0",
            "mysql_global_status_handlers_total{handler=\"read_rnd_next\"} 1",
            "mysql_global_status_innodb_row_ops_total{operation=\"read\"} 5",
            "mysql_global_status_slave_running 1",
            "mysql_global_status_threads_running 3",
        ];
        assert_eq!(numbers, wanted);
    }
}
