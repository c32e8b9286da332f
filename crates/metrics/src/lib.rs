//! What running commands tell over HTTP: numbers in the text form of Prometheus, and pages that draw them.
//!
//! | module | is about |
//! |---|---|
//! | `text` | numbers with their names, kinds and labels, as text |
//! | `http` | one request, bounded in length and time, and its answer |
//! | `listen` | the socket that is asked, and threads that answer |
//! | `chart.js` | lines of charts, for pages ([`page`]) |
//!
//! It needs no library: who asks is a Prometheus or a browser on the same machine, or what stands before it.

#![deny(missing_docs, unnameable_types)]
// The allocator that tests count with is the only one.
#![cfg_attr(not(test), forbid(unsafe_code))]

#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod http;
mod listen;
mod text;

pub use http::{answer, Answer, Peer, Site};
pub use listen::{listen, Listen, Listening};
pub use text::{Family, Kind};

/// A page for people, which needs nothing from elsewhere: the line `// chart.js` in it becomes what draws charts.
pub fn page(html: &str) -> Answer {
    Answer::html(html.replacen("// chart.js\n", include_str!("chart.js"), 1))
}
