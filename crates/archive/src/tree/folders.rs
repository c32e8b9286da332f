//! Rows of directories.
//!
//! ```text
//! key    'f', path                     of the tree of system.path
//!        'v', name of the view, 0, path
//! value  since when, count, of each property: its text
//! ```

use super::{below, Folder, Root};
use crate::archive::Archive;
use crate::bytes::{put_bytes, put_number, put_signed, Rest};
use crate::query::after;
use crate::{Error, Result};
use teak_core::{Snapshot, Transaction};

/// What the keys of all directories of a tree begin with.
fn of_root(root: Root<'_>) -> Vec<u8> {
    match root {
        Root::Files => b"f".to_vec(),
        Root::View(name) => [b"v", name.as_bytes(), &[0]].concat(),
    }
}

pub(super) fn key(root: Root<'_>, path: &str) -> Vec<u8> {
    [&of_root(root)[..], path.as_bytes()].concat()
}

/// What the keys of all directories below one begin with.
pub(super) fn key_below(root: Root<'_>, path: &str) -> Vec<u8> {
    key(root, &below(path))
}

impl Folder {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_signed(&mut out, self.created.unwrap_or_default());
        put_number(&mut out, self.properties.len() as u64);
        self.properties.iter().for_each(|property| put_bytes(&mut out, property.as_bytes()));
        out
    }

    pub(super) fn read(key: &[u8], bytes: &[u8]) -> Result<Folder> {
        let mut rest = Rest(bytes);
        let mut read = || {
            let created = Some(rest.signed()?);
            let count = rest.number()?;
            let properties = (0..count).map(|_| rest.text()).collect::<Option<_>>()?;
            rest.is_empty().then_some(Folder { created, properties })
        };
        read().ok_or_else(|| Error::row("directories", key))
    }
}

impl Archive {
    pub(super) fn write_folder(
        &self,
        txn: &mut Transaction,
        root: Root<'_>,
        path: &str,
        folder: &Folder,
    ) -> Result<()> {
        let created = folder.created.or_else(|| Some(self.now()));
        let folder = Folder { created, properties: folder.properties.clone() };
        txn.put(&self.trees().directories, key(root, path), folder.bytes())?;
        Ok(())
    }

    /// Those of a view that goes.
    pub(crate) fn forget_folders(&self, txn: &mut Transaction, view: &str) -> Result<()> {
        let (tree, prefix) = (&self.trees().directories, of_root(Root::View(view)));
        let rows = txn.range(tree, prefix.clone()..after(prefix))?;
        let keys = rows.map(|row| row.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
        keys.iter().try_for_each(|key| Ok(txn.delete(tree, key).map(|_| ())?))
    }

    /// Rows of directories that cannot be read.
    pub(crate) fn check_folders(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        let (mut wrong, mut rows) = (Vec::new(), snapshot.rows(&self.trees().directories));
        while rows.advance()? {
            if let Err(error) = Folder::read(rows.key(), rows.value()?) {
                wrong.push(error.to_string());
            }
        }
        Ok(wrong)
    }

    pub(super) fn remove_folder(&self, txn: &mut Transaction, root: Root<'_>, path: &str) -> Result<()> {
        txn.delete(&self.trees().directories, key(root, path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_cut_or_changed_ones_never_panic() {
        let folder = Folder { created: Some(-7), properties: vec!["<a/>".into(), "é".into()] };
        let bytes = folder.bytes();
        assert_eq!(Folder::read(b"f", &bytes).unwrap(), folder);
        for at in 0..bytes.len() {
            assert!(Folder::read(b"f", &bytes[..at]).is_err());
            for byte in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let _ = Folder::read(b"f", &changed);
            }
        }
    }
}
