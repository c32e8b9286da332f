//! Bytes that are read from front to end. Whatever they are, nothing is read past their end.

use super::error::Problem;

/// What is left to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Problem> {
        match self.0.split_at_checked(length) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => Err(Problem::Short { what, needed: length as u64, left: self.0.len() }),
        }
    }

    /// As many bytes as a number from the log says.
    pub fn take_long(&mut self, length: u64, what: &'static str) -> Result<&'a [u8], Problem> {
        let left = self.0.len();
        match usize::try_from(length) {
            Ok(length) => self.take(length, what),
            Err(_) => Err(Problem::Short { what, needed: length, left }),
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Problem> {
        match self.0.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(*taken)
            }
            None => Err(Problem::Short { what, needed: N as u64, left: self.0.len() }),
        }
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, Problem> {
        Ok(self.array::<1>(what)?[0])
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, Problem> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, Problem> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// An unsigned number of up to 8 bytes, the lowest first.
    pub fn little(&mut self, bytes: usize, what: &'static str) -> Result<u64, Problem> {
        let taken = self.take(bytes, what)?;
        Ok(taken.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// An unsigned number of up to 8 bytes, the highest first.
    pub fn big(&mut self, bytes: usize, what: &'static str) -> Result<u64, Problem> {
        let taken = self.take(bytes, what)?;
        Ok(taken.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// A number in the protocol's packed form, of 1, 3, 4 or 9 bytes.
    pub fn packed(&mut self, what: &'static str) -> Result<u64, Problem> {
        match self.u8(what)? {
            byte @ 0..=250 => Ok(u64::from(byte)),
            252 => self.little(2, what),
            253 => self.little(3, what),
            254 => self.little(8, what),
            byte => Err(Problem::invalid(format!("{what}: {byte} begins no packed number"))),
        }
    }

    /// A string with its length before it, in the packed form.
    pub fn packed_string(&mut self, what: &'static str) -> Result<&'a [u8], Problem> {
        let length = self.packed(what)?;
        self.take_long(length, what)
    }

    /// A string with its length before it, in one byte.
    pub fn short_string(&mut self, what: &'static str) -> Result<&'a [u8], Problem> {
        let length = self.u8(what)?;
        self.take(length.into(), what)
    }

    /// What comes before the next zero byte, which is passed.
    pub fn terminated(&mut self, what: &'static str) -> Result<&'a [u8], Problem> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| Problem::invalid(format!("{what} has no end")))?;
        let taken = self.take(end, what)?;
        self.u8(what)?;
        Ok(taken)
    }

    /// Fails if something is left.
    pub fn end(&self, what: &'static str) -> Result<(), Problem> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(Problem::invalid(format!("{more} bytes follow {what}"))),
        }
    }
}

/// What is before the first zero byte.
pub(crate) fn before_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A bit for each of some things, the lowest of each byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bitmap<'a>(pub &'a [u8]);

impl Bitmap<'_> {
    pub fn has(self, bit: usize) -> bool {
        self.0.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

/// How many bytes hold so many bits.
pub(crate) fn bytes_of_bits(bits: usize) -> usize {
    bits.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_have_four_lengths_and_two_bytes_begin_none() {
        let mut bytes = Bytes(&[250, 252, 1, 2, 253, 1, 2, 3, 254, 1, 2, 3, 4, 5, 6, 7, 8, 251, 255]);
        let numbers: Vec<_> = (0..4).map(|_| bytes.packed("n").unwrap()).collect();
        assert_eq!(numbers, [250, 0x0201, 0x03_0201, 0x0807_0605_0403_0201]);
        assert!(bytes.packed("n").is_err() && bytes.packed("n").is_err() && bytes.is_empty());
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        assert!(Bytes(&[1]).u16("n").is_err());
        assert!(Bytes(&[5, 1]).packed_string("s").is_err());
        assert!(Bytes(&[254, 255, 255, 255, 255, 255, 255, 255, 255]).packed_string("s").is_err());
        assert!(Bytes(b"abc").terminated("s").is_err());
        let mut bytes = Bytes(b"ab\0c");
        assert_eq!((bytes.terminated("s").unwrap(), bytes.rest()), (&b"ab"[..], &b"c"[..]));
    }
}
