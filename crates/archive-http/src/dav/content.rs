//! GET, PUT, DELETE, MKCOL.

use super::aside::{is_aside, MOST_OF_ONE};
use super::facts::{each_child, facts_of};
use super::place::Place;
use super::xml::escaped;
use super::{depth, nothing_there, place_of, tokens_of, Depth};
use crate::asked::Asked;
use crate::checks::{Checked, Checks};
use crate::conditions::{check_tag, tag, wanted, Wanted};
use crate::incoming::{Cut, Source};
use crate::objects::{content_type, send};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::{HeaderName, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG};
use hyper::{Method, StatusCode};
use std::io::{Read, Write};
use teak_archive::{Error, Metadata, Name, Node, Value};

/// When a file was changed, in seconds since 1970, as ownCloud's clients say it; they want to hear that it was taken.
const MODIFIED: HeaderName = HeaderName::from_static("x-oc-mtime");

/// GET: the bytes of a file, or a page with what is in a directory.
pub(super) fn get(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    if let Some(beside) = site.dav.aside.get(&place) {
        let (tag, size) = (beside.tag(), beside.bytes.len() as u64);
        let wanted = wanted(asked, &tag, size)?;
        reply.header(ETAG, &tag);
        if wanted == Wanted::NotModified {
            reply.status(StatusCode::NOT_MODIFIED);
            return Ok(());
        }
        // A part of what is so small is not asked for.
        reply.length(size);
        if asked.method == Method::GET {
            reply.write_all(&beside.bytes).map_err(|cause| gone(cause, "cannot write the answer"))?;
        }
        return Ok(());
    }
    let facts = facts_of(site, &place)?.ok_or_else(nothing_there)?;
    match facts.oid {
        Some(oid) => send(site, asked, Name::Record(oid), reply),
        None => page(site, asked, &place, reply),
    }
}

fn page(site: &Site, asked: &Asked, place: &Place, reply: &mut Reply) -> Result<(), Problem> {
    reply.header(CONTENT_TYPE, "text/html; charset=utf-8");
    reply.header(CONTENT_SECURITY_POLICY, "default-src 'none'");
    if asked.method == Method::HEAD {
        return Ok(());
    }
    let title = escaped(place.name());
    let unwritten = |cause| gone(cause, "cannot write the answer");
    writeln!(reply, "<!DOCTYPE html>\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>").map_err(unwritten)?;
    if let Some(parent) = place.parent() {
        writeln!(reply, "<li><a href=\"{}\">..</a>", parent.href(true)).map_err(unwritten)?;
    }
    each_child(site, place, &mut |child, facts| {
        let (href, end) = (child.href(facts.is_directory), if facts.is_directory { "/" } else { "" });
        writeln!(reply, "<li><a href=\"{href}\">{}{end}</a>", escaped(child.name())).map_err(unwritten)?;
        Ok(!site.is_ending())
    })?;
    writeln!(reply, "</ul>").map_err(unwritten)?;
    Ok(())
}

fn gone(cause: std::io::Error, what: &'static str) -> Error {
    Error::Stream { what, cause }
}

/// PUT
pub(super) fn put(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let (root, path) = place.to_change()?;
    if asked.headers.contains_key(CONTENT_RANGE) {
        return Err(Problem::bad("a PUT has all of the bytes").with_field("Content-Range"));
    }
    let tokens = tokens_of(site, asked, &place)?;
    site.dav.admit(&place, facts_of(site, &place)?.is_none(), &tokens)?;
    let checks = Checks::of(asked)?;
    let body = std::mem::replace(&mut asked.body, Source::whole(Vec::new()));
    if is_aside(&place) {
        return put_aside(site, &place, body, reply);
    }
    let check = |node: Option<&Node>| check(asked, node);
    let mut body = Checked::new(body, checks);
    let put = site.archive.put_at(root, path, &mut body, &metadata(asked), &check);
    let put = put.map_err(|error| match (body.source().cut, body.refused.take()) {
        (Some(cut), _) => Cut::problem(cut),
        (None, Some(refused)) => refused,
        (None, None) => Problem::from(error).in_tree(),
    });
    let (stored, replaced) = put?;
    if asked.headers.contains_key(MODIFIED) {
        reply.header(MODIFIED, "accepted");
    }
    reply.status(if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED });
    reply.header(ETAG, &tag(stored.data));
    Ok(())
}

/// Whether what is there is what is to be changed: asked in the transaction.
fn check(asked: &Asked, node: Option<&Node>) -> Result<(), Error> {
    let present = match node {
        Some(Node::File(record)) => Some(tag(record.data)),
        _ => None,
    };
    match check_tag(asked, present.as_deref(), node.is_some()) {
        true => Ok(()),
        false => Err(Error::Precondition("what is there is not what was meant".into())),
    }
}

/// What headers say of it: its type, and as ownCloud's clients do, when it was changed.
fn metadata(asked: &Asked) -> Metadata {
    let mut metadata = Metadata::default();
    if let Some(of) = content_type(asked) {
        metadata.text("system.content_type", of);
    }
    let modified = asked.header(MODIFIED).and_then(|seconds| seconds.trim().parse::<f64>().ok());
    if let Some(modified) = modified.filter(|seconds| (0.0..=253_402_300_799.0).contains(seconds)) {
        metadata.value("file.modified", Value::Timestamp((modified * 1e6) as i64));
    }
    metadata
}

fn put_aside(site: &Site, place: &Place, body: Source, reply: &mut Reply) -> Result<(), Problem> {
    let mut bytes = Vec::new();
    let mut body = body.take(MOST_OF_ONE as u64 + 1);
    if let Err(cause) = body.read_to_end(&mut bytes) {
        let cut = body.get_ref().cut;
        return Err(cut.map_or_else(|| gone(cause, "cannot read the body").into(), Cut::problem));
    }
    if bytes.len() > MOST_OF_ONE {
        let text = format!("a file beside another has {MOST_OF_ONE} bytes at most");
        return Err(Problem::new(StatusCode::INSUFFICIENT_STORAGE, text));
    }
    let replaced = site.dav.aside.put(place, bytes, site.archive.now());
    reply.status(if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED });
    Ok(())
}

/// DELETE: of a directory with all that is in it, or of nothing if a protection is on one of it.
pub(super) fn delete(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let (root, path) = place.to_change()?;
    let tokens = tokens_of(site, asked, &place)?;
    let facts = facts_of(site, &place)?.ok_or_else(nothing_there)?;
    if facts.is_directory && depth(asked)?.is_some_and(|depth| depth != Depth::Infinity) {
        return Err(Problem::bad("a directory goes with all that is in it").with_field("Depth"));
    }
    site.dav.admit(&place, true, &tokens)?;
    let check = |node: Option<&Node>| check(asked, node);
    if !is_aside(&place) {
        site.archive.remove_at(root, path, &check)?;
    }
    site.dav.aside.remove(&place);
    site.dav.locks.forget(&place);
    reply.status(StatusCode::NO_CONTENT);
    Ok(())
}

/// MKCOL
pub(super) fn make_directory(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    if !Source::bytes(&asked.body).is_empty() {
        let text = "a directory is made of nothing";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let tokens = tokens_of(site, asked, &place)?;
    if facts_of(site, &place)?.is_some() {
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "there is something at this path"));
    }
    let (root, path) = place.to_change()?;
    site.dav.admit(&place, true, &tokens)?;
    site.archive.make_directory(root, path).map_err(|error| Problem::from(error).in_tree())?;
    reply.status(StatusCode::CREATED);
    Ok(())
}
