//! Values of JSON as MySQL writes them in text.

use super::decimal::Decimal;
use super::temporal::{DateTime, Time};
use crate::base64::base64;
use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt::Write;

/// The decimal exponents with which MySQL writes none. With a larger one it writes none either if there are digits
/// behind the point.
const FIXED_EXPONENTS: std::ops::RangeInclusive<i32> = -15..=14;

pub fn literal(out: &mut String, literal: u8) -> Result<(), Problem> {
    out.push_str(match literal {
        0 => "null",
        1 => "true",
        2 => "false",
        other => return Err(Problem::invalid(format!("a JSON document with the literal {other}"))),
    });
    Ok(())
}

/// In quotes, with what must not stand between them written otherwise.
pub fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                // Nothing is refused by a string.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The fewest digits that make the same number again, with a point or an exponent in any case.
pub fn double(out: &mut String, number: f64) -> Result<(), Problem> {
    if !number.is_finite() {
        return Err(Problem::invalid("a JSON document with a number that is none"));
    }
    let text = shortest(number);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let length = digits.bytes().filter(u8::is_ascii_digit).count() as i32;
    let has_fraction = exponent > 0 && length > exponent + 1;
    if number != 0.0 && !FIXED_EXPONENTS.contains(&exponent) && !has_fraction {
        out.push_str(digits);
        out.push('e');
        out.push_str(&exponent.to_string());
        return Ok(());
    }
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    // So many digits stand before the point; where there are not as many, zeros.
    let (before, zeros) = match usize::try_from(exponent) {
        Ok(exponent) => (exponent + 1, 0),
        Err(_) => (0, usize::try_from(-exponent - 1).unwrap_or(0)),
    };
    let (whole, fraction) = digits.split_at(before.min(digits.len()));
    out.push_str(sign);
    out.push_str(if whole.is_empty() { "0" } else { whole });
    out.push_str(&"0".repeat(before - whole.len()));
    out.push('.');
    out.push_str(&"0".repeat(zeros));
    out.push_str(if fraction.is_empty() { "0" } else { fraction });
    Ok(())
}

/// The fewest digits that make the same number again: of two that are as near the one that is even, as MySQL has it.
fn shortest(number: f64) -> String {
    let shortest = format!("{number:e}");
    let places = shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count() - 1;
    let rounded = format!("{number:.places$e}");
    match rounded.parse() == Ok(number) {
        true => rounded,
        false => shortest,
    }
}

/// In base64 MySQL begins a line after so many digits, also in a document.
const BASE64_LINE: usize = 76;

/// A value of a type that JSON has not: DECIMAL as a number, temporal types as strings, others as bytes in base64.
pub fn opaque(out: &mut String, field: u8, value: &[u8]) -> Result<(), Problem> {
    let mut bytes = Bytes(value);
    match field {
        246 => {
            let what = "a DECIMAL in a JSON document";
            let (precision, scale) = (bytes.u8(what)?, bytes.u8(what)?);
            if precision == 0 || precision > 65 || scale > precision {
                return Err(Problem::invalid(format!(
                    "{what} with {precision} digits, {scale} behind the point"
                )));
            }
            let decimal = Decimal::read(&mut bytes, precision, scale)?;
            out.push_str(&decimal.to_string());
        }
        7 | 10 | 11 | 12 => {
            let packed = i64::from_le_bytes(bytes.array("a time in a JSON document")?);
            string(out, &temporal(field, packed)?);
        }
        _ => {
            out.push_str(&format!("\"base64:type{field}:"));
            for (at, four) in base64(bytes.rest()).enumerate() {
                if at > 0 && at % (BASE64_LINE / 4) == 0 {
                    out.push_str("\\n");
                }
                out.extend(four.map(char::from));
            }
            out.push('"');
        }
    }
    bytes.end("a value in a JSON document")
}

/// Of the number that the server has in memory: 24 bits for a fraction in millionths, and the rest as in columns.
fn temporal(field: u8, packed: i64) -> Result<String, Problem> {
    let size = packed.unsigned_abs();
    let microsecond = (size & 0xff_ffff) as u32;
    if microsecond > 999_999 || packed < 0 && field != 11 {
        return Err(Problem::invalid(format!("a time in a JSON document: {packed}")));
    }
    let whole = size >> 24;
    if field == 11 {
        let (hour, minute, second) = (whole >> 12, whole >> 6 & 63, whole & 63);
        if hour > 838 || minute > 59 || second > 59 {
            return Err(Problem::invalid(format!("a time in a JSON document: {packed}")));
        }
        let (hour, minute, second) = (hour as u16, minute as u8, second as u8);
        return Ok(Time { is_negative: packed < 0, hour, minute, second, microsecond, digits: 6 }.to_string());
    }
    let moment = DateTime::of_packed(whole, microsecond, 6)?;
    Ok(if field == 10 { moment.date.to_string() } else { moment.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_as_mysql_writes_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1e14, "100000000000000.0"),
            (1e15, "1e15"),
            (1_123_481_454_172_879.9, "1123481454172879.9"),
            (-1_123_481_454_172_879.0, "-1.123481454172879e15"),
            (12_345_678_901_234_567.0, "1.2345678901234568e16"),
            (1.5e300, "1.5e300"),
            (762_629_324_703_448.2, "762629324703448.2"),
            (1_348_567_750_719_277.2, "1348567750719277.2"),
            (5e-324, "5e-324"),
            (120.0, "120.0"),
            (-0.00125, "-0.00125"),
            (0.0, "0.0"),
            (9_007_199_254_740_993.0, "9.007199254740992e15"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (2.5e-200, "2.5e-200"),
        ] {
            let mut out = String::new();
            double(&mut out, number).unwrap();
            assert_eq!(out, text);
        }
        assert!(double(&mut String::new(), f64::NAN).is_err());
    }

    #[test]
    fn values_of_other_types_are_as_mysql_writes_them() {
        let shown = |field: u8, value: &[u8]| {
            let mut out = String::new();
            opaque(&mut out, field, value).map(|()| out)
        };
        assert_eq!(shown(246, &[4, 2, 0x8c, 34]).unwrap(), "12.34");
        assert_eq!(shown(252, b"ab").unwrap(), "\"base64:type252:YWI=\"");
        assert_eq!(shown(252, b"abc").unwrap(), "\"base64:type252:YWJj\"");
        let line = "AAAA".repeat(19);
        assert_eq!(shown(15, &[0; 57]).unwrap(), format!("\"base64:type15:{line}\""));
        assert_eq!(shown(15, &[0; 58]).unwrap(), format!("\"base64:type15:{line}\\nAA==\""));
        let date = ((((2023u64 * 13 + 11) << 5 | 17) << 17) << 24) as i64;
        assert_eq!(shown(10, &date.to_le_bytes()).unwrap(), "\"2023-11-17\"");
        assert_eq!(shown(12, &date.to_le_bytes()).unwrap(), "\"2023-11-17 00:00:00.000000\"");
        let time = -((((1i64 << 6 | 2) << 6 | 3) << 24) + 4);
        assert_eq!(shown(11, &time.to_le_bytes()).unwrap(), "\"-01:02:03.000004\"");
        assert!(shown(10, &time.to_le_bytes()).is_err() && shown(246, &[2, 3, 0]).is_err());
        assert!(shown(10, &[0; 9]).is_err());
    }
}
