//! Where dumps come from: files and pipes, compressed or not, and directories of mydumper.

use super::error::LoadError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use teak_console::signals::Input;

/// Bytes that a decompressing thread hands over at once, and how many such pieces it may be ahead.
const PIECE: usize = 512 << 10;
const PIECES_AHEAD: usize = 8;
/// Of files that are not known, so many are named.
const SHOWN: usize = 10;

/// One stream of SQL, with a session of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// As messages name it.
    pub name: String,
    /// `None` is standard input.
    pub path: Option<PathBuf>,
    /// Bytes of the file, compressed as it may be; `None` for a pipe.
    pub size: Option<u64>,
    /// The database that the statements are for, if they do not say.
    pub database: Option<String>,
    /// The database whose dump this is a file of, in a directory of mydumper.
    pub of_mydumper: Option<String>,
    pub delimiter: &'static [u8],
}

impl Source {
    /// Whether it is the file of mydumper that makes the database.
    pub fn makes_database(&self) -> bool {
        self.of_mydumper.is_some() && self.database.is_none()
    }
}

/// The sources that the arguments name, in the order in which they are to be read.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Source>, LoadError> {
    let mut sources = Vec::new();
    for path in paths {
        let unreadable = |error| LoadError::Read { name: path.display().to_string(), error };
        if path.as_os_str() == "-" {
            let name = "standard input".to_string();
            let (path, size, database, of_mydumper) = (None, None, None, None);
            sources.push(Source { name, path, size, database, of_mydumper, delimiter: b";" });
            continue;
        }
        let data = std::fs::metadata(path).map_err(unreadable)?;
        if data.is_dir() {
            sources.extend(of_directory(path)?);
        } else {
            sources.push(of_file(path, None, b";")?);
        }
    }
    Ok(sources)
}

fn of_file(path: &Path, database: Option<String>, delimiter: &'static [u8]) -> Result<Source, LoadError> {
    let name = path.display().to_string();
    let data = std::fs::metadata(path).map_err(|error| LoadError::Read { name: name.clone(), error })?;
    let size = data.is_file().then_some(data.len());
    Ok(Source { name, path: Some(path.to_path_buf()), size, database, of_mydumper: None, delimiter })
}

/// What a file of a mydumper directory holds, in the order in which it is to be loaded.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Part {
    Database,
    Table,
    Data,
    View,
    Triggers,
    Routines,
}

/// By the name: `db-schema-create.sql`, `db.t-schema.sql`, `db.t.sql`, `db.t.00001.sql`, `db.v-schema-view.sql`,
/// `db.t-schema-triggers.sql`, `db-schema-post.sql`; compressed with one more ending.
fn part_of(name: &str) -> Option<(Part, String)> {
    let ends = [".gz", ".zst", ".bz2", ".xz"];
    let name = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).strip_suffix(".sql")?;
    let database = |name: &str| name.split('.').next().unwrap_or(name).to_string();
    const PARTS: &[(&str, Part)] = &[
        ("-schema-create", Part::Database),
        ("-schema-view", Part::View),
        ("-schema-triggers", Part::Triggers),
        ("-schema-post", Part::Routines),
        ("-schema", Part::Table),
    ];
    let found = PARTS.iter().find_map(|(end, part)| Some((*part, database(name.strip_suffix(end)?))));
    Some(found.unwrap_or_else(|| (Part::Data, database(name))))
}

/// Files that mydumper writes beside the dump.
fn is_about_the_dump(name: &str) -> bool {
    name == "metadata"
        || name.starts_with("metadata.")
        || name.ends_with("-metadata")
        || name.ends_with("checksum")
}

/// Whose directory it may be that is not mydumper's, and what to do with it.
fn other_maker(dir: &Path, unknown: &[String]) -> &'static str {
    if dir.join("metadata.partial").exists() {
        "its dump did not end"
    } else if dir.join("@.json").exists() {
        "it is a dump of MySQL Shell, which util.loadDump() of MySQL Shell loads; teak load reads directories of mydumper, \
         and files of SQL"
    } else if unknown.iter().any(|name| name.ends_with(".txt")) {
        "it looks like a dump of mariadb-dump --tab: teak load reads its .sql files if they are named, and mariadb-import \
         its .txt files"
    } else {
        "it is no dump of mydumper; other directories are not read, only files"
    }
}

fn of_directory(dir: &Path) -> Result<Vec<Source>, LoadError> {
    let unreadable = |error| LoadError::Read { name: dir.display().to_string(), error };
    let (mut files, mut unknown) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match part_of(&name) {
            Some((part, database)) => files.push((part, name, entry.path(), database)),
            None if is_about_the_dump(&name) => {}
            None => unknown.push(name),
        }
    }
    if !dir.join("metadata").exists() {
        let what = format!("there is no file 'metadata' in the directory: {}", other_maker(dir, &unknown));
        return Err(LoadError::Usage(format!("{}: {what}", dir.display())));
    }
    if let Some(name) = unknown.iter().find(|name| name.contains(".dat")) {
        let what = "is a file for LOAD DATA, which teak load does not read";
        return Err(LoadError::Usage(format!("{}: {name} {what}", dir.display())));
    }
    if !unknown.is_empty() {
        unknown.sort();
        let more = if unknown.len() > SHOWN { ", ..." } else { "" };
        unknown.truncate(SHOWN);
        let what = "files are not known: nothing is loaded, as they would be left out (.sql is read, and .gz, .zst, .bz2 \
                    and .xz behind it)";
        return Err(LoadError::Usage(format!("{}: {what}: {}{more}", dir.display(), unknown.join(", "))));
    }
    if files.is_empty() {
        return Err(LoadError::Usage(format!(
            "{}: there is nothing to load in the directory",
            dir.display()
        )));
    }
    files.sort();
    let source = |(part, _, path, database): (Part, String, PathBuf, String)| {
        // Bodies of triggers and routines hold semicolons; mydumper ends statements, and nothing else, with one before
        // a newline.
        let delimiter: &[u8] = if part >= Part::View { b";\n" } else { b";" };
        let source = of_file(&path, (part != Part::Database).then(|| database.clone()), delimiter)?;
        Ok(Source { of_mydumper: Some(database), ..source })
    };
    files.into_iter().map(source).collect()
}

/// Opens a source. `read` counts bytes as the file has them.
pub fn open(source: &Source, read: Arc<AtomicU64>) -> std::io::Result<Box<dyn Read>> {
    let raw: Box<dyn Read + Send> = match &source.path {
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(Input::open()?),
    };
    let mut raw = Counted { input: raw, read };
    let mut magic = Vec::new();
    (&mut raw).take(6).read_to_end(&mut magic)?;
    let begin = std::io::Cursor::new(magic.clone());
    let whole = begin.chain(raw);
    let decompressed: Box<dyn Read + Send> = match &magic[..] {
        [0x1f, 0x8b, ..] => {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(PIECE, whole)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::new(whole)?),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole)),
        _ => return Ok(Box::new(whole)),
    };
    Ok(Box::new(Ahead::start(decompressed)?))
}

struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        // Only shown to people; orders nothing.
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Decompresses on a thread of its own, which ends when the reader is dropped.
struct Ahead {
    pieces: Receiver<std::io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
}

impl Ahead {
    fn start(mut input: Box<dyn Read + Send>) -> std::io::Result<Ahead> {
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        std::thread::Builder::new().name("decompress".into()).spawn(move || loop {
            let mut piece = Vec::with_capacity(PIECE);
            let result = (&mut input).take(PIECE as u64).read_to_end(&mut piece);
            let last = !matches!(result, Ok(count) if count > 0);
            let result = result.map(|_| piece);
            if sender.send(result).is_err() || last {
                return;
            }
        })?;
        Ok(Ahead { pieces, piece: Vec::new(), taken: 0 })
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.piece.len() {
            // The thread is gone only after its last piece, which is empty.
            self.piece = self.pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            self.taken = 0;
        }
        let count = buffer.len().min(self.piece.len() - self.taken);
        buffer[..count].copy_from_slice(&self.piece[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("teak-input-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn read_all(path: &Path) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        open(&of_file(path, None, b";").unwrap(), Arc::default())?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn every_compression_is_known_by_its_first_bytes_and_a_cut_file_is_an_error() {
        let dir = Directory::new("compressed");
        let text: Vec<u8> = (0..2_000_000u32).flat_map(|i| (i % 977).to_le_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut bzip = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip.write_all(&text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&text).unwrap();
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        let packed = [gzip.finish().unwrap(), bzip.finish().unwrap(), xz.finish().unwrap(), zstd];
        for (i, packed) in packed.iter().enumerate() {
            let file = dir.0.join(format!("{i}.sql"));
            std::fs::write(&file, packed).unwrap();
            assert_eq!(read_all(&file).unwrap(), text, "format {i}");
            // Two compressed files one after the other are one.
            std::fs::write(&file, [&packed[..], &packed[..]].concat()).unwrap();
            assert_eq!(read_all(&file).unwrap().len(), 2 * text.len(), "format {i}");
            for length in [packed.len() - 1, packed.len() / 2, 8] {
                std::fs::write(&file, &packed[..length]).unwrap();
                assert!(read_all(&file).is_err(), "format {i}, {length} bytes");
            }
        }
    }

    #[test]
    fn short_files_are_plain() {
        let dir = Directory::new("short");
        for text in [&b""[..], b"a", b"abcdef", b"BZhx", b"\x1f"] {
            let file = dir.0.join("x");
            std::fs::write(&file, text).unwrap();
            assert_eq!(read_all(&file).unwrap(), text);
        }
    }

    #[test]
    fn a_directory_with_files_that_would_be_left_out_is_refused() {
        let dir = Directory::new("unknown");
        let refused = |words: &[&str]| match find(std::slice::from_ref(&dir.0)) {
            Err(LoadError::Usage(text)) => assert!(words.iter().all(|word| text.contains(word)), "{text}"),
            other => panic!("{words:?}: {other:?}"),
        };
        std::fs::write(dir.0.join("d.t-schema.sql"), "").unwrap();
        std::fs::write(dir.0.join("d.t.txt"), "").unwrap();
        refused(&["--tab"]);
        std::fs::write(dir.0.join("@.json"), "").unwrap();
        refused(&["MySQL Shell"]);
        for name in ["d.t.txt", "@.json", "d.t-schema.sql"] {
            std::fs::remove_file(dir.0.join(name)).unwrap();
        }
        refused(&["no dump of mydumper"]);
        std::fs::write(dir.0.join("metadata"), "").unwrap();
        refused(&["nothing to load"]);
        std::fs::write(dir.0.join("d.t-schema.sql"), "").unwrap();
        assert_eq!(find(std::slice::from_ref(&dir.0)).unwrap().len(), 1);
        for name in ["e.t.00000.sql.lz4", "e.t.00001.sql.gz.enc", "notes"] {
            std::fs::write(dir.0.join(name), "").unwrap();
            refused(&[name]);
        }
        refused(&["e.t.00000.sql.lz4, e.t.00001.sql.gz.enc, notes"]);
        std::fs::write(dir.0.join("e.t.00000.dat"), "").unwrap();
        refused(&["e.t.00000.dat", "LOAD DATA"]);
    }

    #[test]
    fn a_directory_of_mydumper_is_read_in_the_order_that_loads() {
        let dir = Directory::new("mydumper");
        let names = [
            "d-schema-create.sql",
            "d.b-schema.sql.gz",
            "d.t-schema.sql",
            "d.t.00000.sql",
            "d.t.00001.sql.gz",
            "d.v-schema-view.sql",
            "d.t-schema-triggers.sql",
            "d-schema-post.sql",
        ];
        for name in names {
            std::fs::write(dir.0.join(name), "").unwrap();
        }
        assert!(matches!(find(std::slice::from_ref(&dir.0)), Err(LoadError::Usage(_))));
        std::fs::write(dir.0.join("metadata"), "").unwrap();
        let sources = find(std::slice::from_ref(&dir.0)).unwrap();
        let found: Vec<_> = sources.iter().map(|source| source.name.rsplit('/').next().unwrap()).collect();
        assert_eq!(found, names);
        assert_eq!(sources[0].database, None);
        for name in ["d.t-metadata", "d.t-checksum", "metadata.header"] {
            std::fs::write(dir.0.join(name), "").unwrap();
        }
        assert_eq!(find(std::slice::from_ref(&dir.0)).unwrap(), sources);
        assert!(sources[1..].iter().all(|source| source.database.as_deref() == Some("d")));
    }
}
