//! Values that are alike, and deflate streams.

/// A version of one of four pages: those of a page differ in a few bytes. Pages that are streams differ in nothing, as
/// no other stream would come of it.
pub fn one_of_versions(page: usize, version: usize, length: usize) -> Vec<u8> {
    if page == 3 && length > 1000 {
        return include_bytes!("../fixtures/deflated/php_gzdeflate").to_vec();
    }
    let mut content: Vec<u8> = format!("version {version} of ").into_bytes();
    let mut state = page as u32 + 1;
    while content.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        content.extend_from_slice(&state.to_le_bytes()[1..]);
    }
    content.truncate(length);
    content
}
