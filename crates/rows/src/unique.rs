//! Entries of unique indexes. Whoever puts a key into one, or takes it out, holds its exclusive lock to the end of the
//! transaction ([`Transaction::claim`](teak_core::server::Transaction::claim)).

/// The primary key in the value of a unique index's entry: two bytes of length, little-endian, then the key.
pub fn primary_key(value: &[u8]) -> Option<&[u8]> {
    let (length, rest) = value.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::primary_key;

    #[test]
    fn the_primary_key_is_found_in_a_value() {
        assert_eq!(primary_key(b"\x02\x00abrest"), Some(&b"ab"[..]));
        assert_eq!(primary_key(b"\x05\x00ab"), None);
        assert_eq!(primary_key(b"\x05"), None);
    }
}
