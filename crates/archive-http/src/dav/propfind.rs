//! PROPFIND: properties of what is at a place and in it, written while they are read.

use super::facts::{each_child, facts_of, Facts};
use super::locks::Lock;
use super::place::Place;
use super::property::{response, Chosen};
use super::xml::{parse, Element};
use super::{depth, nothing_there, place_of, Depth};
use crate::asked::Asked;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::CONTENT_TYPE;
use hyper::StatusCode;
use std::io::Write;
use teak_archive::Error;

pub(super) const XML_TYPE: &str = "application/xml; charset=utf-8";
pub(super) const BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
pub(super) const END: &str = "</D:multistatus>\n";

/// PROPFIND; without a depth it is of what is in it.
pub(super) fn propfind(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let wanted = wanted(asked.body.bytes())?;
    let depth = depth(asked)?.unwrap_or(Depth::One);
    let facts = facts_of(site, &place)?.ok_or_else(nothing_there)?;
    let locks = site.dav.locks.in_or_below(&place);
    reply.status(StatusCode::MULTI_STATUS);
    reply.header(CONTENT_TYPE, XML_TYPE);
    write(reply, BEGIN)?;
    write(reply, &response(&place, &facts, &wanted, &locks))?;
    let mut waiting = match depth {
        Depth::Zero => Vec::new(),
        _ if facts.is_directory => vec![place],
        _ => Vec::new(),
    };
    while let Some(place) = waiting.pop() {
        each_child(site, &place, &mut |child, facts| {
            tell(reply, &child, &facts, &wanted, &locks)?;
            if facts.is_directory && depth == Depth::Infinity {
                waiting.push(child);
            }
            Ok(!site.is_ending())
        })?;
        if site.is_ending() {
            // Nobody is to take a part for the whole.
            return Err(Problem::busy("the server ends"));
        }
    }
    write(reply, END)?;
    Ok(())
}

fn tell(
    reply: &mut Reply,
    place: &Place,
    facts: &Facts,
    wanted: &Chosen,
    locks: &[Lock],
) -> Result<(), Error> {
    write(reply, &response(place, facts, wanted, locks))
}

pub(super) fn write(reply: &mut Reply, text: &str) -> Result<(), Error> {
    reply.write_all(text.as_bytes()).map_err(|cause| Error::Stream { what: "cannot write the answer", cause })
}

fn wanted(body: &[u8]) -> Result<Chosen, Problem> {
    if body.is_empty() {
        return Ok(Chosen::All(Vec::new()));
    }
    let root = parse(body)?;
    let names = |of: Option<&Element>| {
        of.map(|of| of.elements().map(|element| element.name.clone()).collect::<Vec<_>>()).unwrap_or_default()
    };
    let asked = ["prop", "allprop", "propname"].iter().find_map(|local| root.dav(local));
    match asked.filter(|_| root.name.is_dav("propfind")) {
        Some(of) if of.name.is_dav("prop") => Ok(Chosen::These(names(Some(of)))),
        Some(of) if of.name.is_dav("propname") => Ok(Chosen::Names),
        Some(_) => Ok(Chosen::All(names(root.dav("include")))),
        None => Err(Problem::bad("a propfind with prop, allprop or propname is expected")),
    }
}
