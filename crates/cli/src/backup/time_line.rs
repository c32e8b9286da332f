//! The *time line* of an engine: which of the histories that begin with the same backup it is in.
//!
//! ```text
//! F ── I1 ── ...            time line given up
//! └── restore ── I2 ...     another: what I1 has of it was never there
//! ```
//! A restore leaves the engine's id as it was, so that incremental backups can go on; but not on top of what was made
//! of the time line that was given up. InnoDB's part of those goes by LSN alone, and pages that were written in both
//! histories would be taken from the wrong one, in silence. So each restore draws an id, which is in the file
//! [`FILE`] of the engine's directory with the backup that was restored, and each backup notes the id of its engine. An
//! engine without the file is in the first time line: that of who made it.
//!
//! ```text
//! teak timeline 1 SHA256-OF-THE-REST
//! id 32 HEX DIGITS
//! of 32 HEX DIGITS, the backup that was restored
//! ```

use super::layout::{self, Description};
use super::BackupError;
use std::path::Path;

/// In the engine's directory.
const FILE: &str = "teak.timeline";
const BEGINNING: &str = "teak timeline 1 ";

/// The time line of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeLine {
    /// `None`: the first.
    pub id: Option<String>,
    /// The backup that it began with.
    restored: Option<String>,
}

impl TimeLine {
    /// A new one, of what the backup with this id was restored to.
    pub fn draw(backup: &str) -> Result<TimeLine, BackupError> {
        Ok(TimeLine { id: Some(super::new_id()?), restored: Some(backup.into()) })
    }

    /// That of the engine in `dir`.
    pub fn read(dir: &Path) -> Result<TimeLine, BackupError> {
        let path = dir.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TimeLine::default()),
            Err(error) => return Err(BackupError::io("cannot read", &path)(error)),
        };
        TimeLine::decode(&text).ok_or_else(|| {
            let detail =
                "the time line cannot be read; without this file the engine counts as one that was never \
                          restored: make a full backup before any incremental one if you remove it";
            BackupError::damaged(&path, detail)
        })
    }

    /// Writes it into the engine's directory, durably. The engine is not in use.
    pub fn write(&self, dir: &Path) -> Result<(), BackupError> {
        layout::write_file(&dir.join(FILE), self.encode().as_bytes())?;
        layout::sync_dir(dir)
    }

    /// Whether an incremental backup of the engine can stand on this one.
    pub fn has(&self, base: &Description) -> bool {
        base.time_line == self.id || self.restored.as_ref() == Some(&base.id)
    }

    fn encode(&self) -> String {
        let line = |name: &str, id: &Option<String>| {
            id.iter().map(|id| format!("{name} {id}\n")).collect::<String>()
        };
        let rest = line("id", &self.id) + &line("of", &self.restored);
        format!("{BEGINNING}{}\n{rest}", layout::digest(rest.as_bytes()))
    }

    fn decode(text: &str) -> Option<TimeLine> {
        let (digest, rest) = text.strip_prefix(BEGINNING)?.split_once('\n')?;
        if digest != layout::digest(rest.as_bytes()) {
            return None;
        }
        let named = |name: &str| rest.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Some(TimeLine { id: Some(named("id")?.into()), restored: Some(named("of")?.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the first version has written.
    const WRITTEN: &str =
        "teak timeline 1 77f890f21a2716f4853b756383d314960d434ba2a7696d057669e4389c9bb90f\n\
                           id 00112233445566778899aabbccddeeff\nof ffeeddccbbaa99887766554433221100\n";

    fn time_line() -> TimeLine {
        let [id, restored] = ["00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"];
        TimeLine { id: Some(id.into()), restored: Some(restored.into()) }
    }

    #[test]
    fn a_time_line_is_read_as_it_was_written() {
        assert_eq!(time_line().encode(), WRITTEN);
        assert_eq!(TimeLine::decode(WRITTEN), Some(time_line()));
        let dir = std::env::temp_dir().join(format!("teak-time-line-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(TimeLine::read(&dir).unwrap(), TimeLine::default());
        time_line().write(&dir).unwrap();
        let read = TimeLine::read(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(read.unwrap(), time_line());
    }

    #[test]
    fn a_byte_that_has_changed_is_found_out() {
        for at in 0..WRITTEN.len() {
            let mut changed = WRITTEN.as_bytes().to_vec();
            changed[at] ^= 1;
            let read = std::str::from_utf8(&changed).ok().and_then(TimeLine::decode);
            assert_eq!(read, None, "{at}");
            assert_eq!(TimeLine::decode(&WRITTEN[..at]), None, "{at}");
        }
    }
}
