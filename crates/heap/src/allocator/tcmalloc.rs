//! gperftools' tcmalloc (`libtcmalloc.so.4`, also `_minimal`), by the functions that it has for C.

use std::ffi::{c_char, c_void, CStr};
use std::os::raw::c_int;

use super::{symbol_beside_malloc, Allocator, HookFunctions, Numbers};

type Property = unsafe extern "C" fn(*const c_char, *mut usize) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut *const c_char) -> *const c_char;
type NewHook = extern "C" fn(*const c_void, usize);
type DeleteHook = extern "C" fn(*const c_void);

/// The tcmalloc of this process.
pub struct Tcmalloc {
    property: Property,
    version: Option<Version>,
    add_new: unsafe extern "C" fn(NewHook) -> c_int,
    remove_new: unsafe extern "C" fn(NewHook) -> c_int,
    add_delete: unsafe extern "C" fn(DeleteHook) -> c_int,
    remove_delete: unsafe extern "C" fn(DeleteHook) -> c_int,
}

impl Tcmalloc {
    /// It, if `malloc` is its.
    pub fn find() -> Option<Tcmalloc> {
        let of = symbol_beside_malloc;
        let new = (of(c"MallocHook_AddNewHook")?, of(c"MallocHook_RemoveNewHook")?);
        let delete = (of(c"MallocHook_AddDeleteHook")?, of(c"MallocHook_RemoveDeleteHook")?);
        let property = of(c"MallocExtension_GetNumericProperty")?;
        // SAFETY: functions of these names in the library that has `malloc` are gperftools', with types as its headers
        // malloc_hook_c.h, malloc_extension_c.h and tcmalloc.h have them.
        unsafe {
            Some(Tcmalloc {
                property: std::mem::transmute::<*mut c_void, Property>(property),
                version: of(c"tc_version").map(|found| std::mem::transmute::<*mut c_void, Version>(found)),
                add_new: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(NewHook) -> c_int>(new.0),
                remove_new: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(NewHook) -> c_int>(new.1),
                add_delete: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(DeleteHook) -> c_int>(
                    delete.0,
                ),
                remove_delete: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(DeleteHook) -> c_int>(
                    delete.1,
                ),
            })
        }
    }

    fn number(&self, name: &CStr) -> Option<u64> {
        let mut number = 0;
        // SAFETY: a name that ends with a zero, and a place for the number.
        (unsafe { (self.property)(name.as_ptr(), &mut number) } != 0).then_some(number as u64)
    }
}

impl Allocator for Tcmalloc {
    fn name(&self) -> &'static str {
        "tcmalloc"
    }

    fn version(&self) -> String {
        let Some(version) = self.version else { return String::new() };
        let (mut major, mut minor, mut patch) = (0, 0, std::ptr::null());
        // SAFETY: places for what it says.
        let text = unsafe { version(&mut major, &mut minor, &mut patch) };
        if text.is_null() {
            return format!("{major}.{minor}");
        }
        // SAFETY: a constant of the library.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().trim_start_matches("gperftools ").to_string()
    }

    fn numbers(&self) -> Numbers {
        let heap = self.number(c"generic.heap_size");
        let free = self.number(c"tcmalloc.pageheap_free_bytes").unwrap_or(0);
        let unmapped = self.number(c"tcmalloc.pageheap_unmapped_bytes").unwrap_or(0);
        Numbers {
            allocated: self.number(c"generic.current_allocated_bytes"),
            active: heap.map(|heap| heap.saturating_sub(free + unmapped)),
            resident: heap.map(|heap| heap.saturating_sub(unmapped)),
            retained: Some(unmapped),
        }
    }

    fn refusal(&self) -> Option<String> {
        None
    }

    fn watch(&self, functions: &HookFunctions) -> Result<(), String> {
        // SAFETY: functions that are there until the process ends.
        if unsafe { (self.add_delete)(functions.tcmalloc_delete) } == 0 {
            return Err("tcmalloc takes no more hooks".to_string());
        }
        // SAFETY: likewise.
        if unsafe { (self.add_new)(functions.tcmalloc_new) } == 0 {
            self.leave(functions);
            return Err("tcmalloc takes no more hooks".to_string());
        }
        Ok(())
    }

    fn leave(&self, functions: &HookFunctions) {
        // SAFETY: what it does not have, it does not take off.
        unsafe { (self.remove_new)(functions.tcmalloc_new) };
        // SAFETY: likewise.
        unsafe { (self.remove_delete)(functions.tcmalloc_delete) };
    }
}
