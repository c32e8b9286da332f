//! The log on the simulated file system. Each record is a commit whose transaction id is its number, so that what a
//! scan finds can be compared with what was appended.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::sync::Mutex;

use super::prerequisites::Prerequisite;
use super::segment::{segment_path, FrameHeader, HEADER_BYTES};
use super::{Gathering, Log, LogRecord, Lsn, RedoBuffer};
use crate::file::{Fault, FileSystem, OpenMode, RealFileSystem, SimulatedFileSystem};
use crate::{CommitFlush, Error, Result, WriteOp};

const DIR: &str = "/log";
const SEGMENT_BYTES: u64 = 6000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// A record of about that size: nothing in it can be compressed.
pub(super) fn record(number: u64, bytes: usize) -> Vec<u8> {
    let mut redo = RedoBuffer::new();
    let mut state = number;
    let value: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    })
    .take(bytes)
    .collect();
    redo.push(1, 1, b"key", WriteOp::Insert(&value)).unwrap();
    LogRecord::Commit { txn: number, ops: redo.ops() }.encode()
}

pub(super) fn create(fs: &SimulatedFileSystem) -> Log {
    Log::create(Arc::new(fs.clone()), Path::new(DIR), SEGMENT_BYTES, 0).unwrap()
}

pub(super) fn numbers(fs: &SimulatedFileSystem, from: Lsn) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    Log::scan(fs, Path::new(DIR), from, &mut |_, record| {
        found.push(record.txn());
        Ok(())
    })?;
    Ok(found)
}

type Records = Vec<(Lsn, u64)>;

/// The recovered log, and start and transaction of its records.
fn recover_in(fs: Arc<dyn FileSystem>, dir: &Path, from: Lsn, threads: usize) -> Result<(Log, Records)> {
    let mut all = Records::new();
    let gathering = Gathering {
        threads,
        intact: &|_, _| Ok(true),
        visit: &|part: &mut Records, lsn, record| {
            part.push((lsn, record.txn()));
            Ok(())
        },
        absorb: &mut |part| all.extend(part),
    };
    let log = Log::recover(fs, dir, SEGMENT_BYTES, from, gathering)?.log;
    Ok((log, all))
}

fn recover(fs: &SimulatedFileSystem, from: Lsn) -> Result<(Log, Records)> {
    recover_in(Arc::new(fs.clone()), Path::new(DIR), from, 1)
}

fn commit(log: &Log, number: u64, bytes: usize, flush: CommitFlush) -> Result<Lsn> {
    log.commit(record(number, bytes), flush, |_| ())
}

fn segments(fs: &SimulatedFileSystem) -> Vec<Lsn> {
    super::segment::list_segments(fs, Path::new(DIR)).unwrap()
}

/// Flips a bit, durably.
fn damage(fs: &SimulatedFileSystem, path: &Path, offset: u64) {
    let file = fs.open(path, OpenMode::Existing).unwrap();
    let mut byte = [0];
    file.read_exact_at(offset, &mut byte).unwrap();
    file.write_at(offset, &[byte[0] ^ 0x10]).unwrap();
    file.sync().unwrap();
}

/// What a test knows about the log over several lives.
struct History {
    random: Random,
    /// Records that may be in the log, in log order, with end LSN and encoded size.
    possible: Vec<(u64, Lsn)>,
    sizes: HashMap<u64, u32>,
    /// So many of them must be there.
    durable: usize,
    /// What ran its closure in this life.
    published: Arc<Mutex<Vec<u64>>>,
    next: u64,
    from: Lsn,
}

impl History {
    fn new(seed: u64) -> History {
        History {
            random: Random(seed),
            possible: Vec::new(),
            sizes: HashMap::new(),
            durable: 0,
            published: Arc::default(),
            next: 1,
            from: 0,
        }
    }

    /// Recovers and checks that the log holds a prefix of what is possible, with all that is durable.
    fn recover(&mut self, fs: &SimulatedFileSystem) -> Log {
        let (log, records) =
            recover(fs, self.from).unwrap_or_else(|error| panic!("from {}: {error}", self.from));
        let end = |lsn, txn| lsn + FrameHeader::frame_bytes(self.sizes[&txn]);
        let found: Vec<_> = records.into_iter().map(|(lsn, txn)| (txn, end(lsn, txn))).collect();
        let (from, durable) =
            (self.from, self.possible.get(..self.durable).unwrap().last().map_or(0, |last| last.1));
        self.possible.retain(|&(_, end)| end > from);
        assert!(found.len() <= self.possible.len(), "{found:?} {:?}", self.possible);
        assert_eq!(found[..], self.possible[..found.len()]);
        assert!(self.possible[found.len()..].iter().all(|&(_, end)| end > durable), "lost a durable record");
        assert_eq!(log.end(), log.synced());
        self.possible = found;
        self.durable = self.possible.len();
        self.published.lock().clear();
        log
    }

    /// One random operation; false when the log has failed for good.
    fn step(&mut self, log: &Log) -> bool {
        let number = self.next;
        let bytes = match self.random.below(12) {
            0 => 5000 + self.random.below(6000),
            1..=3 => 500 + self.random.below(1000),
            _ => self.random.below(100),
        };
        let encoded = record(number, bytes as usize);
        self.sizes.insert(number, encoded.len() as u32);
        let published = self.published.clone();
        let publish = move |_| published.lock().push(number);
        let kind = self.random.below(8);
        let outcome = match kind {
            0..=2 => log.commit(encoded, CommitFlush::Sync, publish).map(Some),
            3 => log.commit(encoded, CommitFlush::Write, publish).map(Some),
            4 => log.commit(encoded, CommitFlush::Lazy, publish).map(Some),
            5 => log.append(encoded).map(Some),
            6 if self.random.below(4) > 0 => log.sync_up_to(log.end()).map(|()| None),
            6 => {
                // As a checkpoint does: what is before needs no replay.
                self.from =
                    self.possible[..self.durable].last().map_or(self.from, |last| last.1).max(self.from);
                log.release_before(self.from).map(|()| None)
            }
            _ => log.harden(encoded, CommitFlush::Sync).map(Some),
        };
        let poisoned = matches!(outcome, Err(Error::ReadOnly(_)));
        match outcome {
            Ok(end) => self.possible.extend(end.map(|end| (number, end))),
            // Unknown: it may be there after all.
            Err(_) if poisoned && kind != 6 => self.possible.push((number, log.end())),
            Err(_) => {}
        }
        self.next += 1;
        let synced = log.synced();
        self.durable = self.durable.max(self.possible.iter().take_while(|&&(_, end)| end <= synced).count());
        !poisoned
    }

    /// What was published must be in the log's order, and nothing that failed may be among it.
    fn check_published(&self) {
        let mut order = self.possible.iter().map(|&(number, _)| number);
        for number in self.published.lock().iter() {
            assert!(
                order.any(|other| other == *number),
                "{number} was published but is not in the log, or out of order"
            );
        }
    }

    /// Lives until a fault ends it or `steps` are done.
    fn live(&mut self, fs: &SimulatedFileSystem, log: &Log, steps: u64) {
        let heal_at = self.random.below(steps);
        match self.random.below(9) {
            0..=5 => fs.fail_after(self.random.below(60), Fault::PowerCut),
            6 => fs.fail_after(self.random.below(40), Fault::Eio),
            7 => fs.fail_from(self.random.below(40), Fault::Enospc),
            _ => {}
        }
        for step in 0..steps {
            if !self.step(log) || fs.power_is_off() {
                break;
            }
            if step == heal_at && !fs.power_is_off() {
                fs.heal();
            }
        }
        fs.heal();
        self.check_published();
    }
}

#[test]
fn the_recovered_log_is_a_prefix_with_all_that_was_acknowledged_over_many_crashes() {
    let rounds = std::env::var("TEAK_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let first = std::env::var("TEAK_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + rounds {
        let outcome = std::panic::catch_unwind(|| survive(seed));
        assert!(outcome.is_ok(), "failed with TEAK_SEED={seed}");
    }
}

fn survive(seed: u64) {
    let mut fs = SimulatedFileSystem::new(seed);
    let mut history = History::new(seed);
    let mut log = create(&fs);
    for _ in 0..6 {
        history.live(&fs, &log, 60);
        drop(log);
        // Otherwise only the process dies.
        if fs.power_is_off() || history.random.below(2) == 0 {
            fs = fs.crash();
        }
        if history.random.below(3) == 0 {
            fs.fail_after(history.random.below(8), Fault::PowerCut);
            let _ = recover(&fs, history.from);
            fs = fs.crash();
        }
        log = history.recover(&fs);
    }
}

#[test]
fn damage_before_synced_records_is_corruption_that_names_file_and_offset() {
    let fs = SimulatedFileSystem::new(1);
    let log = create(&fs);
    let ends: Vec<Lsn> = (0..40).map(|i| commit(&log, i, 300, CommitFlush::Sync).unwrap()).collect();
    drop(log);
    let starts = segments(&fs);
    assert!(starts.len() > 2);
    for (i, pair) in ends[..39].windows(2).enumerate() {
        let start = *starts.iter().rfind(|&&start| start <= pair[0]).unwrap();
        let path = segment_path(Path::new(DIR), start);
        let offset = HEADER_BYTES + pair[0] - start;
        damage(&fs, &path, offset + i as u64 * 7 % 300);
        match numbers(&fs, 0) {
            Err(Error::Corrupt { path: found, offset: at, .. }) => assert_eq!((&found, at), (&path, offset)),
            other => panic!("record {i}: {other:?}"),
        }
        // A second flip repairs it.
        damage(&fs, &path, offset + i as u64 * 7 % 300);
    }
    assert_eq!(numbers(&fs, 0).unwrap().len(), 40);
}

#[test]
fn a_damaged_header_and_a_missing_segment_are_corruption() {
    let fs = SimulatedFileSystem::new(1);
    let log = create(&fs);
    for number in 0..40 {
        commit(&log, number, 300, CommitFlush::Sync).unwrap();
    }
    let starts = segments(&fs);
    let path = segment_path(Path::new(DIR), starts[1]);
    fs.remove(&path).unwrap();
    assert!(matches!(numbers(&fs, 0), Err(Error::Corrupt { .. })));
    let path = segment_path(Path::new(DIR), starts[2]);
    damage(&fs, &path, 17);
    let error = numbers(&fs, starts[2]).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path: found, .. } if *found == path), "{error}");
}

#[test]
fn a_log_that_ends_before_the_start_of_the_replay_is_corruption() {
    let fs = SimulatedFileSystem::new(1);
    let log = create(&fs);
    let end = commit(&log, 1, 10, CommitFlush::Sync).unwrap();
    assert_eq!(numbers(&fs, end).unwrap(), []);
    assert!(matches!(numbers(&fs, end + 8), Err(Error::Corrupt { .. })));
    assert!(matches!(numbers(&fs, Lsn::MAX), Err(Error::Corrupt { .. })));
}

#[test]
fn a_damaged_end_is_where_the_log_ends() {
    let fs = SimulatedFileSystem::new(1);
    let log = create(&fs);
    let ends: Vec<Lsn> = (0..5).map(|i| commit(&log, i, 100, CommitFlush::Write).unwrap()).collect();
    damage(&fs, &segment_path(Path::new(DIR), 0), HEADER_BYTES + ends[2] + 30);
    // Records 3 and 4 were never synced, so 3 is no damage, and 4 must not come back after new ones.
    assert_eq!(numbers(&fs, 0).unwrap(), [0, 1, 2]);
    let log = recover(&fs, 0).unwrap().0;
    assert_eq!(log.end(), ends[2]);
    commit(&log, 9, 100, CommitFlush::Sync).unwrap();
    assert_eq!(numbers(&fs, 0).unwrap(), [0, 1, 2, 9]);
}

#[test]
fn a_full_disk_fails_commits_and_keeps_what_was_appended() {
    let fs = SimulatedFileSystem::new(3);
    let log = create(&fs);
    commit(&log, 1, 100, CommitFlush::Sync).unwrap();
    fs.fail_from(0, Fault::Enospc);
    log.append(record(2, 100)).unwrap();
    commit(&log, 3, 100, CommitFlush::Lazy).unwrap();
    for number in 10..20 {
        let result = log.commit(record(number, 3000), CommitFlush::Sync, |_| panic!("published"));
        assert!(matches!(result, Err(Error::DiskFull { .. })), "{result:?}");
    }
    fs.heal();
    let end = commit(&log, 4, 100, CommitFlush::Sync).unwrap();
    assert_eq!((log.end(), log.synced(), log.published()), (end, end, end));
    let fs = fs.crash();
    assert_eq!(numbers(&fs, 0).unwrap(), [1, 2, 3, 4]);
    assert_eq!(numbers(&fs, end).unwrap(), []);
}

#[test]
fn a_failed_sync_makes_the_log_read_only() {
    let fs = SimulatedFileSystem::new(3);
    let log = create(&fs);
    commit(&log, 1, 100, CommitFlush::Write).unwrap();
    fs.fail_after(0, Fault::Eio);
    assert!(matches!(log.sync_up_to(log.end()), Err(Error::ReadOnly(_))));
    for flush in [CommitFlush::Lazy, CommitFlush::Sync, CommitFlush::Write] {
        assert!(matches!(commit(&log, 2, 1, flush), Err(Error::ReadOnly(_))));
    }
    assert!(matches!(log.append(record(2, 1)), Err(Error::ReadOnly(_))));
}

/// Commits while the log waits for it.
struct Busy(Arc<Log>);

impl Prerequisite for Busy {
    fn make_durable(&self) -> Result<()> {
        for (number, flush) in [(2, CommitFlush::Write), (3, CommitFlush::Lazy)] {
            commit(&self.0, number, 100, flush)?;
        }
        Ok(())
    }
}

#[test]
fn commits_that_want_no_sync_go_on_while_the_log_is_synced() {
    let fs = SimulatedFileSystem::new(3);
    let log = Arc::new(create(&fs));
    let first = commit(&log, 1, 100, CommitFlush::Write).unwrap();
    log.rely_on(1, Arc::new(Busy(log.clone())));
    log.sync_up_to(first).unwrap();
    assert_eq!(log.synced(), first, "what came later is not known to be durable");
    assert!(first < log.written() && log.written() < log.end());
    log.sync_up_to(log.end()).unwrap();
    assert_eq!(numbers(&fs.crash(), 0).unwrap(), [1, 2, 3]);
}

#[test]
fn released_segments_are_used_again_and_their_number_is_bounded() {
    let fs = SimulatedFileSystem::new(3);
    let log = create(&fs);
    for number in 0..300 {
        let end = commit(&log, number, 1000, CommitFlush::Sync).unwrap();
        log.release_before(end).unwrap();
        assert!(fs.list(Path::new(DIR)).unwrap().len() <= 6);
    }
    assert_eq!(numbers(&fs, log.end()).unwrap(), []);
    assert!(
        fs.list(Path::new(DIR)).unwrap().iter().any(|name| name.starts_with("spare-"))
            || segments(&fs).len() == 1
    );
}

#[test]
fn a_full_disk_gets_back_what_waits_for_reuse() {
    let fs = SimulatedFileSystem::new(3);
    let log = create(&fs);
    let spares = || {
        let names = fs.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.starts_with("spare-")).count()
    };
    for number in 0..40 {
        commit(&log, number, 1000, CommitFlush::Sync).unwrap();
    }
    log.release_before(log.end()).unwrap();
    assert!(spares() > 1);
    fs.fail_after(0, Fault::Enospc);
    let end = commit(&log, 40, 100, CommitFlush::Sync).unwrap();
    assert_eq!(spares(), 0);
    fs.fail_after(0, Fault::Enospc);
    assert!(matches!(commit(&log, 41, 100, CommitFlush::Sync), Err(Error::DiskFull { .. })));
    commit(&log, 42, 100, CommitFlush::Sync).unwrap();
    let fs = fs.crash();
    assert_eq!(numbers(&fs, end).unwrap(), [42]);
}

#[test]
fn a_scan_from_the_middle_of_a_record_starts_at_the_next() {
    let fs = SimulatedFileSystem::new(3);
    let log = create(&fs);
    let ends: Vec<Lsn> = (0..4).map(|i| commit(&log, i, 100, CommitFlush::Sync).unwrap()).collect();
    assert_eq!(numbers(&fs, ends[0]).unwrap(), [1, 2, 3]);
    assert_eq!(numbers(&fs, ends[0] + 8).unwrap(), [2, 3]);
}

#[test]
fn creation_replaces_an_empty_log_and_refuses_one_with_records() {
    let fs = SimulatedFileSystem::new(3);
    drop(create(&fs));
    let log = create(&fs);
    commit(&log, 1, 1, CommitFlush::Sync).unwrap();
    assert!(matches!(
        Log::create(Arc::new(fs.clone()), Path::new(DIR), SEGMENT_BYTES, 0),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn damage_of_the_last_synced_group_is_told_once_the_log_was_quiet() {
    let fs = SimulatedFileSystem::new(4);
    let log = create(&fs);
    commit(&log, 1, 100, CommitFlush::Sync).unwrap();
    let last = log.end();
    commit(&log, 2, 100, CommitFlush::Sync).unwrap();
    for _ in 0..3 {
        log.seal().unwrap();
    }
    assert_eq!(log.end(), log.written());
    let sealed = log.end();
    log.sync_up_to(sealed).unwrap();
    log.seal().unwrap();
    assert_eq!(log.end(), sealed, "one seal is enough");
    assert_eq!(numbers(&fs, 0).unwrap(), [1, 2]);
    for at in [0, 30] {
        let fs = fs.crash();
        damage(&fs, &segment_path(Path::new(DIR), 0), HEADER_BYTES + last + at);
        assert!(matches!(numbers(&fs, 0), Err(Error::Corrupt { .. })), "byte {at} of the last record");
    }
}

#[test]
fn a_damaged_log_that_is_not_needed_starts_anew_where_it_ended() {
    let fs = SimulatedFileSystem::new(6);
    let log = create(&fs);
    for number in 0..9 {
        commit(&log, number, 3000, CommitFlush::Sync).unwrap();
    }
    let end = log.end();
    drop(log);
    damage(&fs, &segment_path(Path::new(DIR), *segments(&fs).last().unwrap()), 1);
    assert!(numbers(&fs, end).is_err());
    let log = Log::start_anew(Arc::new(fs.clone()), Path::new(DIR), SEGMENT_BYTES, end).unwrap();
    assert_eq!((log.end(), numbers(&fs, end).unwrap()), (end, vec![]));
    drop(log);
    let fs = fs.crash();
    let log = Log::start_anew(Arc::new(fs.clone()), Path::new(DIR), SEGMENT_BYTES, end).unwrap();
    commit(&log, 9, 10, CommitFlush::Sync).unwrap();
    let fs = fs.crash();
    assert_eq!(numbers(&fs, end).unwrap(), [9]);
}

#[test]
fn an_unknown_version_is_refused() {
    let fs = SimulatedFileSystem::new(3);
    drop(create(&fs));
    damage(&fs, &segment_path(Path::new(DIR), 0), 8);
    assert!(matches!(numbers(&fs, 0), Err(Error::UnknownVersion { .. })));
}

/// Threads commit in all modes while the disk is full now and then.
#[test]
fn concurrent_commits_are_grouped_published_in_order_and_recovered() {
    let fs = SimulatedFileSystem::new(5);
    let log = create(&fs);
    let published = Mutex::new(Vec::new());
    let succeeded = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (log, fs, published, succeeded) = (&log, &fs, &published, &succeeded);
            scope.spawn(move || {
                for i in 0..150 {
                    let number = thread * 1000 + i;
                    let data = record(number, (number % 700) as usize);
                    let flush =
                        [CommitFlush::Sync, CommitFlush::Write, CommitFlush::Lazy][(number % 7 / 3) as usize];
                    if thread == 0 && i % 50 == 20 {
                        fs.fail_from(3, Fault::Enospc);
                    } else if thread == 0 && i % 50 == 30 {
                        fs.heal();
                    }
                    let outcome = match number % 5 {
                        0 => log.harden(data, flush),
                        1 => log.append(data),
                        _ => log.commit(data, flush, |end| published.lock().push((end, number))),
                    };
                    match outcome {
                        Ok(end) => succeeded.lock().push((end, number)),
                        Err(Error::DiskFull { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    fs.heal();
    log.sync_up_to(log.end()).unwrap();
    assert_eq!(log.published(), log.end());
    let mut succeeded = succeeded.into_inner();
    succeeded.sort_unstable();
    let published = published.into_inner();
    assert!(published.is_sorted());
    let commits: Vec<_> = succeeded.iter().copied().filter(|(_, number)| number % 5 > 1).collect();
    assert_eq!(published, commits);
    let expected: Vec<u64> = succeeded.iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers(&fs.crash(), 0).unwrap(), expected);
}

#[test]
fn the_log_works_on_the_real_file_system() {
    let dir = std::env::temp_dir().join(format!("teak-log-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let fs = Arc::new(RealFileSystem);
    let log = Log::create(fs.clone(), &dir, SEGMENT_BYTES, 0).unwrap();
    for number in 0..50 {
        let bytes = if number == 7 { 1 << 20 } else { 500 };
        log.commit(record(number, bytes), CommitFlush::Write, |_| ()).unwrap();
    }
    drop(log);
    let (log, records) = recover_in(fs, &dir, 0, 3).unwrap();
    let found: Vec<_> = records.into_iter().map(|(_, txn)| txn).collect();
    assert_eq!(found, (0..50).collect::<Vec<_>>());
    commit(&log, 50, 10, CommitFlush::Sync).unwrap();
    assert_eq!(Log::scan(&*Arc::new(RealFileSystem), &dir, 0, &mut |_, _| Ok(())).unwrap(), log.end());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_record_reported_as_failed_does_not_appear_after_a_crash_though_its_bytes_were_written() {
    for seed in 0..20 {
        let fs = SimulatedFileSystem::new(seed);
        let log = create(&fs);
        commit(&log, 1, 100, CommitFlush::Sync).unwrap();
        // Header and payload of a large record go out by themselves; only the padding fails.
        let bytes = (300 << 10..).find(|&bytes| record(2, bytes).len() % 8 == 5).unwrap();
        let before = fs.operations();
        commit(&log, 2, bytes, CommitFlush::Sync).unwrap();
        let operations = fs.operations() - before;
        // Header, payload, padding, sync in the segment that record 2 started and overfilled; again for record 3.
        fs.fail_after(operations - 2, Fault::Enospc);
        let failed = commit(&log, 3, bytes, CommitFlush::Sync);
        assert!(matches!(failed, Err(Error::DiskFull { .. })), "{failed:?}");
        assert_eq!(numbers(&fs, 0).unwrap(), [1, 2]);
        assert_eq!(numbers(&fs.crash(), 0).unwrap(), [1, 2]);
    }
}

/// The length of the newest segment's file, and the log's end in it.
fn length_and_end(fs: &SimulatedFileSystem, log: &Log) -> (u64, u64) {
    let newest = *segments(fs).last().unwrap();
    let file = fs.open(&segment_path(Path::new(DIR), newest), OpenMode::ReadOnly).unwrap();
    (file.len().unwrap(), HEADER_BYTES + log.end() - newest)
}

#[test]
fn a_new_segment_has_its_blocks_before_small_records_need_them() {
    let fs = SimulatedFileSystem::new(0);
    let log = Log::create(Arc::new(fs.clone()), Path::new(DIR), 300 << 10, 0).unwrap();
    let mut lengths = Vec::new();
    for number in 0..3000 {
        commit(&log, number, 100, CommitFlush::Sync).unwrap();
        let (length, end) = length_and_end(&fs, &log);
        assert!(length >= end && length <= HEADER_BYTES + (300 << 10), "{length} for {end}");
        lengths.push(length);
    }
    lengths.dedup();
    assert!(segments(&fs).len() > 1 && lengths.len() <= 2 * segments(&fs).len(), "{lengths:?}");
    assert_eq!(numbers(&fs.crash(), 0).unwrap(), (0..3000).collect::<Vec<_>>());
}

#[test]
fn records_need_no_room_for_the_zeros_behind_them() {
    let fs = SimulatedFileSystem::new(0);
    let log = Log::create(Arc::new(fs.clone()), Path::new(DIR), 1 << 20, 0).unwrap();
    // The record is written, its zeros are not.
    fs.fail_after(1, Fault::Enospc);
    commit(&log, 0, 100, CommitFlush::Sync).unwrap();
    let (length, end) = length_and_end(&fs, &log);
    assert!((end..256 << 10).contains(&length), "{length} for {end}");
    for number in 1..100 {
        commit(&log, number, 100, CommitFlush::Sync).unwrap();
    }
    assert_eq!(numbers(&fs.crash(), 0).unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_does_not_refuse_a_decision() {
    let fs = SimulatedFileSystem::new(0);
    let log = create(&fs);
    fs.fail_from(0, Fault::Enospc);
    let large = || record(1, 3 << 20);
    let queued = (0..10).take_while(|_| log.append(large()).is_ok()).count();
    assert!(queued < 10, "the queue has a bound");
    log.append_decision(record(2, 10)).unwrap();
    fs.heal();
    log.sync_up_to(log.end()).unwrap();
    assert_eq!(numbers(&fs.crash(), 0).unwrap().last(), Some(&2));
}
