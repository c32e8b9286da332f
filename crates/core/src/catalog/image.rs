//! The rows of the two system trees as an image has them, for who reads files without an engine: the check of the
//! files, and backups.

use super::directory::{self, Contained, Counted, StoredDictionary};
use super::{link_of_key, name_of_key, referrer_of_key, tree_key, TableRecord};
use crate::log::Lsn;
use crate::store::{BlockAddress, TreeRoot};
use crate::types::TreeId;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The rows of the directory, by what they are about.
#[derive(Default)]
pub struct DirectoryRows {
    /// Where each tree begins.
    pub roots: BTreeMap<TreeId, TreeRoot>,
    /// Where the free-space map of each file is.
    pub maps: BTreeMap<u32, BlockAddress>,
    /// Dictionaries of trees.
    pub dictionaries: BTreeMap<TreeId, StoredDictionary>,
    /// First trees of the tables that have a counter.
    pub counters: HashSet<TreeId>,
    /// First trees of the tables that have a digest.
    pub digests: HashSet<TreeId>,
    /// Which commits the image contains.
    counted: Option<Counted>,
    /// The same of the spaces that differ.
    apart: BTreeMap<u32, Counted>,
}

/// The rows of the catalog.
#[derive(Default)]
pub struct Catalog {
    /// Tables by name.
    pub records: BTreeMap<String, TableRecord>,
    /// Whose table each tree says it is of.
    pub tables: BTreeMap<TreeId, Vec<u8>>,
    /// Who has links to whom: target, name.
    pub referrers: BTreeSet<(String, String)>,
    /// Which table has the link of each name.
    pub links: BTreeMap<String, Vec<u8>>,
}

fn tree_of(key: &[u8]) -> Option<TreeId> {
    key.get(1..).and_then(|number| number.try_into().ok()).map(u64::from_be_bytes)
}

fn space_of(key: &[u8]) -> Option<u32> {
    key.get(1..).and_then(|number| number.try_into().ok()).map(u32::from_be_bytes)
}

impl DirectoryRows {
    /// Which commits the image contains, of a checkpoint from which replay starts at `replay_from`.
    pub fn contained(&self, replay_from: Lsn) -> Contained {
        let common = self.counted.clone().unwrap_or_else(|| Counted::nothing(replay_from));
        Contained { common, apart: self.apart.clone() }
    }

    /// Takes a row; what is wrong with it goes to `odd`.
    pub fn note(&mut self, key: &[u8], value: &[u8], odd: &mut Vec<String>) {
        let noted = match (key.first(), tree_of(key), space_of(key)) {
            (Some(b'R'), Some(tree), _) => {
                directory::decode_root(value).map(|root| _ = self.roots.insert(tree, root))
            }
            (Some(b'D'), Some(tree), _) => {
                directory::decode_dictionary(value).map(|stored| _ = self.dictionaries.insert(tree, stored))
            }
            (Some(b'C'), Some(tree), _) => {
                directory::decode_number(value).map(|_| _ = self.counters.insert(tree))
            }
            (Some(b'S'), Some(tree), _) => {
                directory::decode_digest(value).map(|_| _ = self.digests.insert(tree))
            }
            (Some(b'M'), _, Some(space)) => {
                directory::decode_map(value).map(|map| _ = self.maps.insert(space, map))
            }
            (Some(b'L'), None, space) => directory::decode_counted(value).map(|counted| match space {
                Some(space) => drop(self.apart.insert(space, counted)),
                None => self.counted = Some(counted),
            }),
            (Some(b'O'), None, Some(_)) => directory::decode_orphan(value),
            _ => Err(format!("the directory has an unknown row {}", key.escape_ascii())),
        };
        odd.extend(noted.err());
    }
}

impl Catalog {
    /// Takes a row; what is wrong with it goes to `odd`.
    pub fn note(&mut self, key: &[u8], value: &[u8], odd: &mut Vec<String>) {
        if let Some(name) = name_of_key(key) {
            match TableRecord::decode(value) {
                Ok(record) => drop(self.records.insert(name.to_string(), record)),
                Err(detail) => odd.push(format!("table '{name}': {detail}")),
            }
            return;
        }
        if let Some((target, name)) = referrer_of_key(key) {
            self.referrers.insert((target.to_string(), name.to_string()));
            return;
        }
        if let Some(link) = link_of_key(key) {
            self.links.insert(link.to_string(), value.to_vec());
            return;
        }
        match tree_of(key) {
            Some(tree) if tree_key(tree) == *key => drop(self.tables.insert(tree, value.to_vec())),
            _ => odd.push(format!("the catalog has an unknown row {}", key.escape_ascii())),
        }
    }
}
