//! Opening, closing and watching an engine.

use std::sync::Arc;
use std::time::Duration;

use teak_core::file::{memory_limit, RealFileSystem};
use teak_core::{CommitFlush, FileBuffering, ForceRecovery, HistoryFull, Options};

use super::border::{put, Bytes, Out, RawBuffer, Room};
use super::callbacks::Callbacks;
use super::guard::{install, run, value};
use super::status::Status;
use teak_core::server::{Engine, Settings};
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};
use teak_rows::report::status_text;
use teak_rows::session::MAX_XID;

/// When old snapshots hold as much as they may, the oldest gives way.
pub const TEAK_HISTORY_FAIL_OLDEST: u32 = 0;
/// Or writers wait.
pub const TEAK_HISTORY_WAIT: u32 = 1;

/// Longest identifier of a prepared transaction.
pub const TEAK_XID_BYTES: usize = 160;
const _: () = assert!(TEAK_XID_BYTES == MAX_XID);

/// Look-ups use the kernel's cache of files unless the engine's own has a third of the memory.
pub const TEAK_BUFFERING_AUTO: u32 = 0;
/// They always do.
pub const TEAK_BUFFERING_ON: u32 = 1;
/// They never do.
pub const TEAK_BUFFERING_OFF: u32 = 2;

/// How an engine is opened.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawOptions<'a> {
    /// E.g. `<datadir>/#teak`.
    pub directory: Bytes<'a>,
    /// Empty: `<directory>/tmp`.
    pub temp_directory: Bytes<'a>,
    pub cache_bytes: u64,
    /// For tables that live in memory alone, beyond the cache.
    pub memory_max_bytes: u64,
    pub checkpoint_log_bytes: u64,
    pub log_segment_bytes: u64,
    pub spill_max_bytes: u64,
    pub history_max_bytes: u64,
    /// 0: never.
    pub snapshot_warn_seconds: u64,
    /// 0: a quarter of the cache.
    pub lock_max_bytes: u64,
    /// Of one scan, at most; 0: none.
    pub read_ahead_blocks: u64,
    /// Kept on the disk so that a full one can be emptied; 0: none.
    pub disk_reserve_bytes: u64,
    /// 0, 1, 2 as innodb_flush_log_at_trx_commit.
    pub commit_flush: u32,
    /// 0: one per processor.
    pub recovery_threads: u32,
    /// `TEAK_HISTORY_FAIL_OLDEST` or `TEAK_HISTORY_WAIT`.
    pub history_full: u32,
    /// `TEAK_BUFFERING_AUTO`, `TEAK_BUFFERING_ON` or `TEAK_BUFFERING_OFF`.
    pub file_buffering: u32,
    /// 0 to 3, see ForceRecovery in the core.
    pub force_recovery: u32,
}

/// An open snapshot, and what is kept for it: the versions of which it is the oldest that sees them.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSnapshot {
    pub session: u64,
    /// It sees the commits up to this.
    pub timestamp: u64,
    pub age_seconds: u64,
    pub versions: u64,
    pub memory_bytes: u64,
    pub spilled_bytes: u64,
    /// 0 or 1: it had to give way.
    pub too_old: u64,
}

/// Identifier of a prepared transaction.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawXid {
    /// As given to teak_prepare; longer ones are refused there.
    pub data: [u8; TEAK_XID_BYTES],
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
        TEAK_HISTORY_FAIL_OLDEST => HistoryFull::FailOldest,
        _ => HistoryFull::Wait,
    }
}

fn file_buffering(how: u32) -> FileBuffering {
    match how {
        TEAK_BUFFERING_ON => FileBuffering::On,
        TEAK_BUFFERING_OFF => FileBuffering::Off,
        _ => FileBuffering::Auto,
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

/// Runs `body` with the engine.
pub fn with_engine(
    handle: Option<&Arc<EngineHandle>>,
    body: impl FnOnce(&Arc<EngineHandle>) -> Result<()>,
) -> Status {
    run(handle.map(Arc::as_ref), || body(handle.ok_or(Stop::Misuse("no engine"))?))
}

/// Asks the engine something, or tells it something, that cannot fail.
pub fn ask_engine<T: Default>(
    handle: Option<&Arc<EngineHandle>>,
    question: impl FnOnce(&EngineHandle) -> T,
) -> T {
    value(handle.map(Arc::as_ref), T::default(), || handle.map_or_else(T::default, |engine| question(engine)))
}

fn set(handle: Option<&Arc<EngineHandle>>, change: impl FnOnce(&Settings)) {
    ask_engine(handle, |engine| change(engine.core.settings()));
}

/// Fills in what holds unless somebody says otherwise.
#[no_mangle]
pub extern "C" fn teak_options_default(options: Out<'_, RawOptions>) {
    let defaults = Options::new("");
    let raw = RawOptions {
        directory: Bytes::NONE,
        temp_directory: Bytes::NONE,
        cache_bytes: defaults.cache_bytes,
        memory_max_bytes: defaults.memory_max_bytes,
        checkpoint_log_bytes: defaults.checkpoint_log_bytes,
        log_segment_bytes: defaults.log_segment_bytes,
        spill_max_bytes: defaults.spill_max_bytes,
        history_max_bytes: defaults.history_max_bytes,
        snapshot_warn_seconds: defaults.snapshot_warn_age.as_secs(),
        lock_max_bytes: defaults.lock_max_bytes,
        read_ahead_blocks: u64::from(defaults.read_ahead_blocks),
        disk_reserve_bytes: defaults.disk_reserve_bytes,
        commit_flush: defaults.commit_flush as u32,
        recovery_threads: 0,
        history_full: defaults.history_full as u32,
        file_buffering: defaults.file_buffering as u32,
        force_recovery: defaults.force_recovery as u32,
    };
    put(options, raw)
}

/// Opens the engine in `options.directory`, or makes a new one there, and replays its log.
#[no_mangle]
pub extern "C" fn teak_engine_open(
    options: Option<&RawOptions<'_>>,
    callbacks: Option<&Callbacks>,
    out: Out<'_, Box<Arc<EngineHandle>>>,
) -> Status {
    run(None, || {
        let (Some(raw), Some(callbacks)) = (options, callbacks) else {
            return Err(Stop::Misuse("options and callbacks are needed"));
        };
        install(*callbacks);
        let (dir, temp_dir) = (raw.directory.name()?, raw.temp_directory.name()?);
        let mut options = Options::new(dir);
        if !temp_dir.is_empty() {
            options.temp_dir = temp_dir.into();
        }
        options.cache_bytes = raw.cache_bytes;
        options.owns_heap = true;
        options.memory_max_bytes = raw.memory_max_bytes;
        options.checkpoint_log_bytes = raw.checkpoint_log_bytes;
        options.log_segment_bytes = raw.log_segment_bytes;
        options.spill_max_bytes = raw.spill_max_bytes;
        options.disk_reserve_bytes = raw.disk_reserve_bytes;
        options.history_max_bytes = raw.history_max_bytes;
        options.history_full = history_full(raw.history_full);
        options.file_buffering = file_buffering(raw.file_buffering);
        options.lock_max_bytes = raw.lock_max_bytes;
        options.read_ahead_blocks = u32::try_from(raw.read_ahead_blocks).unwrap_or(u32::MAX);
        options.snapshot_warn_age = Duration::from_secs(raw.snapshot_warn_seconds);
        options.commit_flush = commit_flush(raw.commit_flush);
        options.force_recovery = force_recovery(raw.force_recovery);
        if raw.recovery_threads > 0 {
            options.recovery_threads = raw.recovery_threads as usize;
        }
        options.observer = Arc::new(*callbacks);
        let core = Engine::open(callbacks.instruments.watch(Arc::new(RealFileSystem)), options)?;
        put(out, Box::new(Arc::new(EngineHandle::new(core, Box::new(*callbacks)))));
        Ok(())
    })
}

/// Final checkpoint; all sessions, tables and cursors must have been freed. The handle is gone whatever the status.
#[no_mangle]
pub extern "C" fn teak_engine_close(engine: Option<Box<Arc<EngineHandle>>>) -> Status {
    let Some(engine) = engine else { return Status::Ok };
    let status = run(None, || Ok(engine.core.close()?));
    value(None, (), || drop(engine));
    status
}

/// So many percent of the memory that the process may have, in whole MiB; 0 if nobody knows.
#[no_mangle]
pub extern "C" fn teak_memory_share(percent: u64) -> u64 {
    let bytes = memory_limit().map_or(0, |limit| limit.bytes);
    (u128::from(bytes) * u128::from(percent) / 100) as u64 >> 20 << 20
}

/// See `teak_options`; the next ones likewise.
#[no_mangle]
pub extern "C" fn teak_engine_set_cache_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_cache_bytes(bytes));
}

/// Nothing goes when it is less than the tables take.
#[no_mangle]
pub extern "C" fn teak_engine_set_memory_max_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_memory_max_bytes(bytes));
}

/// 0, 1, 2 as innodb_flush_log_at_trx_commit.
#[no_mangle]
pub extern "C" fn teak_engine_set_commit_flush(handle: Option<&Arc<EngineHandle>>, mode: u32) {
    set(handle, |settings| settings.set_commit_flush(commit_flush(mode)));
}

/// Log after which a checkpoint is made.
#[no_mangle]
pub extern "C" fn teak_engine_set_checkpoint_log_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_checkpoint_log_bytes(bytes));
}

/// What the spill file may take, history not counted.
#[no_mangle]
pub extern "C" fn teak_engine_set_spill_max_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_spill_max_bytes(bytes));
}

/// What old versions may take in memory and in the spill file.
#[no_mangle]
pub extern "C" fn teak_engine_set_history_max_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_history_max_bytes(bytes));
}

/// What row locks may take.
#[no_mangle]
pub extern "C" fn teak_engine_set_lock_max_bytes(handle: Option<&Arc<EngineHandle>>, bytes: u64) {
    set(handle, |settings| settings.set_lock_max_bytes(bytes));
}

/// Of one scan, at most; 0: none.
#[no_mangle]
pub extern "C" fn teak_engine_set_read_ahead(handle: Option<&Arc<EngineHandle>>, blocks: u64) {
    set(handle, |settings| settings.set_read_ahead_blocks(u32::try_from(blocks).unwrap_or(u32::MAX)));
}

/// `TEAK_HISTORY_FAIL_OLDEST` or `TEAK_HISTORY_WAIT`.
#[no_mangle]
pub extern "C" fn teak_engine_set_history_full(handle: Option<&Arc<EngineHandle>>, what: u32) {
    set(handle, |settings| settings.set_history_full(history_full(what)));
}

/// `TEAK_BUFFERING_AUTO`, `TEAK_BUFFERING_ON` or `TEAK_BUFFERING_OFF`.
#[no_mangle]
pub extern "C" fn teak_engine_set_file_buffering(handle: Option<&Arc<EngineHandle>>, how: u32) {
    set(handle, |settings| settings.set_file_buffering(file_buffering(how)));
}

/// Age at which a snapshot is told of in the error log; 0: never.
#[no_mangle]
pub extern "C" fn teak_engine_set_snapshot_warn_seconds(handle: Option<&Arc<EngineHandle>>, seconds: u64) {
    set(handle, |settings| settings.set_snapshot_warn_age(Duration::from_secs(seconds)));
}

/// Fills in the open snapshots, oldest first, as far as there is room, and returns how many there are.
#[no_mangle]
pub extern "C" fn teak_engine_snapshots(
    handle: Option<&Arc<EngineHandle>>,
    out: Room<'_, RawSnapshot>,
) -> usize {
    ask_engine(handle, |engine| {
        let snapshots = engine.core.snapshots();
        out.fill(snapshots.iter().map(|snapshot| RawSnapshot {
            session: snapshot.session,
            timestamp: snapshot.timestamp,
            age_seconds: snapshot.age.as_secs(),
            versions: snapshot.held.versions,
            memory_bytes: snapshot.held.memory_bytes,
            spilled_bytes: snapshot.held.spilled_bytes,
            too_old: u64::from(snapshot.too_old),
        }));
        snapshots.len()
    })
}

/// Makes a checkpoint.
#[no_mangle]
pub extern "C" fn teak_engine_checkpoint(handle: Option<&Arc<EngineHandle>>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.checkpoint()?))
}

/// Everything committed so far is durable when it returns (flush_logs, commit_checkpoint_request).
#[no_mangle]
pub extern "C" fn teak_engine_flush_logs(handle: Option<&Arc<EngineHandle>>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.sync_log()?))
}

/// SHOW ENGINE TEAK STATUS. Free with teak_buffer_free.
#[no_mangle]
pub extern "C" fn teak_engine_status_text(
    handle: Option<&Arc<EngineHandle>>,
    out: Out<'_, RawBuffer>,
) -> Status {
    with_engine(handle, |engine| {
        put(out, RawBuffer::of(status_text(engine)));
        Ok(())
    })
}

/// Gives it back; idempotent: empties `*buffer`.
#[no_mangle]
pub extern "C" fn teak_buffer_free(buffer: Option<&mut RawBuffer>) {
    if let Some(buffer) = buffer {
        *buffer = RawBuffer::NONE;
    }
}

/// recover(): copies as many xids as there is room for, from the `start`th on, ordered; returns how many were copied.
#[no_mangle]
pub extern "C" fn teak_recover(
    handle: Option<&Arc<EngineHandle>>,
    out: Room<'_, RawXid>,
    start: usize,
) -> usize {
    ask_engine(handle, |engine| {
        let mut xids = engine.core.prepared();
        xids.sort();
        out.fill(xids.iter().skip(start).map(|xid| {
            let mut raw = RawXid { data: [0; MAX_XID], len: xid.len().min(MAX_XID) as u32 };
            raw.data[..raw.len as usize].copy_from_slice(&xid[..raw.len as usize]);
            raw
        }))
    })
}

/// Commits a prepared transaction that no session has.
#[no_mangle]
pub extern "C" fn teak_commit_by_xid(handle: Option<&Arc<EngineHandle>>, xid: Bytes<'_>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.commit_prepared(xid.slice())?))
}

/// Rolls it back.
#[no_mangle]
pub extern "C" fn teak_rollback_by_xid(handle: Option<&Arc<EngineHandle>>, xid: Bytes<'_>) -> Status {
    with_engine(handle, |engine| Ok(engine.core.rollback_prepared(xid.slice())?))
}
