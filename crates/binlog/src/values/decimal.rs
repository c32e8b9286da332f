//! DECIMAL: nine digits in four bytes, the highest first, and fewer bytes for what is left over on both sides of the
//! point. The highest bit is flipped; of negative numbers all bits are.

use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;

/// Bytes for so many digits.
const BYTES_OF_DIGITS: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const GROUP: usize = 9;
/// More digits than these no DECIMAL has.
const MOST_DIGITS: usize = 65;

/// A decimal number with all the digits that its column has behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// As numbers from 0 to 9, without zeros in front.
    digits: [u8; MOST_DIGITS],
    length: u8,
    scale: u8,
}

impl Decimal {
    /// Of a column with so many digits, and of them so many behind the point.
    pub(crate) fn read(bytes: &mut Bytes<'_>, precision: u8, scale: u8) -> Result<Decimal, Problem> {
        let (scale_digits, whole) = (usize::from(scale), usize::from(precision.saturating_sub(scale)));
        let groups = [whole % GROUP]
            .into_iter()
            .chain(std::iter::repeat_n(GROUP, whole / GROUP + scale_digits / GROUP));
        let mut number = bytes.take(Decimal::bytes(precision, scale), "a DECIMAL")?.to_vec();
        let Some(first) = number.first_mut() else {
            return Err(Problem::invalid("a DECIMAL without digits"));
        };
        let is_negative = *first & 0x80 == 0;
        *first ^= 0x80;
        if is_negative {
            number.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let mut left = Bytes(&number);
        let mut decimal = Decimal { is_negative, digits: [0; MOST_DIGITS], length: 0, scale };
        for digits in groups.chain([scale_digits % GROUP]) {
            let group = left.big(BYTES_OF_DIGITS[digits], "a DECIMAL")?;
            decimal.push(group, digits)?;
        }
        Ok(decimal)
    }

    /// How long a number of such a column is.
    pub(crate) fn bytes(precision: u8, scale: u8) -> usize {
        let side = |digits: usize| digits / GROUP * 4 + BYTES_OF_DIGITS[digits % GROUP];
        side(usize::from(precision.saturating_sub(scale))) + side(scale.into())
    }

    fn push(&mut self, group: u64, digits: usize) -> Result<(), Problem> {
        let mut rest = group;
        let from = usize::from(self.length);
        let places = self.digits.get_mut(from..from + digits);
        let places = places.ok_or_else(|| Problem::invalid("a DECIMAL of too many digits"))?;
        for place in places.iter_mut().rev() {
            *place = (rest % 10) as u8;
            rest /= 10;
        }
        if rest != 0 {
            return Err(Problem::invalid(format!("{group} for {digits} digits of a DECIMAL")));
        }
        self.length += digits as u8;
        Ok(())
    }
}

/// As SQL shows it, but for zeros in front, which ZEROFILL would have.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = &self.digits[..self.length.into()];
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(self.scale.into()));
        let zeros = whole.iter().take_while(|&&digit| digit == 0).count();
        let whole = whole.get(zeros..).filter(|whole| !whole.is_empty()).unwrap_or(&[0]);
        let number = |f: &mut fmt::Formatter<'_>, digits: &[u8]| {
            digits.iter().try_for_each(|digit| write!(f, "{digit}"))
        };
        if self.is_negative && digits.iter().any(|&digit| digit != 0) {
            write!(f, "-")?;
        }
        number(f, whole)?;
        if !fraction.is_empty() {
            write!(f, ".")?;
            number(f, fraction)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], precision: u8, scale: u8) -> Result<String, Problem> {
        let mut bytes = Bytes(bytes);
        let decimal = Decimal::read(&mut bytes, precision, scale)?;
        bytes.end("a number").map(|()| decimal.to_string())
    }

    #[test]
    fn numbers_are_as_the_manual_has_them() {
        // The example of MySQL's manual, and its negative.
        let bytes = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(read(&bytes, 14, 4).unwrap(), "1234567890.1234");
        assert_eq!(read(&bytes.map(|byte| !byte), 14, 4).unwrap(), "-1234567890.1234");
        assert_eq!(read(&[0x80], 1, 0).unwrap(), "0");
        assert_eq!(read(&[0x80, 0x05], 2, 2).map_err(|_| ()), Err(()));
        assert_eq!(read(&[0x85], 2, 2).unwrap(), "0.05");
        assert_eq!(read(&[0x7a], 2, 2).unwrap(), "-0.05");
        let longest = [&[0x80, 99][..], &[0x3b, 0x9a, 0xc9, 0xff].repeat(7)].concat();
        assert_eq!(read(&longest[1..], 65, 0).map_err(|_| ()), Err(()));
        assert_eq!(Decimal::bytes(65, 0), 29);
    }

    #[test]
    fn digits_that_cannot_be_are_refused() {
        assert!(read(&[0x80 | 10], 1, 0).is_err());
        assert!(read(&[0x80 | 0x3b, 0x9a, 0xca, 0x00], 9, 0).is_err());
        assert_eq!(read(&[0x80 | 0x3b, 0x9a, 0xc9, 0xff], 9, 0).unwrap(), "999999999");
        assert!(read(&[0x80], 5, 0).is_err());
    }
}
