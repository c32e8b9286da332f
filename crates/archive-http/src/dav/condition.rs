//! The header `If` (RFC 4918, 10.4): lists of tokens and tags, of which one must be true. What it names counts as
//! known to who asks, whether it is true or not.

use super::place::Place;
use crate::asked::Asked;
use crate::problem::Problem;
use hyper::header::HOST;
use hyper::StatusCode;

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
enum Term {
    Token(String),
    Tag(String),
}

/// One list, of a place that it names, or that of the request.
#[derive(Debug, PartialEq, Eq)]
struct List {
    /// `None`: that of the request; `Some(None)`: no place here.
    of: Option<Option<Place>>,
    /// Whether each is to be so, and what.
    terms: Vec<(bool, Term)>,
}

/// All of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    lists: Vec<List>,
}

/// Tells the tag of a place.
type TagOf<'a> = dyn Fn(&Place) -> Result<Option<String>, Problem> + 'a;
/// Whether a place has a lock of that token.
type HasLock<'a> = dyn Fn(&Place, &str) -> bool + 'a;

impl Condition {
    pub(crate) fn of(asked: &Asked) -> Result<Condition, Problem> {
        let wrong = || Problem::bad("lists such as (<urn:uuid:...> [\"...\"]) are expected").with_field("If");
        match asked.headers.get("if") {
            None => Ok(Condition::default()),
            Some(value) => {
                let text = value.to_str().map_err(|_| wrong())?;
                read(text, asked.header(HOST)).ok_or_else(wrong)
            }
        }
    }

    /// Tokens that it names.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let terms = self.lists.iter().flat_map(|list| &list.terms);
        let tokens = terms.filter_map(|(_, term)| match term {
            Term::Token(token) => Some(token.clone()),
            Term::Tag(_) => None,
        });
        tokens.collect()
    }

    /// Refuses a request of which none of the lists is true.
    pub(crate) fn check(
        &self,
        own: &Place,
        tag_of: &TagOf<'_>,
        has_lock: &HasLock<'_>,
    ) -> Result<(), Problem> {
        if self.lists.is_empty() {
            return Ok(());
        }
        for list in &self.lists {
            let of = match &list.of {
                None => Some(own),
                Some(of) => of.as_ref(),
            };
            let tag = match of {
                Some(of) if list.terms.iter().any(|(_, term)| matches!(term, Term::Tag(_))) => tag_of(of)?,
                _ => None,
            };
            let holds = |term: &Term| match term {
                Term::Token(token) => of.is_some_and(|of| has_lock(of, token)),
                Term::Tag(meant) => tag.as_ref() == Some(meant),
            };
            if list.terms.iter().all(|(wanted, term)| holds(term) == *wanted) {
                return Ok(());
            }
        }
        Err(Problem::new(StatusCode::PRECONDITION_FAILED, "what If says is not so").with_field("If"))
    }
}

/// Places that a header names.
#[cfg(any(test, feature = "hostile"))]
pub(super) fn places(text: &str, host: &str) -> Vec<Place> {
    let lists = read(text, Some(host)).unwrap_or_default().lists;
    lists.into_iter().filter_map(|list| list.of.flatten()).collect()
}

fn read(text: &str, host: Option<&str>) -> Option<Condition> {
    let (mut lists, mut of, mut rest) = (Vec::new(), None, text.trim_start());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('<') {
            let (url, after) = after.split_once('>')?;
            of = Some(Place::of_url(url, host).ok());
            rest = after.trim_start();
        }
        let mut inner = rest.strip_prefix('(')?.trim_start();
        let mut terms = Vec::new();
        while !inner.starts_with(')') {
            let without = inner.strip_prefix("Not").map(str::trim_start);
            let wanted = without.is_none();
            inner = without.unwrap_or(inner);
            let (term, after) = if let Some(token) = inner.strip_prefix('<') {
                let (token, after) = token.split_once('>')?;
                (Term::Token(token.to_string()), after)
            } else {
                let (tag, after) = inner.strip_prefix('[')?.split_once(']')?;
                (Term::Tag(tag.trim().to_string()), after)
            };
            terms.push((wanted, term));
            inner = after.trim_start();
        }
        rest = inner[1..].trim_start();
        if terms.is_empty() {
            return None;
        }
        lists.push(List { of: of.clone(), terms });
    }
    (!lists.is_empty()).then_some(Condition { lists })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Option<bool> {
        let condition = read(text, Some("h"))?;
        let own = Place::Files("own".into());
        let tag_of = |place: &Place| Ok(Some(if *place == own { "\"1\"" } else { "\"2\"" }.to_string()));
        let has_lock = |place: &Place, token: &str| *place == own && token == "t:1";
        Some(condition.check(&own, &tag_of, &has_lock).is_ok())
    }

    #[test]
    fn one_list_must_be_true_in_all_its_parts() {
        for (text, meant) in [
            ("(<t:1>)", Some(true)),
            ("(<t:2>)", Some(false)),
            ("(<t:2>)(<t:1>)", Some(true)),
            ("(<t:1> [\"1\"])", Some(true)),
            ("(<t:1> [\"2\"])", Some(false)),
            ("(Not <t:2> Not [\"2\"])", Some(true)),
            ("(<DAV:no-lock>) ( Not <DAV:no-lock> )", Some(true)),
            ("<http://h/dav/files/own> (<t:1>)", Some(true)),
            ("<http://h/dav/files/other> (<t:1>) ([\"2\"])", Some(true)),
            ("<http://elsewhere/dav/files/own> (<t:1>)", Some(false)),
            ("", None),
            ("()", None),
            ("(<t:1>", None),
            ("<t:1>", None),
            ("(<t:1) x", None),
            ("([\"1\")", None),
            ("(Not)", None),
        ] {
            assert_eq!(checked(text), meant, "{text}");
        }
    }
}
