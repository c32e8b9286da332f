//! COPY and MOVE. Neither reads a byte of a file: a copy is a record of the same data, a move other metadata.

use super::aside::is_aside;
use super::facts::facts_of;
use super::place::Place;
use super::{depth, nothing_there, place_of, tokens_of, Depth};
use crate::asked::Asked;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::LOCATION;
use hyper::{Method, StatusCode};

/// COPY and MOVE
pub(super) fn transfer(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    let is_move = asked.method == Method::from_bytes(b"MOVE").unwrap_or_default();
    let (from, to) = (place_of(asked)?, Place::of_destination(asked)?);
    let overwrite = match asked.header("overwrite").map(str::trim) {
        None | Some("T" | "t") => true,
        Some("F" | "f") => false,
        Some(_) => return Err(Problem::bad("it is T or F").with_field("Overwrite")),
    };
    let is_deep = match depth(asked)? {
        Some(Depth::Zero) if !is_move => false,
        None | Some(Depth::Infinity) => true,
        Some(_) => return Err(Problem::bad("not this depth").with_field("Depth")),
    };
    let tokens = tokens_of(site, asked, &from)?;
    let facts = facts_of(site, &from)?.ok_or_else(nothing_there)?;
    let forbidden = |text: &str| Problem::new(StatusCode::FORBIDDEN, text);
    if from.is_in(&to) || to.is_in(&from) {
        return Err(forbidden("one of the two is in the other"));
    }
    let of_target = facts_of(site, &to)?;
    if of_target.is_some() && !overwrite {
        let text = "there is something at the destination";
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, text).with_field("Overwrite"));
    }
    if is_move {
        from.to_change()?;
        site.dav.admit(&from, true, &tokens)?;
    }
    site.dav.admit(&to, true, &tokens)?;
    let target = to.to_change()?;
    let replaced = if is_aside(&from) || is_aside(&to) {
        if !is_aside(&from) || !is_aside(&to) || facts.is_directory {
            return Err(forbidden("what is kept aside, as ._* and .DS_Store, stays aside"));
        }
        of_target.is_some()
    } else {
        let source = from.in_tree().ok_or_else(|| forbidden("this directory stays as it is"))?;
        let done = match is_move {
            true if source.0 != target.0 => {
                return Err(forbidden("a file moves within its tree: it can be copied to another"));
            }
            true => site.archive.move_at(source.0, source.1, target.1, overwrite),
            false => site.archive.copy_at(source, target, overwrite, is_deep),
        };
        done.map_err(|error| Problem::from(error).in_tree())?
    };
    site.dav.aside.remove(&to);
    site.dav.aside.transfer(&from, &to, !is_move);
    if is_move {
        site.dav.locks.forget(&from);
    }
    reply.status(if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED });
    if !replaced {
        reply.header(LOCATION, &to.href(facts.is_directory));
    }
    Ok(())
}
