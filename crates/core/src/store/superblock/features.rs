//! What files have that not every build knows, as bits among a superblock's flags, so that a build which lacks a
//! bit is told whether it may read or write them all the same, and which Teak may.
//!
//! A structure that older builds would take for damage, or overlook, gets a bit, which goes into the superblock of the
//! first checkpoint that has it, and stays. The bits, their names and their owners are listed in `docs/format.md`.

use super::Superblock;
use crate::{Error, Result};
use std::fmt;
use std::path::Path;

/// Who does not know one of these must not read the files.
const FORBID_READING: u32 = 0x0000_ff00;
/// Who does not know one of these must not write them.
const FORBID_WRITING: u32 = 0x00ff_0000;
/// Those that this build knows.
const KNOWN: u32 = Features::OURS.0;

/// The features that files of an engine have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl Features {
    /// Leaves in frames: blocks whose addresses say that they are in parts, and of a version that has frames. Needed
    /// for reading.
    pub const FRAMES: Features = Features(1 << 8);
    /// Patches of leaves: inner pages that name what has changed in a leaf beside its block. Needed for reading.
    pub const PATCHES: Features = Features(1 << 9);
    /// Tight extents, and areas of a file that have nothing but these. Needed for reading.
    pub const TIGHT: Features = Features(1 << 10);
    /// All that this build writes.
    pub const OURS: Features = Features(Features::FRAMES.0 | Features::PATCHES.0 | Features::TIGHT.0);

    /// These and `others`.
    pub fn with(self, others: Features) -> Features {
        Features(self.0 | others.0)
    }

    /// Whether all `others` are among these.
    pub fn has(self, others: Features) -> bool {
        self.0 & others.0 == others.0
    }

    pub(super) fn among(flags: u32) -> Features {
        Features(flags & (FORBID_READING | FORBID_WRITING))
    }

    pub(super) fn flags(self) -> u32 {
        self.0
    }

    fn unknown(self, among: u32) -> Option<u32> {
        let unknown = self.0 & among & !KNOWN;
        (unknown != 0).then(|| unknown.trailing_zeros())
    }
}

impl Superblock {
    /// [`Error::TooNew`] if the files have what this build must know to read them, and does not.
    pub(super) fn check_reading(&self, path: &Path) -> Result<()> {
        let unknown = self.features.unknown(FORBID_READING);
        unknown.map_or(Ok(()), |bit| Err(too_new(path, format!("feature {bit}"), self.read_from)))
    }

    /// [`Error::TooNew`] if they have what it must know to write them.
    pub fn check_writing(&self, path: &Path) -> Result<()> {
        let Some(bit) = self.features.unknown(FORBID_WRITING) else { return Ok(()) };
        let remedy = format!("{}; teak_force_recovery=2 reads them", self.read_from.remedy());
        Err(Error::TooNew { path: path.into(), what: format!("feature {bit}"), remedy })
    }
}

/// The error for what only another Teak knows.
pub(super) fn too_new(path: &Path, what: String, read_from: Release) -> Error {
    Error::TooNew { path: path.into(), what, remedy: read_from.remedy() }
}

/// A version of Teak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Release([u16; 3]);

impl Release {
    /// Of this build.
    pub const OWN: Release = Release([
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
    ]);
    /// The oldest that knows all that this build writes.
    pub const READS_OURS: Release = Release([0, 1, 0]);
    pub(super) const ENCODED_BYTES: usize = 6;

    pub(super) fn encode(self) -> [u8; Release::ENCODED_BYTES] {
        let [major, minor, patch] = self.0.map(u16::to_le_bytes);
        [major[0], major[1], minor[0], minor[1], patch[0], patch[1]]
    }

    /// `None` if there are fewer bytes than it needs.
    pub(super) fn decode(bytes: &[u8]) -> Option<Release> {
        let part = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        Some(Release([part(0)?, part(2)?, part(4)?]))
    }

    fn remedy(self) -> String {
        match self.0 {
            [0, 0, 0] => "a newer Teak is needed".to_string(),
            _ => format!("Teak {self} or newer is needed"),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A decimal number; stops the compiler if it is none.
const fn number(digits: &str) -> u16 {
    match u16::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is three numbers"),
    }
}
