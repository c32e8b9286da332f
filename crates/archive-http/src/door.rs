//! Who may ask. With a login: who knows the password (Basic, RFC 7617). Without: programs of this machine, but no page
//! of somewhere else that a browser shows, whether by its own origin or by a name that leads here (rebinding of names).

use crate::checks::from_base64;
use crate::problem::Problem;
use hyper::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode, Version};
use std::net::IpAddr;

/// Who may ask, and how that is known. The password itself is not kept.
#[derive(Clone)]
pub struct Login {
    /// Of name and password; hashes are compared in constant time.
    hash: blake3::Hash,
}

impl Login {
    /// A user, whose name has no colon, and the password.
    pub fn new(user: &str, password: &str) -> Login {
        Login { hash: blake3::hash(format!("{user}:{password}").as_bytes()) }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.split_once(' '));
        let Some((_, given)) = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")) else {
            return false;
        };
        from_base64(given.trim()).is_some_and(|given| blake3::hash(&given) == self.hash)
    }
}

/// What is asked of all requests.
pub(crate) struct Door {
    pub(crate) login: Option<Login>,
    /// Whether only programs of this machine are to be answered.
    pub(crate) local_only: bool,
}

impl Door {
    pub(crate) fn admit(&self, version: Version, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(HOST).and_then(|value| value.to_str().ok());
        if host.is_none() && version > Version::HTTP_10 || headers.get_all(HOST).iter().count() > 1 {
            return Err(Problem::bad("a request has one Host"));
        }
        if self.local_only && !host.is_none_or(is_local) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "without a password this server answers at 127.0.0.1, [::1] and localhost alone",
            ));
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            if origin.is_none_or(|(_, of)| host.is_none_or(|host| !of.eq_ignore_ascii_case(host))) {
                return Err(Problem::new(StatusCode::FORBIDDEN, "pages of other origins are not answered"));
            }
        }
        match &self.login {
            Some(login) if !login.admits(headers) => {
                Err(Problem::new(StatusCode::UNAUTHORIZED, "name and password are needed")
                    .with_header(WWW_AUTHENTICATE, "Basic realm=\"teak archive\", charset=\"UTF-8\""))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a host, perhaps with a port, is this machine by its own names for itself.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn admitted(door: &Door, of: &[(&'static str, &str)]) -> u16 {
        door.admit(Version::HTTP_11, &headers(of)).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn who_knows_the_password_is_admitted_and_nobody_else() {
        let door = Door { login: Some(Login::new("me", "a:b é")), local_only: false };
        let with = |given: &str| admitted(&door, &[("host", "archive.example"), ("authorization", given)]);
        assert_eq!(with("Basic bWU6YTpiIMOp"), 200);
        assert_eq!(with("basic  bWU6YTpiIMOp"), 200);
        for wrong in [
            "",
            "Basic",
            "Basic bWU6YTpiIMO",
            "Basic bWU6",
            "Bearer bWU6YTpiIMOp",
            "Basic !",
            "Basic bWU6YTpiIMOpAA==",
        ] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(admitted(&door, &[("host", "archive.example")]), 401);
    }

    #[test]
    fn pages_of_elsewhere_are_not_answered() {
        let door = Door { login: None, local_only: true };
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.9.9.9"] {
            assert_eq!(admitted(&door, &[("host", host)]), 200, "{host}");
            assert_eq!(admitted(&door, &[("host", host), ("origin", &format!("http://{host}"))]), 200);
            assert_eq!(admitted(&door, &[("host", host), ("origin", "https://elsewhere.example")]), 403);
            assert_eq!(admitted(&door, &[("host", host), ("origin", "null")]), 403);
        }
        for host in
            ["elsewhere.example", "127.0.0.1.elsewhere.example", "localhost.elsewhere.example", "[", ""]
        {
            assert_eq!(admitted(&door, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(admitted(&door, &[]), 400);
    }
}
