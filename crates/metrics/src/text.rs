//! Numbers in the text form of Prometheus (version 0.0.4).
//!
//! ```text
//! # HELP name what it means
//! # TYPE name counter
//! name{label="value",...} 12
//! ```

use std::fmt::{Display, Formatter, Result, Write};

/// How a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It grows, but for beginning anew at zero.
    Counter,
    /// It is what it is now.
    Gauge,
    /// How often something was within ranges.
    Histogram,
    /// Nobody knows.
    Untyped,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Untyped => "untyped",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    suffix: &'static str,
    labels: Vec<(String, String)>,
    value: f64,
}

/// All numbers of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    name: String,
    kind: Kind,
    help: String,
    samples: Vec<Sample>,
}

impl Family {
    /// Without numbers yet. Of a name only what names may have is kept: small letters, digits, underscores.
    pub fn new(name: &str, kind: Kind, help: &str) -> Family {
        let lower = name.chars().map(|c| match c.to_ascii_lowercase() {
            kept @ ('a'..='z' | '0'..='9' | '_') => kept,
            _ => '_',
        });
        Family { name: lower.collect(), kind, help: help.into(), samples: Vec::new() }
    }

    /// With one number that has no labels.
    pub fn of(name: &str, kind: Kind, help: &str, value: f64) -> Family {
        let mut family = Family::new(name, kind, help);
        family.add(&[], value);
        family
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a number.
    pub fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        self.push("", labels, value);
    }

    /// Adds a histogram, and has it end with a range without an end: how often something was beyond the range before,
    /// and not above `up_to`; and the sum of what was measured.
    pub fn add_ranges(&mut self, ranges: &[(f64, u64)], sum: f64) {
        let mut count: u64 = 0;
        for &(up_to, times) in ranges.iter().filter(|(up_to, _)| up_to.is_finite()) {
            count = count.saturating_add(times);
            self.push("_bucket", &[("le", &number(up_to))], count as f64);
        }
        let beyond = ranges.iter().filter(|(up_to, _)| !up_to.is_finite()).map(|(_, times)| times);
        let all = beyond.fold(count, |all, &times| all.saturating_add(times)) as f64;
        self.push("_bucket", &[("le", "+Inf")], all);
        self.push("_sum", &[], sum);
        self.push("_count", &[], all);
    }

    /// The numbers whose name is that of the family with this suffix; with their labels.
    pub fn values<'f>(&'f self, suffix: &'f str) -> impl Iterator<Item = (&'f [(String, String)], f64)> {
        let named = self.samples.iter().filter(move |sample| sample.suffix == suffix);
        named.map(|sample| (sample.labels.as_slice(), sample.value))
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    fn push(&mut self, suffix: &'static str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        self.samples.push(Sample { suffix, labels, value });
    }
}

/// As Prometheus reads it: whole numbers without a point.
fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value => value.to_string(),
    }
}

/// What ends a line, and in labels a value, is escaped.
fn escaped(text: &str, quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out
}

/// One without numbers is not there at all.
impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.samples.is_empty() {
            return Ok(());
        }
        let (name, kind) = (&self.name, self.kind.name());
        writeln!(f, "# HELP {name} {}\n# TYPE {name} {kind}", escaped(&self.help, false))?;
        for Sample { suffix, labels, value } in &self.samples {
            write!(f, "{name}{suffix}")?;
            for (at, (label, value)) in labels.iter().enumerate() {
                write!(f, "{}{label}=\"{}\"", if at == 0 { '{' } else { ',' }, escaped(value, true))?;
            }
            if !labels.is_empty() {
                f.write_char('}')?;
            }
            writeln!(f, " {}", number(*value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_labels_are_written_as_prometheus_reads_them() {
        let mut family = Family::new("a b-C.9", Kind::Untyped, "one\\two\nthree \"four\"");
        assert_eq!(family.to_string(), "");
        family.add(&[], 18_446_744_073_709_551_615.0);
        family.add(&[("x", "a\"b\\c\nd"), ("y", "ü")], 0.25);
        for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            family.add(&[], value);
        }
        let lines = [
            "# HELP a_b_c_9 one\\\\two\\nthree \"four\"",
            "# TYPE a_b_c_9 untyped",
            "a_b_c_9 18446744073709552000",
            "a_b_c_9{x=\"a\\\"b\\\\c\\nd\",y=\"ü\"} 0.25",
            "a_b_c_9 +Inf",
            "a_b_c_9 -Inf",
            "a_b_c_9 NaN",
            "",
        ];
        assert_eq!(family.to_string(), lines.join("\n"));
    }

    #[test]
    fn ranges_of_a_histogram_add_up() {
        let mut family = Family::new("t_seconds", Kind::Histogram, "x");
        family.add_ranges(&[(0.000001, 2), (0.000002, 0), (1.5, 3), (f64::INFINITY, 4)], 7.25);
        let lines = [
            "# HELP t_seconds x",
            "# TYPE t_seconds histogram",
            "t_seconds_bucket{le=\"0.000001\"} 2",
            "t_seconds_bucket{le=\"0.000002\"} 2",
            "t_seconds_bucket{le=\"1.5\"} 5",
            "t_seconds_bucket{le=\"+Inf\"} 9",
            "t_seconds_sum 7.25",
            "t_seconds_count 9",
            "",
        ];
        assert_eq!(family.to_string(), lines.join("\n"));
        assert_eq!(family.values("_count").map(|(_, value)| value).collect::<Vec<_>>(), [9.0]);
        let mut without = Family::new("t", Kind::Histogram, "x");
        without.add_ranges(&[], 0.0);
        assert!(without.to_string().contains("t_bucket{le=\"+Inf\"} 0\n"), "{without}");
    }
}
