//! Collations by their numbers, and text in the character sets that need no tables.

use std::borrow::Cow;

/// The character sets of the collations from 1 on; those without a name belong to none.
const FIRST: [&str; 99] = [
    "big5", "latin2", "dec8", "cp850", "latin1", "hp8", "koi8r", "latin1", "latin2", "swe7", "ascii", "ujis",
    "sjis", "cp1251", "latin1", "hebrew", "", "tis620", "euckr", "latin7", "latin2", "koi8u", "cp1251",
    "gb2312", "greek", "cp1250", "latin2", "gbk", "cp1257", "latin5", "latin1", "armscii8", "utf8mb3",
    "cp1250", "ucs2", "cp866", "keybcs2", "macce", "macroman", "cp852", "latin7", "latin7", "macce",
    "cp1250", "utf8mb4", "utf8mb4", "latin1", "latin1", "latin1", "cp1251", "cp1251", "cp1251", "macroman",
    "utf16", "utf16", "utf16le", "cp1256", "cp1257", "cp1257", "utf32", "utf32", "utf16le", "binary",
    "armscii8", "ascii", "cp1250", "cp1256", "cp866", "dec8", "greek", "hebrew", "hp8", "keybcs2", "koi8r",
    "koi8u", "utf8mb3", "latin2", "latin5", "latin7", "cp850", "cp852", "swe7", "utf8mb3", "big5", "euckr",
    "gb2312", "gbk", "sjis", "tis620", "ucs2", "ujis", "geostd8", "geostd8", "latin1", "cp932", "cp932",
    "eucjpms", "eucjpms", "cp1250",
];

/// MariaDB's collations of Unicode 14: so many for each character set.
const UNICODE_14: [&str; 5] = ["utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"];

/// The character set of a collation, by the number that both families have for it.
pub fn character_set(collation: u32) -> Option<&'static str> {
    let name = match collation {
        1..=99 => FIRST[collation as usize - 1],
        101..=124 => "utf16",
        128..=151 | 159 => "ucs2",
        160..=183 => "utf32",
        192..=215 | 223 => "utf8mb3",
        224..=247 | 255..=323 => "utf8mb4",
        248..=250 => "gb18030",
        576..=579 => "utf8mb3",
        608..=611 => "utf8mb4",
        640..=642 => "ucs2",
        672..=674 => "utf16",
        736..=738 => "utf32",
        // MariaDB's collations that do not pad are those that do, moved.
        1025..=1270 => return character_set(collation - 1024),
        2048..=3327 => UNICODE_14[(collation as usize - 2048) / 256],
        _ => "",
    };
    (!name.is_empty()).then_some(name)
}

/// Text in UTF-8. None: the bytes are no text of the character set, or what its bytes mean is not known here (of those
/// that are not `utf8mb4`, `utf8mb3`, `latin1`, `ascii`, `ucs2`, `utf16`, `utf16le` or `utf32`).
pub fn to_utf8<'a>(character_set: &str, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
    match character_set {
        "utf8mb4" | "utf8mb3" => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        "ascii" if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        "latin1" => Some(match bytes.is_ascii() {
            true => std::str::from_utf8(bytes).ok().map(Cow::Borrowed)?,
            false => bytes.iter().map(|&byte| latin1(byte)).collect::<String>().into(),
        }),
        "ucs2" | "utf16" => utf16(bytes, u16::from_be_bytes).map(Cow::Owned),
        "utf16le" => utf16(bytes, u16::from_le_bytes).map(Cow::Owned),
        "utf32" => {
            let characters =
                bytes.chunks(4).map(|unit| char::from_u32(u32::from_be_bytes(unit.try_into().ok()?)));
            characters.collect::<Option<String>>().map(Cow::Owned)
        }
        _ => None,
    }
}

fn utf16(bytes: &[u8], number: impl Fn([u8; 2]) -> u16) -> Option<String> {
    let units: Option<Vec<u16>> = bytes.chunks(2).map(|unit| Some(number(unit.try_into().ok()?))).collect();
    char::decode_utf16(units?).collect::<Result<_, _>>().ok()
}

/// What the servers call latin1 is Microsoft's 1252, whose five gaps are control characters.
fn latin1(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte) - 0x80],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_of_both_families_have_their_character_sets() {
        for (collation, name) in [
            (8, Some("latin1")),
            (33, Some("utf8mb3")),
            (45, Some("utf8mb4")),
            (63, Some("binary")),
            (255, Some("utf8mb4")),
            (250, Some("gb18030")),
            (1032, Some("latin1")),
            (1270, Some("utf8mb4")),
            (2304, Some("utf8mb4")),
            (3271, Some("utf32")),
            (0, None),
            (17, None),
            (1024, None),
            (4000, None),
        ] {
            assert_eq!(character_set(collation), name, "{collation}");
        }
    }

    #[test]
    fn text_is_turned_to_utf8_or_is_none() {
        let text = |set: &str, bytes: &[u8]| to_utf8(set, bytes).map(Cow::into_owned);
        assert_eq!(text("latin1", b"a\x80\xe9\x81").unwrap(), "a€é\u{81}");
        assert_eq!(text("utf16", &[0, b'a', 0xd8, 0x3d, 0xde, 0]).unwrap(), "a😀");
        assert_eq!(text("utf16le", &[b'a', 0]).unwrap(), "a");
        assert_eq!(text("utf32", &[0, 1, 0xf6, 0]).unwrap(), "😀");
        for (set, bytes) in [
            ("utf8mb4", &[0xff][..]),
            ("ascii", &[0x80]),
            ("ucs2", &[0]),
            ("utf16", &[0xd8, 0]),
            ("utf32", &[0, 0x11, 0, 0]),
            ("sjis", b"a"),
            ("binary", b"a"),
        ] {
            assert_eq!(text(set, bytes), None, "{set}");
        }
    }
}
