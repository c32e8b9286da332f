//! Large values that are deflate streams, stored as what is in them, compressed anew; see [`crate::values::deflated`].
//!
//! ```text
//! 0   form  u32     bytes of the recipe and of what is in the stream
//! 4   ...           recipe and content: one zstd frame, encoded by the dictionary before if the address names one
//! ```

use super::compression;
use super::dictionary::Dictionary;
use crate::slabs::Buffer;
use crate::values::deflated::{self, Recipe};
use crate::{Compression, Packing, Result};

/// Of Zstandard, if the table says none: deflating the value anew, which proves that it comes back, takes longer.
const DEFAULT_LEVEL: u8 = 9;
const LENGTH_BYTES: usize = 4;

/// What may come out of a stream of so many bytes, with its recipe: texts are three to ten times as long as their
/// streams, and what is far longer is small enough already.
fn most_inflated(stream_bytes: usize) -> usize {
    stream_bytes.saturating_mul(32).saturating_add(64 << 10).min(u32::MAX as usize)
}

/// What to store of `value`; `None` if it is no stream that can be made again, or that would take more than `limit`
/// bytes.
pub(super) fn pack(
    value: &[u8],
    level: u8,
    dictionary: Option<&Dictionary>,
    limit: usize,
) -> Result<Option<Vec<u8>>> {
    let Some(limit) = limit.checked_sub(LENGTH_BYTES) else { return Ok(None) };
    let Some(inflated) = deflated::inflate(value, most_inflated(value.len()) / 2) else { return Ok(None) };
    let mut form = Vec::new();
    inflated.recipe.encode(&mut form);
    form.extend_from_slice(&inflated.bytes);
    let Ok(form_bytes) = u32::try_from(form.len()) else { return Ok(None) };
    let level = if level == 0 { DEFAULT_LEVEL } else { level };
    let packing = Packing { compression: Compression::Zstd, level, similarity: false };
    let packed = compression::compress(&form, packing, dictionary, limit)?;
    Ok(packed.map(|packed| [&form_bytes.to_le_bytes()[..], &packed].concat()))
}

/// The value of `value_bytes` whose stored form `read` fills a buffer of `stored_bytes` with.
///
/// `Ok(Err(text))` says what is wrong with the stored bytes. No more than about 34 times `value_bytes` is allocated.
pub(super) fn unpack(
    stored_bytes: usize,
    value_bytes: usize,
    dictionary: Option<&Dictionary>,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<std::result::Result<Buffer, String>> {
    let stored = match compression::decompress(stored_bytes, stored_bytes, Compression::None, None, read)? {
        Ok(stored) => stored,
        Err(detail) => return Ok(Err(detail)),
    };
    let Some((length, packed)) = stored.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(Err(format!("a recompressed value in {stored_bytes} bytes")));
    };
    let form_bytes = u32::from_le_bytes(*length) as usize;
    if form_bytes > most_inflated(value_bytes) {
        return Ok(Err(format!("{form_bytes} bytes inflated of a value of {value_bytes}")));
    }
    let copy = |into: &mut [u8]| {
        into.copy_from_slice(packed);
        Ok(())
    };
    let form = compression::decompress(packed.len(), form_bytes, Compression::Zstd, dictionary, copy)?;
    Ok(form.and_then(|form| {
        let (recipe, used) = Recipe::decode(&form)?;
        recipe.recreate(&form[used..], value_bytes).map(Buffer::from)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packer::{Doubts, Packer};
    use crate::values::texts::{deflated, text};

    /// A text that says everything twice, further apart than deflate looks back.
    fn content() -> Vec<u8> {
        text(5, 40_000).repeat(2)
    }

    fn unpacked(stored: &[u8], value_bytes: usize) -> std::result::Result<Vec<u8>, String> {
        let read = |into: &mut [u8]| {
            into.copy_from_slice(stored);
            Ok(())
        };
        unpack(stored.len(), value_bytes, None, read).unwrap().map(|value| value.to_vec())
    }

    #[test]
    fn a_stream_comes_back_to_the_bit_and_takes_less_while_others_are_as_they_were() {
        let content = &content()[..];
        let value = deflated(content);
        let (packer, doubts) = (Packer::from(Compression::Recompress), Doubts::default());
        let packed = packer.pack_value(&value, &doubts).unwrap();
        assert_eq!(packed.compression, Compression::Recompress);
        assert!(packed.stored.len() < value.len() * 6 / 10, "{} of {}", packed.stored.len(), value.len());
        assert_eq!(unpacked(&packed.stored, value.len()).unwrap(), value);
        // A block is never inflated, a text is compressed as ever, and so is a stream where that is not wanted.
        assert_eq!(packer.pack(content, &[]).unwrap().compression, Compression::Zstd);
        assert_eq!(packer.pack_value(content, &doubts).unwrap().compression, Compression::Zstd);
        let other = Packer::from(Compression::Zstd).pack_value(&value, &doubts).unwrap();
        assert_eq!((other.compression, &other.stored[..]), (Compression::None, &value[..]));
        // A byte that no zlib would have made so.
        let mut odd = value.clone();
        odd[value.len() / 2] ^= 1;
        for _ in 0..20 {
            let packed = packer.pack_value(&odd, &doubts).unwrap();
            assert_eq!((packed.compression, &packed.stored[..]), (Compression::None, &odd[..]));
        }
        // Now most are passed over, until one is a stream again.
        let mut tries = 0..;
        let mut is_recompressed = || {
            tries.next();
            packer.pack_value(&value, &doubts).unwrap().compression == Compression::Recompress
        };
        assert!(!is_recompressed());
        while !is_recompressed() {}
        assert!(is_recompressed() && (2..40).contains(&tries.start), "{}", tries.start);
    }

    #[test]
    fn damage_is_an_error() {
        let value = deflated(&text(6, 12_000));
        let stored = pack(&value, 0, None, value.len()).unwrap().unwrap();
        assert_eq!(unpacked(&stored, value.len()).unwrap(), value);
        assert!(unpacked(&stored, value.len() + 1).is_err() && unpacked(&stored, 1).is_err());
        for cut in 0..stored.len() {
            assert!(unpacked(&stored[..cut], value.len()).is_err());
            // The checksum in its address would have told: whatever comes of it here has the length of the value.
            let mut flipped = stored.clone();
            flipped[cut] ^= 0x55;
            assert!(unpacked(&flipped, value.len()).map_or(true, |other| other.len() == value.len()));
        }
        let huge = [&u32::MAX.to_le_bytes()[..], &stored[4..]].concat();
        assert!(unpacked(&huge, value.len()).unwrap_err().contains("inflated"));
    }
}
