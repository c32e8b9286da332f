//! Pauses of checkpoints, for who copies the engine's files.

use teak_core::server::CheckpointPause;
use teak_rows::engine::EngineHandle;

use super::border::put;
use super::engine::with_engine;
use super::status::Status;

/// Checkpoints are paused as long as it lives.
pub struct PauseHandle {
    /// Ends with it.
    _pause: CheckpointPause,
}

/// Waits for the checkpoint that is under way, if one is, and holds further ones back until teak_checkpoints_resume.
#[no_mangle]
pub unsafe extern "C" fn teak_checkpoints_pause(
    handle: *const EngineHandle,
    out: *mut *mut PauseHandle,
) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_engine(handle, |engine| {
            let pause = PauseHandle { _pause: engine.core.pause_checkpoints() };
            put(out, Box::into_raw(Box::new(pause)));
            Ok(())
        })
    }
}

/// Ends a pause; NULL is none. The engine is open.
#[no_mangle]
pub unsafe extern "C" fn teak_checkpoints_resume(handle: *const EngineHandle, pause: *mut PauseHandle) {
    // SAFETY: the handle is open; the pause came from teak_checkpoints_pause, and goes once.
    unsafe {
        let _ = with_engine(handle, |_| {
            if !pause.is_null() {
                drop(Box::from_raw(pause));
            }
            Ok(())
        });
    }
}
