//! The checkers of trees: what they find, and that they find nothing in sound trees.

use super::*;
use crate::finding::Findings;
use crate::store::BlockAddress;
use crate::tree::block::blob::BlobAddress;

struct Extents(Vec<BlockAddress>);

impl ImageVisitor for Extents {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.0.push(*at);
        Ok(())
    }
    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        self.extent(&at.extent).map(|()| true)
    }
}

fn row(n: u32) -> (Vec<u8>, Option<Vec<u8>>) {
    (n.to_be_bytes().to_vec(), Some(vec![n as u8; 900]))
}

impl Bench {
    pub(super) fn found_in_memory(&self) -> Findings {
        let mut findings = Findings::default();
        let latest = Reader::at(Timestamp::MAX);
        self.tree.check(&latest, Depth::Structure, &mut findings, &mut |_| Ok(())).unwrap();
        // That one reads blocks and relies on them.
        if findings.is_empty() {
            self.tree.check_lists(&mut findings).unwrap();
        }
        findings
    }

    pub(super) fn found_on_disk(&self, root: &TreeRoot) -> Findings {
        let mut findings = Findings::default();
        check_image(&self.space, 7, root, &mut findings, &mut Extents(Vec::new())).unwrap();
        findings
    }
}

fn assert_finds(findings: &Findings, text: &str) {
    assert!(findings.iter().any(|finding| finding.detail.contains(text)), "{text}: {findings}");
}

/// The first keys of the pages below the root.
fn pages(tree: &Arc<Tree>) -> Vec<Vec<u8>> {
    let root = tree.root.load_full();
    let Node::Inner(inner) = &*root else { return Vec::new() };
    let view = inner.view().unwrap();
    view.as_ref().iter().flat_map(|view| view.entries()).map(|(low, _)| low).collect()
}

fn filled() -> Bench {
    let bench = Bench::new(64 << 20);
    for part in (0..4000u32).collect::<Vec<_>>().chunks(100) {
        bench.commit(&part.iter().map(|&n| row(n)).collect::<Vec<_>>());
    }
    bench
}

#[test]
fn a_tree_is_sound_after_a_whole_page_of_it_went() {
    (0..4).for_each(|page| remove_page(page, false));
}

/// Its leaves are empty on disk already when the snapshot ends that has kept them.
#[test]
fn a_tree_is_sound_after_a_whole_page_of_it_went_with_a_snapshot() {
    (0..4).for_each(|page| remove_page(page, true));
}

fn remove_page(page: usize, with_snapshot: bool) {
    let mut bench = filled();
    let root = bench.checkpoint().unwrap();
    assert!(root.height == 2 && bench.found_on_disk(&root).is_empty());
    let lows = pages(&bench.tree);
    let gone = |key: &[u8]| *key >= *lows[page] && lows.get(page + 1).is_none_or(|next| *key < **next);
    let snapshot = with_snapshot.then(|| bench.context.clock.snapshot(0));
    for key in (0..4000).map(|n| row(n).0).filter(|key| gone(key)) {
        bench.commit(&[(key, None)]);
    }
    bench.tree.retire_spent().unwrap();
    let mut root = bench.checkpoint().unwrap();
    if let Some(snapshot) = snapshot {
        drop(snapshot);
        bench.context.attention().collect_history().unwrap();
        root = bench.checkpoint().unwrap();
    }
    let rows = scan(&bench.tree, &Reader::at(Timestamp::MAX), true);
    for _ in 0..3 {
        let findings = bench.found_in_memory();
        assert!(findings.is_empty(), "page {page}: {findings}");
        let findings = bench.found_on_disk(&root);
        assert!(findings.is_empty(), "page {page}: {findings}");
        root = bench.checkpoint().unwrap_or(root);
    }
    assert_eq!(pages(&bench.tree).len(), lows.len() - 1);
    bench.reopen(root);
    let findings = bench.found_in_memory();
    assert!(findings.is_empty(), "page {page}: {findings}");
    assert!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true) == rows);
}

#[test]
fn damage_in_memory_is_found() {
    let mut bench = filled();
    bench.checkpoint();
    bench.commit(&[row(77)]);
    let leaf_of = |n: u32| bench.tree.find_leaf(&n.to_be_bytes()).unwrap();
    let node = leaf_of(77);
    let leaf = node.leaf().unwrap();
    let view = leaf.view();
    let narrowed =
        leaf::LeafView { high: Some(block::bound::Bound::from(&77u32.to_be_bytes()[..])), ..(*view).clone() };
    leaf.publish(&mut leaf.latch(), narrowed);
    let findings = bench.found_in_memory();
    assert_finds(&findings, "bounds are not those of its place");
    assert_finds(&findings, "a delta has a key outside");
    assert_finds(&findings, "a block has a key outside");
    leaf.publish(&mut leaf.latch(), (*view).clone());

    leaf.marks.take_off(Care::Write);
    assert_finds(&bench.found_in_memory(), "list of dirty leaves disagrees");
    leaf.marks.put_on(Care::Write);

    let clean = leaf_of(3000);
    let changed = clean.leaf().unwrap();
    let view = changed.view();
    let base = leaf::Base::Loaded(bench.tree.shared.no_rows.clone());
    changed.publish(&mut changed.latch(), leaf::LeafView { base, ..(*view).clone() });
    assert_finds(&bench.found_in_memory(), "no checkpoint would write a leaf");
}

#[test]
fn damage_on_disk_is_found_though_the_block_is_in_memory() {
    use std::os::unix::fs::FileExt;
    let mut bench = filled();
    let root = bench.checkpoint().unwrap();
    assert!(bench.found_in_memory().is_empty());
    let node = bench.tree.find_leaf(&700u32.to_be_bytes()).unwrap();
    let leaf = node.leaf().unwrap();
    leaf.base(&node, &leaf.view()).unwrap();
    let at = *leaf.latch().copies.durable().unwrap().image.extent.address();
    let file = std::fs::File::options().read(true).write(true).open(bench.space.path()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at.offset + 10).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at.offset + 10).unwrap();
    for findings in [bench.found_in_memory(), bench.found_on_disk(&root)] {
        assert_eq!(findings.count(), 1, "{findings}");
        assert_eq!(findings.iter().next().unwrap().offset, Some(at.offset));
    }
}
