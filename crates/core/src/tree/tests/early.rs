//! Images that were written early, while others change the tree.

use super::*;
use crate::cache::{Evictable, Purpose};
use crate::store::BlockAddress;
use crate::tree::block::blob::BlobAddress;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::Value;
use std::sync::atomic::AtomicBool;
use std::sync::Weak;

/// Does what another thread could do at that moment whenever the cache asks for memory, which is between a checkpoint's
/// leaves.
struct Meanwhile<F>(F);

impl<F: Fn() + Send + Sync> Evictable for Meanwhile<F> {
    fn touched(&self) -> bool {
        false
    }
    fn evict(&self) -> Result<u64> {
        (self.0)();
        Ok(0)
    }
    fn resident(&self) -> u64 {
        1
    }
}

/// Whether each extent of an image is in use.
struct InUse<'a>(&'a Space);

impl ImageVisitor for InUse<'_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        assert!(self.0.has_in_use(at), "the image names {at:?}, which is free");
        Ok(())
    }
    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        self.extent(&at.extent).map(|()| true)
    }
}

#[test]
fn an_early_image_that_a_checkpoint_had_to_replace_is_not_named_by_the_next() {
    let mut bench = Bench::new(64 << 20);
    bench.commit(&(0..1000).map(|n| (key(n), Some(vec![n as u8; 100]))).collect::<Vec<_>>());
    bench.checkpoint();
    // In the order in which the checkpoint will write them.
    for n in [999, 0] {
        bench.commit(&[(key(n), Some(b"changed".to_vec()))]);
    }
    bench.write_early(&mut || true);

    let (tree, last) = (bench.tree.clone(), bench.tree.find_leaf(&key(999)).unwrap());
    let (status, is_done) = (TxnStatus::new(2), AtomicBool::new(false));
    let loader = status.clone();
    let meanwhile = Arc::new(Meanwhile(move || {
        let is_written = last.leaf().unwrap().latch().copies.pending().is_some();
        if is_written && !is_done.swap(true, Ordering::SeqCst) {
            let mut builder = BlockBuilder::new();
            (2000..2010).for_each(|n| builder.push(&key(n), Value::Inline(b"loaded")));
            let attached = tree.attach(&Arc::new(builder.finish()), &loader, 1).unwrap();
            assert!(matches!(attached, Attached::As(_)), "there is room behind the last leaf");
        }
    }));
    let weak: Weak<dyn Evictable> = Arc::downgrade(&(meanwhile.clone() as Arc<dyn Evictable>));
    bench.context.cache.register(weak);
    bench.context.cache.charge(Purpose::Values, 128 << 20);
    bench.checkpoint();
    bench.context.cache.discharge(Purpose::Values, 128 << 20);
    drop(meanwhile);
    bench.context.clock.publish(&status);
    assert_eq!(bench.tree.find_leaf(&key(2000)).unwrap().leaf().unwrap().view().low[..], key(2000)[..]);

    // The last leaf of before is to be written again, with the same content.
    let undone = TxnStatus::new(3);
    bench.tree.write(&key(998), WriteOp::Update(b"never"), &undone, 1).unwrap();
    undone.abort();
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    let mut findings = crate::finding::Findings::default();
    check_image(&bench.space, 7, &root, &mut findings, &mut InUse(&bench.space)).unwrap();
    assert!(findings.is_empty(), "{findings}");
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len(), 1010);
}

#[test]
fn a_leaf_with_an_early_image_is_evicted_without_spilling() {
    let bench = Bench::new(64 << 20);
    let rows: Vec<_> = (0..3000).map(|n| (key(n), Some(vec![7; 100]))).collect();
    bench.commit(&rows);
    bench.write_early(&mut || true);
    bench.context.cache.set_budget(64 << 10);
    bench.context.cache.make_room().unwrap();
    assert!(bench.context.cache.used() < 100 << 10);
    assert!(bench.context.spill.used_bytes() < 10 << 10, "{}", bench.context.spill.used_bytes());
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len(), 3000);
}
