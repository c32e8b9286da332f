//! Names in paths: what of a value is escaped, and what becomes of names that are too long or given twice.
//!
//! One rule: `/`, `%` and control characters, and whatever else would make a name mean something else, are `%` and two
//! hexadecimal digits for each byte; an empty value is `%none`, which has nothing that can separate two fields.

use crate::{Digest, Oid};

/// What stands for a value without characters.
const EMPTY: &str = "%none";
/// Of a name, in bytes: that of file systems.
pub(super) const MOST_BYTES: usize = 255;
/// Digits of an OID, and of the hash of a directory's name.
const OID_DIGITS: usize = 8;
const HASH_DIGITS: usize = 16;
/// What is behind the last dot counts as an extension up to so many bytes.
const MOST_EXTENSION: usize = 32;

/// A value as a part of a name; the characters of `also` are escaped, too.
pub(super) fn escape(text: &str, also: &str) -> String {
    if text.is_empty() {
        return EMPTY.to_string();
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '/' | '%') || character.is_control() || also.contains(character) {
            let mut bytes = [0; 4];
            character
                .encode_utf8(&mut bytes)
                .bytes()
                .for_each(|byte| escaped.push_str(&format!("%{byte:02X}")));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// The value that a part of a name means; `None`: it means none.
pub(super) fn unescape(name: &str) -> Option<String> {
    if name == EMPTY {
        return Some(String::new());
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>()?;
        let text =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(text, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// A name before its extension, and that with its dot.
fn split_extension(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= MOST_EXTENSION => name.split_at(at),
        _ => (name, ""),
    }
}

/// Whether a name looks like one that [`of_file`] or [`of_directory`] have given a suffix.
pub(super) fn has_suffix(name: &str) -> bool {
    without_suffix(name).is_some() || digits_behind(name, HASH_DIGITS).is_some()
}

/// A name without its digits of an OID.
pub(crate) fn without_suffix(name: &str) -> Option<String> {
    let (stem, extension) = split_extension(name);
    digits_behind(stem, OID_DIGITS).map(|stem| format!("{stem}{extension}"))
}

fn digits_behind(name: &str, count: usize) -> Option<&str> {
    let (stem, digits) = name.rsplit_once('~')?;
    let are_digits = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits.len() == count && are_digits).then_some(stem)
}

/// The name of a file: its plain one, if it fits and no older record has it.
pub(crate) fn of_file(plain: &str, oid: Oid, is_oldest: bool) -> String {
    if is_oldest && plain.len() <= MOST_BYTES {
        return plain.to_string();
    }
    let (stem, extension) = split_extension(plain);
    let digits: String = oid.0[12..].iter().map(|byte| format!("{byte:02x}")).collect();
    let room = MOST_BYTES - 1 - OID_DIGITS - extension.len();
    format!("{}~{digits}{extension}", cut(stem, room))
}

/// The name of a directory.
pub(super) fn of_directory(plain: String) -> String {
    if plain.len() <= MOST_BYTES {
        return plain;
    }
    let hash = Digest::of(plain.as_bytes()).hex();
    format!("{}~{}", cut(&plain, MOST_BYTES - 1 - HASH_DIGITS), &hash[..HASH_DIGITS])
}

/// At most so many bytes, no part of a character or of what is escaped.
fn cut(name: &str, most: usize) -> &str {
    if name.len() <= most {
        return name;
    }
    let mut end = (0..=most).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    if let Some(at) = name[..end].rfind('%').filter(|at| end - at < 3) {
        end = at;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_names_are_names() {
        for text in ["", "a", "a/b", "%", "%none", "%41", "\0\n\u{7f}\u{85}", "é/ü", "..", " ", "a~0123abcd"]
        {
            for also in ["", "-.~", "é"] {
                let name = escape(text, also);
                assert!(!name.contains(['/', '\0', '\n']) && !name.is_empty());
                assert_eq!(unescape(&name).as_deref(), Some(text));
            }
        }
        for name in ["%", "%4", "%zz", "%+1", "%FF", ""] {
            assert_eq!(unescape(name), None, "{name}");
        }
        let oid = Oid([0xab; 16]);
        assert_eq!(of_file("a.b.c", oid, false), "a.b~abababab.c");
        assert_eq!(of_file(".a", oid, false), ".a~abababab");
        assert_eq!(without_suffix("a.b~abababab.c").as_deref(), Some("a.b.c"));
        for long in ["é".repeat(200), "%2F".repeat(100), format!("{}.{}", "x".repeat(300), "y".repeat(40))] {
            for name in [of_file(&long, oid, true), of_directory(long.clone())] {
                assert!(
                    name.len() <= MOST_BYTES && name.len() > MOST_BYTES - 5 && has_suffix(&name),
                    "{name}"
                );
            }
        }
    }
}
