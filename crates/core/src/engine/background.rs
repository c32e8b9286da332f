//! The engine's threads. They hold a reference to it only while they work, so that an engine which is dropped ends them.

use super::shared::Shared;
use crate::{Error, Result};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// How long a commit that does not wait for the log may be lost.
const LOG_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Starts `teak-checkpoint` and `teak-log-sync`.
pub(super) fn start(shared: &Arc<Shared>) -> Result<()> {
    let mut threads = Vec::new();
    for (name, run) in [("teak-checkpoint", checkpoints as fn(&Shared)), ("teak-log-sync", sync_log)] {
        let (progress, weak) = (shared.progress.clone(), Arc::downgrade(shared));
        let is_checkpoint = name == "teak-checkpoint";
        let body = move || loop {
            let goes_on =
                if is_checkpoint { progress.wait_for_work() } else { progress.pause(LOG_SYNC_INTERVAL) };
            let Some(shared) = weak.upgrade().filter(|_| goes_on) else { break };
            if catch_unwind(AssertUnwindSafe(|| run(&shared))).is_err() {
                // A bug. Nobody must wait for this thread, and nothing be built on what it left.
                shared.fail("a background thread has panicked");
                break;
            }
        };
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(body);
        threads.push(thread.map_err(|_| Error::OutOfMemory("no thread for background work"))?);
    }
    shared.threads.lock().extend(threads);
    Ok(())
}

fn checkpoints(shared: &Shared) {
    if shared.checkpoint_is_due() || shared.conversion_goes_on() {
        // The observer has been told, and writers that wait get the error.
        let _ = shared.checkpoint(false, 1);
    }
    if shared.conversion_goes_on() {
        shared.progress.ask();
    }
    shared.write_finished();
}

fn sync_log(shared: &Shared) {
    let end = shared.log.end();
    if shared.log.synced() < end {
        if let Err(error) = shared.log.sync_up_to(end) {
            shared.log_failed(&error);
        }
    }
}
