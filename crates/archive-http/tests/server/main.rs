//! A server over real sockets: what it answers, what it refuses, how it ends.

#![allow(missing_docs)]

mod api;
mod client;
mod clients;
mod dav;
mod documented;
mod endings;
mod hostile;
mod uploads;
