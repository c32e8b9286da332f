//! Asking for records: expressions, the ranges of indexes that answer them, and the answer in order.
//!
//! | file | is about |
//! |---|---|
//! | `words.rs` | an expression as words |
//! | `parse.rs` | the words as an expression of fields and values |
//! | `expression.rs` | whether a record satisfies it |
//! | `plan.rs` | which index answers it, in which ranges |
//! | `answer.rs` | the records, in their order, up to the limit; cursors |

mod answer;
mod expression;
mod parse;
mod plan;
mod words;

pub use answer::{Direction, Query};
pub(crate) use expression::Expression;
pub(crate) use parse::parse;
pub(crate) use plan::after;
