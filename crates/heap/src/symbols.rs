//! Names, files and lines of addresses: in the process, out of the files that are mapped into it.
//!
//! Line tables and all symbols are read where a file has them, as `ha_teak.so` does; of others, as Debian's server, the
//! dynamic symbols are there, which static functions have not: those stay addresses in their file.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::Loader;

/// Addresses whose names are kept for the next time; beyond that all are looked up again.
const CACHED: usize = 50_000;

/// Names of functions that allocate for others: the call site is who called them.
#[rustfmt::skip]
const ALLOCATING: &[&str] = &[
    "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "strdup", "__strdup", "strndup", "operator new",
    "tc_", "je_", "my_malloc", "my_realloc", "my_multi_malloc", "my_strdup", "my_strndup", "my_memdup", "alloc_root",
    "multi_alloc_root", "strdup_root", "strmake_root", "memdup_root", "root_alloc", "init_alloc_root", "init_sql_alloc",
    "sql_alloc", "my_init_dynamic_array", "init_dynamic_array", "alloc_dynamic", "insert_dynamic", "allocate_dynamic",
    "Binary_string::", "String::", "Query_arena::alloc", "lf_", "my_hash_", "__rust_alloc", "__rust_realloc", "__rdl_",
    "__rustc::", "alloc::", "<alloc::", "core::", "<core::", "hashbrown::", "<hashbrown::", "std::", "<std::",
    "void std::", "__gnu_cxx::", "teak_core::slabs::", "<teak_core::slabs::", "ZSTD_customMalloc",
];

/// Sources of which the same is so: functions that were inlined have no more than the last part of their name.
const LIBRARIES: &[&str] =
    &["/library/alloc/", "/library/core/", "/library/std/", "/hashbrown-", "/include/c++/"];

/// What is known of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function, demangled; of one that is nameless nothing.
    pub function: Option<String>,
    /// The file with the code.
    pub module: String,
    /// Where in that file.
    pub offset: u64,
    /// The source.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

impl Frame {
    /// Whether it only allocates for who called it.
    pub fn is_allocating(&self) -> bool {
        let is_library =
            self.file.as_ref().is_some_and(|file| LIBRARIES.iter().any(|part| file.contains(part)));
        is_library
            || self
                .function
                .as_ref()
                .is_some_and(|name| ALLOCATING.iter().any(|known| name.starts_with(known)))
    }

    /// The function, or else the place in the file.
    pub fn name(&self) -> String {
        self.function.clone().unwrap_or_else(|| format!("{}+{:#x}", self.module_name(), self.offset))
    }

    /// The file with the code, without its directory.
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or_default()
    }
}

impl std::fmt::Display for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.function, &self.file) {
            (Some(name), Some(file)) => write!(f, "{name} ({file}:{})", self.line.unwrap_or(0)),
            (Some(name), None) => write!(f, "{name} ({}+{:#x})", self.module_name(), self.offset),
            (None, _) => write!(f, "{}", self.name()),
        }
    }
}

type Frames = Arc<Vec<Frame>>;

/// What was looked up, and how many libraries had been unloaded by then: another one may lie at its addresses since.
#[derive(Default)]
struct Known {
    unloaded: u64,
    frames: HashMap<usize, Frames>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// How many libraries this process has unloaded so far.
fn unloaded() -> u64 {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker gives an entry, and what it was given for this function: a place for the number.
        unsafe { *out.cast::<u64>() = (*info).dlpi_subs };
        1
    }
    let mut count = 0u64;
    // SAFETY: the function keeps to what it is given, and `count` is there until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(first), std::ptr::from_mut(&mut count).cast()) };
    count
}

/// Looks up addresses; has files open for it that are closed with it.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<String, Option<Loader>>,
    replaced: OnceCell<Vec<String>>,
    unloaded: OnceCell<u64>,
}

impl Symbols {
    /// Nothing looked up yet.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// The functions that a return address is in: those that were inlined first. Never empty.
    pub fn frames(&mut self, return_address: usize) -> Frames {
        // The call is before the place to which it returns.
        let address = return_address.saturating_sub(1);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(Known::default);
        let unloaded = *self.unloaded.get_or_init(unloaded);
        if known.unloaded != unloaded || known.frames.len() >= CACHED {
            *known = Known { unloaded, frames: HashMap::new() };
        }
        if let Some(frames) = known.frames.get(&address) {
            return frames.clone();
        }
        let frames = Arc::new(self.look_up(address));
        known.frames.insert(address, frames.clone());
        frames
    }

    /// All frames of a stack, the innermost first.
    pub fn stack(&mut self, return_addresses: &[usize]) -> Vec<Frame> {
        return_addresses.iter().flat_map(|&address| self.frames(address).to_vec()).collect()
    }

    fn look_up(&mut self, address: usize) -> Vec<Frame> {
        let Some(place) = Place::of(address) else {
            return vec![Frame { module: "?".into(), offset: address as u64, ..Frame::default() }];
        };
        let bare = Frame { module: place.file.clone(), offset: place.offset, ..Frame::default() };
        let is_replaced = self.replaced.get_or_init(replaced).contains(&place.file);
        let loader = self
            .files
            .entry(place.file.clone())
            .or_insert_with(|| Loader::new(&place.file).ok().filter(|_| !is_replaced));
        let mut frames = loader.as_ref().map(|loader| by_lines(loader, &bare)).unwrap_or_default();
        if frames.is_empty() {
            let by_symbol =
                loader.as_ref().and_then(|loader| loader.find_symbol(place.offset)).map(str::to_string);
            frames.push(Frame { function: place.symbol.or(by_symbol).map(demangled), ..bare });
        }
        frames
    }
}

/// By the line tables of a file.
fn by_lines(loader: &Loader, bare: &Frame) -> Vec<Frame> {
    let mut found = Vec::new();
    let Ok(mut frames) = loader.find_frames(bare.offset) else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|name| name.demangle().ok()).map(|name| short(&name));
        let location = frame.location.as_ref();
        found.push(Frame {
            function: name,
            file: location.and_then(|place| place.file).map(str::to_string),
            line: location.and_then(|place| place.line),
            ..bare.clone()
        });
    }
    // Of a file with line tables alone the whole name of the outermost function is in its symbols only.
    if let (Some(last), Some(name)) = (found.last_mut(), loader.find_symbol(bare.offset)) {
        last.function = Some(demangled(name.to_string()));
    }
    found.retain(|frame| frame.function.is_some());
    found
}

fn demangled(name: String) -> String {
    short(&addr2line::demangle_auto(Cow::from(name), None))
}

/// Without the hash that Rust puts behind names.
fn short(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((front, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            front.to_string()
        }
        _ => name.to_string(),
    }
}

/// Where an address is.
struct Place {
    file: String,
    /// As the file's own tables count.
    offset: u64,
    symbol: Option<String>,
}

/// The beginning of `struct link_map` in link.h.
#[repr(C)]
struct LinkMap {
    shift: usize,
    name: *const c_char,
}

extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}
/// dlfcn.h
const RTLD_DL_LINKMAP: c_int = 2;

impl Place {
    fn of(address: usize) -> Option<Place> {
        // SAFETY: zeros are a value of it.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let mut map: *mut c_void = std::ptr::null_mut();
        let pointer = std::ptr::without_provenance(address);
        // SAFETY: writes to the two places only; the address is compared, not looked at.
        if unsafe { dladdr1(pointer, &mut info, &mut map, RTLD_DL_LINKMAP) } == 0 || map.is_null() {
            return None;
        }
        // SAFETY: the dynamic linker's entry of a library that has code on a stack, so that it is not unloaded by who
        // has the stack; what was unloaded since is not found above.
        let (shift, name) = unsafe { ((*map.cast::<LinkMap>()).shift, (*map.cast::<LinkMap>()).name) };
        // SAFETY: a text of that entry.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        let file = if name.is_empty() { program()? } else { name };
        let symbol = (!info.dli_sname.is_null()).then(|| {
            // SAFETY: a text in the library's own tables.
            unsafe { CStr::from_ptr(info.dli_sname) }.to_string_lossy().into_owned()
        });
        Some(Place { file, offset: (address - shift) as u64, symbol })
    }
}

/// The file of the program.
fn program() -> Option<String> {
    Some(std::fs::read_link("/proc/self/exe").ok()?.to_string_lossy().into_owned())
}

/// Libraries that were replaced on disk while they are mapped: their names would be another file's.
fn replaced() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (inode, file) = (words.nth(4)?.parse::<u64>().ok()?, words.next()?);
            let is_there = std::fs::metadata(file).is_ok_and(|found| found.ino() == inode);
            (file.starts_with('/') && inode != 0 && !is_there).then(|| file.to_string())
        })
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn planted() -> usize {
        let mut stack = crate::recorder::walk::Stack::new();
        stack.walk();
        let found = stack.frames().iter().copied().find(|&address| {
            Symbols::new().frames(address).iter().any(|frame| frame.name().contains("planted"))
        });
        found.unwrap_or(0)
    }

    #[test]
    fn a_function_has_its_name_and_line() {
        let address = planted();
        let frames = Symbols::new().frames(address);
        let own = frames.iter().find(|frame| frame.name().contains("planted")).unwrap();
        assert!(own.name().ends_with("symbols::tests::planted"), "{own:?}");
        assert!(own.file.as_ref().is_none_or(|file| file.ends_with("symbols.rs")), "{own:?}");
    }

    #[test]
    fn what_is_nowhere_has_an_address() {
        assert_eq!(Symbols::new().frames(0x11)[0].to_string(), "?+0x10");
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE".into()), "core::fmt::write");
        assert_eq!(demangled("_ZN3THD5allocEm".into()), "THD::alloc(unsigned long)");
        assert_eq!(demangled("my_malloc".into()), "my_malloc");
        let frame = |name: &str| Frame { function: Some(name.into()), ..Frame::default() };
        assert!(frame("my_malloc").is_allocating() && frame("alloc::vec::Vec<T>::push").is_allocating());
        assert!(!frame("my_open").is_allocating());
    }
}
