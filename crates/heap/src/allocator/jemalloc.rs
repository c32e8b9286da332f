//! jemalloc, by `mallctl`.
//!
//! It is watched by `experimental.hooks.install`, which 5.2 and 5.3 have: functions that are called behind each
//! allocation and before each release. They cost what its slow path does, in all threads, as long as they are there,
//! and nothing when they are not. Its own profiler (`prof:true`) is not needed, and not touched: it has one setting
//! for all threads, and does not know for whom a thread works.

use std::ffi::{c_char, c_void, CStr, CString};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{advice, symbol_beside_malloc, Allocator, HookFunctions, Numbers};

type Mallctl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

/// `hooks_t` of jemalloc's hook.h.
#[repr(C)]
struct Hooks {
    alloc: extern "C" fn(*mut c_void, c_int, *mut c_void, usize, *const usize),
    dalloc: extern "C" fn(*mut c_void, c_int, *mut c_void, *const usize),
    expand: extern "C" fn(*mut c_void, c_int, *mut c_void, usize, usize, usize, *const usize),
    extra: *mut c_void,
}

/// The jemalloc of this process.
pub struct Jemalloc {
    mallctl: Mallctl,
    /// What it gave for the functions.
    handle: AtomicPtr<c_void>,
}

impl Jemalloc {
    /// It, if `malloc` is its.
    pub fn find() -> Option<Jemalloc> {
        let found = symbol_beside_malloc(c"mallctl")?;
        // SAFETY: the function of this name in the library that has `malloc` is jemalloc's.
        let mallctl = unsafe { std::mem::transmute::<*mut c_void, Mallctl>(found) };
        Some(Jemalloc { mallctl, handle: AtomicPtr::default() })
    }

    /// Reads what `name` stands for, and gives it something; 0 if it could.
    fn control<R, W>(&self, name: &CStr, read: Option<&mut R>, mut write: Option<W>) -> c_int {
        let mut bytes = std::mem::size_of::<R>();
        let (out, len): (*mut c_void, *mut usize) = match read {
            Some(read) => (std::ptr::from_mut(read).cast(), &mut bytes),
            None => (std::ptr::null_mut(), std::ptr::null_mut()),
        };
        let (new, new_len) = match &mut write {
            Some(write) => (std::ptr::from_mut(write).cast(), std::mem::size_of::<W>()),
            None => (std::ptr::null_mut(), 0),
        };
        // SAFETY: by its manual; what has another size than the name asks for is refused.
        unsafe { (self.mallctl)(name.as_ptr(), out, len, new, new_len) }
    }

    fn number(&self, name: &str) -> Option<u64> {
        let (name, mut number) = (CString::new(name).ok()?, 0usize);
        (self.control(&name, Some(&mut number), None::<()>) == 0).then_some(number as u64)
    }
}

impl Allocator for Jemalloc {
    fn name(&self) -> &'static str {
        "jemalloc"
    }

    fn version(&self) -> String {
        let mut text: *const c_char = std::ptr::null();
        if self.control(c"version", Some(&mut text), None::<()>) != 0 || text.is_null() {
            return String::new();
        }
        // SAFETY: a constant of the library.
        let version = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        version.split('-').next().unwrap_or_default().to_string()
    }

    fn numbers(&self) -> Numbers {
        // The numbers are those of the last time that somebody told it so.
        self.control(c"epoch", None::<&mut u64>, Some(1u64));
        Numbers {
            allocated: self.number("stats.allocated"),
            active: self.number("stats.active"),
            resident: self.number("stats.resident"),
            retained: self.number("stats.retained"),
        }
    }

    fn refusal(&self) -> Option<String> {
        let version = self.version();
        let is_known = ["5.2.", "5.3."].iter().any(|known| version.starts_with(known));
        (!is_known).then(|| {
            format!(
                "this jemalloc is of version '{version}'; watched can be 5.2 and 5.3, as Debian has them: {}",
                advice()
            )
        })
    }

    fn watch(&self, functions: &HookFunctions) -> Result<(), String> {
        let hooks = Hooks {
            alloc: functions.jemalloc_alloc,
            dalloc: functions.jemalloc_dalloc,
            expand: functions.jemalloc_expand,
            extra: std::ptr::null_mut(),
        };
        let mut handle: *mut c_void = std::ptr::null_mut();
        match self.control(c"experimental.hooks.install", Some(&mut handle), Some(hooks)) {
            0 => {
                self.handle.store(handle, Ordering::SeqCst);
                Ok(())
            }
            error => Err(format!("jemalloc takes no hooks: {}", std::io::Error::from_raw_os_error(error))),
        }
    }

    fn leave(&self, _: &HookFunctions) {
        let handle = self.handle.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if !handle.is_null() {
            self.control(c"experimental.hooks.remove", None::<&mut u64>, Some(handle));
        }
    }
}
