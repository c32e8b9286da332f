//! SQL as text: where statements of a dump end and what they are about, the rows of INSERTs, how names and strings are
//! written, the columns of tables. Knows no server and no connection.
//!
//! | module | is responsible for |
//! |---|---|
//! | [`splitter`] | cuts a stream into statements, as the `mariadb` client does |
//! | [`charset`] | where strings end: character sets, and what `sql_mode` says of quotes |
//! | [`tokens`] | the words of a statement |
//! | [`statement`] | what a statement is about |
//! | [`rows`], [`cut`] | the rows of an INSERT counted and looked through; one that is too long cut into several |
//! | [`mysql`] | definitions of MySQL as MariaDB takes them |
//! | [`quoting`] | names and strings as statements have them |
//! | [`columns`] | columns as information_schema has them, and statements over all of a table's |

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod charset;
pub mod columns;
pub mod cut;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
pub mod mysql;
pub mod quoting;
pub mod rows;
mod scan;
pub mod splitter;
pub mod statement;
pub mod tokens;
