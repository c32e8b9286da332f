//! Character sets in which the second byte of a character can look like a backslash or a quote.

/// How the bytes of a string are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charset {
    /// Bytes below 0x80 are always characters of their own: ASCII, Latin, UTF-8, EUC.
    #[default]
    Plain,
    /// Shift-JIS, Microsoft's cp932 with it.
    Sjis,
    /// Chinese, of two bytes.
    Gbk,
    /// Chinese of Taiwan and Hong Kong.
    Big5,
    /// Chinese, of up to four bytes.
    Gb18030,
}

impl Charset {
    /// By MariaDB's or MySQL's name.
    pub fn named(name: &str) -> Charset {
        match name.to_ascii_lowercase().as_str() {
            "sjis" | "cp932" => Charset::Sjis,
            "gbk" => Charset::Gbk,
            "big5" => Charset::Big5,
            "gb18030" => Charset::Gb18030,
            _ => Charset::Plain,
        }
    }

    /// Whether these bytes are one character of two bytes.
    pub fn is_pair(self, first: u8, second: u8) -> bool {
        let trail =
            |ranges: &[std::ops::RangeInclusive<u8>]| ranges.iter().any(|range| range.contains(&second));
        match self {
            Charset::Plain => false,
            Charset::Sjis => matches!(first, 0x81..=0x9f | 0xe0..=0xfc) && trail(&[0x40..=0x7e, 0x80..=0xfc]),
            Charset::Gbk | Charset::Gb18030 => {
                matches!(first, 0x81..=0xfe) && trail(&[0x40..=0x7e, 0x80..=0xfe])
            }
            Charset::Big5 => matches!(first, 0xa1..=0xf9) && trail(&[0x40..=0x7e, 0xa1..=0xfe]),
        }
    }

    /// Whether the byte at `at`, which could be something else, is the second one of a character. What begins at `from`
    /// is whole characters.
    pub fn is_second(self, text: &[u8], from: usize, at: usize) -> bool {
        if self == Charset::Plain {
            return false;
        }
        // Every first byte is one of these, so before them a character has ended.
        let run = text[from..at].iter().rev().take_while(|&&byte| byte >= 0x80).count();
        let mut next = at - run;
        while next + 1 < at {
            next += if self.is_pair(text[next], text[next + 1]) { 2 } else { 1 };
        }
        next + 1 == at && self.is_pair(text[next], text[at])
    }
}

/// How strings are written: what decides where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// A backslash hides the byte after it: not so under `NO_BACKSLASH_ESCAPES`.
    pub backslash: bool,
    /// `"` quotes identifiers, in which a backslash is a byte like any other.
    pub ansi_quotes: bool,
    /// Of the bytes.
    pub charset: Charset,
}

impl Dialect {
    /// Of texts that no session of a dump decides about: names on the command line, what the server answers on
    /// connections whose character set and `sql_mode` this program has set, mydumper's CREATE DATABASE.
    pub const OWN: Dialect = Dialect { backslash: true, ansi_quotes: false, charset: Charset::Plain };

    /// Whether a backslash hides the next byte inside this kind of quote.
    pub fn escapes_in(self, quote: u8) -> bool {
        self.backslash && quote != b'`' && !(quote == b'"' && self.ansi_quotes)
    }

    /// Where a quoted text ends that begins at `at`, which is its opening quote: after the closing one. `None` if it
    /// does not end.
    ///
    /// A doubled quote ends and begins a string; to those who look for ends it makes no difference.
    pub fn end_of_quoted(self, text: &[u8], at: usize) -> Option<usize> {
        let quote = text[at];
        let mut at = at + 1;
        if self.charset != Charset::Plain {
            return self.end_among_pairs(text, at, quote);
        }
        if !self.escapes_in(quote) {
            return memchr::memchr(quote, &text[at..]).map(|found| at + found + 1);
        }
        loop {
            let found = at + memchr::memchr2(quote, b'\\', text.get(at..)?)?;
            if text[found] == quote {
                return Some(found + 1);
            }
            at = found + 2;
        }
    }

    fn end_among_pairs(self, text: &[u8], mut at: usize, quote: u8) -> Option<usize> {
        while at < text.len() {
            let byte = text[at];
            if text.get(at + 1).is_some_and(|&next| self.charset.is_pair(byte, next)) {
                at += 2;
            } else if byte == quote {
                return Some(at + 1);
            } else {
                at += if byte == b'\\' && self.escapes_in(quote) { 2 } else { 1 };
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(dialect: Dialect, text: &[u8]) -> Option<usize> {
        dialect.end_of_quoted(text, 0)
    }

    #[test]
    fn ends_of_strings() {
        let plain = Dialect::OWN;
        assert_eq!(end(plain, b"'ab'c"), Some(4));
        assert_eq!(end(plain, br"'a\'b'"), Some(6));
        assert_eq!(end(plain, br"'a\\'b'"), Some(5));
        assert_eq!(end(plain, br"'a\"), None);
        assert_eq!(end(plain, br"`a\`"), Some(4));
        assert_eq!(end(Dialect { backslash: false, ..plain }, br"'a\'b'"), Some(4));
        assert_eq!(end(Dialect { ansi_quotes: true, ..plain }, br#""a\"b"#), Some(4));
    }

    #[test]
    fn a_trail_byte_is_no_backslash() {
        // U+8868 in Shift-JIS is 0x95 0x5c, in GBK 0xb1 0xed; 0xa5 0x5c is one character of Big5.
        let sjis = Dialect { charset: Charset::named("SJIS"), ..Dialect::OWN };
        assert_eq!(end(sjis, b"'\x95\x5c'x'"), Some(4));
        assert_eq!(end(Dialect::OWN, b"'\x95\x5c'x'"), Some(6));
        let big5 = Dialect { charset: Charset::Big5, ..Dialect::OWN };
        assert_eq!(end(big5, b"'\xa5\x5c'"), Some(4));
        let gbk = Charset::named("gbk");
        for (text, expected) in [
            (&b"\x83\x60"[..], true),
            (b"a\x83\x60", true),
            (b"\x83\x83\x60", false),
            (b"\x83\x83\x83\x60", true),
            (b"\x83\x60\x60", false),
            (b"\xff\x83\x60", true),
            (b"\x83a\x60", false),
            (b"\x83'", false),
            (b"\x60", false),
        ] {
            assert_eq!(gbk.is_second(text, 0, text.len() - 1), expected, "{text:x?}");
            assert!(!Charset::Plain.is_second(text, 0, text.len() - 1));
        }
        // A half character before the quote does not hide it.
        assert_eq!(end(sjis, b"'\x95'"), Some(3));
    }
}
