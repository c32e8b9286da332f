//! XML of requests: read as a whole, which a body of 256 KiB bounds, into elements with their namespaces. Nothing is
//! expanded: a document type, or an entity that is not one of the five of XML, is refused, and so is what is deeper or
//! has more elements than any client sends.

use crate::problem::Problem;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{QName, ResolveResult};
use quick_xml::NsReader;
use std::fmt::Write;

/// The namespace of WebDAV.
pub(crate) const DAV: &str = "DAV:";
const DEEPEST: usize = 64;
const MOST_ELEMENTS: usize = 10_000;
const MOST_ATTRIBUTES: usize = 100;

/// A name of an element or an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) space: String,
    pub(crate) local: String,
}

impl Name {
    pub(crate) fn is_dav(&self, local: &str) -> bool {
        self.space == DAV && self.local == local
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: Name,
    attributes: Vec<(Name, String)>,
    children: Vec<Child>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Child {
    Element(Element),
    Text(String),
}

impl Element {
    /// Its child elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|child| match child {
            Child::Element(element) => Some(element),
            Child::Text(_) => None,
        })
    }

    /// The first child of WebDAV with that name.
    pub(crate) fn dav(&self, local: &str) -> Option<&Element> {
        self.elements().find(|element| element.name.is_dav(local))
    }

    /// Its own text.
    pub(crate) fn text(&self) -> String {
        let texts = self.children.iter().map(|child| match child {
            Child::Text(text) => &**text,
            Child::Element(_) => "",
        });
        texts.collect()
    }

    /// Of the attribute `xml:lang`.
    fn lang(&self) -> Option<&(Name, String)> {
        self.attributes.iter().find(|(name, _)| name.local == "lang" && name.space == XML)
    }

    /// The same in the language of the element around it, unless it says its own.
    pub(crate) fn in_language_of(mut self, around: &Element) -> Element {
        if let (None, Some(lang)) = (self.lang(), around.lang()) {
            self.attributes.push(lang.clone());
        }
        self
    }

    /// Itself as XML that means the same wherever it stands.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        self.write_in(None, &mut out);
        out
    }

    fn write_in(&self, default: Option<&str>, out: &mut String) {
        let Name { space, local } = &self.name;
        let _ = write!(out, "<{local}");
        if default != Some(space) {
            let _ = write!(out, " xmlns=\"{}\"", escaped(space));
        }
        for (at, (Name { space, local }, value)) in self.attributes.iter().enumerate() {
            let value = escaped(value);
            let _ = match &**space {
                "" => write!(out, " {local}=\"{value}\""),
                XML => write!(out, " xml:{local}=\"{value}\""),
                space => write!(out, " xmlns:a{at}=\"{}\" a{at}:{local}=\"{value}\"", escaped(space)),
            };
        }
        if self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Child::Text(text) => out.push_str(&escaped(text)),
                Child::Element(element) => element.write_in(Some(space), out),
            }
        }
        let _ = write!(out, "</{local}>");
    }
}

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// A text as XML has it, between tags and in quotes; what no XML can have is left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            character if is_xml(character) => out.push(character),
            _ => {}
        }
    }
    out
}

/// Whether a document can have it.
fn is_xml(character: char) -> bool {
    !matches!(character, '\u{fffe}' | '\u{ffff}') && (character >= ' ' || "\t\n\r".contains(character))
}

/// The text, if a document can have it.
fn checked(text: &str) -> Result<&str, Problem> {
    match text.chars().all(is_xml) {
        true => Ok(text),
        false => Err(wrong("a character that no XML has")),
    }
}

/// The element that a document is.
pub(crate) fn parse(bytes: &[u8]) -> Result<Element, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let text = checked(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    let mut reader = NsReader::from_str(text);
    let (mut open, mut root, mut count) = (Vec::<Element>::new(), None, 0);
    loop {
        let event = reader.read_event().map_err(|error| wrong(error.to_string()))?;
        count += usize::from(matches!(event, Event::Start(_) | Event::Empty(_)));
        if open.len() > DEEPEST || count > MOST_ELEMENTS {
            return Err(wrong(format!("more than {DEEPEST} levels or {MOST_ELEMENTS} elements")));
        }
        let ended = match event {
            Event::Start(start) => {
                open.push(element(&reader, &start)?);
                None
            }
            Event::Empty(start) => Some(element(&reader, &start)?),
            Event::End(_) => open.pop(),
            Event::Text(text) => {
                let text = text.xml_content().map_err(|error| wrong(error.to_string()))?;
                add_text(&mut open, &text)?;
                None
            }
            Event::CData(text) => {
                let text = text.xml_content().map_err(|error| wrong(error.to_string()))?;
                add_text(&mut open, &text)?;
                None
            }
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|error| wrong(error.to_string()))?;
                let name = reference.decode().map_err(|error| wrong(error.to_string()))?;
                match (character, quick_xml::escape::resolve_predefined_entity(&name)) {
                    (Some(character), _) => add_text(&mut open, character.encode_utf8(&mut [0; 4]))?,
                    (None, Some(text)) => add_text(&mut open, text)?,
                    (None, None) => return Err(wrong("entities are not expanded")),
                }
                None
            }
            Event::DocType(_) => return Err(wrong("a document type is not read")),
            Event::Eof if open.is_empty() => return root.ok_or_else(|| wrong("there is no element")),
            Event::Eof => return Err(wrong("it ends before its end")),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => None,
        };
        let Some(ended) = ended else { continue };
        match open.last_mut() {
            Some(around) => around.children.push(Child::Element(ended)),
            None if root.is_none() => root = Some(ended),
            None => return Err(wrong("it has two elements")),
        }
    }
}

fn wrong(what: impl Into<String>) -> Problem {
    Problem::bad(format!("the body is no XML that is read here: {}", what.into()))
}

fn add_text(open: &mut [Element], text: &str) -> Result<(), Problem> {
    checked(text)?;
    match open.last_mut() {
        Some(around) => {
            match around.children.last_mut() {
                Some(Child::Text(before)) => before.push_str(text),
                _ => around.children.push(Child::Text(text.to_string())),
            }
            Ok(())
        }
        None if text.trim().is_empty() => Ok(()),
        None => Err(wrong("text stands outside of its element")),
    }
}

fn element(reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Result<Element, Problem> {
    let name = name(reader, start.name(), true)?;
    let (mut attributes, mut count) = (Vec::new(), 0);
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| wrong(error.to_string()))?;
        let value = attribute.unescape_value().map_err(|error| wrong(error.to_string()))?;
        count += 1;
        if count > MOST_ATTRIBUTES {
            return Err(wrong(format!("an element has more than {MOST_ATTRIBUTES} attributes")));
        }
        match attribute.key.as_namespace_binding() {
            // A prefix of nothing cannot be declared.
            Some(quick_xml::name::PrefixDeclaration::Named(_)) if value.is_empty() => {
                return Err(wrong("a prefix of an empty namespace"));
            }
            Some(_) => {}
            None => {
                attributes.push((self::name(reader, attribute.key, false)?, checked(&value)?.to_string()));
            }
        }
    }
    Ok(Element { name, attributes, children: Vec::new() })
}

fn name(reader: &NsReader<&[u8]>, name: QName<'_>, is_element: bool) -> Result<Name, Problem> {
    let (space, local) = reader.resolve(name, !is_element);
    let space = match space {
        ResolveResult::Bound(space) => space.into_inner(),
        ResolveResult::Unbound => b"",
        ResolveResult::Unknown(_) => return Err(wrong("a prefix that is not declared")),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let space =
        quick_xml::escape::unescape(&text(space)).map_err(|error| wrong(error.to_string()))?.into_owned();
    checked(&space)?;
    let local = text(local.into_inner());
    let is_first = |c: char| c.is_alphabetic() || c == '_';
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}');
    match local.starts_with(is_first) && local.chars().all(is_name) {
        true => Ok(Name { space, local }),
        false => Err(wrong(format!("'{}' is no name", local.escape_debug()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_with_their_namespaces() {
        let text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- c --><D:a xmlns:D=\"DAV:\" x=\"1&amp;2\" xml:lang=\"en\">t&lt;&#65;<b xmlns=\"u:b\" D:y=\"&quot;\"><c/><![CDATA[<]]></b><d/></D:a>";
        let root = parse(text.as_bytes()).unwrap();
        assert!(root.name.is_dav("a") && root.text() == "t<A");
        assert_eq!(
            root.write(),
            "<a xmlns=\"DAV:\" x=\"1&amp;2\" xml:lang=\"en\">t&lt;A<b xmlns=\"u:b\" xmlns:a0=\"DAV:\" a0:y=\"&quot;\"><c/>&lt;</b><d xmlns=\"\"/></a>"
        );
        assert_eq!(parse(root.write().as_bytes()).unwrap(), root);
    }

    #[test]
    fn what_is_no_xml_or_wants_more_than_it_says_is_refused() {
        let deep = "<a>".repeat(10_000) + &"</a>".repeat(10_000);
        let many = format!("<a>{}</a>", "<b/>".repeat(20_000));
        for text in [
            "",
            " ",
            "x",
            "<a>",
            "</a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>x",
            "<x:a/>",
            "<a xmlns:x=\"\"/>",
            "<a x=1/>",
            "<a x=\"1\" x=\"2\"/>",
            "<a>&lol;</a>",
            "<!DOCTYPE a [<!ENTITY lol \"lol\">]><a/>",
            "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
            "<a>\u{fffd}&#0;</a>",
            "<a\"b/>",
            &deep,
            &many,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:.40}");
        }
        assert!(parse(b"<a>\xff</a>").is_err());
        assert!(parse(
            "<?xml version=\"1.0\"?>"
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
                .as_slice()
        )
        .is_err());
    }
}
