//! Opening, closing and watching an engine.

use std::sync::Arc;
use std::time::Duration;

use teak_core::file::RealFileSystem;
use teak_core::{CommitFlush, ForceRecovery, HistoryFull, Options};

use super::border::{put, RawBuffer, RawBytes};
use super::callbacks::Callbacks;
use super::guard::{install, run, value};
use super::status::Status;
use teak_core::server::Engine;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::report::{status_text, status_variables};
use teak_rows::session::MAX_XID;

/// `teak_options`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawOptions {
    pub directory: RawBytes,
    pub temp_directory: RawBytes,
    pub cache_bytes: u64,
    pub checkpoint_log_bytes: u64,
    pub log_segment_bytes: u64,
    pub spill_max_bytes: u64,
    pub history_max_bytes: u64,
    pub snapshot_warn_seconds: u64,
    pub lock_max_bytes: u64,
    pub disk_reserve_bytes: u64,
    pub commit_flush: u32,
    pub recovery_threads: u32,
    pub history_full: u32,
    pub force_recovery: u32,
}

/// `teak_snapshot`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSnapshot {
    pub session: u64,
    pub timestamp: u64,
    pub age_seconds: u64,
    pub versions: u64,
    pub memory_bytes: u64,
    pub spilled_bytes: u64,
    pub too_old: u64,
}

/// `teak_status_variable`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawStatusVariable {
    pub name: *const std::os::raw::c_char,
    pub value: u64,
}

/// `teak_xid`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawXid {
    pub data: [u8; MAX_XID],
    pub len: u32,
}

fn commit_flush(mode: u32) -> CommitFlush {
    match mode {
        0 => CommitFlush::Lazy,
        2 => CommitFlush::Write,
        _ => CommitFlush::Sync,
    }
}

fn history_full(what: u32) -> HistoryFull {
    match what {
        0 => HistoryFull::FailOldest,
        _ => HistoryFull::Wait,
    }
}

fn force_recovery(level: u32) -> ForceRecovery {
    match level {
        0 => ForceRecovery::Off,
        1 => ForceRecovery::PassOver,
        2 => ForceRecovery::ReadOnly,
        _ => ForceRecovery::WithoutLog,
    }
}

/// The engine behind a handle.
///
/// # Safety
/// `engine` is NULL or open.
pub unsafe fn engine<'a>(engine: *const EngineHandle) -> Option<&'a EngineHandle> {
    // SAFETY: by the contract of this function.
    unsafe { engine.as_ref() }
}

/// Another owner of the engine.
///
/// # Safety
/// `engine` is NULL or open.
pub unsafe fn share(engine: *const EngineHandle) -> Result<Arc<EngineHandle>> {
    if engine.is_null() {
        return Err(Stop::Misuse("no engine"));
    }
    // SAFETY: an open handle is an Arc turned raw, which owns one count as long as it is open.
    unsafe {
        Arc::increment_strong_count(engine);
        Ok(Arc::from_raw(engine))
    }
}

/// Runs `body` with the engine.
///
/// # Safety
/// `handle` is NULL or open.
pub unsafe fn with_engine(
    handle: *const EngineHandle,
    body: impl FnOnce(&EngineHandle) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    let engine = unsafe { engine(handle) };
    run(engine, || body(engine.ok_or(Stop::Misuse("no engine"))?))
}

/// `teak_options_default`
#[no_mangle]
pub unsafe extern "C" fn teak_options_default(options: *mut RawOptions) {
    let defaults = Options::new("");
    let raw = RawOptions {
        directory: RawBytes::NONE,
        temp_directory: RawBytes::NONE,
        cache_bytes: defaults.cache_bytes,
        checkpoint_log_bytes: defaults.checkpoint_log_bytes,
        log_segment_bytes: defaults.log_segment_bytes,
        spill_max_bytes: defaults.spill_max_bytes,
        history_max_bytes: defaults.history_max_bytes,
        snapshot_warn_seconds: defaults.snapshot_warn_age.as_secs(),
        lock_max_bytes: defaults.lock_max_bytes,
        disk_reserve_bytes: defaults.disk_reserve_bytes,
        commit_flush: defaults.commit_flush as u32,
        recovery_threads: 0,
        history_full: defaults.history_full as u32,
        force_recovery: defaults.force_recovery as u32,
    };
    // SAFETY: the shim's options are writable.
    unsafe { put(options, raw) }
}

/// `teak_engine_open`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_open(
    options: *const RawOptions,
    callbacks: *const Callbacks,
    out: *mut *const EngineHandle,
) -> Status {
    run(None, || {
        // SAFETY: the shim's options and callbacks are readable.
        let (raw, callbacks) = unsafe { (options.as_ref(), callbacks.as_ref()) };
        let (Some(raw), Some(callbacks)) = (raw, callbacks) else {
            return Err(Stop::Misuse("options and callbacks are needed"));
        };
        install(*callbacks);
        // SAFETY: the names are readable through the call.
        let (dir, temp_dir) = unsafe { (raw.directory.name()?, raw.temp_directory.name()?) };
        let mut options = Options::new(dir);
        if !temp_dir.is_empty() {
            options.temp_dir = temp_dir.into();
        }
        options.cache_bytes = raw.cache_bytes;
        options.checkpoint_log_bytes = raw.checkpoint_log_bytes;
        options.log_segment_bytes = raw.log_segment_bytes;
        options.spill_max_bytes = raw.spill_max_bytes;
        options.disk_reserve_bytes = raw.disk_reserve_bytes;
        options.history_max_bytes = raw.history_max_bytes;
        options.history_full = history_full(raw.history_full);
        options.lock_max_bytes = raw.lock_max_bytes;
        options.snapshot_warn_age = Duration::from_secs(raw.snapshot_warn_seconds);
        options.commit_flush = commit_flush(raw.commit_flush);
        options.force_recovery = force_recovery(raw.force_recovery);
        if raw.recovery_threads > 0 {
            options.recovery_threads = raw.recovery_threads as usize;
        }
        options.observer = Arc::new(*callbacks);
        let core = Engine::open(Arc::new(RealFileSystem), options)?;
        let handle = Arc::new(EngineHandle::new(core, Box::new(*callbacks)));
        // SAFETY: the shim's result is writable; the count goes to the handle, `teak_engine_close` takes it back.
        unsafe { put(out, Arc::into_raw(handle)) };
        Ok(())
    })
}

/// `teak_engine_close`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_close(engine: *const EngineHandle) -> Status {
    if engine.is_null() {
        return Status::Ok;
    }
    // SAFETY: the count that `teak_engine_open` gave away comes back; the shim does not use the handle again.
    let engine = unsafe { Arc::from_raw(engine) };
    let status = run(None, || Ok(engine.core.close()?));
    value(None, (), || drop(engine));
    status
}

/// `teak_engine_set_cache_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_cache_bytes(handle: *const EngineHandle, bytes: u64) {
    // SAFETY: the handle is open. The status of a setter that cannot fail says nothing.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_cache_bytes(bytes);
            Ok(())
        })
    };
}

/// `teak_engine_set_commit_flush`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_commit_flush(handle: *const EngineHandle, mode: u32) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_commit_flush(commit_flush(mode));
            Ok(())
        })
    };
}

/// `teak_engine_set_checkpoint_log_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_checkpoint_log_bytes(handle: *const EngineHandle, bytes: u64) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_checkpoint_log_bytes(bytes);
            Ok(())
        })
    };
}

/// `teak_engine_set_spill_max_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_spill_max_bytes(handle: *const EngineHandle, bytes: u64) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_spill_max_bytes(bytes);
            Ok(())
        })
    };
}

/// `teak_engine_set_history_max_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_history_max_bytes(handle: *const EngineHandle, bytes: u64) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_history_max_bytes(bytes);
            Ok(())
        })
    };
}

/// `teak_engine_set_lock_max_bytes`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_lock_max_bytes(handle: *const EngineHandle, bytes: u64) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_lock_max_bytes(bytes);
            Ok(())
        })
    };
}

/// `teak_engine_set_history_full`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_history_full(handle: *const EngineHandle, what: u32) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_history_full(history_full(what));
            Ok(())
        })
    };
}

/// `teak_engine_set_snapshot_warn_seconds`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_set_snapshot_warn_seconds(handle: *const EngineHandle, seconds: u64) {
    // SAFETY: as above.
    let _ = unsafe {
        with_engine(handle, |engine| {
            engine.core.settings().set_snapshot_warn_age(Duration::from_secs(seconds));
            Ok(())
        })
    };
}

/// `teak_engine_snapshots`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_snapshots(
    handle: *const EngineHandle,
    out: *mut RawSnapshot,
    capacity: usize,
) -> usize {
    // SAFETY: the handle is open.
    let engine = unsafe { engine(handle) };
    value(engine, 0, || {
        let snapshots = engine.map(|engine| engine.core.snapshots()).unwrap_or_default();
        for (i, snapshot) in snapshots.iter().enumerate().take(capacity) {
            let raw = RawSnapshot {
                session: snapshot.session,
                timestamp: snapshot.timestamp,
                age_seconds: snapshot.age.as_secs(),
                versions: snapshot.held.versions,
                memory_bytes: snapshot.held.memory_bytes,
                spilled_bytes: snapshot.held.spilled_bytes,
                too_old: u64::from(snapshot.too_old),
            };
            // SAFETY: the shim's array has `capacity` places.
            unsafe { put(out.add(i), raw) }
        }
        snapshots.len()
    })
}

/// `teak_engine_checkpoint`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_checkpoint(handle: *const EngineHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_engine(handle, |engine| Ok(engine.core.checkpoint()?)) }
}

/// `teak_engine_flush_logs`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_flush_logs(handle: *const EngineHandle) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_engine(handle, |engine| Ok(engine.core.sync_log()?)) }
}

/// `teak_engine_status_variables`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_status_variables(
    handle: *const EngineHandle,
    out: *mut RawStatusVariable,
    capacity: usize,
) -> usize {
    // SAFETY: the handle is open.
    let engine = unsafe { engine(handle) };
    value(engine, 0, || {
        let variables = engine.map(status_variables).unwrap_or_default();
        for (i, (name, value)) in variables.iter().enumerate().take(capacity) {
            // SAFETY: the shim's array has `capacity` places.
            unsafe { put(out.add(i), RawStatusVariable { name: name.as_ptr(), value: *value }) }
        }
        variables.len()
    })
}

/// `teak_engine_status_text`
#[no_mangle]
pub unsafe extern "C" fn teak_engine_status_text(handle: *const EngineHandle, out: *mut RawBuffer) -> Status {
    // SAFETY: the handle is open, the result writable.
    unsafe {
        with_engine(handle, |engine| {
            put(out, RawBuffer::of(status_text(engine)));
            Ok(())
        })
    }
}

/// `teak_buffer_free`
#[no_mangle]
pub unsafe extern "C" fn teak_buffer_free(buffer: *mut RawBuffer) {
    // SAFETY: the shim's buffer is writable or NULL.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else { return };
    if !buffer.owner.is_null() {
        // SAFETY: the owner is a boxed String turned raw by `RawBuffer::of`, and is forgotten below.
        drop(unsafe { Box::from_raw(buffer.owner.cast::<String>()) });
    }
    *buffer = RawBuffer { data: std::ptr::null(), len: 0, owner: std::ptr::null_mut() };
}

/// `teak_recover`
#[no_mangle]
pub unsafe extern "C" fn teak_recover(
    handle: *const EngineHandle,
    out: *mut RawXid,
    capacity: usize,
    start: usize,
) -> usize {
    // SAFETY: the handle is open.
    let engine = unsafe { engine(handle) };
    value(engine, 0, || {
        let mut xids = engine.map(|engine| engine.core.prepared()).unwrap_or_default();
        xids.sort();
        let mut copied = 0;
        for xid in xids.iter().skip(start).take(capacity) {
            let mut raw = RawXid { data: [0; MAX_XID], len: xid.len().min(MAX_XID) as u32 };
            raw.data[..raw.len as usize].copy_from_slice(&xid[..raw.len as usize]);
            // SAFETY: the shim's array has `capacity` places.
            unsafe { put(out.add(copied), raw) };
            copied += 1;
        }
        copied
    })
}

/// `teak_commit_by_xid`
#[no_mangle]
pub unsafe extern "C" fn teak_commit_by_xid(handle: *const EngineHandle, xid: RawBytes) -> Status {
    // SAFETY: the handle is open, the xid readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.commit_prepared(xid.slice())?)) }
}

/// `teak_rollback_by_xid`
#[no_mangle]
pub unsafe extern "C" fn teak_rollback_by_xid(handle: *const EngineHandle, xid: RawBytes) -> Status {
    // SAFETY: the handle is open, the xid readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.rollback_prepared(xid.slice())?)) }
}
