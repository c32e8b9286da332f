//! The splitter against a reference that looks at one byte after the other and has the whole input.

use super::*;

/// Gives a few bytes at a time, of lengths that a seed decides.
struct Dripping<'a>(&'a [u8], u64);

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = (random(&mut self.1) % 7 + 1) as usize;
        let length = length.min(self.0.len()).min(buffer.len());
        buffer[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

type Found = Vec<(Vec<u8>, u64, u64)>;

fn split_with(input: impl Read, dialect: Dialect, limit: usize) -> Result<Found, SplitError> {
    let mut splitter = Splitter::new(input, limit, b";", dialect);
    let mut found = Vec::new();
    while let Some(statement) = splitter.next_statement()? {
        found.push((statement.text.to_vec(), statement.line, statement.offset));
    }
    Ok(found)
}

fn split(text: &[u8]) -> Vec<String> {
    let found = split_with(text, Dialect::OWN, 1 << 20).unwrap();
    found.into_iter().map(|(text, ..)| String::from_utf8(text).unwrap()).collect()
}

/// The reference: `None` if the input ends within something.
fn naive(text: &[u8], dialect: Dialect) -> Option<Found> {
    let (mut found, mut delimiter, mut at) = (Vec::new(), b";".to_vec(), 0);
    let line = |at: usize| 1 + text[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
    let line_end =
        |at: usize| text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |n| at + n);
    let comment_end = |at: usize| Some(at + 2 + text[at + 2..].windows(2).position(|two| two == b"*/")? + 2);
    let comment = |at: usize| text[at..].starts_with(b"/*") && !is_versioned(&text[at..]);
    loop {
        let Some(&byte) = text.get(at) else { return Some(found) };
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if starts_with_word(&text[at..], b"delimiter") {
            let end = line_end(at);
            delimiter = text[at + 9..end].trim_ascii().split(u8::is_ascii_whitespace).next()?.to_vec();
            if delimiter.is_empty() {
                return None;
            }
            at = end;
        } else if text[at..].starts_with(&delimiter) {
            at += delimiter.len();
        } else if byte == b'#' || is_dashes(&text[at..]) {
            at = line_end(at);
        } else if comment(at) {
            at = comment_end(at)?;
        } else {
            let start = at;
            let pair =
                |at: usize| text.get(at + 1).is_some_and(|&next| dialect.charset.is_pair(text[at], next));
            while at < text.len() && !text[at..].starts_with(&delimiter) {
                if pair(at) {
                    at += 2;
                } else if matches!(text[at], b'\'' | b'"' | b'`') {
                    let quote = text[at];
                    at += 1;
                    while *text.get(at)? != quote {
                        at +=
                            if pair(at) || (text[at] == b'\\' && dialect.escapes_in(quote)) { 2 } else { 1 };
                    }
                    at += 1;
                } else if text[at] == b'#' || is_dashes(&text[at..]) {
                    at = (line_end(at) + 1).min(text.len());
                } else if comment(at) {
                    at = comment_end(at)?;
                } else {
                    at += 1;
                }
            }
            found.push((text[start..at].trim_ascii_end().to_vec(), line(start), start as u64));
            at = (at + delimiter.len()).min(text.len());
        }
    }
}

/// Pieces that meet each other in unlucky ways.
const PIECES: &[&[u8]] = &[
    b"'",
    b"\"",
    b"`",
    b"\\",
    b"''",
    b"\\'",
    b";",
    b";;",
    b"\n",
    b" ",
    b"-- ",
    b"--",
    b"-",
    b"#",
    b"/*",
    b"*/",
    b"/*!",
    b"/*M!",
    b"/*!40101 ",
    b"/*M!999999\\- x */",
    b"delimiter ;;\n",
    b"\nDELIMITER ;\n",
    b"delimiter $$\n",
    b"$$",
    b"a",
    b"INSERT INTO t VALUES (",
    b"),(",
    b"x'00'",
    b"\x95\x5c",
    b"\x83\x60",
    b"\x83",
    b"\xe8\xa1\xa8",
    b"\0",
    b"0123456789012345678901234567890123456789012345678901234567890123456789",
];

#[test]
fn any_soup_of_pieces_is_cut_as_the_reference_cuts_it() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..10_000 {
        let began = seed;
        let text: Vec<u8> = (0..random(&mut seed) % 40)
            .flat_map(|_| PIECES[random(&mut seed) as usize % PIECES.len()].iter().copied())
            .collect();
        let charset =
            [Charset::Plain, Charset::Plain, Charset::Sjis, Charset::Big5][random(&mut seed) as usize % 4];
        let dialect = Dialect { backslash: round % 3 != 0, ansi_quotes: round % 5 == 0, charset };
        let expected = naive(&text, dialect);
        let at_once = split_with(&text[..], dialect, 1 << 20).ok();
        assert_eq!(at_once, expected, "seed {began}: {}", String::from_utf8_lossy(&text));
        let in_drops = split_with(Dripping(&text, seed | 1), dialect, 1 << 20).ok();
        assert_eq!(in_drops, expected, "seed {began}, in drops: {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_byte_order_mark_begins_no_statement_and_delimiters_may_have_quotes() {
    assert_eq!(split(b"\xef\xbb\xbfa;b"), ["a", "b"]);
    assert_eq!(split(b"\xef\xbb\xbf-- x\na"), ["a"]);
    assert_eq!(split(b"\xef\xbb\xbf"), [""; 0]);
    assert_eq!(split(b"delimiter \"$\"\na; b$ c\n$DELIMITER '; ;'\nd;e; ;f\n; ;"), ["a; b", "c", "d;e", "f"]);
    assert_eq!(split(b"delimiter `//`\na//b"), ["a", "b"]);
    for text in [&b"delimiter ''\na"[..], b"delimiter \"\na"] {
        assert!(matches!(split_with(text, Dialect::OWN, 1 << 20), Err(SplitError::NoDelimiter { .. })));
    }
}

#[test]
fn quotes_comments_and_delimiters() {
    assert_eq!(split(b"a 'x;y' ; b \"q;\\\"\" ;; c `n;` ;"), ["a 'x;y'", "b \"q;\\\"\"", "c `n;`"]);
    assert_eq!(split(b"a -- ;\n;b # ;\n;c /* ; */;d--1;e"), ["a -- ;", "b # ;", "c /* ; */", "d--1", "e"]);
    let routine = b"/*M!999999\\- enable the sandbox mode */ \n-- x\nDELIMITER ;;\ncreate begin; end ;;\nDELIMITER ;\nb;";
    assert_eq!(split(routine), ["create begin; end", "b"]);
    assert_eq!(
        split(b"/*!40101 SET NAMES utf8 */;\n/*M!100101 x */;"),
        ["/*!40101 SET NAMES utf8 */", "/*M!100101 x */"]
    );
    assert_eq!(
        split(b"INSERT INTO `delimiter` VALUES (_binary '\\0;\\'');delimiters;"),
        ["INSERT INTO `delimiter` VALUES (_binary '\\0;\\'')", "delimiters"]
    );
}

#[test]
fn lines_and_offsets_point_to_the_beginning() {
    let found = split_with(&b"-- c\n\na\nb;\n  c;"[..], Dialect::OWN, 100).unwrap();
    assert_eq!(found, [(b"a\nb".to_vec(), 3, 6), (b"c".to_vec(), 5, 13)]);
}

#[test]
fn a_statement_beyond_the_limit_is_named_and_not_kept() {
    let mut text = b"ok;\nINSERT '".to_vec();
    text.resize(20 << 20, b'x');
    let mut splitter = Splitter::new(&text[..], 2 << 20, b";", Dialect::OWN);
    assert_eq!(splitter.next_statement().unwrap().unwrap().text, b"ok");
    let error = splitter.next_statement().unwrap_err();
    assert!(
        matches!(&error, SplitError::TooLong { line: 2, begin, .. } if begin.starts_with("INSERT 'xxx")),
        "{error}"
    );
    assert!(splitter.buffer.len() <= 8 << 20, "{}", splitter.buffer.len());
}

#[test]
fn memory_stays_small_while_much_passes() {
    let line = b"INSERT INTO t VALUES (1,'abc;def');\n";
    let mut splitter = Splitter::new(
        std::io::Read::take(std::io::repeat(b' '), 1 << 20).chain(Repeated(line, 0, 64 << 20)),
        1 << 20,
        b";",
        Dialect::OWN,
    );
    let mut count = 0;
    while let Some(statement) = splitter.next_statement().unwrap() {
        assert_eq!(statement.text, &line[..line.len() - 2]);
        count += 1;
    }
    assert_eq!(count, (64 << 20) / line.len());
    assert!(splitter.buffer.len() <= 4 << 20);
}

/// The same line until at most this many bytes were given.
struct Repeated(&'static [u8], usize, usize);

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.2 - self.1 < self.0.len() || buffer.len() < self.0.len() {
            return Ok(0);
        }
        buffer[..self.0.len()].copy_from_slice(self.0);
        self.1 += self.0.len();
        Ok(self.0.len())
    }
}

#[test]
fn an_incomplete_input_is_an_error() {
    for text in [&b"a 'x"[..], b"a `x", b"/* x", b"a /* x", b"a 'x\\", b"a \"x'"] {
        let result = split_with(text, Dialect::OWN, 100);
        assert!(
            matches!(result, Err(SplitError::Unfinished { line: 1, .. })),
            "{:?}",
            String::from_utf8_lossy(text)
        );
    }
    assert!(matches!(
        split_with(&b"-- MariaDB dump 10.19\na;\n"[..], Dialect::OWN, 100),
        Err(SplitError::Truncated)
    ));
    assert_eq!(split(b"-- MariaDB dump 10.19\na;\n-- Dump completed on 2026\n"), ["a"]);
    assert!(matches!(
        split_with(&b"delimiter \n"[..], Dialect::OWN, 100),
        Err(SplitError::NoDelimiter { line: 1 })
    ));
}
