//! What table maps say of columns, written anew.

use super::packed;

/// A type of columns.
const VARCHAR: u8 = 15;

/// What becomes of what a table map says of columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MapColumns {
    /// Nothing.
    #[default]
    AsTheyAre,
    /// They have other names in the target, so theirs are not told.
    WithoutNames,
    /// There is one more, a VARCHAR of so many bytes.
    OneMore(u16),
}

impl MapColumns {
    /// What a table map has behind its names, if that is to be another one.
    pub fn written(self, rest: &[u8]) -> Option<Vec<u8>> {
        match self {
            MapColumns::AsTheyAre => None,
            MapColumns::WithoutNames => described(rest, None),
            MapColumns::OneMore(bytes) => described(rest, Some(bytes)),
        }
    }
}

/// What a table map has behind its names: number of columns, types, what is told of these, what may be NULL; perhaps
/// with one column more, a VARCHAR of so many bytes. What some servers tell behind that is left out: names of columns,
/// by which newer ones find them, and others that would be of one column less.
fn described(rest: &[u8], added: Option<u16>) -> Option<Vec<u8>> {
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
    let (told, left) = left.split_at_checked(told_bytes)?;
    let mut nullable = left.get(..columns.div_ceil(8))?.to_vec();
    let Some(bytes) = added else {
        return Some([&packed(columns)[..], types, &packed(told.len()), told, &nullable].concat());
    };
    nullable.resize((columns + 1).div_ceil(8), 0);
    nullable[columns / 8] &= !(1 << (columns % 8));
    Some(
        [
            &packed(columns + 1)[..],
            types,
            &[VARCHAR],
            &packed(told.len() + 2),
            told,
            &bytes.to_le_bytes(),
            &nullable,
        ]
        .concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_without_names_and_with_one_more() {
        // Eight columns more fill a byte of the bits.
        let rest = [&[8][..], &[3; 8], &[0], &[0xff], b"more"].concat();
        assert_eq!(described(&rest, None).unwrap(), rest[..rest.len() - 4]);
        assert_eq!(described(&rest, Some(9)).unwrap(), [&[9][..], &[3; 8], &[15, 2, 9, 0, 0xff, 0]].concat());
        for cut in 0..rest.len() - 4 {
            assert_eq!(described(&rest[..cut], Some(9)), None, "{cut}");
        }
    }
}
