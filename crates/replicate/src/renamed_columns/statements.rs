//! Where a statement that changes definitions names columns.
//!
//! ```text
//! CREATE TABLE t (column type ..., KEY name (column, ...), CHECK (expression), ... REFERENCES p (column)) ...
//! ALTER TABLE t ADD column type ... AFTER column, CHANGE column column ..., ADD KEY name (column, ...), ...
//! ```
//!
//! So a name is a column at the beginning of a definition or behind certain words, and in parentheses; but there it may
//! be a function, a type, or a unit of time as well.

use super::ColumnNames;
use crate::statement::{Definition, Mention};
use std::ops::Range;
use teak_sql::charset::Dialect;
use teak_sql::quoting::quoted_name;
use teak_sql::tokens::{Token, Tokens};

/// What a definition within a table begins with if it is none of a column.
const NO_COLUMNS: [&str; 14] = [
    "CONSTRAINT",
    "PRIMARY",
    "UNIQUE",
    "KEY",
    "INDEX",
    "FULLTEXT",
    "SPATIAL",
    "VECTOR",
    "FOREIGN",
    "CHECK",
    "PERIOD",
    "PARTITION",
    "SYSTEM",
    "LIKE",
];
/// What may be dropped or altered that is no column.
const OTHERS: [&str; 9] =
    ["PRIMARY", "KEY", "INDEX", "FOREIGN", "CONSTRAINT", "CHECK", "PERIOD", "PARTITION", "SYSTEM"];
/// Words that are columns in some expressions, and something else in others.
const DOUBTFUL: [&str; 10] =
    ["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "END"];
/// Behind these comes no column in an expression.
const BEFORE_OTHERS: [&str; 4] = ["AS", "SET", "USING", "COLLATE"];

/// A statement with the columns' names in the target; None: it names none. The error says why that cannot be told.
pub fn rewritten(
    text: &[u8],
    definition: &Definition,
    dialect: Dialect,
    of: &dyn Fn(&Mention) -> ColumnNames,
) -> Result<Option<Vec<u8>>, String> {
    let mentions = &definition.mentions;
    let Some(table) = mentions.first().filter(|_| mentions.iter().any(|one| !of(one).is_empty())) else {
        return Ok(None);
    };
    let mut head = Tokens::new(text, dialect);
    let mut first = head.next();
    if first.as_ref().is_some_and(|token| token.is("SET")) && head.any(|token| token.is("FOR")) {
        first = head.next();
    }
    let is = |word: &str| first.as_ref().is_some_and(|token| token.is(word));
    if is("DROP") || is("TRUNCATE") {
        return Ok(None);
    }
    if is("RENAME") {
        let mut pairs = mentions.chunks(2);
        return pairs.try_for_each(|pair| must_be_alike(&pair[0], &pair[pair.len() - 1], of)).map(|()| None);
    }
    let mut words = Tokens { text: &text[..table.place.start], ..Tokens::new(text, dialect) };
    let of_index = words.any(|token| token.is("INDEX"));
    let mut walk = Walk {
        tokens: Tokens { at: table.place.end, ..Tokens::new(text, dialect) },
        own: of(table),
        referenced: Vec::new(),
        found: Vec::new(),
        doubt: None,
        mentions,
        of,
    };
    match (is("ALTER"), of_index) {
        (true, _) => walk.specifications(),
        (false, true) => walk.rest(Inside::Key),
        (false, false) => walk.table(),
    }
    let Walk { found, doubt, referenced, .. } = walk;
    if let Some(why) = doubt {
        return Err(why);
    }
    let mut others = mentions[1..].iter().filter(|one| !referenced.contains(&one.place.start));
    others.try_for_each(|other| must_be_alike(table, other, of))?;
    if found.is_empty() {
        return Ok(None);
    }
    let (mut out, mut taken) = (Vec::new(), 0);
    for (place, name) in found {
        out.extend_from_slice(&text[taken..place.start]);
        out.extend_from_slice(&quoted_name(name.as_bytes()));
        taken = place.end;
    }
    out.extend_from_slice(&text[taken..]);
    Ok(Some(out))
}

/// One becomes the other, or is made as it.
fn must_be_alike(one: &Mention, other: &Mention, of: &dyn Fn(&Mention) -> ColumnNames) -> Result<(), String> {
    let [shown, others] = [one, other].map(|mention| String::from_utf8_lossy(&mention.name));
    match of(one) == of(other) {
        true => Ok(()),
        false => Err(format!("`{shown}` has columns of other names here, and `{others}` other ones")),
    }
}

/// What parentheses have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Columns, also the first characters of some.
    Key,
    /// An expression, or what belongs to a type.
    Expression,
}

/// A walk through a statement.
struct Walk<'a> {
    tokens: Tokens<'a>,
    /// Of the table that it is about.
    own: ColumnNames,
    /// Where other tables are named that foreign keys refer to.
    referenced: Vec<usize>,
    /// Columns, and what they are called in the target.
    found: Vec<(Range<usize>, String)>,
    /// Why it cannot be told what is a column.
    doubt: Option<String>,
    mentions: &'a [Mention],
    of: &'a dyn Fn(&Mention) -> ColumnNames,
}

impl Walk<'_> {
    /// Behind the name of a table that is made.
    fn table(&mut self) {
        if self.tokens.accept_mark(b'(') {
            self.definitions();
        }
        while self.tokens.peek().is_some() {
            self.rest(Inside::Expression);
            let _ = self.tokens.next();
        }
    }

    /// Within the parentheses of a table, and its end.
    fn definitions(&mut self) {
        loop {
            self.definition();
            if self.tokens.next() != Some(Token::Mark(b',')) {
                return;
            }
        }
    }

    /// Of a column, a key or a constraint.
    fn definition(&mut self) {
        let word = self.tokens.peek();
        let is = |words: &[&str]| words.iter().any(|one| word.as_ref().is_some_and(|token| token.is(one)));
        if !is(&NO_COLUMNS) {
            return self.column_definition();
        }
        let is_constraint = self.tokens.accept("CONSTRAINT");
        if is_constraint && !self.is_next(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            let _ = self.tokens.next();
        } else {
            self.index_without_name();
        }
        let inside = if self.is_next(&["CHECK", "PARTITION"]) { Inside::Expression } else { Inside::Key };
        self.rest(inside);
    }

    /// A column, its type, and what else is said of it.
    fn column_definition(&mut self) {
        let found = self.found.len();
        self.column();
        let from = self.tokens.at;
        self.rest(Inside::Expression);
        let mut said =
            Tokens { text: &self.tokens.text[..self.tokens.at], at: from, dialect: self.tokens.dialect };
        // The index would be called as the column.
        if self.found.len() > found && said.any(|token| token.is("UNIQUE")) {
            let why = || "an index without a name, of a column that has another name here".to_string();
            self.doubt.get_or_insert_with(why);
        }
    }

    /// An index that is called as its first column since it has no name gets that of the source's column.
    fn index_without_name(&mut self) {
        const KINDS: [&str; 5] = ["UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL"];
        let mut ahead = self.tokens.clone();
        let is_kind = |token: Token<'_>| KINDS.iter().any(|kind| token.is(kind));
        while ahead.peek().is_some_and(is_kind) {
            let _ = ahead.next();
        }
        let at = ahead.begin_of_next();
        if at == self.tokens.clone().begin_of_next() || !ahead.accept_mark(b'(') {
            return;
        }
        if let Some(name) = ahead.name().filter(|name| self.own.other(name).is_some()) {
            self.found.push((at..at, String::from_utf8_lossy(&name).into_owned()));
        }
    }

    /// What ALTER TABLE does, behind the table's name.
    fn specifications(&mut self) {
        let mut is_order = false;
        loop {
            if self.tokens.accept("WAIT") {
                let _ = self.tokens.next();
            }
            let _ = self.tokens.accept("NOWAIT");
            is_order |= self.is_next(&["ORDER"]);
            self.specification(is_order);
            if self.tokens.next().is_none() {
                return;
            }
        }
    }

    fn specification(&mut self, is_order: bool) {
        if self.tokens.accept("ADD") {
            let is_column = self.tokens.accept("COLUMN");
            self.if_exists();
            if self.tokens.accept_mark(b'(') {
                self.definitions();
            } else if is_column {
                return self.column_definition();
            } else {
                return self.definition();
            }
        } else if self.tokens.accept("CHANGE") {
            self.named_column();
            self.column();
        } else if self.tokens.accept("MODIFY") {
            self.named_column();
        } else if self.tokens.accept("DROP") || self.tokens.accept("ALTER") {
            if !self.is_next(&OTHERS) {
                self.named_column();
            }
        } else if self.tokens.accept("RENAME") {
            if self.is_next(&["COLUMN"]) {
                self.named_column();
                let _ = self.tokens.accept("TO");
                self.column();
            }
        } else if is_order {
            let _ = self.tokens.accept("ORDER") && self.tokens.accept("BY");
            self.column();
        }
        self.rest(Inside::Expression);
    }

    fn is_next(&self, words: &[&str]) -> bool {
        let next = self.tokens.peek();
        next.is_some_and(|token| words.iter().any(|word| token.is(word)))
    }

    fn if_exists(&mut self) {
        if self.tokens.accept("IF") {
            let _ = self.tokens.accept("NOT");
            let _ = self.tokens.accept("EXISTS");
        }
    }

    /// `[COLUMN] [IF EXISTS] name`.
    fn named_column(&mut self) {
        let _ = self.tokens.accept("COLUMN");
        self.if_exists();
        self.column();
    }

    /// The next token is a column.
    fn column(&mut self) {
        let from = self.tokens.begin_of_next();
        if let Some(name) = self.tokens.clone().name() {
            let _ = self.tokens.next();
            if let Some(other) = self.own.other(&name) {
                self.found.push((from..self.tokens.at, other.to_string()));
            }
        }
    }

    /// Up to the comma, or the parenthesis, behind a definition.
    fn rest(&mut self, inside: Inside) {
        let mut names = self.own.clone();
        while let Some(token) = self.tokens.peek() {
            if matches!(token, Token::Mark(b',' | b')')) {
                return;
            }
            let _ = self.tokens.next();
            match token {
                Token::Mark(b'(') => {
                    self.parentheses(&names, inside);
                    names = self.own.clone();
                }
                token if token.is("AFTER") => self.column(),
                token if token.is("REFERENCES") => {
                    let from = self.tokens.begin_of_next();
                    if let Some(mention) = self.mentions.iter().find(|mention| mention.place.start == from) {
                        self.referenced.push(from);
                        self.tokens.at = mention.place.end;
                        names = (self.of)(mention);
                    }
                }
                token if token.is("SELECT") => self.has_query(),
                _ => (),
            }
        }
    }

    /// Behind one that opens, up to the one that closes it.
    fn parentheses(&mut self, names: &ColumnNames, inside: Inside) {
        // Partitions have names, options and constants.
        let is_partitions = self.is_next(&["PARTITION", "SUBPARTITION"]);
        let (mut depth, mut before) = (1, Some(Token::Mark(b'(')));
        while depth > 0 {
            let from = self.tokens.begin_of_next();
            let Some(token) = self.tokens.next() else { return };
            match &token {
                Token::Mark(b'(') => depth += 1,
                Token::Mark(b')') => depth -= 1,
                Token::Word(word) => {
                    if token.is("SELECT") {
                        self.has_query();
                    }
                    let other = names.other(word).filter(|_| !is_partitions);
                    if let Some(other) = other.filter(|_| self.is_column(&token, before.as_ref(), inside)) {
                        self.found.push((from..self.tokens.at, other.to_string()));
                    }
                }
                Token::Name(name) => {
                    let is_qualifier = self.tokens.peek() == Some(Token::Mark(b'.'));
                    if let Some(other) = names.other(name).filter(|_| !is_partitions && !is_qualifier) {
                        self.found.push((from..self.tokens.at, other.to_string()));
                    }
                }
                Token::Text | Token::Mark(_) => (),
            }
            before = Some(token);
        }
    }

    /// Whether a word without quotes, which is called as one, is a column.
    fn is_column(&mut self, word: &Token<'_>, before: Option<&Token<'_>>, inside: Inside) -> bool {
        let is_behind = |words: &[&str]| words.iter().any(|one| before.is_some_and(|token| token.is(one)));
        match self.tokens.peek() {
            // `DATE '2000-01-01'`, `x'00'`; the name of a table.
            Some(Token::Text | Token::Mark(b'.')) => false,
            _ if inside == Inside::Key => true,
            // A function.
            Some(Token::Mark(b'(')) => false,
            _ if is_behind(&BEFORE_OTHERS) => false,
            _ => {
                if let Some(word) = DOUBTFUL.iter().find(|one| word.is(one)) {
                    self.doubts(word);
                }
                true
            }
        }
    }

    fn doubts(&mut self, word: &str) {
        let why = || format!("whether {word} is a column, which has another name here, cannot be told");
        self.doubt.get_or_insert_with(why);
    }

    fn has_query(&mut self) {
        let why = || "a query about a table whose columns have other names here".to_string();
        self.doubt.get_or_insert_with(why);
    }
}
