//! Columns: a name, a type, and what else is said of them.

use super::reader::Reader;
use super::Refusal;
use crate::quoting::quoted_name;
use crate::tokens::Token;
use std::ops::Range;

/// A CHECK.
#[derive(Debug)]
pub(super) struct Check {
    /// Its own name; None: the server gives it one.
    pub name: Option<Vec<u8>>,
    /// What is in its parentheses.
    pub expression: Range<usize>,
    pub is_enforced: bool,
}

/// What is said of a column.
#[derive(Debug, Default)]
struct Said {
    is_computed: bool,
    /// Where NULL or NOT NULL stands, and whether it is the second.
    nulls: Vec<Range<usize>>,
    is_not_null: bool,
    has_value: bool,
    invisible: Option<Range<usize>>,
    checks: Vec<Check>,
}

impl Reader<'_> {
    /// `name type ...`; the constraints that the table has through it.
    pub fn column(&mut self) -> Result<Vec<Check>, Refusal> {
        let name = self.name()?;
        self.column_behind_name(name)
    }

    /// The same behind its name.
    pub fn column_behind_name(&mut self, name: Vec<u8>) -> Result<Vec<Check>, Refusal> {
        let type_from = self.at();
        let is_serial = self.is("SERIAL");
        self.data_type()?;
        let kind = type_from..self.tokens.at;
        let mut said = Said { has_value: is_serial, ..Said::default() };
        let mut collation = Vec::new();
        while self.attribute(&kind, &mut said, &mut collation)? {}
        if said.is_computed {
            // They are what they are computed to be.
            for place in std::mem::take(&mut said.nulls) {
                self.replace(place, "");
            }
        } else if let Some(place) = said.invisible.filter(|_| said.is_not_null && !said.has_value) {
            self.replace(place, "");
        }
        let kind = if is_serial { b"BIGINT UNSIGNED".to_vec() } else { self.became(kind)? };
        self.columns.push([&quoted_name(&name)[..], b" ", &kind, &collation].concat());
        Ok(said.checks)
    }

    /// One thing that is said of it; whether there was one.
    fn attribute(
        &mut self,
        kind: &Range<usize>,
        said: &mut Said,
        collation: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let from = self.at();
        let Some(word) = self.next_word() else { return Ok(false) };
        match word.as_str() {
            "NOT" => {
                let _ = self.word()?;
                if self.accept("SECONDARY") {
                    self.remove_from(from);
                } else {
                    self.expect("NULL")?;
                    said.nulls.push(from..self.tokens.at);
                    said.is_not_null = true;
                }
            }
            "NULL" => {
                let _ = self.word()?;
                said.nulls.push(from..self.tokens.at);
            }
            "DEFAULT" => {
                let _ = self.word()?;
                self.default_value()?;
                said.has_value = true;
            }
            "VISIBLE" => {
                let _ = self.word()?;
                self.remove_from(from);
            }
            "INVISIBLE" => {
                let _ = self.word()?;
                said.invisible = Some(from..self.tokens.at);
            }
            "AUTO_INCREMENT" => {
                let _ = self.word()?;
                said.has_value = true;
            }
            "UNIQUE" => {
                let _ = self.word()?;
                let _ = self.accept("KEY");
            }
            "PRIMARY" | "KEY" => {
                let _ = self.word()?;
                if word == "PRIMARY" {
                    self.expect("KEY")?;
                }
                if said.is_computed {
                    return Err(self.refusal("a primary key of a computed column"));
                }
                said.is_not_null = true;
            }
            "COLLATE" => {
                let _ = self.word()?;
                let name = self.named_collation()?;
                *collation = [b" COLLATE ", &name[..]].concat();
            }
            "SRID" => {
                let _ = self.word()?;
                let number = self.number()?;
                self.remove_from(from);
                self.insert(kind.end, format!(" REF_SYSTEM_ID={number}"));
            }
            "GENERATED" | "AS" => {
                self.computed()?;
                (said.is_computed, said.has_value) = (true, true);
            }
            _ => return self.other_attribute(&word, said),
        }
        Ok(true)
    }

    fn other_attribute(&mut self, word: &str, said: &mut Said) -> Result<bool, Refusal> {
        let from = self.at();
        match word {
            "COMMENT" => {
                let _ = self.word()?;
                self.string()?;
            }
            "COLUMN_FORMAT" | "STORAGE" => {
                let (_, _) = (self.word()?, self.word()?);
                self.remove_from(from);
            }
            "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE" => {
                let _ = self.word()?;
                let _ = self.accept_mark(b'=');
                self.string()?;
                self.remove_from(from);
            }
            "ON" => {
                let _ = self.word()?;
                self.expect("UPDATE")?;
                self.now()?;
            }
            "SERIAL" => {
                if !self.accept_all(&["SERIAL", "DEFAULT", "VALUE"]) {
                    return Err(self.refusal("a clause that is not known here"));
                }
                said.has_value = true;
            }
            "REFERENCES" => {
                self.references()?;
                if !self.context.has_inline_references {
                    self.remove_from(from);
                }
            }
            "CONSTRAINT" | "CHECK" => {
                let check = self.check()?;
                self.remove_from(from);
                said.checks.push(check);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `[GENERATED ALWAYS] AS (expression) [VIRTUAL | STORED]`.
    fn computed(&mut self) -> Result<(), Refusal> {
        if self.accept("GENERATED") {
            self.expect("ALWAYS")?;
        }
        self.expect("AS")?;
        self.parentheses()?;
        let _ = self.accept_one(&["VIRTUAL", "STORED"]);
        Ok(())
    }

    /// `[CONSTRAINT [name]] CHECK (expression) [[NOT] ENFORCED]`.
    pub fn check(&mut self) -> Result<Check, Refusal> {
        let mut name = None;
        if self.accept("CONSTRAINT") && !self.is("CHECK") {
            name = Some(self.name()?);
        }
        self.expect("CHECK")?;
        let expression = self.parentheses()?;
        let is_enforced = !self.accept_all(&["NOT", "ENFORCED"]);
        if is_enforced {
            let _ = self.accept("ENFORCED");
        }
        Ok(Check { name, expression, is_enforced })
    }

    /// A constraint as one of the table. One that is not enforced is true in any case, and there by its name.
    pub fn constraint(&mut self, check: &Check) -> Result<Vec<u8>, Refusal> {
        let name = match &check.name {
            Some(name) => name.clone(),
            None => {
                self.checks += 1;
                format!("{}_chk_{}", String::from_utf8_lossy(&self.table), self.checks).into_bytes()
            }
        };
        let expression = self.became(check.expression.clone())?;
        let (before, behind): (&[u8], &[u8]) = match check.is_enforced {
            true => (b" CHECK (", b")"),
            false => (b" CHECK (TRUE OR (", b"))"),
        };
        Ok([b"CONSTRAINT ", &quoted_name(&name)[..], before, &expression, behind].concat())
    }

    /// Behind DEFAULT: an expression in parentheses, a literal, or the time.
    pub fn default_value(&mut self) -> Result<(), Refusal> {
        if self.is_mark(b'(') {
            return self.parentheses().map(|_| ());
        }
        if self.accept_one(&["NULL", "TRUE", "FALSE"]) {
            return Ok(());
        }
        let _ = self.introducer();
        match self.tokens.peek() {
            Some(Token::Text) => self.string(),
            Some(Token::Mark(b'+' | b'-' | b'.')) => self.signed_number(),
            Some(Token::Word(word)) if word.first().is_some_and(u8::is_ascii_digit) => self.signed_number(),
            Some(Token::Word(_)) => {
                let mut ahead = self.tokens.clone();
                let _ = ahead.next();
                // `b'1'`, `x'00'`, `n'text'`, `DATE '2000-01-01'`.
                if ahead.peek() == Some(Token::Text) {
                    if !self.accept_one(&["B", "X", "N", "DATE", "TIME", "TIMESTAMP"]) {
                        return Err(self.refusal("a literal of a kind that is not known here"));
                    }
                    return self.string();
                }
                self.now()
            }
            _ => Err(self.refusal("a default that is not known here")),
        }
    }

    /// CURRENT_TIMESTAMP, in one of its forms.
    fn now(&mut self) -> Result<(), Refusal> {
        if !self.accept_one(&["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"]) {
            return Err(self.refusal("a default that is not known here"));
        }
        if self.accept_mark(b'(') {
            if !self.is_mark(b')') {
                self.number()?;
            }
            self.expect_mark(b')')?;
        }
        Ok(())
    }

    /// A number with a sign, a fraction and an exponent: tokens that stand side by side.
    fn signed_number(&mut self) -> Result<(), Refusal> {
        let refusal = self.refusal("a number that is not known here");
        while self.accept_mark(b'-') || self.accept_mark(b'+') {}
        let from = self.at();
        let text = self.tokens.text;
        let is_part = |at: usize| {
            let byte = text[at];
            let is_exponents = matches!(byte, b'+' | b'-')
                && at > from
                && text[at - 1].eq_ignore_ascii_case(&b'e')
                && !text[from..at].starts_with(b"0x");
            byte.is_ascii_alphanumeric() || byte == b'.' || is_exponents
        };
        let end = (from..text.len()).find(|&at| !is_part(at)).unwrap_or(text.len());
        let digits = &text[from..end];
        let is_number = match digits.strip_prefix(b"0x") {
            Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
            None => {
                std::str::from_utf8(digits).is_ok_and(|text| text.parse::<f64>().is_ok_and(f64::is_finite))
            }
        };
        if digits.is_empty() || !is_number {
            return Err(refusal);
        }
        self.tokens.at = end;
        Ok(())
    }
}
