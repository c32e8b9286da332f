//! Large values leave memory, whoever refers to them, and what they leave behind on disk goes with them.

use super::*;
use crate::tree::storing::bundles::Looked;

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
        let mut bytes = 0;
        self.each_leaf(&mut |_, leaf| bytes += leaf.view().values_in_memory());
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
            leaf::Base::Stored(image) => sum(&image.known_blobs()),
            leaf::Base::Packed(packed) => sum(packed.keys().blobs()),
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

impl Bench {
    /// Objects of large values that images have.
    fn objects(&self) -> usize {
        let mut objects = 0;
        self.each_leaf(&mut |_, leaf| {
            objects += leaf.latch().copies.images().map(|image| image.known_blobs().len()).sum::<usize>();
        });
        objects
    }

    fn commit_texts(&self, count: u64, round: u8) {
        let status = TxnStatus::new(1);
        self.write_texts(&status, count, round);
        self.context.clock.publish(&status);
    }
}

#[test]
fn the_objects_of_large_values_leave_memory_with_their_leaf_and_their_extents_are_freed_all_the_same() {
    let mut bench = Bench::new(CACHE);
    bench.commit_texts(300, 0);
    let root = bench.checkpoint().unwrap();
    bench.evict_all();
    assert_eq!(bench.objects(), 0, "they were written by this run");
    bench.reopen(root);
    for _ in 0..2 {
        bench.expect_texts(&Reader::at(Timestamp::MAX), 300, 0);
        assert!(bench.objects() > 0, "leaves in memory name values");
        bench.evict_all();
        assert_eq!(bench.objects(), 0, "they were read");
    }
    bench.commit(&(0..300).map(|n| (key(n), None)).collect::<Vec<_>>());
    bench.checkpoint().unwrap();
    bench.checkpoint();
    assert!(bench.used() <= 24 << 10, "{} bytes for an empty tree", bench.used());
}

#[test]
fn objects_that_somebody_needs_stay() {
    let mut bench = Bench::new(CACHE);
    bench.commit_texts(100, 0);
    // No checkpoint has named the extents: they would go with the objects.
    bench.evict_all();
    bench.abandon_checkpoint();
    bench.evict_all();
    bench.expect_texts(&Reader::at(Timestamp::MAX), 100, 0);
    bench.checkpoint().unwrap();
    // History has the same objects as the image.
    let old = bench.context.clock.snapshot(1);
    bench.commit_texts(50, 1);
    bench.evict_all();
    bench.abandon_checkpoint();
    bench.evict_all();
    bench.expect_texts(&Reader::at(old.timestamp()), 100, 0);
    bench.checkpoint().unwrap();
    bench.evict_all();
    bench.expect_texts(&Reader::at(old.timestamp()), 100, 0);
    drop(old);
    bench.commit_texts(100, 2);
    bench.checkpoint().unwrap();
    bench.checkpoint();
    bench.evict_all();
    assert_eq!(bench.objects(), 0);
    bench.expect_texts(&Reader::at(Timestamp::MAX), 100, 2);
    assert!(bench.used() < 100 * BYTES as u64, "{} bytes for 100 values", bench.used());
}

#[test]
fn what_a_forgotten_image_named_is_read_again_when_a_checkpoint_replaces_it() {
    let mut bench = Bench::new(CACHE);
    bench.commit(&[(key(500), Some(b"small".to_vec()))]);
    bench.checkpoint().unwrap();
    let before = bench.used();
    bench.commit_texts(200, 0);
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    bench.commit(&(0..200).map(|n| (key(n), None)).collect::<Vec<_>>());
    bench.each_leaf(&mut |node, _| bench.tree.consolidate_changed(node).unwrap());
    bench.tree.remove_vacant().unwrap();
    let mut forgotten = 0;
    for image in bench.tree.structure.lock().loose.gone().map(|copy| &copy.image) {
        let named = image.known_blobs().len();
        image.forget_blobs();
        forgotten += named - image.known_blobs().len();
    }
    assert!(forgotten > 100, "{forgotten}: no other has them, as no snapshot needs the rows");
    bench.abandon_checkpoint();
    bench.checkpoint().unwrap();
    bench.checkpoint();
    assert!(bench.used() <= before + (16 << 10), "{} bytes instead of {before}", bench.used());
}

#[test]
fn a_value_that_was_looked_at_is_not_looked_at_again_after_an_eviction() {
    let mut bench = Bench::new(CACHE);
    bench.commit_texts(100, 0);
    bench.checkpoint().unwrap();
    let found = |bench: &Bench| {
        let (mut at, mut found) = (Some(Vec::new()), 0);
        while let Some(key) = at {
            let (values, next) = bench.tree.lone_values(&key, Looked::Unseen, u64::MAX).unwrap();
            found += values.len();
            at = next;
        }
        found
    };
    assert_eq!(found(&bench), 100);
    bench.evict_all();
    assert_eq!(bench.objects(), 0);
    assert_eq!(found(&bench), 0);
}
