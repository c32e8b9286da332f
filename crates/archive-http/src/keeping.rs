//! `/api/schema`, `/api/rules`, `/api/audit`, `/api/jobs`, `/healthz`: the archive itself.

use crate::asked::Asked;
use crate::conditions::{failed, if_match, tag};
use crate::jobs::Task;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::{CONTENT_TYPE, ETAG, LOCATION};
use hyper::StatusCode;
use serde_json::json;
use std::io::Write;
use teak_archive::{Definition, Error, Rules, Scalar, Schema, Value};

/// GET /healthz
pub(crate) fn health(_: &Site, _: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    reply.json(&json!({ "status": "ok" }));
    Ok(())
}

/// GET /api/openapi.json
pub(crate) fn openapi(_: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    reply.header(CONTENT_TYPE, "application/json");
    reply
        .write_all(include_bytes!("openapi.json"))
        .map_err(|cause| Problem::from(Error::Stream { what: "cannot write the answer", cause }))
}

/// GET /api/schema
pub(crate) fn schema(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    show(&site.archive.schema(), reply)
}

fn show(schema: &Schema, reply: &mut Reply) -> Result<(), Problem> {
    let shown = serde_json::to_value(Definition::of(schema));
    reply.header(ETAG, &tag(schema.version));
    reply.json(&shown.map_err(|problem| Problem::inside(problem.to_string()))?);
    Ok(())
}

/// PUT /api/schema
pub(crate) fn set_schema(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let definition: Definition = asked.json()?;
    // Whoever else changes it comes through here.
    let _care = site.schema_care();
    if if_match(asked).is_some_and(|tags| !tags.has(&tag(site.archive.schema().version))) {
        return Err(failed());
    }
    site.archive.set_schema(&definition)?;
    show(&site.archive.schema(), reply)
}

/// GET /api/rules
pub(crate) fn rules(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let Rules { grace_seconds, keep_versions } = site.archive.rules();
    reply.json(&json!({ "grace_seconds": grace_seconds, "keep_versions": keep_versions }));
    Ok(())
}

/// PUT /api/rules
pub(crate) fn set_rules(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    site.archive.set_rules(&asked.json()?)?;
    rules(site, asked, reply)
}

/// GET /api/audit
pub(crate) fn audit(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&["since"])?;
    let since = match asked.one("since")?.map(|since| Scalar::Timestamp.parse(since)) {
        None => i64::MIN,
        Some(Ok(Value::Timestamp(since))) => since,
        Some(_) => return Err(Problem::of_field("since", "a date or a timestamp is expected")),
    };
    reply.header(CONTENT_TYPE, "application/json");
    let gone = |cause| Error::Stream { what: "cannot write the answer", cause };
    let mut before = "{\"entries\":[\n";
    site.archive.audit(since, &mut |entry| {
        let time = Value::Timestamp(entry.time).to_json();
        let line = json!({
            "time": time, "actor": entry.actor, "action": entry.action, "object": entry.object,
            "details": entry.details,
        });
        write!(reply, "{before}{line}").map_err(gone)?;
        before = ",\n";
        Ok(true)
    })?;
    let begin = if before.starts_with('{') { before } else { "" };
    writeln!(reply, "{begin}\n]}}").map_err(|cause| gone(cause).into())
}

/// GET /api/jobs
pub(crate) fn jobs(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    reply.json(&json!({ "jobs": site.jobs.all() }));
    Ok(())
}

/// POST /api/jobs
pub(crate) fn start(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let task: Task = asked.json()?;
    let job = site.jobs.start(&site.archive, task)?;
    reply.status(StatusCode::ACCEPTED);
    reply.header(LOCATION, &format!("/api/jobs/{}", job["id"].as_str().unwrap_or_default()));
    reply.json(&job);
    Ok(())
}

/// GET /api/jobs/{job}
pub(crate) fn job(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    reply.json(&site.jobs.one(&asked.segments[0])?);
    Ok(())
}

/// DELETE /api/jobs/{job}
pub(crate) fn stop(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    reply.status(StatusCode::ACCEPTED);
    reply.json(&site.jobs.stop(&asked.segments[0])?);
    Ok(())
}
