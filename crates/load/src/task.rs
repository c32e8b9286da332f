//! What a worker is given: rows for a table, or a statement that defines something of it.

use super::queue::Work;
use super::session::SessionState;
use std::sync::Arc;
use teak_sql::columns::Column;
use teak_sql::cut::Part;
use teak_sql::quoting::quoted_name;
use teak_sql::statement::TableName;

/// A table of the server, with what decides how rows may be inserted.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// As the server has it now, such as `InnoDB`. Empty: there is no such base table.
    pub engine: String,
    pub transactional: bool,
    /// Columns that an INSERT without a list of columns has values for.
    pub columns: Vec<Vec<u8>>,
    pub auto_increment: Option<Vec<u8>>,
    /// A default comes from a sequence, so the order of inserts shows.
    pub draws_numbers: bool,
    /// Rows go elsewhere too, or depend on other tables' rows.
    pub has_triggers: bool,
    pub has_foreign_keys: bool,
    /// All columns, if values will be compared.
    pub definition: Vec<Column>,
}

impl Facts {
    /// Nothing is stored: to insert again does no harm.
    pub fn is_blackhole(&self) -> bool {
        self.engine.eq_ignore_ascii_case("BLACKHOLE")
    }

    /// Whether a statement that failed midway leaves nothing behind, so that it can be tried again in parts.
    pub fn can_repeat(&self) -> bool {
        self.transactional || self.is_blackhole()
    }
}

/// A table as the dump names it, with its database.
#[derive(Debug, PartialEq)]
pub struct Table {
    pub lane: usize,
    pub database: Vec<u8>,
    pub name: Vec<u8>,
}

impl Table {
    /// With quotes, for statements.
    pub fn quoted(&self) -> Vec<u8> {
        [quoted_name(&self.database), quoted_name(&self.name)].join(&b'.')
    }

    /// For messages and for the records of progress.
    pub fn shown(&self) -> String {
        format!("{}.{}", String::from_utf8_lossy(&self.database), String::from_utf8_lossy(&self.name))
    }

    pub fn of(lane: usize, name: &TableName, default: &[u8]) -> Table {
        Table { lane, database: name.0.clone().unwrap_or_else(|| default.to_vec()), name: name.1.clone() }
    }
}

/// Where statements come from.
#[derive(Debug)]
pub struct Origin {
    /// The place among the sources.
    pub index: usize,
    pub name: String,
    /// The database that no statement may name, since all go into another.
    pub avoided: Option<String>,
}

/// A statement of the dump inside a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    pub line: u64,
    pub offset: u64,
    /// Its rows, or all of it, in the unit's text.
    pub from: usize,
    pub to: usize,
    pub rows: u64,
}

/// One statement as it is sent: one of the dump, or several INSERTs made into one.
///
/// ```text
/// INSERT INTO `t` VALUES (1,'a'),(2,'b'),(3,'c')
/// |<----- head --------->|piece  |piece  |piece|      (the comma belongs to none)
/// ```
#[derive(Debug)]
pub struct Unit {
    pub text: Vec<u8>,
    /// Length of what all pieces have in common; 0 if this is one statement as the dump has it.
    pub head: usize,
    pub pieces: Vec<Piece>,
}

impl Unit {
    /// A statement as the dump has it.
    pub fn whole(text: &[u8], line: u64, offset: u64, rows: u64) -> Unit {
        Unit {
            text: text.to_vec(),
            head: 0,
            pieces: vec![Piece { line, offset, from: 0, to: text.len(), rows }],
        }
    }

    /// Some rows of a statement that was cut; the others follow in the same task.
    pub fn part(line: u64, offset: u64, part: Part) -> Unit {
        let piece = Piece { line, offset, from: 0, to: part.text.len(), rows: part.rows };
        Unit { text: part.text, head: 0, pieces: vec![piece] }
    }

    /// An INSERT whose rows begin at `head`, to which others can be joined.
    pub fn joinable(text: &[u8], head: usize, line: u64, offset: u64, rows: u64) -> Unit {
        Unit {
            text: text.to_vec(),
            head,
            pieces: vec![Piece { line, offset, from: head, to: text.len(), rows }],
        }
    }

    /// Appends the rows of another INSERT, if it begins in the same way and the whole stays under `limit` bytes.
    pub fn join(&mut self, text: &[u8], piece: Piece, limit: usize) -> bool {
        let head = piece.from;
        if self.head == 0
            || head != self.head
            || text[..head] != self.text[..head]
            || self.text.len() + text.len() > limit
        {
            return false;
        }
        self.text.push(b',');
        let from = self.text.len();
        self.text.extend_from_slice(&text[head..]);
        self.pieces.push(Piece { from, to: self.text.len(), ..piece });
        true
    }

    /// The statement of the dump.
    pub fn statement(&self, piece: &Piece) -> Vec<u8> {
        [&self.text[..self.head], &self.text[piece.from..piece.to]].concat()
    }
}

/// What a task does.
#[derive(Debug)]
pub enum Action {
    /// Inserts rows, in one transaction if the engine has them.
    Rows(Arc<Facts>),
    /// Creates the table.
    Create,
    /// `ALTER TABLE ... DISABLE KEYS`: as to keys that were put off, it says the same.
    DisableKeys,
    /// Any other statement about the table. Keys that were put off are built before.
    Define,
}

/// What a worker does at once.
#[derive(Debug)]
pub struct Task {
    pub table: Arc<Table>,
    pub origin: Arc<Origin>,
    pub session: SessionState,
    pub action: Action,
    pub barrier: bool,
    /// A former run began this and may have ended it.
    pub maybe_done: bool,
    /// A former run inserted these rows: they are only to be summed for the check.
    pub loaded: bool,
    pub units: Vec<Unit>,
}

impl Task {
    /// The first and the last statement, by their offsets in the source.
    pub fn range(&self) -> (u64, u64) {
        let first = self.units.first().and_then(|unit| unit.pieces.first());
        let last = self.units.last().and_then(|unit| unit.pieces.last());
        (first.map_or(0, |piece| piece.offset), last.map_or(0, |piece| piece.offset))
    }

    /// Whether its units are parts of one statement of the dump: all of them are carried out, or none.
    pub fn is_cut(&self) -> bool {
        self.units.len() > 1 && self.range().0 == self.range().1
    }

    pub fn rows(&self) -> u64 {
        self.units.iter().flat_map(|unit| &unit.pieces).map(|piece| piece.rows).sum()
    }
}

impl Work for Task {
    fn lane(&self) -> usize {
        self.table.lane
    }

    fn is_barrier(&self) -> bool {
        self.barrier
    }

    fn bytes(&self) -> usize {
        self.units.iter().map(|unit| unit.text.len() + unit.pieces.len() * size_of::<Piece>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_statements_can_be_taken_apart() {
        let texts =
            [&b"INSERT INTO t VALUES (1)"[..], b"INSERT INTO t VALUES (2),(3)", b"INSERT INTO t VALUES  (4)"];
        let head = texts[0].len() - 3;
        let mut unit = Unit::joinable(texts[0], head, 1, 0, 1);
        let piece =
            |text: &[u8], line| Piece { line, offset: line * 10, from: head, to: text.len(), rows: 1 };
        assert!(unit.join(texts[1], piece(texts[1], 2), 100));
        assert!(unit.join(texts[2], piece(texts[2], 3), 100));
        assert!(!unit.join(texts[0], piece(texts[0], 4), 30));
        assert!(!unit.join(b"INSERT INTO u VALUES (1)", piece(texts[0], 4), 100));
        assert!(!Unit::whole(texts[0], 1, 0, 1).join(texts[0], piece(texts[0], 4), 100));
        assert_eq!(unit.text, b"INSERT INTO t VALUES (1),(2),(3), (4)");
        let apart: Vec<_> = unit.pieces.iter().map(|piece| unit.statement(piece)).collect();
        assert_eq!(apart, texts);
    }
}
