//! Where something is, by the path of a request or of its `Destination`. Names are names in the archive; what of a path
//! could be meant otherwise is refused before anything is looked for.

use crate::asked::{decode, Asked};
use crate::problem::Problem;
use hyper::{StatusCode, Uri};
use std::fmt::Write;
use teak_archive::Root;

/// A place below `/dav`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// `/dav` itself.
    Top,
    /// `/dav/views`.
    Views,
    /// In `/dav/files`; that itself is empty.
    Files(String),
    /// In `/dav/views/NAME`; that itself is empty.
    View(String, String),
}

impl Place {
    /// By the decoded segments behind `/dav`.
    pub(crate) fn of_segments(segments: &[String]) -> Result<Place, Problem> {
        let names: Vec<&str> = segments.iter().map(|name| &**name).filter(|name| !name.is_empty()).collect();
        let path = |names: &[&str]| match names
            .iter()
            .find(|name| [".", ".."].contains(*name) || name.contains(['/', '\0']))
        {
            Some(name) => Err(Problem::bad(format!("'{}' is no name", name.escape_debug()))),
            None => Ok(names.join("/")),
        };
        match &names[..] {
            [] => Ok(Place::Top),
            ["views"] => Ok(Place::Views),
            ["files", names @ ..] => Ok(Place::Files(path(names)?)),
            ["views", view, names @ ..] => Ok(Place::View(view.to_string(), path(names)?)),
            _ => Err(Problem::new(StatusCode::NOT_FOUND, "below /dav there are files and views")),
        }
    }

    /// By what a header says, which may have a host: this one.
    pub(crate) fn of_url(url: &str, host: Option<&str>) -> Result<Place, Problem> {
        let wrong = || Problem::bad("a destination is a URL, or its path").with_field("Destination");
        let uri: Uri = url.trim().parse().map_err(|_| wrong())?;
        if url.contains('#') {
            return Err(wrong());
        }
        let is_here = uri
            .authority()
            .is_none_or(|authority| host.is_some_and(|host| authority.as_str().eq_ignore_ascii_case(host)));
        let elsewhere = || Problem::new(StatusCode::BAD_GATEWAY, "the destination is not on this server");
        if !is_here {
            return Err(elsewhere());
        }
        let path = uri.path().strip_prefix("/dav").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let names = path.ok_or_else(elsewhere)?.split('/').map(decode).collect::<Option<Vec<String>>>();
        Place::of_segments(&names.ok_or_else(wrong)?)
    }

    pub(crate) fn of_destination(asked: &Asked) -> Result<Place, Problem> {
        let missing = || Problem::bad("a destination is missing").with_field("Destination");
        let url = asked.header("destination").ok_or_else(missing)?;
        Place::of_url(url, asked.header(hyper::header::HOST))
    }

    /// The tree and the path in it; the two places above are in none.
    pub(crate) fn in_tree(&self) -> Option<(Root<'_>, &str)> {
        match self {
            Place::Top | Place::Views => None,
            Place::Files(path) => Some((Root::Files, path)),
            Place::View(view, path) => Some((Root::View(view), path)),
        }
    }

    /// The same for who changes something there, which no tree itself is.
    pub(crate) fn to_change(&self) -> Result<(Root<'_>, &str), Problem> {
        let fixed = || Problem::new(StatusCode::FORBIDDEN, "this directory stays as it is");
        self.in_tree().filter(|(_, path)| !path.is_empty()).ok_or_else(fixed)
    }

    /// A child of it.
    pub(crate) fn child(&self, name: &str) -> Place {
        let joined = |path: &str| match path {
            "" => name.to_string(),
            path => format!("{path}/{name}"),
        };
        match self {
            Place::Top if name == "views" => Place::Views,
            Place::Top => Place::Files(String::new()),
            Place::Views => Place::View(name.to_string(), String::new()),
            Place::Files(path) => Place::Files(joined(path)),
            Place::View(view, path) => Place::View(view.clone(), joined(path)),
        }
    }

    /// What it is in.
    pub(crate) fn parent(&self) -> Option<Place> {
        let above = |path: &str| path.rsplit_once('/').map_or("", |(above, _)| above).to_string();
        match self {
            Place::Top => None,
            Place::Views => Some(Place::Top),
            Place::Files(path) if path.is_empty() => Some(Place::Top),
            Place::View(_, path) if path.is_empty() => Some(Place::Views),
            Place::Files(path) => Some(Place::Files(above(path))),
            Place::View(view, path) => Some(Place::View(view.clone(), above(path))),
        }
    }

    /// Its own name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Place::Top => "dav",
            Place::Views => "views",
            Place::Files(path) if path.is_empty() => "files",
            Place::View(view, path) if path.is_empty() => view,
            Place::Files(path) | Place::View(_, path) => path.rsplit('/').next().unwrap_or_default(),
        }
    }

    /// Its path as addresses have it; that of a directory ends with a slash. No other place's begins with that.
    pub(crate) fn href(&self, is_directory: bool) -> String {
        let mut href = String::from("/dav");
        let mut add = |name: &str| {
            href.push('/');
            for byte in name.bytes() {
                match byte.is_ascii_alphanumeric() || b"-._~!$'()*,;:@=+".contains(&byte) {
                    true => href.push(char::from(byte)),
                    false => drop(write!(href, "%{byte:02X}")),
                }
            }
        };
        let path = match self {
            Place::Top => "",
            Place::Views => {
                add("views");
                ""
            }
            Place::Files(path) => {
                add("files");
                path
            }
            Place::View(view, path) => {
                add("views");
                add(view);
                path
            }
        };
        path.split('/').filter(|name| !name.is_empty()).for_each(add);
        if is_directory {
            href.push('/');
        }
        href
    }

    /// Whether it is the other or below it.
    pub(crate) fn is_in(&self, other: &Place) -> bool {
        self.href(true).starts_with(&other.href(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Place, u16> {
        Place::of_url(url, Some("localhost:80")).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn places_come_back_from_their_addresses() {
        for place in [
            Place::Top,
            Place::Views,
            Place::Files(String::new()),
            Place::Files("a b/é%/c#?".into()),
            Place::View("a/b".into(), String::new()),
            Place::View("v".into(), "x%2Fy/z".into()),
        ] {
            for is_directory in [false, true] {
                assert_eq!(of(&place.href(is_directory)), Ok(place.clone()));
                let whole = format!("http://LOCALHOST:80{}", place.href(is_directory));
                assert_eq!(of(&whole), Ok(place.clone()));
            }
            assert!(place.is_in(&place) && place.is_in(&Place::Top));
            let child = place.child("views");
            assert_eq!(child.parent(), Some(place.clone()));
            assert!(child.name() == "views" && child.is_in(&place) && !place.is_in(&child));
        }
        assert!(!Place::Files("ab".into()).is_in(&Place::Files("a".into())));
    }

    #[test]
    fn what_could_be_meant_otherwise_is_refused() {
        for (url, status) in [
            ("/dav/files/../x", 400),
            ("/dav/files/%2e%2E/x", 400),
            ("/dav/files/a%2Fb", 400),
            ("/dav/files/a%00b", 400),
            ("/dav/files/%ff", 400),
            ("/dav/files/%zz", 400),
            ("/dav/files/a#b", 400),
            ("/dav/other", 404),
            ("/api/objects", 502),
            ("/davos", 502),
            ("http://elsewhere/dav/files/a", 502),
            ("", 400),
        ] {
            assert_eq!(of(url), Err(status), "{url}");
        }
    }
}
