//! Raw deflate as PHP's `gzdeflate($text)` writes it, which is how MediaWiki stores texts: zlib's level 6, a window of
//! 32 KiB and, unlike zlib's own default, memory level 9, by which blocks end elsewhere. All input is given at once, as
//! PHP does. Other libraries than zlib make other bytes of the same text.

use std::ffi::{c_int, CStr};
use std::mem::MaybeUninit;

const LEVEL: c_int = 6;
/// Negative: neither a header nor a checksum around the stream.
const WINDOW_BITS: c_int = -15;
/// zlib's MAX_MEM_LEVEL.
const MEMORY_LEVEL: c_int = 9;

/// A compressor, used for one text after the other.
pub struct Deflate {
    /// Boxed, since zlib's state points back to it.
    stream: Box<MaybeUninit<libz_sys::z_stream>>,
}

// SAFETY: zlib's state belongs to the stream alone and knows of no thread.
unsafe impl Send for Deflate {}

impl Deflate {
    /// With zlib's own allocation.
    pub fn new() -> Deflate {
        let mut stream = Box::new(MaybeUninit::<libz_sys::z_stream>::zeroed());
        // SAFETY: zeros are what zlib documents for a new stream whose allocation is its own. The stream lives in a
        // box until deflateEnd().
        let status = unsafe {
            libz_sys::deflateInit2_(
                stream.as_mut_ptr(),
                LEVEL,
                libz_sys::Z_DEFLATED,
                WINDOW_BITS,
                MEMORY_LEVEL,
                libz_sys::Z_DEFAULT_STRATEGY,
                libz_sys::zlibVersion(),
                std::mem::size_of::<libz_sys::z_stream>() as c_int,
            )
        };
        assert_eq!(status, libz_sys::Z_OK, "zlib refuses fixed parameters, or has no memory");
        Deflate { stream }
    }

    /// The compressed text, which is shorter than 1 GiB.
    pub fn compress(&mut self, text: &[u8]) -> Vec<u8> {
        let stream = self.stream.as_mut_ptr();
        // SAFETY: the stream is initialised. Input and output are valid for the lengths that are given and outlive the
        // call; deflateBound() is the most that deflate() writes.
        unsafe {
            libz_sys::deflateReset(stream);
            let mut out: Vec<u8> =
                Vec::with_capacity(libz_sys::deflateBound(stream, text.len() as _) as usize);
            (*stream).next_in = text.as_ptr().cast_mut();
            (*stream).avail_in = text.len() as _;
            (*stream).next_out = out.as_mut_ptr();
            (*stream).avail_out = out.capacity() as _;
            let status = libz_sys::deflate(stream, libz_sys::Z_FINISH);
            assert_eq!(status, libz_sys::Z_STREAM_END, "there was room for all of it");
            out.set_len((*stream).total_out as usize);
            out.shrink_to_fit();
            out
        }
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        // SAFETY: it was initialised, and nobody uses it any more.
        unsafe { libz_sys::deflateEnd(self.stream.as_mut_ptr()) };
    }
}

/// The version of zlib that makes the values.
pub fn version() -> String {
    // SAFETY: zlib returns a string that lives as long as the program.
    unsafe { CStr::from_ptr(libz_sys::zlibVersion()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_was_compressed_is_read_by_another_library() {
        let mut deflate = Deflate::new();
        let long: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8 & 63).collect();
        for text in [&b""[..], b"a", &b"word ".repeat(1000), &long] {
            let mut found = Vec::new();
            flate2::read::DeflateDecoder::new(&deflate.compress(text)[..]).read_to_end(&mut found).unwrap();
            assert_eq!(found, text);
        }
    }

    #[test]
    fn the_bytes_are_those_of_zlib_with_the_parameters_of_php() {
        // Python: zlib.compressobj(6, zlib.DEFLATED, -15, 9)
        let made = Deflate::new().compress(b"Every text of a page is a little like the one before it.");
        assert_eq!(hex(&made), EXPECTED);
        assert!(version().starts_with("1."));
    }

    const EXPECTED: &str = "732d4b2daa542849ad2851c84f53485428484c4f55c82c06b272324b4a7252815476aa424946aa427e5eaa42526a5a7e1150be440f00";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
