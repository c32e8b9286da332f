//! A regular expression, by the functions of the C library that mariadb-backup uses: what matches there matches here.

use std::ffi::{c_char, CStr, CString};
use std::mem::MaybeUninit;

/// An extended regular expression of POSIX.
pub struct Pattern {
    text: String,
    /// Where it was compiled to; it may point to itself.
    compiled: Box<libc::regex_t>,
}

// SAFETY: POSIX has regexec() be called by several threads with the same expression; nothing else uses it until it is
// dropped, by who owns it.
unsafe impl Send for Pattern {}
// SAFETY: as above.
unsafe impl Sync for Pattern {}

impl Pattern {
    /// Compiles `text`; the error says what is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let pattern = CString::new(text).map_err(|_| "a regular expression with a byte 0".to_string())?;
        let mut compiled = Box::new(MaybeUninit::<libc::regex_t>::zeroed());
        // SAFETY: both pointers are valid for the call, and the pattern ends with a 0.
        let code = unsafe { libc::regcomp(compiled.as_mut_ptr(), pattern.as_ptr(), libc::REG_EXTENDED) };
        if code != 0 {
            let mut message: [c_char; 200] = [0; 200];
            // SAFETY: the buffer has that length. What regcomp() failed on may be given for the message.
            unsafe { libc::regerror(code, compiled.as_ptr(), message.as_mut_ptr(), message.len()) };
            // SAFETY: regerror() ends what it writes with a 0, within the buffer.
            let message = unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy().into_owned();
            return Err(format!("the regular expression '{text}': {message}"));
        }
        // SAFETY: regcomp() has filled it.
        let compiled = unsafe { Box::from_raw(Box::into_raw(compiled).cast::<libc::regex_t>()) };
        Ok(Pattern { text: text.to_string(), compiled })
    }

    /// Whether it is found in `name`.
    pub fn matches(&self, name: &str) -> bool {
        // No name has such a byte.
        let Ok(name) = CString::new(name) else { return false };
        // SAFETY: the expression is compiled, the name ends with a 0, and no places of matches are asked for.
        let code = unsafe { libc::regexec(&*self.compiled, name.as_ptr(), 0, std::ptr::null_mut(), 0) };
        code != libc::REG_NOMATCH
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        // SAFETY: it was compiled, and is not used any more.
        unsafe { libc::regfree(&mut *self.compiled) };
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}
