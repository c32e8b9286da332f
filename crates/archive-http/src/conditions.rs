//! If-Match, If-None-Match, If-Range and Range (RFC 9110), for things with one strong tag each.

use crate::asked::Asked;
use crate::problem::Problem;
use hyper::header::{CONTENT_RANGE, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};
use hyper::StatusCode;
use teak_archive::Range;

/// A tag as a header has it.
pub(crate) fn tag(of: impl std::fmt::Display) -> String {
    format!("\"{of}\"")
}

/// Tags of a header, or all that there is.
pub(crate) enum Tags<'a> {
    Any,
    These(Vec<&'a str>),
}

impl Tags<'_> {
    /// Whether the tag is one of them; a weak one is none.
    pub(crate) fn has(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::These(tags) => tags.contains(&tag),
        }
    }
}

/// What If-Match has.
pub(crate) fn if_match(asked: &Asked) -> Option<Tags<'_>> {
    tags(asked, IF_MATCH)
}

fn tags(asked: &Asked, header: hyper::header::HeaderName) -> Option<Tags<'_>> {
    let mut values =
        asked.headers.get_all(header).iter().map(|value| value.to_str().unwrap_or_default()).peekable();
    values.peek()?;
    let tags: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    Some(if tags == ["*"] { Tags::Any } else { Tags::These(tags) })
}

/// Whether what is there, perhaps with a tag, is what a request that changes it means, by If-Match and If-None-Match.
pub(crate) fn check_tag(asked: &Asked, tag: Option<&str>, is_there: bool) -> bool {
    let has = |tags: Tags<'_>| match (tags, tag) {
        (Tags::Any, _) => is_there,
        (tags, Some(tag)) => tags.has(tag),
        (_, None) => false,
    };
    if_match(asked).is_none_or(has) && !tags(asked, IF_NONE_MATCH).is_some_and(has)
}

pub(crate) fn failed() -> Problem {
    Problem::new(StatusCode::PRECONDITION_FAILED, "If-Match names none of what is there")
}

/// What is to be answered of something with bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    /// From one byte to before another.
    Part(u64, u64),
    /// Who asks has it.
    NotModified,
}

/// Reads all conditions of a GET or HEAD.
pub(crate) fn wanted(asked: &Asked, tag: &str, size: u64) -> Result<Wanted, Problem> {
    if if_match(asked).is_some_and(|tags| !tags.has(tag)) {
        return Err(failed());
    }
    let have = tags(asked, IF_NONE_MATCH);
    if have.is_some_and(|have| have.has(tag) || have.has(&format!("W/{tag}"))) {
        return Ok(Wanted::NotModified);
    }
    let is_same = asked.header(IF_RANGE).is_none_or(|range| range.trim() == tag);
    match asked.header(RANGE).filter(|_| is_same && asked.method == hyper::Method::GET) {
        Some(range) => part(range, size),
        None => Ok(Wanted::Whole),
    }
}

/// One range; several, and what cannot be read, are answered by all bytes, as the standard allows.
fn part(range: &str, size: u64) -> Result<Wanted, Problem> {
    let parts = range.strip_prefix("bytes=").and_then(|range| range.trim().split_once('-'));
    let Some((from, to)) = parts else { return Ok(Wanted::Whole) };
    let number = |digits: &str| match digits.bytes().all(|digit| digit.is_ascii_digit()) {
        // What is too large to be a number is behind the end.
        true if !digits.is_empty() => Some(digits.parse().unwrap_or(u64::MAX)),
        _ => None,
    };
    let (from, to) = match (from, number(from), to, number(to)) {
        ("", _, _, Some(count)) => (size.saturating_sub(count), size),
        (_, Some(from), "", _) => (from, size),
        (_, Some(from), _, Some(last)) if last >= from => (from, last.saturating_add(1).min(size)),
        _ => return Ok(Wanted::Whole),
    };
    match from < to {
        true => Ok(Wanted::Part(from, to)),
        false => {
            let problem = Problem::from(teak_archive::Error::Range { from, size });
            Err(problem.with_header(CONTENT_RANGE, &format!("bytes */{size}")))
        }
    }
}

impl Wanted {
    /// For the archive.
    pub(crate) fn range(&self) -> Option<Range> {
        match self {
            Wanted::Part(from, to) => Some(Range { from: *from, to: Some(*to) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::{HeaderMap, Method};

    fn asked(of: &[(&'static str, &str)]) -> Asked {
        let headers = of.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Asked::new(Method::GET, headers.collect::<HeaderMap>(), Vec::new(), "").unwrap()
    }

    fn part_of(of: &[(&'static str, &str)], size: u64) -> Result<Wanted, u16> {
        wanted(&asked(of), "\"t\"", size).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn ranges_are_read_as_the_standard_has_them() {
        use Wanted::{Part, Whole};
        for (range, size, meant) in [
            ("bytes=0-0", 10, Ok(Part(0, 1))),
            ("bytes=3-", 10, Ok(Part(3, 10))),
            ("bytes=3-99", 10, Ok(Part(3, 10))),
            ("bytes=-4", 10, Ok(Part(6, 10))),
            ("bytes=-99", 10, Ok(Part(0, 10))),
            ("bytes=9-18446744073709551615", 10, Ok(Part(9, 10))),
            ("bytes=0-99999999999999999999", 10, Ok(Part(0, 10))),
            ("bytes=10-", 10, Err(416)),
            ("bytes=99999999999999999999-", 10, Err(416)),
            ("bytes=-0", 10, Err(416)),
            ("bytes=0-", 0, Err(416)),
            ("bytes=-1", 0, Err(416)),
            ("bytes=4-3", 10, Ok(Whole)),
            ("bytes=0-1,3-4", 10, Ok(Whole)),
            ("bytes=", 10, Ok(Whole)),
            ("bytes=-", 10, Ok(Whole)),
            ("bytes=+1-2", 10, Ok(Whole)),
            ("bytes=--2", 10, Ok(Whole)),
            ("lines=0-1", 10, Ok(Whole)),
        ] {
            assert_eq!(part_of(&[("range", range)], size), meant, "{range} of {size}");
        }
    }

    #[test]
    fn conditions_are_compared_with_the_tag() {
        use Wanted::{NotModified, Part, Whole};
        let range = ("range", "bytes=0-0");
        for (of, meant) in [
            (vec![("if-match", "\"t\"")], Ok(Whole)),
            (vec![("if-match", "*")], Ok(Whole)),
            (vec![("if-match", "\"a\", \"t\"")], Ok(Whole)),
            (vec![("if-match", "\"a\""), ("if-match", "\"t\"")], Ok(Whole)),
            (vec![("if-match", "W/\"t\"")], Err(412)),
            (vec![("if-match", "")], Err(412)),
            (vec![("if-none-match", "\"t\""), range], Ok(NotModified)),
            (vec![("if-none-match", "\"a\",W/\"t\"")], Ok(NotModified)),
            (vec![("if-none-match", "*")], Ok(NotModified)),
            (vec![("if-none-match", "\"a\""), range], Ok(Part(0, 1))),
            (vec![("if-range", "\"t\""), range], Ok(Part(0, 1))),
            (vec![("if-range", "\"a\""), range], Ok(Whole)),
            (vec![("if-range", "W/\"t\""), range], Ok(Whole)),
            (vec![("if-range", "Wed, 21 Oct 2015 07:28:00 GMT"), range], Ok(Whole)),
        ] {
            assert_eq!(part_of(&of, 10), meant, "{of:?}");
        }
    }
}
