//! MySQL's serialization library, as far as GTID events with tags need it: numbers of variable length, and fields that
//! have numbers of their own.
//!
//! ```text
//! number:  as many ones in the lowest bits of the first byte as bytes follow it, a zero, the value, lowest byte first
//! message: version | size of the message | 1 + the last field that must be known | { number of a field | its data }
//! ```

use crate::bytes::Bytes;
use crate::error::Problem;

const VERSION: u64 = 1;

/// An unsigned number of 1 to 9 bytes.
pub fn unsigned(bytes: &mut Bytes<'_>) -> Result<u64, Problem> {
    let what = "a number of variable length";
    let first = bytes.u8(what)?;
    let more = first.trailing_ones();
    let rest = bytes.little(more as usize, what)?;
    // Of the first byte the length takes one bit more than there are ones.
    let low = u64::from(first) >> (more + 1);
    let shift = 7u32.saturating_sub(more);
    match rest.checked_mul(1 << shift) {
        Some(high) => Ok(high | low),
        None => Err(Problem::invalid(format!("{what} does not fit into 64 bits"))),
    }
}

/// A signed one: the sign is its lowest bit.
pub fn signed(bytes: &mut Bytes<'_>) -> Result<i64, Problem> {
    let number = unsigned(bytes)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// A message: its fields, from which those that are there are taken in order.
pub struct Message<'a> {
    fields: Bytes<'a>,
    last_required: u64,
}

impl<'a> Message<'a> {
    /// The message that `bytes` are.
    pub fn read(bytes: Bytes<'a>) -> Result<Message<'a>, Problem> {
        let all = bytes.len();
        let mut fields = bytes;
        let version = unsigned(&mut fields)?;
        if version != VERSION {
            return Err(Problem::invalid(format!("a message of version {version}")));
        }
        let size = unsigned(&mut fields)?;
        if size != all as u64 {
            return Err(Problem::invalid(format!("a message of {size} bytes in {all}")));
        }
        let last_required = unsigned(&mut fields)?;
        Ok(Message { fields, last_required })
    }

    /// Whether the next field is this one; then its data is what comes next.
    pub fn has(&mut self, field: u64) -> Result<bool, Problem> {
        let mut ahead = self.fields;
        if ahead.is_empty() || unsigned(&mut ahead)? != field {
            return Ok(false);
        }
        self.fields = ahead;
        Ok(true)
    }

    /// Fails unless the next field is this one.
    pub fn expect(&mut self, field: u64) -> Result<&mut Bytes<'a>, Problem> {
        match self.has(field)? {
            true => Ok(&mut self.fields),
            false => Err(Problem::invalid(format!("field {field} of a message is missing"))),
        }
    }

    /// The data of a field, if it is there.
    pub fn optional(&mut self, field: u64) -> Result<Option<&mut Bytes<'a>>, Problem> {
        Ok(if self.has(field)? { Some(&mut self.fields) } else { None })
    }

    /// Fails if there is a field beyond `last_known` that must be known.
    pub fn end(&self, last_known: u64) -> Result<(), Problem> {
        match self.last_required {
            required if required > last_known + 1 => Err(Problem::invalid(format!(
                "a message with field {required}, which must be known and is not"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_librarys_documentation_has_them() {
        for (bytes, number) in [
            (&[0b1111_1011, 0xff, 0b0000_0111][..], 65535),
            (&[0x04], 2),
            (&[0x5d, 0x03], 215),
            (&[0xc3, 0x02, 0x0b], 90200),
            (&[0x7f, 0x39, 0x7d, 0x89, 0x70, 0xdb, 0x2d, 0x06], 1_739_270_369_410_361),
            (&[0xff, 1, 0, 0, 0, 0, 0, 0, 0x80], 1 << 63 | 1),
        ] {
            let mut left = Bytes(bytes);
            assert_eq!(unsigned(&mut left), Ok(number), "{bytes:x?}");
            assert!(left.is_empty() && unsigned(&mut Bytes(&bytes[..bytes.len() - 1])).is_err());
        }
        for (bytes, number) in [
            (&[0b1111_0011, 0xff, 0b0000_1111][..], 65535),
            (&[0b1110_1011, 0xff, 0b0000_1111], -65535),
            (&[0b1111_1011, 0xff, 0b0000_1111], -65536),
            (&[0x04], 1),
            (&[0xd9, 0x03], 123),
        ] {
            assert_eq!(signed(&mut Bytes(bytes)), Ok(number), "{bytes:x?}");
        }
    }
}
