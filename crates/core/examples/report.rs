//! A long report while others write: a snapshot shows the same to its end, whatever is changed, written to disk and
//! collected meanwhile, and no writer waits for it.
//!
//! `cargo run --release -p teak-core --example report`

mod scratch;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use teak_core::{CommitFlush, Engine, Options, Result, Snapshot, Tree, TreeSpec};

const ROWS: u32 = 20_000;
const READINGS: usize = 5;

fn main() -> Result<()> {
    let dir = scratch::Directory::new("report");
    let options = Options {
        commit_flush: CommitFlush::Lazy,
        // Less than what the rows and their old versions take: part of them goes to disk.
        cache_bytes: 4 << 20,
        ..Options::new(dir.path())
    };
    let engine = Engine::open_with(options)?;
    let table = engine.create_table("measured", &[TreeSpec::default()])?;
    let measured = table.tree(0);
    let mut txn = engine.begin();
    txn.load(measured, (0..ROWS).map(|i| (i.to_be_bytes(), format!("{i:0>100}"))))?;
    txn.commit()?;

    let report = engine.snapshot();
    let first = digest(&report, measured)?;
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (engine, stop, commits) = (&engine, &stop, &commits);
                scope.spawn(move || write(engine, measured, writer, stop, commits))
            })
            .collect();
        let read = || {
            for reading in 1..=READINGS {
                // Writers are at work between any two readings.
                let before = commits.load(Ordering::SeqCst);
                while commits.load(Ordering::SeqCst) < before + 5 && !writers.iter().any(|w| w.is_finished())
                {
                    std::thread::yield_now();
                }
                engine.checkpoint()?;
                assert_eq!(digest(&report, measured)?, first, "reading {reading}");
            }
            Ok(())
        };
        let read = read();
        stop.store(true, Ordering::SeqCst);
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer has panicked")).and(read)
    })?;
    let now = digest(&engine.snapshot(), measured)?;
    assert_ne!(now, first);
    drop(report);
    assert!(engine.check()?.is_empty());
    println!("{READINGS} readings alike, with {} commits meanwhile", commits.into_inner());
    engine.close()
}

/// Updates, deletes and inserts until it is told to stop; each writer has rows of its own.
fn write(
    engine: &Engine,
    measured: &Arc<Tree>,
    writer: u32,
    stop: &AtomicBool,
    commits: &AtomicU64,
) -> Result<()> {
    for round in 0u32.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let mut txn = engine.begin();
        for i in 0..200 {
            let key = (((round * 200 + i) * 2 + writer) % ROWS).to_be_bytes();
            match i % 3 {
                0 => drop(txn.delete(measured, key)?),
                _ => drop(txn.put(measured, key, format!("{round:->100}"))?),
            }
        }
        txn.commit()?;
        commits.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Number of rows, and a number that depends on every byte of them (FNV-1a).
fn digest(snapshot: &Snapshot, measured: &Arc<Tree>) -> Result<(u64, u64)> {
    let (mut rows, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    let mut cursor = snapshot.rows(measured);
    while cursor.advance()? {
        for byte in cursor.key().iter().chain(cursor.value()?) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        rows += 1;
    }
    Ok((rows, hash))
}
