//! What is counted, with its name and meaning: the one list that SHOW STATUS and information_schema.TEAK_METRICS have.
//!
//! Where InnoDB counts the same thing it has the same name here, so that what is known of one helps with the other.

use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use teak_core::server::{Count, Counts, Histogram, Purpose, Statistics, Timed};

use crate::engine::EngineHandle;

/// How a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Grows, from the start of the server on.
    Counter = 0,
    /// Is what it is now.
    Gauge = 1,
    /// How often something took a time within a range: grows. The sum has the same name.
    Histogram = 2,
}

/// What a number is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Unit {
    /// Of what its name says.
    None = 0,
    /// Of bytes.
    Bytes = 1,
    /// Of seconds.
    Seconds = 2,
    /// Of thousandths of them.
    Milliseconds = 3,
    /// Of millionths of them; ranges of a histogram count times that are in these.
    Microseconds = 4,
}

/// One number.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Lower case, without the engine's name.
    pub name: &'static CStr,
    /// How it changes.
    pub kind: Kind,
    /// What it is a number of.
    pub unit: Unit,
    /// What it is.
    pub value: u64,
    /// Of a range of a histogram: the most that is in it, in microseconds, which is more than the range before has. The
    /// last range has no end.
    pub up_to: Option<u64>,
    /// One line for people.
    pub help: &'static str,
}

impl Metric {
    fn unit(&mut self, unit: Unit) {
        self.unit = unit;
    }
}

/// Where lists of metrics are made.
struct List(Vec<Metric>);

impl List {
    fn add(&mut self, kind: Kind, name: &'static CStr, value: u64, help: &'static str) -> &mut Metric {
        let at = self.0.len();
        self.0.push(Metric { name, kind, unit: Unit::None, value, up_to: None, help });
        &mut self.0[at]
    }

    fn counter(&mut self, name: &'static CStr, value: u64, help: &'static str) -> &mut Metric {
        self.add(Kind::Counter, name, value, help)
    }

    fn gauge(&mut self, name: &'static CStr, value: u64, help: &'static str) -> &mut Metric {
        self.add(Kind::Gauge, name, value, help)
    }

    /// How long something took, all together, and how often how long. How often it was.
    fn time(&mut self, name: &'static CStr, timed: Timed, ranges: bool, help: &'static str) -> u64 {
        let histogram = Histogram::of(timed);
        self.counter(name, micros(histogram.sum), help).unit(Unit::Microseconds);
        let ranges = histogram.buckets.iter().enumerate().filter(|_| ranges);
        let last = histogram.buckets.len() - 1;
        self.0.extend(ranges.map(|(i, &value)| Metric {
            name,
            kind: Kind::Histogram,
            unit: Unit::Microseconds,
            value,
            up_to: (i < last).then_some(1 << i),
            help,
        }));
        histogram.count()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// All numbers, by their names; with the `ranges` of histograms, or without.
pub fn metrics(engine: &EngineHandle, ranges: bool) -> Vec<Metric> {
    let (numbers, counts) = (engine.core.statistics(), Counts::of_all());
    let mut list = List(Vec::with_capacity(if ranges { 256 } else { 128 }));
    transactions(engine, &numbers, ranges, &mut list);
    locks(&numbers, ranges, &mut list);
    history(&numbers, &counts, &mut list);
    cache(&numbers, &counts, &mut list);
    memory(engine, &numbers, &mut list);
    files(&numbers, &counts, ranges, &mut list);
    spills_and_values(&numbers, &counts, &mut list);
    log(&numbers, &counts, ranges, &mut list);
    checkpoints(engine, &numbers, &mut list);
    list.0.sort_by_key(|metric| metric.name);
    list.0
}

fn transactions(engine: &EngineHandle, numbers: &Statistics, ranges: bool, list: &mut List) {
    // Relaxed: a statistic.
    let passed_rows = engine.passed_rows.load(Ordering::Relaxed);
    list.counter(c"commits", numbers.commits, "Transactions that committed");
    list.time(
        c"commit_microseconds",
        Timed::Commit,
        ranges,
        "Time of commits of changes, until they are as durable as asked",
    );
    list.counter(c"keys_read", numbers.reads, "Keys that cursors returned");
    list.counter(c"keys_written", numbers.writes, "Rows and entries of indexes that transactions wrote");
    list.gauge(c"last_commit_timestamp", numbers.last_commit, "Number of the newest commit");
    list.gauge(c"open_tables", numbers.open_tables, "Tables that are open");
    list.counter(c"rollbacks", numbers.rollbacks, "Transactions that were rolled back");
    list.counter(
        c"scan_rows_passed",
        passed_rows,
        "Rows that full scans passed over, as a LIKE could not be true of them",
    );
    list.gauge(c"sessions", engine.session_count() as u64, "Connections that have used the engine");
    list.gauge(c"transactions_active", numbers.active_transactions, "Open transactions");
    list.gauge(
        c"transactions_prepared",
        numbers.prepared_transactions,
        "Prepared transactions that wait for their coordinator",
    );
}

fn locks(numbers: &Statistics, ranges: bool, list: &mut List) {
    let waited = millis(numbers.lock_wait_time);
    let mean = waited.checked_div(numbers.lock_waits).unwrap_or(0);
    list.counter(c"deadlocks", numbers.deadlocks, "Deadlocks that were found and resolved");
    list.gauge(c"lock_memory", numbers.lock_bytes, "Memory of all locks, in bytes").unit(Unit::Bytes);
    list.time(c"lock_wait_microseconds", Timed::LockWait, ranges, "Time of waits for locks that have ended");
    list.gauge(c"row_lock_current_waits", numbers.locks_awaited, "Locks that are waited for now");
    list.counter(c"row_lock_time", waited, "Time of waits for locks that have ended, in milliseconds")
        .unit(Unit::Milliseconds);
    list.gauge(
        c"row_lock_time_avg",
        mean,
        "Time of a wait for a lock that has ended, on average, in milliseconds",
    )
    .unit(Unit::Milliseconds);
    list.gauge(
        c"row_lock_time_max",
        millis(numbers.longest_lock_wait),
        "Time of the longest wait for a lock, in milliseconds",
    )
    .unit(Unit::Milliseconds);
    list.counter(c"row_lock_timeouts", numbers.lock_timeouts, "Waits for locks that timed out");
    list.counter(c"row_lock_waits", numbers.lock_waits, "Locks that had to be waited for");
}

fn history(numbers: &Statistics, counts: &Counts, list: &mut List) {
    list.gauge(c"history_bytes", numbers.history.bytes(), "What is kept for old snapshots, in bytes")
        .unit(Unit::Bytes);
    list.gauge(
        c"history_spilled_bytes",
        numbers.history.spilled_bytes,
        "What is kept for old snapshots on disk, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(c"history_versions", numbers.history.versions, "Old versions that are kept for snapshots");
    list.counter(c"history_waits", numbers.history_waits, "Writes that waited for old snapshots to end");
    list.counter(
        c"old_versions_passed",
        counts.get(Count::OldVersions),
        "Versions that readers passed, as their snapshots are older",
    );
    list.gauge(
        c"snapshot_oldest_seconds",
        numbers.oldest_snapshot_age.as_secs(),
        "Age of the oldest snapshot",
    )
    .unit(Unit::Seconds);
    list.gauge(c"snapshots", numbers.snapshots, "Open snapshots");
    list.counter(c"snapshots_too_old", numbers.snapshots_too_old, "Snapshots that had to give way");
}

fn cache(numbers: &Statistics, counts: &Counts, list: &mut List) {
    list.counter(
        c"buffer_pool_read_requests",
        counts.get(Count::PagesAccessed),
        "Pages that somebody came by: inner ones and leaves",
    );
    list.counter(
        c"buffer_pool_reads",
        counts.get(Count::PagesMissed),
        "Pages that somebody came by and that were not in memory",
    );
    list.counter(
        c"buffer_pool_wait_free",
        counts.get(Count::MemoryWaits),
        "Calls that waited since memory could not be freed",
    );
    list.counter(
        c"buffer_pool_write_requests",
        counts.get(Count::PagesUpdated),
        "Changes of leaves, in memory",
    );
    list.gauge(c"cache_bytes_budget", numbers.cache_budget_bytes, "What teak_cache_size allows, in bytes")
        .unit(Unit::Bytes);
    list.counter(
        c"cache_bytes_evicted",
        counts.get(Count::EvictedBytes),
        "Memory that was given back when other data needed it, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(c"cache_bytes_used", numbers.cache_used_bytes, "Memory in use, in bytes").unit(Unit::Bytes);
    list.counter(
        c"cache_evictions",
        counts.get(Count::Evictions),
        "What gave memory back when other data needed it: blocks, pages, changes",
    );
    list.counter(c"merged_leaves", numbers.merged_leaves, "Leaves that were merged with their neighbours");
    list.counter(c"read_ahead_blocks", numbers.read_ahead, "Blocks that were read ahead of scans");
    list.counter(
        c"read_ahead_used",
        numbers.read_ahead_used,
        "Blocks that were read ahead of scans, and used",
    );
}

fn memory(engine: &EngineHandle, numbers: &Statistics, list: &mut List) {
    let memory = &numbers.memory;
    // Relaxed: a statistic.
    let lost_rows = engine.lost_rows.load(Ordering::Relaxed);
    list.gauge(c"memory_bytes_max", numbers.memory_max_bytes, "What tables in memory may take, in bytes")
        .unit(Unit::Bytes);
    list.gauge(c"memory_bytes_used", numbers.memory_used_bytes, "What tables in memory take, in bytes")
        .unit(Unit::Bytes);
    memory_by_purpose(numbers, list);
    list.gauge(c"memory_large", memory.large, "The engine's allocations beyond 64 KiB, in bytes")
        .unit(Unit::Bytes);
    list.gauge(
        c"memory_large_kept",
        memory.large_kept,
        "What is kept of allocations beyond 64 KiB that were freed, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(c"memory_leaves", memory.leaves, "Leaves, wherever their content is, in bytes")
        .unit(Unit::Bytes);
    list.gauge(c"memory_resident", memory.resident, "The process in memory, in bytes").unit(Unit::Bytes);
    list.gauge(c"memory_rest", memory.rest(), "What of the process in memory is not the engine's, in bytes")
        .unit(Unit::Bytes);
    list.counter(
        c"memory_rows_lost",
        lost_rows,
        "Changes that were passed over, as a restart has taken their rows",
    );
    list.gauge(c"memory_slabs", memory.slabs, "Blocks and changes in memory, in bytes").unit(Unit::Bytes);
    list.gauge(
        c"memory_slabs_kept",
        memory.slabs_kept,
        "What is free of the memory of blocks and changes and stays for the next, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(c"memory_small", memory.small, "The engine's other allocations, in bytes").unit(Unit::Bytes);
}

/// All of the engine's memory, by what it is for: the gauges that begin with `memory_of_`, which add up to it.
fn memory_by_purpose(numbers: &Statistics, list: &mut List) {
    let charged = |purpose: Purpose| numbers.charged[purpose as usize];
    let (memory, history) = (&numbers.memory, numbers.history.memory_bytes);
    let kept = memory.slabs_kept + memory.large_kept;
    let uses = [
        (c"memory_of_blocks", charged(Purpose::Blocks), "Blocks of leaves, unpacked or as they are stored"),
        (c"memory_of_catalog", numbers.catalog_bytes, "Open tables and their definitions"),
        (
            c"memory_of_changes",
            charged(Purpose::Rows).saturating_sub(history + numbers.lock_bytes),
            "Changes of leaves that are not in their blocks",
        ),
        (c"memory_of_checkpoints", charged(Purpose::Checkpoints), "Inner pages that a checkpoint writes"),
        (
            c"memory_of_dictionaries",
            charged(Purpose::Dictionaries),
            "Dictionaries, and samples that they are made of",
        ),
        (c"memory_of_history", history, "Old versions of rows that snapshots may need"),
        (c"memory_of_leaves", memory.leaves, "What stands for leaves and their pages, whatever is in memory"),
        (c"memory_of_locks", numbers.lock_bytes, "Row locks, and those who wait for them"),
        (c"memory_of_log", numbers.log_memory_bytes, "Records of the log on their way to the file"),
        (c"memory_of_recovery", charged(Purpose::Recovery), "Operations of the log that a start replays"),
        (c"memory_of_sorting", charged(Purpose::Sorting), "Entries of indexes that are being built"),
        (c"memory_of_spare", kept, "Free, and kept for the next that needs as much"),
        (c"memory_of_tables", numbers.memory_used_bytes, "Tables in memory (IN_MEMORY=YES)"),
        (
            c"memory_of_transactions",
            charged(Purpose::Transactions),
            "Redo and gathered entries of open transactions",
        ),
        (c"memory_of_values", charged(Purpose::Values), "Large values"),
    ];
    let known: u64 = uses.iter().map(|(_, bytes, _)| bytes).sum();
    let all = memory.slabs + memory.large + memory.leaves + memory.small + kept;
    let other =
        (c"memory_of_others", all.saturating_sub(known), "All else: sessions, single statements, threads");
    for (name, bytes, help) in uses.into_iter().chain([other]) {
        list.gauge(name, bytes, help).unit(Unit::Bytes);
    }
}

fn files(numbers: &Statistics, counts: &Counts, ranges: bool, list: &mut List) {
    let count = |count| counts.get(count);
    let reads = count(Count::BlocksRead) + count(Count::ValuesRead) + count(Count::SpillReads);
    let stored = count(Count::BlockBytesRead) + count(Count::ValueBytesRead);
    let writes = count(Count::FileWrites) + count(Count::SpillWrites);
    let written = count(Count::FileBytesWritten) + numbers.spill_written_bytes;
    list.counter(
        c"block_bytes_read",
        count(Count::BlockBytesRead),
        "Blocks and inner pages that were read from table files, as they are stored, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"blocks_read",
        count(Count::BlocksRead),
        "Blocks and inner pages that were read from table files",
    );
    list.counter(
        c"compress_bytes_in",
        count(Count::RawBytesPacked),
        "Blocks and large values to be written, before they were compressed, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"compress_bytes_out",
        count(Count::StoredBytesPacked),
        "Blocks and large values to be written, as they are stored, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(c"data_fsyncs", count(Count::FileSyncs), "Syncs of table files");
    list.counter(
        c"data_read",
        stored + numbers.spill_read_bytes,
        "Bytes that were read from table files and the spill file",
    )
    .unit(Unit::Bytes);
    list.counter(c"data_reads", reads, "Reads of table files and the spill file");
    list.counter(c"data_writes", writes, "Writes to table files and the spill file");
    list.counter(c"data_written", written, "Bytes that were written to table files and the spill file")
        .unit(Unit::Bytes);
    list.counter(
        c"decompress_bytes_in",
        stored,
        "Blocks and large values that were read, as they are stored, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"decompress_bytes_out",
        count(Count::RawBytesRead),
        "Blocks and large values that were read, decompressed, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"direct_bytes_written",
        numbers.direct_bytes,
        "Rows that loads wrote to table files past the log, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(
        c"lost_ranges",
        numbers.lost_ranges,
        "Ranges of keys that scans passed over, as they cannot be read",
    );
    list.time(
        c"read_microseconds",
        Timed::Read,
        ranges,
        "Time of reads that somebody waited for, background threads included",
    );
}

fn spills_and_values(numbers: &Statistics, counts: &Counts, list: &mut List) {
    list.counter(
        c"sort_runs_spilled",
        counts.get(Count::SortRunsSpilled),
        "Sorted runs of entries that went to the spill file",
    );
    list.counter(
        c"spill_bytes_read",
        numbers.spill_read_bytes,
        "What was read back from the spill file, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"spill_bytes_written",
        numbers.spill_written_bytes,
        "What was written to the spill file, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(c"spilled_bytes", numbers.spilled_bytes, "Disk that spilled data takes, in bytes")
        .unit(Unit::Bytes);
    list.counter(
        c"value_bytes_read",
        counts.get(Count::ValueBytesRead),
        "Large values that were read from table files, as they are stored, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(
        c"values_read",
        counts.get(Count::ValuesRead),
        "Large values that were read from table files",
    );
}

fn log(numbers: &Statistics, counts: &Counts, ranges: bool, list: &mut List) {
    list.counter(
        c"log_bytes_copied",
        numbers.log_copied_bytes,
        "Log that was written to copy what open transactions have in it, in bytes",
    )
    .unit(Unit::Bytes);
    list.gauge(
        c"log_bytes_pinned",
        numbers.log_pinned_bytes,
        "Log that open and prepared transactions keep, in bytes",
    )
    .unit(Unit::Bytes);
    list.counter(c"log_bytes_written", numbers.log_bytes, "Log that was written, in bytes").unit(Unit::Bytes);
    let syncs = list.time(c"log_sync_microseconds", Timed::LogSync, ranges, "Time of syncs of the log");
    list.counter(
        c"log_writes",
        counts.get(Count::LogWrites),
        "Groups of records that were written to the log",
    );
    list.gauge(c"lsn_flushed", numbers.log_synced, "Everything in the log before this is durable");
    list.counter(c"os_log_fsyncs", syncs, "Syncs of the log");
    list.counter(c"os_log_written", numbers.log_bytes, "The same as log_bytes_written, by InnoDB's name")
        .unit(Unit::Bytes);
    list.counter(
        c"replayed_operations",
        numbers.replayed_operations,
        "Operations that were replayed from the log at the start",
    );
}

fn checkpoints(engine: &EngineHandle, numbers: &Statistics, list: &mut List) {
    let age = numbers.log_bytes_since_checkpoint;
    list.gauge(c"checkpoint_age", age, "The same as log_bytes_since_checkpoint, by InnoDB's name")
        .unit(Unit::Bytes);
    list.gauge(
        c"checkpoint_max_age",
        2 * engine.core.settings().checkpoint_log_bytes(),
        "Where it is, writes wait for a checkpoint",
    )
    .unit(Unit::Bytes);
    list.gauge(
        c"checkpoint_newest",
        numbers.newest_checkpoint,
        "Number of the newest checkpoint since the directory was made",
    );
    list.counter(
        c"checkpoint_waits",
        numbers.checkpoint_waits,
        "Writes that waited since checkpoints were behind",
    );
    list.counter(c"checkpoints", numbers.checkpoints, "Checkpoints that became durable");
    list.counter(
        c"checkpoints_failed",
        numbers.failed_checkpoints,
        "Checkpoints that failed and were tried again later",
    );
    list.gauge(c"dirty_trees", numbers.dirty_trees, "Trees with changes that no checkpoint has");
    list.gauge(
        c"log_bytes_since_checkpoint",
        age,
        "Log that was written since the last checkpoint began, in bytes",
    )
    .unit(Unit::Bytes);
}
