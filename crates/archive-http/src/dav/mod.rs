//! `/dav`: the archive as WebDAV has it (RFC 4918, classes 1 and 2): `/dav/files` is the tree of `system.path`, and
//! `/dav/views/NAME` that of a view.
//!
//! | module | is about |
//! |---|---|
//! | `place` | addresses to places and back |
//! | `xml` | bodies of requests |
//! | `facts` | what is at a place, and what is in it |
//! | `property`, `propfind`, `proppatch` | properties, live and dead |
//! | `condition`, `locks`, `locking` | the header `If`; locks, and who asks for them |
//! | `content`, `transfer` | GET, PUT, DELETE, MKCOL; COPY and MOVE |
//! | `aside` | what macOS puts beside files, and nobody else wants |

mod aside;
mod condition;
mod content;
mod facts;
mod locking;
mod locks;
mod place;
mod property;
mod propfind;
mod proppatch;
mod transfer;
mod xml;

use crate::asked::Asked;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{Route, Takes};
use crate::serve::Site;
use aside::Aside;
use condition::Condition;
use facts::facts_of;
use hyper::header::{HeaderName, ALLOW};
use hyper::StatusCode;
use locks::Locks;
use place::Place;
pub(crate) use property::http_date;

/// What the server has in memory for this.
#[derive(Default)]
pub(crate) struct Dav {
    locks: Locks,
    aside: Aside,
}

/// Methods of all that is below `/dav`.
pub(crate) const METHODS: &[Route] = &[
    Route { method: "OPTIONS", path: PATH, takes: Takes::Small, handler: options },
    Route { method: "GET", path: PATH, takes: Takes::Nothing, handler: content::get },
    Route { method: "PUT", path: PATH, takes: Takes::Bytes, handler: content::put },
    Route { method: "DELETE", path: PATH, takes: Takes::Nothing, handler: content::delete },
    Route { method: "MKCOL", path: PATH, takes: Takes::Small, handler: content::make_directory },
    Route { method: "COPY", path: PATH, takes: Takes::Small, handler: transfer::transfer },
    Route { method: "MOVE", path: PATH, takes: Takes::Small, handler: transfer::transfer },
    Route { method: "PROPFIND", path: PATH, takes: Takes::Small, handler: propfind::propfind },
    Route { method: "PROPPATCH", path: PATH, takes: Takes::Small, handler: proppatch::proppatch },
    Route { method: "LOCK", path: PATH, takes: Takes::Small, handler: locking::lock },
    Route { method: "UNLOCK", path: PATH, takes: Takes::Small, handler: locking::unlock },
];

const PATH: &str = "/dav/{path}";

/// The segments behind `/dav`, if the path is of it; of OPTIONS, which some ask of `/`
/// first, of that as well.
pub(crate) fn segments<'p>(method: &str, path: &'p str) -> Option<Vec<&'p str>> {
    match path.strip_prefix("/dav") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest.split('/').collect()),
        _ => (method == "OPTIONS" && path == "/").then(Vec::new),
    }
}

/// OPTIONS
fn options(_: &Site, _: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let methods: Vec<&str> = METHODS.iter().map(|route| route.method).collect();
    reply.header(ALLOW, &format!("{}, HEAD", methods.join(", ")));
    reply.header(HeaderName::from_static("dav"), "1, 2");
    // What lets Windows take it for a directory, and not for a page.
    reply.header(HeaderName::from_static("ms-author-via"), "DAV");
    Ok(())
}

/// How deep a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Zero,
    One,
    Infinity,
}

/// What the header says, if there is one.
fn depth(asked: &Asked) -> Result<Option<Depth>, Problem> {
    Ok(Some(match asked.header("depth").map(str::trim) {
        None => return Ok(None),
        Some("0") => Depth::Zero,
        Some("1") => Depth::One,
        Some(depth) if depth.eq_ignore_ascii_case("infinity") => Depth::Infinity,
        Some(_) => return Err(Problem::bad("it is 0, 1 or infinity").with_field("Depth")),
    }))
}

/// The place of a request.
fn place_of(asked: &Asked) -> Result<Place, Problem> {
    Place::of_segments(&asked.segments)
}

fn nothing_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

/// Refuses a request whose `If` is not so; the tokens that it names.
fn tokens_of(site: &Site, asked: &Asked, own: &Place) -> Result<Vec<String>, Problem> {
    let condition = Condition::of(asked)?;
    let tag_of = |place: &Place| Ok(facts_of(site, place)?.and_then(|facts| facts.tag));
    let has_lock =
        |place: &Place, token: &str| site.dav.locks.of(place).iter().any(|lock| lock.token == token);
    condition.check(own, &tag_of, &has_lock)?;
    Ok(condition.tokens())
}

impl Dav {
    /// Refuses who has not the tokens for a place that is changed with all that is in it; and if it comes or goes, for
    /// the directory that it is in.
    fn admit(&self, place: &Place, comes_or_goes: bool, tokens: &[String]) -> Result<(), Problem> {
        self.locks.admit(place, comes_or_goes, tokens)?;
        match place.parent().filter(|_| comes_or_goes) {
            Some(parent) => self.locks.admit(&parent, false, tokens),
            None => Ok(()),
        }
    }
}

/// Reads XML; what it means stays the same when it is written and read again.
#[cfg(any(test, feature = "hostile"))]
pub(crate) fn read_xml(bytes: &[u8]) {
    if let Ok(element) = xml::parse(bytes) {
        let written = element.write();
        assert_eq!(xml::parse(written.as_bytes()).ok(), Some(element), "{written}");
    }
}

/// Reads the header `If`; places that it names come back from their addresses.
#[cfg(any(test, feature = "hostile"))]
pub(crate) fn read_condition(text: &str) {
    for place in condition::places(text, "localhost") {
        assert_eq!(Place::of_url(&place.href(true), None).ok(), Some(place));
    }
}
