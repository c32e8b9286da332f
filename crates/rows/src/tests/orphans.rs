//! Rows without parents, found by a merge: what is told is what each row by itself would say.

use super::*;
use crate::foreign::History;
use crate::orphans::{Kinship, Named, Relatives, Side};
use std::collections::BTreeSet;
use teak_core::View;

/// Rows name by their plain key a row's primary key: as it is, or written backwards.
struct Family {
    backwards: bool,
    named: Vec<u8>,
    orphans: Vec<String>,
    asked: usize,
    wanted: usize,
    told: u64,
    /// Rows with this in their primary key, or (`by_row`) in themselves, are history.
    past: Option<&'static str>,
    by_row: bool,
}

impl Family {
    fn new(backwards: bool) -> Family {
        let (named, orphans) = (Vec::new(), Vec::new());
        Family { backwards, named, orphans, asked: 0, wanted: usize::MAX, told: 0, past: None, by_row: false }
    }

    fn find(&mut self, bench: &Bench, session: &mut Session, view: View) -> Result<()> {
        let primary_of = |key: &[u8], _: &[u8]| key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec);
        let past = self.past.unwrap_or("").as_bytes();
        let says = |row: &[u8]| row.windows(past.len()).any(|part| part == past);
        let history = match (self.past, self.by_row) {
            (None, _) => History::Never,
            (Some(_), false) => History::ByKey(&says),
            (Some(_), true) => History::ByRow(&says),
        };
        let side = |tree| Side { table: &bench.table, tree, primary_of: &primary_of, history };
        session.find_orphans(&Kinship { child: side(2), parent: side(0), view }, self)
    }
}

impl Relatives for Family {
    fn named(&mut self, child: &[u8]) -> Result<Named<'_>> {
        self.asked += 1;
        let end = child.iter().position(|byte| *byte == 0).unwrap();
        self.named = child[..end].to_vec();
        if self.backwards {
            self.named.reverse();
        }
        // Whose plain key is "none" has no parent to name.
        Ok(Named { parent: Some(&self.named[..]).filter(|name| name != b"none"), bytes: end + 1 })
    }

    fn orphan(&mut self, key: &[u8], _: &[u8]) -> Result<bool> {
        let pk = key.split(|byte| *byte == 0).nth(1).unwrap();
        self.orphans.push(String::from_utf8(pk.to_vec()).unwrap());
        Ok(self.orphans.len() < self.wanted)
    }

    fn watch(&mut self, entries: u64) -> Result<()> {
        self.told = entries;
        Ok(())
    }
}

#[test]
fn a_parent_is_asked_for_once_and_who_names_none_has_none() {
    let bench = Bench::new();
    bench.fill(&[
        row("1", "a", "1"),
        row("2", "b", "1"),
        row("3", "c", "none"),
        row("4", "d", "5"),
        row("6", "e", "5"),
    ]);
    let mut session = bench.repeatable();
    let mut all = Family::new(false);
    all.find(&bench, &mut session, View::Latest).unwrap();
    assert_eq!((all.orphans, all.asked, all.told), (vec!["4".to_string(), "6".to_string()], 3, 5));
    let mut first = Family { wanted: 1, ..Family::new(false) };
    first.find(&bench, &mut session, View::Latest).unwrap();
    assert_eq!(first.orphans, ["4"]);
}

#[test]
fn what_is_told_is_as_of_the_snapshot() {
    let bench = Bench::new();
    bench.fill(&[row("1", "a", "1"), row("2", "b", "1")]);
    let mut old = bench.repeatable();
    old.open_snapshot().unwrap();
    let mut deleter = bench.repeatable();
    bench.delete(&mut deleter, row("1", "a", "1")).unwrap();
    deleter.commit().unwrap();
    let mut then = Family::new(false);
    then.find(&bench, &mut old, View::Snapshot).unwrap();
    let mut now = Family::new(false);
    now.find(&bench, &mut old, View::Latest).unwrap();
    assert_eq!((then.orphans, now.orphans), (vec![], vec!["2".to_string()]));
}

#[test]
fn the_merge_tells_what_each_row_says_in_whatever_order_the_parents_are() {
    let bench = Bench::new();
    let mut rows = Vec::new();
    let mut parents = BTreeSet::new();
    for i in 0..3000u32 {
        // Stretches of parents without children, and of children without parents.
        let pk = format!("{:04}", i * 3);
        let plain =
            format!("{:04}", (i.wrapping_mul(2_654_435_761) >> 7) % 9500 / if i % 3 == 0 { 500 } else { 1 });
        parents.insert(pk.clone());
        rows.push((pk, plain));
    }
    let uniques: Vec<String> = rows.iter().map(|(pk, _)| format!("u{pk}")).collect();
    let images: Vec<_> =
        rows.iter().zip(&uniques).map(|((pk, plain), unique)| row(pk, unique, plain)).collect();
    bench.fill(&images);
    for backwards in [false, true] {
        let is_orphan = |plain: &str| {
            let name: String = if backwards { plain.chars().rev().collect() } else { plain.to_string() };
            !parents.contains(&name)
        };
        let mut expected: Vec<(&str, &str)> = rows
            .iter()
            .filter(|(_, plain)| is_orphan(plain))
            .map(|(pk, plain)| (&plain[..], &pk[..]))
            .collect();
        expected.sort_unstable();
        let expected: Vec<&str> = expected.into_iter().map(|(_, pk)| pk).collect();
        let mut family = Family::new(backwards);
        family.find(&bench, &mut bench.repeatable(), View::Latest).unwrap();
        assert!(!expected.is_empty() && expected.len() < rows.len());
        assert_eq!(family.orphans, expected);
    }
}

#[test]
fn history_has_no_parents_and_is_none() {
    let bench = Bench::new();
    // The rows 1p and 2p are history: 1 is named by 3 alone, 2 by nobody, 4 by history.
    bench.fill(&[
        row("1p", "past a", "9"),
        row("2p", "past b", "4"),
        row("3", "c", "1"),
        row("5", "d", "5"),
        row("6", "e", "2"),
        row("2x", "f", "5"),
    ]);
    for by_row in [false, true] {
        let mut family = Family::new(false);
        family.past = Some(if by_row { "past" } else { "p" });
        family.by_row = by_row;
        let mut session = bench.repeatable();
        family.find(&bench, &mut session, View::Snapshot).unwrap();
        assert_eq!(family.orphans, ["3"], "by row: {by_row}");
    }
}
