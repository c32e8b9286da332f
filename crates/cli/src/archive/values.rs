//! Options that are fields, durations and sizes.

use super::ArchiveError;
use teak_archive::{Metadata, Scalar, Value};

/// `FIELD=VALUE`.
pub(super) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() => Ok((field.to_string(), value.to_string())),
        _ => Err("FIELD=VALUE is expected".to_string()),
    }
}

/// Seconds, or a number with s, m, h or d.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    with_unit(text, &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)])
        .ok_or_else(|| "a number is expected, with s, m, h or d".into())
}

/// Bytes, or a number with K, M or G.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    with_unit(text, &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)])
        .ok_or_else(|| "a number is expected, with K, M or G".into())
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Microseconds since 1970 of a date or timestamp.
pub(super) fn moment(text: &str) -> Result<i64, String> {
    match Scalar::Timestamp.parse(text) {
        Ok(Value::Timestamp(micros)) => Ok(micros),
        _ => Err("a date is expected, or a timestamp such as 2030-01-31T12:00:00Z".into()),
    }
}

/// What options say of fields.
pub(super) fn metadata(set: &[(String, String)], unset: &[String]) -> Metadata {
    let mut metadata = Metadata::default();
    for (field, value) in set {
        metadata.text(field, value);
    }
    for field in unset {
        metadata.nothing(field);
    }
    metadata
}

/// A part of bytes, `FROM-TO` with both, `FROM-`, or the last `-COUNT`, as HTTP has it.
pub(super) fn range(text: &str, size: u64) -> Result<teak_archive::Range, ArchiveError> {
    let bad = || {
        ArchiveError::Usage(format!("'{}' is no range: FROM-TO, FROM- and -COUNT are", text.escape_debug()))
    };
    let (from, to) = text.split_once('-').ok_or_else(bad)?;
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| bad());
    Ok(match (from, to) {
        ("", count) => teak_archive::Range { from: size.saturating_sub(number(count)?), to: None },
        (from, "") => teak_archive::Range { from: number(from)?, to: None },
        (from, to) => {
            let (from, to) = (number(from)?, number(to)?);
            if to < from {
                return Err(bad());
            }
            teak_archive::Range { from, to: to.checked_add(1) }
        }
    })
}
