//! Writes recordings.

use super::{End, Recording, RecordingError, MAGIC, MOST_FRAME, MOST_SAMPLE, VERSION};
use crate::sample::Sample;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Statements are others' secrets.
const MODE: u32 = 0o600;
/// What JSON that repeats its names gains, at a cost that is not seen.
const LEVEL: i32 = 3;

/// A file that samples are added to.
pub struct Recorder {
    path: PathBuf,
    file: File,
    /// Where the last whole sample ends.
    length: u64,
    /// From this length on it is put aside.
    most_bytes: u64,
}

impl Recorder {
    /// A new file, or one that is a recording; and whether a torn sample was cut off its end. When it has
    /// `most_bytes` it is put aside as `FILE.1`, in place of the one before, so that both never have more than twice as
    /// much.
    pub fn open(path: &Path, most_bytes: u64) -> Result<(Recorder, bool), RecordingError> {
        let file = locked(path, OpenOptions::new().create(true).truncate(false))?;
        let mut recorder = Recorder { path: path.into(), file, length: 0, most_bytes };
        if recorder.file.metadata()?.len() == 0 {
            recorder.begin()?;
            return Ok((recorder, false));
        }
        let refused = |why| RecordingError::Refused(Box::new(why));
        let known = Recording::open(&recorder.file).map_err(refused)?;
        let (whole, end) = (known.whole_bytes(), known.end());
        match end {
            End::Whole | End::Torn { .. } => {}
            End::Damaged { at } => {
                let why = "what is behind it could not be read".into();
                return Err(refused(RecordingError::Damaged { at, why }));
            }
            End::TooMany => return Err(refused(RecordingError::TooMany)),
        }
        recorder.file.set_permissions(Permissions::from_mode(MODE))?;
        match whole {
            Some(length) => recorder.length = length,
            None => recorder.begin()?,
        }
        recorder.cut()?;
        Ok((recorder, end != End::Whole))
    }

    /// Adds one. After an error the file is as it was before, and it can be tried again.
    pub fn add(&mut self, sample: &Sample) -> Result<(), RecordingError> {
        let json = serde_json::to_vec(sample).map_err(std::io::Error::from)?;
        let mut encoder = zstd::Encoder::new(vec![0; 4], LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.write_all(&json)?;
        let mut bytes = encoder.finish()?;
        let size = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
        if json.len() > MOST_SAMPLE || size > MOST_FRAME {
            return Err(RecordingError::TooLarge(json.len()));
        }
        bytes[..4].copy_from_slice(&size.to_le_bytes());
        self.write(&bytes)?;
        if self.length >= self.most_bytes {
            self.put_aside()?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            // What was written of it goes, so that the next one is behind a whole one.
            self.cut()?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length)).map(drop)
    }

    fn begin(&mut self) -> std::io::Result<()> {
        self.length = 0;
        self.cut()?;
        self.write(format!("{MAGIC}{VERSION}\n").as_bytes())
    }

    fn put_aside(&mut self) -> Result<(), RecordingError> {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".1");
        std::fs::rename(&self.path, &aside)?;
        self.file = locked(&self.path, OpenOptions::new().create_new(true))?;
        Ok(self.begin()?)
    }
}

/// Opened for the owner alone, and for one program.
fn locked(path: &Path, how: &mut OpenOptions) -> Result<File, RecordingError> {
    let file = how.read(true).write(true).mode(MODE).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordingError::InUse),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
