//! Which tables in memory a backup of some tables has.
//!
//! Of others a start sees by their files whether they were chosen ([`crate::Options::partial`]); these have none. The
//! list is the file `teak.memory` of the copy: a line `teak memory 1 CHECKSUM`, and one line for each of them with the
//! number of its space; the checksum is that of these lines, in sixteen hexadecimal digits. A copy of before there were
//! lists has none, and all of them.

use crate::store::checksum;
use std::collections::BTreeSet;

/// The name of the list's file in an engine's directory.
pub const MEMORY_LIST: &str = "teak.memory";

fn head(lines: &str) -> String {
    format!("teak memory 1 {:016x}\n", checksum(lines.as_bytes()))
}

/// The content of the list's file.
pub fn encode_memory_list(spaces: &BTreeSet<u32>) -> Vec<u8> {
    let lines: String = spaces.iter().map(|space| format!("{space}\n")).collect();
    (head(&lines) + &lines).into_bytes()
}

/// The spaces in a list, or what is wrong with it.
pub fn decode_memory_list(bytes: &[u8]) -> Result<BTreeSet<u32>, String> {
    let damaged = || "the list of tables in memory is damaged".to_string();
    let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
    let (first, lines) = text.split_at(text.find('\n').map_or(0, |end| end + 1));
    match first == head(lines) {
        true => lines.lines().map(|space| space.parse().map_err(|_| damaged())).collect(),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_nothing_else_is() {
        for spaces in [BTreeSet::new(), BTreeSet::from([7]), BTreeSet::from([1, 20, 300])] {
            let bytes = encode_memory_list(&spaces);
            assert_eq!(decode_memory_list(&bytes), Ok(spaces));
            for at in 0..bytes.len() {
                assert!(decode_memory_list(&bytes[..at]).is_err(), "{at}");
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert!(decode_memory_list(&damaged).is_err(), "{at}");
            }
        }
        assert!(decode_memory_list((head("x\n") + "x\n").as_bytes()).is_err());
    }
}
