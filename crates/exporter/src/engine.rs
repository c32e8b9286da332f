//! information_schema.TEAK_METRICS: what the engine counts. Which numbers there are, and what they mean, is known to
//! the engine alone; here they get the names and units that Prometheus asks for.

use crate::part::Missing;
use crate::session::Asking;
use std::collections::BTreeMap;
use teak_metrics::{Family, Kind};

const QUERY: &str = "SELECT NAME, KIND, UNIT, UP_TO, VALUE, HELP FROM information_schema.TEAK_METRICS";

/// All numbers.
pub fn families(asking: &mut Asking<'_>) -> Result<Vec<Family>, Missing> {
    let mut numbers = EngineNumbers::default();
    asking.each(QUERY, &mut |row| numbers.add(row))?;
    let families = numbers.families();
    if families.is_empty() {
        return Err(Missing::NoEngine);
    }
    Ok(families)
}

/// What a number is in Prometheus: the unit, and by how much it is divided.
fn base(unit: &str) -> (&'static str, f64) {
    match unit {
        "BYTES" => ("bytes", 1.0),
        "SECONDS" => ("seconds", 1.0),
        "MILLISECONDS" => ("seconds", 1e3),
        "MICROSECONDS" => ("seconds", 1e6),
        _ => ("", 1.0),
    }
}

/// With the unit at the end, in place of any that is in the name.
fn name(name: &str, unit: &str, kind: Kind) -> String {
    const UNITS: [&str; 4] = ["bytes", "seconds", "milliseconds", "microseconds"];
    let words = name.split('_').filter(|word| unit.is_empty() || !UNITS.contains(word));
    let total = if kind == Kind::Counter { "total" } else { "" };
    let all = ["teak"].into_iter().chain(words).chain([unit, total]);
    all.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

#[derive(Default)]
struct Histogram {
    help: String,
    /// The ends of ranges, and how often something was in them.
    ranges: Vec<(f64, u64)>,
    sum: f64,
}

#[derive(Default)]
struct EngineNumbers {
    plain: Vec<(String, Kind, String, f64, String)>,
    histograms: BTreeMap<String, Histogram>,
}

impl EngineNumbers {
    fn add(&mut self, row: &[Option<String>]) {
        let [Some(named), Some(kind), unit, up_to, Some(value), Some(help)] = row else { return };
        let unit = unit.clone().unwrap_or_default();
        let divisor = base(&unit).1;
        // The unit is in the name, and may be another one.
        let help = help.strip_suffix(&format!(", in {}", unit.to_lowercase())).unwrap_or(help).to_string();
        match kind.as_str() {
            "HISTOGRAM" => {
                let up_to = up_to.as_ref().map_or(Some(f64::INFINITY), |text| text.parse().ok());
                let (Some(up_to), Ok(value)) = (up_to, value.parse()) else { return };
                let histogram = self.histograms.entry(named.clone()).or_default();
                histogram.help = help;
                histogram.ranges.push((up_to / divisor, value));
            }
            _ => {
                let kind = if kind == "COUNTER" { Kind::Counter } else { Kind::Gauge };
                if let Ok(value) = value.parse::<f64>() {
                    self.plain.push((named.clone(), kind, unit, value / divisor, help));
                }
            }
        }
    }

    /// The number with the name of a histogram is its sum.
    fn families(mut self) -> Vec<Family> {
        let mut families = Vec::new();
        for (named, kind, unit, value, help) in self.plain {
            match self.histograms.get_mut(&named) {
                Some(histogram) => histogram.sum = value,
                None => families.push(Family::of(&name(&named, base(&unit).0, kind), kind, &help, value)),
            }
        }
        for (named, mut histogram) in self.histograms {
            histogram.ranges.sort_by(|one, other| one.0.total_cmp(&other.0));
            let mut family =
                Family::new(&name(&named, "seconds", Kind::Histogram), Kind::Histogram, &histogram.help);
            family.add_ranges(&histogram.ranges, histogram.sum);
            families.push(family);
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_units_and_what_grows_with_total() {
        for (given, unit, kind, wanted) in [
            ("commits", "", Kind::Counter, "teak_commits_total"),
            ("snapshots", "", Kind::Gauge, "teak_snapshots"),
            ("block_bytes_read", "bytes", Kind::Counter, "teak_block_read_bytes_total"),
            ("cache_bytes_budget", "bytes", Kind::Gauge, "teak_cache_budget_bytes"),
            ("data_read", "bytes", Kind::Counter, "teak_data_read_bytes_total"),
            ("row_lock_time", "seconds", Kind::Counter, "teak_row_lock_time_seconds_total"),
            ("snapshot_oldest_seconds", "seconds", Kind::Gauge, "teak_snapshot_oldest_seconds"),
            ("commit_microseconds", "seconds", Kind::Histogram, "teak_commit_seconds"),
        ] {
            assert_eq!(name(given, unit, kind), wanted);
        }
    }

    #[test]
    fn numbers_are_in_base_units_and_meanings_have_none() {
        let mut numbers = EngineNumbers::default();
        for (name, kind, unit, help) in [
            ("row_lock_time", "COUNTER", Some("MILLISECONDS"), "Time of waits, in milliseconds"),
            ("lock_memory", "GAUGE", Some("BYTES"), "Memory, in bytes"),
            ("commits", "COUNTER", None, "Commits, in all"),
        ] {
            let text = |text: &str| Some(text.to_string());
            numbers.add(&[text(name), text(kind), unit.map(String::from), None, text("1500"), text(help)]);
        }
        numbers.add(&[Some("cut".into())]);
        let wanted = "# HELP teak_row_lock_time_seconds_total Time of waits\n\
            # TYPE teak_row_lock_time_seconds_total counter\nteak_row_lock_time_seconds_total 1.5\n\
            # HELP teak_lock_memory_bytes Memory\n# TYPE teak_lock_memory_bytes gauge\nteak_lock_memory_bytes 1500\n\
            # HELP teak_commits_total Commits, in all\n# TYPE teak_commits_total counter\nteak_commits_total 1500\n";
        assert_eq!(numbers.families().iter().map(Family::to_string).collect::<String>(), wanted);
    }

    #[test]
    fn histograms_are_in_seconds_and_cumulative_and_end_without_a_bound() {
        let mut numbers = EngineNumbers::default();
        let mut add = |kind: &str, up_to: Option<&str>, value: &str| {
            let text = |text: &str| Some(text.to_string());
            let row = [
                text("commit_microseconds"),
                text(kind),
                text("MICROSECONDS"),
                up_to.map(String::from),
                text(value),
                text("Time"),
            ];
            numbers.add(&row);
        };
        // Whatever their order.
        add("HISTOGRAM", None, "1");
        add("HISTOGRAM", Some("2"), "3");
        add("COUNTER", None, "2500000");
        add("HISTOGRAM", Some("1"), "2");
        add("HISTOGRAM", Some("x"), "2");
        let families = numbers.families();
        let wanted = "# HELP teak_commit_seconds Time\n# TYPE teak_commit_seconds histogram\n\
            teak_commit_seconds_bucket{le=\"0.000001\"} 2\nteak_commit_seconds_bucket{le=\"0.000002\"} 5\n\
            teak_commit_seconds_bucket{le=\"+Inf\"} 6\nteak_commit_seconds_sum 2.5\nteak_commit_seconds_count 6\n";
        assert_eq!(families.iter().map(Family::to_string).collect::<String>(), wanted);
    }
}
