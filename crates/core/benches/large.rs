//! What a row costs in a table far larger than memory: 1 TB or 10 TB with 64 GB of cache, of which a part is really
//! there.
//!
//! `cargo bench -p teak-core --bench large -- [--terabytes N] [--part N] [--rounds N] [--directory DIR]`
//!
//! Data, cache, and the log between two checkpoints are the `--part`th (512) of what they would be; rows, leaves and
//! pages are what they are. So the changes of a leaf and of a page between two checkpoints are those of the whole, and
//! so is how much of leaves and pages is in memory; only the tree is a level lower. The engine is the real one, over
//! files whose syncs cost nothing, and whose reads and writes are counted. Per operation: bytes read, bytes written by
//! checkpoints, to the log, and to the spill file, and processor time of the process, with all that goes on in the
//! background. `--rounds`: so often are as many rows changed as the table has leaves, to see what patches come to.

mod processor;

use processor::processor_time;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use teak_core::file::{Directory, File, FileSystem, OpenMode, RealFileSystem};
use teak_core::{CommitFlush, Engine, Isolation, Options, Result, Table, TreeSpec, WriteOp};

/// What the process has counts for the cache, as in a server.
#[global_allocator]
static HEAP: teak_core::Heap = teak_core::Heap;

/// Of a row: a half of it is digits that do not compress, as in sysbench's rows.
const ROW_BYTES: usize = 190;
const ROWS_OF_A_LEAF: u64 = 165;
/// Between two keys of the index there is room for others.
const STEP: u64 = 1 << 20;

/// Bytes that went to and from files.
#[derive(Default)]
struct Counts {
    read: AtomicU64,
    tables: AtomicU64,
    log: AtomicU64,
    spill: AtomicU64,
}

/// What was counted until a moment, and the processor time.
#[derive(Clone, Copy, Default)]
struct Spent {
    read: u64,
    tables: u64,
    log: u64,
    spill: u64,
    processor: Duration,
}

impl Spent {
    fn until_now(counts: &Counts) -> Spent {
        // Relaxed: sums, looked at while nobody changes much.
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Spent {
            read: load(&counts.read),
            tables: load(&counts.tables),
            log: load(&counts.log),
            spill: load(&counts.spill),
            processor: processor_time(),
        }
    }

    fn since(self, before: Spent) -> Spent {
        Spent {
            read: self.read - before.read,
            tables: self.tables - before.tables,
            log: self.log - before.log,
            spill: self.spill - before.spill,
            processor: self.processor - before.processor,
        }
    }
}

/// Resident, in MiB.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) / 256
}

/// Files that count, and do not sync.
struct Disk(Arc<Counts>);

struct Counted {
    file: Arc<dyn File>,
    counts: Arc<Counts>,
    is_log: bool,
    is_spill: bool,
}

impl Disk {
    fn counted(&self, file: Arc<dyn File>, is_spill: bool) -> Arc<dyn File> {
        let is_log = file.path().extension().is_some_and(|end| end == "log");
        Arc::new(Counted { file, counts: self.0.clone(), is_log, is_spill })
    }
}

impl FileSystem for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        Ok(self.counted(RealFileSystem.open(path, mode)?, false))
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(self.counted(RealFileSystem.open_unnamed(path)?, true))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        RealFileSystem.create_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        RealFileSystem.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        RealFileSystem.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        RealFileSystem.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        RealFileSystem.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        RealFileSystem.open_dir(dir)
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        RealFileSystem.lock_exclusive(path)
    }
}

impl Counted {
    fn count_read(&self, bytes: usize) {
        // Relaxed: a sum.
        self.counts.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl File for Counted {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.count_read(buf.len());
        self.file.read_at(offset, buf)
    }

    // Through the kernel's cache, whatever the engine would like: a disk that answers at once.
    fn read_apart_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.count_read(buf.len());
        self.file.read_exact_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let written = match (self.is_log, self.is_spill) {
            (true, _) => &self.counts.log,
            (_, true) => &self.counts.spill,
            _ => &self.counts.tables,
        };
        // Relaxed: a sum.
        written.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.file.write_at(offset, buf)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes)
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.file.punch_hole(offset, bytes)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        Arc::new(Counted {
            file: self.file.renamed(path),
            counts: self.counts.clone(),
            is_log: self.is_log,
            is_spill: self.is_spill,
        })
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The first half is random, the other the same in all rows.
fn value(random: &mut Random) -> [u8; ROW_BYTES] {
    let mut value = [b'-'; ROW_BYTES];
    for part in value[..ROW_BYTES / 2].chunks_mut(8) {
        let bytes = random.next().to_le_bytes();
        part.copy_from_slice(&bytes[..part.len()]);
    }
    value
}

struct Bench {
    engine: Engine,
    table: Arc<Table>,
    counts: Arc<Counts>,
    random: Random,
    rows: u64,
}

impl Bench {
    fn options(directory: &Path, part: u64) -> Options {
        let mut options = Options::new(directory);
        options.cache_bytes = (64 << 30) / part;
        options.owns_heap = true;
        // A 64th of the cache, as it would be there.
        options.checkpoint_log_bytes = (1 << 30) / part;
        options.log_segment_bytes = options.checkpoint_log_bytes.max(1 << 20);
        options.commit_flush = CommitFlush::Write;
        options
    }

    /// Fills a table of so many rows and an index.
    fn fill(directory: &Path, part: u64, rows: u64) -> Result<()> {
        let engine = Engine::open_with(Bench::options(directory, part))?;
        let table = engine.create_table("large", &[TreeSpec::default(), TreeSpec::default()])?;
        let mut random = Random(1);
        let mut txn = engine.begin();
        txn.load(table.tree(0), (0..rows).map(|n| (n.to_be_bytes(), value(&mut random))))?;
        txn.load(table.tree(1), (0..rows).map(|n| (index_key(n * STEP, n), [0; 0])))?;
        txn.commit()?;
        engine.close()
    }

    /// Opens what was filled, with nothing of it in memory.
    fn open(directory: &Path, part: u64, rows: u64) -> Result<Bench> {
        let counts = Arc::new(Counts::default());
        let engine = Engine::open_on(Arc::new(Disk(counts.clone())), Bench::options(directory, part))?;
        let table = engine.open_table("large")?;
        Ok(Bench { engine, table, counts, random: Random(2), rows })
    }

    /// Does `operation` so often, and says what one has cost.
    fn run(
        &mut self,
        name: &str,
        times: u64,
        mut operation: impl FnMut(&mut Bench, u64) -> Result<()>,
    ) -> Result<()> {
        let (before, checkpoints) = (Spent::until_now(&self.counts), self.engine.statistics().checkpoints);
        let began = Instant::now();
        for i in 0..times {
            operation(self, i)?;
        }
        let spent = Spent::until_now(&self.counts).since(before);
        let checkpoints = self.engine.statistics().checkpoints - checkpoints;
        let kb = |bytes: u64| bytes as f64 / times as f64 / 1000.0;
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {checkpoints} | {} |",
            kb(spent.read),
            kb(spent.tables),
            kb(spent.log),
            kb(spent.spill),
            spent.processor.as_micros() as f64 / times as f64,
            began.elapsed().as_micros() as f64 / times as f64,
            resident()
        );
        Ok(())
    }

    fn look_up(&mut self) -> Result<()> {
        let key = self.random.below(self.rows).to_be_bytes();
        let row = self.engine.snapshot().get(self.table.tree(0), key)?;
        // One in thousands was deleted.
        std::hint::black_box(row);
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let from = self.random.below(self.rows).to_be_bytes();
        let snapshot = self.engine.snapshot();
        let mut bytes = 0;
        for row in snapshot.range(self.table.tree(0), from..).take(100) {
            bytes += row?.1.len();
        }
        std::hint::black_box(bytes);
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        let (key, value) = (self.random.below(self.rows).to_be_bytes(), value(&mut self.random));
        let mut txn = self.engine.begin();
        txn.update(self.table.tree(0), key, value)?;
        txn.commit()
    }

    /// As an index gets it that need not be unique: nothing is looked for.
    fn insert_into_index(&mut self, number: u64) -> Result<()> {
        let key = index_key(self.random.below(self.rows * STEP), self.rows + number);
        let mut txn = self.engine.server().begin(Isolation::Repeatable);
        txn.write(self.table.tree(1), &key, WriteOp::Insert(&[]))?;
        txn.commit()
    }

    fn delete(&mut self) -> Result<()> {
        let key = self.random.below(self.rows).to_be_bytes();
        let mut txn = self.engine.begin();
        txn.delete(self.table.tree(0), key)?;
        txn.commit()
    }
}

fn index_key(value: u64, row: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&value.to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

struct Arguments {
    terabytes: u64,
    part: u64,
    rounds: u64,
    directory: PathBuf,
    only_fills: bool,
}

fn arguments() -> Arguments {
    let mut parsed = Arguments {
        terabytes: 1,
        part: 512,
        rounds: 1,
        directory: std::env::temp_dir().join(format!("teak-large-{}", std::process::id())),
        only_fills: false,
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(name) = words.next() {
        let word = words.next().unwrap_or_default();
        let number = || word.parse::<u64>().ok().filter(|number| *number > 0).expect("a number from 1 on");
        match name.as_str() {
            "--terabytes" => parsed.terabytes = number(),
            "--part" => parsed.part = number(),
            "--rounds" => parsed.rounds = number(),
            "--directory" => parsed.directory = PathBuf::from(&word),
            "--only-fill" => parsed.only_fills = word == "yes",
            other => panic!("unknown option {other}"),
        }
    }
    parsed
}

fn main() -> Result<()> {
    let Arguments { terabytes, part, rounds, directory, only_fills } = arguments();
    let rows = terabytes * (1 << 40) / part / ROW_BYTES as u64;
    let leaves = rows / ROWS_OF_A_LEAF;
    if only_fills {
        return Bench::fill(&directory, part, rows);
    }
    // By another process, whose memory goes with it.
    let began = Instant::now();
    let itself = std::env::current_exe().expect("the path of this program");
    let mut filler = std::process::Command::new(itself);
    filler.args(std::env::args().skip(1)).args(["--only-fill", "yes", "--directory"]).arg(&directory);
    assert!(filler.status().expect("a process that fills").success(), "the table was not filled");
    println!(
        "{terabytes} TB, a {part}th: {rows} rows, some {leaves} leaves, filled in {:?}",
        began.elapsed()
    );
    let mut bench = Bench::open(&directory, part, rows)?;
    println!();
    println!("| | KB read | KB to tables | to the log | spilled | processor, us | us | checkpoints | MiB resident |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    // So much is read as fills the cache.
    let warm = (2 * (64 << 30) / part / (32 << 10)).min(leaves);
    bench.run("look-up, first", warm, |bench, _| bench.look_up())?;
    bench.run("look-up", 50_000, |bench, _| bench.look_up())?;
    bench.run("scan of 100", 20_000, |bench, _| bench.scan())?;
    bench.run("insert into an index", 50_000, |bench, number| bench.insert_into_index(number))?;
    bench.run("update", 50_000, |bench, _| bench.update())?;
    for round in 1..rounds {
        bench.run(&format!("update, round {round}"), leaves, |bench, _| bench.update())?;
    }
    bench.run("delete", 50_000, |bench, _| bench.delete())?;
    bench.engine.close()?;
    let _ = std::fs::remove_dir_all(&directory);
    Ok(())
}
