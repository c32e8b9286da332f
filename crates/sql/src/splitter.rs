//! Cuts a stream of SQL into statements, as the `mariadb` client does, in memory bounded by the longest statement.
//!
//! Knows strings, quoted names, comments and `DELIMITER`; knows nothing of what a statement means. Versioned comments
//! (`/*!50003 ... */`, `/*M!100301 ... */`) are text of statements, since the server decides about them.
//!
//! ```text
//! buffer:  | statement | statement | begun .... | free |
//!                                  ^start  ^at  ^end
//! ```
//!
//! Between `start` and `at` everything was looked at, and `within` tells what `at` is inside of; so more input can be
//! appended at any place, and no byte is looked at twice.

use super::charset::{Charset, Dialect};
use super::scan::Finder;
use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
use std::io::Read;

/// What is read at once.
const CHUNK: usize = 1 << 20;
/// The longest statement that is read; no server takes a longer one.
pub const LONGEST: usize = 1 << 30;
/// A buffer that a long statement has made larger than this is made small again.
const KEPT: usize = 32 << 20;
/// Windows' editors begin a file in UTF-8 with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Of a statement that is too long this much is told.
const SHOWN: usize = 120;

/// Why no statement could be cut.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// The input could not be read.
    #[error("cannot read: {0}")]
    Read(#[from] std::io::Error),
    /// A statement is longer than the splitter takes.
    #[error(
        "line {line}: a statement of more than {limit} bytes, which is more than the max_allowed_packet of any server: {begin}"
    )]
    TooLong {
        /// Where it begins, from 1.
        line: u64,
        /// What is taken, in bytes.
        limit: usize,
        /// How it begins.
        begin: String,
    },
    /// A string or a comment has no end.
    #[error("line {line}: the input ends within {what}; it is not complete: {begin}")]
    Unfinished {
        /// Where its statement begins, from 1.
        line: u64,
        /// What has no end.
        what: &'static str,
        /// How its statement begins.
        begin: String,
    },
    /// The last line is missing that a dump of mariadb-dump announces.
    #[error("the dump ends without the line '-- Dump completed', with which its head says it must end: it is not complete")]
    Truncated,
    /// The client's command has no argument.
    #[error("line {line}: DELIMITER without a delimiter")]
    NoDelimiter {
        /// Where it stands, from 1.
        line: u64,
    },
}

impl SplitError {
    /// Whether the file could not be read, as opposed to what is in it.
    pub fn is_of_reading(&self) -> bool {
        let is_damage = |kind| matches!(kind, InvalidData | InvalidInput | UnexpectedEof);
        matches!(self, SplitError::Read(error) if !is_damage(error.kind()))
    }
}

/// A statement, without its delimiter.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Statement<'a> {
    /// As it stands in the input.
    pub text: &'a [u8],
    /// The line in which it begins, from 1.
    pub line: u64,
    /// The byte of the input at which it begins.
    pub offset: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Within {
    /// Before a statement: only white space and comments so far.
    Nothing,
    Statement,
    /// A string or name in these quotes.
    Quotes(u8),
    /// To the end of the line.
    LineComment,
    BlockComment,
}

/// Cuts what it reads into statements.
pub struct Splitter<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    at: usize,
    end: usize,
    at_end_of_input: bool,
    within: Within,
    /// What a comment interrupted.
    around: Within,
    delimiter: Vec<u8>,
    finder: Finder,
    dialect: Dialect,
    limit: usize,
    /// Of `start`.
    line: u64,
    offset: u64,
    /// The head of the dump promises a last line that has not come yet.
    incomplete: bool,
}

impl<R: Read> Splitter<R> {
    /// Statements of more than `limit` bytes are an error. `delimiter` holds until the input sets another.
    pub fn new(input: R, limit: usize, delimiter: &[u8], dialect: Dialect) -> Splitter<R> {
        Splitter {
            input,
            buffer: vec![0; 2 * CHUNK],
            start: 0,
            at: 0,
            end: 0,
            at_end_of_input: false,
            within: Within::Nothing,
            around: Within::Nothing,
            delimiter: delimiter.to_vec(),
            finder: Finder::new(delimiter.first().copied().unwrap_or(b';')),
            dialect,
            limit,
            line: 1,
            offset: 0,
            incomplete: false,
        }
    }

    /// How strings are written from here on.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    /// Bytes taken from the input so far, as statements and what is between them.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next statement, or `None` at the end of the input.
    pub fn next_statement(&mut self) -> Result<Option<Statement<'_>>, SplitError> {
        loop {
            if self.within == Within::Nothing && !self.skip_to_statement()? {
                return Ok(None);
            }
            match self.find_end() {
                Some(end) => return Ok(Some(self.cut(end, end + self.delimiter.len()))),
                None if self.at_end_of_input => return self.last(),
                None => self.read_more()?,
            }
        }
    }

    /// The statement from `start` to `end`; the next begins at `next`.
    fn cut(&mut self, end: usize, next: usize) -> Statement<'_> {
        let (start, line, offset) = (self.start, self.line, self.offset);
        self.at = next;
        self.take_to(next);
        self.within = Within::Nothing;
        Statement { text: self.buffer[start..end].trim_ascii_end(), line, offset }
    }

    /// Moves `start` on, over what is done with.
    fn take_to(&mut self, next: usize) {
        self.line += memchr::memchr_iter(b'\n', &self.buffer[self.start..next]).count() as u64;
        self.offset += (next - self.start) as u64;
        self.start = next;
        self.at = self.at.max(next);
    }

    /// What is left when the input ends.
    fn last(&mut self) -> Result<Option<Statement<'_>>, SplitError> {
        let what = match self.within {
            Within::Quotes(b'`') => Some("a quoted name"),
            Within::Quotes(_) => Some("a string"),
            Within::BlockComment => Some("a comment"),
            _ => None,
        };
        match what {
            Some(what) => Err(SplitError::Unfinished { line: self.line, what, begin: self.beginning() }),
            None if self.incomplete => Err(SplitError::Truncated),
            None => Ok(Some(self.cut(self.end, self.end))),
        }
    }

    fn beginning(&self) -> String {
        let text = &self.buffer[self.start..self.end];
        String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned()
    }

    /// Appends input to the buffer, which grows only for a long statement.
    fn read_more(&mut self) -> Result<(), SplitError> {
        if self.end - self.start > self.limit {
            return Err(SplitError::TooLong { line: self.line, limit: self.limit, begin: self.beginning() });
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.at, self.end, self.start) = (self.at - self.start, self.end - self.start, 0);
            if self.buffer.len() > KEPT && self.end < CHUNK {
                self.buffer.truncate(2 * CHUNK);
                self.buffer.shrink_to_fit();
            }
            if self.buffer.len() - self.end < CHUNK {
                let longest = self.limit.saturating_add(2 * CHUNK);
                self.buffer.resize((self.buffer.len() * 2).min(longest).max(self.end + CHUNK), 0);
            }
        }
        self.finder.forget();
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end_of_input = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
    }

    /// Makes `wanted` bytes available from `at` on, if the input has as many.
    fn ensure(&mut self, wanted: usize) -> Result<(), SplitError> {
        while self.end - self.at < wanted && !self.at_end_of_input {
            self.read_more()?;
        }
        Ok(())
    }

    /// Passes white space, comments and DELIMITER lines before a statement. False at the end of the input.
    fn skip_to_statement(&mut self) -> Result<bool, SplitError> {
        loop {
            let text = &self.buffer[self.at..self.end];
            self.at = text
                .iter()
                .position(|byte| !byte.is_ascii_whitespace())
                .map_or(self.end, |found| self.at + found);
            self.take_to(self.at);
            // Enough for every beginning that matters here.
            self.ensure(16)?;
            let text = &self.buffer[self.at..self.end];
            if self.offset == 0 && text.starts_with(BYTE_ORDER_MARK) {
                self.at += BYTE_ORDER_MARK.len();
                self.take_to(self.at);
                continue;
            }
            if text.is_empty() {
                return if self.incomplete { Err(SplitError::Truncated) } else { Ok(false) };
            }
            if text[0].is_ascii_whitespace() {
                continue;
            }
            if starts_with_word(text, b"delimiter") {
                self.read_delimiter()?;
            } else if text.starts_with(&self.delimiter) {
                self.at += self.delimiter.len();
                self.take_to(self.at);
            } else if text[0] == b'#' || is_dashes(text) {
                let end = self.end_of_line()?;
                self.note_comment(end);
                self.at = end;
                self.take_to(end);
            } else if text.starts_with(b"/*") && !is_versioned(text) {
                self.skip_block_comment()?;
            } else {
                self.within = Within::Statement;
                return Ok(true);
            }
        }
    }

    /// A dump that names its maker says at its end that it is complete.
    fn note_comment(&mut self, end: usize) {
        let comment = &self.buffer[self.start..end];
        if comment.starts_with(b"-- MariaDB dump ") || comment.starts_with(b"-- MySQL dump ") {
            self.incomplete = true;
        } else if comment.starts_with(b"-- Dump completed") {
            self.incomplete = false;
        }
    }

    /// The end of the line at `at`: its newline, or the end of the input.
    fn end_of_line(&mut self) -> Result<usize, SplitError> {
        let mut looked = 0;
        loop {
            let from = self.at + looked;
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[from..self.end]) {
                return Ok(from + found);
            }
            if self.at_end_of_input {
                return Ok(self.end);
            }
            looked = self.end - self.at;
            self.read_more()?;
        }
    }

    fn skip_block_comment(&mut self) -> Result<(), SplitError> {
        let mut looked = 2;
        loop {
            let from = self.at + looked;
            if let Some(found) = memchr::memmem::find(&self.buffer[from..self.end], b"*/") {
                self.at = from + found + 2;
                self.take_to(self.at);
                return Ok(());
            }
            if self.at_end_of_input {
                self.within = Within::BlockComment;
                return self.last().map(|_| ());
            }
            // The star may be the last byte.
            looked = (self.end - self.at - 1).max(2);
            self.read_more()?;
        }
    }

    fn read_delimiter(&mut self) -> Result<(), SplitError> {
        let end = self.end_of_line()?;
        let rest = &self.buffer[self.start + "delimiter".len()..end];
        let rest = rest.trim_ascii();
        // In quotes, as the client takes it.
        let word = match rest.first() {
            Some(quote @ (b'\'' | b'"' | b'`')) => rest[1..].split(|byte| byte == quote).next(),
            _ => rest.split(u8::is_ascii_whitespace).next(),
        };
        let word = word.unwrap_or_default();
        let Some(&first) = word.first() else {
            return Err(SplitError::NoDelimiter { line: self.line });
        };
        self.delimiter = word.to_vec();
        self.finder = Finder::new(first);
        self.at = end;
        self.take_to(end);
        Ok(())
    }

    /// Where the statement's delimiter begins, if it is in the buffer. Goes on at `at`.
    fn find_end(&mut self) -> Option<usize> {
        loop {
            match self.within {
                Within::Quotes(quote) => self.pass_quotes(quote)?,
                Within::LineComment => {
                    let found = memchr::memchr(b'\n', &self.buffer[self.at..self.end]);
                    self.leave(found.map(|found| found + 1), 0)?;
                }
                Within::BlockComment => {
                    let found = memchr::memmem::find(&self.buffer[self.at..self.end], b"*/");
                    self.leave(found.map(|found| found + 2), 1)?;
                }
                Within::Statement | Within::Nothing => {
                    if let Some(end) = self.pass_text()? {
                        return Some(end);
                    }
                }
            }
        }
    }

    /// Leaves a comment, `length` bytes on. Without an end the last `kept` bytes are looked at again.
    fn leave(&mut self, length: Option<usize>, kept: usize) -> Option<()> {
        match length {
            Some(length) => {
                self.at += length;
                self.within = self.around;
                Some(())
            }
            None => {
                self.at = self.at.max(self.end.saturating_sub(kept));
                None
            }
        }
    }

    /// Passes text outside of quotes. `None`: more input is needed. `Some(None)`: something begins here.
    fn pass_text(&mut self) -> Option<Option<usize>> {
        let text = &self.buffer[..self.end];
        // What begins here may go on behind the end of the buffer.
        let longest = self.delimiter.len().max("/*M!999999".len());
        loop {
            let Some(found) = self.finder.next(text, self.at) else {
                self.at = self.end;
                return None;
            };
            self.at = found;
            let rest = &text[found..];
            if self.dialect.charset.is_second(text, self.start, found) {
                self.at += 1;
                continue;
            }
            // The most frequent by far, so it comes before what takes longer to tell.
            if matches!(rest[0], b'\'' | b'"' | b'`') && !self.delimiter.starts_with(&rest[..1]) {
                self.within = Within::Quotes(rest[0]);
                self.at += 1;
                return Some(None);
            }
            if rest.len() < longest && !self.at_end_of_input {
                return None;
            }
            if rest.starts_with(&self.delimiter) {
                return Some(Some(found));
            }
            self.within = match rest[0] {
                quote @ (b'\'' | b'"' | b'`') => Within::Quotes(quote),
                b'#' => Within::LineComment,
                b'-' if is_dashes(rest) => Within::LineComment,
                b'/' if rest.starts_with(b"/*") && !is_versioned(rest) => Within::BlockComment,
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            self.at += if self.within == Within::BlockComment { 2 } else { 1 };
            self.around = Within::Statement;
            return Some(None);
        }
    }

    /// Passes a string up to its closing quote. `None`: more input is needed.
    fn pass_quotes(&mut self, quote: u8) -> Option<()> {
        let text = &self.buffer[..self.end];
        let escapes = self.dialect.escapes_in(quote);
        if self.dialect.charset != Charset::Plain {
            return self.pass_quotes_of_pairs(quote);
        }
        loop {
            let Some(found) = self.finder.next(text, self.at) else {
                self.at = self.end;
                return None;
            };
            self.at = found;
            if text[found] == quote {
                self.at += 1;
                self.within = Within::Statement;
                return Some(());
            }
            if text[found] == b'\\' && escapes {
                if found + 1 == text.len() {
                    return None;
                }
                self.at += 1;
            }
            self.at += 1;
        }
    }

    fn pass_quotes_of_pairs(&mut self, quote: u8) -> Option<()> {
        let text = &self.buffer[..self.end];
        while self.at < text.len() {
            let byte = text[self.at];
            let next = text.get(self.at + 1);
            // Whether it is a pair or an escape, the next byte decides.
            if next.is_none() && byte != quote && !self.at_end_of_input {
                return None;
            }
            if next.is_some_and(|&next| self.dialect.charset.is_pair(byte, next)) {
                self.at += 2;
            } else if byte == quote {
                self.at += 1;
                self.within = Within::Statement;
                return Some(());
            } else {
                let escape = byte == b'\\' && self.dialect.escapes_in(quote) && next.is_some();
                self.at += if escape { 2 } else { 1 };
            }
        }
        None
    }
}

/// `--` begins a comment only before white space, a control character or the end.
fn is_dashes(text: &[u8]) -> bool {
    text.starts_with(b"--")
        && text.get(2).is_none_or(|&byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
}

/// A comment whose content is for the server. The version 99.99.99 is for none: mariadb-dump's line against `\!`.
fn is_versioned(text: &[u8]) -> bool {
    let mark = text.starts_with(b"/*!") || text.starts_with(b"/*M!");
    mark && !text.starts_with(b"/*M!999999") && !text.starts_with(b"/*!999999")
}

fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    text.len() >= word.len()
        && text[..word.len()].eq_ignore_ascii_case(word)
        && text.get(word.len()).is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
#[path = "splitter_tests.rs"]
mod tests;
