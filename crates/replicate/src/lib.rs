//! Follows servers of MariaDB and MySQL: logs as a server sends them, and how far a source was followed.

#![deny(missing_docs, unnameable_types)]
#![forbid(unsafe_code)]

mod configuration;
mod dump;
mod events;
mod failure;
mod keys;
mod position;
mod routes;
mod session;
mod statement;
mod steps;
mod target;

pub use configuration::Wrong;
pub use dump::{Asked, Beginning, Dump, DumpError, Log, Sent, HEARTBEAT};
pub use position::{Gtid, Position};
