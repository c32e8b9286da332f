//! Comments that servers carry out: `/*!80016 ... */`.
//!
//! MySQL's log has such comments only if MySQL has carried them out: in others it replaces the exclamation mark.
//! MariaDB skips those from 5.7 on.

use super::Refusal;
use crate::charset::Dialect;
use crate::tokens::Tokens;
use std::ops::Range;

/// From this version on MariaDB skips them.
const SKIPPED_FROM: u32 = 50_700;

/// Where a statement has comments that are carried out.
#[derive(Debug, Default)]
pub(super) struct Comments {
    /// Their beginnings and ends.
    pub marks: Vec<Range<usize>>,
    /// Some of them MariaDB skips.
    pub has_of_mysql: bool,
}

/// What is open.
struct Scan<'a> {
    text: &'a [u8],
    found: Comments,
    is_open: bool,
}

/// Finds them, between tokens.
pub(super) fn read(text: &[u8], dialect: Dialect) -> Result<Comments, Refusal> {
    let mut tokens = Tokens::new(text, dialect);
    let mut scan = Scan { text, found: Comments::default(), is_open: false };
    loop {
        let from = tokens.at;
        let to = tokens.begin_of_next();
        scan.gap(from, to)?;
        if tokens.next().is_none() {
            break;
        }
    }
    match scan.is_open {
        true => Err(scan.refusal("a comment without an end", text.len())),
        false => Ok(scan.found),
    }
}

impl Scan<'_> {
    fn refusal(&self, why: &str, at: usize) -> Refusal {
        let rest = &self.text[at..];
        let near = String::from_utf8_lossy(&rest[..rest.len().min(20)]).into_owned();
        Refusal { why: why.into(), near }
    }

    /// Blanks and comments.
    fn gap(&mut self, from: usize, to: usize) -> Result<(), Refusal> {
        let mut at = from;
        while at < to {
            let rest = &self.text[at..to];
            at += match rest {
                [b'*', b'/', ..] => {
                    if !std::mem::take(&mut self.is_open) {
                        return Err(self.refusal("the end of a comment that has not begun", at));
                    }
                    self.found.marks.push(at..at + 2);
                    2
                }
                [b'/', b'*', b'!', rest @ ..] => self.begin(at, rest)?,
                [b'/', b'*', b'M', b'!', ..] => {
                    return Err(self.refusal("a comment that only MariaDB carries out", at))
                }
                // To MySQL it is at the end of the first comment in it that the outer one ends as well.
                [b'/', b'*', ..] if self.is_open => {
                    return Err(self.refusal("a comment in one that is carried out", at))
                }
                [b'/', b'*', ..] => match memchr::memmem::find(&rest[2..], b"*/") {
                    Some(end) => end + 4,
                    None => return Err(self.refusal("a comment without an end", at)),
                },
                [b'#', ..] | [b'-', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                _ => 1,
            };
        }
        Ok(())
    }

    /// One begins; how long its mark is.
    fn begin(&mut self, at: usize, rest: &[u8]) -> Result<usize, Refusal> {
        if std::mem::replace(&mut self.is_open, true) {
            return Err(self.refusal("a comment in one that is carried out", at));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let version = match digits {
            0 => 0,
            5 | 6 => rest[..digits].iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')),
            _ => return Err(self.refusal("a comment for a version that is none", at)),
        };
        self.found.has_of_mysql |= version >= SKIPPED_FROM;
        self.found.marks.push(at..at + 3 + digits);
        Ok(3 + digits)
    }
}
