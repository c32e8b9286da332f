//! Base64, in which documents of MySQL and BINLOG statements have bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The digits of bytes, four for each three of them; what fills up the last four are `=`.
pub fn base64(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> + '_ {
    bytes.chunks(3).map(|group| {
        let number =
            group.iter().fold(0u32, |number, &byte| number << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        std::array::from_fn(|place| match place > group.len() {
            true => b'=',
            false => DIGITS[(number >> (18 - 6 * place) & 63) as usize],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_fills_up_its_last_digits() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xff\xfe\xfd", "//79")]
        {
            assert_eq!(base64(bytes).collect::<Vec<_>>().concat(), text.as_bytes());
        }
    }
}
