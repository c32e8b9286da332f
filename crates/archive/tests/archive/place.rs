//! Where archives of tests are, what time it is there, and what is put into them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use teak_archive::{Archive, Chunking, Metadata, Name, Oid, Options, Rules};
use teak_core::file::SimulatedFileSystem;
use teak_core::{Options as EngineOptions, Time};

pub const SECOND: i64 = 1_000_000;

/// Vigna's SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(count).collect()
    }
}

/// Random numbers of `TEAK_SEED`, or of another number.
pub fn seed(otherwise: u64) -> u64 {
    let seed = std::env::var("TEAK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(otherwise);
    println!("TEAK_SEED={seed}");
    seed
}

/// A disk, and a clock.
#[derive(Clone)]
pub struct Place {
    pub fs: SimulatedFileSystem,
    pub now: Arc<AtomicI64>,
    pub seed: u64,
}

impl Place {
    pub fn new(seed: u64) -> Place {
        let now = Arc::new(AtomicI64::new(1_700_000_000 * SECOND));
        Place { fs: SimulatedFileSystem::new(seed), now, seed }
    }

    pub fn options(&self) -> Options {
        let now = self.now.clone();
        let engine = EngineOptions {
            background: false,
            recovery_threads: 1,
            time: Time::simulated(),
            cache_bytes: 8 << 20,
            ..EngineOptions::new("/archive")
        };
        Options {
            engine,
            clock: Arc::new(move || now.fetch_add(1, Ordering::SeqCst)),
            seed: Some(self.seed),
            actor: "tester".into(),
            ..Options::new("/archive")
        }
    }

    pub fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * SECOND, Ordering::SeqCst);
    }

    /// A new archive of small chunks.
    pub fn init(&self) -> Archive {
        self.try_init().unwrap()
    }

    pub fn try_init(&self) -> teak_archive::Result<Archive> {
        let rules = Rules { grace_seconds: 60, keep_versions: 3 };
        Archive::init_on(Arc::new(self.fs.clone()), self.options(), Chunking::new(64, 256, 1024)?, &rules)
    }

    pub fn open(&self) -> teak_archive::Result<Archive> {
        Archive::open_on(Arc::new(self.fs.clone()), self.options())
    }
}

/// An archive of large chunks in a directory of the real file system, which goes with it.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("teak-archive-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn put(archive: &Archive, bytes: &[u8], fields: &[(&str, &str)]) -> teak_archive::Result<Oid> {
    archive.put(&mut &*bytes, &metadata(fields)).map(|stored| stored.oid)
}

pub fn metadata(fields: &[(&str, &str)]) -> Metadata {
    let mut metadata = Metadata::default();
    for (name, text) in fields {
        metadata.text(*name, *text);
    }
    metadata
}

pub fn get(archive: &Archive, name: Name) -> teak_archive::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    archive.get(name, None, &mut bytes)?;
    Ok(bytes)
}

/// Fails unless all rows fit.
pub fn assert_sound(archive: &Archive) {
    let wrong = archive.check_references().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let findings = archive.engine().check().unwrap();
    assert!(findings.is_empty(), "{findings}");
}

/// Gives back all that nobody names now.
pub fn collect(archive: &Archive) -> teak_archive::Collected {
    archive.collect(Some(0), &|| false).unwrap()
}
