//! JSON as text: objects and lists in the order in which they are put together.

use std::fmt::{Display, Write};

/// An object whose members come one after the other.
pub struct Object(String);

impl Object {
    /// One without members yet.
    pub fn new() -> Object {
        Object("{".into())
    }

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &str, json: &str) -> &mut Object {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_string(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    /// A number, or another thing that stands for itself.
    pub fn plain(&mut self, name: &str, value: impl Display) -> &mut Object {
        self.raw(name, &value.to_string())
    }

    /// A string.
    pub fn text(&mut self, name: &str, value: impl Display) -> &mut Object {
        self.raw(name, &string(&value.to_string()))
    }

    /// Bytes that should be text, see [`bytes`].
    pub fn bytes(&mut self, name: &str, value: &[u8]) -> &mut Object {
        self.raw(name, &bytes(value))
    }

    /// A member that may be missing.
    pub fn plain_if<T: Display>(&mut self, name: &str, value: Option<T>) -> &mut Object {
        match value {
            Some(value) => self.plain(name, value),
            None => self,
        }
    }

    /// The same of a string.
    pub fn text_if<T: Display>(&mut self, name: &str, value: Option<T>) -> &mut Object {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// All of it.
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Of values that are JSON already.
pub fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("[{}]", values.join(","))
}

/// A string in quotes.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Of these, some would end a line for some who read it.
            '\0'..' ' | '\u{7f}'..'\u{a0}' | '\u{2028}' | '\u{2029}' => {
                // Nothing is refused by a string.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Bytes as a string if they are UTF-8, and so come back from it as they were; else `{"hex":"…"}`.
pub fn bytes(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), string)
}

/// `{"hex":"…"}`
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len() + 10);
    out.push_str("{\"hex\":\"");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push_str("\"}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut object = Object::new();
        object.plain("a", 1).text("b", "x\"\\\n\u{1}\u{85}é").bytes("c", b"\xff\0").plain_if::<u8>("d", None);
        let text = object.finish();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["a"], 1);
        assert_eq!(read["b"], "x\"\\\n\u{1}\u{85}é");
        assert_eq!(read["c"]["hex"], "ff00");
        assert!(read.get("d").is_none() && !text.contains('\u{85}'));
        assert_eq!(list(["1".into(), string("é")]), "[1,\"é\"]");
    }
}
