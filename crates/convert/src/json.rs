//! What `--json` tells: an object, whose parts are known one after the other.

use super::survey::Survey;
use super::work::Done;
use serde_json::{json, Map, Value};
use std::time::Duration;

type Object = Map<String, Value>;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// What there is to be done, and what cannot be.
pub fn found(found: &Survey) -> Object {
    let obstacles: Vec<_> = found
        .obstacles
        .iter()
        .map(|(name, reason)| json!({ "table": name.to_string(), "reason": reason }))
        .collect();
    object(json!({ "already": found.already, "obstacles": obstacles, "notes": found.notes }))
}

/// What was done.
pub fn done(done: &Done, took: Duration) -> Object {
    let Done { tables, keys, compared, bytes } = done;
    object(json!({
        "tables": tables,
        "foreign_keys": keys,
        "compared": compared,
        "bytes": bytes,
        "seconds": took.as_secs_f64(),
    }))
}
