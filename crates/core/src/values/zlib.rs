//! The pinned zlib behind safe calls: raw deflate streams with windows of 32 KiB, and the two checksums.
//!
//! It is linked statically, and the plugin hides its names (`scripts/check-symbols.sh` looks): what counts is that each
//! byte which this deflate makes stays the same for ever, whatever zlib the process around it has.
//!
//! A stream's memory (270 KiB to write, 40 KiB to read) is used again, by whichever thread comes next: a server may
//! have thousands of threads, of which few are here at a time.

use libc::{c_int, c_uint, c_void};
use libz_sys::{self as c, z_stream};
use parking_lot::Mutex;
use std::mem::MaybeUninit;

/// The version whose output the recipes of [`super::deflated`] rely on.
#[cfg(test)]
const VERSION: &str = "1.3.2";
/// zlib takes lengths of 32 bits.
pub(super) const MOST_BYTES: usize = 1 << 30;
/// Streams of each kind that are kept between calls.
const KEPT: usize = 16;
/// The largest window, and no header: what stands around a stream is [`super::frame`]'s.
const RAW_WINDOW: c_int = -15;

/// How much memory the writer of a stream gave to its search for repetitions and to the symbols of a block (zlib's
/// memLevel). It decides where blocks end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Memory {
    /// 8, zlib's default.
    Usual,
    /// 9, the most.
    Most,
}

/// A call went as far as it could.
pub(super) struct Step {
    /// Bytes of the input that it has taken.
    pub taken: usize,
    /// The stream is at its end.
    pub ended: bool,
}

/// What is not a deflate stream, or no memory for one.
#[derive(Debug)]
pub(super) struct Failed;

/// zlib's own state points back to its stream, which therefore stays where it is. A pointer to what `Box::into_raw`
/// gave, so that nobody else claims to be the only one who has it.
struct Stream(*mut z_stream);

// SAFETY: the stream and what it points to belong to this object alone, and zlib knows no threads.
unsafe impl Send for Stream {}

impl Stream {
    fn new() -> Stream {
        let mut stream = Box::new(MaybeUninit::<z_stream>::zeroed());
        let at = stream.as_mut_ptr();
        // SAFETY: both are fields of the allocation that `at` points to; all others may be zero or null, and then the
        // whole is a `z_stream`.
        unsafe {
            (&raw mut (*at).zalloc).write(allocate);
            (&raw mut (*at).zfree).write(release);
        }
        Stream(Box::into_raw(stream).cast())
    }

    /// Lets `work` read `input` and write to the spare room of `out`, at most `room` bytes.
    fn step(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        room: usize,
        work: unsafe extern "C" fn(*mut z_stream, c_int) -> c_int,
        flush: c_int,
    ) -> Result<Step, Failed> {
        let spare = out.spare_capacity_mut();
        let room = room.min(spare.len()).min(MOST_BYTES);
        let given = input.len().min(MOST_BYTES);
        // SAFETY: the stream is alive and was begun by the kind of stream that `work` belongs to (both callers are
        // below); the two pointers are good for the lengths beside them until the call returns, and are not used
        // after it, since each call sets them anew. zlib does not write to its input.
        let (code, taken, made) = unsafe {
            let stream = &mut *self.0;
            stream.next_in = input.as_ptr().cast_mut();
            stream.avail_in = given as c_uint;
            stream.next_out = spare.as_mut_ptr().cast();
            stream.avail_out = room as c_uint;
            let code = work(stream, flush);
            (code, given - stream.avail_in as usize, room - stream.avail_out as usize)
        };
        // SAFETY: zlib has written the first `made` bytes of the spare room.
        unsafe { out.set_len(out.len() + made) };
        match code {
            c::Z_STREAM_END => Ok(Step { taken, ended: true }),
            // The second: there was no room, or no input, to go on with.
            c::Z_OK | c::Z_BUF_ERROR => Ok(Step { taken, ended: false }),
            _ => Err(Failed),
        }
    }
}

/// Makes deflate streams.
pub(super) struct Deflater {
    stream: Stream,
}

static DEFLATERS: [Mutex<Vec<Deflater>>; 2] = [Mutex::new(Vec::new()), Mutex::new(Vec::new())];

impl Deflater {
    /// Runs `work` with one that stands before the beginning of a stream.
    pub(super) fn with<R>(
        level: u8,
        memory: Memory,
        work: impl FnOnce(&mut Deflater) -> Result<R, Failed>,
    ) -> Result<R, Failed> {
        let kept = &DEFLATERS[memory as usize];
        // The latch is given back before the work begins.
        let idle = kept.lock().pop();
        let mut deflater = match idle {
            Some(deflater) => deflater,
            None => Deflater::new(memory)?,
        };
        deflater.begin(level)?;
        let result = work(&mut deflater)?;
        let mut kept = kept.lock();
        if kept.len() < KEPT {
            kept.push(deflater);
        }
        Ok(result)
    }

    fn new(memory: Memory) -> Result<Deflater, Failed> {
        let stream = Stream::new();
        let level = match memory {
            Memory::Usual => 8,
            Memory::Most => 9,
        };
        let size = size_of::<z_stream>() as c_int;
        // SAFETY: the stream is alive and has its two functions; the version is a string that ends with zero.
        let code = unsafe {
            c::deflateInit2_(
                stream.0,
                c::Z_DEFAULT_COMPRESSION,
                c::Z_DEFLATED,
                RAW_WINDOW,
                level,
                c::Z_DEFAULT_STRATEGY,
                c::zlibVersion(),
                size,
            )
        };
        // From here on the end of the deflater is the stream's; of one that did not begin, `deflateEnd` frees nothing.
        let deflater = Deflater { stream };
        (code == c::Z_OK).then_some(deflater).ok_or(Failed)
    }

    fn begin(&mut self, level: u8) -> Result<(), Failed> {
        // SAFETY: the stream is alive and was begun by `deflateInit2_`. Right after the reset there is nothing that a
        // change of the level would have to write first.
        let codes = unsafe {
            [
                c::deflateReset(self.stream.0),
                c::deflateParams(self.stream.0, c_int::from(level), c::Z_DEFAULT_STRATEGY),
            ]
        };
        (codes == [c::Z_OK; 2]).then_some(()).ok_or(Failed)
    }

    /// Goes on with a stream of all that is left, `input`; writes at most `room` bytes of it behind `out`, into memory
    /// that `out` has already.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Failed> {
        self.stream.step(input, out, room, c::deflate, c::Z_FINISH)
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        // SAFETY: the stream is alive, and nobody has it but this object; it was allocated by `Box`, as a
        // `MaybeUninit<z_stream>`, which is laid out like what it holds.
        unsafe {
            c::deflateEnd(self.stream.0);
            drop(Box::from_raw(self.stream.0));
        }
    }
}

/// Reads deflate streams.
pub(super) struct Inflater {
    stream: Stream,
}

static INFLATERS: Mutex<Vec<Inflater>> = Mutex::new(Vec::new());

impl Inflater {
    /// Runs `work` with one that stands before the beginning of a stream.
    pub(super) fn with<R>(work: impl FnOnce(&mut Inflater) -> Result<R, Failed>) -> Result<R, Failed> {
        let idle = INFLATERS.lock().pop();
        let mut inflater = match idle {
            Some(inflater) => inflater,
            None => Inflater::new()?,
        };
        // SAFETY: the stream is alive and was begun by `inflateInit2_`.
        if unsafe { c::inflateReset(inflater.stream.0) } != c::Z_OK {
            return Err(Failed);
        }
        let result = work(&mut inflater);
        // What is refused is most of what comes here: it leaves nothing that a reset does not clear.
        let mut kept = INFLATERS.lock();
        if kept.len() < KEPT {
            kept.push(inflater);
        }
        result
    }

    fn new() -> Result<Inflater, Failed> {
        let stream = Stream::new();
        let size = size_of::<z_stream>() as c_int;
        // SAFETY: the stream is alive and has its two functions; the version is a string that ends with zero.
        let code = unsafe { c::inflateInit2_(stream.0, RAW_WINDOW, c::zlibVersion(), size) };
        let inflater = Inflater { stream };
        (code == c::Z_OK).then_some(inflater).ok_or(Failed)
    }

    /// Goes on with a stream whose next bytes are `input`; writes at most `room` bytes of what is in it behind `out`,
    /// into memory that `out` has already.
    ///
    /// # Errors
    /// It is no deflate stream.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Step, Failed> {
        self.stream.step(input, out, room, c::inflate, c::Z_NO_FLUSH)
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: as for `Deflater`.
        unsafe {
            c::inflateEnd(self.stream.0);
            drop(Box::from_raw(self.stream.0));
        }
    }
}

/// The checksum of a zlib stream; of at most [`MOST_BYTES`].
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    // SAFETY: the pointer is good for the length beside it.
    unsafe { c::adler32(1, bytes.as_ptr(), bytes.len().min(MOST_BYTES) as c_uint) as u32 }
}

/// The checksum of a gzip file; of at most [`MOST_BYTES`].
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    // SAFETY: the pointer is good for the length beside it.
    unsafe { c::crc32(0, bytes.as_ptr(), bytes.len().min(MOST_BYTES) as c_uint) as u32 }
}

/// Zeroed, so that nothing which zlib does can depend on what was there before.
unsafe extern "C" fn allocate(_: *mut c_void, items: c_uint, size: c_uint) -> *mut c_void {
    // SAFETY: `calloc` takes any numbers.
    unsafe { libc::calloc(items as usize, size as usize) }
}

unsafe extern "C" fn release(_: *mut c_void, at: *mut c_void) {
    // SAFETY: zlib frees what `allocate` gave it, once.
    unsafe { libc::free(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::texts::{noise, text};

    #[test]
    fn the_library_is_the_pinned_one() {
        // SAFETY: a constant string of the library, which ends with zero.
        let version = unsafe { std::ffi::CStr::from_ptr(c::zlibVersion()) };
        assert_eq!(version.to_str(), Ok(VERSION));
    }

    /// What an earlier call left in it must not show.
    #[test]
    fn a_stream_that_was_used_before_makes_what_a_new_one_makes() {
        let contents = [text(9, 60_000), noise(10, 70_000), text(11, 3_000), noise(12, 10)];
        let make = |deflater: &mut Deflater, content: &[u8]| {
            let mut out = Vec::with_capacity(2 * content.len() + 100);
            assert!(deflater.step(content, &mut out, usize::MAX).is_ok_and(|step| step.ended));
            out
        };
        for (level, next) in (0..10u8).flat_map(|level| (0..10u8).map(move |next| (level, next))) {
            for memory in [Memory::Usual, Memory::Most] {
                let mut used = Deflater::new(memory).expect("a deflater");
                used.begin(level).expect("a level");
                make(&mut used, &contents[usize::from(level + next) % 4]);
                // Also one that was left in the middle.
                let _ = used.begin(next).map(|()| used.step(&contents[0], &mut Vec::with_capacity(50), 50));
                used.begin(next).expect("a level");
                let mut fresh = Deflater::new(memory).expect("a deflater");
                fresh.begin(next).expect("a level");
                let content = &contents[usize::from(next) % 4];
                assert!(make(&mut used, content) == make(&mut fresh, content), "{level} and then {next}");
            }
        }
    }
}
