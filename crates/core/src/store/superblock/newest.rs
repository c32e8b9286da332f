//! Which of a file's superblocks a start begins from, and what is to be said of the others.
//!
//! Nothing here changes a file. Invariant: where a newer superblock than the one found may have been, it is told as a
//! doubt, never as a remark.

use super::features::too_new;
use super::{
    offset_of, Release, Superblock, BLOCK_BYTES, CHECKSUM_AT, FIRST_WITH_COPIES, MAGIC, READ_FROM_AT,
};
use crate::file::File;
use crate::options::LogLevel;
use crate::store::{checksum, u32_at, u64_at};
use crate::{Error, Result};
use std::path::Path;

/// The newest superblock of a file, and what is wrong with the file.
#[derive(Debug)]
pub struct Newest {
    /// The newest that is intact.
    pub superblock: Superblock,
    /// What the operator should know.
    pub remarks: Vec<(LogLevel, String)>,
    /// There may have been a newer one: why. Who starts from an older image than the newest finds parts of it
    /// overwritten, and trees empty that were built since.
    pub doubt: Option<Error>,
}

impl Newest {
    pub(super) fn read(file: &dyn File) -> Result<Newest> {
        let mut slots = Vec::with_capacity(2);
        for slot in 0..2 {
            slots.push([read_copy(file, slot, 0)?, read_copy(file, slot, 1)?]);
        }
        Newest::among(&slots, file.path())
    }

    fn among(slots: &[[Found; 2]], path: &Path) -> Result<Newest> {
        let intact = || slots.iter().flatten().filter_map(Found::intact);
        let Some(newest) = intact().max_by_key(|found| found.checkpoint) else {
            return Err(Error::corrupt(path, 0, "no superblock is intact"));
        };
        if intact().any(|found| found.engine_id != newest.engine_id) {
            return Err(Error::corrupt(path, 16, "the superblocks belong to different engines"));
        }
        // The first copy is written first: if they differ, it is the later one.
        let own = &slots[(newest.checkpoint % 2) as usize];
        let superblock =
            *own[0].intact().filter(|first| first.checkpoint == newest.checkpoint).unwrap_or(newest);
        let mut found = Newest { superblock, remarks: Vec::new(), doubt: None };
        found.judge_own(own, path);
        found.judge_other(&slots[1 - (newest.checkpoint % 2) as usize], path);
        Ok(found)
    }

    /// A copy of the newest may be damaged, or missing in a file that has second copies.
    fn judge_own(&mut self, own: &[Found; 2], path: &Path) {
        let Superblock { checkpoint, version, .. } = self.superblock;
        for (number, copy) in ["first", "second"].into_iter().zip(own) {
            let detail = match copy {
                Found::Damaged(detail) => detail,
                Found::Nothing if version >= FIRST_WITH_COPIES => "it is not there",
                _ => continue,
            };
            let path = path.display();
            let text = format!("{path}: the {number} copy of superblock {checkpoint} is damaged, the other is used: {detail}");
            self.remarks.push((LogLevel::Warning, text));
        }
    }

    /// In the other slot was the superblock before, and perhaps a newer one.
    fn judge_other(&mut self, other: &[Found; 2], path: &Path) {
        let Superblock { checkpoint, .. } = self.superblock;
        let slot = (checkpoint + 1) % 2;
        let detail = match other {
            [Found::Intact(_), Found::Intact(_) | Found::Nothing] | [Found::Nothing, Found::Intact(_)] => {
                return
            }
            [Found::Nothing, Found::Nothing] if checkpoint == 1 => return,
            [Found::Damaged(detail), Found::Intact(_) | Found::Nothing] => {
                let text = format!(
                    "{}: the first copy of superblock {} in slot {slot} is damaged, or a crash interrupted its writing ({detail}); \
                     superblock {checkpoint} is used",
                    path.display(),
                    checkpoint + 1
                );
                return self.remarks.push((LogLevel::Warning, text));
            }
            [Found::Intact(_), Found::Damaged(detail)] => {
                let text = format!("{}: the second copy of slot {slot} is damaged: {detail}", path.display());
                return self.remarks.push((LogLevel::Warning, text));
            }
            [Found::Nothing, Found::Damaged(detail)] | [Found::Damaged(detail), Found::Damaged(_)] => {
                &**detail
            }
            [Found::Nothing, Found::Nothing] => "both copies are gone",
        };
        let detail = format!(
            "slot {slot} is damaged in both copies ({detail}): checkpoint {} may have been there, and what it replaced of \
             checkpoint {checkpoint} may be overwritten",
            checkpoint + 1
        );
        self.doubt = Some(Error::corrupt(path, offset_of(slot, 0), detail));
    }
}

/// What is in the place of one copy of a slot.
#[derive(Debug)]
pub(super) enum Found {
    Intact(Superblock),
    /// Nothing was ever written there.
    Nothing,
    /// Something else than a superblock, or nothing can be read: why.
    Damaged(String),
}

impl Found {
    fn intact(&self) -> Option<&Superblock> {
        match self {
            Found::Intact(superblock) => Some(superblock),
            _ => None,
        }
    }
}

/// The first copy of a slot, if it is intact.
pub(super) fn read_intact(file: &dyn File, slot: u64) -> Option<Superblock> {
    read_copy(file, slot, 0).ok()?.intact().copied()
}

fn read_copy(file: &dyn File, slot: u64, copy: u64) -> Result<Found> {
    let mut bytes = [0; BLOCK_BYTES];
    match file.read_at(offset_of(slot, copy), &mut bytes) {
        Ok(0) => Ok(Found::Nothing),
        Ok(_) => decode_copy(&bytes, slot, file.path()),
        // A sector that cannot be read is one copy that cannot.
        Err(error @ Error::Io { .. }) => Ok(Found::Damaged(error.to_string())),
        Err(error) => Err(error),
    }
}

/// An error only if another build wrote it.
pub(super) fn decode_copy(bytes: &[u8; BLOCK_BYTES], slot: u64, path: &Path) -> Result<Found> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(Found::Nothing);
    }
    let intact = u64_at(bytes, CHECKSUM_AT) == Some(checksum(&bytes[..CHECKSUM_AT]));
    if bytes[..8] != MAGIC[..] || !intact {
        return Ok(Found::Damaged("its checksum does not match".to_string()));
    }
    match u32_at(bytes, 8).unwrap_or(0) {
        Superblock::OLDEST_VERSION..=Superblock::VERSION => {
            match Superblock::decode(bytes).filter(|found| found.checkpoint % 2 == slot) {
                Some(found) => found.check_reading(path).map(|()| Found::Intact(found)),
                None => Ok(Found::Damaged("it is malformed, or in the wrong place".to_string())),
            }
        }
        found if found > Superblock::VERSION => {
            let read_from = Release::decode(&bytes[READ_FROM_AT..]).unwrap_or_default();
            Err(too_new(path, format!("format version {found}"), read_from))
        }
        found => Err(Error::UnknownVersion { path: path.into(), found, supported: Superblock::VERSION }),
    }
}
