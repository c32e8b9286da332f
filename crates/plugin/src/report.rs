//! What an operator sees: status variables and the text of SHOW ENGINE TEAK STATUS.

use std::ffi::CStr;
use std::fmt::Write;

use crate::engine::EngineHandle;

/// Names and values for SHOW STATUS, in a fixed order.
pub fn status_variables(engine: &EngineHandle) -> Vec<(&'static CStr, u64)> {
    let numbers = engine.core.statistics();
    vec![
        (c"commits", numbers.commits),
        (c"rollbacks", numbers.rollbacks),
        (c"active_transactions", numbers.active_transactions),
        (c"row_lock_waits", numbers.lock_waits),
        (c"row_lock_timeouts", numbers.lock_timeouts),
        (c"deadlocks", numbers.deadlocks),
        (c"last_commit_timestamp", numbers.last_commit),
        (c"oldest_snapshot_seconds", oldest_snapshot_seconds(engine)),
        (c"sessions", engine.session_count() as u64),
    ]
}

fn oldest_snapshot_seconds(engine: &EngineHandle) -> u64 {
    engine.core.snapshots().iter().map(|s| s.age.as_secs()).max().unwrap_or(0)
}

/// The text of SHOW ENGINE TEAK STATUS.
pub fn status_text(engine: &EngineHandle) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_status(engine, &mut out);
    out
}

fn write_status(engine: &EngineHandle, out: &mut String) -> std::fmt::Result {
    let numbers = engine.core.statistics();
    let settings = engine.core.settings();
    writeln!(out, "TEAK, up {} s", engine.opened.elapsed().as_secs())?;

    let mut snapshots = engine.core.snapshots();
    snapshots.sort_by_key(|s| std::cmp::Reverse(s.age));
    writeln!(out, "\nSNAPSHOTS\nopen {}", snapshots.len())?;
    match snapshots.first() {
        Some(oldest) => writeln!(
            out,
            "oldest: session {}, transaction {}, age {:.1} s, timestamp {} ({} commits since)",
            oldest.session,
            oldest.txn,
            oldest.age.as_secs_f64(),
            oldest.timestamp,
            numbers.last_commit.saturating_sub(oldest.timestamp),
        )?,
        None => writeln!(out, "oldest: none")?,
    }

    writeln!(out, "\nTRANSACTIONS")?;
    writeln!(
        out,
        "active {}, committed {}, rolled back {}, last commit timestamp {}, prepared and waiting for a decision {}",
        numbers.active_transactions,
        numbers.commits,
        numbers.rollbacks,
        numbers.last_commit,
        engine.core.prepared().len(),
    )?;
    for (txn, session) in engine.open_transactions() {
        writeln!(out, "transaction {txn}: session {session}")?;
    }

    writeln!(out, "\nLOCKS")?;
    writeln!(
        out,
        "waits {}, timeouts {}, deadlocks {}",
        numbers.lock_waits, numbers.lock_timeouts, numbers.deadlocks
    )?;

    writeln!(out, "\nCACHE\nbudget {} bytes", settings.cache_bytes())?;
    writeln!(
        out,
        "\nLOG\ncommit flush {:?}, checkpoint each {} bytes of log",
        settings.commit_flush(),
        settings.checkpoint_log_bytes()
    )
}
