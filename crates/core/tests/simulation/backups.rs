//! Backups of an engine that works: what they are made of, and what they show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::{Durable, Found};
use crate::seeds::Random;
use crate::sound::assert_sound;
use crate::subject::{self, BackupCopy, Chain, CheckpointPause, ExtentList};
use teak_core::file::{FileSystem, SimulatedFileSystem};
use teak_core::{Options, Result};

const FROM: &str = "/teak";
const TO: &str = "/restored";
/// A full backup begins a new chain after so many incremental ones.
const LONGEST_CHAIN: usize = 4;

/// A backup under way. Work goes on between its steps.
pub struct Backup {
    copy: BackupCopy,
    target: SimulatedFileSystem,
    /// Those below it, and its own last.
    dirs: Vec<PathBuf>,
    /// Since the last round, which was without fault.
    pause: Option<CheckpointPause>,
}

/// A backup that others can stand on.
pub struct Finished {
    target: SimulatedFileSystem,
    dirs: Vec<PathBuf>,
    list: ExtentList,
}

/// What a step of a backup came to.
pub enum Progress {
    GoesOn(Box<Backup>),
    /// It is complete: an engine that was made of it.
    Restored(subject::Engine, Finished),
}

impl Backup {
    /// A full one, or one on top of `older`.
    pub fn begin(fs: &SimulatedFileSystem, older: Option<Finished>, random: &mut Random) -> Backup {
        let older = older.filter(|older| older.dirs.len() < LONGEST_CHAIN && random.percent(70));
        let (target, mut dirs, list) = match older {
            Some(Finished { target, dirs, list }) => (target, dirs, Some(list)),
            None => (SimulatedFileSystem::new(random.next()), Vec::new(), None),
        };
        let dir = PathBuf::from(format!("/backup{}", dirs.len()));
        let (from, to): (Arc<dyn FileSystem>, Arc<dyn FileSystem>) =
            (Arc::new(fs.clone()), Arc::new(target.clone()));
        let copy = BackupCopy::new((from, Path::new(FROM)), (to, &dir), 1);
        dirs.push(dir);
        let copy = list.iter().fold(copy, |copy, list| copy.on_top_of(list));
        Backup { copy, target, dirs, pause: None }
    }

    /// Whether checkpoints are paused for it.
    pub fn pauses(&self) -> bool {
        self.pause.is_some()
    }

    /// Another round, the last one, or the end.
    pub fn step(mut self, engine: &subject::Engine, random: &mut Random) -> Result<Progress> {
        if self.pause.is_some() {
            return self.finish(engine, random);
        }
        if random.percent(50) {
            engine.checkpoint()?;
        }
        if random.percent(60) {
            self.copy.round(&|_| Ok(()))?;
        } else {
            self.pause = Some(engine.pause_checkpoints());
            let round = self.copy.settle(&|_| Ok(()))?;
            assert_eq!(round.missed, 0, "{round:?}");
        }
        Ok(Progress::GoesOn(Box::new(self)))
    }

    fn finish(self, engine: &subject::Engine, random: &mut Random) -> Result<Progress> {
        let end = engine.durable_log_end()?;
        let (list, _) = self.copy.finish(end, &|_| Ok(()))?;
        // What it says is durable is: also if the power goes now.
        let target = if random.percent(50) { self.target.crash() } else { self.target };
        let (fs, to): (Arc<dyn FileSystem>, _) = (Arc::new(target.clone()), Path::new(TO));
        remove(&*fs, to).and_then(|()| fs.create_dir(to)).unwrap_or_else(|error| panic!("{error}"));
        Chain::new(fs.clone(), self.dirs.clone(), list.clone())
            .and_then(|chain| {
                chain.verify(1, &|_| Ok(()))?;
                chain.restore(&fs, to, 1, &|_| Ok(()))
            })
            .unwrap_or_else(|error| panic!("restoring a backup: {error}"));
        let options =
            Options { cache_bytes: 512 << 10, background: false, recovery_threads: 1, ..Options::new(TO) };
        let restored = subject::Engine::open(fs, options).unwrap_or_else(|error| panic!("a backup: {error}"));
        Ok(Progress::Restored(restored, Finished { target, dirs: self.dirs, list }))
    }
}

/// Removes the files below a directory, if there is one.
fn remove(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    if !fs.exists(dir)? {
        return Ok(());
    }
    for name in fs.list(dir)? {
        let path = dir.join(name);
        match fs.list(&path) {
            Ok(names) => names.iter().try_for_each(|name| fs.remove(&path.join(name)))?,
            Err(_) => fs.remove(&path)?,
        }
    }
    Ok(())
}

/// A restored engine shows what was committed when the backup ended, and is as good as any.
pub fn assert_restored(engine: &subject::Engine, expected: &Durable) {
    let found = Found::read(engine).unwrap_or_else(|error| panic!("reading a backup: {error}"));
    if let Some(difference) = expected.difference(&found) {
        panic!("a backup: {difference}");
    }
    assert_sound(engine, "in a backup", false).unwrap_or_else(|error| panic!("checking a backup: {error}"));
    engine.close().unwrap_or_else(|error| panic!("closing a backup: {error}"));
}
