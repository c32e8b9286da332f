//! How Teak's commands speak to whoever started them: the line that tells how far they are, amounts as people read
//! them, the signals that end them, what systemd is told, and their exit statuses.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod amounts;
pub mod service;
pub mod signals;
mod status;
pub mod terminal;

pub use status::Status;
