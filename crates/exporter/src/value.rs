//! Texts of the server that are numbers, read as prometheus-mysqld-exporter reads them, so that both tell the same.

/// Days before each month of a year that is no leap year.
const DAYS_BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The number that a text is, if it is one: also a state or a time.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "yes" | "on" | "primary" => Some(1.0),
        "no" | "off" | "disabled" | "connecting" | "non-primary" | "disconnected" => Some(0.0),
        _ => text.parse().ok().or_else(|| time(&text)),
    }
}

/// Seconds of Unix time of `2006-01-02 15:04:05`, or of `jan _2 15:04:05 2006 gmt`, as certificates have it.
fn time(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (year, month, day, clock) = match *words.as_slice() {
        [date, clock] => {
            let date: Vec<&str> = date.split('-').collect();
            let [year, month, day] = *date.as_slice() else { return None };
            (year.parse().ok()?, month.parse().ok()?, day, clock)
        }
        [month, day, clock, year, "gmt" | "utc"] => {
            let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
            (year.parse().ok()?, month, day, clock)
        }
        _ => return None,
    };
    let days = days(year, month, day.parse().ok()?)?;
    let clock: Vec<u64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match *clock.as_slice() {
        [hours @ 0..24, minutes @ 0..60, seconds @ 0..60] => {
            Some((days * 86_400 + hours * 3600 + minutes * 60 + seconds) as f64)
        }
        _ => None,
    }
}

/// Since the beginning of 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let before = *DAYS_BEFORE.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = leap_days(year) > leap_days(year - 1);
    let leaps = leap_days(year - 1) - leap_days(1969) + u64::from(is_leap && month > 2);
    Some((year - 1970) * 365 + leaps + before + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_numbers_that_the_other_exporter_makes_of_them() {
        for (text, wanted) in [
            ("0", Some(0.0)),
            ("18446744073709551615", Some(18_446_744_073_709_551_615.0)),
            ("-1.5e3", Some(-1500.0)),
            ("ON", Some(1.0)),
            ("Disabled", Some(0.0)),
            ("Connecting", Some(0.0)),
            ("Primary", Some(1.0)),
            ("1970-01-01 00:00:00", Some(0.0)),
            ("2024-02-29 23:59:59", Some(1_709_251_199.0)),
            ("2026-11-30 00:00:01", Some(1_795_996_801.0)),
            ("Mar  1 00:00:00 2000 GMT", Some(951_868_800.0)),
            ("Mar 1 00:00:00 2000 CET", None),
            ("2024-13-01 00:00:00", None),
            ("2024-00-01 00:00:00", None),
            ("0000-00-00 00:00:00", None),
            ("2024-01-01 24:00:00", None),
            ("mysql-bin.000012", None),
            ("10.11.18-MariaDB", None),
            ("", None),
        ] {
            assert_eq!(number(text), wanted, "{text}");
        }
    }
}
