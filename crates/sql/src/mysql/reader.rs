//! Tokens of a statement, and what becomes of places in it.

use super::comments::Comments;
use super::{Context, FunctionColumn, Probe, Refusal, Rewritten};
use crate::charset::Dialect;
use crate::quoting::quoted_name;
use crate::tokens::{Token, Tokens};
use std::ops::Range;

/// So much of a statement is told with an error, in bytes.
const NEAR: usize = 60;
/// Words that are names to MySQL, and not to MariaDB unless they have quotes.
const NAMES_OF_MYSQL_ONLY: [&str; 15] = [
    "CURRENT_ROLE",
    "DELETE_DOMAIN_ID",
    "DO_DOMAIN_IDS",
    "GENERAL",
    "IGNORE_DOMAIN_IDS",
    "OFFSET",
    "PAGE_CHECKSUM",
    "PARSE_VCOL_EXPR",
    "REF_SYSTEM_ID",
    "RETURNING",
    "ROWNUM",
    "SLOW",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
];

/// What a place becomes.
#[derive(Debug)]
struct Edit {
    place: Range<usize>,
    text: Vec<u8>,
}

/// A statement that is read from its beginning on.
pub(super) struct Reader<'a> {
    pub tokens: Tokens<'a>,
    pub context: &'a Context<'a>,
    edits: Vec<Edit>,
    /// Columns that keys need, in the order of the keys.
    pub functions: Vec<FunctionColumn>,
    /// Names that the statement gives to keys which have none.
    pub key_names: Vec<Vec<u8>>,
    /// Of a table that is made, columns with their types.
    pub columns: Vec<Vec<u8>>,
    /// The same of its character set.
    pub charset: Vec<u8>,
    /// It is a table that is made.
    pub is_new: bool,
    /// How many constraints without names there were, of this table.
    pub checks: usize,
    pub table: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a [u8], dialect: Dialect, context: &'a Context<'a>) -> Reader<'a> {
        Reader {
            tokens: Tokens::new(text, dialect),
            context,
            edits: Vec::new(),
            functions: Vec::new(),
            key_names: Vec::new(),
            columns: Vec::new(),
            charset: Vec::new(),
            is_new: false,
            checks: 0,
            table: Vec::new(),
        }
    }

    /// What is not known, or cannot be, here.
    pub fn refusal(&self, why: &str) -> Refusal {
        let at = self.tokens.clone().begin_of_next();
        let rest = self.tokens.text.get(at..).unwrap_or_default();
        let near = String::from_utf8_lossy(&rest[..rest.len().min(NEAR)]).into_owned();
        Refusal { why: why.into(), near }
    }

    /// Whether the next token is this keyword.
    pub fn is(&self, word: &str) -> bool {
        self.tokens.peek().is_some_and(|token| token.is(word))
    }

    /// Whether it is this byte.
    pub fn is_mark(&self, mark: u8) -> bool {
        self.tokens.peek() == Some(Token::Mark(mark))
    }

    pub fn is_at_end(&self) -> bool {
        self.tokens.peek().is_none()
    }

    pub fn accept(&mut self, word: &str) -> bool {
        self.tokens.accept(word)
    }

    /// Takes these keywords if all of them come.
    pub fn accept_all(&mut self, words: &[&str]) -> bool {
        let before = self.tokens.clone();
        let all = words.iter().all(|word| self.tokens.accept(word));
        if !all {
            self.tokens = before;
        }
        all
    }

    /// Takes the next token if it is one of these keywords.
    pub fn accept_one(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.tokens.accept(word))
    }

    pub fn accept_mark(&mut self, mark: u8) -> bool {
        self.tokens.accept_mark(mark)
    }

    pub fn expect(&mut self, word: &str) -> Result<(), Refusal> {
        match self.accept(word) {
            true => Ok(()),
            false => Err(self.refusal(&format!("something else than {word}"))),
        }
    }

    pub fn expect_mark(&mut self, mark: u8) -> Result<(), Refusal> {
        match self.accept_mark(mark) {
            true => Ok(()),
            false => Err(self.refusal(&format!("something else than {}", char::from(mark)))),
        }
    }

    pub fn expect_end(&self) -> Result<(), Refusal> {
        match self.is_at_end() {
            true => Ok(()),
            false => Err(self.refusal("a clause that is not known here")),
        }
    }

    /// Where the next token begins.
    pub fn at(&mut self) -> usize {
        self.tokens.begin_of_next()
    }

    /// A word, in capitals.
    pub fn word(&mut self) -> Result<String, Refusal> {
        let refusal = self.refusal("something else than a word");
        match self.tokens.next() {
            Some(Token::Word(word)) => Ok(String::from_utf8_lossy(word).to_ascii_uppercase()),
            _ => Err(refusal),
        }
    }

    /// The next word, in capitals, without taking it.
    pub fn next_word(&self) -> Option<String> {
        match self.tokens.peek() {
            Some(Token::Word(word)) => Some(String::from_utf8_lossy(word).to_ascii_uppercase()),
            _ => None,
        }
    }

    /// A name, which gets quotes if MariaDB takes it for something else.
    pub fn name(&mut self) -> Result<Vec<u8>, Refusal> {
        let refusal = self.refusal("something else than a name");
        let from = self.at();
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(name),
            Some(Token::Word(word)) => {
                self.quote_if_reserved(from, word);
                Ok(word.to_vec())
            }
            _ => Err(refusal),
        }
    }

    /// A word that is a name, which has begun at `from`.
    pub fn quote_if_reserved(&mut self, from: usize, word: &[u8]) {
        if NAMES_OF_MYSQL_ONLY.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())) {
            self.replace(from..self.tokens.at, quoted_name(word));
        }
    }

    /// `table` or `database.table`: the table's own name.
    pub fn qualified(&mut self) -> Result<Vec<u8>, Refusal> {
        let name = self.name()?;
        match self.accept_mark(b'.') {
            true => self.name(),
            false => Ok(name),
        }
    }

    /// A name, or a string in place of one: what it says.
    pub fn name_or_text(&mut self) -> Result<Vec<u8>, Refusal> {
        match self.tokens.peek() {
            Some(Token::Text) => self.text(),
            _ => self.name(),
        }
    }

    /// A string without anything that is written otherwise in it: what it says.
    pub fn text(&mut self) -> Result<Vec<u8>, Refusal> {
        let refusal = self.refusal("something else than a plain string");
        let from = self.at();
        let Some(Token::Text) = self.tokens.next() else { return Err(refusal) };
        let whole = &self.tokens.text[from..self.tokens.at];
        let quote = &whole[..1];
        let inner =
            whole.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).filter(|_| whole.len() > 1);
        inner.filter(|inner| !inner.contains(&b'\\')).map(<[u8]>::to_vec).ok_or(refusal)
    }

    /// One string or several that are one, whatever they say.
    pub fn string(&mut self) -> Result<(), Refusal> {
        let refusal = self.refusal("something else than a string");
        if self.tokens.next() != Some(Token::Text) {
            return Err(refusal);
        }
        while self.tokens.peek() == Some(Token::Text) {
            let _ = self.tokens.next();
        }
        Ok(())
    }

    /// A number without a sign and a fraction.
    pub fn number(&mut self) -> Result<u64, Refusal> {
        let refusal = self.refusal("something else than a number");
        let Some(Token::Word(word)) = self.tokens.next() else { return Err(refusal) };
        let text =
            std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        text.and_then(|text| text.parse().ok()).ok_or(refusal)
    }

    /// An account: name, and host.
    pub fn account(&mut self) -> Result<(), Refusal> {
        if self.accept("CURRENT_USER") {
            if self.accept_mark(b'(') {
                self.expect_mark(b')')?;
            }
            return Ok(());
        }
        self.name_or_text()?;
        if self.accept_mark(b'@') {
            self.name_or_text()?;
        }
        Ok(())
    }

    /// The place from there to the last token becomes this.
    pub fn replace(&mut self, place: Range<usize>, text: impl Into<Vec<u8>>) {
        self.edits.push(Edit { place, text: text.into() });
    }

    /// What is from there to the last token goes.
    pub fn remove_from(&mut self, from: usize) {
        self.replace(from..self.tokens.at, "");
    }

    /// Something comes there.
    pub fn insert(&mut self, at: usize, text: impl Into<Vec<u8>>) {
        self.replace(at..at, text);
    }

    /// A part of the statement as it has become.
    pub fn became(&self, place: Range<usize>) -> Result<Vec<u8>, Refusal> {
        let within = |edit: &&Edit| edit.place.start >= place.start && edit.place.end <= place.end;
        let edits: Vec<&Edit> = self.edits.iter().filter(within).collect();
        self.applied(place, edits)
    }

    fn applied(&self, place: Range<usize>, mut edits: Vec<&Edit>) -> Result<Vec<u8>, Refusal> {
        edits.sort_by_key(|edit| (edit.place.start, edit.place.end));
        let text = self.tokens.text;
        let (mut out, mut taken) = (Vec::new(), place.start);
        for edit in edits {
            if edit.place.start < taken {
                // What goes may have had changes within.
                if edit.place.end <= taken {
                    continue;
                }
                return Err(self.refusal("clauses that cannot be told apart"));
            }
            out.extend_from_slice(&text[taken..edit.place.start]);
            out.extend_from_slice(&edit.text);
            taken = edit.place.end;
        }
        out.extend_from_slice(&text[taken..place.end]);
        Ok(out)
    }

    /// The statement as it has become.
    pub fn finish(&self, comments: &Comments) -> Result<Rewritten, Refusal> {
        self.expect_end()?;
        if self.functions.len() > self.context.types.len() {
            let all = || [b"(", &self.columns.join(&b", "[..])[..], b")", &self.charset].concat();
            let columns = self.is_new.then(all);
            let expressions = self.functions.iter().map(|function| function.expression.clone()).collect();
            return Ok(Rewritten::NeedsTypes(Probe { columns, expressions }));
        }
        if self.edits.is_empty() && !comments.has_of_mysql {
            return Ok(Rewritten::Same);
        }
        let marks: Vec<Edit> =
            comments.marks.iter().map(|place| Edit { place: place.clone(), text: b" ".to_vec() }).collect();
        let all = self.edits.iter().chain(&marks).collect();
        Ok(Rewritten::Other(self.applied(0..self.tokens.text.len(), all)?))
    }
}
