//! What a view needs of the server.

use crate::sample::Part;

/// By which column rows are sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The column's name, as JSON has it.
    pub key: &'static str,
    /// Whether the largest comes first.
    pub is_descending: bool,
}

/// What is asked for a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// Beside the server and its status, which always are.
    pub parts: Vec<Part>,
    /// What a session must have somewhere; empty: anything.
    pub filter: String,
    /// Sessions that do nothing, too.
    pub with_idle: bool,
    /// Of sessions and transactions, where the server chooses those that are sent.
    pub order: Option<Order>,
}

impl Wanted {
    /// All parts, in the order of who is worst.
    pub fn all() -> Wanted {
        let parts = vec![
            Part::Sessions,
            Part::Waits,
            Part::Transactions,
            Part::Snapshots,
            Part::Statements,
            Part::Deadlocks,
            Part::Replicas,
        ];
        Wanted { parts, ..Wanted::default() }
    }
}
