//! A tree under many schedules: leaves are folded, divided, emptied, removed, merged, written and evicted while others
//! read and write.

use super::*;
use crate::cache::Evictable;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{explore, yield_now};
use crate::tree::Packing as Walk;
use shuttle::thread::spawn;

/// Transactions of each writer.
const TRANSACTIONS: u64 = 14;
/// Rows that each leaves behind.
const WINDOW: u64 = 4;
/// Few rows fill a leaf.
const ROW_BYTES: usize = 900;
/// And few counts have one folded.
const COUNTER_BYTES: usize = 300;

/// How many transactions of each writer have committed.
type Done = [Arc<AtomicU64>; 2];

/// The rows of two writers lie among each other.
fn row(writer: u64, number: u64) -> Vec<u8> {
    key(number * 2 + writer)
}

fn counter(writer: u64) -> Vec<u8> {
    key(500_000 + writer)
}

/// Each transaction counts, adds a row, and deletes the one that is [`WINDOW`] older.
fn write(tree: &Arc<Tree>, clock: &Arc<Clock>, writer: u64, done: &AtomicU64) {
    for number in 0..TRANSACTIONS {
        let status = TxnStatus::new(1 + number * 2 + writer);
        let (count, value) = (vec![number as u8; COUNTER_BYTES], vec![number as u8; ROW_BYTES]);
        tree.write(&counter(writer), WriteOp::Update(&count), &status, 1).unwrap();
        tree.write(&row(writer, number), WriteOp::Insert(&value), &status, 2).unwrap();
        if number >= WINDOW {
            tree.write(&row(writer, number - WINDOW), WriteOp::Delete, &status, 3).unwrap();
        }
        match number % 5 == 3 {
            // The same again, by one who commits.
            true => {
                let again = TxnStatus::new(1000 + number);
                status.abort();
                tree.write(&counter(writer), WriteOp::Update(&count), &again, 1).unwrap();
                tree.write(&row(writer, number), WriteOp::Insert(&value), &again, 2).unwrap();
                if number >= WINDOW {
                    tree.write(&row(writer, number - WINDOW), WriteOp::Delete, &again, 3).unwrap();
                }
                clock.publish(&again);
            }
            false => {
                clock.publish(&status);
            }
        }
        done.store(number + 1, Ordering::SeqCst);
    }
}

/// A snapshot has of each writer the rows that its counter says, whatever becomes of the leaves.
fn read(tree: &Arc<Tree>, clock: &Arc<Clock>) {
    for round in 0..3 {
        let snapshot = clock.snapshot(round);
        let reader = Reader::at(snapshot.timestamp());
        let rows = scan(tree, &reader, round != 1);
        let mut expected = Vec::new();
        for writer in 0..2 {
            let Some((key, count)) = rows.iter().find(|(key, _)| *key == counter(writer)) else { continue };
            let newest = u64::from(count[0]);
            let oldest = (newest + 1).saturating_sub(WINDOW);
            expected.push(key.clone());
            expected.extend((oldest..=newest).map(|number| row(writer, number)));
        }
        expected.sort();
        let found: Vec<_> = rows.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, expected, "a snapshot at {}", snapshot.timestamp());
    }
}

/// A cursor that stays sees what was committed before it is asked, also in leaves that it has.
fn watch(tree: &Arc<Tree>, done: &Done) {
    let (mut counters, mut rows) = (TreeCursor::new(tree.clone()), TreeCursor::new(tree.clone()));
    while !is_over(done) {
        yield_now();
        for writer in 0..2 {
            let before = done[writer as usize].load(Ordering::SeqCst);
            let found = counters.get(&Reader::at(Timestamp::MAX), &counter(writer)).unwrap();
            let counted = if found { u64::from(counters.value().unwrap()[0]) + 1 } else { 0 };
            assert!(counted >= before, "{counted} instead of {before} transactions");
            if before > 0 {
                let found = rows.get(&Reader::at(Timestamp::MAX), &row(writer, before - 1)).unwrap();
                let gone = done[writer as usize].load(Ordering::SeqCst) >= before + WINDOW - 1;
                assert!(found || gone, "row {before} of writer {writer} is missing");
            }
        }
    }
}

fn is_over(done: &Done) -> bool {
    done.iter().all(|done| done.load(Ordering::SeqCst) == TRANSACTIONS)
}

fn checkpoint(tree: &Tree, space: &Arc<Space>, clock: &Arc<Clock>) {
    for generation in 1..3 {
        space.begin(generation);
        let at = clock.snapshot(0);
        tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
        space.write_map(generation).unwrap();
        tree.checkpoint_durable();
        space.durable(generation);
    }
}

fn evict(tree: &Arc<Tree>, done: &Done) {
    while !is_over(done) {
        yield_now();
        let mut nodes = vec![tree.root.load_full()];
        while let Some(node) = nodes.pop() {
            node.evict().unwrap();
            if let Node::Inner(inner) = &*node {
                if let Some(view) = inner.view(&tree.shared).unwrap().as_ref() {
                    nodes.extend(view.children.clone());
                }
            }
        }
    }
}

/// What the background does with leaves that have lost most of their rows, all the time.
fn merge(tree: &Arc<Tree>, done: &Done) {
    while !is_over(done) {
        yield_now();
        let mut nodes = vec![tree.root.load_full()];
        while let Some(node) = nodes.pop() {
            match &*node {
                Node::Leaf(_) => tree.maintain(&node).unwrap(),
                Node::Inner(inner) => {
                    if let Some(view) = inner.view(&tree.shared).unwrap().as_ref() {
                        nodes.extend(view.children.clone());
                    }
                }
            }
        }
        tree.merge_thin(usize::MAX).unwrap();
    }
    // Relaxed: a sum over all schedules, which no thread of any of them looks at.
    MERGED.fetch_add(tree.context.attention().merged_leaves(), std::sync::atomic::Ordering::Relaxed);
}

/// What OPTIMIZE does with the whole tree, again and again, while checkpoints write it.
fn pack(tree: &Arc<Tree>, space: &Arc<Space>, clock: &Arc<Clock>, done: &Done) {
    let (packing, over) = (tree.clone(), done.clone());
    let packer = spawn(move || {
        while !is_over(&over) {
            let mut at = Walk::At(Vec::new());
            while let Walk::At(key) = &at {
                at = packing.pack_at(key).unwrap();
            }
            yield_now();
        }
    });
    checkpoint(tree, space, clock);
    packer.join().unwrap();
    // Relaxed: as in `merge`.
    PACKED.fetch_add(tree.context.attention().merged_leaves(), std::sync::atomic::Ordering::Relaxed);
}

/// Leaves that were taken over by others so, in all schedules.
static PACKED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Leaves that were merged, in all schedules.
static MERGED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn busy_tree(work: fn(&Arc<Tree>, &Arc<Space>, &Arc<Clock>, &Done)) {
    explore(move || {
        let bench = Bench::new(64 << 20);
        let (tree, space, clock) = (&bench.tree, &bench.space, &bench.context.clock);
        let done: Done = Default::default();
        let mut threads = Vec::new();
        for writer in 0..2 {
            let (tree, clock, done) = (tree.clone(), clock.clone(), done[writer as usize].clone());
            threads.push(spawn(move || write(&tree, &clock, writer, &done)));
        }
        let (reading, at) = (tree.clone(), clock.clone());
        threads.push(spawn(move || read(&reading, &at)));
        let (watching, written) = (tree.clone(), done.clone());
        threads.push(spawn(move || watch(&watching, &written)));
        let (working, with, at) = (tree.clone(), space.clone(), clock.clone());
        threads.push(spawn(move || work(&working, &with, &at, &done)));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        read(tree, clock);
        let rows = scan(tree, &Reader::at(Timestamp::MAX), true);
        assert_eq!(rows.len() as u64, 2 * (WINDOW + 1));
    });
}

#[test]
fn snapshots_see_whole_transactions_while_leaves_are_divided_and_written() {
    busy_tree(|tree, space, clock, _| checkpoint(tree, space, clock));
}

#[test]
fn snapshots_see_whole_transactions_while_leaves_are_evicted() {
    busy_tree(|tree, _, _, done| evict(tree, done));
}

#[test]
fn snapshots_see_whole_transactions_while_leaves_are_merged() {
    busy_tree(|tree, _, _, done| merge(tree, done));
    // Relaxed: all threads have ended.
    let merged = MERGED.load(std::sync::atomic::Ordering::Relaxed);
    println!("{merged} leaves were merged");
    assert!(merged > 0, "no leaf was merged in any schedule");
}

#[test]
fn snapshots_see_whole_transactions_while_the_tree_is_packed() {
    busy_tree(pack);
    // Relaxed: all threads have ended.
    let packed = PACKED.load(std::sync::atomic::Ordering::Relaxed);
    println!("{packed} leaves were taken over");
    assert!(packed > 0, "no leaf was taken over in any schedule");
}
