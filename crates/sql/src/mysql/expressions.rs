//! Expressions: DEFAULT, CHECK, computed columns, keys and partitions; and bodies of views and routines, in which
//! only a few things are looked at.

use super::functions;
use super::reader::Reader;
use super::{nearest, Refusal};
use crate::tokens::Token;

/// What a CAST may be to.
const CASTS: [&str; 12] = [
    "BINARY",
    "CHAR",
    "CHARACTER",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "NCHAR",
    "SIGNED",
    "TIME",
    "UNSIGNED",
];

/// What is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All: what is not known is refused.
    Expression,
    /// What MariaDB would take for something else.
    Body,
}

/// What stood before.
#[derive(Default)]
struct Before {
    /// Where the name began that has ended with the last token, as `a` or `d.t.a`.
    name_at: Option<usize>,
    is_point: bool,
    is_as: bool,
}

impl Reader<'_> {
    /// `(expression)`: the place of what is within.
    pub fn parentheses(&mut self) -> Result<std::ops::Range<usize>, Refusal> {
        let refusal = self.refusal("parentheses that do not end");
        self.expect_mark(b'(')?;
        let from = self.tokens.at;
        let (mut depth, mut before) = (1, Before::default());
        loop {
            if self.is_mark(b')') && depth == 1 {
                let to = self.tokens.at;
                let _ = self.tokens.next();
                return Ok(from..to);
            }
            match self.tokens.peek() {
                None => return Err(refusal),
                Some(Token::Mark(b'(')) => depth += 1,
                Some(Token::Mark(b')')) => depth -= 1,
                Some(Token::Mark(b';' | b'@')) => return Err(self.refusal("something that is no expression")),
                Some(_) => (),
            }
            self.token(&mut before, Extent::Expression)?;
        }
    }

    /// All up to the end, of something that has a body.
    pub fn body(&mut self) -> Result<(), Refusal> {
        let mut before = Before::default();
        while !self.is_at_end() {
            if self.is("LANGUAGE") && !self.accept_all(&["LANGUAGE", "SQL"]) {
                let mut ahead = self.tokens.clone();
                let _ = ahead.next();
                // Otherwise it is a name, as in `AGAINST ('x' IN NATURAL LANGUAGE MODE)`.
                if ahead.peek().is_some_and(|token| token.is("JAVASCRIPT")) {
                    return Err(self.refusal("a routine in another language than SQL"));
                }
            }
            self.token(&mut before, Extent::Body)?;
        }
        Ok(())
    }

    fn token(&mut self, before: &mut Before, extent: Extent) -> Result<(), Refusal> {
        let from = self.at();
        if self.accept("COLLATE") {
            *before = Before::default();
            return self.collation();
        }
        if extent == Extent::Expression {
            self.refuse_in_expression(before)?;
        }
        let Some(token) = self.tokens.next() else { return Ok(()) };
        let was_point = before.is_point;
        match token {
            Token::Mark(b'-') if before.name_at.is_some() && self.is_arrow() => {
                return self.arrow(from, std::mem::take(before));
            }
            Token::Word(word) => {
                let is_function = self.is_mark(b'(');
                if extent == Extent::Expression && !is_function {
                    self.quote_if_reserved(from, word);
                }
                let is_string = self.tokens.peek() == Some(Token::Text);
                let name_at = (!is_function && !is_string).then_some(from);
                *before = Before {
                    name_at: if was_point { before.name_at } else { name_at },
                    is_point: false,
                    is_as: word.eq_ignore_ascii_case(b"AS"),
                };
            }
            Token::Name(_) => {
                let name_at = if was_point { before.name_at } else { Some(from) };
                *before = Before { name_at, ..Before::default() };
            }
            Token::Mark(b'.') => before.is_point = true,
            Token::Text | Token::Mark(_) => *before = Before::default(),
        }
        Ok(())
    }

    /// What MariaDB has not, or not so.
    fn refuse_in_expression(&mut self, before: &Before) -> Result<(), Refusal> {
        let Some(Token::Word(word)) = self.tokens.peek() else { return Ok(()) };
        let word = String::from_utf8_lossy(word).to_ascii_uppercase();
        let mut ahead = self.tokens.clone();
        let _ = ahead.next();
        let next = ahead.next();
        let is_next = |word: &str| next.as_ref().is_some_and(|token| token.is(word));
        if before.is_as && !CASTS.contains(&word.as_str()) {
            return Err(self.refusal("a CAST to a type that MariaDB casts nothing to"));
        }
        if word == "ARRAY" && !before.is_point {
            return Err(self.refusal("a key of the elements of JSON arrays"));
        }
        if word == "MEMBER" && (is_next("OF") || next == Some(Token::Mark(b'('))) {
            return Err(self.refusal("MEMBER OF"));
        }
        if word == "RETURNING" && is_next_type(&next) {
            return Err(self.refusal("JSON_VALUE with a type"));
        }
        if word == "SELECT" || word == "AT" && is_next("TIME") {
            return Err(self.refusal("something that MariaDB does not take in an expression"));
        }
        if next == Some(Token::Mark(b'(')) && !functions::is_of_both(&word) && !before.is_as {
            return Err(
                self.refusal("a function of which it is not known here that it means the same in MariaDB")
            );
        }
        if next == Some(Token::Text) && word == "_GB18030" {
            return Err(self.refusal("a character set that MariaDB has not"));
        }
        Ok(())
    }

    /// Behind a minus: whether it is one of an arrow.
    fn is_arrow(&self) -> bool {
        self.tokens.text.get(self.tokens.at) == Some(&b'>')
    }

    /// `name -> 'path'` or `name ->> 'path'`: the first mark is taken, and began at `from`.
    fn arrow(&mut self, from: usize, before: Before) -> Result<(), Refusal> {
        let Some(name_at) = before.name_at else { return Err(self.refusal("an arrow behind no name")) };
        let _ = self.tokens.next();
        let unquotes = self.tokens.text.get(self.tokens.at) == Some(&b'>') && self.accept_mark(b'>');
        let arrow = from..self.tokens.at;
        if self.tokens.peek() != Some(Token::Text) {
            return Err(self.refusal("an arrow to something that is no string"));
        }
        self.string()?;
        self.insert(name_at, if unquotes { "JSON_UNQUOTE(JSON_EXTRACT(" } else { "JSON_EXTRACT(" });
        self.replace(arrow, ",");
        self.insert(self.tokens.at, if unquotes { "))" } else { ")" });
        Ok(())
    }

    /// The name of a collation.
    pub fn collation(&mut self) -> Result<(), Refusal> {
        self.named_collation().map(|_| ())
    }

    /// The same; the name that it has in MariaDB.
    pub fn named_collation(&mut self) -> Result<Vec<u8>, Refusal> {
        let refusal = self.refusal("a collation that MariaDB has not, and none that is near");
        let from = self.at();
        let name = self.name_or_text()?;
        let text = String::from_utf8_lossy(&name).into_owned();
        if text.to_ascii_lowercase().starts_with("gb18030") {
            return Err(refusal);
        }
        match nearest(&text) {
            None => Ok(name),
            Some(Ok(other)) => {
                self.replace(from..self.tokens.at, other.clone());
                Ok(other.into_bytes())
            }
            Some(Err(())) => Err(refusal),
        }
    }
}

/// Whether it is a type, and what was before it so no name.
fn is_next_type(next: &Option<Token<'_>>) -> bool {
    const TYPES: [&str; 11] = [
        "FLOAT", "DOUBLE", "DECIMAL", "SIGNED", "UNSIGNED", "DATE", "TIME", "DATETIME", "YEAR", "CHAR",
        "JSON",
    ];
    next.as_ref().is_some_and(|token| TYPES.iter().any(|kind| token.is(kind)))
}
