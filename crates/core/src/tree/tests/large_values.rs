//! Large values leave memory, whoever refers to them, and what they leave behind on disk goes with them.

use super::*;

const CACHE: u64 = 512 << 10;
const BYTES: usize = 20_000;

fn text(n: u64, round: u8) -> Vec<u8> {
    (0..BYTES).map(|i| (n as usize * 31 + i / 5) as u8 ^ round).collect()
}

impl Bench {
    /// Writes a large value to each of `count` keys, in one transaction that stays open.
    fn write_texts(&self, status: &Arc<TxnStatus>, count: u64, round: u8) {
        for n in 0..count {
            let sequence = u32::from(round) * 1000 + n as u32 + 1;
            self.tree.write(&key(n), WriteOp::Insert(&text(n, round)), status, sequence).unwrap();
            self.check_memory();
        }
    }

    /// Large values are in the count, which keeps to the budget.
    fn check_memory(&self) {
        let (used, values) = (self.context.cache.used(), self.values_in_memory() as u64);
        assert!(values <= used, "{values} bytes of values, {used} bytes counted");
        assert!(used <= CACHE + CACHE / 20 + BYTES as u64, "{used} bytes");
    }

    fn values_in_memory(&self) -> usize {
        let mut nodes = vec![self.tree.root.load_full()];
        let mut bytes = 0;
        while let Some(node) = nodes.pop() {
            match &*node {
                Node::Leaf(leaf) => bytes += leaf.view().values_in_memory(),
                Node::Inner(inner) => {
                    nodes.extend(inner.view(&self.tree.shared).unwrap().as_ref().unwrap().children.clone());
                }
            }
        }
        bytes
    }

    fn expect_texts(&self, reader: &Reader<'_>, count: u64, round: u8) {
        let rows = scan(&self.tree, reader, true);
        assert_eq!(rows.len() as u64, count);
        for (n, (_, value)) in rows.iter().enumerate() {
            assert!(*value == text(n as u64, round), "value {n} of round {round}");
        }
    }
}

impl leaf::LeafView {
    fn values_in_memory(&self) -> usize {
        let sum = |blobs: &[Arc<block::blob::Blob>]| blobs.iter().map(|blob| blob.memory()).sum::<usize>();
        let base = match &self.base {
            leaf::Base::Loaded(block) => sum(block.blobs()),
            leaf::Base::Spilled(spilled) => sum(&spilled.blobs),
            leaf::Base::Stored(image) => sum(image.blobs()),
        };
        let delta = match &self.delta {
            leaf::changes::Changes::Live(delta) => delta.blobs().map(|(_, blob)| blob.memory()).sum(),
            leaf::changes::Changes::Spilled { older, fresh } => {
                sum(&older.blobs()) + fresh.blobs().map(|(_, blob)| blob.memory()).sum::<usize>()
            }
        };
        let history = match &self.history {
            leaf::Archive::Live(history) => sum(history.blobs()),
            leaf::Archive::Spilled(spilled) => sum(spilled.blobs()),
            leaf::Archive::Empty => 0,
        };
        base + delta + history
    }
}

#[test]
fn large_values_of_an_open_transaction_leave_memory_and_are_there_when_it_has_committed() {
    let mut bench = Bench::new(CACHE);
    let status = TxnStatus::new(1);
    bench.write_texts(&status, 150, 0);
    bench.expect_texts(&Reader { own: Some(&status), ..Reader::at(Timestamp::MAX) }, 150, 0);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 0, 0);
    bench.context.clock.publish(&status);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 150, 0);
    let root = bench.checkpoint().unwrap();
    bench.check_memory();
    bench.reopen(root);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 150, 0);
}

#[test]
fn large_values_that_are_rolled_back_leave_no_bytes_on_disk() {
    let mut bench = Bench::new(CACHE);
    bench.commit(&[(key(500), Some(b"small".to_vec()))]);
    bench.checkpoint().unwrap();
    let before = bench.used();
    let status = TxnStatus::new(1);
    bench.write_texts(&status, 150, 0);
    assert!(bench.used() > before, "something was evicted");
    status.abort();
    bench.commit(&[(key(501), Some(b"small".to_vec()))]);
    bench.checkpoint().unwrap();
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len(), 2);
    assert!(bench.used() <= before + (16 << 10), "{} bytes instead of {before}", bench.used());
}

#[test]
fn a_savepoint_gives_back_what_was_written_after_it() {
    let mut bench = Bench::new(CACHE);
    let status = TxnStatus::new(1);
    bench.write_texts(&status, 100, 0);
    bench.write_texts(&status, 100, 1);
    status.void(1000, 2000);
    bench.context.clock.publish(&status);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 100, 0);
    bench.checkpoint().unwrap();
    bench.checkpoint();
    let stored = 100 * BYTES as u64;
    assert!(bench.used() < stored, "{} bytes for {stored} that compress well", bench.used());
}

#[test]
fn an_old_snapshot_reads_large_values_that_were_replaced_before_any_image_had_them() {
    let mut bench = Bench::new(CACHE);
    let write = |bench: &Bench, round: u8| {
        let status = TxnStatus::new(u64::from(round));
        bench.write_texts(&status, 100, round);
        bench.context.clock.publish(&status);
    };
    write(&bench, 0);
    let old = bench.context.clock.snapshot(1);
    write(&bench, 1);
    write(&bench, 2);
    bench.expect_texts(&Reader::at(old.timestamp()), 100, 0);
    bench.checkpoint().unwrap();
    bench.check_memory();
    bench.expect_texts(&Reader::at(old.timestamp()), 100, 0);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 100, 2);
    drop(old);
    write(&bench, 3);
    bench.abandon_checkpoint();
    bench.checkpoint().unwrap();
    bench.checkpoint();
    bench.expect_texts(&Reader::at(Timestamp::MAX), 100, 3);
}

#[test]
fn what_an_abandoned_checkpoint_stored_goes_with_the_values() {
    let mut bench = Bench::new(CACHE);
    bench.commit(&[(key(500), Some(b"small".to_vec()))]);
    bench.checkpoint().unwrap();
    let before = bench.used();
    let status = TxnStatus::new(1);
    bench.write_texts(&status, 10, 0);
    bench.context.clock.publish(&status);
    bench.abandon_checkpoint();
    bench.commit(&(0..10).map(|n| (key(n), None)).collect::<Vec<_>>());
    bench.checkpoint().unwrap();
    bench.checkpoint();
    assert!(bench.used() <= before + (16 << 10), "{} bytes instead of {before}", bench.used());
}
