//! What the checkers of structures report: `tree/check.rs`, `tree/check_image.rs`, `store/check.rs` and
//! `engine/check.rs`.
//!
//! A checker goes on after what it has found, so it collects findings and returns an error only if it cannot go on at
//! all (it was interrupted, memory is out). It remembers the first of them and counts the others: a damaged file may
//! have millions.

use crate::types::TreeId;
use crate::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// So many findings are kept with their texts.
const KEPT: usize = 100;
/// So many bytes of a key are shown.
const SHOWN_KEY_BYTES: usize = 40;

/// Something that should not be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file that it concerns.
    pub path: PathBuf,
    /// Where in the file, in bytes; `None`: it is about memory, or about the whole.
    pub offset: Option<u64>,
    /// The tree that it concerns.
    pub tree: Option<TreeId>,
    /// A key at or near the place.
    pub key: Option<Vec<u8>>,
    /// What is wrong.
    pub detail: String,
}

impl Finding {
    /// About a file as a whole.
    pub fn new(path: &Path, detail: impl Into<String>) -> Finding {
        Finding { path: path.to_path_buf(), offset: None, tree: None, key: None, detail: detail.into() }
    }

    /// At `offset` of the file.
    pub fn at(self, offset: u64) -> Finding {
        Finding { offset: Some(offset), ..self }
    }

    /// In `tree`.
    pub fn of_tree(self, tree: TreeId) -> Finding {
        Finding { tree: Some(tree), ..self }
    }

    /// At `key`.
    pub fn of_key(self, key: &[u8]) -> Finding {
        Finding { key: Some(key.to_vec()), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        if let Some(tree) = self.tree {
            write!(f, ", tree {tree}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key ")?;
            key.iter().take(SHOWN_KEY_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))?;
            if key.len() > SHOWN_KEY_BYTES {
                write!(f, "...")?;
            }
        }
        write!(f, ": {}", self.detail)
    }
}

/// What a check has found, in the order in which it was found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    count: u64,
}

impl Findings {
    /// One more.
    pub fn add(&mut self, finding: Finding) {
        self.count += 1;
        if self.kept.len() < KEPT {
            self.kept.push(finding);
        }
    }

    /// All that another check has found, behind what this one has.
    pub fn append(&mut self, others: Findings) {
        self.count += others.count;
        self.kept.extend(others.kept);
        self.kept.truncate(KEPT);
    }

    /// One more, unless `holds`.
    pub fn expect(&mut self, holds: bool, finding: impl FnOnce() -> Finding) {
        if !holds {
            self.add(finding());
        }
    }

    /// Makes damage in `tree` a finding (`None`); other errors are the caller's.
    pub fn absorb<T>(&mut self, tree: Option<TreeId>, result: Result<T>) -> Result<Option<T>> {
        let finding = match result {
            Ok(value) => return Ok(Some(value)),
            Err(Error::Corrupt { path, offset, detail }) => Finding::new(&path, detail).at(offset),
            Err(Error::UnknownVersion { path, found, supported }) => {
                Finding::new(&path, format!("format version {found}, this build reads {supported}"))
            }
            Err(error) => return Err(error),
        };
        self.add(Finding { tree, ..finding });
        Ok(None)
    }

    /// How many there are, also those that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first of them.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.kept.iter()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, finding) in self.kept.iter().enumerate() {
            write!(f, "{}{finding}", if i == 0 { "" } else { "\n" })?;
        }
        match self.count - self.kept.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
