//! The way up the stack, by the tables that C++ exceptions need (`.eh_frame`): it needs no frame pointers.
//!
//! libgcc's unwinder finds the tables by `_dl_find_object` since GCC 12 and glibc 2.35, without a lock and without
//! memory. Frames of this library and of the allocator are left out at the inner end.

use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

/// Frames that are kept; what is further out is cut off.
pub const FRAMES: usize = 64;

const NO_REASON: c_int = 0;
const END_OF_STACK: c_int = 5;
const NORMAL_STOP: c_int = 4;

extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Addresses of code: from, to.
pub type Range = (usize, usize);

static LEFT_OUT: OnceLock<Vec<Range>> = OnceLock::new();

/// Frames with these addresses are left out while they are the innermost ones.
pub fn leave_out(ranges: Vec<Range>) {
    LEFT_OUT.get_or_init(|| ranges);
}

fn is_left_out(address: usize) -> bool {
    LEFT_OUT.get().is_some_and(|ranges| ranges.iter().any(|&(from, to)| (from..to).contains(&address)))
}

/// A stack, the innermost frame first: return addresses.
pub struct Stack {
    frames: [usize; FRAMES],
    len: usize,
    is_whole: bool,
}

impl Default for Stack {
    fn default() -> Stack {
        Stack::new()
    }
}

impl Stack {
    /// No frames.
    pub const fn new() -> Stack {
        Stack { frames: [0; FRAMES], len: 0, is_whole: false }
    }

    /// The stack of who calls.
    #[inline(never)]
    pub fn walk(&mut self) {
        self.forget();
        // SAFETY: the callback gets this stack, which is there until the call returns, and does not unwind.
        let end = unsafe { _Unwind_Backtrace(push, std::ptr::from_mut(self).cast()) };
        self.is_whole = end == END_OF_STACK;
    }

    /// The frames.
    pub fn frames(&self) -> &[usize] {
        &self.frames[..self.len]
    }

    /// Whether they go up to where the thread began; if not, there are more than are kept, or code without tables.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Other frames.
    pub fn fill(&mut self, frames: &[usize], is_whole: bool) {
        self.len = frames.len().min(FRAMES);
        self.frames[..self.len].copy_from_slice(&frames[..self.len]);
        self.is_whole = is_whole;
    }

    /// None.
    pub fn forget(&mut self) {
        self.len = 0;
        self.is_whole = false;
    }
}

extern "C" fn push(context: *mut c_void, argument: *mut c_void) -> c_int {
    // SAFETY: `walk` gives its stack, which nobody else looks at meanwhile.
    let stack = unsafe { &mut *argument.cast::<Stack>() };
    // SAFETY: the unwinder's context, during its callback.
    let address = unsafe { _Unwind_GetIP(context) };
    if address == 0 || (stack.len == 0 && is_left_out(address)) {
        return NO_REASON;
    }
    if stack.len == FRAMES {
        return NORMAL_STOP;
    }
    stack.frames[stack.len] = address;
    stack.len += 1;
    NO_REASON
}
