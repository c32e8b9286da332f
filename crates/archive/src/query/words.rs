//! An expression as words, each with its place.

use crate::{Error, Result};

/// A word of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A name, a number, a bare value: letters, digits and `_ . : - +`.
    Bare(String),
    /// What stood in quotes.
    Quoted(String),
    /// `( ) ,` and comparisons.
    Sign(&'static str),
}

const SIGNS: [&str; 11] = ["<=", ">=", "<>", "!=", "==", "=", "<", ">", "(", ")", ","];
/// Of an expression, in bytes.
const LONGEST: usize = 1 << 20;

/// The words of a text, with the places of their first characters, from 1; at the end the place behind it.
pub(super) fn words(text: &str) -> Result<(Vec<(Word, usize)>, usize)> {
    let mut words = Vec::new();
    let mut rest = text;
    let place = |rest: &str| text[..text.len() - rest.len()].chars().count() + 1;
    if text.len() > LONGEST {
        return Err(Error::Query(format!("the expression has {} bytes, {LONGEST} at most", text.len())));
    }
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let at = text.len() - rest.len();
        let word = if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            rest = &rest[sign.len()..];
            Word::Sign(sign)
        } else if first == '\'' || first == '"' {
            let (quoted, after) =
                unquote(rest, first).ok_or_else(|| problem("no end of the quotes", place(rest), text))?;
            rest = after;
            Word::Quoted(quoted)
        } else {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || "_.:-+".contains(c))).unwrap_or(rest.len());
            if end == 0 {
                return Err(problem(
                    &format!("'{}' is not expected", first.escape_debug()),
                    place(rest),
                    text,
                ));
            }
            let bare = rest[..end].to_string();
            rest = &rest[end..];
            Word::Bare(bare)
        };
        words.push((word, at));
    }
    // Places are counted once, not from the beginning for each.
    let (mut bytes, mut characters) = (0, 1);
    for (_, at) in &mut words {
        characters += text[bytes..*at].chars().count();
        bytes = *at;
        *at = characters;
    }
    Ok((words, text.chars().count() + 1))
}

pub(super) fn problem(what: &str, at: usize, text: &str) -> Error {
    Error::Syntax { problem: what.to_string(), at, text: text.to_string() }
}

/// What is in quotes, which are doubled within, and what comes behind.
fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut quoted, mut rest) = (String::new(), &text[1..]);
    loop {
        let end = rest.find(quote)?;
        quoted.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(after) => {
                quoted.push(quote);
                rest = after;
            }
            None => return Some((quoted, rest)),
        }
    }
}
