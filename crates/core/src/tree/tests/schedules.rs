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

/// Rows that are never changed, where there are any.
const COLD: u64 = 120;

fn cold(number: u64) -> Vec<u8> {
    key(900_000 + number)
}

fn is_cold(key: &Vec<u8>) -> bool {
    *key >= cold(0)
}

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
        let (cold, found): (Vec<_>, Vec<_>) = rows.into_iter().map(|(key, _)| key).partition(is_cold);
        assert!(
            cold.is_empty() || cold.len() as u64 == COLD,
            "{} of the rows that nobody changes",
            cold.len()
        );
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
    for generation in 2..4 {
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
                if let Some(view) = inner.view().unwrap().as_ref() {
                    nodes.extend(view.children().cloned());
                }
            }
        }
    }
}

/// Has leaves, and then pages, leave memory; none is read for it.
fn evict_what_is_there(tree: &Arc<Tree>) {
    cold_pages::evict_nodes(tree);
    // The first visit only forgets who has come by.
    let gone = cold_pages::evict_pages(tree) + cold_pages::evict_pages(tree);
    // Relaxed: as in `merge`.
    PAGES.fetch_add(u64::from(gone > 0), std::sync::atomic::Ordering::Relaxed);
}

/// Pages of which the file has all leave memory with their leaves, beside checkpoints.
fn evict_pages(tree: &Arc<Tree>, space: &Arc<Space>, clock: &Arc<Clock>, done: &Done) {
    let (evicting, over) = (tree.clone(), done.clone());
    let evictor = spawn(move || {
        while !is_over(&over) {
            yield_now();
            evict_what_is_there(&evicting);
            let cold_row =
                TreeCursor::new(evicting.clone()).get(&Reader::at(Timestamp::MAX), &cold(COLD / 2));
            assert!(cold_row.unwrap(), "a row that nobody changes is missing");
        }
    });
    checkpoint(tree, space, clock);
    evictor.join().unwrap();
}

/// Visits after which pages had left memory, in all schedules.
static PAGES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// What the background does with leaves that have lost most of their rows, all the time.
fn merge(tree: &Arc<Tree>, done: &Done) {
    while !is_over(done) {
        yield_now();
        let mut nodes = vec![tree.root.load_full()];
        while let Some(node) = nodes.pop() {
            match &*node {
                Node::Leaf(_) => tree.maintain(&node).unwrap(),
                Node::Inner(inner) => {
                    if let Some(view) = inner.view().unwrap().as_ref() {
                        nodes.extend(view.children().cloned());
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
    busy_tree_of(|| Bench::new(64 << 20), 0, work);
}

/// Rows in several pages of several leaves, all of it in the file.
fn store_cold(bench: &mut Bench, cold_rows: u64) {
    // One after the other: each splits the leaves, and the pages, that the one before has left.
    for part in [0..cold_rows / 3, cold_rows / 3..cold_rows] {
        let rows = part.map(|number| (cold(number), Some(vec![7; 100])));
        bench.commit(&rows.collect::<Vec<_>>());
        bench.each_leaf(&mut |node, _| bench.tree.maintain(node).unwrap());
    }
    bench.context.attention().fold_due().unwrap();
    bench.checkpoint();
    bench.tree.write_finished(0, &|| false).unwrap();
}

fn busy_tree_of(make: fn() -> Bench, cold_rows: u64, work: fn(&Arc<Tree>, &Arc<Space>, &Arc<Clock>, &Done)) {
    explore(move || {
        let mut bench = make();
        if cold_rows > 0 {
            store_cold(&mut bench, cold_rows);
        }
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
        assert_eq!(rows.len() as u64, 2 * (WINDOW + 1) + cold_rows);
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
fn snapshots_see_whole_transactions_while_pages_leave_memory() {
    busy_tree_of(|| Bench::with_blocks(64 << 20, 1024), COLD, evict_pages);
    // Relaxed: all threads have ended.
    let visits = PAGES.load(std::sync::atomic::Ordering::Relaxed);
    println!("after {visits} visits pages had left memory");
    assert!(visits > 0, "no page left memory in any schedule");
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

/// Somebody may be on his way to a leaf whose page leaves memory.
#[test]
fn no_change_goes_with_a_page_that_leaves_memory() {
    explore(|| {
        let mut bench = Bench::with_blocks(64 << 20, 1024);
        store_cold(&mut bench, COLD);
        let (tree, clock) = (bench.tree.clone(), bench.context.clock.clone());
        let writer = spawn(move || {
            for round in 8..COLD {
                let (changed, value) = (cold(round * 53 % COLD), [round as u8; 100]);
                let status = TxnStatus::new(9000 + round);
                tree.write(&changed, WriteOp::Update(&value), &status, 1).unwrap();
                clock.publish(&status);
                let mut cursor = TreeCursor::new(tree.clone());
                assert!(cursor.get(&Reader::at(Timestamp::MAX), &changed).unwrap());
                assert_eq!(cursor.value().unwrap(), value, "what was committed before is not there");
            }
        });
        for _ in 0..4 {
            bench.checkpoint();
            evict_what_is_there(&bench.tree);
        }
        writer.join().unwrap();
        let rows = scan(&bench.tree, &Reader::at(Timestamp::MAX), true);
        assert_eq!(rows.iter().filter(|(_, value)| value[0] != 7).count() as u64, COLD - 8, "changed rows");
    });
    // Relaxed: all threads have ended.
    let visits = PAGES.load(std::sync::atomic::Ordering::Relaxed);
    println!("after {visits} visits pages had left memory");
    assert!(visits > 0, "no page left memory in any schedule");
}

/// Elements of a list that grows: each is committed before the next one comes.
const ELEMENTS: u64 = 2;

/// Who reads what is newest goes from row to row, and what is there changes meanwhile. But a row that was committed
/// before another one was written is not missing where that one is found. `at`: the place of each element.
fn a_growing_list_has_no_holes(forward: bool, at: fn(u64) -> u64) {
    explore(move || {
        let bench = Bench::new(64 << 20);
        // Those that were written first were rolled back.
        let aborted = TxnStatus::new(1);
        for number in 0..ELEMENTS {
            bench.tree.write(&key(at(2 * number)), WriteOp::Insert(b"aborted"), &aborted, 1).unwrap();
        }
        aborted.abort();
        let (tree, clock) = (bench.tree.clone(), bench.context.clock.clone());
        let writer = spawn(move || {
            for number in 0..ELEMENTS {
                let status = TxnStatus::new(10 + number);
                tree.write(&key(at(2 * number + 1)), WriteOp::Insert(b"row"), &status, 1).unwrap();
                clock.publish(&status);
            }
        });
        for _ in 0..2 {
            let reader = Reader { pending: true, ..Reader::at(Timestamp::MAX) };
            let mut found: Vec<_> =
                scan(&bench.tree, &reader, forward).into_iter().map(|(key, _)| key).collect();
            if !forward {
                found.reverse();
            }
            let before: Vec<_> = (0..found.len() as u64).map(|number| key(at(2 * number + 1))).collect();
            assert_eq!(found, before);
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_scan_of_the_newest_finds_no_row_without_those_that_came_before_it() {
    a_growing_list_has_no_holes(true, |number| number);
}

#[test]
fn a_scan_down_of_the_newest_finds_no_row_without_those_that_came_before_it() {
    a_growing_list_has_no_holes(false, |number| 900 - number);
}
