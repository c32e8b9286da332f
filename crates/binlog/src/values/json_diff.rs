//! Parts of JSON documents that changed, where MySQL logs these alone (`binlog_row_value_options=PARTIAL_JSON`).
//!
//! ```text
//! { operation: 1 | length: packed | path | unless it is a removal: length: packed | value, as in json.rs }
//! ```

use super::json::Json;
use crate::bytes::Bytes;
use crate::error::Problem;

/// What happens at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonOperation {
    /// What is there becomes another value.
    Replace,
    /// A member comes to an object, or an element to an array before the one of the path.
    Insert,
    /// What is there goes.
    Remove,
}

impl JsonOperation {
    /// As MySQL's function is called: `replace`, `insert`, `remove`.
    pub fn name(self) -> &'static str {
        match self {
            JsonOperation::Replace => "replace",
            JsonOperation::Insert => "insert",
            JsonOperation::Remove => "remove",
        }
    }
}

/// One change of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonChange<'a> {
    /// What happens.
    pub operation: JsonOperation,
    /// Where, such as `$.a[3]`.
    pub path: &'a str,
    /// The new value, unless it is a removal.
    pub value: Option<Json<'a>>,
}

/// The changes of a document, in the order in which they are to be made.
pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<Vec<JsonChange<'_>>, Problem> {
    let what = "a change of a JSON document";
    let mut changes = Vec::new();
    while !bytes.is_empty() {
        let operation = match bytes.u8(what)? {
            0 => JsonOperation::Replace,
            1 => JsonOperation::Insert,
            2 => JsonOperation::Remove,
            other => return Err(Problem::invalid(format!("{what} of kind {other}"))),
        };
        let path = std::str::from_utf8(bytes.packed_string(what)?);
        let path = path.map_err(|_| Problem::invalid(format!("{what} at a path that is not UTF-8")))?;
        let value = match operation {
            JsonOperation::Remove => None,
            _ => Some(Json(bytes.packed_string(what)?)),
        };
        changes.push(JsonChange { operation, path, value });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_in_their_order() {
        let bytes = b"\0\x03$.a\x02\x04\x01\x01\x04$[1]\x03\x05\x07\0\x02\x03$.b";
        let changes = read(Bytes(bytes)).unwrap();
        let shown: Vec<String> = changes
            .iter()
            .map(|change| {
                let value = change.value.map(|value| value.text().unwrap()).unwrap_or_default();
                format!("{} {} {value}", change.operation.name(), change.path)
            })
            .collect();
        assert_eq!(shown, ["replace $.a true", "insert $[1] 7", "remove $.b "]);
        assert!(read(Bytes(b"\x03\x01$")).is_err() && read(Bytes(b"\0\x03$.a")).is_err());
        assert_eq!(read(Bytes(b"")), Ok(vec![]));
    }
}
