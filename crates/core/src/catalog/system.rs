//! Reading the two system trees.

use super::{
    directory, link_key, name_key, name_of_key, referrer_of_key, referrers_prefix, tree_key, Counted,
    TableRecord, CATALOG_TREE, DIRECTORY_TREE,
};
use crate::options::{Compression, Packing, TreeSpec};
use crate::store::{BlockAddress, Space, TreeRoot};
use crate::tree::{Reader, Tree, TreeContext, TreeCursor};
use crate::types::{Seek, Timestamp, TreeId};
use crate::{Error, Result};

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The catalog and the directory. Reads see the newest committed rows.
pub struct SystemTrees {
    /// The file they live in.
    pub space: Arc<Space>,
    /// Tree 0.
    pub directory: Arc<Tree>,
    /// Tree 1.
    pub catalog: Arc<Tree>,
}

/// How the system trees are stored.
const SPEC: TreeSpec = TreeSpec {
    block_bytes: 8 << 10,
    packing: Packing { compression: Compression::Lz4, level: 0, similarity: false },
};

impl SystemTrees {
    /// Opens both trees as of a checkpoint; `directory` is what its superblock says.
    pub fn open(
        space: Arc<Space>,
        directory: Option<TreeRoot>,
        context: &Arc<TreeContext>,
    ) -> Result<SystemTrees> {
        let open = |id, root| Tree::open(id, SPEC, space.clone(), root, context.clone());
        let directory = open(DIRECTORY_TREE, directory);
        // The catalog's root is a row of the directory; until it is read an empty catalog stands in.
        let mut system = SystemTrees { catalog: open(CATALOG_TREE, None), directory, space: space.clone() };
        if let Some(root) = system.root(CATALOG_TREE)? {
            system.catalog = open(CATALOG_TREE, Some(root));
        }
        Ok(system)
    }

    /// The record of the table `name`.
    pub fn table(&self, name: &str) -> Result<Option<TableRecord>> {
        self.row(&self.catalog, &name_key(name), TableRecord::decode)
    }

    /// The name of the table that `tree` belongs to.
    pub fn table_of(&self, tree: TreeId) -> Result<Option<String>> {
        self.row(&self.catalog, &tree_key(tree), |bytes| {
            String::from_utf8(bytes.to_vec()).map_err(|_| "a table name is not UTF-8".to_string())
        })
    }

    /// The name of the table that has the link `name`.
    pub fn table_with_link(&self, name: &str) -> Result<Option<String>> {
        self.row(&self.catalog, &link_key(name), |bytes| {
            String::from_utf8(bytes.to_vec()).map_err(|_| "a table name is not UTF-8".to_string())
        })
    }

    /// Whether the snapshot with this timestamp, which is open, sees `tree` as one of a table.
    pub fn has_tree(&self, tree: TreeId, snapshot: Timestamp) -> Result<bool> {
        TreeCursor::new(self.catalog.clone()).get(&Reader::at(snapshot), &tree_key(tree))
    }

    /// Names of tables that begin with `prefix`, sorted.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let from = name_key(prefix);
        let mut cursor = TreeCursor::new(self.catalog.clone());
        let mut names = Vec::new();
        let mut found = cursor.seek(&latest(), Seek::AtOrAfter, &from)?;
        while found && cursor.key().starts_with(&from) {
            names.extend(name_of_key(cursor.key()).map(str::to_string));
            found = cursor.next(&latest())?;
        }
        Ok(names)
    }

    /// Names of the tables that have links to `target`, sorted.
    pub fn referrers(&self, target: &str) -> Result<Vec<String>> {
        let from = referrers_prefix(target);
        let mut cursor = TreeCursor::new(self.catalog.clone());
        let mut names = Vec::new();
        let mut found = cursor.seek(&latest(), Seek::AtOrAfter, &from)?;
        while found && cursor.key().starts_with(&from) {
            names.extend(referrer_of_key(cursor.key()).map(|(_, name)| name.to_string()));
            found = cursor.next(&latest())?;
        }
        Ok(names)
    }

    /// Names of all tables that have links, sorted. Reads a row for each table and target of its links.
    pub fn linked_tables(&self) -> Result<BTreeSet<String>> {
        let from = referrers_prefix("");
        let mut cursor = TreeCursor::new(self.catalog.clone());
        let mut names = BTreeSet::new();
        let mut found = cursor.seek(&latest(), Seek::AtOrAfter, &from[..1])?;
        while let Some((_, name)) = referrer_of_key(cursor.key()).filter(|_| found) {
            names.insert(name.to_string());
            found = cursor.next(&latest())?;
        }
        Ok(names)
    }

    /// Where the tree's root was at the last checkpoint.
    pub fn root(&self, tree: TreeId) -> Result<Option<TreeRoot>> {
        self.row(&self.directory, &directory::root_key(tree), directory::decode_root)
    }

    /// The tree's dictionary as of the last checkpoint.
    pub fn dictionary(&self, tree: TreeId) -> Result<Option<directory::StoredDictionary>> {
        self.row(&self.directory, &directory::dictionary_key(tree), directory::decode_dictionary)
    }

    /// Where the space's free map was at the last checkpoint.
    pub fn map(&self, space: u32) -> Result<Option<BlockAddress>> {
        self.row(&self.directory, &directory::map_key(space), directory::decode_map)
    }

    /// The persisted counter of the table whose first tree is `tree`.
    pub fn counter(&self, tree: TreeId) -> Result<Option<u64>> {
        self.row(&self.directory, &directory::counter_key(tree), directory::decode_number)
    }

    /// What the caller knows of the content of the table whose first tree is `tree`.
    pub fn digest(&self, tree: TreeId) -> Result<Option<Vec<u8>>> {
        self.row(&self.directory, &directory::digest_key(tree), directory::decode_digest)
    }

    /// The commits that are contained in the stored row counts.
    pub fn counted(&self) -> Result<Option<Counted>> {
        self.row(&self.directory, directory::COUNTED_KEY, directory::decode_counted)
    }

    /// The same of the spaces that differ from the others.
    pub fn counted_apart(&self) -> Result<BTreeMap<u32, Counted>> {
        let mut cursor = TreeCursor::new(self.directory.clone());
        let mut apart = BTreeMap::new();
        let mut found = cursor.seek(&latest(), Seek::After, directory::COUNTED_KEY)?;
        while let Some(space) = directory::space_of_counted_key(cursor.key()).filter(|_| found) {
            let counted = directory::decode_counted(cursor.value()?)
                .map_err(|detail| self.malformed(&self.directory, &detail))?;
            apart.insert(space, counted);
            found = cursor.next(&latest())?;
        }
        Ok(apart)
    }

    /// Spaces whose files were of no table at the last checkpoint, and could not be removed.
    pub fn orphans(&self) -> Result<HashSet<u32>> {
        let mut cursor = TreeCursor::new(self.directory.clone());
        let mut orphans = HashSet::new();
        let mut found = cursor.seek(&latest(), Seek::AtOrAfter, directory::ORPHANS)?;
        while let Some(space) = directory::space_of_orphan_key(cursor.key()).filter(|_| found) {
            directory::decode_orphan(cursor.value()?)
                .map_err(|detail| self.malformed(&self.directory, &detail))?;
            orphans.insert(space);
            found = cursor.next(&latest())?;
        }
        Ok(orphans)
    }

    fn row<T>(
        &self,
        tree: &Arc<Tree>,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>> {
        let mut cursor = TreeCursor::new(tree.clone());
        if !cursor.get(&latest(), key)? {
            return Ok(None);
        }
        decode(cursor.value()?).map(Some).map_err(|detail| self.malformed(tree, &detail))
    }

    /// The block's checksum was right: the row was written like this.
    fn malformed(&self, tree: &Tree, detail: &str) -> Error {
        Error::corrupt(self.space.path(), 0, format!("system tree {}: {detail}", tree.id()))
    }
}

fn latest() -> Reader<'static> {
    Reader::at(Timestamp::MAX)
}
