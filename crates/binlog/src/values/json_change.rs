//! Documents as text, of which parts are changed: what MySQL logs of an UPDATE under `PARTIAL_JSON`.
//!
//! The text is one that MySQL shows, or that was made of such here. What is not changed stays as it is written, and
//! what comes stands where MySQL would have it: members of an object are in the order of their length, and of their
//! bytes among those of one length.

use super::json::DEEPEST;
use super::json_diff::{JsonChange, JsonOperation};
use super::json_text;
use crate::error::Problem;

/// A value of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node<'t> {
    /// Neither an object nor an array, as it is written.
    Scalar(std::borrow::Cow<'t, str>),
    Array(Vec<Node<'t>>),
    /// Members by their names, without quotes.
    Object(Vec<(String, Node<'t>)>),
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
}

/// The text of a document after changes, which are made one after the other.
pub fn changed(document: &str, changes: &[JsonChange<'_>]) -> Result<String, Problem> {
    let mut root = parse(document)?;
    for change in changes {
        let wrong =
            |why: &str| Problem::invalid(format!("a change of a JSON document at {}: {why}", change.path));
        let value = match change.value {
            None => None,
            Some(value) => Some(Node::Scalar(value.text()?.into())),
        };
        // A later change may be about a part of what comes.
        let value = match &value {
            Some(Node::Scalar(text)) => Some(own(parse(text)?)),
            _ => None,
        };
        let path = path(change.path).ok_or_else(|| wrong("a path that is none"))?;
        let mut steps = path.iter();
        let Some(last) = steps.next_back() else {
            root = value.ok_or_else(|| wrong("nothing would be left"))?;
            continue;
        };
        let mut at = &mut root;
        for step in steps {
            at = at.part(step).ok_or_else(|| wrong("the document has nothing there"))?;
        }
        let is_done = match (change.operation, value) {
            (JsonOperation::Replace, Some(value)) => at.part(last).map(|part| *part = value).is_some(),
            (JsonOperation::Insert, Some(value)) => at.insert(last, value),
            (JsonOperation::Remove, _) => at.remove(last),
            (_, None) => false,
        };
        if !is_done {
            return Err(wrong("the document has nothing there, or something already"));
        }
    }
    let mut out = String::with_capacity(document.len());
    root.write(&mut out);
    Ok(out)
}

impl<'t> Node<'t> {
    fn part(&mut self, step: &Step) -> Option<&mut Node<'t>> {
        match (self, step) {
            (Node::Object(members), Step::Member(name)) => {
                members.iter_mut().find(|(other, _)| other == name).map(|(_, value)| value)
            }
            (Node::Array(elements), Step::Element(at)) => elements.get_mut(*at),
            _ => None,
        }
    }

    fn insert(&mut self, step: &Step, value: Node<'t>) -> bool {
        match (self, step) {
            (Node::Object(members), Step::Member(name)) => {
                let order = |other: &str| (other.len(), other.as_bytes()).cmp(&(name.len(), name.as_bytes()));
                match members.binary_search_by(|(other, _)| order(other)) {
                    Ok(_) => return false,
                    Err(at) => members.insert(at, (name.clone(), value)),
                }
            }
            // Behind the last one, if there are not as many.
            (Node::Array(elements), Step::Element(at)) => elements.insert((*at).min(elements.len()), value),
            _ => return false,
        }
        true
    }

    fn remove(&mut self, step: &Step) -> bool {
        match (self, step) {
            (Node::Object(members), Step::Member(name)) => {
                let at = members.iter().position(|(other, _)| other == name);
                at.map(|at| members.remove(at)).is_some()
            }
            (Node::Array(elements), Step::Element(at)) if *at < elements.len() => {
                elements.remove(*at);
                true
            }
            _ => false,
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Node::Scalar(text) => out.push_str(text),
            Node::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    element.write(out);
                }
                out.push(']');
            }
            Node::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    json_text::string(out, name);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// The same with a text of its own.
fn own(node: Node<'_>) -> Node<'static> {
    match node {
        Node::Scalar(text) => Node::Scalar(text.into_owned().into()),
        Node::Array(elements) => Node::Array(elements.into_iter().map(own).collect()),
        Node::Object(members) => {
            Node::Object(members.into_iter().map(|(name, value)| (name, own(value))).collect())
        }
    }
}

fn parse(text: &str) -> Result<Node<'_>, Problem> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.value(0);
    parser.blanks();
    match node.filter(|_| parser.at == text.len()) {
        Some(node) => Ok(node),
        None => Err(Problem::invalid("a JSON document that is none, or is deeper than MySQL has any")),
    }
}

/// Reads text. None: it is no document.
struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn next_is(&mut self, wanted: u8) -> bool {
        self.blanks();
        let is = self.text.as_bytes().get(self.at) == Some(&wanted);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Option<Node<'t>> {
        if depth > DEEPEST {
            return None;
        }
        if self.next_is(b'[') {
            let mut elements = Vec::new();
            if self.next_is(b']') {
                return Some(Node::Array(elements));
            }
            loop {
                elements.push(self.value(depth + 1)?);
                if !self.next_is(b',') {
                    return self.next_is(b']').then_some(Node::Array(elements));
                }
            }
        }
        if self.next_is(b'{') {
            let mut members = Vec::new();
            if self.next_is(b'}') {
                return Some(Node::Object(members));
            }
            loop {
                self.blanks();
                let name = unquoted(self.string()?)?;
                if !self.next_is(b':') {
                    return None;
                }
                members.push((name, self.value(depth + 1)?));
                if !self.next_is(b',') {
                    return self.next_is(b'}').then_some(Node::Object(members));
                }
            }
        }
        self.blanks();
        match self.text.as_bytes().get(self.at)? {
            b'"' => self.string().map(|text| Node::Scalar(text.into())),
            _ => {
                let rest = &self.text[self.at..];
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let length = rest.bytes().take_while(is_part).count();
                self.at += length;
                (length > 0).then(|| Node::Scalar((&rest[..length]).into()))
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let mut bytes = rest.bytes().enumerate();
        if bytes.next()?.1 != b'"' {
            return None;
        }
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => drop(bytes.next()?),
                b'"' => {
                    self.at += at + 1;
                    return rest.get(..=at);
                }
                _ => (),
            }
        }
        None
    }
}

/// What a string says that has its quotes.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = four_digits(&mut characters)?;
                match first {
                    // The first half of a character.
                    0xd800..=0xdbff => {
                        (characters.next()? == '\\' && characters.next()? == 'u').then_some(())?;
                        let second = four_digits(&mut characters)?.checked_sub(0xdc00)?;
                        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)?
                    }
                    other => char::from_u32(other)?,
                }
            }
            other @ ('"' | '\\' | '/') => other,
            _ => return None,
        });
    }
    Some(out)
}

fn four_digits(characters: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number * 16 + characters.next()?.to_digit(16)?))
}

/// `$.name[3]."other name"`.
fn path(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('[') {
            let (number, behind) = behind.split_once(']')?;
            steps.push(Step::Element(number.parse().ok()?));
            rest = behind;
            continue;
        }
        let name = rest.strip_prefix('.')?;
        let length = match name.starts_with('"') {
            true => {
                let mut parser = Parser { text: name, at: 0 };
                let quoted = parser.string()?;
                steps.push(Step::Member(unquoted(quoted)?));
                parser.at
            }
            false => {
                let length = name.find(['.', '[']).unwrap_or(name.len());
                steps.push(Step::Member(name[..length].to_string()));
                length
            }
        };
        rest = &name[length..];
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::super::json::Json;
    use super::*;

    fn change<'a>(operation: JsonOperation, path: &'a str, value: &'a [u8]) -> JsonChange<'a> {
        let value = (operation != JsonOperation::Remove).then_some(Json(value));
        JsonChange { operation, path, value }
    }

    #[test]
    fn parts_change_and_what_is_around_them_stays() {
        use JsonOperation::{Insert, Remove, Replace};
        let document = r#"{"a": 1.50, "b": [1, {"x y": "\"\u0001"}, 3], "cc": null}"#;
        for (changes, wanted) in [
            (
                vec![change(Replace, "$.a", b"\x05\x07\0")],
                r#"{"a": 7, "b": [1, {"x y": "\"\u0001"}, 3], "cc": null}"#,
            ),
            (
                vec![change(Insert, "$.bb", b"\x04\x01")],
                r#"{"a": 1.50, "b": [1, {"x y": "\"\u0001"}, 3], "bb": true, "cc": null}"#,
            ),
            (
                vec![change(Insert, "$.b[1]", b"\x04\0"), change(Remove, "$.b[2].\"x y\"", b"")],
                r#"{"a": 1.50, "b": [1, null, {}, 3], "cc": null}"#,
            ),
            (
                vec![change(Insert, "$.b[9]", b"\x04\0"), change(Remove, "$.a", b"")],
                r#"{"b": [1, {"x y": "\"\u0001"}, 3, null], "cc": null}"#,
            ),
            (vec![change(Replace, "$", b"\x0c\x01x")], r#""x""#),
            (
                vec![
                    change(Replace, "$.a", b"\x02\x01\0\x07\0\x04\x01\0"),
                    change(Insert, "$.a[0]", b"\x04\x02"),
                ],
                r#"{"a": [false, true], "b": [1, {"x y": "\"\u0001"}, 3], "cc": null}"#,
            ),
        ] {
            assert_eq!(changed(document, &changes).unwrap(), wanted);
        }
        assert_eq!(changed(document, &[]).unwrap(), document);
    }

    #[test]
    fn changes_of_what_is_not_there_are_refused() {
        use JsonOperation::{Insert, Remove, Replace};
        let document = r#"{"a": [1], "b": 2}"#;
        for (operation, path) in [
            (Replace, "$.c"),
            (Replace, "$.a[1]"),
            (Insert, "$.b"),
            (Insert, "$.b.c"),
            (Insert, "$.b[0]"),
            (Remove, "$.c"),
            (Remove, "$"),
            (Remove, "$.a[1]"),
            (Replace, "$.a.b"),
            (Replace, "a"),
            (Replace, "$a"),
            (Replace, "$[x]"),
            (Replace, "$.\"a"),
        ] {
            assert!(changed(document, &[change(operation, path, b"\x04\0")]).is_err(), "{path}");
        }
        for text in ["", "{", "[1", "[1,]", "{\"a\" 1}", "{a: 1}", "\"", "\"\\", "1 2", "]", &"[".repeat(200)]
        {
            assert!(changed(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_written_as_they_were() {
        let document = "{\"\u{e9}\\n\": 1, \"\\\\\\\"x\": \"\u{8868}\\\\\"}";
        assert_eq!(changed(document, &[]).unwrap(), document);
        assert_eq!(unquoted(r#""\ud83d\ude00\/""#).unwrap(), "\u{1f600}/");
        assert_eq!(unquoted(r#""\ud83dx""#), None);
    }
}
