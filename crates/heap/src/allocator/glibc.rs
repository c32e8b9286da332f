//! glibc's malloc, or any other: it says how much there is, and nobody can watch it.

use std::ffi::c_void;

use super::{advice, symbol_beside_malloc, Allocator, HookFunctions, Numbers};

/// Whatever `malloc` is there.
pub struct Glibc;

impl Glibc {
    fn is_glibc(&self) -> bool {
        // SAFETY: returns a constant; the function is glibc's alone.
        symbol_beside_malloc(c"gnu_get_libc_version").is_some()
    }
}

impl Allocator for Glibc {
    fn name(&self) -> &'static str {
        if self.is_glibc() {
            "glibc"
        } else {
            "unknown"
        }
    }

    fn version(&self) -> String {
        if !self.is_glibc() {
            return String::new();
        }
        // SAFETY: returns a constant.
        unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
    }

    fn numbers(&self) -> Numbers {
        type Mallinfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
        let Some(found) = symbol_beside_malloc(c"mallinfo2").filter(|_| self.is_glibc()) else {
            return Numbers::default();
        };
        // SAFETY: glibc's function of this name.
        let numbers = unsafe { std::mem::transmute::<*mut c_void, Mallinfo2>(found)() };
        Numbers {
            allocated: Some((numbers.uordblks + numbers.hblkhd) as u64),
            active: Some((numbers.arena + numbers.hblkhd) as u64),
            resident: None,
            retained: None,
        }
    }

    fn refusal(&self) -> Option<String> {
        let whose = if self.is_glibc() { "glibc's malloc, which" } else { "a malloc that" };
        Some(format!("the server runs with {whose} cannot be watched: {}", advice()))
    }

    fn watch(&self, _: &HookFunctions) -> Result<(), String> {
        Err(self.refusal().unwrap_or_default())
    }

    fn leave(&self, _: &HookFunctions) {}
}
