//! Keys, foreign keys and constraints of tables.

use super::reader::Reader;
use super::{FunctionColumn, Refusal, FUNCTION_COLUMN};
use crate::quoting::quoted_name;
use std::ops::Range;

/// What MySQL calls a key without a name whose first part is an expression.
const KEY_OF_FUNCTION: &str = "functional_index";

/// An element of a table that is none of its columns.
pub(super) enum Element {
    /// It stays where it is.
    Key,
    /// A constraint, and where it stands.
    Check(Range<usize>, super::columns::Check),
}

impl Reader<'_> {
    /// Whether a key or a constraint comes, and no column: these words are no names.
    pub fn is_key(&self) -> bool {
        const KEYS: [&str; 8] =
            ["CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN"];
        self.is("CHECK") || KEYS.iter().any(|word| self.is(word))
    }

    /// A key or a constraint.
    pub fn key(&mut self) -> Result<Element, Refusal> {
        let from = self.at();
        let mut ahead = self.tokens.clone();
        if ahead.accept("CONSTRAINT") && !ahead.peek().is_some_and(|token| token.is("CHECK")) {
            let kinds = ["PRIMARY", "UNIQUE", "FOREIGN"];
            if !ahead.peek().is_some_and(|token| kinds.iter().any(|kind| token.is(kind))) {
                let _ = ahead.name();
            }
        }
        if ahead.peek().is_some_and(|token| token.is("CHECK")) {
            let check = self.check()?;
            return Ok(Element::Check(from..self.tokens.at, check));
        }
        if self.accept("CONSTRAINT") && !["PRIMARY", "UNIQUE", "FOREIGN"].iter().any(|kind| self.is(kind)) {
            self.name()?;
        }
        if self.accept("FOREIGN") {
            self.expect("KEY")?;
            if !self.is_mark(b'(') {
                self.name()?;
            }
            self.column_names()?;
            self.references()?;
        } else if self.accept("PRIMARY") {
            self.expect("KEY")?;
            self.key_behind_kind(None)?;
        } else {
            let _ = self.accept_one(&["UNIQUE", "FULLTEXT", "SPATIAL"]);
            let _ = self.accept_one(&["KEY", "INDEX"]);
            let at = self.tokens.at;
            let is_named = !self.is_mark(b'(') && !self.is("USING") && !self.is("TYPE");
            let name = if is_named { Some(self.name()?) } else { None };
            self.key_behind_kind(Some((name, at)))?;
        }
        Ok(Element::Key)
    }

    /// `[USING kind] (parts) options`; `name`: its own, and where it would stand.
    fn key_behind_kind(&mut self, name: Option<(Option<Vec<u8>>, usize)>) -> Result<(), Refusal> {
        self.key_kind()?;
        let (name, at) = name.unwrap_or((Some(b"PRIMARY".to_vec()), 0));
        let is_of_function = {
            let mut ahead = self.tokens.clone();
            ahead.accept_mark(b'(') && ahead.accept_mark(b'(')
        };
        let name = match name {
            Some(name) => name,
            None if is_of_function => {
                let name = self.name_for_key();
                self.insert(at, [b" ", &quoted_name(&name)[..]].concat());
                name
            }
            None => Vec::new(),
        };
        self.key_parts(&name)?;
        self.key_options()
    }

    /// `USING BTREE`.
    pub fn key_kind(&mut self) -> Result<(), Refusal> {
        if self.accept_one(&["USING", "TYPE"]) && !self.accept_one(&["BTREE", "HASH", "RTREE"]) {
            return Err(self.refusal("a kind of key that is not known here"));
        }
        Ok(())
    }

    /// A name for a key that has none, as MySQL makes it.
    fn name_for_key(&mut self) -> Vec<u8> {
        let known = self.context.table.map(|table| table.keys.clone()).unwrap_or_default();
        let names = (1..).map(|number| match number {
            1 => KEY_OF_FUNCTION.as_bytes().to_vec(),
            other => format!("{KEY_OF_FUNCTION}_{other}").into_bytes(),
        });
        let is_taken = |name: &Vec<u8>| {
            known.iter().chain(&self.key_names).any(|other| other.eq_ignore_ascii_case(name))
        };
        let name = names.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        self.key_names.push(name.clone());
        name
    }

    /// `(column, column (length) DESC, (expression))`.
    pub fn key_parts(&mut self, key: &[u8]) -> Result<(), Refusal> {
        self.key_names.push(key.to_vec());
        self.expect_mark(b'(')?;
        loop {
            if self.is_mark(b'(') {
                let from = self.at();
                let expression = self.parentheses()?;
                let column = self.function_column(key, expression)?;
                self.remove_from(from);
                self.insert(from, quoted_name(&column));
            } else {
                self.name()?;
                if self.accept_mark(b'(') {
                    self.number()?;
                    self.expect_mark(b')')?;
                }
            }
            let _ = self.accept_one(&["ASC", "DESC"]);
            if !self.accept_mark(b',') {
                return self.expect_mark(b')');
            }
        }
    }

    /// The column that stands for an expression.
    fn function_column(&mut self, key: &[u8], expression: Range<usize>) -> Result<Vec<u8>, Refusal> {
        let expression = self.became(expression)?;
        let table = self.context.table;
        let known = table.map(|table| table.functions.iter().map(|one| &one.name).chain(&table.columns));
        let known: Vec<&Vec<u8>> = known.into_iter().flatten().collect();
        let is_taken = |name: &Vec<u8>| {
            let new = self.functions.iter().map(|function| &function.name);
            new.chain(known.iter().copied()).any(|other| other.eq_ignore_ascii_case(name))
        };
        let mut names = (1..).map(|number| format!("{FUNCTION_COLUMN}{number}").into_bytes());
        let name = names.find(|name| !is_taken(name)).unwrap_or_default();
        self.functions.push(FunctionColumn { name: name.clone(), expression, key: key.to_vec() });
        Ok(name)
    }

    /// The definitions of the columns that keys need.
    pub fn function_columns(&self) -> Vec<Vec<u8>> {
        let of = |(at, function): (usize, &FunctionColumn)| {
            let kind = self.context.types.get(at).map(String::as_bytes).unwrap_or_default();
            let name = quoted_name(&function.name);
            let expression = &function.expression[..];
            [&name[..], b" ", kind, b" GENERATED ALWAYS AS (", expression, b") VIRTUAL INVISIBLE"].concat()
        };
        self.functions.iter().enumerate().map(of).collect()
    }

    /// What is said of a key behind its parts.
    pub fn key_options(&mut self) -> Result<(), Refusal> {
        loop {
            let from = self.at();
            if self.accept("VISIBLE") {
                self.remove_from(from);
            } else if self.accept("INVISIBLE") {
                self.replace(from..self.tokens.at, "IGNORED");
            } else if self.accept_one(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"]) {
                let _ = self.accept_mark(b'=');
                self.string()?;
                self.remove_from(from);
            } else if self.accept("COMMENT") {
                self.string()?;
            } else if self.accept("KEY_BLOCK_SIZE") {
                let _ = self.accept_mark(b'=');
                self.number()?;
            } else if self.is("USING") || self.is("TYPE") {
                self.key_kind()?;
            } else if self.is("WITH") {
                return Err(self.refusal("a parser of texts that MariaDB has not"));
            } else {
                return Ok(());
            }
        }
    }

    /// `(column, column)`.
    pub fn column_names(&mut self) -> Result<(), Refusal> {
        self.expect_mark(b'(')?;
        loop {
            self.name()?;
            if !self.accept_mark(b',') {
                return self.expect_mark(b')');
            }
        }
    }

    /// `REFERENCES table (columns) MATCH ... ON DELETE ... ON UPDATE ...`.
    pub fn references(&mut self) -> Result<(), Refusal> {
        self.expect("REFERENCES")?;
        self.qualified()?;
        if !self.is_mark(b'(') {
            return Err(self.refusal("a foreign key that names no columns of its parent"));
        }
        self.column_names()?;
        if self.accept("MATCH") && !self.accept_one(&["FULL", "PARTIAL", "SIMPLE"]) {
            return Err(self.refusal("a clause that is not known here"));
        }
        while self.accept("ON") {
            if !self.accept_one(&["DELETE", "UPDATE"]) {
                return Err(self.refusal("a clause that is not known here"));
            }
            let is_known = self.accept_one(&["RESTRICT", "CASCADE"])
                || self.accept_all(&["SET", "NULL"])
                || self.accept_all(&["SET", "DEFAULT"])
                || self.accept_all(&["NO", "ACTION"]);
            if !is_known {
                return Err(self.refusal("a clause that is not known here"));
            }
        }
        Ok(())
    }
}
