//! What was measured, for people: a table on the terminal, and a page.

mod page;
mod terminal;

pub use page::html;
pub use terminal::{line, text};
