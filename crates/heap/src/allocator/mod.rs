//! Which malloc the server was started with: what it says of itself, and how it is watched.
//!
//! | file | knows |
//! |---|---|
//! | `jemalloc` | `mallctl`: numbers, and hooks |
//! | `tcmalloc` | gperftools' `MallocExtension` and `MallocHook` |
//! | `glibc` | `mallinfo2`: numbers only |
//!
//! All of it is looked up by name while the server runs: this library is linked with none of them.

pub mod glibc;
pub mod jemalloc;
pub mod tcmalloc;

use std::ffi::{c_void, CStr};
use std::os::raw::c_int;
use std::sync::OnceLock;

use crate::recorder::walk::Range;

/// The functions that an allocator is to call, which C++ has: of jemalloc's and of tcmalloc's shape.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HookFunctions {
    /// extra, kind, result, raw result, arguments
    pub jemalloc_alloc: extern "C" fn(*mut c_void, c_int, *mut c_void, usize, *const usize),
    /// extra, kind, address, arguments
    pub jemalloc_dalloc: extern "C" fn(*mut c_void, c_int, *mut c_void, *const usize),
    /// extra, kind, address, old bytes, new bytes, raw result, arguments
    pub jemalloc_expand: extern "C" fn(*mut c_void, c_int, *mut c_void, usize, usize, usize, *const usize),
    /// address, bytes
    pub tcmalloc_new: extern "C" fn(*const c_void, usize),
    /// address
    pub tcmalloc_delete: extern "C" fn(*const c_void),
}

/// What an allocator says of its memory, in bytes; `None`: it does not say.
#[derive(Debug, Default, Clone, Copy)]
pub struct Numbers {
    /// Of objects.
    pub allocated: Option<u64>,
    /// Of pages with objects.
    pub active: Option<u64>,
    /// Of pages that are in memory.
    pub resident: Option<u64>,
    /// Of address space that is kept for later.
    pub retained: Option<u64>,
}

/// An allocator.
pub trait Allocator: Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Its version; empty if it does not say.
    fn version(&self) -> String;
    /// Its numbers.
    fn numbers(&self) -> Numbers;
    /// Why it cannot be watched, and what helps; `None` if it can.
    fn refusal(&self) -> Option<String>;
    /// Calls the functions from now on.
    ///
    /// # Errors
    /// It does not take them.
    fn watch(&self, functions: &HookFunctions) -> Result<(), String>;
    /// Does not call them any more, except where a thread is about to.
    fn leave(&self, functions: &HookFunctions);
    /// The file that its `malloc` is in.
    fn library(&self) -> String {
        symbol(c"malloc").and_then(file_of).unwrap_or_default()
    }
}

/// That of this process.
pub fn allocator() -> &'static dyn Allocator {
    static FOUND: OnceLock<Box<dyn Allocator>> = OnceLock::new();
    &**FOUND.get_or_init(|| {
        if let Some(jemalloc) = jemalloc::Jemalloc::find() {
            return Box::new(jemalloc);
        }
        match tcmalloc::Tcmalloc::find() {
            Some(tcmalloc) => Box::new(tcmalloc),
            None => Box::new(glibc::Glibc),
        }
    })
}

/// The address of a function of this process.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The address of a function of the allocator: of the file that `malloc` is in.
fn symbol_beside_malloc(name: &CStr) -> Option<*mut c_void> {
    let malloc = file_of(symbol(c"malloc")?)?;
    symbol(name).filter(|&found| file_of(found).as_ref() == Some(&malloc))
}

/// The file that a function is in.
fn file_of(address: *mut c_void) -> Option<String> {
    // SAFETY: zeros are a value of it.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: writes to `info` only.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a name of the dynamic linker's, which is there as long as the library is.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}

/// Addresses of the code of the libraries that these functions are in.
pub fn code_of(functions: &[*const c_void]) -> Vec<Range> {
    let files: Vec<_> = functions.iter().filter_map(|&function| file_of(function.cast_mut())).collect();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let code = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights, file) = (words.next()?, words.next()?, words.nth(3)?);
        let (from, to) = range.split_once('-')?;
        let is_wanted = rights.contains('x') && files.iter().any(|wanted| is_same_file(wanted, file));
        is_wanted.then_some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
    });
    code.collect()
}

/// The dynamic linker has a name as it was given, the kernel without links.
fn is_same_file(name: &str, file: &str) -> bool {
    name == file || std::fs::canonicalize(name).is_ok_and(|real| real.as_os_str() == file)
}

/// How a server gets the allocator that can be watched.
pub fn advice() -> String {
    let library = format!("/usr/lib/{}-linux-gnu/libjemalloc.so.2", std::env::consts::ARCH);
    format!(
        "install the package libjemalloc2 and start the server with it: 'Environment=LD_PRELOAD={library}' under \
         [Service] (systemctl edit mariadb), or 'malloc-lib={library}' under [mysqld_safe] in my.cnf"
    )
}
