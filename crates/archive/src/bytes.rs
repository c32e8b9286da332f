//! Numbers and byte strings one after the other, as rows have them. What is read may be damaged: each step says `None`
//! where the bytes do not go on as they should.

/// Appends a number in groups of seven bits, the lowest first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends bytes behind their number.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is left of a row.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                return None;
            }
            number |= group << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_signed(&mut out, number as i64);
            let mut rest = Rest(&out);
            assert_eq!((rest.number(), rest.signed()), (Some(number), Some(number as i64)));
            assert!(rest.is_empty());
        }
        assert_eq!(Rest(&[0xff; 10]).number(), None);
        assert_eq!(Rest(&[0x80]).number(), None);
    }
}
