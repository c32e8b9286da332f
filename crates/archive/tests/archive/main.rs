//! Archives on the simulated file system, and some on the real one.

mod beside;
mod histories;
mod hostile;
mod objects;
mod place;
mod protections;
mod queries;
mod schemas;
mod scrubs;
mod trees;
mod views;
