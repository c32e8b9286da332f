//! Slices as the processor sees them: as arrays (what `slice::as_chunks` is from Rust 1.88 on; the workspace builds
//! with 1.85, Debian 12's), and as cache lines.

/// The items of `slice`, `N` at a time; those at the end that do not fill an array are left out.
#[inline]
pub fn whole_arrays<T, const N: usize>(slice: &[T]) -> &[[T; N]] {
    const { assert!(N > 0, "arrays of nothing cannot be counted") };
    // SAFETY: `[T; N]` has the alignment of `T` and N times its size, without padding, so that `len / N` of them lie
    // within the `len` items that `slice` borrows for as long as the result.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast::<[T; N]>(), slice.len() / N) }
}

/// Bytes of a cache line, and how many lines of a slice are fetched: what follows comes by itself when it is read.
const LINE_BYTES: usize = 64;
const FETCHED_LINES: usize = 3;

/// Has the processor fetch what `items` begins with while it does something else.
#[inline]
pub fn prefetch<T>(items: &[T]) {
    for at in (0..size_of_val(items).min(FETCHED_LINES * LINE_BYTES)).step_by(LINE_BYTES) {
        fetch_line(items.as_ptr().cast::<u8>().wrapping_add(at));
    }
}

/// Has the processor fetch the cache line of byte `at` and two on each side of it.
#[inline]
pub fn prefetch_around(bytes: &[u8], at: usize) {
    for line in 0..5 {
        fetch_line(bytes.as_ptr().wrapping_add(at + line * LINE_BYTES).wrapping_sub(2 * LINE_BYTES));
    }
}

/// A hint, which reads nothing: of an address that is nobody's, nothing comes.
#[inline]
fn fetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: the processor ignores addresses that cannot be read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::whole_arrays;

    #[test]
    fn what_fills_no_array_is_left_out() {
        let items = [1, 2, 3, 4, 5, 6, 7];
        assert_eq!(whole_arrays::<_, 3>(&items), [[1, 2, 3], [4, 5, 6]]);
        assert_eq!(whole_arrays::<_, 7>(&items), [items]);
        assert_eq!(whole_arrays::<_, 8>(&items), [[0; 8]; 0]);
        assert_eq!(whole_arrays::<u8, 2>(&[]), [[0; 2]; 0]);
    }
}
