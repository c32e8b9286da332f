//! Dates and times as texts (ISO 8601, UTC) and as numbers. Days count from 1970-01-01; years are 0001 to 9999.

const DAY: i64 = 86_400_000_000;

/// Days of a date `YYYY-MM-DD`. Howard Hinnant's `days_from_civil`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) =
        (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if parts.next().is_some() || year == 0 || !(1..=12).contains(&month) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    // A day that its month does not have comes out as another.
    (day >= 1 && write_date(days) == text).then_some(days)
}

/// The date of a number of days. `civil_from_days`.
pub(crate) fn write_date(days: i64) -> String {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Microseconds of a time of day `HH:MM[:SS[.ffffff]]`.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let parts: Vec<&str> = whole.split(':').collect();
    let seconds = match (parts.len(), fraction) {
        (3, _) => digits(parts[2], 2)?,
        (2, None) => 0,
        _ => return None,
    };
    let (hours, minutes) = (digits(parts[0], 2)?, digits(parts[1], 2)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = match fraction {
        None => 0,
        Some(part) if (1..=6).contains(&part.len()) => {
            digits(part, part.len())? * 10i64.pow(6 - part.len() as u32)
        }
        Some(_) => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

/// The time of day, with what is needed of its fraction.
pub(crate) fn write_time(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => whole,
        fraction => format!("{whole}.{fraction:06}").trim_end_matches('0').to_string(),
    }
}

/// Microseconds since 1970 of `YYYY-MM-DD[(T| )time][Z|+HH:MM|-HH:MM]`; without a zone it is UTC.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let days = parse_date(date)?;
    let Some(time) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then_some(days * DAY);
    };
    let (time, offset) = if let Some(time) = time.strip_suffix('Z') {
        (time, 0)
    } else if let Some(at) = time.rfind(['+', '-']) {
        let (time, zone) = time.split_at(at);
        let (hours, minutes) = zone[1..].split_once(':')?;
        let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
        (time, if zone.starts_with('-') { -minutes } else { minutes })
    } else {
        (time, 0)
    };
    let micros = days * DAY + parse_time(time)? - offset * 60_000_000;
    // Its text must be one that this reads.
    (parse_date("0001-01-01")? * DAY..=parse_date("9999-12-31")? * DAY + DAY - 1)
        .contains(&micros)
        .then_some(micros)
}

/// The timestamp, with a `Z`.
pub(crate) fn write_timestamp(micros: i64) -> String {
    format!("{}T{}Z", write_date(micros.div_euclid(DAY)), write_time(micros.rem_euclid(DAY)))
}

/// A number of just so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_for_ten_thousand_years_and_others_are_refused() {
        let (first, last) = (parse_date("0001-01-01").unwrap(), parse_date("9999-12-31").unwrap());
        assert_eq!((parse_date("1970-01-01"), parse_date("2000-03-01")), (Some(0), Some(11_017)));
        for days in (first..=last).step_by(17) {
            assert_eq!(parse_date(&write_date(days)), Some(days));
        }
        for wrong in [
            "2023-02-29",
            "2023-13-01",
            "2023-00-10",
            "2023-01-00",
            "0000-01-01",
            "23-01-01",
            "2023-1-01",
            "x",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_and_timestamps_come_back() {
        for text in ["00:00:00", "23:59:59.999999", "12:34:56.5"] {
            assert_eq!(write_time(parse_time(text).unwrap()), text);
        }
        for text in ["2024-02-29T12:00:00Z", "1969-12-31T23:59:59.9Z", "0001-01-01T00:00:00Z"] {
            assert_eq!(write_timestamp(parse_timestamp(text).unwrap()), text);
        }
        let same =
            ["2024-05-01", "2024-05-01 00:00", "2024-05-01T02:00:00+02:00", "2024-04-30T22:30:00-01:30"];
        assert!(same.iter().all(|text| parse_timestamp(text) == parse_timestamp(same[0])));
        for wrong in ["24:00", "12", "12:60", "12:00.5", "12:00:00.1234567", "-1:00"] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
        for wrong in
            ["2024-05-01T", "2024-05-01x", "2024-05-01T12:00+2", "0001-01-01T00:00+01:00", "2024-05-0é"]
        {
            assert_eq!(parse_timestamp(wrong), None, "{wrong}");
        }
    }
}
