//! Who waits for whom, through locks of Teak, of InnoDB and of metadata: chains with who is in everybody's way at their
//! roots, and behind each those who wait for it.

use crate::sample::{Part, Record, Sample};
use crate::session::waits_for_metadata;
use std::collections::{BTreeMap, BTreeSet};

/// Who waits or is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A session.
    Connection(u64),
    /// A transaction without one: it is prepared.
    Transaction(u64),
    /// Somebody of whom the server does not say who it is.
    Unknown,
}

/// For what somebody waits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wait {
    /// Whose lock it is: `Teak`, `InnoDB` or `metadata`.
    pub kind: &'static str,
    /// Since when.
    pub seconds: Option<f64>,
    /// Table, index, mode and key, as far as they are known.
    pub table: Option<String>,
    pub index: Option<String>,
    pub mode: Option<String>,
    pub key: Option<String>,
}

/// Somebody in a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub party: Party,
    /// How many are between it and the root.
    pub depth: usize,
    /// How many wait for it, directly or behind others.
    pub behind: usize,
    /// For whom it waits, and for what; None: it is the root.
    pub wait: Option<(Party, Wait)>,
    pub root: Party,
}

/// All chains one after the other, those first in which most wait, and in each the root first, and each before those
/// who wait for it.
pub fn chains(sample: &Sample) -> Vec<Link> {
    let mut waits: BTreeMap<Party, Vec<(Party, Wait)>> = BTreeMap::new();
    for (waiter, holder, wait) in edges(sample) {
        waits.entry(waiter).or_default().push((holder, wait));
    }
    let mut behind: BTreeMap<Party, Vec<Party>> = BTreeMap::new();
    for (waiter, holders) in &waits {
        for (holder, _) in holders {
            behind.entry(*holder).or_default().push(*waiter);
        }
    }
    let count = |party: Party| reach(&behind, party).len();
    let mut roots: Vec<Party> = behind.keys().copied().filter(|party| !waits.contains_key(party)).collect();
    // In a circle, which is about to be resolved, nobody is the root.
    let mut placed: BTreeSet<Party> = roots.iter().flat_map(|root| reach(&behind, *root)).collect();
    for party in waits.keys() {
        if !placed.contains(party) {
            placed.extend(reach(&behind, *party));
            roots.push(*party);
        }
    }
    roots.sort_by_key(|root| (std::cmp::Reverse(count(*root)), *root));
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for root in roots {
        let mut next = vec![(root, 0, None)];
        while let Some((party, depth, holder)) = next.pop() {
            if !seen.insert(party) {
                continue;
            }
            let wait = holder
                .and_then(|holder| waits.get(&party)?.iter().find(|(other, _)| *other == holder).cloned());
            links.push(Link { party, depth, behind: count(party), wait, root });
            let waiting = behind.get(&party).into_iter().flatten().rev();
            next.extend(waiting.map(|waiter| (*waiter, depth + 1, Some(party))));
        }
    }
    links
}

/// All who wait for it, directly or behind others, without itself.
fn reach(behind: &BTreeMap<Party, Vec<Party>>, party: Party) -> BTreeSet<Party> {
    let (mut found, mut next) = (BTreeSet::new(), vec![party]);
    while let Some(at) = next.pop() {
        next.extend(behind.get(&at).into_iter().flatten().filter(|waiter| found.insert(**waiter)));
    }
    found.remove(&party);
    found
}

fn edges(sample: &Sample) -> Vec<(Party, Party, Wait)> {
    let mut edges = Vec::new();
    for row in sample.records(Part::Waits) {
        let party = |connection, transaction| {
            let of_session = row.id(connection).map(Party::Connection);
            of_session.or(row.id(transaction).map(Party::Transaction)).unwrap_or(Party::Unknown)
        };
        let table = row.text("TABLE_NAME").map(|name| match row.text("TABLE_SCHEMA") {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_string(),
        });
        let waiter = party("WAITING_CONNECTION_ID", "WAITING_TRX_ID");
        let holder = party("BLOCKING_CONNECTION_ID", "BLOCKING_TRX_ID");
        edges.push((waiter, holder, Wait { table, ..wait("Teak", row) }));
    }
    for (part, kind) in [(Part::InnodbWaits, "InnoDB"), (Part::Metadata, "metadata")] {
        for row in sample.records(part) {
            let party = |column| row.id(column).map_or(Party::Unknown, Party::Connection);
            let table = row.text("LOCKED_TABLE").map(str::to_string);
            let (waiter, holder) = (party("WAITING_CONNECTION_ID"), party("BLOCKING_CONNECTION_ID"));
            edges.push((waiter, holder, Wait { table, ..wait(kind, row) }));
        }
    }
    let known: BTreeSet<Party> = edges.iter().map(|(waiter, ..)| *waiter).collect();
    for row in sample.records(Part::Parties).filter(|row| waits_for_metadata(*row)) {
        let Some(waiter) = row.id("ID").map(Party::Connection).filter(|waiter| !known.contains(waiter))
        else {
            continue;
        };
        let wait = Wait { seconds: row.number("SECONDS"), kind: "metadata", ..Wait::default() };
        edges.push((waiter, Party::Unknown, wait));
    }
    edges
}

fn wait(kind: &'static str, row: Record<'_>) -> Wait {
    let text = |column| row.text(column).map(str::to_string);
    Wait {
        kind,
        seconds: row.number("WAIT_SECONDS"),
        table: None,
        index: text("INDEX_NAME"),
        mode: text("LOCK_MODE"),
        key: text("LOCK_KEY"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Answer;

    fn answer(columns: &[&str], rows: &[&[Option<&str>]]) -> Answer {
        Answer {
            columns: columns.iter().map(|name| name.to_string()).collect(),
            rows: rows.iter().map(|row| row.iter().map(|value| value.map(String::from)).collect()).collect(),
            is_cut: false,
        }
    }

    fn waits(pairs: &[(u64, Option<u64>)]) -> Answer {
        let columns =
            ["WAITING_CONNECTION_ID", "WAITING_TRX_ID", "BLOCKING_CONNECTION_ID", "BLOCKING_TRX_ID"];
        let mut answer = answer(&columns, &[]);
        for (waiter, holder) in pairs {
            let text = |number: Option<u64>| number.map(|number| number.to_string());
            answer.rows.push(vec![
                text(Some(*waiter)),
                text(Some(waiter + 100)),
                text(*holder),
                text(Some(77)),
            ]);
        }
        answer
    }

    fn told(sample: &Sample) -> Vec<(Party, usize, usize)> {
        chains(sample).iter().map(|link| (link.party, link.depth, link.behind)).collect()
    }

    use Party::{Connection, Transaction, Unknown};

    #[test]
    fn a_chain_has_its_root_first_and_the_longest_comes_first() {
        let mut sample = Sample::default();
        sample
            .parts
            .insert(Part::Waits, waits(&[(9, Some(8)), (3, Some(2)), (2, Some(1)), (4, Some(2)), (5, None)]));
        let wanted = [
            (Connection(1), 0, 3),
            (Connection(2), 1, 2),
            (Connection(3), 2, 0),
            (Connection(4), 2, 0),
            (Connection(8), 0, 1),
            (Connection(9), 1, 0),
            (Transaction(77), 0, 1),
            (Connection(5), 1, 0),
        ];
        assert_eq!(told(&sample), wanted);
    }

    #[test]
    fn chains_go_through_all_kinds_of_locks() {
        let mut sample = Sample::default();
        let columns = ["WAITING_CONNECTION_ID", "BLOCKING_CONNECTION_ID", "LOCKED_TABLE"];
        sample.parts.insert(Part::Waits, waits(&[(3, Some(2))]));
        let innodb = answer(&columns, &[&[Some("2"), Some("1"), Some("d.t")]]);
        sample.parts.insert(Part::InnodbWaits, innodb);
        sample.parts.insert(Part::Metadata, answer(&columns, &[&[Some("4"), Some("3"), None]]));
        let states =
            ["Waiting for table metadata lock", "Waiting for schema metadata lock", "Waiting for nothing"];
        let rows: Vec<Vec<Option<&str>>> =
            states.iter().zip(["4", "5", "6"]).map(|(state, id)| vec![Some(id), Some(*state)]).collect();
        let rows: Vec<&[Option<&str>]> = rows.iter().map(Vec::as_slice).collect();
        sample.parts.insert(Part::Parties, answer(&["ID", "STATE"], &rows));
        let wanted = [
            (Connection(1), 0, 3),
            (Connection(2), 1, 2),
            (Connection(3), 2, 1),
            (Connection(4), 3, 0),
            (Unknown, 0, 1),
            (Connection(5), 1, 0),
        ];
        assert_eq!(told(&sample), wanted);
        assert_eq!(chains(&sample)[1].wait.as_ref().unwrap().1.table.as_deref(), Some("d.t"));
    }

    #[test]
    fn who_waits_in_a_circle_is_shown_once() {
        let mut sample = Sample::default();
        sample.parts.insert(Part::Waits, waits(&[(1, Some(2)), (2, Some(1)), (3, Some(1)), (4, Some(4))]));
        let parties: Vec<Party> = told(&sample).iter().map(|link| link.0).collect();
        assert_eq!(parties, [Connection(1), Connection(2), Connection(3), Connection(4)]);
    }

    #[test]
    fn who_waits_for_many_is_behind_each_and_shown_once() {
        let mut sample = Sample::default();
        let pairs: Vec<(u64, Option<u64>)> = (1..=40).map(|holder| (99, Some(holder))).collect();
        sample.parts.insert(Part::Waits, waits(&pairs));
        assert_eq!(told(&sample).iter().filter(|(party, ..)| *party == Connection(99)).count(), 1);
        assert_eq!(told(&sample).len(), 41);
    }
}
