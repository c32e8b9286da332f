//! Pages of level 1 leave memory with their leaves, and nobody sees a difference.

use super::*;
use crate::tree::leaf::LEAF_BYTES;
use std::sync::atomic::AtomicU64;

const ROWS: u64 = 20_000;

impl Bench {
    /// Looks at what leaves wait for, as it is done in the background.
    fn attend(&self) {
        self.tree.write_finished(0, &|| false).unwrap();
        let attention = self.context.attention();
        attention.fold_due().and(attention.retire_spent()).unwrap();
        attention.merge_thin().and(attention.collect_history()).unwrap();
    }

    /// Has the leaves leave memory, and then pages: those that somebody has used stay for the first visit.
    fn evict_pages(&self) -> u64 {
        self.attend();
        self.evict_all();
        let (mut freed, mut in_vain) = (0, 0);
        while in_vain < 2 {
            let visit = evict_pages(&self.tree);
            (freed, in_vain) = (freed + visit, if visit == 0 { in_vain + 1 } else { 0 });
        }
        freed
    }

    /// The last leaf waits to be merged until the tree has changed: its page stays.
    fn assert_cold(&self) {
        assert!(self.leaf_objects() <= 8, "{} of {} leaves stay", self.leaf_objects(), self.tree.leaves());
    }

    /// Objects that stand for leaves.
    fn leaf_objects(&self) -> u64 {
        self.context.leaves.exact() / LEAF_BYTES as u64
    }
}

/// Shows `visit` the leaves, or the pages of level 1, that are in memory.
fn each_in_memory(tree: &Tree, is_wanted: impl Fn(&Node) -> bool, visit: &mut dyn FnMut(&Node)) {
    let mut nodes = vec![tree.root.load_full()];
    while let Some(node) = nodes.pop() {
        match &*node {
            node if is_wanted(node) => visit(node),
            Node::Inner(inner) => {
                nodes.extend(inner.loaded().iter().flat_map(|view| view.made()).flatten().cloned());
            }
            Node::Leaf(_) => {}
        }
    }
}

/// Has leaves leave memory; no page is read for it.
pub(super) fn evict_nodes(tree: &Tree) {
    each_in_memory(tree, |node| node.leaf().is_some(), &mut |leaf| {
        leaf.evict().unwrap();
    });
}

/// Visits all pages as the clock does; what they have freed.
pub(super) fn evict_pages(tree: &Tree) -> u64 {
    let mut freed = 0;
    let is_page = |node: &Node| matches!(node, Node::Inner(inner) if inner.level == 1);
    each_in_memory(tree, is_page, &mut |page| {
        if !page.touched() && page.resident() > 0 {
            freed += page.evict().unwrap();
        }
    });
    freed
}

/// A tree of some 2,500 leaves in pages of eight, all of it in the file.
fn stored() -> Bench {
    let mut bench = Bench::with_blocks(64 << 20, 1024);
    bench.commit(&(0..ROWS).map(|n| (key(n), Some(vec![n as u8; 100]))).collect::<Vec<_>>());
    bench.checkpoint().unwrap();
    bench
}

fn assert_has_all(bench: &Bench, changed: u64) {
    let rows = scan(&bench.tree, &Reader::at(Timestamp::MAX), true);
    assert_eq!(rows.len() as u64, ROWS);
    for (n, (found, value)) in (0..ROWS).zip(&rows) {
        let expected = if n == changed { vec![1, 2, 3] } else { vec![n as u8; 100] };
        assert!(*found == key(n) && *value == expected, "row {n}");
    }
}

#[test]
fn what_nobody_uses_is_nowhere_in_memory_and_is_read_again() {
    let mut bench = stored();
    assert!(bench.tree.leaves() > 2000, "{} leaves", bench.tree.leaves());
    assert_eq!(bench.leaf_objects(), bench.tree.leaves());
    let freed = bench.evict_pages();
    bench.assert_cold();
    assert!(freed >= (bench.tree.leaves() - 8) * LEAF_BYTES as u64, "{freed} bytes");
    assert_has_all(&bench, ROWS);
    assert_eq!(bench.leaf_objects(), bench.tree.leaves());

    // What is changed stays until a checkpoint has written it, and so do its neighbours in the page.
    bench.evict_pages();
    bench.commit(&[(key(7000), Some(vec![1, 2, 3]))]);
    assert!(bench.leaf_objects() <= 16, "one page was read for it, and not {} leaves", bench.leaf_objects());
    bench.evict_pages();
    assert!((1..=16).contains(&bench.leaf_objects()), "{} leaves stay", bench.leaf_objects());
    assert_has_all(&bench, 7000);
    bench.evict_pages();
    let before = bench.leaf_objects();
    assert!((1..=16).contains(&before), "{before} leaves stay");
    bench.abandon_checkpoint();
    bench.evict_pages();
    assert_eq!(bench.leaf_objects(), before, "what was to be written is to be written");
    let root = bench.checkpoint().unwrap();
    bench.evict_pages();
    bench.assert_cold();
    assert_has_all(&bench, 7000);
    bench.reopen(root);
    assert_has_all(&bench, 7000);
}

#[test]
fn a_page_stays_whose_leaf_somebody_has() {
    let bench = stored();
    let reader = Reader::at(Timestamp::MAX);
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.get(&reader, &key(9000)).unwrap());
    bench.evict_pages();
    let stay = bench.leaf_objects();
    assert!((1..=16).contains(&stay), "{stay} leaves stay");
    for n in 9001..12_000 {
        assert!(cursor.next(&reader).unwrap());
        assert_eq!(cursor.key(), key(n));
        if n % 500 == 0 {
            bench.evict_pages();
        }
    }
    cursor.reset();
    bench.evict_pages();
    bench.assert_cold();
}

#[test]
fn nothing_goes_while_a_checkpoint_is_under_way() {
    let mut bench = stored();
    bench.commit(&(0..ROWS).step_by(40).map(|n| (key(n), Some(vec![n as u8; 100]))).collect::<Vec<_>>());
    let (tree, context) = (bench.tree.clone(), bench.context.clone());
    let root = bench.checkpoint_with(&mut || {
        evict_pages(&tree);
        evict_pages(&tree);
        assert_eq!(context.leaves.exact(), tree.leaves() * LEAF_BYTES as u64);
    });
    bench.evict_pages();
    bench.assert_cold();
    assert_has_all(&bench, ROWS);
    bench.reopen(root.unwrap());
    assert_has_all(&bench, ROWS);
}

#[test]
fn random_histories_do_not_notice() {
    let (mut steps, mut gone) = (0, 0);
    for seed in 200..212 {
        // Pages of eight: three levels of them.
        random_history(Bench::with_blocks(64 << 20, 1024), seed, 300, &mut |bench, _| {
            steps += 1;
            if steps % 3 > 0 {
                // Some of the time there is something for all leaves.
                if steps % 3 == 1 {
                    bench.each_node(&mut |_| {});
                }
                gone += u64::from(bench.evict_pages() > 0);
            }
        });
    }
    // Most of the time dirty leaves are everywhere.
    assert!(gone > 100, "pages have left memory in {gone} of {steps} steps");
}

/// Readers, writers, checkpoints and one that does nothing but evict.
#[test]
fn threads_find_what_they_have_written_whatever_leaves_memory_meanwhile() {
    let mut bench = Bench::with_blocks(64 << 20, 1024);
    bench.commit(&(0..ROWS).map(|n| (key(n), Some(vec![0; 60]))).collect::<Vec<_>>());
    bench.checkpoint().unwrap();
    bench.evict_pages();
    let (over, gone, done) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (tree, context) = (bench.tree.clone(), bench.context.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                evict_nodes(&tree);
                gone.fetch_add(evict_pages(&tree), Ordering::SeqCst);
            }
        });
        for writer in 0..2u64 {
            let (tree, context, over, done) = (&tree, &context, &over, &done);
            scope.spawn(move || {
                let mut random = Random(writer + 77);
                let mut cursor = TreeCursor::new(tree.clone());
                let mut own: BTreeMap<u64, u8> = BTreeMap::new();
                let mut stretch = 0;
                while !over.load(Ordering::SeqCst) {
                    // The rows of each lie among those of the other. What both have left is soon clean.
                    stretch = if random.below(200) == 0 { random.below(ROWS - 300) / 2 } else { stretch };
                    let n = (stretch + random.below(150)) * 2 + writer;
                    if random.below(4) == 0 {
                        let byte = random.below(200) as u8 + 1;
                        let status = TxnStatus::new(2 + writer);
                        tree.write(&key(n), WriteOp::Update(&[byte; 60]), &status, 1).unwrap();
                        context.clock.publish(&status);
                        own.insert(n, byte);
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                    let snapshot = context.clock.snapshot(writer);
                    let reader = Reader::at(snapshot.timestamp());
                    assert!(cursor.get(&reader, &key(n)).unwrap(), "row {n}");
                    let expected = own.get(&n).copied().unwrap_or(0);
                    assert_eq!(cursor.value().unwrap(), [expected; 60], "row {n}");
                    for next in n + 1..(n + 20).min(ROWS) {
                        assert!(cursor.next(&reader).unwrap());
                        assert_eq!(cursor.key(), key(next));
                        if next % 2 == writer {
                            let expected = own.get(&next).copied().unwrap_or(0);
                            assert_eq!(cursor.value().unwrap(), [expected; 60], "row {next}");
                        }
                    }
                }
            });
        }
        for round in 1..100 {
            bench.checkpoint();
            while done.load(Ordering::SeqCst) < round * 300 {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(gone.load(Ordering::SeqCst) > 0, "no page has left memory");
    let root = bench.checkpoint();
    let before = scan(&bench.tree, &Reader::at(Timestamp::MAX), true);
    if let Some(root) = root {
        bench.reopen(root);
    }
    assert!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true) == before, "the file has something else");
}

/// A descent may have got hold of a page before that has left memory.
#[test]
fn who_knows_a_page_as_it_was_comes_to_leaves_that_say_so() {
    let bench = stored();
    bench.evict_pages();
    assert_has_all(&bench, ROWS);
    let mut pages = Vec::new();
    bench.each_node(&mut |node| match &**node {
        Node::Inner(inner) if inner.level == 1 => pages.push((node.clone(), inner.loaded().unwrap())),
        _ => {}
    });
    bench.evict_pages();
    let is_gone = |node: &Arc<Node>| matches!(&**node, Node::Inner(inner) if inner.loaded().is_none());
    let gone = pages.iter().filter(|(node, _)| is_gone(node));
    let stale: Vec<_> = gone.flat_map(|(_, view)| view.children()).collect();
    assert!(stale.len() > 2000, "{} leaves are gone", stale.len());
    assert!(stale.iter().all(|leaf| leaf.leaf().unwrap().view().dead));
    assert_has_all(&bench, ROWS);
}

/// A page that was read makes what stands for a leaf when somebody comes to it.
#[test]
fn leaves_that_nobody_comes_to_are_not_made_also_of_a_page_that_is_gone() {
    let bench = stored();
    bench.evict_pages();
    bench.assert_cold();
    let before = bench.leaf_objects();
    let mut pages = Vec::new();
    for n in (0..ROWS).step_by(1000) {
        let reader = Reader::at(Timestamp::MAX);
        assert!(TreeCursor::new(bench.tree.clone()).get(&reader, &key(n)).unwrap());
        let page = bench.tree.path_to(&key(n)).unwrap().pop().unwrap().0;
        let Node::Inner(inner) = &*page else { unreachable!() };
        pages.push((page.clone(), inner.loaded().unwrap()));
    }
    assert!(bench.leaf_objects() <= before + ROWS / 1000, "{} leaves are there", bench.leaf_objects());
    assert!(pages.iter().all(|(_, view)| view.len() > 2));
    bench.evict_pages();
    for (page, view) in &pages {
        let Node::Inner(inner) = &**page else { unreachable!() };
        if inner.loaded().is_none() {
            assert!(view.children().all(|child| child.leaf().unwrap().view().dead));
        }
    }
    let gone =
        pages.iter().filter(|(page, _)| matches!(&**page, Node::Inner(inner) if inner.loaded().is_none()));
    assert!(gone.count() > 15, "most pages are gone");
    assert_has_all(&bench, ROWS);
}

/// As leaves come, others go, and so do pages: without anybody who would ask for it.
#[test]
fn the_clock_has_pages_leave_memory_that_is_needed() {
    let mut bench = Bench::with_blocks(256 << 10, 1024);
    for rows in (0..ROWS).collect::<Vec<_>>().chunks(1000) {
        bench.commit(&rows.iter().map(|n| (key(*n), Some(vec![*n as u8; 100]))).collect::<Vec<_>>());
        bench.attend();
        bench.checkpoint().unwrap();
    }
    let in_memory = |bench: &Bench| {
        let mut pages = 0;
        let is_page = |node: &Node| matches!(node, Node::Inner(inner) if inner.level == 1);
        each_in_memory(&bench.tree, is_page, &mut |page| pages += u64::from(page.resident() > 0));
        pages
    };
    for _ in 0..3 {
        assert_has_all(&bench, ROWS);
        assert!(in_memory(&bench) * 8 < bench.tree.leaves() / 2, "{} pages", in_memory(&bench));
    }
}
