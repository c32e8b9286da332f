//! The pages of an image are noted at one moment and written later: what is split in between is another image's.

use super::*;
use crate::tree::storing::pages::Cut;

/// Some 500 leaves, which are more than one page has.
const ROWS: u64 = 20_000;

fn rows(tree: &Arc<Tree>, reader: &Reader<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    scan(tree, reader, true)
}

impl Bench {
    /// Splits the leaves that have these rows, each into several.
    fn split_at(&self, numbers: impl Iterator<Item = u64> + Clone, byte: u8) {
        let more = |n: u64| (0..60u8).map(move |i| ([key(n), vec![byte, i]].concat(), Some(vec![byte; 100])));
        let before = self.tree.leaves();
        self.commit(&numbers.clone().flat_map(more).collect::<Vec<_>>());
        self.each_leaf(&mut |node, _| self.tree.maintain(node).unwrap());
        assert!(self.tree.leaves() >= before + numbers.count() as u64, "leaves were not split");
    }

    /// The steps of [`Tree::checkpoint`] up to the moment that its image shows the structure of. `split`: what others
    /// do while leaves are written.
    fn write_up_to_cut(&self, at: Timestamp, generation: u64, split: &dyn Fn()) -> Cut {
        let dirty = self.tree.begin_image(false).unwrap();
        dirty.iter().for_each(|node| self.tree.write_leaf(node, at, generation).unwrap());
        split();
        self.tree.write_split(at, generation, 2).unwrap();
        let before = self.context.cache.used();
        let cut = self.tree.cut().unwrap();
        let charged = self.context.cache.used() - before;
        assert!(charged >= 3 * 40, "three pages were noted for {charged} bytes");
        cut
    }
}

/// Leaves are split while leaves are written, few or more than wait for the end, and then again, all of them, while the
/// pages are written.
#[test]
fn an_image_shows_the_structure_of_one_moment_whatever_is_split_beside_it() {
    for (step, durable) in [(2000, true), (2000, false), (60, true), (60, false)] {
        let mut bench = Bench::new(64 << 20);
        bench.commit(&(0..ROWS).map(|n| (key(n), Some(vec![1; 100]))).collect::<Vec<_>>());
        let first = bench.checkpoint().unwrap();
        bench.commit(&(0..ROWS).step_by(7).map(|n| (key(n), Some(vec![2; 90]))).collect::<Vec<_>>());
        let generation = bench.generation + 1;
        bench.space.begin(generation);
        let snapshot = bench.context.clock.snapshot(0);
        let at = snapshot.timestamp();
        let expected = rows(&bench.tree, &Reader::at(at));
        let split = || bench.split_at((0..ROWS).step_by(step), 3);
        let cut = bench.write_up_to_cut(at, generation, &split);
        bench.split_at((0..ROWS).step_by(50), 4);
        let used = bench.context.cache.used();
        let root = bench.tree.write_cut(cut, at, generation, 2).unwrap();
        assert!(bench.context.cache.used() < used, "what was noted is charged no more");
        bench.tree.supersede_replaced(generation).unwrap();
        drop(snapshot);
        let restarted =
            |root| Tree::open(7, bench.spec, bench.space.clone(), Some(root), bench.context.clone());
        match durable {
            true => {
                bench.space.write_map(generation).unwrap();
                bench.tree.checkpoint_durable();
                assert!(rows(&restarted(root), &Reader::at(Timestamp::MAX)) == expected);
                bench.space.durable(generation);
                bench.generation = generation;
            }
            false => {
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
                assert_eq!(rows(&restarted(first), &Reader::at(Timestamp::MAX)).len(), ROWS as usize);
            }
        }
        let latest = rows(&bench.tree, &Reader::at(Timestamp::MAX));
        let more = ROWS.div_ceil(step as u64) + ROWS.div_ceil(50);
        assert_eq!(latest.len() as u64, ROWS + more * 60);
        let root = bench.checkpoint().unwrap();
        bench.assert_whole(Some(&root));
        bench.reopen(root);
        assert!(rows(&bench.tree, &Reader::at(Timestamp::MAX)) == latest);
    }
}
