//! What callers of a simulated file system hold: files, directories and locks that are open. All state is that of the
//! file system.

use super::content::Change;
use super::{io_error, Fault, Inode, Needs, State};
use crate::file::{Directory, File};
use crate::sync::Mutex;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct SimulatedDirectory {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) path: PathBuf,
}

impl Directory for SimulatedDirectory {
    fn sync(&self) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if let Some((_, error)) = state.operation("sync directory", &self.path, Needs::Nothing)? {
            return Err(error);
        }
        let durable = &mut state.durable_names;
        state.unsynced_names.retain(|change| {
            let inside = change.directory() == self.path;
            if inside {
                change.apply(durable);
            }
            !inside
        });
        Ok(())
    }
}

pub(super) struct SimulatedLock {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) path: PathBuf,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let was_held = state.locks.remove(&self.path);
        // After a kill nobody holds one.
        debug_assert!(was_held || state.power_off, "a lock is given back twice");
    }
}

pub(super) struct SimulatedFile {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) inode: Inode,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl SimulatedFile {
    /// Counts an operation and, if it goes well or is cut by the power, changes the content; a failing write is done in
    /// part.
    fn change(&self, operation: &'static str, change: Change, needs: Needs) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if !self.writable {
            return Err(io_error(operation, &self.path, "opened for reading"));
        }
        let failure = state.operation(operation, &self.path, needs)?;
        debug_assert!(state.contents.contains_key(&self.inode), "an open file without content");
        let content = state.contents.entry(self.inode).or_default();
        match (failure, change) {
            (None, change) => content.change(change),
            (Some((Fault::PowerCut, error)), change) => {
                content.change(change);
                return Err(error);
            }
            (Some((_, error)), Change::Write(offset, mut bytes)) => {
                bytes.truncate(state.random.below(bytes.len() + 1));
                content.change(Change::Write(offset, bytes));
                return Err(error);
            }
            (Some((_, error)), Change::Length(_) | Change::Hole(..)) => return Err(error),
        }
        Ok(())
    }
}

impl File for SimulatedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let state = self.state.lock();
        state.check_power("read", &self.path)?;
        if state.meets_broken(&self.path, offset, buf.len()).next().is_some() {
            return Err(io_error("read", &self.path, "simulated I/O error"));
        }
        let content = state.contents.get(&self.inode).map_or(&[][..], |content| content.current.bytes());
        let rest = content.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let found = rest.len().min(buf.len());
        buf[..found].copy_from_slice(&rest[..found]);
        Ok(found)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.writes += 1;
            let mended: Vec<usize> = state.meets_broken(&self.path, offset, buf.len()).collect();
            mended.into_iter().rev().for_each(|at| drop(state.broken.remove(at)));
        }
        self.change("write", Change::Write(offset, buf.to_vec()), Needs::Space)
    }

    fn sync(&self) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.syncs += 1;
        let failure = match std::mem::take(&mut state.full_at_sync) {
            true => Some((Fault::Enospc, Error::DiskFull { path: self.path.clone() })),
            false => state.operation("sync", &self.path, Needs::Nothing)?,
        };
        debug_assert!(state.contents.contains_key(&self.inode), "a sync of a file without content");
        let content = state.contents.entry(self.inode).or_default();
        match failure {
            None => {
                for change in content.unsynced.drain(..) {
                    change.apply(&mut content.durable);
                }
                Ok(())
            }
            Some((Fault::PowerCut, error)) => Err(error),
            Some((_, error)) => {
                for change in content.unsynced.drain(..) {
                    if state.random.coin() {
                        change.apply(&mut content.durable);
                    }
                }
                Err(error)
            }
        }
    }

    fn len(&self) -> Result<u64> {
        let state = self.state.lock();
        state.check_power("stat", &self.path)?;
        Ok(state.contents.get(&self.inode).map_or(0, |content| content.current.bytes().len() as u64))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        let needs = if bytes > self.len()? { Needs::Space } else { Needs::Nothing };
        self.change("truncate", Change::Length(bytes), needs)
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        debug_assert!(bytes > 0, "a hole of no bytes");
        if self.state.lock().without_holes {
            return Ok(false);
        }
        self.change("punch hole", Change::Hole(offset, bytes), Needs::Nothing).map(|()| true)
    }

    fn allocated_bytes(&self) -> Result<u64> {
        let state = self.state.lock();
        state.check_power("stat", &self.path)?;
        Ok(state.contents.get(&self.inode).map_or(0, |content| content.current.allocated_bytes()))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        let (state, inode, writable) = (self.state.clone(), self.inode, self.writable);
        Arc::new(SimulatedFile { state, inode, path: path.to_owned(), writable })
    }
}
