//! LOCK and UNLOCK.

use super::aside::is_aside;
use super::facts::facts_of;
use super::locks::{lasts, Lock, Wish};
use super::place::Place;
use super::property::active;
use super::propfind::{write, XML_TYPE};
use super::xml::{parse, Element};
use super::{depth, place_of, tokens_of, Depth};
use crate::asked::Asked;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::{HeaderName, CONTENT_TYPE};
use hyper::StatusCode;
use teak_archive::{Error, Metadata};

const TOKEN: HeaderName = HeaderName::from_static("lock-token");
/// Of who has a lock, in bytes of XML.
const MOST_OWNER: usize = 4 << 10;

/// LOCK: of a place where nothing is, it makes an empty file; without a body, a lock that is there lasts longer.
pub(super) fn lock(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let lasts = lasts(asked.header("timeout"));
    let tokens = tokens_of(site, asked, &place)?;
    if asked.body.bytes().is_empty() {
        let none = || {
            Problem::new(StatusCode::PRECONDITION_FAILED, "no lock of this path is named").with_field("If")
        };
        return tell(reply, &site.dav.locks.refresh(&place, &tokens, lasts).ok_or_else(none)?);
    }
    let is_deep = match depth(asked)? {
        Some(Depth::Zero) => false,
        Some(Depth::One) => return Err(Problem::bad("a lock has depth 0 or infinity").with_field("Depth")),
        _ => true,
    };
    let (is_exclusive, owner) = wish(&parse(asked.body.bytes())?)?;
    let is_new = facts_of(site, &place)?.is_none();
    if is_new {
        site.dav.admit(&place, true, &tokens)?;
    }
    let lock = site.dav.locks.lock(Wish { place: place.clone(), is_deep, is_exclusive, owner, lasts })?;
    if is_new {
        if let Err(problem) = make_file(site, &place) {
            site.dav.locks.unlock(&place, &lock.token);
            return Err(problem);
        }
        reply.status(StatusCode::CREATED);
    }
    reply.header(TOKEN, &format!("<{}>", lock.token));
    tell(reply, &lock)
}

fn tell(reply: &mut Reply, lock: &Lock) -> Result<(), Problem> {
    reply.header(CONTENT_TYPE, XML_TYPE);
    let out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\"><D:lockdiscovery>{}\
         </D:lockdiscovery></D:prop>\n",
        active(lock)
    );
    Ok(write(reply, &out)?)
}

/// Whether it is to be exclusive, and XML of who asks.
fn wish(root: &Element) -> Result<(bool, String), Problem> {
    let expected = || Problem::bad("a lockinfo with a scope is expected, and the type write");
    let scope = root.dav("lockscope").filter(|_| root.name.is_dav("lockinfo")).ok_or_else(expected)?;
    root.dav("locktype").and_then(|of_type| of_type.dav("write")).ok_or_else(expected)?;
    let is_exclusive = scope.dav("exclusive").is_some();
    if !is_exclusive && scope.dav("shared").is_none() {
        return Err(expected());
    }
    let owner = root.dav("owner").map(Element::write).unwrap_or_default();
    match owner.len() > MOST_OWNER {
        true => Err(Problem::bad(format!("an owner has {MOST_OWNER} bytes at most"))),
        false => Ok((is_exclusive, owner)),
    }
}

/// An empty one, unless something has come there.
fn make_file(site: &Site, place: &Place) -> Result<(), Problem> {
    if is_aside(place) {
        site.dav.aside.put(place, Vec::new(), site.archive.now());
        return Ok(());
    }
    let (root, path) = place.to_change()?;
    let check = |node: Option<&_>| match node {
        None => Ok(()),
        Some(_) => Err(Error::Precondition(format!("{path} is there already"))),
    };
    let made = site.archive.put_at(root, path, &mut std::io::empty(), &Metadata::default(), &check);
    match made {
        Ok(_) | Err(Error::Precondition(_)) => Ok(()),
        Err(error) => Err(Problem::from(error).in_tree()),
    }
}

/// UNLOCK
pub(super) fn unlock(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let token = asked.header(TOKEN).map(str::trim).and_then(|of| of.strip_prefix('<')?.strip_suffix('>'));
    let token = token.ok_or_else(|| Problem::bad("<token> is expected").with_field("Lock-Token"))?;
    match site.dav.locks.unlock(&place, token) {
        true => reply.status(StatusCode::NO_CONTENT),
        false => return Err(Problem::new(StatusCode::CONFLICT, "this path has no such lock")),
    }
    Ok(())
}
