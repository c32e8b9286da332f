//! Which paths and methods there are. `openapi.json` says what they take and answer; a test compares the two.

use crate::asked::{decode, Asked};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use crate::{asking, dav, keeping, objects, uploads};
use hyper::{Method, StatusCode};

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// As a whole, of some hundred KiB at most.
    Small,
    /// A stream.
    Bytes,
}

type Handler = fn(&Site, &mut Asked, &mut Reply) -> Result<(), Problem>;

/// A method of a path.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// Segments in braces stand for something.
    pub(crate) path: &'static str,
    pub(crate) takes: Takes,
    pub(crate) handler: Handler,
}

const fn route(method: &'static str, path: &'static str, takes: Takes, handler: Handler) -> Route {
    Route { method, path, takes, handler }
}

/// The only path that is answered to everybody.
pub(crate) const HEALTH: &str = "/healthz";

/// All of them; HEAD goes wherever GET does.
pub(crate) const ROUTES: &[Route] = &[
    route("GET", HEALTH, Takes::Nothing, keeping::health),
    route("GET", "/api/openapi.json", Takes::Nothing, keeping::openapi),
    route("POST", "/api/objects", Takes::Bytes, objects::put),
    route("GET", "/api/objects/{name}", Takes::Nothing, objects::get),
    route("DELETE", "/api/objects/{name}", Takes::Nothing, objects::remove),
    route("GET", "/api/objects/{name}/meta", Takes::Nothing, objects::metadata),
    route("PATCH", "/api/objects/{name}/meta", Takes::Small, objects::change),
    route("PUT", "/api/objects/{name}/holds/{hold}", Takes::Nothing, objects::hold),
    route("DELETE", "/api/objects/{name}/holds/{hold}", Takes::Nothing, objects::hold),
    route("PUT", "/api/objects/{name}/retention", Takes::Small, objects::retain),
    route("POST", "/api/uploads", Takes::Nothing, uploads::begin),
    route("GET", "/api/uploads/{upload}", Takes::Nothing, uploads::state),
    route("PATCH", "/api/uploads/{upload}", Takes::Bytes, uploads::go_on),
    route("DELETE", "/api/uploads/{upload}", Takes::Nothing, uploads::forget),
    route("GET", "/api/query", Takes::Nothing, asking::query),
    route("GET", "/api/schema", Takes::Nothing, keeping::schema),
    route("PUT", "/api/schema", Takes::Small, keeping::set_schema),
    route("GET", "/api/rules", Takes::Nothing, keeping::rules),
    route("PUT", "/api/rules", Takes::Small, keeping::set_rules),
    route("GET", "/api/audit", Takes::Nothing, keeping::audit),
    route("GET", "/api/views", Takes::Nothing, asking::views),
    route("PUT", "/api/views/{view}", Takes::Small, asking::create),
    route("DELETE", "/api/views/{view}", Takes::Nothing, asking::drop_view),
    route("GET", "/api/views/{view}/dir", Takes::Nothing, asking::directory),
    route("GET", "/api/views/{view}/file", Takes::Nothing, objects::file),
    route("GET", "/api/jobs", Takes::Nothing, keeping::jobs),
    route("POST", "/api/jobs", Takes::Small, keeping::start),
    route("GET", "/api/jobs/{job}", Takes::Nothing, keeping::job),
    route("DELETE", "/api/jobs/{job}", Takes::Nothing, keeping::stop),
];

/// The route of a request, and what its segments in braces stand for.
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), Problem> {
    let mut allowed = Vec::new();
    let of_dav = dav::segments(method.as_str(), path);
    for route in if of_dav.is_some() { dav::METHODS } else { ROUTES } {
        let Some(segments) = of_dav.clone().or_else(|| matched(route.path, path)) else { continue };
        if route.method == method.as_str() || route.method == "GET" && method == Method::HEAD {
            let segments = segments.into_iter().map(decode).collect::<Option<Vec<String>>>();
            let wrong = || Problem::bad("the path is not UTF-8 with % before two hexadecimal digits");
            return Ok((route, segments.ok_or_else(wrong)?));
        }
        allowed.push(route.method);
        if route.method == "GET" {
            allowed.push("HEAD");
        }
    }
    match allowed.is_empty() {
        true => Err(Problem::new(StatusCode::NOT_FOUND, "there is no such path: see /api/openapi.json")),
        false => Err(Problem::not_allowed(&allowed)),
    }
}

/// Segments that stand for something, if the path is like the route's.
fn matched<'p>(route: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut of_route, mut of_path) = (route.split('/'), path.split('/'));
    let mut segments = Vec::new();
    loop {
        match (of_route.next(), of_path.next()) {
            (None, None) => return Some(segments),
            (Some(pattern), Some(segment)) if pattern.starts_with('{') && !segment.is_empty() => {
                segments.push(segment);
            }
            (Some(pattern), Some(segment)) if pattern == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<(&'static str, Vec<String>), u16> {
        let found = find(&method.parse().unwrap(), path);
        found.map(|(route, segments)| (route.path, segments)).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn paths_are_found_by_their_segments_and_methods() {
        assert_eq!(found("HEAD", "/api/objects/x"), Ok(("/api/objects/{name}", vec!["x".into()])));
        let hold = found("PUT", "/api/objects/b3:0/holds/case%2017%2F2");
        assert_eq!(hold, Ok(("/api/objects/{name}/holds/{hold}", vec!["b3:0".into(), "case 17/2".into()])));
        for (method, path, status) in [
            ("GET", "", 404),
            ("GET", "*", 404),
            ("GET", "/", 404),
            ("GET", "/api/objects/", 404),
            ("GET", "/api/objects/x/", 404),
            ("GET", "/api/../healthz", 404),
            ("GET", "//healthz", 404),
            ("GET", "/api/objects/%zz", 400),
            ("GET", "/api/objects/%ff", 400),
            ("GET", "/api/objects", 405),
            ("OPTIONS", "/api/objects", 405),
            ("PROPFIND", "/", 404),
            ("POST", "/dav/files/x", 405),
            ("GET", "/davos", 404),
            ("POST", "/api/objects/x", 405),
        ] {
            assert_eq!(found(method, path), Err(status), "{method} {path}");
        }
    }

    /// What the documentation and the program say of paths and methods is the same.
    #[test]
    fn the_documentation_has_these_paths_and_no_others() {
        let written: serde_json::Value = serde_json::from_slice(include_bytes!("openapi.json")).unwrap();
        let mut documented = Vec::new();
        for (path, item) in written["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
                documented.push((method.to_uppercase(), path.clone()));
            }
        }
        let mut there: Vec<_> =
            ROUTES.iter().map(|route| (route.method.to_string(), route.path.to_string())).collect();
        documented.sort();
        there.sort();
        assert_eq!(documented, there);
    }
}
