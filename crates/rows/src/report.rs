//! What an operator reads: the text of SHOW ENGINE TEAK STATUS.

use std::fmt::Write;

use crate::engine::EngineHandle;
use crate::lock_waits::lock_waits;
use teak_core::server::{SnapshotInfo, Statistics};
use teak_core::{CommitFlush, HistoryFull};

/// The text of SHOW ENGINE TEAK STATUS.
pub fn status_text(engine: &EngineHandle) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_status(engine, &mut out);
    out
}

fn write_status(engine: &EngineHandle, out: &mut String) -> std::fmt::Result {
    let numbers = engine.core.statistics();
    writeln!(out, "TEAK, up {} s", engine.opened.elapsed().as_secs())?;
    snapshots(engine, &numbers, out)?;
    transactions(engine, &numbers, out)?;
    locks(engine, &numbers, out)?;
    storage(engine, &numbers, out)
}

/// So many snapshots are listed, the oldest; information_schema.TEAK_SNAPSHOTS has all.
const MOST_LISTED: usize = 20;

fn snapshots(engine: &EngineHandle, numbers: &Statistics, out: &mut String) -> std::fmt::Result {
    let open: Vec<SnapshotInfo> = engine.core.snapshots();
    let settings = engine.core.settings();
    writeln!(
        out,
        "\nSNAPSHOTS\nopen {}, gave way so far {}; old versions kept {}: {} bytes in memory, {} spilled, at most {} ({}); writes that waited {}",
        open.len(),
        numbers.snapshots_too_old,
        numbers.history.versions,
        numbers.history.memory_bytes,
        numbers.history.spilled_bytes,
        settings.history_max_bytes(),
        match settings.history_full() {
            HistoryFull::FailOldest => "FAIL_OLDEST",
            HistoryFull::Wait => "WAIT",
        },
        numbers.history_waits,
    )?;
    if open.is_empty() {
        return writeln!(out, "oldest: none");
    }
    for (i, snapshot) in open.iter().take(MOST_LISTED).enumerate() {
        writeln!(
            out,
            "{}session {}, age {:.1} s, timestamp {}, {} commits since, holds {} versions, {} bytes{}",
            if i == 0 { "oldest: " } else { "" },
            snapshot.session,
            snapshot.age.as_secs_f64(),
            snapshot.timestamp,
            numbers.last_commit.saturating_sub(snapshot.timestamp),
            snapshot.held.versions,
            snapshot.held.bytes(),
            if snapshot.too_old { ", too old" } else { "" },
        )?;
    }
    Ok(())
}

fn transactions(engine: &EngineHandle, numbers: &Statistics, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "\nTRANSACTIONS\nactive {}, prepared and undecided {}, committed {}, rolled back {}, last commit timestamp {}",
        numbers.active_transactions,
        numbers.prepared_transactions,
        numbers.commits,
        numbers.rollbacks,
        numbers.last_commit,
    )?;
    for (txn, session) in engine.open_transactions() {
        writeln!(out, "transaction {txn}: session {session}")?;
    }
    Ok(())
}

fn locks(engine: &EngineHandle, numbers: &Statistics, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "\nLOCKS\nmemory {} KiB, waits {} ({:.1} s in all), timeouts {}, deadlocks {}",
        numbers.lock_bytes >> 10,
        numbers.lock_waits,
        numbers.lock_wait_time.as_secs_f64(),
        numbers.lock_timeouts,
        numbers.deadlocks,
    )?;
    if let Some(newest) = engine.deadlocks.list().first() {
        writeln!(out, "{}", engine.deadlock_text(newest))?;
    }
    for waiting in lock_waits(engine) {
        let wait = &waiting.wait;
        write!(
            out,
            "transaction {} waits for transaction {}, {:.1} s",
            wait.waiter,
            wait.holder,
            wait.age.as_secs_f64()
        )?;
        if let Some(place) = &wait.name {
            write!(out, ", in {}, tree {}", place.table, place.tree)?;
        }
        match waiting.root == wait.holder {
            true => writeln!(out)?,
            false => writeln!(out, ", and so for transaction {}", waiting.root)?,
        }
    }
    Ok(())
}

fn storage(engine: &EngineHandle, numbers: &Statistics, out: &mut String) -> std::fmt::Result {
    let settings = engine.core.settings();
    writeln!(
        out,
        "\nCACHE\nused {} of {} bytes; spilled to disk {} bytes, without history at most {}; look-ups in files {}",
        numbers.cache_used_bytes,
        numbers.cache_budget_bytes,
        numbers.spilled_bytes,
        settings.spill_max_bytes(),
        if settings.reads_unbuffered() { "unbuffered" } else { "buffered" },
    )?;
    writeln!(
        out,
        "\nLOG\nwritten {} bytes, kept for open and prepared transactions {} bytes, copied for them {} bytes, commits flush as {} ({})",
        numbers.log_bytes,
        numbers.log_pinned_bytes,
        numbers.log_copied_bytes,
        settings.commit_flush() as u8,
        match settings.commit_flush() {
            CommitFlush::Lazy => "once a second",
            CommitFlush::Sync => "to the disk",
            CommitFlush::Write => "to the operating system, and to the disk once a second",
        },
    )?;
    writeln!(
        out,
        "\nCHECKPOINTS\ndone {}, failed {}, writes that waited {}, log since the last {} of {} bytes, trees with changes {} of tables open {}",
        numbers.checkpoints,
        numbers.failed_checkpoints,
        numbers.checkpoint_waits,
        numbers.log_bytes_since_checkpoint,
        settings.checkpoint_log_bytes(),
        numbers.dirty_trees,
        numbers.open_tables,
    )
}
