//! What an account may do, as `SHOW GRANTS` tells it, with the roles that are on.

use crate::routes::Wildcards;
use teak_client::{Connection, Error};

/// Those of names of databases in grants.
const WILDCARDS: Wildcards = Wildcards { any: b'%', one: b'_', escape: Some(b'\\') };

/// Privileges of the connection's account.
#[derive(Debug, Default)]
pub struct Grants(Vec<Grant>);

#[derive(Debug, PartialEq, Eq)]
struct Grant {
    /// In capitals.
    privileges: Vec<String>,
    /// None: everywhere. Otherwise a pattern of databases: `%` is any characters, `_` one.
    databases: Option<String>,
}

impl Grants {
    /// Asks the server.
    pub fn of(connection: &mut Connection) -> Result<Grants, Error> {
        let rows = connection.query("SHOW GRANTS")?;
        let lines = rows.into_iter().flatten().flatten();
        Ok(Grants(lines.filter_map(|line| Grant::parse(&String::from_utf8_lossy(&line))).collect()))
    }

    /// Whether it has a privilege on a database, or everywhere.
    pub fn has(&self, privilege: &str, database: Option<&str>) -> bool {
        self.0.iter().any(|grant| {
            let is_there = match (&grant.databases, database) {
                (None, _) => true,
                (Some(pattern), Some(name)) => WILDCARDS.fit(pattern.as_bytes(), name.as_bytes()),
                (Some(_), None) => false,
            };
            is_there && grant.privileges.iter().any(|one| one == privilege || one.starts_with("ALL"))
        })
    }

    /// Those of these privileges that it has not.
    pub fn missing<'p>(&self, privileges: &[&'p str], database: Option<&str>) -> Vec<&'p str> {
        privileges.iter().copied().filter(|privilege| !self.has(privilege, database)).collect()
    }
}

impl Grant {
    /// Of `GRANT privileges ON databases.* TO ...`; None of roles, and of single tables and routines.
    fn parse(line: &str) -> Option<Grant> {
        let (privileges, rest) = line.strip_prefix("GRANT ")?.split_once(" ON ")?;
        let privileges = privileges.split(',').map(|one| one.trim().to_ascii_uppercase()).collect();
        if rest.starts_with("*.* ") {
            return Some(Grant { privileges, databases: None });
        }
        let mut database = String::new();
        let mut characters = rest.strip_prefix('`')?.chars();
        loop {
            match characters.next()? {
                '`' if characters.as_str().starts_with('`') => {
                    characters.next();
                    database.push('`');
                }
                '`' => break,
                other => database.push(other),
            }
        }
        characters.as_str().starts_with(".* ").then_some(Grant { privileges, databases: Some(database) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_are_everywhere_or_on_databases_by_pattern() {
        let grants = Grants(
            [
                "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*X'",
                "GRANT ALL PRIVILEGES ON `s1\\_%`.* TO `a`@`%` WITH GRANT OPTION",
                "GRANT SELECT, INSERT ON `x``y`.* TO `a`@`%`",
                "GRANT DELETE ON `only`.`table` TO `a`@`%`",
                "GRANT `role` TO `a`@`%`",
            ]
            .iter()
            .filter_map(|line| Grant::parse(line))
            .collect(),
        );
        for (privilege, database, has) in [
            ("REPLICATION SLAVE", None, true),
            ("BINLOG MONITOR", Some("x"), true),
            ("SUPER", None, false),
            ("SELECT", None, false),
            ("DROP", Some("s1_wiki"), true),
            ("DROP", Some("s12wiki"), false),
            ("INSERT", Some("x`y"), true),
            ("DELETE", Some("x`y"), false),
            ("DELETE", Some("only"), false),
        ] {
            assert_eq!(grants.has(privilege, database), has, "{privilege} {database:?}");
        }
        assert_eq!(grants.missing(&["SELECT", "DROP"], Some("x`y")), ["DROP"]);
    }
}
