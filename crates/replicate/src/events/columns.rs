//! What table maps say of columns, written anew.

use super::packed;
use teak_binlog::Conversion;

/// Types of columns.
const VARCHAR: u8 = 15;
const BLOB: u8 = 252;

/// What becomes of what a table map says of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapColumns {
    /// They have other names in the target, so theirs are not told.
    pub are_renamed: bool,
    /// There is one more, a VARCHAR of so many bytes.
    pub one_more: Option<u16>,
    /// Columns of other types, by their places from 0 on.
    pub conversions: Vec<(usize, Conversion)>,
}

impl MapColumns {
    /// What a table map has behind its names, if that is to be another one.
    pub fn written(&self, rest: &[u8]) -> Option<Vec<u8>> {
        match *self == MapColumns::default() {
            true => None,
            false => described(rest, self.one_more, &self.conversions),
        }
    }
}

/// How many bytes a table map tells of a type besides.
fn told_bytes_of(kind: u8) -> usize {
    match kind {
        4 | 5 | 17..=20 | 140 | 242 | 245 | 249..=252 | 255 => 1,
        15 | 16 | 141 | 246..=248 | 253 | 254 => 2,
        _ => 0,
    }
}

/// What a table map has behind its names: number of columns, types, what is told of these, what may be NULL; perhaps
/// with one column more, a VARCHAR of so many bytes, and with other types. What some servers tell behind that is left
/// out: names of columns, by which newer ones find them, and others that would be of one column less.
fn described(rest: &[u8], added: Option<u16>, conversions: &[(usize, Conversion)]) -> Option<Vec<u8>> {
    let number = |rest: &mut &[u8]| match **rest {
        [252, low, high, ref others @ ..] => {
            *rest = others;
            Some(usize::from(u16::from_le_bytes([low, high])))
        }
        [few @ 0..=250, ref others @ ..] => {
            *rest = others;
            Some(usize::from(few))
        }
        _ => None,
    };
    let mut left = rest;
    let columns = number(&mut left)?;
    let (types, mut left) = left.split_at_checked(columns)?;
    let told_bytes = number(&mut left)?;
    let (mut told, left) = left.split_at_checked(told_bytes)?;
    let mut nullable = left.get(..columns.div_ceil(8))?.to_vec();
    let (mut new_types, mut new_told) = (types.to_vec(), Vec::new());
    for (at, kind) in new_types.iter_mut().enumerate() {
        let of_type;
        (of_type, told) = told.split_at_checked(told_bytes_of(*kind))?;
        match conversions.iter().find(|(place, _)| *place == at) {
            None => new_told.extend_from_slice(of_type),
            Some((_, conversion)) => *kind = converted(*conversion, &mut new_told),
        }
    }
    // Of an array of strings more is told, but rows have none.
    new_told.extend_from_slice(told);
    if let Some(bytes) = added {
        new_types.push(VARCHAR);
        new_told.extend_from_slice(&bytes.to_le_bytes());
        nullable.resize((columns + 1).div_ceil(8), 0);
        nullable[columns / 8] &= !(1 << (columns % 8));
    }
    Some([&packed(new_types.len())[..], &new_types, &packed(new_told.len()), &new_told, &nullable].concat())
}

/// The type, and what is told of it.
fn converted(conversion: Conversion, told: &mut Vec<u8>) -> u8 {
    match conversion {
        Conversion::Text | Conversion::Nothing => {
            told.push(4);
            BLOB
        }
        Conversion::Blob(length_bytes) => {
            told.push(length_bytes);
            BLOB
        }
        Conversion::Varbinary(bytes) => {
            told.extend_from_slice(&bytes.to_le_bytes());
            VARCHAR
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_without_names_and_with_one_more() {
        // Eight columns more fill a byte of the bits.
        let rest = [&[8][..], &[3; 8], &[0], &[0xff], b"more"].concat();
        assert_eq!(described(&rest, None, &[]).unwrap(), rest[..rest.len() - 4]);
        assert_eq!(
            described(&rest, Some(9), &[]).unwrap(),
            [&[9][..], &[3; 8], &[15, 2, 9, 0, 0xff, 0]].concat()
        );
        for cut in 0..rest.len() - 4 {
            assert_eq!(described(&rest[..cut], Some(9), &[]), None, "{cut}");
        }
    }

    #[test]
    fn columns_of_other_types_have_what_these_need() {
        // VARCHAR(9), JSON, VECTOR, VECTOR, INT.
        let rest = [5, 15, 245, 242, 242, 3, 5, 9, 0, 4, 4, 4, 0x1f, 1, 2];
        let conversions = [(1, Conversion::Text), (2, Conversion::Varbinary(300)), (3, Conversion::Blob(3))];
        let wanted = [5, 15, 252, 15, 252, 3, 6, 9, 0, 4, 44, 1, 3, 0x1f];
        assert_eq!(described(&rest, None, &conversions).unwrap(), wanted);
        assert_eq!(described(&rest[..9], None, &conversions), None);
    }
}
