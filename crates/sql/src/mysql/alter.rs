//! ALTER TABLE.
//!
//! The columns that stand for expressions in keys must stay behind all others, since those of the source have their
//! places in rows: what is added at the end is added before them. So it is followed which column is the last one,
//! as a server finds the places: first columns go and change where they are, then those that come, or move, get
//! theirs.

use super::columns::Check;
use super::keys::Element;
use super::options::{Options, Taken};
use super::reader::Reader;
use super::Refusal;
use crate::quoting::quoted_name;
use crate::tokens::{Token, Tokens};

/// Where a column comes.
#[derive(Debug, PartialEq, Eq)]
enum Position {
    /// Behind all others, or where it was.
    Same,
    First,
    After(Vec<u8>),
}

/// What happens to a column.
#[derive(Debug)]
enum Change {
    Dropped(Vec<u8>),
    /// It comes; and where in the statement its position would be said.
    Added(Vec<u8>, Position, usize),
    Changed(Vec<u8>, Vec<u8>, Position),
}

/// What was found so far.
#[derive(Default)]
struct Alter {
    changes: Vec<Change>,
    options: Options,
}

impl Reader<'_> {
    /// Behind ALTER TABLE.
    pub fn alter_table(&mut self) -> Result<(), Refusal> {
        self.table = self.qualified()?;
        self.checks = self.checks_with_numbers();
        let mut alter = Alter::default();
        let (mut comma, mut has_kept) = (None, false);
        let mut end = self.tokens.at;
        while !self.is_at_end() {
            if self.partitioning()? || self.partition_change()?.is_some() {
                has_kept = true;
            } else {
                let taken = self.specification(&mut alter)?;
                self.keep_list(taken, &mut comma, &mut has_kept);
                end = self.tokens.at;
            }
            let from = self.at();
            if self.accept_mark(b',') {
                comma = Some(from..self.tokens.at);
            } else if !self.is("PARTITION") && !self.is("REMOVE") {
                self.expect_end()?;
            }
        }
        self.end_of_options(&alter.options)?;
        self.keep_order(&alter.changes)?;
        for column in self.function_columns() {
            self.insert(end, [b", ADD COLUMN ", &column[..]].concat());
        }
        Ok(())
    }

    /// The highest number of the table's constraints that got their names from the server, but for those that the
    /// statement drops, wherever it does so.
    fn checks_with_numbers(&self) -> usize {
        let mut dropped = Vec::new();
        let mut tokens = self.tokens.clone();
        while tokens.any(|token| token.is("DROP")) {
            if tokens.accept("CHECK") || tokens.accept("CONSTRAINT") {
                dropped.extend(tokens.name());
            }
        }
        let prefix = format!("{}_chk_", String::from_utf8_lossy(&self.table));
        let checks = self.context.table.map(|table| &table.checks[..]).unwrap_or_default();
        let names = checks.iter().map(|(name, _)| name);
        let kept =
            names.filter(|name| !dropped.iter().any(|other: &Vec<u8>| other.eq_ignore_ascii_case(name)));
        let number = |name: &Vec<u8>| String::from_utf8_lossy(name).strip_prefix(&prefix)?.parse().ok();
        kept.filter_map(number).max().unwrap_or(0)
    }

    /// One thing that is to be done.
    fn specification(&mut self, alter: &mut Alter) -> Result<Taken, Refusal> {
        if self.way()? || self.accept("FORCE") {
            return Ok(Taken::Kept);
        }
        if self.accept("ADD") {
            return self.add(alter);
        }
        if self.accept("DROP") {
            return self.drop(alter);
        }
        if self.accept("ALTER") {
            return self.alter_part();
        }
        if self.accept("CHANGE") || self.is("MODIFY") {
            return self.change(alter);
        }
        if self.accept("RENAME") {
            return self.rename(alter);
        }
        if self.accept_one(&["ENABLE", "DISABLE"]) {
            self.expect("KEYS")?;
            return Ok(Taken::Kept);
        }
        if self.accept_all(&["ORDER", "BY"]) {
            loop {
                self.name()?;
                let _ = self.accept_one(&["ASC", "DESC"]);
                if !self.accept_mark(b',') {
                    return Ok(Taken::Kept);
                }
            }
        }
        let from = self.at();
        if self.accept_one(&["WITH", "WITHOUT"]) {
            self.expect("VALIDATION")?;
            self.remove_from(from);
            return Ok(Taken::Removed);
        }
        if self.accept_one(&["SECONDARY_LOAD", "SECONDARY_UNLOAD"]) {
            self.remove_from(from);
            return Ok(Taken::Removed);
        }
        if self.accept_all(&["CONVERT", "TO"]) {
            return self.convert();
        }
        let mut all = None;
        while let Some(taken) = self.table_option(&mut alter.options)? {
            let has_kept = taken == Taken::Kept || all == Some(Taken::Kept);
            all = Some(if has_kept { Taken::Kept } else { Taken::Removed });
        }
        all.ok_or_else(|| self.refusal("a clause that is not known here"))
    }

    /// Behind CONVERT TO.
    fn convert(&mut self) -> Result<Taken, Refusal> {
        if !self.charset_keyword() {
            return Err(self.refusal("a clause that is not known here"));
        }
        let is_utf8mb4 = self.charset()?;
        let at = self.tokens.at;
        let has_documents = self.context.table.is_some_and(|table| {
            table.checks.iter().any(|(_, demand)| demand.to_ascii_lowercase().starts_with(b"json_valid("))
        });
        if has_documents && !is_utf8mb4 {
            return Err(self.refusal("another character set of a table whose JSON is text in MariaDB"));
        }
        if self.accept("COLLATE") {
            self.collation()?;
        } else if is_utf8mb4 {
            self.with_default_collation(at)?;
        }
        Ok(Taken::Kept)
    }

    fn add(&mut self, alter: &mut Alter) -> Result<Taken, Refusal> {
        if self.is_key() {
            if let Element::Check(place, check) = self.key()? {
                self.own_constraint(place, &check)?;
            }
            return Ok(Taken::Kept);
        }
        let _ = self.accept("COLUMN");
        if self.is_mark(b'(') {
            if self.context.table.is_some_and(|table| !table.functions.is_empty()) {
                return Err(self.refusal("columns in parentheses for a table with a key of an expression"));
            }
            self.expect_mark(b'(')?;
            let (added, end) = self.elements()?;
            for constraint in added {
                self.insert(end, [b", ", &constraint[..]].concat());
            }
            return Ok(Taken::Kept);
        }
        let name = self.name()?;
        let checks = self.column_behind_name(name.clone())?;
        let at = self.tokens.at;
        let position = self.position()?;
        alter.changes.push(Change::Added(name, position, at));
        self.add_constraints(&checks)?;
        Ok(Taken::Kept)
    }

    /// Those that a column of the statement brings.
    fn add_constraints(&mut self, checks: &[Check]) -> Result<(), Refusal> {
        for check in checks {
            let constraint = self.constraint(check)?;
            self.insert(self.tokens.at, [b", ADD ", &constraint[..]].concat());
        }
        Ok(())
    }

    fn position(&mut self) -> Result<Position, Refusal> {
        if self.accept("FIRST") {
            return Ok(Position::First);
        }
        match self.accept("AFTER") {
            true => Ok(Position::After(self.name()?)),
            false => Ok(Position::Same),
        }
    }

    /// `CHANGE [COLUMN] old new definition`, whose first word is taken, or `MODIFY [COLUMN] name definition`.
    fn change(&mut self, alter: &mut Alter) -> Result<Taken, Refusal> {
        let is_modified = self.accept("MODIFY");
        let _ = self.accept("COLUMN");
        self.must_not_be_computed_from()?;
        let old = self.name()?;
        let new = if is_modified { old.clone() } else { self.name()? };
        let checks = self.column_behind_name(new.clone())?;
        let position = self.position()?;
        alter.changes.push(Change::Changed(old, new, position));
        self.add_constraints(&checks)?;
        Ok(Taken::Kept)
    }

    /// The type of an expression in a key may become another one when a column does.
    fn must_not_be_computed_from(&self) -> Result<(), Refusal> {
        let Some(name) = self.tokens.clone().name() else { return Ok(()) };
        let functions = self.context.table.map(|table| &table.functions[..]).unwrap_or_default();
        let names_it = |expression: &[u8]| {
            Tokens::new(expression, crate::charset::Dialect::OWN).any(|token| match token {
                Token::Word(word) => word.eq_ignore_ascii_case(&name),
                Token::Name(other) => other.eq_ignore_ascii_case(&name),
                _ => false,
            })
        };
        match functions.iter().find(|function| names_it(&function.expression)) {
            Some(function) => Err(self.refusal(&format!(
                "a change of a column that is in the expression of the key `{}`",
                String::from_utf8_lossy(&function.key)
            ))),
            None => Ok(()),
        }
    }

    fn drop(&mut self, alter: &mut Alter) -> Result<Taken, Refusal> {
        if self.accept_all(&["PRIMARY", "KEY"]) {
            return Ok(Taken::Kept);
        }
        if self.accept_all(&["FOREIGN", "KEY"]) {
            self.name()?;
            return Ok(Taken::Kept);
        }
        if self.accept_one(&["INDEX", "KEY"]) {
            let name = self.name()?;
            for column in self.columns_of_key(&name) {
                self.insert(self.tokens.at, [b", DROP COLUMN ", &quoted_name(&column)[..]].concat());
            }
            return Ok(Taken::Kept);
        }
        let from = self.at();
        if self.accept("CHECK") {
            self.replace(from..self.tokens.at, "CONSTRAINT");
            self.known_check()?;
            return Ok(Taken::Kept);
        }
        if self.accept("CONSTRAINT") {
            self.name()?;
            return Ok(Taken::Kept);
        }
        let _ = self.accept("COLUMN");
        self.must_not_be_computed_from()?;
        let name = self.name()?;
        let _ = self.accept_one(&["RESTRICT", "CASCADE"]);
        alter.changes.push(Change::Dropped(name));
        Ok(Taken::Kept)
    }

    /// A constraint that the table must have; what it demands.
    fn known_check(&mut self) -> Result<Vec<u8>, Refusal> {
        let refusal = self.refusal("a constraint that the table has not in MariaDB");
        let name = self.name()?;
        let checks = self.context.table.map(|table| &table.checks[..]).unwrap_or_default();
        let found = checks.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name));
        found.map(|(_, demand)| demand.clone()).ok_or(refusal)
    }

    /// Behind ALTER.
    fn alter_part(&mut self) -> Result<Taken, Refusal> {
        if self.accept("INDEX") {
            self.name()?;
            let from = self.at();
            let becomes = match self.word()?.as_str() {
                "VISIBLE" => "NOT IGNORED",
                "INVISIBLE" => "IGNORED",
                _ => return Err(self.refusal("a clause that is not known here")),
            };
            self.replace(from..self.tokens.at, becomes);
            return Ok(Taken::Kept);
        }
        if self.is("CHECK") || self.is("CONSTRAINT") {
            return self.enforce();
        }
        let _ = self.accept("COLUMN");
        self.name()?;
        if self.accept_all(&["DROP", "DEFAULT"]) {
            return Ok(Taken::Kept);
        }
        if !self.accept_all(&["SET", "DEFAULT"]) {
            return Err(self.refusal("a column that is shown or hidden: that takes its whole definition"));
        }
        self.default_value()?;
        Ok(Taken::Kept)
    }

    /// `CHECK name [NOT] ENFORCED`, behind ALTER.
    fn enforce(&mut self) -> Result<Taken, Refusal> {
        // From ALTER on.
        let from = self.tokens.at - "ALTER".len();
        self.word()?;
        let name_from = self.at();
        let demand = self.known_check()?;
        let name = self.tokens.text[name_from..self.tokens.at].to_vec();
        if !self.accept_all(&["NOT", "ENFORCED"]) {
            return Err(self.refusal("a constraint that is to be enforced from now on"));
        }
        if !demand.to_ascii_lowercase().starts_with(b"true or ") && !demand.starts_with(b"1 or ") {
            let add = [b"CONSTRAINT ", &name[..], b" CHECK (TRUE OR (", &demand, b"))"].concat();
            self.replace(from..self.tokens.at, [b"DROP CONSTRAINT ", &name[..], b", ADD ", &add].concat());
            return Ok(Taken::Kept);
        }
        self.remove_from(from);
        Ok(Taken::Removed)
    }

    fn rename(&mut self, alter: &mut Alter) -> Result<Taken, Refusal> {
        if self.accept("COLUMN") {
            self.must_not_be_computed_from()?;
            let old = self.name()?;
            self.expect("TO")?;
            let new = self.name()?;
            alter.changes.push(Change::Changed(old, new, Position::Same));
        } else if self.accept_one(&["INDEX", "KEY"]) {
            self.name()?;
            self.expect("TO")?;
            self.name()?;
        } else {
            let _ = self.accept_one(&["TO", "AS"]) || self.accept_mark(b'=');
            self.qualified()?;
        }
        Ok(Taken::Kept)
    }

    /// What comes behind all others comes before the columns that stand for expressions.
    fn keep_order(&mut self, changes: &[Change]) -> Result<(), Refusal> {
        let Some(table) = self.context.table.filter(|table| !table.functions.is_empty()) else {
            return Ok(());
        };
        let mut columns = table.columns.clone();
        let is = |one: &[u8]| {
            let one = one.to_vec();
            move |other: &Vec<u8>| other.eq_ignore_ascii_case(&one)
        };
        for change in changes {
            match change {
                Change::Dropped(name) => columns.retain(|other| !is(name)(other)),
                Change::Changed(old, new, Position::Same) => {
                    columns.iter_mut().filter(|other| is(old)(other)).for_each(|other| other.clone_from(new));
                }
                Change::Changed(old, ..) => columns.retain(|other| !is(old)(other)),
                Change::Added(..) => (),
            }
        }
        for change in changes {
            let (name, position) = match change {
                Change::Added(name, position, _) | Change::Changed(_, name, position) => (name, position),
                Change::Dropped(_) => continue,
            };
            let at = match (change, position) {
                (Change::Added(_, _, place), Position::Same) => {
                    let Some(last) = columns.last() else {
                        return Err(self.refusal("no column that is left"));
                    };
                    self.insert(*place, [b" AFTER ", &quoted_name(last)[..]].concat());
                    columns.len()
                }
                (_, Position::Same) => continue,
                (_, Position::First) => 0,
                (_, Position::After(before)) => match columns.iter().position(is(before)) {
                    Some(at) => at + 1,
                    None => return Err(self.refusal("a place behind a column that is not known here")),
                },
            };
            columns.insert(at, name.clone());
        }
        Ok(())
    }
}
