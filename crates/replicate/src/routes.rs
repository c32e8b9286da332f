//! Which databases of a source are followed.

/// A server's own, and that of this program: never followed.
const OWN: [&[u8]; 5] = [b"mysql", b"information_schema", b"performance_schema", b"sys", b"teak_replicate"];

/// Which databases are followed.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// None: all.
    patterns: Option<Vec<String>>,
}

impl Routes {
    /// Those whose names one of the patterns has: `*` is any characters, `?` one. None: all.
    pub fn new(patterns: Option<Vec<String>>) -> Routes {
        Routes { patterns }
    }

    /// Whether a database is followed.
    pub fn follows(&self, database: &[u8]) -> bool {
        let is_own = OWN.iter().any(|own| database.eq_ignore_ascii_case(own));
        let mut patterns = self.patterns.iter().flatten();
        let is_wanted = self.patterns.is_none() || patterns.any(|pattern| fits(pattern.as_bytes(), database));
        !is_own && is_wanted
    }
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        ([b'?', rest @ ..], [_, name @ ..]) => fits(rest, name),
        ([first, rest @ ..], [byte, name @ ..]) => first == byte && fits(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_databases_and_those_of_servers_are_never_followed() {
        let some = Routes::new(Some(vec!["enwiki".into(), "de*".into(), "s?_x*y".into()]));
        for (name, followed) in [
            ("enwiki", true),
            ("enwiki2", false),
            ("dewiki", true),
            ("de", true),
            ("s1_xy", true),
            ("s1_xaay", true),
            ("s_xy", false),
            ("mysql", false),
        ] {
            assert_eq!(some.follows(name.as_bytes()), followed, "{name}");
        }
        let all = Routes::default();
        assert!(all.follows(b"x") && !all.follows(b"MySQL") && !all.follows(b"teak_replicate"));
        assert!(!Routes::new(Some(vec![])).follows(b"x"));
        assert!(!Routes::new(Some(vec!["*".into()])).follows(b"mysql"));
    }
}
