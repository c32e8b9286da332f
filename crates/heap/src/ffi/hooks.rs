//! What the allocator's hooks do.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use super::border::{hooked, paused, OwnThread};
use crate::allocator::HookFunctions;
use crate::control;
use crate::recorder::recorder;

static FUNCTIONS: OnceLock<HookFunctions> = OnceLock::new();
/// Whether somebody tells where statements begin and end.
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// jemalloc's `hook_alloc`.
pub type JemallocAllocFunction =
    extern "C" fn(extra: *mut c_void, kind: c_int, result: *mut c_void, raw: usize, arguments: *const usize);
/// jemalloc's `hook_dalloc`.
pub type JemallocDallocFunction =
    extern "C" fn(extra: *mut c_void, kind: c_int, address: *mut c_void, arguments: *const usize);
/// jemalloc's `hook_expand`.
pub type JemallocExpandFunction = extern "C" fn(
    extra: *mut c_void,
    kind: c_int,
    address: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
    raw: usize,
    arguments: *const usize,
);
/// gperftools' `MallocHook_NewHook`.
pub type TcmallocNewFunction = extern "C" fn(address: *const c_void, bytes: usize);
/// gperftools' `MallocHook_DeleteHook`.
pub type TcmallocDeleteFunction = extern "C" fn(address: *const c_void);

/// The functions of the shim that allocators are to call.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct RawHooks {
    pub jemalloc_alloc: JemallocAllocFunction,
    pub jemalloc_dalloc: JemallocDallocFunction,
    pub jemalloc_expand: JemallocExpandFunction,
    pub tcmalloc_new: TcmallocNewFunction,
    pub tcmalloc_delete: TcmallocDeleteFunction,
}

/// The plugin that tells where statements begin and end is there from now on.
#[no_mangle]
pub extern "C" fn teak_heap_begin(hooks: Option<&RawHooks>) {
    if let Some(hooks) = hooks {
        FUNCTIONS.get_or_init(|| HookFunctions {
            jemalloc_alloc: hooks.jemalloc_alloc,
            jemalloc_dalloc: hooks.jemalloc_dalloc,
            jemalloc_expand: hooks.jemalloc_expand,
            tcmalloc_new: hooks.tcmalloc_new,
            tcmalloc_delete: hooks.tcmalloc_delete,
        });
        IS_THERE.store(true, Ordering::SeqCst);
    }
}

/// It goes: no hook is there any more, nor a session that is followed.
#[no_mangle]
pub extern "C" fn teak_heap_end(thread: OwnThread) {
    IS_THERE.store(false, Ordering::SeqCst);
    paused(thread, (), |_| FUNCTIONS.get().into_iter().for_each(control::end));
}

/// Those that were given.
pub fn functions() -> Result<&'static HookFunctions, String> {
    FUNCTIONS.get().filter(|_| IS_THERE.load(Ordering::SeqCst)).ok_or_else(|| {
        "the plugin teak_heap_statements is not installed; INSTALL SONAME 'teak_heap' installs what is missing".to_string()
    })
}

/// There are `bytes` at `address`, of which nobody else knows yet.
#[no_mangle]
pub extern "C" fn teak_heap_allocated(thread: OwnThread, address: usize, bytes: usize) {
    if let Some(recorder) = recorder() {
        hooked(thread, |thread| recorder.allocated(thread, address, bytes as u64));
    }
}

/// What is at `address` is about to be freed.
#[no_mangle]
pub extern "C" fn teak_heap_freed(thread: OwnThread, address: usize) {
    if let Some(recorder) = recorder() {
        hooked(thread, |thread| recorder.freed(thread, address));
    }
}

/// There are `bytes` at `address` now.
#[no_mangle]
pub extern "C" fn teak_heap_resized(thread: OwnThread, address: usize, bytes: usize) {
    if let Some(recorder) = recorder() {
        hooked(thread, |thread| recorder.resized(thread, address, bytes as u64));
    }
}
