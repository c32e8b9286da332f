//! What is known about tables and trees, as rows of the two system trees.
//!
//! - The **catalog** (tree 1) is an ordinary logged tree: [`TableRecord`]s by name, and for each tree the name of its
//!   table. It is changed by transactions, so a crash leaves either the old record or the new one.
//! - The **directory** (tree 0) belongs to the checkpointer and is not logged: where each tree's root lies, which space
//!   is free in each file, and the persisted counters, all as of the checkpoint. See [`directory`].
//!
//! Knows the bytes of these rows and the names of files in an engine's directory, and nothing of how trees store rows.
//! Integers in keys are big-endian, so that they sort; in values little-endian.
//!
//! ```text
//! catalog key                    value
//! 'n' name (UTF-8)               version u8 = 2 | space u32 | trees u16 | { tree u64 | block_bytes u32 | compression u8 | level u8 }* | meta
//!                                version u8 = 3: before meta, links u16 | { name | target | body, each: bytes u16, bytes }*
//!                                version u8 = 4: the same of a guarded table
//!                                version u8 = 5: the same of one in memory; behind the links guarded u8 | limit u64
//! 't' tree u64                   name of the table it belongs to
//! 'r' target 00 name             nothing: the table `name` has links to `target`, which need not exist
//! 'l' name of a link             name of the table that has it
//! ```

pub mod directory;
pub mod image;
mod memory_list;
mod record;
mod system;

pub use directory::{Contained, Counted};
pub use memory_list::{decode_memory_list, encode_memory_list, MEMORY_LIST};
pub use record::{Link, TableRecord};
pub use system::SystemTrees;

use crate::types::TreeId;
use std::path::{Path, PathBuf};

/// The directory's own tree id.
pub const DIRECTORY_TREE: TreeId = 0;
/// The catalog's tree id.
pub const CATALOG_TREE: TreeId = 1;
/// The first tree id a table can have.
pub const FIRST_TREE: TreeId = 16;
/// The space both system trees live in.
pub const SYSTEM_SPACE: u32 = 0;

const NAME: u8 = b'n';
const TREE: u8 = b't';
const REFERRER: u8 = b'r';
const LINK: u8 = b'l';

/// Longest table name in bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// Catalog key of a table's record. A prefix of a name gives a prefix of the key.
pub fn name_key(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(NAME);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The table name in a catalog key; `None` for other kinds of rows.
pub fn name_of_key(key: &[u8]) -> Option<&str> {
    match key.split_first() {
        Some((&NAME, name)) => std::str::from_utf8(name).ok(),
        _ => None,
    }
}

/// Catalog key of the row that tells which table a tree belongs to.
pub fn tree_key(tree: TreeId) -> [u8; 9] {
    let mut key = [TREE; 9];
    key[1..].copy_from_slice(&tree.to_be_bytes());
    key
}

/// With this begin the catalog's keys of those who have links to `target`.
pub fn referrers_prefix(target: &str) -> Vec<u8> {
    [&[REFERRER], target.as_bytes(), &[0]].concat()
}

/// Catalog key of the row that tells that the table `name` has links to `target`.
pub fn referrer_key(target: &str, name: &str) -> Vec<u8> {
    [&referrers_prefix(target), name.as_bytes()].concat()
}

/// Target and name in such a key.
pub fn referrer_of_key(key: &[u8]) -> Option<(&str, &str)> {
    let both = std::str::from_utf8(key.strip_prefix(&[REFERRER])?).ok()?;
    both.split_once('\0')
}

/// Catalog key of the row that tells which table has the link of this name.
pub fn link_key(name: &str) -> Vec<u8> {
    [&[LINK], name.as_bytes()].concat()
}

/// The link's name in such a key.
pub fn link_of_key(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.strip_prefix(&[LINK])?).ok()
}

/// Where the log of an engine is, by its directory.
pub fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Where the superblocks of an engine are.
pub fn superblock_path(dir: &Path) -> PathBuf {
    dir.join("teak.super")
}

/// File name of a space in the engine's directory.
pub fn space_file_name(space: u32) -> String {
    format!("s{space}.teak")
}

/// The space whose file has this name.
pub fn space_of_file_name(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('s')?.strip_suffix(".teak")?;
    // One name per number: no leading zeros or signs.
    let space: u32 = digits.parse().ok()?;
    (space_file_name(space) == name).then_some(space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_names_and_trees_do_not_meet() {
        assert_eq!(name_of_key(&name_key("db/t")), Some("db/t"));
        assert_eq!(name_of_key(&tree_key(7)), None);
        assert!(name_key("db/t").starts_with(&name_key("db/")));
        assert!(tree_key(255) < tree_key(256));
        assert_eq!(referrer_of_key(&referrer_key("db/t", "db/u")), Some(("db/t", "db/u")));
        assert_eq!(referrer_of_key(&name_key("db/t")), None);
        assert_eq!(link_of_key(&link_key("db/l")), Some("db/l"));
        assert_eq!(link_of_key(&referrer_key("db/t", "db/u")), None);
        assert!(!referrer_key("db/t2", "x").starts_with(&referrers_prefix("db/t")));
    }

    #[test]
    fn only_our_own_file_names_are_recognised() {
        assert_eq!(space_of_file_name(&space_file_name(12)), Some(12));
        for other in ["s012.teak", "s+1.teak", "s1.teak.bak", "x1.teak", "s.teak", "s99999999999.teak", ""] {
            assert_eq!(space_of_file_name(other), None, "{other}");
        }
    }
}
