//! Opening an engine: making its directory, or recovering what is there.

mod spaces;

use self::spaces::Spaces;
use super::care::{background, Care};
use super::data::settings::Settings;
use super::data::statistics::{Counters, Memory};
use super::data::tables::Table;
use super::data::Data;
use super::definitions::Definitions;
use super::shared::{Health, Ids, Shared};
use super::txn::work::Work;
use super::txn::Undecided;
use crate::cache::{Cache, Usage};
use crate::catalog::{
    log_dir, space_file_name, space_of_file_name, superblock_path, Contained, Counted, SystemTrees,
    FIRST_TREE, SYSTEM_SPACE,
};
use crate::checkpoint::direct::Inspection;
use crate::checkpoint::recovery::{replay, Plan, Replayed, Survey, SurveyPart};
use crate::checkpoint::{Checkpointer, PersistedCounter};
use crate::file::{
    memory_limit, DiskReserve, File, FileSystem, OpenMode, ReadOnlyFileSystem, SparingFileSystem,
};
use crate::lock::LockManager;
use crate::log::{Gathering, Log, LogRecord, Lsn, Segments};
use crate::mvcc::{Clock, TxnStatus};
use crate::options::{ForceRecovery, LogLevel, Options};
use crate::slabs::{free_in_heaps, taken_bytes};
use crate::store::{spare_path, Features, Newest, OpenFiles, Release, Space, SpillFile, Superblock};
use crate::sync::Mutex;
use crate::tree::{Tree, TreeContext};
use crate::types::TreeId;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

const LOCK: &str = "teak.lock";
const RESERVE: &str = "teak.reserve";

/// Catalog and directory as `superblock` has them.
fn open_system(
    files: &Arc<OpenFiles>,
    options: &Options,
    superblock: &Superblock,
    context: &Arc<TreeContext>,
) -> Result<SystemTrees> {
    let path = options.dir.join(space_file_name(SYSTEM_SPACE));
    let space = Space::open_twice(files, &path, SYSTEM_SPACE, superblock.system_map)?;
    SystemTrees::open(space, superblock.directory, context)
}

fn disk_reserve(fs: &Arc<dyn FileSystem>, options: &Options) -> Arc<DiskReserve> {
    let path = options.dir.join(RESERVE);
    Arc::new(DiskReserve::new(fs.clone(), &path, options.disk_reserve_bytes))
}

/// What a server needs beyond the cache, if there is little work: its own code, sessions, a checkpoint.
const BESIDE_CACHE_BYTES: u64 = 160 << 20;

/// A cache that cannot be had is said at the start, not by the kernel at the first busy hour.
fn mind_memory_limit(options: &Options) {
    let Some(limit) = memory_limit() else { return };
    let needed =
        options.cache_bytes.saturating_add(options.cache_bytes / 20).saturating_add(BESIDE_CACHE_BYTES);
    if needed > limit.bytes {
        let text = format!(
            "the cache is to have {} MiB, which the server will need {} MiB for, and {} has {} MiB: \
             the kernel may end the server when the cache is full. Lower teak_cache_size",
            options.cache_bytes >> 20,
            needed >> 20,
            if limit.of_group { "its memory group" } else { "this machine" },
            limit.bytes >> 20,
        );
        options.observer.message(LogLevel::Warning, &text);
    }
}

/// What the log's buffers take beside the cache, as the manual says: 8 MiB are queued at most while 4 MiB are written.
const LOG_BYTES: usize = 16 << 20;

fn open_cache(options: &Options) -> Result<Arc<Cache>> {
    let cache = Arc::new(Cache::new(options.cache_bytes, options.observer.clone()));
    if options.background {
        mind_memory_limit(options);
        cache.start()?;
    }
    Ok(cache)
}

/// What the opening found, and what it holds.
pub(super) struct Opening {
    /// What was committed behind some position of the log is missing, in all tables.
    pub log_is_cut: bool,
    /// The exclusive lock on the directory; given up when the engine is closed.
    pub directory_lock: Mutex<Option<Box<dyn Send + Sync>>>,
    /// Where the log ended.
    pub log_start: Lsn,
    pub replayed_operations: u64,
}

/// Opens the engine in `options.dir`.
pub(super) fn open(fs: Arc<dyn FileSystem>, options: Options) -> Result<Arc<Shared>> {
    let sparing = Arc::new(SparingFileSystem::new(fs));
    let fs: Arc<dyn FileSystem> = sparing.clone();
    let spill = create_spill(&*fs, &options)?;
    let fs: Arc<dyn FileSystem> = match options.force_recovery >= ForceRecovery::ReadOnly {
        true => Arc::new(ReadOnlyFileSystem(fs)),
        false => fs,
    };
    let directory_lock = fs.lock_exclusive(&options.dir.join(LOCK))?;
    let files = OpenFiles::new(fs.clone(), options.open_files);
    sparing.set_idle(Arc::<OpenFiles>::downgrade(&files));
    let superblock_path = superblock_path(&options.dir);
    let superblock = find_superblock(&fs, &files, &options, &superblock_path)?;
    if !fs.is_read_only() {
        superblock.check_writing(&superblock_path)?;
    }
    let cache = open_cache(&options)?;
    let clock = Clock::with_time(superblock.timestamp, options.time.clone());
    let locks = LockManager::with_time(Some(cache.clone()), options.time.clone());
    let context = tree_context(cache, &clock, spill, &options);
    let settings = Settings::new(&options, files.clone(), context.clone(), locks.clone());
    let system = Arc::new(open_system(&files, &options, &superblock, &context)?);

    let counted = contained(&system, &superblock)?;
    let (log, survey, log_is_cut) = match fs.is_read_only() {
        true => read_log(&fs, &options, &superblock)?,
        false => {
            recover_log(&fs, &options, &superblock, &counted).map(|(log, survey)| (log, survey, false))?
        }
    };
    let log = Arc::new(log);
    let reserve = disk_reserve(&fs, &options);
    log.set_reserve(reserve.clone());
    let superblocks = open_superblocks(&*fs, &superblock_path, &superblock)?;
    let frames = (context.frame_bytes.clone(), options.frame_bytes);
    let checkpointer =
        Checkpointer::new(superblocks, log.clone(), clock.clone(), system.clone(), &superblock, frames);
    let opening = Opening {
        log_is_cut,
        directory_lock: Mutex::new(Some(directory_lock)),
        log_start: log.end(),
        replayed_operations: 0,
    };
    let mut shared = Shared {
        fs,
        files,
        dir: options.dir.clone(),
        background: options.background && options.force_recovery < ForceRecovery::ReadOnly,
        force_recovery: options.force_recovery,
        observer: options.observer.clone(),
        settings,
        redo_bytes: options.redo_bytes,
        time: options.time.clone(),
        clock,
        locks,
        log,
        context,
        system,
        care: Care::new(checkpointer, counted.clone(), superblock.replay_from, &options),
        counted: Counters::default(),
        ids: ids_after(&superblock, &survey),
        health: Health::default(),
        reserve,
        definitions: Definitions::default(),
        data: Data::default(),
        undecided: Undecided::new(&options.time),
        opening,
    };
    recover(&mut shared, &superblock, survey, counted, &options)?;
    begin(shared, options.force_recovery)
}

/// Which commits the images contain. Without checkpoint there is none.
fn contained(system: &SystemTrees, superblock: &Superblock) -> Result<Contained> {
    let common = system.counted()?.unwrap_or_else(|| Counted::nothing(superblock.replay_from));
    Ok(Contained { common, apart: system.counted_apart()? })
}

/// What is recovered is told of, and begins to work.
fn begin(shared: Shared, force_recovery: ForceRecovery) -> Result<Arc<Shared>> {
    shared.tell_remarks();
    if force_recovery >= ForceRecovery::ReadOnly {
        shared.health.fail("it was started for reading only, to save what is readable");
    }
    if force_recovery > ForceRecovery::Off {
        let text = format!(
            "started with recovery forced ({force_recovery:?}): save the tables, and start without it"
        );
        shared.observer.message(LogLevel::Warning, &text);
    }
    if !shared.fs.is_read_only() {
        shared.fill_reserve();
    }
    shared.ids.begin_run();
    let shared = Arc::new(shared);
    if shared.background {
        background::start(&shared)?;
    }
    Ok(shared)
}

/// What all trees have in common.
fn tree_context(
    cache: Arc<Cache>,
    clock: &Arc<Clock>,
    spill: Arc<SpillFile>,
    options: &Options,
) -> Arc<TreeContext> {
    let memory = Cache::of_tables(options.memory_max_bytes, options.observer.clone());
    let context = TreeContext::new(
        cache.clone(),
        memory.clone(),
        clock.clone(),
        spill,
        options.dictionary_sample_bytes,
    );
    if options.owns_heap {
        count_rest(&cache, memory, context.leaves.clone());
    }
    if options.force_recovery > ForceRecovery::Off {
        context.pass_over_damage(options.observer.clone());
    }
    Arc::new(context)
}

/// Has the cache pay for all that is the engine's, but the tables that live in memory and leaves; and for holes, as far
/// as the process has more beside the engine than it began with. The log's buffers are beside the cache.
fn count_rest(cache: &Cache, memory: Arc<Cache>, leaves: Arc<Usage>) {
    let others = Memory::now(leaves.exact()).rest();
    let known = leaves.clone();
    let holes = move || {
        let more = Memory::now(known.exact()).rest().saturating_sub(others);
        more.min(free_in_heaps() as u64)
    };
    let besides = move || memory.used() + leaves.exact();
    cache.count_rest(move || (taken_bytes(LOG_BYTES) as u64).saturating_sub(besides()), holes);
}

/// Identifiers that neither the image nor the log has.
fn ids_after(superblock: &Superblock, survey: &Survey) -> Ids {
    Ids {
        tree: superblock.next_tree.max(FIRST_TREE).into(),
        txn: superblock.next_txn.max(survey.last_txn.saturating_add(1)).into(),
        space: superblock.next_space.max(1).into(),
        first_space: u32::MAX.into(),
    }
}

/// The second file of the superblocks, if there could be one.
type Spare = Option<Arc<dyn File>>;

/// The file of the superblocks, which says from now on that the log may have what the image has not; unless it is only
/// read.
fn open_superblocks(fs: &dyn FileSystem, path: &Path, newest: &Superblock) -> Result<(Arc<dyn File>, Spare)> {
    if fs.is_read_only() {
        // Nothing is written to it; it may be the spare one that the superblock is from.
        let file = fs.open(path, OpenMode::ReadOnly);
        return Ok((file.or_else(|_| fs.open(&spare_path(path), OpenMode::ReadOnly))?, None));
    }
    let opened = Superblock { clean: false, ..*newest };
    let file = opened.make_durable(fs, path)?;
    sync_parent(fs, path.parent().unwrap_or(path))?;
    // Without it there is one place less to save things from. What it has may be of another engine, or of an image that
    // a backup has taken the place of.
    let spare = fs.open(&spare_path(path), OpenMode::Create);
    let spare = spare.and_then(|spare| {
        spare.set_len(0)?;
        opened.write_spare(&*spare).map(|()| spare)
    });
    Ok((file, spare.ok()))
}

/// The file for what memory cannot hold. Who only reads may have no directory of his own to write to.
fn create_spill(fs: &dyn FileSystem, options: &Options) -> Result<Arc<SpillFile>> {
    let create = |dir: &Path| {
        fs.create_dir(dir)?;
        SpillFile::create(fs, dir, options.spill_max_bytes)
    };
    if options.force_recovery >= ForceRecovery::ReadOnly {
        return create(&options.temp_dir).or_else(|_| create(&std::env::temp_dir()));
    }
    fs.create_dir(&options.dir)?;
    create(&options.temp_dir)
}

/// The superblock to begin from; that of a new engine, if there is none. Who saves what is readable may begin from the
/// spare file.
fn find_superblock(
    fs: &Arc<dyn FileSystem>,
    files: &Arc<OpenFiles>,
    options: &Options,
    path: &Path,
) -> Result<Superblock> {
    let found = match Superblock::read(&**fs, path) {
        Ok(Some(newest)) => return trusted(newest, options),
        Ok(None) => create(fs, files, options, path),
        Err(error) => Err(error),
    };
    let Err(error @ Error::Corrupt { .. }) = found else { return found };
    let Some(spare) = Superblock::read_spare(&**fs, path) else { return Err(error) };
    let (of, number) = (spare_path(path), spare.checkpoint);
    if options.force_recovery < ForceRecovery::WithoutLog {
        let detail = format!(
            "there is no superblock in it ({error}); {} has one of checkpoint {number}, from which what is readable can be saved: \
             teak_force_recovery=3, or teak salvage",
            of.display()
        );
        return Err(Error::corrupt(path, 0, detail));
    }
    let text = format!(
        "superblock {number} of {} is used; if there was a newer one, what was written since is missing or cannot be read: {error}",
        of.display()
    );
    options.observer.message(LogLevel::Error, &text);
    Ok(spare)
}

/// The newest superblock, unless there may have been a newer one.
fn trusted(newest: Newest, options: &Options) -> Result<Superblock> {
    for (level, text) in &newest.remarks {
        options.observer.message(*level, text);
    }
    match newest.doubt {
        Some(doubt) if options.force_recovery < ForceRecovery::WithoutLog => Err(doubt),
        Some(doubt) => {
            options.observer.message(LogLevel::Error, &doubt.to_string());
            Ok(newest.superblock)
        }
        None => Ok(newest.superblock),
    }
}

/// An error if `known`, a checkpoint that the log has, is newer than that of the superblock.
fn check_newest(known: u64, superblock: &Superblock, dir: &Path) -> Result<()> {
    if known <= superblock.checkpoint {
        return Ok(());
    }
    let detail = format!(
        "the log knows that checkpoint {} was durable, and the newest superblock is of checkpoint {}: the file is from a backup, or \
         the superblock was lost",
        known, superblock.checkpoint
    );
    Err(Error::corrupt(superblock_path(dir), 0, detail))
}

/// [`recover_log`] for an engine that is only read. With [`ForceRecovery::WithoutLog`] the log ends at the first
/// damage, or where it needs a newer image than the superblock's; and the third result is that it does.
fn read_log(
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    superblock: &Superblock,
) -> Result<(Log, Survey, bool)> {
    let (dir, from) = (log_dir(&options.dir), superblock.replay_from);
    let (mut survey, mut end, mut is_cut) = (Survey::default(), from, false);
    let scanned = Log::scan(&**fs, &dir, from, &mut |lsn, record| {
        if let LogRecord::Checkpoint { number } = record {
            check_newest(number, superblock, &options.dir)?;
        }
        survey.visit(lsn, record);
        end = lsn + 1;
        Ok(())
    });
    match scanned {
        Err(error) if options.force_recovery >= ForceRecovery::WithoutLog => {
            let text = format!("of the log, only what lies before position {end} is used: {error}");
            options.observer.message(LogLevel::Error, &text);
            is_cut = true;
        }
        // Damage of a log that is not needed.
        Err(Error::Corrupt { .. }) if superblock.closed_cleanly() => {}
        other => end = other?,
    }
    Ok((Log::look_at(fs.clone(), &dir, options.log_segment_bytes, end)?, survey, is_cut))
}

/// The log, positioned at its end, and what the first pass over it found.
fn recover_log(
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    superblock: &Superblock,
    counted: &Contained,
) -> Result<(Log, Survey)> {
    let (dir, from) = (log_dir(&options.dir), superblock.replay_from);
    let mut survey = Survey::default();
    let threads = options.recovery_threads;
    let inspection = Inspection::new(&**fs, options.dir.clone(), counted, threads);
    let gathering = Gathering {
        threads,
        intact: &|lsn, record| inspection.is_intact(lsn, record),
        visit: &|part: &mut SurveyPart, lsn, record| {
            part.visit(lsn, record);
            Ok(())
        },
        absorb: &mut |part| survey.absorb(part),
    };
    let recovered = Log::recover(fs.clone(), &dir, options.log_segment_bytes, from, gathering);
    match recovered {
        Ok(recovered) => {
            check_newest(survey.checkpoint, superblock, &options.dir)?;
            inspection.make_durable(recovered.synced)?;
            Ok((recovered.log, survey))
        }
        Err(
            error @ (Error::Corrupt { .. }
            | Error::UnknownVersion { .. }
            | Error::Io { operation: "read", .. }),
        ) if superblock.closed_cleanly() => {
            let text = format!("the log is damaged, and nothing of it is needed after a clean shutdown; it starts anew: {error}");
            options.observer.message(LogLevel::Warning, &text);
            let log = Log::start_anew(fs.clone(), &dir, options.log_segment_bytes, from)?;
            Ok((log, Survey::default()))
        }
        Err(error) => Err(error),
    }
}

/// Makes a new engine's files. The superblock comes last: a directory without one is empty, or was never finished.
fn create(
    fs: &Arc<dyn FileSystem>,
    files: &Arc<OpenFiles>,
    options: &Options,
    superblock_path: &Path,
) -> Result<Superblock> {
    if fs.is_read_only() {
        return Err(Error::corrupt(superblock_path, 0, "the file is missing"));
    }
    let tables = |name: &String| space_of_file_name(name).is_some_and(|space| space != SYSTEM_SPACE);
    if fs.list(&options.dir)?.iter().any(tables) {
        return Err(Error::corrupt(superblock_path, 0, "the file is missing, but there are tables"));
    }
    let log = Log::create(fs.clone(), &log_dir(&options.dir), options.log_segment_bytes, 0)?;
    Space::create_twice(files, &options.dir.join(space_file_name(SYSTEM_SPACE)), SYSTEM_SPACE)?;
    let superblock = Superblock {
        version: Superblock::VERSION,
        engine_id: Superblock::new_engine_id(),
        checkpoint: 1,
        timestamp: 0,
        replay_from: log.end(),
        next_tree: FIRST_TREE,
        next_txn: 1,
        next_space: SYSTEM_SPACE + 1,
        directory: None,
        system_map: None,
        features: Features::OURS,
        read_from: Release::READS_OURS,
        clean: true,
    };
    superblock.create(&**fs, superblock_path)?;
    sync_parent(&**fs, &options.dir)?;
    Ok(superblock)
}

/// Makes the name of the engine's directory durable.
fn sync_parent(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), |parent| fs.sync_dir(parent))
}

fn recover(
    shared: &mut Shared,
    superblock: &Superblock,
    mut survey: Survey,
    counted: Contained,
    options: &Options,
) -> Result<()> {
    // Everything replayed is visible to whoever comes after.
    let committed = TxnStatus::new(0);
    shared.clock.publish(&committed);
    let catalog = survey.take_catalog();
    let spaces = Spaces::replay(shared, &catalog, &committed)?;
    if options.partial {
        shared.drop_left_out()?;
    }
    spaces.remove_orphans(shared, superblock.next_space)?;
    for (&table, &counter) in &survey.counters {
        if shared.system.table_of(table)?.is_some() {
            let value = counter.merged(shared.system.counter(table)?);
            shared.data.counters.lock().insert(table, Arc::new(PersistedCounter::new(value)));
        }
    }
    // Opens tables: their counters have to be known.
    spaces.retire_trees(shared)?;
    if survey.records > 0 {
        let replayed = replay_tables(shared, &survey, superblock.replay_from, counted, &committed, options)?;
        let text = format!(
            "recovered {} log records from position {}: {} operations, {} prepared transactions",
            survey.records,
            superblock.replay_from,
            replayed.operations,
            replayed.prepared.len()
        );
        shared.observer.message(LogLevel::Note, &text);
        finish_replay(shared, replayed)?;
    }
    Ok(())
}

/// Second pass over the log.
fn replay_tables(
    shared: &Shared,
    survey: &Survey,
    from: Lsn,
    counted: Contained,
    committed: &Arc<TxnStatus>,
    options: &Options,
) -> Result<Replayed> {
    debug_assert!(from <= shared.opening.log_start, "a replay from behind the end of the log");
    let threads = options.recovery_threads.max(1);
    let held_bytes = options.cache_bytes / (4 * threads as u64);
    let plan = Plan {
        threads,
        held_bytes: usize::try_from(held_bytes).unwrap_or(usize::MAX),
        cache: shared.context.cache.clone(),
        counted,
        committed: committed.clone(),
    };
    let dir = log_dir(&options.dir);
    let segments = Segments::list(&*shared.fs, &dir, from)?;
    // What lies behind the end was given up by the first pass.
    let stretches = survey.stretches(shared.opening.log_start);
    replay(survey, &plan, &|tree| shared.tree_of_log(tree), &stretches, &|stretch, visit| {
        // The first pass has found the same, and where to stop.
        segments.read(stretch, visit).or_else(|error| match shared.force_recovery {
            ForceRecovery::WithoutLog => Ok(()),
            _ => Err(error),
        })
    })
}

fn finish_replay(shared: &mut Shared, replayed: Replayed) -> Result<()> {
    shared.mark_dirty(replayed.trees.iter());
    for (tree, error) in replayed.damaged {
        shared.damage(tree, error)?;
    }
    let mut tables: Vec<Arc<Table>> = Vec::new();
    {
        let open = shared.data.tables.lock();
        tables.extend(open.all().cloned());
    }
    for transaction in replayed.prepared {
        debug_assert!(shared.ids.is_given_out(transaction.txn), "another transaction will have this number");
        let work = Work::recovered(shared, transaction, &tables)?;
        shared.counted.active.add(1);
        shared.undecided.prepared.leave(Box::new(work));
    }
    shared.opening.replayed_operations = replayed.operations;
    Ok(())
}

impl Shared {
    /// The tree that an operation in the log belongs to; `None` if its table is gone or cannot be opened.
    fn tree_of_log(&self, tree: TreeId) -> Result<Option<Arc<Tree>>> {
        let Some(name) = self.system.table_of(tree)? else { return Ok(None) };
        let open = self.data.tables.lock().get(&name).cloned();
        let table = match open {
            Some(table) => table,
            None => match self.load_table(&name) {
                Ok(table) => {
                    self.data.tables.lock().insert(table.clone());
                    table
                }
                Err(error) if self.is_damage_of_table(&name, &error)? => {
                    self.damage(tree, error)?;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
        };
        Ok(table.all_trees().iter().find(|candidate| candidate.id() == tree).cloned())
    }
}
