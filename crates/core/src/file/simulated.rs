//! A file system in memory that loses power, tears writes, fails and fills up on command; deterministic by its seed.
//!
//! It is stricter than any real one: after a [`crash`](SimulatedFileSystem::crash) every unsynced write and every
//! unsynced change of a name survived or not by the toss of a coin, whatever came before or after it. A test that
//! passes here for many seeds does not depend on a courtesy of ext4.
//!
//! Content of a file is its durable image and the list of changes since the last sync; names are likewise the durable
//! ones and a list of changes since the last `sync_dir` of their directory. The directories `/` and `` (and `.`) always
//! exist.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sync::{Mutex, MutexGuard};

use super::{Directory, File, FileSystem, OpenMode};
use crate::{Error, Result};
use content::Content;
use handles::{SimulatedDirectory, SimulatedFile, SimulatedLock};

mod content;
mod handles;

/// How an operation fails. Reads fail only when the power is off, or where [`SimulatedFileSystem::break_sectors`] says
/// so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error. A write is done in part. A sync makes part of the unsynced changes durable and forgets the others:
    /// they stay readable until the crash, but no later sync saves them (as Linux does).
    Eio,
    /// No space left: hits the first operation that needs space. A write is done in part.
    Enospc,
    /// No descriptor left: hits what opens something, and nothing else counts as an operation of the plan.
    Emfile,
    /// The power goes while the operation is under way; from then on everything fails until
    /// [`SimulatedFileSystem::crash`].
    PowerCut,
}

/// The simulated file system; clones share their state.
#[derive(Clone)]
pub struct SimulatedFileSystem {
    state: Arc<Mutex<State>>,
}

type Inode = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory,
    File(Inode),
}

type Names = BTreeMap<PathBuf, Node>;

/// A change of the names in a directory.
#[derive(Debug, Clone)]
enum NameChange {
    Create(PathBuf, Node),
    Rename(PathBuf, PathBuf, Node),
    Remove(PathBuf),
}

impl NameChange {
    fn directory(&self) -> &Path {
        match self {
            NameChange::Create(path, _) | NameChange::Rename(_, path, _) | NameChange::Remove(path) => {
                parent(path)
            }
        }
    }

    fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Create(path, node) => {
                names.insert(path.clone(), *node);
            }
            NameChange::Rename(from, to, node) => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

/// Sebastiano Vigna's SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

struct Plan {
    /// Operations that still go well.
    after: u64,
    fault: Fault,
    sticky: bool,
}

struct State {
    random: Random,
    contents: HashMap<Inode, Content>,
    next_inode: Inode,
    names: Names,
    durable_names: Names,
    unsynced_names: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    plan: Option<Plan>,
    power_off: bool,
    /// The plan has made something fail.
    struck: bool,
    operations: u64,
    writes: u64,
    syncs: u64,
    full_at_sync: bool,
    without_holes: bool,
    broken: Vec<(PathBuf, Range<u64>)>,
}

/// What kind of operation may fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Space,
    Nothing,
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_root(path: &Path) -> bool {
    path == Path::new("/") || path == Path::new("") || path == Path::new(".")
}

fn io_error(operation: &'static str, path: &Path, cause: &str) -> Error {
    Error::Io { operation, path: path.to_owned(), cause: cause.to_owned() }
}

impl State {
    fn new(seed: u64) -> State {
        State {
            random: Random(seed),
            contents: HashMap::new(),
            next_inode: 1,
            names: Names::new(),
            durable_names: Names::new(),
            unsynced_names: Vec::new(),
            locks: BTreeSet::new(),
            plan: None,
            struck: false,
            power_off: false,
            operations: 0,
            writes: 0,
            syncs: 0,
            full_at_sync: false,
            without_holes: false,
            broken: Vec::new(),
        }
    }

    fn check_power(&self, operation: &'static str, path: &Path) -> Result<()> {
        if self.power_off {
            return Err(io_error(operation, path, "power is off"));
        }
        Ok(())
    }

    /// Which of the broken ranges some bytes of a file overlap.
    fn meets_broken<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        bytes: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let end = offset + bytes as u64;
        let meets =
            move |(of, range): &(PathBuf, Range<u64>)| of == path && range.start < end && offset < range.end;
        (0..self.broken.len()).filter(move |&at| meets(&self.broken[at]))
    }

    /// Counts an operation that changes something and decides whether it fails: with the fault and the error to return.
    fn operation(
        &mut self,
        operation: &'static str,
        path: &Path,
        needs: Needs,
    ) -> Result<Option<(Fault, Error)>> {
        self.check_power(operation, path)?;
        self.operations += 1;
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.fault != Fault::Emfile) else {
            return Ok(None);
        };
        if plan.after > 0 {
            plan.after -= 1;
            return Ok(None);
        }
        let fault = plan.fault;
        if fault == Fault::Enospc && needs != Needs::Space {
            return Ok(None);
        }
        if !plan.sticky {
            self.plan = None;
        }
        self.struck = true;
        let error = match fault {
            Fault::Eio | Fault::Emfile => io_error(operation, path, "simulated I/O error"),
            Fault::Enospc => Error::DiskFull { path: path.to_owned() },
            Fault::PowerCut => {
                self.power_off = true;
                io_error(operation, path, "power is off")
            }
        };
        Ok(Some((fault, error)))
    }

    /// Before something is opened, if it is there or can be created.
    fn take_descriptor(&mut self, operation: &'static str, path: &Path) -> Result<()> {
        self.check_power(operation, path)?;
        let Some(plan) = self.plan.as_mut().filter(|plan| plan.fault == Fault::Emfile) else { return Ok(()) };
        if plan.after > 0 {
            plan.after -= 1;
            return Ok(());
        }
        if !plan.sticky {
            self.plan = None;
        }
        self.struck = true;
        Err(Error::NoDescriptor { path: path.to_owned(), cause: "no descriptor is left".into() })
    }

    /// A new and empty file that has no name yet.
    fn create_file(&mut self) -> Inode {
        let inode = self.next_inode;
        self.next_inode += 1;
        let other = self.contents.insert(inode, Content::default());
        debug_assert!(other.is_none(), "two files with one number");
        inode
    }

    /// Whether a change of the names is one of those that are there.
    fn suits(&self, change: &NameChange) -> bool {
        match change {
            NameChange::Create(path, _) => !self.names.contains_key(path),
            NameChange::Rename(from, _, node) => self.names.get(from) == Some(node),
            NameChange::Remove(path) => self.names.contains_key(path),
        }
    }

    /// An operation on names: not done when it fails, except that a power cut leaves it undecided.
    fn change_name(&mut self, operation: &'static str, change: NameChange, needs: Needs) -> Result<()> {
        debug_assert!(self.suits(&change), "{change:?} of other names than there are");
        let path = match &change {
            NameChange::Create(path, _) | NameChange::Rename(_, path, _) | NameChange::Remove(path) => {
                path.clone()
            }
        };
        let failure = self.operation(operation, &path, needs)?;
        if matches!(failure, None | Some((Fault::PowerCut, _))) {
            change.apply(&mut self.names);
            self.unsynced_names.push(change);
        }
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn require_directory(&self, operation: &'static str, path: &Path) -> Result<()> {
        if is_root(path) || self.names.get(path) == Some(&Node::Directory) {
            return Ok(());
        }
        Err(io_error(operation, path, "no such directory"))
    }

    fn file(&self, operation: &'static str, path: &Path) -> Result<Inode> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Directory) => Err(io_error(operation, path, "is a directory")),
            None => Err(io_error(operation, path, "no such file")),
        }
    }

    /// The state of the disk after the power comes back.
    fn survivors(&mut self) -> State {
        let mut after = State::new(self.random.next());
        after.names = self.durable_names.clone();
        // Some crashes lose everything, some nothing; the others are a toss for each change.
        let mood = self.random.below(4);
        let random = &mut self.random;
        let mut survives = || match mood {
            0 => false,
            1 => true,
            _ => random.coin(),
        };
        for change in self.unsynced_names.iter().filter(|_| survives()) {
            change.apply(&mut after.names);
        }
        let reachable = |names: &Names, path: &Path| {
            let directory = parent(path);
            is_root(directory) || names.get(directory) == Some(&Node::Directory)
        };
        loop {
            let before = after.names.clone();
            after.names.retain(|path, _| reachable(&before, path));
            if after.names.len() == before.len() {
                break;
            }
        }
        for node in after.names.values() {
            let Node::File(inode) = *node else { continue };
            let content = self.contents.get(&inode).cloned().unwrap_or_default();
            let mut durable = content.durable;
            for change in content.unsynced {
                // Whole in half of the cases, sector by sector in the others.
                if survives() {
                    change.apply(&mut durable);
                } else {
                    change.sectors().iter().filter(|_| survives()).for_each(|part| part.apply(&mut durable));
                }
            }
            after.contents.insert(inode, Content::survived(durable));
        }
        after.durable_names = after.names.clone();
        after.next_inode = self.next_inode;
        after.broken = self.broken.clone();
        after
    }
}

impl SimulatedFileSystem {
    /// An empty file system. Equal seeds and equal calls give equal outcomes.
    pub fn new(seed: u64) -> SimulatedFileSystem {
        SimulatedFileSystem { state: Arc::new(Mutex::new(State::new(seed))) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The `n`-th changing operation from now (0: the next) fails once. Replaces an earlier plan.
    pub fn fail_after(&self, n: u64, fault: Fault) {
        self.lock().plan = Some(Plan { after: n, fault, sticky: false });
    }

    /// The `n`-th changing operation from now and all after it fail, until [`SimulatedFileSystem::heal`].
    pub fn fail_from(&self, n: u64, fault: Fault) {
        self.lock().plan = Some(Plan { after: n, fault, sticky: true });
    }

    /// Drops the plan of failures. Power that is off stays off.
    pub fn heal(&self) {
        let mut state = self.lock();
        (state.plan, state.struck) = (None, false);
    }

    /// Cuts the power if it is on, and returns the file system that is found when it is back. Handles of this one fail
    /// from now on.
    pub fn crash(&self) -> SimulatedFileSystem {
        let mut state = self.lock();
        state.power_off = true;
        SimulatedFileSystem { state: Arc::new(Mutex::new(state.survivors())) }
    }

    /// Kills the process: everything it wrote is there, synced or not, and its locks are gone. Handles of this one fail
    /// from now on, so whatever destructors still run change nothing. After a planned power cut: the process died at
    /// that moment instead.
    pub fn kill(&self) -> SimulatedFileSystem {
        let mut state = self.lock();
        let mut dead = State::new(0);
        dead.power_off = true;
        let mut after = std::mem::replace(&mut *state, dead);
        after.power_off = false;
        (after.plan, after.struck) = (None, false);
        after.locks.clear();
        SimulatedFileSystem { state: Arc::new(Mutex::new(after)) }
    }

    /// Whether a planned power cut happened.
    pub fn power_is_off(&self) -> bool {
        self.lock().power_off
    }

    /// Changing operations so far: writes, syncs, changes of length and names.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Whether something has failed by plan since the last [`SimulatedFileSystem::heal`].
    pub fn has_struck(&self) -> bool {
        self.lock().struck
    }

    /// Calls of [`File::write_at`] so far.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// The next sync finds no room for what was written: space is given out late.
    pub fn fill_at_next_sync(&self) {
        self.lock().full_at_sync = true;
    }

    /// From now on no hole can be punched, as on file systems that have none.
    pub fn refuse_holes(&self) {
        self.lock().without_holes = true;
    }

    /// From now on reads of these bytes of the file at `path` fail, until they are written again.
    pub fn break_sectors(&self, path: &Path, bytes: Range<u64>) {
        debug_assert!(!bytes.is_empty(), "nothing is broken");
        self.lock().broken.push((path.to_owned(), bytes));
    }

    /// Calls of [`File::sync`] so far.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }
}

impl FileSystem for SimulatedFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut state = self.lock();
        state.take_descriptor("open", path)?;
        if mode == OpenMode::Create && !state.names.contains_key(path) {
            state.require_directory("open", parent(path))?;
            let inode = state.create_file();
            state.change_name(
                "open",
                NameChange::Create(path.to_owned(), Node::File(inode)),
                Needs::Space,
            )?;
        }
        let inode = state.file("open", path)?;
        let writable = mode != OpenMode::ReadOnly;
        Ok(Arc::new(SimulatedFile { state: self.state.clone(), inode, path: path.to_owned(), writable }))
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        let mut state = self.lock();
        state.take_descriptor("create", path)?;
        state.require_directory("create", parent(path))?;
        if let Some((_, error)) = state.operation("create", path, Needs::Space)? {
            return Err(error);
        }
        let inode = state.create_file();
        Ok(Arc::new(SimulatedFile {
            state: self.state.clone(),
            inode,
            path: path.to_owned(),
            writable: true,
        }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        state.check_power("create directory", path)?;
        if is_root(path) || state.names.get(path) == Some(&Node::Directory) {
            return Ok(());
        }
        state.require_directory("create directory", parent(path))?;
        if state.names.contains_key(path) {
            return Err(io_error("create directory", path, "a file has that name"));
        }
        state.change_name(
            "create directory",
            NameChange::Create(path.to_owned(), Node::Directory),
            Needs::Space,
        )
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let mut state = self.lock();
        state.take_descriptor("list", dir)?;
        state.require_directory("list", dir)?;
        let inside = state.names.keys().filter(|path| parent(path) == dir);
        let names: Vec<String> =
            inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
        // Paths are in the order of their parts.
        debug_assert!(names.is_sorted(), "names are sorted");
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let state = self.lock();
        state.check_power("stat", path)?;
        Ok(is_root(path) || state.names.contains_key(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.lock();
        let inode = state.file("rename", from)?;
        state.require_directory("rename", parent(to))?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned(), Node::File(inode));
        state.change_name("rename", change, Needs::Nothing)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        state.file("remove", path)?;
        state.change_name("remove", NameChange::Remove(path.to_owned()), Needs::Nothing)
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        let mut state = self.lock();
        state.take_descriptor("open directory", dir)?;
        state.require_directory("open directory", dir)?;
        Ok(Arc::new(SimulatedDirectory { state: self.state.clone(), path: dir.to_owned() }))
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.open(path, OpenMode::Create)?;
        if !self.lock().locks.insert(path.to_owned()) {
            return Err(Error::InUse { path: path.to_owned() });
        }
        Ok(Box::new(SimulatedLock { state: self.state.clone(), path: path.to_owned() }))
    }
}
