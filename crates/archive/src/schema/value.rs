//! Values of fields, and their types: as texts, as bytes of a record, and as bytes that sort as they do.

use crate::bytes::{put_bytes, put_number, put_signed, Rest};
use crate::calendar;
use std::cmp::Ordering;
use std::fmt;

/// A type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Unicode, of at most so many characters.
    String(u32),
    /// An integer of 64 bits.
    Long,
    /// A number of IEEE 754, never NaN.
    Double,
    /// A day.
    Date,
    /// A time of day, to the microsecond.
    Time,
    /// A moment, to the microsecond.
    Timestamp,
    /// Bytes, at most so many; hexadecimal as texts.
    Binary(u32),
    /// True or false.
    Bool,
}

/// A type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// Of each value.
    pub scalar: Scalar,
    /// Whether a field has any number of them.
    pub list: bool,
}

/// The longest string or binary, in characters or bytes.
pub const MOST_LENGTH: u32 = 65_535;
/// The most values of a list.
pub const MOST_VALUES: usize = 10_000;

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Type {
        Type { scalar, list: false }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.list {
            f.write_str("list of ")?;
        }
        match self.scalar {
            Scalar::String(length) => write!(f, "string({length})"),
            Scalar::Long => f.write_str("long"),
            Scalar::Double => f.write_str("double"),
            Scalar::Date => f.write_str("date"),
            Scalar::Time => f.write_str("time"),
            Scalar::Timestamp => f.write_str("timestamp"),
            Scalar::Binary(length) => write!(f, "binary({length})"),
            Scalar::Bool => f.write_str("bool"),
        }
    }
}

impl std::str::FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Type, String> {
        let (one, list) = text.strip_prefix("list of ").map_or((text, false), |one| (one, true));
        let length = |of: &str| {
            let digits = one.strip_prefix(of)?.strip_prefix('(')?.strip_suffix(')')?;
            digits.parse().ok().filter(|length| (1..=MOST_LENGTH).contains(length))
        };
        let scalar = match one {
            "long" => Scalar::Long,
            "double" => Scalar::Double,
            "date" => Scalar::Date,
            "time" => Scalar::Time,
            "timestamp" => Scalar::Timestamp,
            "bool" => Scalar::Bool,
            _ => (length("string").map(Scalar::String).or(length("binary").map(Scalar::Binary))).ok_or_else(
                || {
                    format!(
                        "'{text}' is no type: string(n), long, double, date, time, timestamp, binary(n) \
                    and bool are, and list of one of them; n is 1 to {MOST_LENGTH}"
                    )
                },
            )?,
        };
        Ok(Type { scalar, list })
    }
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a string.
    String(String),
    /// Of a long.
    Long(i64),
    /// Of a double.
    Double(f64),
    /// Days since 1970.
    Date(i64),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// Of a binary.
    Binary(Vec<u8>),
    /// Of a bool.
    Bool(bool),
    /// Of a list.
    List(Vec<Value>),
}

impl Scalar {
    /// The value that a text means. What is wrong with it: in words that follow the name of the field.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let wrong = || format!("'{}' is no {}", shown(text), Type::from(self));
        Ok(match self {
            Scalar::String(_) => Value::String(text.to_string()),
            Scalar::Long => Value::Long(text.parse().map_err(|_| wrong())?),
            Scalar::Double => Value::Double(text.parse().map_err(|_| wrong())?),
            Scalar::Date => Value::Date(calendar::parse_date(text).ok_or_else(wrong)?),
            Scalar::Time => Value::Time(calendar::parse_time(text).ok_or_else(wrong)?),
            Scalar::Timestamp => Value::Timestamp(calendar::parse_timestamp(text).ok_or_else(wrong)?),
            Scalar::Binary(_) => Value::Binary(from_hex(text).ok_or_else(wrong)?),
            Scalar::Bool => Value::Bool(text.parse().map_err(|_| wrong())?),
        })
    }

    fn check(self, value: &Value) -> Result<(), String> {
        let of_type = Type::from(self);
        let (length, most) = match (self, value) {
            (Scalar::String(most), Value::String(text)) => (text.chars().count(), most),
            (Scalar::Binary(most), Value::Binary(bytes)) => (bytes.len(), most),
            (Scalar::Double, Value::Double(number)) if number.is_nan() => {
                return Err(format!("NaN is no {of_type}"))
            }
            (Scalar::Long, Value::Long(_))
            | (Scalar::Double, Value::Double(_))
            | (Scalar::Date, Value::Date(_))
            | (Scalar::Time, Value::Time(_))
            | (Scalar::Timestamp, Value::Timestamp(_))
            | (Scalar::Bool, Value::Bool(_)) => return Ok(()),
            _ => return Err(format!("'{}' is no {of_type}", shown(&value.to_string()))),
        };
        match length > most as usize {
            true => Err(format!("a value of length {length} is too long for {of_type}")),
            false => Ok(()),
        }
    }
}

impl Type {
    /// The value that a text means; of a list, one that has just that.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let value = self.scalar.parse(text)?;
        let value = if self.list { Value::List(vec![value]) } else { value };
        self.check(&value).map(|()| value)
    }

    /// Whether the value can be one of the field.
    pub fn check(self, value: &Value) -> Result<(), String> {
        match (self.list, value) {
            (true, Value::List(values)) if values.len() > MOST_VALUES => {
                Err(format!("a list of {} values is too long: {MOST_VALUES} at most", values.len()))
            }
            (true, Value::List(values)) => values.iter().try_for_each(|value| self.scalar.check(value)),
            (true, _) => Err(format!("'{}' is no {self}", shown(&value.to_string()))),
            (false, _) => self.scalar.check(value),
        }
    }

    /// The most bytes that [`Value::put_key`] makes of one.
    pub(crate) fn key_bytes(self) -> usize {
        match self.scalar {
            Scalar::String(length) => 4 * length as usize + 3,
            Scalar::Binary(length) => 2 * length as usize + 3,
            _ => 9,
        }
    }
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
            }
            _ => None,
        })
        .collect()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(text) => f.write_str(text),
            Value::Long(number) => number.fmt(f),
            Value::Double(number) => number.fmt(f),
            Value::Date(days) => f.write_str(&calendar::write_date(*days)),
            Value::Time(micros) => f.write_str(&calendar::write_time(*micros)),
            Value::Timestamp(micros) => f.write_str(&calendar::write_timestamp(*micros)),
            Value::Binary(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Value::Bool(value) => value.fmt(f),
            Value::List(values) => {
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

impl Value {
    /// As JSON has it: numbers and booleans as such, all else as texts.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Long(number) => (*number).into(),
            Value::Double(number) if number.is_finite() => (*number).into(),
            Value::Bool(value) => (*value).into(),
            Value::List(values) => values.iter().map(Value::to_json).collect(),
            _ => self.to_string().into(),
        }
    }

    /// How two of one type stand; `None`: they are of two.
    pub(crate) fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
            (Value::Binary(one), Value::Binary(other)) => Some(one.cmp(other)),
            (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
            (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
            (Value::Long(one), Value::Long(other))
            | (Value::Date(one), Value::Date(other))
            | (Value::Time(one), Value::Time(other))
            | (Value::Timestamp(one), Value::Timestamp(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Value::String(text) => tagged(out, 1, |out| put_bytes(out, text.as_bytes())),
            Value::Long(number) => tagged(out, 2, |out| put_signed(out, *number)),
            Value::Double(number) => tagged(out, 3, |out| out.extend(number.to_be_bytes())),
            Value::Date(days) => tagged(out, 4, |out| put_signed(out, *days)),
            Value::Time(micros) => tagged(out, 5, |out| put_signed(out, *micros)),
            Value::Timestamp(micros) => tagged(out, 6, |out| put_signed(out, *micros)),
            Value::Binary(bytes) => tagged(out, 7, |out| put_bytes(out, bytes)),
            Value::Bool(value) => out.push(8 + u8::from(*value)),
            Value::List(values) => tagged(out, 10, |out| {
                put_number(out, values.len() as u64);
                values.iter().for_each(|value| value.put(out));
            }),
        }
    }

    pub(crate) fn take(rest: &mut Rest<'_>) -> Option<Value> {
        let tag = rest.byte()?;
        if tag != 10 {
            return Value::take_scalar(tag, rest);
        }
        let count = usize::try_from(rest.number()?).ok().filter(|count| *count <= MOST_VALUES)?;
        let values = (0..count).map(|_| rest.byte().and_then(|tag| Value::take_scalar(tag, rest)));
        Some(Value::List(values.collect::<Option<_>>()?))
    }

    fn take_scalar(tag: u8, rest: &mut Rest<'_>) -> Option<Value> {
        Some(match tag {
            1 => Value::String(rest.text()?),
            2 => Value::Long(rest.signed()?),
            3 => Value::Double(f64::from_be_bytes(rest.array()?)),
            4 => Value::Date(rest.signed()?),
            5 => Value::Time(rest.signed()?),
            6 => Value::Timestamp(rest.signed()?),
            7 => Value::Binary(rest.bytes()?.to_vec()),
            8 => Value::Bool(false),
            9 => Value::Bool(true),
            _ => return None,
        })
    }

    /// Appends bytes that sort as values of this type do, behind those of [`NO_VALUE`]; none is the beginning of
    /// another. Lists have none.
    pub(crate) fn put_key(&self, out: &mut Vec<u8>) {
        out.push(1);
        let signed = |number: i64| (number as u64 ^ 1 << 63).to_be_bytes();
        match self {
            Value::String(text) => put_escaped(out, text.as_bytes()),
            Value::Binary(bytes) => put_escaped(out, bytes),
            Value::Bool(value) => out.push(u8::from(*value)),
            Value::Long(n) | Value::Date(n) | Value::Time(n) | Value::Timestamp(n) => out.extend(signed(*n)),
            Value::Double(number) => {
                // Both zeros are one value.
                let bits = if *number == 0.0 { 0 } else { number.to_bits() };
                out.extend((if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes());
            }
            Value::List(_) => {}
        }
    }

    /// Like [`Value::put_key`], of the beginning of a string: the keys of strings that begin so, and no others, begin
    /// with it.
    pub(crate) fn put_key_prefix(prefix: &str, out: &mut Vec<u8>) {
        out.push(1);
        put_escaped(out, prefix.as_bytes());
        out.truncate(out.len() - 2);
    }
}

/// What stands in a key for a field without a value.
pub(crate) const NO_VALUE: u8 = 0;

fn tagged(out: &mut Vec<u8>, tag: u8, put: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    put(out);
}

/// A zero byte is 00 FF, the end 00 00: no string is the beginning of another, and they sort as they are.
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend([0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scalars() -> impl Strategy<Value = Value> {
        prop_oneof![
            "\\PC{0,8}".prop_map(Value::String),
            any::<i64>().prop_map(Value::Long),
            any::<f64>().prop_filter("NaN", |n| !n.is_nan()).prop_map(Value::Double),
            (-700_000i64..2_900_000).prop_map(Value::Date),
            (0..86_400_000_000i64).prop_map(Value::Time),
            proptest::collection::vec(0u8..3, 0..5).prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Bool),
        ]
    }

    fn type_of(value: &Value) -> Scalar {
        match value {
            Value::String(_) => Scalar::String(10),
            Value::Long(_) => Scalar::Long,
            Value::Double(_) => Scalar::Double,
            Value::Date(_) => Scalar::Date,
            Value::Time(_) => Scalar::Time,
            Value::Timestamp(_) => Scalar::Timestamp,
            Value::Binary(_) => Scalar::Binary(10),
            Value::Bool(_) | Value::List(_) => Scalar::Bool,
        }
    }

    proptest! {
        #[test]
        fn a_value_comes_back_from_its_bytes_and_its_text(value in scalars(), list in any::<bool>()) {
            prop_assert_eq!(type_of(&value).parse(&value.to_string()).unwrap(), value.clone());
            let value = if list { Value::List(vec![value.clone(), value]) } else { value };
            let mut bytes = Vec::new();
            value.put(&mut bytes);
            let mut rest = Rest(&bytes);
            prop_assert_eq!(Value::take(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn keys_sort_as_values_do(one in scalars(), other in scalars()) {
            if let Some(order) = one.compare(&other) {
                let key = |value: &Value| { let mut key = Vec::new(); value.put_key(&mut key); key };
                prop_assert_eq!(key(&one).cmp(&key(&other)), order);
                prop_assert!(order.is_eq() || !key(&one).starts_with(&key(&other)));
            }
        }

        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            Value::take(&mut Rest(&bytes));
        }
    }

    #[test]
    fn types_say_what_is_wrong() {
        for text in ["string(1)", "list of long", "binary(65535)", "timestamp", "list of bool"] {
            assert_eq!(text.parse::<Type>().unwrap().to_string(), text);
        }
        for text in ["", "string", "string(0)", "string(65536)", "string(-1)", "list of list of long", "Long"]
        {
            assert!(text.parse::<Type>().is_err(), "{text}");
        }
        let told = |of: &str, text: &str| of.parse::<Type>().unwrap().parse(text).unwrap_err();
        assert_eq!(told("long", "x"), "'x' is no long");
        assert_eq!(told("string(2)", "äöü"), "a value of length 3 is too long for string(2)");
        assert_eq!(told("double", "NaN"), "NaN is no double");
        assert_eq!(told("list of date", "2023-02-29"), "'2023-02-29' is no date");
    }
}
