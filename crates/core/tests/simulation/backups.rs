//! Backups of an engine that works: what they are made of, and what they show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::{Durable, Found};
use crate::seeds::Random;
use crate::sound::assert_sound;
use crate::subject::{self, BackupCopy, Chain, CheckpointPause, ExtentList, Wanted};
use teak_core::file::{FileSystem, SimulatedFileSystem};
use teak_core::{Options, Result};

const FROM: &str = "/teak";
const TO: &str = "/restored";
/// A full backup begins a new chain after so many incremental ones.
const LONGEST_CHAIN: usize = 4;
/// So many percent are of some tables only.
const PARTIAL: usize = 40;

/// A backup under way. Work goes on between its steps.
pub struct Backup {
    copy: BackupCopy,
    target: SimulatedFileSystem,
    /// Those below it, and its own last.
    dirs: Vec<PathBuf>,
    /// `None`: all tables.
    wanted: Option<Wanted>,
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
    /// It is complete: an engine that was made of it, and which tables that has.
    Restored(subject::Engine, Finished, Option<Wanted>),
}

impl Backup {
    /// A full one, or one on top of `older`, whichever tables that has.
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
        let wanted = random.percent(PARTIAL).then(|| some_names(random.next()));
        let copy = wanted.iter().fold(copy, |copy, wanted| copy.only(wanted.clone()));
        Backup { copy, target, dirs, wanted, pause: None }
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
        let mut target = if random.percent(50) { self.target.crash() } else { self.target };
        let (fs, to): (Arc<dyn FileSystem>, _) = (Arc::new(target.clone()), Path::new(TO));
        remove(&*fs, to).and_then(|()| fs.create_dir(to)).unwrap_or_else(|error| panic!("{error}"));
        Chain::new(fs.clone(), self.dirs.clone(), list.clone())
            .and_then(|chain| {
                chain.verify(1, &|_| Ok(()))?;
                chain.restore(&fs, to, 1, &|_| Ok(()))
            })
            .unwrap_or_else(|error| panic!("restoring a backup: {error}"));
        let open = |fs, partial| {
            let options = Options {
                cache_bytes: 512 << 10,
                background: false,
                recovery_threads: 1,
                ..Options::new(TO)
            };
            let opened = subject::Engine::open(fs, Options { partial, ..options });
            opened.unwrap_or_else(|error| panic!("a backup: {error}"))
        };
        let mut restored = open(fs, self.wanted.is_some());
        if self.wanted.is_some() && random.percent(50) {
            // What was left out stays gone.
            drop(restored);
            target = target.crash();
            restored = open(Arc::new(target.clone()), false);
        }
        Ok(Progress::Restored(restored, Finished { target, dirs: self.dirs, list }, self.wanted))
    }
}

/// Those names whose first letter has its bit in `mask`.
fn some_names(mask: u64) -> Wanted {
    Arc::new(move |name| name.bytes().next().is_some_and(|first| mask >> (first % 64) & 1 == 1))
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

/// A restored engine shows what was committed when the backup ended, in the tables that it has, and is as good as any.
pub fn assert_restored(engine: &subject::Engine, expected: &Durable, wanted: Option<Wanted>) {
    let mut expected = expected.clone();
    expected.tables.retain(|name, _| wanted.as_ref().is_none_or(|wanted| wanted(name)));
    let found = Found::read(engine).unwrap_or_else(|error| panic!("reading a backup: {error}"));
    // It is made of a checkpoint and the log, as what a restart finds.
    if expected.after_restart().iter().all(|state| state.difference(&found).is_some()) {
        panic!("a backup: {:?}", expected.difference(&found));
    }
    assert_sound(engine, "in a backup", false).unwrap_or_else(|error| panic!("checking a backup: {error}"));
    engine.close().unwrap_or_else(|error| panic!("closing a backup: {error}"));
}
