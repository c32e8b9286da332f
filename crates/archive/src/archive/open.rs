//! Making an archive, opening it, and what is kept of it in `settings`.

use super::{Archive, Trees};
use crate::oid::OidMaker;
use crate::schema::Schema;
use crate::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use teak_core::file::{FileSystem, RealFileSystem};
use teak_core::{
    CommitFlush, Compression, Engine, Isolation, Options as EngineOptions, Packing, Transaction, TreeSpec,
};

/// What this version writes, and the newest that it reads.
const FORMAT: u64 = 1;
const CHUNKS: &str = "chunks";
const ARCHIVE: &str = "archive";
const DIRECTORIES: &str = "directories";
/// Trees of the table with everything but bytes.
const TREES: usize = 9;

/// Tells the time, in microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What an answer promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What was answered is there after a power failure. Those who wait at one time share a sync.
    Each,
    /// What was answered before [`Archive::sync`] is.
    OnSync,
}

/// How an archive is opened.
#[derive(Clone)]
pub struct Options {
    /// The engine's: directory, memory. What a commit waits for is the archive's own.
    pub engine: EngineOptions,
    /// What an answer promises.
    pub durability: Durability,
    /// Tells the time; that of the system.
    pub clock: Clock,
    /// What the random part of names begins with; the system's choice.
    pub seed: Option<u64>,
    /// Who is told to have done what is in the audit.
    pub actor: String,
}

impl Options {
    /// Of an archive in that directory.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            engine: EngineOptions { cache_bytes: 64 << 20, ..EngineOptions::new(dir) },
            durability: Durability::Each,
            clock: Arc::new(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            }),
            seed: None,
            actor: String::new(),
        }
    }
}

/// How bytes are cut; kept with the archive, since the same bytes are to be the same chunks always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunking {
    /// FastCDC of 2020, with normalisation 1, and no other.
    algorithm: Algorithm,
    /// A chunk's bytes at least, but for the last of its data.
    pub min: u32,
    /// As they are mostly.
    pub average: u32,
    /// At most.
    pub max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Algorithm {
    #[serde(rename = "fastcdc-2020-n1")]
    FastCdc2020,
}

impl Default for Chunking {
    fn default() -> Chunking {
        Chunking { algorithm: Algorithm::FastCdc2020, min: 16 << 10, average: 64 << 10, max: 256 << 10 }
    }
}

impl Chunking {
    /// With other sizes, in bytes.
    pub fn new(min: u32, average: u32, max: u32) -> Result<Chunking> {
        let (algorithm, all) = (Algorithm::FastCdc2020, [min, average, max]);
        if !(64..=1 << 20).contains(&min)
            || !(256..=2 << 20).contains(&average)
            || !(1024..=4 << 20).contains(&max)
            || min > average
            || average > max
            || all.iter().any(|bytes| bytes % 2 != 0)
        {
            let text = format!("chunks of {all:?} bytes: least, average and most ascend, are even, from 64, 256 and 1024 to 1, 2 and 4 MiB");
            return Err(Error::Usage(text));
        }
        Ok(Chunking { algorithm, min, average, max })
    }
}

/// What an archive keeps, and how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// How long data without records is kept, in seconds.
    pub grace_seconds: u64,
    /// How many older versions of a record are kept.
    pub keep_versions: u64,
}

impl Default for Rules {
    /// A day, and a hundred.
    fn default() -> Rules {
        Rules { grace_seconds: 86_400, keep_versions: 100 }
    }
}

impl Archive {
    /// Makes an archive in a directory that is empty or missing, and opens it.
    pub fn init(dir: &Path, chunking: Chunking, rules: &Rules) -> Result<Archive> {
        Archive::init_on(Arc::new(RealFileSystem), Options::new(dir), chunking, rules)
    }

    /// The same, on another file system. A directory in which this was interrupted is taken.
    pub fn init_on(
        fs: Arc<dyn FileSystem>,
        options: Options,
        chunking: Chunking,
        rules: &Rules,
    ) -> Result<Archive> {
        let dir = options.engine.dir.clone();
        if fs.exists(&dir)? && !fs.list(&dir)?.is_empty() && !teak_core::server::is_engine(&*fs, &dir)? {
            return Err(Error::Exists(dir));
        }
        let engine = open_engine(fs, &options)?;
        let names = engine.table_names("")?;
        if names.iter().any(|name| ![CHUNKS, ARCHIVE, DIRECTORIES].contains(&&**name)) {
            return Err(Error::Exists(dir));
        }
        // Chunks that are alike are put together, as differences, in the background.
        let packing = Packing { compression: Compression::Zstd, level: 0, similarity: true };
        if !names.iter().any(|name| name == CHUNKS) {
            engine.create_table(CHUNKS, &[TreeSpec { packing, ..TreeSpec::default() }])?;
        }
        if !names.iter().any(|name| name == ARCHIVE) {
            engine.create_table(ARCHIVE, &[TreeSpec::default(); TREES])?;
        }
        let trees = Trees::open(&engine)?;
        if engine.snapshot().get(&trees.settings, "format")?.is_some() {
            return Err(Error::Exists(dir));
        }
        let mut txn = engine.begin_at(Isolation::ReadCommitted);
        for (name, value) in [
            ("format", json(&FORMAT)?),
            ("chunking", json(&chunking)?),
            ("rules", json(rules)?),
            ("schema", json(&Schema::default())?),
        ] {
            txn.put(&trees.settings, name, value)?;
        }
        txn.commit()?;
        engine.sync()?;
        Archive::of_engine(engine, options)
    }

    /// Opens the archive in a directory.
    pub fn open(dir: &Path) -> Result<Archive> {
        Archive::open_on(Arc::new(RealFileSystem), Options::new(dir))
    }

    /// The same, on another file system.
    pub fn open_on(fs: Arc<dyn FileSystem>, options: Options) -> Result<Archive> {
        let dir = &options.engine.dir;
        if !fs.exists(dir)? || !teak_core::server::is_engine(&*fs, dir)? {
            return Err(Error::NoArchive(dir.clone()));
        }
        let engine = open_engine(fs, &options)?;
        Archive::of_engine(engine, options)
    }

    fn of_engine(engine: Engine, options: Options) -> Result<Archive> {
        let no_archive = || Error::NoArchive(options.engine.dir.clone());
        let trees = Trees::open(&engine).map_err(|error| match error {
            Error::Core(teak_core::Error::NoSuchTable(_) | teak_core::Error::NoSuchTree(_)) => no_archive(),
            error => error,
        })?;
        let snapshot = engine.snapshot();
        let setting = |name: &str| snapshot.get(&trees.settings, name);
        let format: u64 = read(&setting("format")?.ok_or_else(no_archive)?, "format")?;
        if format > FORMAT {
            return Err(Error::TooNew { found: format, known: FORMAT });
        }
        let kept = |name: &str| Ok::<_, Error>(setting(name)?.unwrap_or_default());
        let (chunking, rules) = (read(&kept("chunking")?, "chunking")?, read(&kept("rules")?, "rules")?);
        let schema: Schema = read(&kept("schema")?, "schema")?;
        let schema = schema.with_built_in();
        let mut last = snapshot.rows(&trees.chunks).descending();
        let next_chunk = match last.advance()? {
            true => u64::from_be_bytes(last.key().try_into().map_err(|_| Error::row(CHUNKS, last.key()))?)
                .saturating_add(1),
            false => 0,
        };
        // Names are to differ, and are no secrets: what the system gives hash tables does.
        let random = || RandomState::new().hash_one((std::process::id(), (options.clock)()));
        let seed = options.seed.unwrap_or_else(random);
        drop(last);
        drop(snapshot);
        Ok(Archive {
            engine,
            trees,
            schema: RwLock::new(Arc::new(schema)),
            rules: RwLock::new(rules),
            chunking,
            clock: options.clock,
            durability: options.durability,
            oids: OidMaker::new(seed),
            actor: options.actor,
            next_chunk: AtomicU64::new(next_chunk),
            next_entry: AtomicU64::new(0),
            live: Default::default(),
            care: Default::default(),
            paths: Default::default(),
        })
    }

    /// What it keeps, and how long.
    pub fn rules(&self) -> Rules {
        self.rules.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// How bytes are cut.
    pub fn chunking(&self) -> Chunking {
        self.chunking
    }

    /// Changes what it keeps, from now on.
    pub fn set_rules(&self, rules: &Rules) -> Result<()> {
        let mut present = self.rules.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.transact(|txn| {
            self.write_setting(txn, "rules", rules)?;
            self.note(txn, "rules", "", json_value(rules)?)
        })?;
        *present = rules.clone();
        self.answered()
    }

    pub(super) fn write_setting<T: Serialize>(
        &self,
        txn: &mut Transaction,
        name: &str,
        value: &T,
    ) -> Result<()> {
        txn.put(&self.trees.settings, name, json(value)?)?;
        Ok(())
    }

    pub(crate) fn setting<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let row = self.engine.snapshot().get(&self.trees.settings, name)?;
        row.map(|row| read(&row, name)).transpose()
    }
}

impl Trees {
    fn open(engine: &Engine) -> Result<Trees> {
        let (chunks, archive) = (engine.open_table(CHUNKS)?, engine.open_table(ARCHIVE)?);
        // Archives of before have none.
        let directories = match engine.open_table(DIRECTORIES) {
            Err(teak_core::Error::NoSuchTable(_)) => {
                engine.create_table(DIRECTORIES, &[TreeSpec::default()])?
            }
            table => table?,
        };
        if archive.trees() != TREES {
            return Err(Error::Core(teak_core::Error::NoSuchTree(archive.trees())));
        }
        let tree = |number| archive.tree(number).clone();
        Ok(Trees {
            chunks: chunks.tree(0).clone(),
            settings: tree(0),
            contents: tree(1),
            lists: tree(2),
            pending: tree(3),
            records: tree(4),
            versions: tree(5),
            entries: tree(6),
            orphans: tree(7),
            audit: tree(8),
            directories: directories.tree(0).clone(),
        })
    }
}

fn open_engine(fs: Arc<dyn FileSystem>, options: &Options) -> Result<Engine> {
    // Answers wait for the log, see Archive::answered; steps of a large put do not.
    let engine = EngineOptions { commit_flush: CommitFlush::Lazy, ..options.engine.clone() };
    Engine::open_on(fs, engine).map_err(|error| match error {
        teak_core::Error::InUse { .. } => Error::InUse(options.engine.dir.clone()),
        error => error.into(),
    })
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|problem| Error::Inconsistent(problem.to_string()))
}

pub(super) fn json_value<T: Serialize>(value: &T) -> Result<serde_json::Value> {
    serde_json::to_value(value).map_err(|problem| Error::Inconsistent(problem.to_string()))
}

fn read<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|problem| Error::Inconsistent(format!("setting {name}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::built_in;
    use crate::{Metadata, Node, Root};
    use teak_core::file::SimulatedFileSystem;

    #[test]
    fn an_archive_of_before_gets_what_trees_of_names_need() {
        let fs = Arc::new(SimulatedFileSystem::new(1));
        let options = || {
            let engine = EngineOptions { background: false, recovery_threads: 1, ..EngineOptions::new("/a") };
            Options { engine, seed: Some(1), ..Options::new("/a") }
        };
        let archive =
            Archive::init_on(fs.clone(), options(), Chunking::default(), &Rules::default()).unwrap();
        let mut metadata = Metadata::default();
        archive.put(&mut &b"x"[..], metadata.text("system.path", "d/f")).unwrap();
        let mut schema = Schema::clone(&archive.schema());
        schema.fields.retain(|field| field.number != built_in::PROPERTIES);
        archive.transact(|txn| archive.write_setting(txn, "schema", &schema)).unwrap();
        let Archive { engine, trees, .. } = archive;
        drop(trees);
        engine.drop_table(DIRECTORIES).unwrap();
        engine.close().unwrap();
        drop(engine);

        let archive = Archive::open_on(fs.clone(), options()).unwrap();
        assert_eq!(*archive.schema(), Schema::default());
        archive.make_directory(Root::Files, "d/e").unwrap();
        let mut change = |_: &Node| Ok((vec!["<p/>".to_string()], Metadata::default()));
        archive.change_properties(Root::Files, "d/f", &mut change).unwrap();
        archive.close().unwrap();
        let archive = Archive::open_on(fs, options()).unwrap();
        assert!(matches!(archive.node(Root::Files, "d/e"), Ok(Some(Node::Directory(_)))));
        let Ok(Some(Node::File(record))) = archive.node(Root::Files, "d/f") else { panic!() };
        assert_eq!(record.properties().collect::<Vec<_>>(), ["<p/>"]);
    }
}
