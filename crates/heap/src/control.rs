//! What runs: sampling of all threads, sessions that are followed, and the allocator's hooks while there is either.
//!
//! What was recorded stays to be read when the last of them ends; from then on nobody sees what is freed, so the
//! picture is that of the end. It is forgotten when something begins again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::allocator::{allocator, code_of, HookFunctions};
use crate::recorder::statements::NONE;
use crate::recorder::thread::{ThreadState, INSIDE};
use crate::recorder::walk;
use crate::recorder::{self, Recorder};
use crate::sessions::Sessions;

/// Mean bytes between two samples, unless it is said otherwise.
pub const DEFAULT_PERIOD: u64 = 512 << 10;

/// Whose statements are followed.
pub static SESSIONS: OnceLock<Sessions> = OnceLock::new();

/// What was begun.
#[derive(Debug, Default, Clone, Copy)]
pub struct Running {
    /// Mean bytes between samples, while sampling runs.
    pub period: Option<u64>,
    /// That of the sampling that ran last, whose samples are still there.
    pub last_period: Option<u64>,
    /// Whether the allocator calls the hooks.
    pub is_watched: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { period: None, last_period: None, is_watched: false });

/// Whether the allocator calls the hooks, for those who ask at each statement.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// The sessions.
pub fn sessions() -> &'static Sessions {
    SESSIONS.get_or_init(Sessions::default)
}

/// What runs now.
pub fn running() -> Running {
    *lock()
}

fn lock() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A statement begins; nothing is done for it while nothing is recorded.
pub fn begin_statement(thread: &ThreadState, connection: u64, query: &[u8]) {
    // A part of a statement, in a routine, belongs to that.
    if sessions().is_told(thread, connection) {
        return;
    }
    let digest =
        recorder::recorder().filter(|_| IS_WATCHED.load(Ordering::SeqCst)).map_or(NONE, |recorder| {
            let _marked = thread.mark(INSIDE);
            recorder.statements.number_of(query)
        });
    sessions().begin_statement(thread, connection, digest);
}

/// Samples all threads from now on.
///
/// # Errors
/// It runs already, or the allocator cannot be watched.
pub fn start(thread: &ThreadState, functions: &HookFunctions, period: u64) -> Result<u64, String> {
    let mut running = lock();
    if let Some(period) = running.period {
        return Err(format!("the heap is sampled already, every {period} bytes; teak_heap_stop() ends that"));
    }
    let recorder = watch(&mut running, thread, functions)?;
    recorder.records.forget_kind(thread, recorder::records::SAMPLED);
    recorder.set_period(period);
    (running.period, running.last_period) = (Some(period), Some(period));
    Ok(period)
}

/// Ends sampling; what it has found stays. False: it did not run.
pub fn stop(functions: &HookFunctions) -> bool {
    let mut running = lock();
    if running.period.take().is_none() {
        return false;
    }
    if let Some(recorder) = recorder::recorder() {
        recorder.set_period(0);
    }
    leave_unless_needed(&mut running, functions);
    true
}

/// Follows a session from its next statement on.
///
/// # Errors
/// The allocator cannot be watched, or nobody tells where the session's statements begin and end.
pub fn follow(thread: &ThreadState, functions: &HookFunctions, connection: u64) -> Result<(), String> {
    let mut running = lock();
    if let Some(refusal) = allocator().refusal() {
        return Err(refusal);
    }
    // A session that had a statement between UNINSTALL and the last use of the plugin is told of no more: MariaDB notes
    // that it has looked for plugins, and looks again only if it had found one (mysql_audit_release in sql_audit.cc).
    if !sessions().is_told(thread, connection) {
        return Err("the server does not tell where this session's statements begin and end; connect anew"
            .to_string());
    }
    watch(&mut running, thread, functions)?;
    sessions().follow(connection);
    Ok(())
}

/// Does not follow a session any more, not even in the statement that says so.
pub fn leave(thread: &ThreadState, functions: &HookFunctions, connection: u64) {
    let mut running = lock();
    if sessions().leave(connection) {
        thread.exact.set(false);
        if let Some(recorder) = recorder::recorder() {
            recorder.records.forget_statement(thread, connection, thread.statement.get());
        }
    }
    leave_unless_needed(&mut running, functions);
}

/// A connection has ended. What it has allocated stays recorded.
pub fn disconnect(thread: &ThreadState, functions: &HookFunctions, connection: u64) {
    if thread.session.get() == connection {
        thread.end();
    }
    if sessions().forget(connection) {
        leave_unless_needed(&mut lock(), functions);
    }
}

/// Ends all, as the plugin is about to go.
pub fn end(functions: &HookFunctions) {
    stop(functions);
    let mut running = lock();
    sessions().forget_all();
    leave_unless_needed(&mut running, functions);
}

fn watch(
    running: &mut Running,
    thread: &ThreadState,
    functions: &HookFunctions,
) -> Result<&'static Recorder, String> {
    if let Some(refusal) = allocator().refusal() {
        return Err(refusal);
    }
    let recorder = recorder::prepare().map_err(|error| format!("no memory for what is recorded: {error}"))?;
    if !running.is_watched {
        let own = functions.tcmalloc_delete as *const std::ffi::c_void;
        walk::leave_out(code_of(&[own, libc::malloc as *const std::ffi::c_void]));
        recorder.forget(thread);
        sessions().forget_marks();
        running.last_period = None;
        allocator().watch(functions)?;
        running.is_watched = true;
        IS_WATCHED.store(true, Ordering::SeqCst);
    }
    Ok(recorder)
}

fn leave_unless_needed(running: &mut Running, functions: &HookFunctions) {
    if running.is_watched && running.period.is_none() && sessions().followed() == 0 {
        allocator().leave(functions);
        running.is_watched = false;
        IS_WATCHED.store(false, Ordering::SeqCst);
    }
}
