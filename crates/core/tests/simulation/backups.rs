//! Backups of an engine that works: what they are made of, and what they show.

use std::path::Path;
use std::sync::Arc;

use crate::durable::{Durable, Found};
use crate::seeds::Random;
use crate::sound::assert_sound;
use crate::subject::{self, BackupCopy, CheckpointPause};
use teak_core::file::{FileSystem, SimulatedFileSystem};
use teak_core::{Options, Result};

const FROM: &str = "/teak";
const TO: &str = "/backup";

/// A backup under way. Work goes on between its steps.
pub struct Backup {
    copy: BackupCopy,
    target: SimulatedFileSystem,
    /// Since the last round, which was without fault.
    pause: Option<CheckpointPause>,
}

/// What a step of a backup came to.
pub enum Progress {
    GoesOn(Box<Backup>),
    /// It is complete: an engine that was made of it.
    Restored(subject::Engine),
}

impl Backup {
    pub fn begin(fs: &SimulatedFileSystem, random: &mut Random) -> Backup {
        let target = SimulatedFileSystem::new(random.next());
        let from: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let to: Arc<dyn FileSystem> = Arc::new(target.clone());
        let copy = BackupCopy::new((from, Path::new(FROM)), (to, Path::new(TO)), 1);
        Backup { copy, target, pause: None }
    }

    /// Whether checkpoints are paused for it.
    pub fn pauses(&self) -> bool {
        self.pause.is_some()
    }

    /// Another round, the last one, or the end.
    pub fn step(mut self, engine: &subject::Engine, random: &mut Random) -> Result<Progress> {
        if self.pause.is_some() {
            return self.finish(engine, random).map(Progress::Restored);
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

    fn finish(self, engine: &subject::Engine, random: &mut Random) -> Result<subject::Engine> {
        let end = engine.durable_log_end()?;
        self.copy.finish(end, &|_| Ok(()))?;
        // What it says is durable is: also if the power goes now.
        let target = if random.percent(50) { self.target.crash() } else { self.target };
        let options =
            Options { cache_bytes: 512 << 10, background: false, recovery_threads: 1, ..Options::new(TO) };
        Ok(subject::Engine::open(Arc::new(target), options)
            .unwrap_or_else(|error| panic!("a backup: {error}")))
    }
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
