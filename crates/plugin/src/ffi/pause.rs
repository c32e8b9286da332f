//! Pauses of checkpoints, for who copies the engine's files.

use std::sync::Arc;

use teak_core::server::CheckpointPause;
use teak_rows::engine::EngineHandle;

use super::border::{put, Out};
use super::engine::{ask_engine, with_engine};
use super::status::Status;

/// Checkpoints are paused as long as it lives.
pub struct PauseHandle {
    /// Ends with it.
    _pause: CheckpointPause,
}

/// Waits for the checkpoint that is under way, if one is, and holds further ones back until teak_checkpoints_resume.
#[no_mangle]
pub extern "C" fn teak_checkpoints_pause(
    handle: Option<&Arc<EngineHandle>>,
    out: Out<'_, Box<PauseHandle>>,
) -> Status {
    with_engine(handle, |engine| {
        put(out, Box::new(PauseHandle { _pause: engine.core.pause_checkpoints() }));
        Ok(())
    })
}

/// Ends a pause; NULL is none. The engine is open.
#[no_mangle]
pub extern "C" fn teak_checkpoints_resume(
    handle: Option<&Arc<EngineHandle>>,
    pause: Option<Box<PauseHandle>>,
) {
    ask_engine(handle, |_| drop(pause));
}
