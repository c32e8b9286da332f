//! CREATE TABLE, CREATE INDEX, DROP INDEX.

use super::keys::Element;
use super::reader::Reader;
use super::Refusal;
use crate::quoting::quoted_name;

impl Reader<'_> {
    /// Behind CREATE TABLE.
    pub fn create_table(&mut self) -> Result<(), Refusal> {
        let _ = self.accept_all(&["IF", "NOT", "EXISTS"]);
        self.table = self.qualified()?;
        self.is_new = true;
        if self.accept("LIKE") {
            return self.qualified().map(|_| ());
        }
        if !self.is_mark(b'(') {
            return Err(self.refusal("a table that is made by a query"));
        }
        self.expect_mark(b'(')?;
        if self.accept("LIKE") {
            self.qualified()?;
            return self.expect_mark(b')');
        }
        let (mut added, end) = self.elements()?;
        added.extend(self.function_columns());
        for element in added {
            self.insert(end, [b", ", &element[..]].concat());
        }
        self.table_options()?;
        self.partitioning()?;
        match self.is_at_end() {
            true => Ok(()),
            false => Err(self.refusal("a clause that is not known here, or a query")),
        }
    }

    /// Columns, keys and constraints, up to the parenthesis that ends them: constraints that come to them, and where.
    pub fn elements(&mut self) -> Result<(Vec<Vec<u8>>, usize), Refusal> {
        let mut added = Vec::new();
        loop {
            if self.is_key() {
                if let Element::Check(place, check) = self.key()? {
                    self.own_constraint(place, &check)?;
                }
            } else {
                for check in self.column()? {
                    added.push(self.constraint(&check)?);
                }
            }
            let end = self.tokens.at;
            if !self.accept_mark(b',') {
                self.expect_mark(b')')?;
                return Ok((added, end));
            }
        }
    }

    /// A constraint that stands by itself: it gets a name if it has none.
    pub fn own_constraint(
        &mut self,
        place: std::ops::Range<usize>,
        check: &super::columns::Check,
    ) -> Result<(), Refusal> {
        let says_more = place.end > check.expression.end + 1;
        if check.name.is_none() || !check.is_enforced || says_more {
            let constraint = self.constraint(check)?;
            self.replace(place, constraint);
        }
        Ok(())
    }

    /// Behind CREATE: `[UNIQUE] INDEX name ON table (parts)`.
    pub fn create_index(&mut self) -> Result<(), Refusal> {
        let head = 0..self.tokens.at;
        let _ = self.accept_one(&["UNIQUE", "FULLTEXT", "SPATIAL"]);
        self.expect("INDEX")?;
        let name = self.name()?;
        self.key_kind()?;
        let on = self.at();
        self.expect("ON")?;
        let from = self.at();
        self.qualified()?;
        let table = from..self.tokens.at;
        self.key_parts(&name)?;
        self.key_options()?;
        let end = self.tokens.at;
        self.ways()?;
        if self.functions.is_empty() {
            return Ok(());
        }
        let of_table = self.became(table.clone())?;
        let mut text = [b"ALTER TABLE ", &of_table[..]].concat();
        for column in self.function_columns() {
            text.extend_from_slice(&[b" ADD COLUMN ", &column[..], b","].concat());
        }
        text.extend_from_slice(b" ADD");
        self.replace(head, text);
        self.replace(on..table.end, "");
        self.remove_from(end);
        Ok(())
    }

    /// ALGORITHM and LOCK: whatever the server can.
    pub fn ways(&mut self) -> Result<(), Refusal> {
        while self.way()? {}
        Ok(())
    }

    /// One of them; whether it came.
    pub fn way(&mut self) -> Result<bool, Refusal> {
        if !self.accept_one(&["ALGORITHM", "LOCK"]) {
            return Ok(false);
        }
        let _ = self.accept_mark(b'=');
        let from = self.at();
        if self.word()? != "DEFAULT" {
            self.replace(from..self.tokens.at, "DEFAULT");
        }
        Ok(true)
    }

    /// Behind DROP INDEX.
    pub fn drop_index(&mut self) -> Result<(), Refusal> {
        let from = self.at();
        let name = self.name()?;
        let of_key = from..self.tokens.at;
        self.expect("ON")?;
        let from = self.at();
        self.qualified()?;
        let table = from..self.tokens.at;
        self.ways()?;
        let columns = self.columns_of_key(&name);
        if columns.is_empty() {
            return Ok(());
        }
        let (table, key) = (self.became(table)?, self.became(of_key)?);
        let mut text = [b"ALTER TABLE ", &table[..], b" DROP INDEX ", &key].concat();
        for column in columns {
            text.extend_from_slice(&[b", DROP COLUMN ", &quoted_name(&column)[..]].concat());
        }
        self.replace(0..self.tokens.at, text);
        Ok(())
    }

    /// The columns that stand for expressions in a key.
    pub fn columns_of_key(&self, key: &[u8]) -> Vec<Vec<u8>> {
        let functions = self.context.table.map(|table| &table.functions[..]).unwrap_or_default();
        let of_key = functions.iter().filter(|function| function.key.eq_ignore_ascii_case(key));
        of_key.map(|function| function.name.clone()).collect()
    }
}
