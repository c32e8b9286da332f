//! How far a source was followed: all transactions up to some, of each family in its own form.

use std::collections::BTreeMap;
use std::fmt;
use teak_binlog::{Family, GtidSet, MariaDbGtid, MySqlGtid, Problem};

/// The number of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtid {
    /// Of MariaDB.
    MariaDb(MariaDbGtid),
    /// Of MySQL.
    MySql(MySqlGtid),
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MariaDb(gtid) => gtid.fmt(f),
            Gtid::MySql(gtid) => gtid.fmt(f),
        }
    }
}

/// The transactions that were applied. Its text is what the position table has, and what a configuration may give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Of each domain the last one; a domain that is not there was not begun.
    MariaDb(BTreeMap<u32, MariaDbGtid>),
    /// All of a set.
    MySql(GtidSet),
}

impl Position {
    /// Of its text.
    pub fn parse(text: &str, family: Family) -> Result<Position, Problem> {
        if family == Family::MySql {
            return Ok(Position::MySql(text.parse()?));
        }
        let mut domains = BTreeMap::new();
        for gtid in text.split(',').filter(|gtid| !gtid.trim().is_empty()) {
            let gtid: MariaDbGtid = gtid.parse()?;
            if domains.insert(gtid.domain, gtid).is_some() {
                return Err(Problem::Invalid(format!("two GTIDs of domain {}", gtid.domain)));
            }
        }
        Ok(Position::MariaDb(domains))
    }

    /// Whose it is: MySQL's begin with a UUID.
    pub fn family_of(text: &str) -> Family {
        match text.contains(':') {
            true => Family::MySql,
            false => Family::MariaDb,
        }
    }

    /// The same with one more transaction, which the source's log has next. An error if it is of the other family.
    pub fn add(&mut self, gtid: &Gtid) -> Result<(), Problem> {
        match (self, gtid) {
            (Position::MariaDb(domains), Gtid::MariaDb(gtid)) => {
                domains.insert(gtid.domain, *gtid);
            }
            (Position::MySql(set), Gtid::MySql(gtid)) => set.add(gtid),
            (position, gtid) => {
                return Err(Problem::Invalid(format!("{gtid} does not go with the position {position}")))
            }
        }
        Ok(())
    }

    /// Whether the transaction is known to be among them: of MariaDB only the last of a domain is.
    pub fn has(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Position::MariaDb(domains), Gtid::MariaDb(gtid)) => domains.get(&gtid.domain) == Some(gtid),
            (Position::MySql(set), Gtid::MySql(gtid)) => set.has(gtid),
            _ => false,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::MySql(set) => set.fmt(f),
            Position::MariaDb(domains) => {
                for (at, gtid) in domains.values().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{gtid}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5ccc1033-44a8-11ea-bd59-0242ac190003";

    fn mariadb(text: &str) -> Gtid {
        Gtid::MariaDb(text.parse().unwrap())
    }

    fn mysql(text: &str, number: u64) -> Gtid {
        let set: GtidSet = text.parse().unwrap();
        Gtid::MySql(MySqlGtid { source: set.sources[0].source, tag: set.sources[0].tag.clone(), number })
    }

    #[test]
    fn of_mariadb_the_last_of_each_domain_counts_however_its_numbers_run() {
        let mut position = Position::parse(" 7-2-9,0-1-100 ", Family::MariaDb).unwrap();
        assert_eq!(position.to_string(), "0-1-100,7-2-9");
        for (gtid, after) in [
            ("0-1-101", "0-1-101,7-2-9"),
            // A domain that begins, and numbers that fall, as servers without gtid_strict_mode write them.
            ("4294967295-3-1", "0-1-101,7-2-9,4294967295-3-1"),
            ("7-1-4", "0-1-101,7-1-4,4294967295-3-1"),
        ] {
            assert!(!position.has(&mariadb(gtid)));
            position.add(&mariadb(gtid)).unwrap();
            assert!(position.has(&mariadb(gtid)));
            assert_eq!(position.to_string(), after);
            assert_eq!(Position::parse(after, Family::MariaDb), Ok(position.clone()));
        }
        assert_eq!(Position::parse("", Family::MariaDb).unwrap().to_string(), "");
        for wrong in ["0-1", "0-1-1,0-1-2", "x", &format!("{UUID}:1-5")] {
            assert!(Position::parse(wrong, Family::MariaDb).is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_mysql_a_set_grows_and_its_gaps_close() {
        let mut position = Position::parse(&format!("{UUID}:1-5:8"), Family::MySql).unwrap();
        for (text, number, after) in [
            (format!("{UUID}:1"), 6, format!("{UUID}:1-6:8")),
            (format!("{UUID}:1"), 7, format!("{UUID}:1-8")),
            (format!("{UUID}:tag:1"), 3, format!("{UUID}:1-8,{UUID}:tag:3")),
            (format!("{UUID}:1"), 7, format!("{UUID}:1-8,{UUID}:tag:3")),
        ] {
            position.add(&mysql(&text, number)).unwrap();
            assert!(position.has(&mysql(&text, number)));
            assert_eq!(position.to_string(), after);
            assert_eq!(Position::parse(&after, Family::MySql), Ok(position.clone()));
        }
        assert!(!position.has(&mysql(&format!("{UUID}:1"), 9)));
    }

    #[test]
    fn families_are_told_apart_and_do_not_mix() {
        assert_eq!(Position::family_of("0-1-100"), Family::MariaDb);
        assert_eq!(Position::family_of(&format!("{UUID}:1")), Family::MySql);
        let mut position = Position::parse("0-1-100", Family::MariaDb).unwrap();
        let other = mysql(&format!("{UUID}:1"), 1);
        assert!(position.add(&other).is_err() && !position.has(&other));
        assert_eq!(position.to_string(), "0-1-100");
    }
}
