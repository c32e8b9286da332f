//! A slice seen as arrays: what `slice::as_chunks` is from Rust 1.88 on. The workspace builds with 1.85, Debian 12's.

/// The items of `slice`, `N` at a time; those at the end that do not fill an array are left out.
#[inline]
pub fn whole_arrays<T, const N: usize>(slice: &[T]) -> &[[T; N]] {
    const { assert!(N > 0, "arrays of nothing cannot be counted") };
    // SAFETY: `[T; N]` has the alignment of `T` and N times its size, without padding, so that `len / N` of them lie
    // within the `len` items that `slice` borrows for as long as the result.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast::<[T; N]>(), slice.len() / N) }
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
