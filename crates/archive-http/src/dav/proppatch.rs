//! PROPPATCH: all of it, or nothing.

use super::aside::is_aside;
use super::facts::{facts_of, Facts};
use super::place::Place;
use super::property::{empty, is_live, read_http_date, write_propstat};
use super::propfind::{write, BEGIN, END, XML_TYPE};
use super::xml::{parse, Element, Name};
use super::{nothing_there, place_of, tokens_of};
use crate::asked::Asked;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::CONTENT_TYPE;
use hyper::StatusCode;
use teak_archive::{Error, Metadata, Node, Value};

/// Properties of one place, in bytes of XML.
const MOST_BYTES: usize = 256 << 10;
/// Of Windows, which tells the times of files so.
const WINDOWS: &str = "urn:schemas-microsoft-com:";

/// A property that is to be set, or to go.
struct Change {
    name: Name,
    to: Option<Element>,
}

/// PROPPATCH
pub(super) fn proppatch(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let place = place_of(asked)?;
    let changes = changes(&parse(asked.body.bytes())?)?;
    facts_of(site, &place)?.ok_or_else(nothing_there)?;
    let tokens = tokens_of(site, asked, &place)?;
    site.dav.locks.admit(&place, false, &tokens)?;
    let fixed = |change: &Change| is_live(&change.name);
    let status = if changes.iter().any(fixed) {
        "403 Forbidden"
    } else {
        let done = if is_aside(&place) { Ok(()) } else { change(site, &place, &changes) };
        match done {
            Ok(()) => "200 OK",
            Err(Error::Protected { .. }) => "423 Locked",
            Err(error) => return Err(Problem::from(error).in_tree()),
        }
    };
    let facts: Option<Facts> = facts_of(site, &place)?;
    let is_directory = facts.is_some_and(|facts| facts.is_directory);
    let mut out = format!("{BEGIN}<D:response><D:href>{}</D:href>", place.href(is_directory));
    let names = |of: &dyn Fn(&Change) -> bool| {
        changes.iter().filter(|change| of(change)).map(|change| empty(&change.name)).collect::<String>()
    };
    if status.starts_with("403") {
        write_propstat(&mut out, &names(&fixed), status);
        let others = names(&|change| !fixed(change));
        if !others.is_empty() {
            write_propstat(&mut out, &others, "424 Failed Dependency");
        }
    } else {
        write_propstat(&mut out, &names(&|_| true), status);
    }
    out.push_str("</D:response>\n");
    out.push_str(END);
    reply.status(StatusCode::MULTI_STATUS);
    reply.header(CONTENT_TYPE, XML_TYPE);
    Ok(write(reply, &out)?)
}

fn changes(root: &Element) -> Result<Vec<Change>, Problem> {
    let mut changes = Vec::new();
    for part in root.elements() {
        let is_set = part.name.is_dav("set");
        if !is_set && !part.name.is_dav("remove") {
            continue;
        }
        for prop in part.elements().filter(|element| element.name.is_dav("prop")) {
            for property in prop.elements() {
                let to = is_set.then(|| property.clone().in_language_of(prop));
                changes.push(Change { name: property.name.clone(), to });
            }
        }
    }
    match root.name.is_dav("propertyupdate") && !changes.is_empty() {
        true => Ok(changes),
        false => Err(Problem::bad("a propertyupdate with set or remove is expected")),
    }
}

fn change(site: &Site, place: &Place, changes: &[Change]) -> Result<(), Error> {
    let fixed = || Error::Conflict("this directory has no properties of its own".into());
    let (root, path) = place.in_tree().ok_or_else(fixed)?;
    site.archive.change_properties(root, path, &mut |node| {
        let (properties, is_file) = match node {
            Node::Directory(folder) => (folder.properties.clone(), false),
            Node::File(record) => (record.properties().map(str::to_string).collect(), true),
        };
        let mut properties: Vec<Element> =
            properties.iter().filter_map(|text| parse(text.as_bytes()).ok()).collect();
        let mut metadata = Metadata::default();
        let mut modified = None;
        for Change { name, to } in changes {
            properties.retain(|property| property.name != *name);
            properties.extend(to.clone());
            if name.space == WINDOWS && name.local == "Win32LastModifiedTime" && is_file {
                modified = to.as_ref().and_then(|to| read_http_date(&to.text()));
            }
        }
        if let Some(modified) = modified {
            metadata.value("file.modified", Value::Timestamp(modified));
        }
        let properties: Vec<String> = properties.iter().map(Element::write).collect();
        match properties.iter().map(String::len).sum::<usize>() > MOST_BYTES {
            true => Err(Error::Quota(format!("properties of one path have {MOST_BYTES} bytes at most"))),
            false => Ok((properties, metadata)),
        }
    })
}
