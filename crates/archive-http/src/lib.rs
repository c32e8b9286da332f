//! An archive by HTTP: an API of JSON, and of bytes that are streamed both ways, and WebDAV. Many connections are one
//! thread's; what asks the archive, which blocks, is done on threads, one for each request that is being answered.
//!
//! | module | is about |
//! |---|---|
//! | `serve` | listening, connections, ending in order |
//! | `patient` | a socket whose peer may not take its bytes slower than it must |
//! | `door` | who may ask: password, host, origin |
//! | `routes` | which paths and methods there are |
//! | `exchange` | a request from its head to its answer: reading bodies, giving the work to a thread |
//! | `asked`, `incoming` | what is asked for: path, parameters, body |
//! | `reply` | what is answered, while it is being made |
//! | `problem` | what is answered if something fails |
//! | `checks` | whether bytes that come are those that were meant |
//! | `conditions` | If-Match, If-None-Match, Range |
//! | `objects`, `uploads` | what the API does: objects, at once and in several requests |
//! | `asking`, `keeping`, `jobs` | queries, views; the schema; gc and scrub |
//! | `dav/` | WebDAV |
//! | `announcement` | a file that says where the server of an archive is |
//!
//! Whatever the size of an object, some hundred KiB of it are in memory here, besides what the archive itself takes.
//! `docs/archive.md` is for users, `docs/design/archive.md` says how it works.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_code)]

mod announcement;
mod asked;
mod asking;
mod checks;
mod conditions;
mod dav;
mod door;
mod exchange;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod incoming;
mod jobs;
mod keeping;
mod objects;
mod patient;
mod problem;
mod reply;
mod routes;
mod serve;
mod uploads;

pub use announcement::server_of;
pub use door::Login;
pub use serve::{Log, ServeError, Server, Settings};
