//! Several values as one: a *bundle*, which is compressed as a whole, so that what its values have in common is there
//! once. Values that are deflate streams may be in it as what is in them ([`super::deflated`]).
//!
//! ```text
//! 0   version  u8      1
//! 1   n        u8      values, 1 to 64
//! 2   n times: key length u16 | key | form u8 | bytes u32 | value bytes u32        little-endian
//!              form 0: the bytes are the value; 1: a recipe, and what is in the stream that it makes
//!     n times: bytes
//! ```
//!
//! The keys are those of the rows whose values they are, for who looks which of them are still in use.

use super::deflated::{self, Recipe};

/// More values are never put together.
pub(crate) const MOST_MEMBERS: usize = 64;
/// A bundle of more than one value has no more content than this, in bytes: to read one of them is to decompress them
/// all, which takes a few hundred microseconds.
pub(crate) const MOST_CONTENT: usize = 2 << 20;

const VERSION: u8 = 1;
const AS_IT_IS: u8 = 0;
const RECREATED: u8 = 1;
/// Bytes that a value takes in the table before the content, besides its key.
const ENTRY_BYTES: usize = 2 + 1 + 4 + 4;
/// What a stream of so many bytes may have in it, as a multiple of it and besides: see `store/recompression.rs`.
const MOST_RATIO: usize = 16;

/// What stands for a value in a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    bytes: Vec<u8>,
    form: u8,
    value_bytes: u32,
}

/// Why a bundle has not the value that is asked for.
type Malformed = String;

impl Content {
    /// The value as it is.
    pub(crate) fn plain(value: &[u8]) -> Option<Content> {
        let value_bytes = u32::try_from(value.len()).ok()?;
        Some(Content { bytes: value.to_vec(), form: AS_IT_IS, value_bytes })
    }

    /// What is in the value, if it is a deflate stream that can be made again to the bit; proving it costs deflating
    /// it.
    pub(crate) fn inflated(value: &[u8]) -> Option<Content> {
        let value_bytes = u32::try_from(value.len()).ok()?;
        let inflated =
            deflated::inflate(value, value.len().saturating_mul(MOST_RATIO).saturating_add(64 << 10))?;
        let mut bytes = Vec::with_capacity(inflated.bytes.len() + 16);
        inflated.recipe.encode(&mut bytes);
        bytes.extend_from_slice(&inflated.bytes);
        Some(Content { bytes, form: RECREATED, value_bytes })
    }

    /// Bytes in the bundle, before it is compressed.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Of the value.
    pub(crate) fn value_bytes(&self) -> u64 {
        u64::from(self.value_bytes)
    }

    /// The value.
    pub(crate) fn value(&self) -> Result<Vec<u8>, Malformed> {
        made(self.form, &self.bytes, self.value_bytes as usize)
    }
}

/// A bundle of at most [`MOST_MEMBERS`], before it is compressed: keys and contents.
pub(crate) fn encode(members: &[(Vec<u8>, Content)]) -> Vec<u8> {
    debug_assert!((1..=MOST_MEMBERS).contains(&members.len()), "{} values", members.len());
    let table: usize = members.iter().map(|(key, _)| ENTRY_BYTES + key.len()).sum();
    let content: usize = members.iter().map(|(_, content)| content.len()).sum();
    let mut out = Vec::with_capacity(2 + table + content);
    out.extend_from_slice(&[VERSION, members.len() as u8]);
    for (key, content) in members {
        debug_assert!(key.len() <= usize::from(u16::MAX));
        out.extend_from_slice(&(key.len() as u16).to_le_bytes());
        out.extend_from_slice(key);
        out.push(content.form);
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
        out.extend_from_slice(&content.value_bytes.to_le_bytes());
    }
    members.iter().for_each(|(_, content)| out.extend_from_slice(&content.bytes));
    out
}

/// One value of a bundle, as its table has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// Of its row.
    pub key: &'a [u8],
    form: u8,
    bytes: &'a [u8],
    value_bytes: usize,
}

/// The values of a bundle.
///
/// # Errors
/// The bytes are none.
pub(crate) fn decode(bundle: &[u8]) -> Result<Vec<Member<'_>>, Malformed> {
    let cut = || "a bundle that is cut off".to_string();
    let (&[version, count], mut rest) = bundle.split_first_chunk().ok_or_else(cut)?;
    if version != VERSION {
        return Err(format!("a bundle of version {version}, this build reads {VERSION}"));
    }
    let count = usize::from(count);
    if !(1..=MOST_MEMBERS).contains(&count) {
        return Err(format!("a bundle of {count} values"));
    }
    let mut lengths = Vec::with_capacity(count);
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        let key_bytes = usize::from(u16::from_le_bytes(take(&mut rest).ok_or_else(cut)?));
        let (key, after) = rest.split_at_checked(key_bytes).ok_or_else(cut)?;
        rest = after;
        let [form] = take(&mut rest).ok_or_else(cut)?;
        lengths.push(u32::from_le_bytes(take(&mut rest).ok_or_else(cut)?) as usize);
        let value_bytes = u32::from_le_bytes(take(&mut rest).ok_or_else(cut)?) as usize;
        members.push(Member { key, form, bytes: &[], value_bytes });
    }
    for (member, length) in members.iter_mut().zip(lengths) {
        (member.bytes, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
    }
    match rest.len() {
        0 => Ok(members),
        more => Err(format!("a bundle with {more} bytes too many")),
    }
}

/// The value with that number, of so many bytes.
///
/// # Errors
/// The bundle is none, or has no such value.
pub(crate) fn value(bundle: &[u8], number: usize, value_bytes: u64) -> Result<Vec<u8>, Malformed> {
    let members = decode(bundle)?;
    let member =
        members.get(number).ok_or_else(|| format!("no value {number} in a bundle of {}", members.len()))?;
    if member.value_bytes as u64 != value_bytes {
        return Err(format!(
            "value {number} of a bundle has {} bytes, not {value_bytes}",
            member.value_bytes
        ));
    }
    member.value()
}

impl Member<'_> {
    /// The value.
    pub(crate) fn value(&self) -> Result<Vec<u8>, Malformed> {
        made(self.form, self.bytes, self.value_bytes)
    }

    /// For another bundle. That the value can be made of it was proved for this one.
    pub(crate) fn content(&self) -> Content {
        Content { bytes: self.bytes.to_vec(), form: self.form, value_bytes: self.value_bytes as u32 }
    }
}

fn made(form: u8, bytes: &[u8], value_bytes: usize) -> Result<Vec<u8>, Malformed> {
    match form {
        AS_IT_IS if bytes.len() == value_bytes => Ok(bytes.to_vec()),
        AS_IT_IS => Err(format!("{} bytes of a value of {value_bytes}", bytes.len())),
        RECREATED => {
            let (recipe, used) = Recipe::decode(bytes)?;
            recipe.recreate(&bytes[used..], value_bytes)
        }
        other => Err(format!("a value of form {other} in a bundle")),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::texts::{deflated, noise, text};

    fn pack(values: &[Vec<u8>]) -> Vec<u8> {
        let content = |value: &Vec<u8>| Content::inflated(value).or_else(|| Content::plain(value)).unwrap();
        let members: Vec<_> =
            values.iter().enumerate().map(|(i, value)| (vec![i as u8; i + 1], content(value))).collect();
        encode(&members)
    }

    #[test]
    fn values_come_back_and_say_whose_they_are() {
        let values = vec![text(1, 9_000), deflated(&text(2, 40_000)), noise(3, 5_000), Vec::new()];
        let packed = pack(&values);
        let members = decode(&packed).unwrap();
        assert_eq!(members.len(), values.len());
        for (i, value) in values.iter().enumerate() {
            assert_eq!(&super::value(&packed, i, value.len() as u64).unwrap(), value);
            assert_eq!(members[i].key, vec![i as u8; i + 1]);
            let content = members[i].content();
            assert_eq!(&content.value().unwrap(), value);
            assert_eq!(content.value_bytes(), value.len() as u64);
            assert!(super::value(&packed, i, value.len() as u64 + 1).is_err());
        }
        assert!(super::value(&packed, values.len(), 0).is_err());
        assert!(members[1].content().len() > 40_000, "it is inflated");
    }

    #[test]
    fn damage_is_an_error_or_another_value_of_the_same_length() {
        let values = vec![text(5, 300), deflated(&text(6, 3_000))];
        let packed = pack(&values);
        for cut in 0..packed.len() {
            assert!(decode(&packed[..cut]).is_err());
            let mut flipped = packed.clone();
            flipped[cut] ^= 0x55;
            for (i, value) in values.iter().enumerate() {
                let found = super::value(&flipped, i, value.len() as u64);
                assert!(found.map_or(true, |found| found.len() == value.len()));
            }
        }
        assert!(decode(&[&packed[..], b"x"].concat()).unwrap_err().contains("too many"));
    }
}
