//! Leaves that were due for consolidation while a large transaction was writing to them.

use super::*;

const ROWS: u64 = 2000;
const LATEST: Reader<'static> = Reader { snapshot: Timestamp::MAX, own: None, pending: false, fate: None };

fn rows(version: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..ROWS).map(|n| (key(n), vec![version; 100])).collect()
}

impl Bench {
    fn with_first_rows() -> Bench {
        let bench = Bench::new(64 << 20);
        bench.commit(&rows(1).into_iter().map(|(key, value)| (key, Some(value))).collect::<Vec<_>>());
        bench.fold_due();
        bench
    }

    /// Changes all rows; the transaction is undecided.
    fn change_all(&self) -> Arc<TxnStatus> {
        let status = TxnStatus::new(2);
        for (i, (key, value)) in rows(2).iter().enumerate() {
            self.tree.write(key, WriteOp::Update(value), &status, i as u32 + 1).unwrap();
        }
        status
    }

    fn fold_due(&self) {
        self.context.attention().fold_due().unwrap();
    }

    /// Bytes of deltas in memory.
    fn deltas(&self) -> usize {
        let mut bytes = 0;
        self.each_leaf(&mut |_, leaf| bytes += leaf.view().delta.charge());
        bytes
    }
}

#[test]
fn what_a_large_transaction_has_changed_is_folded_once_it_is_decided() {
    for commits in [true, false] {
        let bench = Bench::with_first_rows();
        let status = bench.change_all();
        let undecided = bench.deltas();
        bench.fold_due();
        assert_eq!(bench.deltas(), undecided, "nothing is decided");
        assert!(bench.context.attention().has_due());
        match commits {
            true => _ = bench.context.clock.publish(&status),
            false => status.abort(),
        }
        bench.fold_due();
        assert!(bench.deltas() < undecided / 10, "{} of {undecided} bytes", bench.deltas());
        assert!(!bench.context.attention().has_due());
        assert!(scan(&bench.tree, &LATEST, true) == rows(if commits { 2 } else { 1 }));
        let findings = bench.found_in_memory();
        assert!(findings.is_empty(), "{findings}");
    }
}

#[test]
fn who_reads_an_older_snapshot_finds_its_rows_after_the_fold() {
    let bench = Bench::with_first_rows();
    let old = bench.context.clock.snapshot(1);
    let status = bench.change_all();
    bench.context.clock.publish(&status);
    bench.fold_due();
    assert!(scan(&bench.tree, &Reader::at(old.timestamp()), true) == rows(1));
    assert!(scan(&bench.tree, &LATEST, false) == rows(2));
}

#[test]
fn leaves_that_were_evicted_are_not_read_to_be_folded() {
    let bench = Bench::with_first_rows();
    let status = bench.change_all();
    bench.evict_all();
    bench.context.clock.publish(&status);
    bench.fold_due();
    assert!(!bench.context.attention().has_due());
    bench.each_leaf(&mut |_, leaf| assert!(!leaf.is_in_memory()));
    assert!(scan(&bench.tree, &LATEST, true) == rows(2));
}

#[test]
fn leaves_of_a_transaction_that_stays_open_keep_no_others_waiting() {
    const OPEN: u64 = 60_000;
    let bench = Bench::new(256 << 20);
    let all: Vec<_> = (0..OPEN + ROWS).map(|n| (key(n), Some(vec![1; 100]))).collect();
    bench.commit(&all);
    bench.fold_due();
    let change = |id, keys: std::ops::Range<u64>| {
        let status = TxnStatus::new(id);
        for (i, n) in keys.enumerate() {
            bench.tree.write(&key(n), WriteOp::Update(&[2; 100]), &status, i as u32 + 1).unwrap();
        }
        status
    };
    let (open, other) = (change(2, 0..OPEN), change(3, OPEN..OPEN + ROWS));
    bench.context.clock.publish(&other);
    bench.fold_due();
    let (mut waiting, mut bytes) = (0, 0);
    bench.each_leaf(&mut |_, leaf| match *leaf.view().low >= *key(OPEN) {
        true => bytes += leaf.view().delta.charge(),
        false => waiting += 1,
    });
    assert!(waiting > 1024, "{waiting} leaves are not more than one look folds");
    assert!(bytes < ROWS as usize * 20, "{bytes} bytes of decided changes wait");
    open.abort();
    while bench.context.attention().has_due() {
        bench.fold_due();
    }
    assert!(bench.deltas() < OPEN as usize * 20);
    let findings = bench.found_in_memory();
    assert!(findings.is_empty(), "{findings}");
}
