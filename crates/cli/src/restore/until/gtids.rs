//! GTIDs, and how far binary logs are by them.

use std::fmt;

/// Of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gtid {
    pub domain: u32,
    pub server: u32,
    pub number: u64,
}

impl Gtid {
    pub fn parse(text: &str) -> Option<Gtid> {
        let mut parts = text.trim().split('-');
        let gtid = Gtid {
            domain: parts.next()?.parse().ok()?,
            server: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        // As the server writes it: 2026-03-01 is a day.
        (gtid.to_string() == text.trim()).then_some(gtid)
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.number)
    }
}

/// Which of them are the last: of each domain and server (`gtid_binlog_state`), where the newest of a domain comes
/// last; or of each domain (a position).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gtids(Vec<Gtid>);

impl Gtids {
    /// As the server writes it.
    pub fn parse(text: &str) -> Gtids {
        Gtids(text.split(',').filter_map(Gtid::parse).collect())
    }

    pub fn of(list: Vec<Gtid>) -> Gtids {
        Gtids(list)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a transaction is among them, or before them.
    pub fn has(&self, gtid: Gtid) -> bool {
        self.0.iter().any(|one| one.domain == gtid.domain && one.number >= gtid.number)
    }

    /// A transaction more, in what is kept by domain and server.
    pub fn add_to_state(&mut self, gtid: Gtid) {
        self.0.retain(|one| (one.domain, one.server) != (gtid.domain, gtid.server));
        self.0.push(gtid);
    }

    /// A transaction more, in what is kept by domain.
    pub fn add_to_position(&mut self, gtid: Gtid) {
        self.0.retain(|one| one.domain != gtid.domain);
        self.0.push(gtid);
    }

    /// Whether the same are the last, in whatever order.
    pub fn is_same(&self, other: &Gtids) -> bool {
        let sorted = |gtids: &Gtids| {
            let mut list = gtids.0.clone();
            list.sort_unstable();
            list
        };
        sorted(self) == sorted(other)
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(Gtid::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_transaction_of_a_domain_comes_last() {
        let mut state = Gtids::parse("0-1-7, 0-2-5,1-1-3");
        let mut position = Gtids::parse("0-1-7,1-1-3");
        let next = Gtid::parse("0-1-8").unwrap();
        state.add_to_state(next);
        position.add_to_position(next);
        assert_eq!(state.to_string(), "0-2-5,1-1-3,0-1-8");
        assert_eq!(position.to_string(), "1-1-3,0-1-8");
        assert!(state.is_same(&Gtids::parse("1-1-3,0-1-8,0-2-5")));
        assert_eq!(Gtids::parse(""), Gtids::default());
        assert_eq!(
            Gtid::parse("0-1-8-9").or(Gtid::parse("0-1")).or(Gtid::parse("2026-03-01 14:29:59")),
            None
        );
    }
}
