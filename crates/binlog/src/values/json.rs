//! MySQL's binary JSON, and the text that the server shows for it.
//!
//! ```text
//! document:      type: 1 | value
//! object:        number of members | length in bytes | { where the key is | its length: 2 } | { type: 1 | value or where
//!                it is } | keys | values
//! array:         the same without keys
//! ```
//!
//! Of small objects and arrays the numbers have 2 bytes, of large ones 4; places are counted from where the object or
//! the array begins. Literals and small numbers stand in place of where they would be.

use super::json_text;
use crate::bytes::Bytes;
use crate::error::Problem;

/// As deep as MySQL lets a document be.
pub(super) const DEEPEST: usize = 100;

/// A document of a JSON column, as the log has it. That it is a whole one is not looked at before it is turned to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(pub &'a [u8]);

impl Json<'_> {
    /// The text that MySQL shows.
    pub fn text(&self) -> Result<String, Problem> {
        let Some((&kind, value)) = self.0.split_first() else {
            // What MySQL stores for a document that is not there, such as the value of a column that was added.
            return Ok("null".into());
        };
        let mut out = String::new();
        let mut reader = Reader { left: self.0.len().saturating_mul(2) + 16, out: &mut out };
        reader.value(kind, value, 0)?;
        Ok(out)
    }
}

/// Turns values to text. What it has looked at is counted: in a document nothing is in two places, so that who makes
/// places overlap, to have little bytes become much text, is told from one.
struct Reader<'o> {
    left: usize,
    out: &'o mut String,
}

/// Small and large objects and arrays.
#[derive(Clone, Copy)]
struct Shape {
    is_object: bool,
    number_bytes: usize,
}

impl Reader<'_> {
    fn spend(&mut self, bytes: usize) -> Result<(), Problem> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| Problem::invalid("a JSON document whose parts overlap"))?;
        Ok(())
    }

    /// A value of a type, at the beginning of `bytes`.
    fn value(&mut self, kind: u8, bytes: &[u8], depth: usize) -> Result<(), Problem> {
        let what = "a JSON document";
        if depth > DEEPEST {
            return Err(Problem::invalid(format!("{what} deeper than {DEEPEST}")));
        }
        let mut left = Bytes(bytes);
        match kind {
            0..=3 => {
                let shape = Shape { is_object: kind < 2, number_bytes: if kind & 1 == 0 { 2 } else { 4 } };
                return self.container(shape, bytes, depth);
            }
            4 => json_text::literal(self.out, left.u8(what)?)?,
            5 => self.number(i16::from_le_bytes(left.array(what)?)),
            6 => self.number(left.u16(what)?),
            7 => self.number(i32::from_le_bytes(left.array(what)?)),
            8 => self.number(left.u32(what)?),
            9 => self.number(i64::from_le_bytes(left.array(what)?)),
            10 => self.number(left.u64(what)?),
            11 => json_text::double(self.out, f64::from_le_bytes(left.array(what)?))?,
            12 => {
                let length = variable_length(&mut left)?;
                let text = left.take_long(length, what)?;
                self.spend(text.len())?;
                json_text::string(self.out, utf8(text)?);
            }
            15 => {
                let field = left.u8(what)?;
                let length = variable_length(&mut left)?;
                let value = left.take_long(length, what)?;
                self.spend(value.len())?;
                json_text::opaque(self.out, field, value)?;
            }
            other => return Err(Problem::invalid(format!("{what} with a value of type {other}"))),
        }
        self.spend(bytes.len() - left.len())
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        self.out.push_str(&number.to_string());
    }

    fn container(&mut self, shape: Shape, bytes: &[u8], depth: usize) -> Result<(), Problem> {
        let what = "a JSON document";
        let mut head = Bytes(bytes);
        let number = head.little(shape.number_bytes, what)?;
        let size = head.little(shape.number_bytes, what)?;
        let bytes = usize::try_from(size).ok().and_then(|size| bytes.get(..size));
        let bytes = bytes.ok_or(Problem::Short { what, needed: size, left: head.len() })?;
        let key_entry = if shape.is_object { shape.number_bytes + 2 } else { 0 };
        let value_entry = shape.number_bytes + 1;
        let mut keys = Bytes(head.take_long(number.saturating_mul(key_entry as u64), what)?);
        let mut values = Bytes(head.take_long(number.saturating_mul(value_entry as u64), what)?);
        self.spend(2 * shape.number_bytes + keys.len() + values.len())?;
        self.out.push(if shape.is_object { '{' } else { '[' });
        for at in 0..number {
            if at > 0 {
                self.out.push_str(", ");
            }
            if shape.is_object {
                let from = keys.little(shape.number_bytes, what)?;
                let length = keys.u16(what)?;
                let key = behind(bytes, from)?.get(..length.into());
                let key = key.ok_or_else(|| Problem::invalid(format!("{what} with a key past its end")))?;
                self.spend(key.len())?;
                json_text::string(self.out, utf8(key)?);
                self.out.push_str(": ");
            }
            let kind = values.u8(what)?;
            let place = values.take(shape.number_bytes, what)?;
            if stands_in_place(kind, shape.number_bytes) {
                self.value(kind, place, depth + 1)?;
            } else {
                let from = Bytes(place).little(shape.number_bytes, what)?;
                self.value(kind, behind(bytes, from)?, depth + 1)?;
            }
        }
        self.out.push(if shape.is_object { '}' } else { ']' });
        Ok(())
    }
}

/// Literals and numbers that are no longer than a place.
fn stands_in_place(kind: u8, number_bytes: usize) -> bool {
    match kind {
        4..=6 => true,
        7 | 8 => number_bytes == 4,
        _ => false,
    }
}

fn behind(bytes: &[u8], from: u64) -> Result<&[u8], Problem> {
    let found = usize::try_from(from).ok().and_then(|from| bytes.get(from..));
    found.ok_or_else(|| Problem::invalid("a JSON document with a value past its end"))
}

fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|_| Problem::invalid("a JSON document with text that is not UTF-8"))
}

/// Seven bits in each byte, the lowest first; the highest bit says that more follow. At most five bytes.
fn variable_length(bytes: &mut Bytes<'_>) -> Result<u64, Problem> {
    let mut length = 0;
    for at in 0..5 {
        let byte = bytes.u8("a length in a JSON document")?;
        length |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(length);
        }
    }
    Err(Problem::invalid("a length in a JSON document has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, Problem> {
        Json(bytes).text()
    }

    #[test]
    fn scalars_have_the_servers_text() {
        assert_eq!(text(&[4, 1]).unwrap(), "true");
        assert_eq!(text(b"\x0c\x05h\"i\n\x01").unwrap(), r#""h\"i\n\u0001""#);
        assert_eq!(text(&[5, 0xff, 0xff]).unwrap(), "-1");
        assert_eq!(text(&[10, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap(), "18446744073709551615");
        assert_eq!(text(&[&[11][..], &1.5f64.to_le_bytes()].concat()).unwrap(), "1.5");
        assert_eq!(text(&[]).unwrap(), "null");
    }

    #[test]
    fn objects_and_arrays_are_read_small_and_large() {
        // {"a": 1, "bc": [true, "x"]}
        let array = b"\x02\0\x0c\0\x04\x01\0\x0c\x0a\0\x01x";
        let head = b"\0\x02\0\x25\0\x12\0\x01\0\x13\0\x02\0\x05\x01\0\x02\x15\0";
        let bytes = [&head[..], b"abc", array, b"\0\0\0\0"].concat();
        assert_eq!(text(&bytes).unwrap(), r#"{"a": 1, "bc": [true, "x"]}"#);
        for end in 1..33 {
            assert!(text(&bytes[..end]).is_err(), "{end}");
        }
        let large = [3, 1, 0, 0, 0, 13, 0, 0, 0, 7, 1, 0, 1, 0];
        assert_eq!(text(&large).unwrap(), "[65537]");
    }

    #[test]
    fn parts_that_overlap_and_endless_depth_are_refused() {
        // Each array has the next one twice.
        let mut bytes = vec![2];
        for _ in 0..60 {
            let at = 10u16;
            bytes.extend_from_slice(&[2, 0, 0xff, 0xff, 2, at as u8, 0, 2, at as u8, 0]);
        }
        bytes.resize(70_000, 0);
        assert!(text(&bytes).is_err());
        let nested: Vec<u8> =
            [2].into_iter().chain([1, 0, 0xe8, 0x03, 2, 7, 0].repeat(300)).chain([0; 2000]).collect();
        assert!(text(&nested).is_err());
    }
}
