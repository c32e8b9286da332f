//! Which transactions to begin behind.

use super::BinlogError;
use std::collections::BTreeMap;
use std::str::FromStr;
use teak_binlog::{Body, Event, GtidSet, MariaDbGtid, MariaDbGtidList};
use teak_replicate::Beginning;

/// Transactions that are not to be shown: those up to some, and those of a set.
pub struct Start {
    state: State,
    /// The events that come are of a transaction that is passed over.
    passing_over: bool,
    /// A list of what earlier logs have was seen.
    begun: bool,
}

enum State {
    /// For each domain the last one that is not wanted, and whether it has come.
    MariaDb(BTreeMap<u32, (MariaDbGtid, bool)>),
    MySql(GtidSet),
}

impl FromStr for Start {
    type Err = BinlogError;

    fn from_str(text: &str) -> Result<Start, BinlogError> {
        let wrong = |error: teak_binlog::Problem| BinlogError::Usage(format!("--start: {error}"));
        let state = if text.contains(':') {
            State::MySql(text.parse().map_err(wrong)?)
        } else {
            let mut domains = BTreeMap::new();
            for gtid in text.split(',').filter(|gtid| !gtid.trim().is_empty()) {
                let gtid: MariaDbGtid = gtid.parse().map_err(wrong)?;
                if domains.insert(gtid.domain, (gtid, false)).is_some() {
                    return Err(BinlogError::Usage(format!("--start: two GTIDs of domain {}", gtid.domain)));
                }
            }
            State::MariaDb(domains)
        };
        Ok(Start { state, passing_over: false, begun: false })
    }
}

impl Start {
    /// As a server takes it.
    pub fn beginning(&self) -> Beginning {
        match &self.state {
            State::MariaDb(domains) => {
                let gtids: Vec<String> = domains.values().map(|(gtid, _)| gtid.to_string()).collect();
                Beginning::MariaDb(gtids.join(","))
            }
            State::MySql(set) => Beginning::MySql(set.to_bytes()),
        }
    }

    /// Whether an event is to be shown: those about the log itself are in any case.
    pub fn passes(&mut self, event: &Event<'_>) -> Result<bool, BinlogError> {
        match &event.body {
            Body::MariaDbGtidList(list) => self.of_earlier_logs(list)?,
            Body::PreviousGtids(set) => self.of_earlier_sets(set)?,
            Body::MariaDbGtid(transaction) => self.passing_over = self.is_before(transaction.gtid)?,
            Body::MySqlGtid(transaction) => {
                let gtid = transaction.gtid.as_ref();
                self.passing_over =
                    matches!((&self.state, gtid), (State::MySql(set), Some(gtid)) if set.has(gtid));
            }
            _ => return Ok(!self.passing_over || is_of_log(&event.body)),
        }
        Ok(!self.passing_over || is_of_log(&event.body))
    }

    fn is_before(&mut self, gtid: MariaDbGtid) -> Result<bool, BinlogError> {
        let State::MariaDb(domains) = &mut self.state else { return Ok(false) };
        match domains.get_mut(&gtid.domain) {
            None | Some((_, true)) => Ok(false),
            Some((last, has_come)) => {
                *has_come = gtid == *last;
                if !*has_come && gtid.server_id == last.server_id && gtid.sequence > last.sequence {
                    return Err(missing(&last.to_string(), &gtid.to_string()));
                }
                Ok(true)
            }
        }
    }

    /// What is wanted may begin with this log, but not before it.
    fn of_earlier_logs(&mut self, list: &MariaDbGtidList) -> Result<(), BinlogError> {
        let State::MariaDb(domains) = &mut self.state else { return Ok(()) };
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for (domain, (last, has_come)) in domains {
            let of_domain = || list.gtids.iter().filter(|gtid| gtid.domain == *domain);
            *has_come = of_domain().next_back() == Some(last);
            let is_earlier =
                |gtid: &&MariaDbGtid| gtid.server_id == last.server_id && gtid.sequence >= last.sequence;
            if let Some(gtid) = of_domain().find(is_earlier).filter(|_| !*has_come) {
                return Err(missing(&last.to_string(), &gtid.to_string()));
            }
        }
        Ok(())
    }

    fn of_earlier_sets(&mut self, set: &GtidSet) -> Result<(), BinlogError> {
        let State::MySql(wanted) = &self.state else { return Ok(()) };
        if std::mem::replace(&mut self.begun, true) || wanted.has_all(set) {
            return Ok(());
        }
        Err(missing(&wanted.to_string(), &set.to_string()))
    }

    /// Fails if what to begin behind has not come.
    pub fn finish(&self) -> Result<(), BinlogError> {
        let State::MariaDb(domains) = &self.state else { return Ok(()) };
        match domains.values().find(|(_, has_come)| !has_come) {
            None => Ok(()),
            Some((gtid, _)) => Err(BinlogError::Usage(format!("--start: the logs do not have {gtid}"))),
        }
    }
}

fn missing(wanted: &str, first: &str) -> BinlogError {
    BinlogError::Usage(format!(
        "--start: some of what comes after {wanted} is in an earlier log: this one has what comes after {first}"
    ))
}

fn is_of_log(body: &Body<'_>) -> bool {
    matches!(
        body,
        Body::FormatDescription(_)
            | Body::Rotate(_)
            | Body::Stop
            | Body::Incident(_)
            | Body::Heartbeat(_)
            | Body::MariaDbGtidList(_)
            | Body::BinlogCheckpoint(_)
            | Body::StartEncryption(_)
            | Body::PreviousGtids(_)
            | Body::LargeTransaction(_)
    )
}
