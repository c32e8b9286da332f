//! Rows that are exchanged for others that say the same, while others read and write.

use super::*;

const LATEST: Reader<'static> = Reader { snapshot: Timestamp::MAX, own: None, pending: false, fate: None };
const ROWS: u64 = 3000;
const OLD: u8 = 1;
const NEW: u8 = 2;

/// A row in its old form: short, or a large value.
fn old_form(n: u64) -> Vec<u8> {
    let bytes = if n.is_multiple_of(50) { 3000 } else { 60 };
    let mut value = vec![OLD];
    value.extend((0..bytes).map(|i: u64| (i * n % 251) as u8));
    value
}

/// The same in its new form: longer, shorter, large or not large any more.
fn new_form(n: u64) -> Vec<u8> {
    let bytes = match n % 100 {
        0 => 40,
        50 => 2500,
        7 => 2000,
        rest if rest % 3 == 0 => 500,
        _ => 10,
    };
    let mut value = vec![NEW];
    value.extend((0..bytes).map(|i: u64| (i + n) as u8));
    value
}

fn number(key: &[u8]) -> u64 {
    (0..ROWS).find(|n| self::key(*n) == key).unwrap()
}

impl Bench {
    fn of_old_form() -> Bench {
        let bench = Bench::new(64 << 20);
        let rows: Vec<_> = (0..ROWS).map(|n| (key(n), Some(old_form(n)))).collect();
        for part in rows.chunks(200) {
            bench.commit(part);
        }
        bench
    }

    /// The whole walk; how many rows were exchanged.
    fn rewrite(&self) -> u64 {
        let mut exchanged = 0;
        let mut rewrite = |key: &[u8], row: &[u8], to: &mut Vec<u8>| {
            if row[0] == NEW {
                return Ok(false);
            }
            exchanged += 1;
            to.extend_from_slice(&new_form(number(key)));
            Ok(true)
        };
        let mut at = Vec::new();
        while let Some(next) = self.tree.rewrite_at(&at, &mut rewrite).unwrap() {
            at = next;
        }
        exchanged
    }

    fn assert_intact(&self, root: Option<&TreeRoot>) {
        let findings = self.found_in_memory();
        assert!(findings.is_empty(), "{findings}");
        if let Some(root) = root {
            let findings = self.found_on_disk(root);
            assert!(findings.is_empty(), "{findings}");
        }
    }
}

fn all_new() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..ROWS).map(|n| (key(n), new_form(n))).collect()
}

#[test]
fn all_rows_are_exchanged_whatever_their_length_becomes() {
    let mut bench = Bench::of_old_form();
    bench.checkpoint();
    assert_eq!(bench.rewrite(), ROWS);
    assert!(scan(&bench.tree, &LATEST, true) == all_new());
    bench.assert_intact(None);
    let root = bench.checkpoint().unwrap();
    bench.assert_intact(Some(&root));
    bench.reopen(root);
    assert!(scan(&bench.tree, &LATEST, false) == all_new());
    assert_eq!(bench.rewrite(), 0);
    assert!(!bench.tree.is_dirty(), "what stays as it is was changed");
}

#[test]
fn snapshots_and_undecided_rows_keep_what_they_have() {
    for commits in [true, false] {
        let mut bench = Bench::of_old_form();
        bench.checkpoint();
        let snapshot = bench.context.clock.snapshot(1);
        // New versions of some rows; the snapshot sees those of before, which no walk comes by.
        let updated = |n: u64| n % 10 == 3;
        let updates: Vec<_> =
            (0..ROWS).filter(|n| updated(*n)).map(|n| (key(n), Some(vec![NEW, 9]))).collect();
        bench.commit(&updates);
        let status = TxnStatus::new(2);
        let undecided = |n: u64| n % 10 == 4;
        for n in (0..ROWS).filter(|n| undecided(*n)) {
            bench.tree.write(&key(n), WriteOp::Update(&[NEW, 8]), &status, 1).unwrap();
        }
        bench.rewrite();
        let seen = Reader { snapshot: snapshot.timestamp(), own: None, pending: false, fate: None };
        let expected: Vec<_> =
            (0..ROWS).map(|n| (key(n), if updated(n) { old_form(n) } else { new_form(n) })).collect();
        assert!(scan(&bench.tree, &seen, true) == expected, "the snapshot");
        bench.checkpoint();
        match commits {
            true => drop(bench.context.clock.publish(&status)),
            false => status.abort(),
        }
        drop(snapshot);
        let root = bench.checkpoint().unwrap();
        bench.assert_intact(Some(&root));
        bench.reopen(root);
        let newest = |n: u64| match n {
            n if updated(n) => vec![NEW, 9],
            n if undecided(n) && commits => vec![NEW, 8],
            n => new_form(n),
        };
        let expected: Vec<_> = (0..ROWS).map(|n| (key(n), newest(n))).collect();
        assert!(scan(&bench.tree, &LATEST, true) == expected, "committed: {commits}");
    }
}

/// A checkpoint that has begun before goes on, whether it becomes durable or not.
#[test]
fn rows_are_exchanged_beside_a_checkpoint() {
    for durable in [true, false] {
        let mut bench = Bench::of_old_form();
        bench.checkpoint();
        bench.commit(&[(key(5), Some(old_form(5))), (key(2000), Some(old_form(2000)))]);
        let generation = bench.generation + 1;
        bench.space.begin(generation);
        let snapshot = bench.context.clock.snapshot(0);
        bench.tree.checkpoint(Moment::at(snapshot.timestamp()), generation, 1).unwrap();
        drop(snapshot);
        assert_eq!(bench.rewrite(), ROWS);
        match durable {
            true => {
                bench.space.write_map(generation).unwrap();
                bench.tree.checkpoint_durable();
                bench.space.durable(generation);
                bench.generation = generation;
            }
            false => {
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
            }
        }
        let root = bench.checkpoint().unwrap();
        bench.assert_intact(Some(&root));
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, true) == all_new());
    }
}
