//! Names and strings as statements have them.

use std::fmt::Write;

/// A name in backticks.
pub fn quoted_name(name: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'`'];
    for &byte in name {
        quoted.extend_from_slice(if byte == b'`' { b"``" } else { std::slice::from_ref(&byte) });
    }
    quoted.push(b'`');
    quoted
}

/// A string that means the same under every `sql_mode`.
pub fn literal(text: &[u8]) -> String {
    format!("_utf8mb4 x'{}'", hex(text))
}

/// Hexadecimal digits, two for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
