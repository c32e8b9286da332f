//! Definitions of MySQL 8 and later as MariaDB takes them: statements that change definitions, rewritten.
//!
//! A statement is read to its end by MySQL's grammar, with each option of each clause, and places in it are
//! changed. What is not known here is an error: nothing is passed on in the hope that it means the same. Of views,
//! triggers and routines only collations, `->` and comments are looked at, as their bodies are any SQL: who carries
//! them out refuses what it does not know.
//!
//! | MySQL | MariaDB |
//! |---|---|
//! | `/*!80016 ... */`, from 5.7 on | what is in it, which MariaDB would skip |
//! | `utf8mb4_0900_...`, `CHARACTER SET utf8mb4` alone | the nearest collation of Unicode 14 that does not pad |
//! | `VECTOR(n)`, `GEOMCOLLECTION`, `SRID n` | VARBINARY of four times n, GEOMETRYCOLLECTION, `REF_SYSTEM_ID = n` |
//! | keys of `(expression)` | keys of invisible columns behind the others, which are computed so |
//! | `INVISIBLE` of keys, of columns | `IGNORED`; the same, unless it is NOT NULL without a default |
//! | `CHECK` of a column, without a name, `NOT ENFORCED` | one of the table, MySQL's name, `CHECK (TRUE OR ...)` |
//! | `a -> 'path'`, `a ->> 'path'` | the functions that they stand for |
//! | `ENGINE` | the configured one; none of partitions |
//! | `ALGORITHM`, `LOCK` | whatever the server can |
//! | `NOT NULL` of computed columns, `ENCRYPTION`, `COMPRESSION`, `TABLESPACE` | left out |
//! | `SECONDARY_ENGINE`, attributes of engines, `COLUMN_FORMAT`, `STORAGE` | left out |
//! | `VALIDATION`, `START TRANSACTION`; `REFERENCES` of columns before 9.0 | left out |
//!
//! | file | is about |
//! |---|---|
//! | `reader.rs`, `comments.rs` | tokens, and changes of places; comments that servers carry out |
//! | `collations.rs` | collations of Unicode 9 |
//! | `expressions.rs`, `functions.rs` | expressions; functions that mean the same to both |
//! | `types.rs`, `columns.rs` | types; columns |
//! | `keys.rs` | keys, foreign keys, constraints |
//! | `options.rs`, `partitions.rs` | options of tables and databases; partitions |
//! | `tables.rs`, `alter.rs` | CREATE TABLE, CREATE and DROP INDEX; ALTER TABLE |

mod alter;
mod collations;
mod columns;
mod comments;
mod expressions;
mod functions;
mod keys;
mod options;
mod partitions;
mod reader;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub use collations::{nearest, nearest_of_number};
pub use types::{vector_type, VECTOR_DIMENSIONS};

use super::charset::Dialect;
use reader::Reader;

/// What the columns that stand for the expressions of keys are called, before their number.
pub const FUNCTION_COLUMN: &str = "teak_function_";

/// Why a statement has no form that MariaDB takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}, at {near:?}")]
pub struct Refusal {
    /// What is not known, or has no counterpart.
    pub why: String,
    /// Where in the statement.
    pub near: String,
}

/// What a statement depends on beside its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'c> {
    /// What tables are made with in place of the engine that statements name.
    pub engine: Option<&'c str>,
    /// The number of the collation that `CHARACTER SET utf8mb4` means; None: that of both families.
    pub utf8mb4_collation: Option<u16>,
    /// REFERENCES behind a column makes a foreign key, as it does since MySQL 9.0.
    pub has_inline_references: bool,
    /// The table that ALTER TABLE, CREATE INDEX or DROP INDEX is about, as it is in MariaDB before.
    pub table: Option<&'c KnownTable>,
    /// The types of expressions in keys, in the order of the statement, as far as they are known.
    pub types: &'c [String],
}

/// A table of MariaDB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTable {
    /// The names of all of its columns, in order, but for those of `functions`.
    pub columns: Vec<Vec<u8>>,
    /// Columns that stand for expressions in keys.
    pub functions: Vec<FunctionColumn>,
    /// The names of its keys.
    pub keys: Vec<Vec<u8>>,
    /// Its constraints, by their names, and what they demand.
    pub checks: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A column that stands for an expression in a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionColumn {
    /// Its name.
    pub name: Vec<u8>,
    /// What it is computed by.
    pub expression: Vec<u8>,
    /// The key that it is in.
    pub key: Vec<u8>,
}

/// What is needed to tell the types of expressions in keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    /// The columns of the table that is made, without anything but their types, and its character set: what stands
    /// behind `CREATE TEMPORARY TABLE name`. None: the table is there.
    pub columns: Option<Vec<u8>>,
    /// The expressions.
    pub expressions: Vec<Vec<u8>>,
}

/// A statement as MariaDB takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// As it is.
    Same,
    /// As this.
    Other(Vec<u8>),
    /// It has keys of expressions, whose types must be known.
    NeedsTypes(Probe),
}

/// What a statement that changes definitions is in MariaDB. One that has nothing that only MySQL has is the same.
pub fn rewritten(text: &[u8], dialect: Dialect, context: &Context<'_>) -> Result<Rewritten, Refusal> {
    let comments = comments::read(text, dialect)?;
    let mut reader = Reader::new(text, dialect, context);
    reader.statement()?;
    reader.finish(&comments)
}

impl Reader<'_> {
    /// All of it.
    fn statement(&mut self) -> Result<(), Refusal> {
        if self.accept("CREATE") {
            return self.create();
        }
        if self.accept("ALTER") {
            if self.accept("TABLE") {
                return self.alter_table();
            }
            if self.accept("DATABASE") || self.accept("SCHEMA") {
                return self.alter_database();
            }
            return self.head_of_body(&["VIEW", "PROCEDURE", "FUNCTION"]);
        }
        if self.accept("DROP") {
            if self.accept("INDEX") {
                return self.drop_index();
            }
            return self.plain(&[
                "TABLE",
                "TABLES",
                "DATABASE",
                "SCHEMA",
                "VIEW",
                "TRIGGER",
                "PROCEDURE",
                "FUNCTION",
            ]);
        }
        if self.accept("RENAME") {
            return self.plain(&["TABLE", "TABLES"]);
        }
        if self.accept("TRUNCATE") {
            self.rest();
            return Ok(());
        }
        Err(self.refusal("a statement of this kind"))
    }

    /// A statement about one of these that names what it is about, and says no more.
    fn plain(&mut self, kinds: &[&str]) -> Result<(), Refusal> {
        if !kinds.iter().any(|kind| self.accept(kind)) {
            return Err(self.refusal("a statement about this"));
        }
        self.rest();
        Ok(())
    }

    /// Up to the end, which says nothing that would mean something else.
    fn rest(&mut self) {
        while self.tokens.next().is_some() {}
    }

    fn create(&mut self) -> Result<(), Refusal> {
        if self.accept("TABLE") {
            return self.create_table();
        }
        if self.accept("DATABASE") || self.accept("SCHEMA") {
            return self.create_database();
        }
        let is_index =
            |reader: &Self| ["UNIQUE", "FULLTEXT", "SPATIAL", "INDEX"].iter().any(|word| reader.is(word));
        if is_index(self) {
            return self.create_index();
        }
        if self.accept("OR") {
            self.expect("REPLACE")?;
        }
        self.head_of_body(&["VIEW", "TRIGGER", "PROCEDURE", "FUNCTION"])
    }

    /// What stands before a kind of thing that has a body, and all of the body.
    fn head_of_body(&mut self, kinds: &[&str]) -> Result<(), Refusal> {
        loop {
            if self.accept("ALGORITHM") {
                self.expect_mark(b'=')?;
                self.word()?;
            } else if self.accept("DEFINER") {
                self.expect_mark(b'=')?;
                self.account()?;
            } else if self.accept("SQL") {
                self.expect("SECURITY")?;
                self.word()?;
            } else {
                break;
            }
        }
        if !kinds.iter().any(|kind| self.accept(kind)) {
            return Err(self.refusal("a statement about this"));
        }
        self.body()
    }
}
