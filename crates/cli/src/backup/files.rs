//! The files of the rest of the server, as they come from `mariadb-backup`'s stream: compressed if that is wanted, with
//! a digest of each as it is stored.

use super::mbstream::{Chunk, Reader};
use super::pace::Pace;
use super::target::Place;
use super::BackupError;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use teak_sql::quoting::hex;
use zstd::stream::write::Encoder;

/// What compressed files have behind their names, and how hard zstd tries.
const COMPRESSED: &str = ".zst";
const LEVEL: i32 = 1;
/// In which mariadb-backup says how far it came, by its versions.
const CHECKPOINTS: &[&str] = &["xtrabackup_checkpoints", "mariadb_backup_checkpoints"];
/// InnoDB's log, which comes as long as the server writes.
const REDO_LOG: &str = "ib_logfile0";
const LONGEST_TEXT: usize = 4096;
/// Zeros of a hole, for its digest.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A file that has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digested {
    pub bytes: u64,
    /// SHA-256, in hex.
    pub digest: String,
}

/// Files that arrive in pieces, and go to a place.
pub struct Files<'a> {
    place: Box<dyn Place>,
    /// They are compressed on the way.
    compress: bool,
    pace: &'a Pace,
    open: BTreeMap<String, Open>,
    received: Received,
}

/// What has arrived.
#[derive(Debug, Default)]
pub struct Received {
    /// By their paths, as they are stored.
    pub files: BTreeMap<String, Digested>,
    /// Where InnoDB's changes end that are in the backup: an incremental one begins there.
    pub innodb_lsn: Option<String>,
}

impl Received {
    /// Whether there is a table, of any engine.
    pub fn has_table(&self) -> bool {
        self.files.keys().any(|path| original_name(path).0.ends_with(".frm"))
    }
}

struct Open {
    /// Of what is stored.
    digest: Context,
    /// Bytes that have arrived, and bytes that were stored.
    at: u64,
    stored: u64,
    encoder: Option<Encoder<'static, Vec<u8>>>,
    /// Whose content is of interest.
    text: Option<Vec<u8>>,
}

impl<'a> Files<'a> {
    pub fn new(place: Box<dyn Place>, compress: bool, pace: &'a Pace) -> Files<'a> {
        Files { place, compress, pace, open: BTreeMap::new(), received: Received::default() }
    }

    /// Takes a whole stream.
    pub fn receive(&mut self, input: impl Read) -> Result<(), BackupError> {
        let mut reader = Reader::new(input);
        loop {
            let next = reader.next().map_err(|error| BackupError::Io {
                what: "cannot read what mariadb-backup sends".into(),
                error,
            })?;
            match next {
                None => break,
                Some(Chunk::Piece { path, offset, anew }) => {
                    self.piece(&path, offset, anew, reader.piece())?
                }
                Some(Chunk::Seek { path, offset }) => self.seek(&path, offset)?,
                Some(Chunk::End { path }) => self.end(&path)?,
                Some(Chunk::Rename { path, to }) => self.rename(&path, &to)?,
                Some(Chunk::Remove { path }) => self.remove(&path)?,
            }
        }
        match self.open.keys().next() {
            None => Ok(()),
            Some(path) => Err(BackupError::damaged(Path::new(path), "the stream ends within this file")),
        }
    }

    /// What has arrived, which is durable now.
    pub fn received(mut self) -> Result<Received, BackupError> {
        self.place.sync()?;
        Ok(self.received)
    }

    /// Forgets and removes what has arrived: another stream is going to come.
    pub fn begin_anew(&mut self) -> Result<(), BackupError> {
        let complete = std::mem::take(&mut self.received).files.into_keys();
        // One that nothing was stored of yet is not there.
        let begun = std::mem::take(&mut self.open).into_iter().filter(|(_, open)| open.stored > 0);
        let begun = begun.map(|(path, _)| self.stored_name(&path)).collect::<Vec<_>>();
        complete.chain(begun).try_for_each(|name| self.place.remove(&name))
    }

    fn stored_name(&self, path: &str) -> String {
        if self.compress {
            format!("{path}{COMPRESSED}")
        } else {
            path.to_string()
        }
    }

    fn opened(&mut self, path: &str) -> Result<&mut Open, BackupError> {
        if !self.open.contains_key(path) {
            if self.received.files.contains_key(&self.stored_name(path)) {
                return Err(BackupError::damaged(Path::new(path), "the stream has this file twice"));
            }
            let encoder = self.compress.then(|| Encoder::new(Vec::new(), LEVEL)).transpose();
            let open = Open {
                digest: Context::new(&SHA256),
                at: 0,
                stored: 0,
                encoder: encoder.map_err(compressing(path))?,
                text: CHECKPOINTS.contains(&path).then(Vec::new),
            };
            self.open.insert(path.to_string(), open);
        }
        self.open.get_mut(path).ok_or(BackupError::Stopped)
    }

    fn piece(&mut self, path: &str, offset: u64, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        let stored = self.stored_name(path);
        let anew = anew && self.received.files.remove(&stored).is_some();
        let open = self.opened(path)?;
        if open.at != offset {
            let detail = format!("a piece at {offset} where {} is due", open.at);
            return Err(BackupError::damaged(Path::new(path), detail));
        }
        open.at += bytes.len() as u64;
        if let Some(text) = open.text.as_mut().filter(|text| text.len() < LONGEST_TEXT) {
            text.extend_from_slice(bytes);
        }
        match &mut open.encoder {
            None => self.store(path, anew, bytes)?,
            Some(encoder) => {
                encoder.write_all(bytes).map_err(compressing(path))?;
                let packed = std::mem::take(encoder.get_mut());
                self.store(path, anew, &packed)?;
            }
        }
        let length = bytes.len() as u64;
        match path == REDO_LOG {
            true => self.pace.wrote_in_haste(length)?,
            false => self.pace.wrote(length)?,
        }
        Ok(())
    }

    /// Bytes as they are to be read again.
    fn store(&mut self, path: &str, anew: bool, bytes: &[u8]) -> Result<(), BackupError> {
        if bytes.is_empty() && !anew {
            return Ok(());
        }
        let name = self.stored_name(path);
        let Some(open) = self.open.get_mut(path) else { return Err(BackupError::Stopped) };
        open.digest.update(bytes);
        let offset = open.stored;
        open.stored += bytes.len() as u64;
        self.place.write(&name, offset, anew, bytes)
    }

    /// What lies between is a hole.
    fn seek(&mut self, path: &str, offset: u64) -> Result<(), BackupError> {
        let stored = self.stored_name(path);
        let open = self.opened(path)?;
        let Some(mut hole) = offset.checked_sub(open.at) else {
            let detail = format!("back from {} to {offset}", open.at);
            return Err(BackupError::damaged(Path::new(path), detail));
        };
        open.at = offset;
        while hole > 0 {
            let zeros = &ZEROS[..hole.min(ZEROS.len() as u64) as usize];
            match &mut open.encoder {
                None => open.digest.update(zeros),
                Some(encoder) => encoder.write_all(zeros).map_err(compressing(path))?,
            }
            hole -= zeros.len() as u64;
        }
        match open.encoder {
            None => {
                open.stored = offset;
                self.place.hole(&stored, offset)
            }
            Some(_) => Ok(()),
        }
    }

    fn end(&mut self, path: &str) -> Result<(), BackupError> {
        // A file without bytes has no piece.
        if let Some(encoder) = self.opened(path)?.encoder.take() {
            let packed = encoder.finish().map_err(compressing(path))?;
            self.store(path, false, &packed)?;
        }
        let name = self.stored_name(path);
        self.place.end(&name)?;
        let Some(open) = self.open.remove(path) else { return Ok(()) };
        if let Some(text) = open.text {
            let text = String::from_utf8_lossy(&text);
            let lsn = text.lines().find_map(|line| line.strip_prefix("to_lsn = "));
            self.received.innodb_lsn = lsn.map(|lsn| lsn.trim().to_string());
        }
        let digested = Digested { bytes: open.stored, digest: hex(open.digest.finish().as_ref()) };
        self.received.files.insert(name, digested);
        Ok(())
    }

    fn rename(&mut self, path: &str, to: &str) -> Result<(), BackupError> {
        let (stored, stored_to) = (self.stored_name(path), self.stored_name(to));
        self.place.rename(&stored, &stored_to)?;
        if let Some(file) = self.received.files.remove(&stored) {
            self.received.files.insert(stored_to, file);
        }
        if let Some(open) = self.open.remove(path) {
            self.open.insert(to.to_string(), open);
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), BackupError> {
        let stored = self.stored_name(path);
        self.open.remove(path);
        self.received.files.remove(&stored);
        self.place.remove(&stored)
    }
}

fn compressing(path: &str) -> impl FnOnce(std::io::Error) -> BackupError {
    BackupError::io("cannot compress", Path::new(path))
}

/// Runs `work` on so many threads, for what each takes next of `items`: it ends when there is nothing left, or after an
/// error, which is that of any of them.
pub fn share_out<T: Sync>(
    items: &[T],
    threads: usize,
    work: impl Fn(&mut dyn Iterator<Item = &T>) -> Result<(), BackupError> + Sync,
) -> Result<(), BackupError> {
    let next = AtomicUsize::new(0);
    let run = || {
        // Relaxed: each number goes to one thread, and the items were there before.
        let worked = work(&mut std::iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed))));
        if worked.is_err() {
            // Relaxed: as above; the others end a little later.
            next.store(items.len(), Ordering::Relaxed);
        }
        worked
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(run)).collect();
        let first = run();
        others
            .into_iter()
            .fold(first, |result, other| result.and(other.join().unwrap_or(Err(BackupError::Stopped))))
    })
}

/// The text of `sha256sum` for files below `dir`.
pub fn checksums(dir: &str, files: &BTreeMap<String, Digested>) -> String {
    files.iter().map(|(path, file)| format!("{}  {dir}/{path}\n", file.digest)).collect()
}

/// Reads the text back: digests and paths. A line that is none is an error, which is its number.
pub fn parse_checksums(text: &str) -> Result<Vec<(String, PathBuf)>, usize> {
    let parse = |(i, line): (usize, &str)| match line.split_once("  ") {
        Some((digest, path)) if digest.len() == 64 && !path.is_empty() => {
            Ok((digest.to_string(), path.into()))
        }
        _ => Err(i + 1),
    };
    text.lines().enumerate().map(parse).collect()
}

/// The name of a file that is stored as `stored`, and whether it is compressed.
pub fn original_name(stored: &str) -> (&str, bool) {
    stored.strip_suffix(COMPRESSED).map_or((stored, false), |name| (name, true))
}

/// Reads a file as it is stored and returns its digest; its bytes go to `to`, without compression.
pub fn digest(from: &Path, to: Option<&mut File>, pace: &Pace) -> Result<String, BackupError> {
    let mut file = File::open(from).map_err(BackupError::io("cannot open", from))?;
    let compressed = original_name(&from.to_string_lossy()).1;
    let decoder =
        |to| zstd::stream::write::Decoder::new(to).map(|decoder| Box::new(decoder) as Box<dyn Write>);
    let mut to: Option<Box<dyn Write>> = match to {
        Some(to) if compressed => Some(decoder(to).map_err(BackupError::io("cannot read", from))?),
        Some(to) => Some(Box::new(to)),
        None => None,
    };
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer).map_err(BackupError::io("cannot read", from))?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        if let Some(to) = &mut to {
            to.write_all(&buffer[..read]).map_err(BackupError::io("cannot write a copy of", from))?;
        }
        pace.wrote(read as u64)?;
    }
    to.map_or(Ok(()), |mut to| to.flush()).map_err(BackupError::io("cannot write a copy of", from))?;
    Ok(hex(digest.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::super::mbstream;
    use super::super::target::FilesBelow;
    use super::*;

    fn received(name: &str, chunks: &[(Chunk, &[u8])]) -> Result<(Received, String), BackupError> {
        let dir = std::env::temp_dir().join(format!("teak-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut stream = Vec::new();
        chunks.iter().for_each(|(chunk, bytes)| mbstream::write(&mut stream, chunk, bytes).unwrap());
        let pace = Pace::new(0, true);
        let mut files = Files::new(Box::new(FilesBelow::new(dir.clone())), false, &pace);
        let received = files.receive(&stream[..]);
        let content = std::fs::read_to_string(dir.join("a"));
        std::fs::remove_dir_all(&dir).unwrap();
        received.and_then(|()| Ok((files.received()?, content.unwrap())))
    }

    fn piece(offset: u64, anew: bool) -> Chunk {
        Chunk::Piece { path: "a".into(), offset, anew }
    }

    fn end() -> (Chunk, &'static [u8]) {
        (Chunk::End { path: "a".into() }, b"")
    }

    #[test]
    fn each_item_is_taken_once_and_an_error_ends_all() {
        let items: Vec<usize> = (0..1000).collect();
        let sum = AtomicUsize::new(0);
        let add = |items: &mut dyn Iterator<Item = &usize>| {
            for item in items {
                sum.fetch_add(*item, Ordering::Relaxed);
            }
            Ok(())
        };
        for threads in [1, 3, 2000] {
            sum.store(0, Ordering::Relaxed);
            share_out(&items, threads, add).unwrap();
            assert_eq!(sum.load(Ordering::Relaxed), 499_500, "{threads}");
            let failed = share_out(&items, threads, |items| {
                for item in items {
                    if *item == 500 {
                        return Err(BackupError::Usage("500".into()));
                    }
                }
                Ok(())
            });
            assert_eq!(failed.unwrap_err().to_string(), "500");
        }
        share_out(&[], 4, add).unwrap();
    }

    #[test]
    fn a_file_that_has_ended_comes_again_only_if_it_begins_anew() {
        let first = [(piece(0, false), &b"first "[..]), (piece(6, false), b"time"), end()];
        let (files, content) = received("once", &first).unwrap();
        assert_eq!((files.files["a"].bytes, &*content), (10, "first time"));
        let again = [first.to_vec(), vec![(piece(0, false), b"again"), end()]].concat();
        assert!(received("twice", &again).unwrap_err().to_string().contains("twice"));
        let anew = [first.to_vec(), vec![(piece(0, true), b"anew"), end()]].concat();
        let (files, content) = received("anew", &anew).unwrap();
        assert_eq!((files.files["a"].bytes, &*content), (4, "anew"));
        assert_eq!(files.files["a"].digest, super::super::layout::digest(b"anew"));
    }
}
