//! `/api/query` and `/api/views`: finding records, and directories made of fields.

use crate::asked::Asked;
use crate::objects::record_json;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::CONTENT_TYPE;
use hyper::StatusCode;
use serde_json::{json, Value as Json};
use std::io::Write;
use teak_archive::{Direction, Error, Item, Query, View};

/// Records, or items of a directory, that one answer has unless it is told, and at most.
const USUAL: u64 = 100;
const MOST: u64 = 10_000;

fn limit(asked: &Asked) -> Result<u64, Problem> {
    match asked.read::<u64>("limit")?.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Problem::of_field("limit", format!("it is 1 to {MOST}"))),
    }
}

/// GET /api/query
pub(crate) fn query(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&["q", "order", "limit", "cursor", "fields", "explain"])?;
    let order = asked.list("order")?.into_iter().map(|field| match field.strip_suffix(":desc") {
        Some(field) => (field.to_string(), Direction::Descending),
        None => (field.to_string(), Direction::Ascending),
    });
    let query = Query {
        expression: asked.one("q")?.unwrap_or_default().to_string(),
        order: order.collect(),
        limit: Some(limit(asked)?),
        cursor: asked.one("cursor")?.map(str::to_string),
    };
    let wrong = |error: Error| Problem::from(error).in_question();
    if asked.read::<bool>("explain")?.unwrap_or(false) {
        reply.json(&json!({ "plan": site.archive.explain(&query).map_err(wrong)? }));
        return Ok(());
    }
    let schema = site.archive.schema();
    let chosen = asked.list("fields")?.into_iter().map(|name| Ok(&*schema.field(name)?.name));
    let chosen = chosen.collect::<Result<Vec<&str>, Error>>().map_err(wrong)?;
    reply.header(CONTENT_TYPE, "application/json");
    let gone = |cause| Error::Stream { what: "cannot write the answer", cause };
    let mut before = "{\"records\":[\n";
    let cursor = site.archive.query(&query, &mut |record| {
        let mut all = record_json(record, &schema);
        all.retain(|name, _| chosen.is_empty() || chosen.contains(&&**name));
        write!(reply, "{before}{}", Json::Object(all)).map_err(gone)?;
        before = ",\n";
        Ok(!site.is_ending())
    });
    let cursor = cursor.map_err(wrong)?;
    if site.is_ending() && cursor.is_none() {
        // Nobody is to take a part for the whole.
        return Err(Problem::busy("the server ends"));
    }
    let begin = if before.starts_with('{') { before } else { "" };
    writeln!(reply, "{begin}\n],\"cursor\":{}}}", Json::from(cursor)).map_err(|cause| gone(cause).into())
}

/// GET /api/views
pub(crate) fn views(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let views = site.archive.views()?.into_iter().map(|(name, View { pattern, condition })| {
        json!({ "name": name, "pattern": pattern, "condition": condition })
    });
    reply.json(&json!({ "views": views.collect::<Vec<_>>() }));
    Ok(())
}

/// PUT /api/views/{view}
pub(crate) fn create(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let _care = site.schema_care();
    site.archive.create_view(&asked.segments[0], &asked.json()?)?;
    reply.status(StatusCode::CREATED);
    Ok(())
}

/// DELETE /api/views/{view}
pub(crate) fn drop_view(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let _care = site.schema_care();
    site.archive.drop_view(&asked.segments[0])?;
    reply.status(StatusCode::NO_CONTENT);
    Ok(())
}

/// GET /api/views/{view}/dir
pub(crate) fn directory(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&["path", "limit", "cursor"])?;
    let from = asked.one("cursor")?.map(|cursor| {
        from_hex(cursor).ok_or_else(|| Problem::of_field("cursor", "it is none of this directory"))
    });
    let limit = usize::try_from(limit(asked)?).unwrap_or(usize::MAX);
    let path = asked.one("path")?.unwrap_or("/");
    let page = site.archive.list_view(&asked.segments[0], path, from.transpose()?.as_deref(), limit)?;
    let items = page.items.iter().map(|item| match item {
        Item::Directory(name) => json!({ "name": name, "type": "directory" }),
        Item::File(name, oid, size) => {
            json!({ "name": name, "type": "file", "oid": oid.to_string(), "size": size })
        }
    });
    let next = page.next.map(|next| next.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    reply.json(&json!({ "items": items.collect::<Vec<_>>(), "cursor": next }));
    Ok(())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().all(|digit| digit.is_ascii_hexdigit()) && text.len().is_multiple_of(2);
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    digits.then(|| (0..text.len()).step_by(2).map(byte).collect())?
}
