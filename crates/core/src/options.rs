//! How an engine is opened.

use crate::Time;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a commit waits for; the numbers are those of `teak_flush_log_at_trx_commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CommitFlush {
    /// 0: nothing; the log is written and synced about once a second.
    Lazy = 0,
    /// 1: written and synced: survives power loss.
    Sync = 1,
    /// 2: written: survives the death of the process, synced about once a second.
    Write = 2,
}

/// What happens when old snapshots hold as much as they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum HistoryFull {
    /// The oldest gives way: its next read is [`crate::Error::SnapshotTooOld`]. Writers go on.
    FailOldest = 0,
    /// Writers that ask (see [`crate::engine::Transaction::wait_for_history`]) wait until a snapshot ends.
    Wait = 1,
}

/// Whether look-ups of single blocks leave the kernel's cache of files out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FileBuffering {
    /// They do if the engine's own cache is to have a third of the memory that there is, or more.
    Auto = 0,
    /// They use it.
    On = 1,
    /// They leave it out.
    Off = 2,
}

/// How far a start goes to give what is readable of a damaged directory; the numbers are those of
/// `teak_force_recovery`. Each does what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ForceRecovery {
    /// 0: damage that concerns more than one table is an error.
    Off = 0,
    /// 1: a table that cannot be opened or recovered is left out, whatever the reason, and scans pass over blocks that
    /// cannot be read: see [`crate::engine::Engine::lost`].
    PassOver = 1,
    /// 2: nothing is written to the directory, by nobody: the engine is read-only. Tables that cannot be recovered are
    /// there all the same, with what can be read.
    ReadOnly = 2,
    /// 3: of the log, what is readable up to the first damage or to a newer checkpoint; of the superblocks, the newest
    /// that is intact.
    WithoutLog = 3,
}

/// How a tree's blocks are compressed on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Stored as they are.
    None = 0,
    /// LZ4 block format.
    Lz4 = 1,
    /// Zstandard.
    Zstd = 2,
    /// Zstandard; and of large values that are zlib, gzip or raw deflate streams, what is in them, if the stream can be
    /// made again of it to the bit.
    Recompress = 3,
}

impl Compression {
    /// Whether blocks are compressed by Zstandard.
    pub(crate) fn is_zstd(self) -> bool {
        self.of_blocks() == Compression::Zstd
    }

    /// What blocks of a tree with this compression have.
    pub(crate) fn of_blocks(self) -> Compression {
        match self {
            Compression::Recompress => Compression::Zstd,
            other => other,
        }
    }
}

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// With what.
    pub compression: Compression,
    /// Of Zstandard, 1 to [`Packing::MOST_LEVEL`]; 0: the default. Others have none.
    pub level: u8,
    /// Whether large values that are alike are put together, so that they share what they have in common; by and by,
    /// in the background. Of tables with a file.
    pub similarity: bool,
}

impl Packing {
    /// The highest level that does not need far more memory than a block.
    pub const MOST_LEVEL: u8 = 19;
}

impl From<Compression> for Packing {
    fn from(compression: Compression) -> Packing {
        Packing { compression, level: 0, similarity: false }
    }
}

/// Physical properties of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSpec {
    /// Target size of a base block before compression, in bytes (4 KiB to 1 MiB). Fixed at creation.
    pub block_bytes: u32,
    /// Compression of blocks on disk from now on.
    pub packing: Packing,
}

/// Where a table's rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residence {
    /// In a file, and in memory as far as they are in use.
    #[default]
    File,
    /// In memory alone: no write of them reaches the log or a file, and a restart finds the table empty.
    Memory {
        /// What the table may take, in bytes; 0: only what all such tables together may.
        limit_bytes: u64,
    },
    /// Of a table that goes with the engine, however that ends: neither rows nor definition reach the log, and nothing
    /// waits for a disk.
    Temporary {
        /// `Some`: in memory alone, as [`Residence::Memory`]. `None`: in memory as far as there is room, and otherwise
        /// in a file without a name.
        limit_bytes: Option<u64>,
    },
}

impl Residence {
    /// Whether the table goes with the engine.
    pub fn is_temporary(self) -> bool {
        matches!(self, Residence::Temporary { .. })
    }

    /// What a tree of such a table has of what is wanted: blocks that only a lack of memory brings to a disk are
    /// compressed as what is spilled.
    pub(crate) fn spec(self, wanted: TreeSpec) -> TreeSpec {
        match self {
            Residence::File | Residence::Memory { .. } => wanted,
            Residence::Temporary { .. } => TreeSpec { packing: Compression::Lz4.into(), ..wanted },
        }
    }

    /// What a table that lives in memory alone may take, in bytes; 0: only what all such tables together may.
    pub(crate) fn memory_limit(self) -> Option<u64> {
        match self {
            Residence::File => None,
            Residence::Memory { limit_bytes } => Some(limit_bytes),
            Residence::Temporary { limit_bytes } => limit_bytes,
        }
    }
}

impl Default for TreeSpec {
    fn default() -> TreeSpec {
        TreeSpec { block_bytes: 32 << 10, packing: Compression::Zstd.into() }
    }
}

/// Weight of a message to the [`Observer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// For information.
    Note,
    /// Something the operator should know.
    Warning,
    /// Something failed.
    Error,
}

/// Receives messages of background work (in the plugin: the server's error log).
pub trait Observer: Send + Sync {
    /// Called from any thread; must not call back into the engine.
    fn message(&self, level: LogLevel, text: &str);

    /// The identifier of a prepared transaction as people know it.
    fn xid(&self, xid: &[u8]) -> String {
        format!("'{}'", xid.escape_ascii())
    }
}

/// Drops all messages.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn message(&self, _level: LogLevel, _text: &str) {}
}

/// Settings of an engine. Those marked *dynamic* can be changed while it runs.
#[derive(Clone)]
pub struct Options {
    /// Private directory of the engine, created (0700) if missing.
    pub dir: PathBuf,
    /// Where spilled data goes; files there do not outlive the process.
    pub temp_dir: PathBuf,
    /// Memory budget for bases, deltas and history, in bytes. Dynamic.
    pub cache_bytes: u64,
    /// The process has no other engine, and [`crate::Heap`] for its allocator: what this one has in memory and charged
    /// to nobody counts for `cache_bytes`, too.
    pub owns_heap: bool,
    /// What all tables that live in memory alone may take, in bytes: beyond the budget above. Dynamic.
    pub memory_max_bytes: u64,
    /// What a commit waits for. Dynamic.
    pub commit_flush: CommitFlush,
    /// A checkpoint starts when half of this much log was written since the last, in bytes; 0: 256 MiB, or a 64th of
    /// the cache if that is more. Dynamic.
    pub checkpoint_log_bytes: u64,
    /// Size of one log segment file, in bytes.
    pub log_segment_bytes: u64,
    /// Redo of a transaction beyond this goes to the log before the transaction ends, in bytes.
    pub redo_bytes: usize,
    /// Disk that spilled data of transactions and sorting may take, in bytes. Dynamic.
    pub spill_max_bytes: u64,
    /// What may be kept for old snapshots, in memory or spilled, in bytes. Dynamic.
    pub history_max_bytes: u64,
    /// What happens when it is reached. Dynamic.
    pub history_full: HistoryFull,
    /// Of a snapshot older than this the observer is told; zero: never. Dynamic.
    pub snapshot_warn_age: Duration,
    /// When all locks take more memory than this, in bytes, transactions that lock many rows of a tree lock everything
    /// between the least and the greatest of them instead; 0: a quarter of the cache. Dynamic.
    pub lock_max_bytes: u64,
    /// Blocks that are read ahead of a scan which finds nothing in memory, at most; 0: none. Dynamic.
    pub read_ahead_blocks: u32,
    /// Whether look-ups use the kernel's cache of files. Dynamic.
    pub file_buffering: FileBuffering,
    /// Table files that are open at a time, as a rule. By default a quarter of the
    /// process's limit of descriptors, but at least 8.
    pub open_files: usize,
    /// Space kept on the disk so that a full one can be emptied (see [`crate::file::DiskReserve`]), in bytes; 0: none.
    pub disk_reserve_bytes: u64,
    /// Blocks of a tree that its dictionary is trained on, in bytes; smaller trees have none. 0: no dictionary is
    /// trained.
    pub dictionary_sample_bytes: usize,
    /// Of a leaf on disk so many bytes of values are compressed together, or more where that saves 2 % of its size, so
    /// that a look-up need not decompress all. Small in tests; 0: always all.
    pub frame_bytes: usize,
    /// Run background threads (checkpoints, eviction, log sync). The simulator turns them off and drives the engine
    /// itself.
    pub background: bool,
    /// What is done about damage. From [`ForceRecovery::ReadOnly`] on, `temp_dir` may be one that cannot be written to:
    /// then the system's directory for temporary files is used.
    pub force_recovery: ForceRecovery,
    /// The directory was made of a copy with some of the tables ([`crate::server::BackupCopy::only`]): a table without
    /// its file was left out, and is dropped, durably if the directory is written to. Otherwise it is damaged.
    pub partial: bool,
    /// Processors that a recovery uses; with 1 it happens on the caller's thread alone, in the same order each time.
    pub recovery_threads: usize,
    /// What the engine goes by; the simulator steps its own.
    pub time: Time,
    /// Receives messages.
    pub observer: Arc<dyn Observer>,
}

impl Options {
    /// Defaults for an engine in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        let dir = dir.into();
        Options {
            temp_dir: dir.join("tmp"),
            dir,
            cache_bytes: 128 << 20,
            owns_heap: false,
            memory_max_bytes: 128 << 20,
            commit_flush: CommitFlush::Sync,
            checkpoint_log_bytes: 0,
            log_segment_bytes: 64 << 20,
            redo_bytes: 1 << 20,
            spill_max_bytes: 64 << 30,
            history_max_bytes: 64 << 30,
            history_full: HistoryFull::FailOldest,
            snapshot_warn_age: Duration::from_secs(3600),
            lock_max_bytes: 0,
            read_ahead_blocks: 32,
            file_buffering: FileBuffering::Auto,
            open_files: usize::try_from(crate::file::descriptor_limit() / 4).unwrap_or(usize::MAX).max(8),
            disk_reserve_bytes: 0,
            dictionary_sample_bytes: 12 << 20,
            frame_bytes: 8 << 10,
            background: true,
            force_recovery: ForceRecovery::Off,
            partial: false,
            recovery_threads: std::thread::available_parallelism().map_or(2, |n| n.get()),
            time: Time::REAL,
            observer: Arc::new(SilentObserver),
        }
    }
}
