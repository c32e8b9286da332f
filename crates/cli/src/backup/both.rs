//! Both copies at once: rounds over the engine's files, and beside them `mariadb-backup`, which copies the rest.
//!
//! ```text
//! rounds          ████████████████████████████▏
//! mariadb-backup          ░░░████████████······▏ FLUSH   BLOCK_DDL   BLOCK_COMMIT
//!                         starts late enough   both go on            last round, end
//! ```
//! Whoever is done first waits before `BACKUP STAGE FLUSH`, where nothing in the server waits for it: DDL is blocked
//! only when all large files are copied. While `mariadb-backup` waits it goes on copying InnoDB's log, so it is not
//! started before the engine has about as much left to copy as the others have.

use super::companion::{self, Call, Stages};
use super::files::{Files, Received};
use super::pace::Pace;
use super::rows::Snapshot;
use super::source::{End, Places, Source};
use super::BackupError;
use crate::priority::nicely;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;
use teak_client::Settings;
use teak_console::terminal;
use teak_core::server::BackupCopy;

/// Rounds end when one copies less than this, or not clearly less than the one before.
const SMALL_ROUND: u64 = 16 << 20;
const MOST_ROUNDS: usize = 12;
/// What the engine copies while `mariadb-backup` starts, in bytes.
const START: u64 = 64 << 20;
/// Of `mariadb-backup`.
const MOST_TRIES: usize = 3;
/// Between two looks at whether it is to start.
const POLL: Duration = Duration::from_millis(20);

/// The copy of the engine.
pub struct EngineCopy<'a> {
    pub copy: BackupCopy,
    pub source: &'a mut Source,
    pub pace: &'a Pace,
    /// Of the rounds. What has to keep up with the server's writers is not nice: mariadb-backup, which follows InnoDB's
    /// log, and all that is done while checkpoints are paused or commits wait.
    pub nice: u8,
    /// With which a snapshot of the end is asked for, if one is wanted.
    pub snapshot: Option<&'a Settings>,
    /// Where it ends, when commits have been blocked.
    pub end: Option<End>,
}

impl EngineCopy<'_> {
    /// Rounds, until what is left is little or does not become less.
    fn rounds(&mut self) -> Result<(), BackupError> {
        let mut before = u64::MAX;
        for _ in 0..MOST_ROUNDS {
            self.source.checkpoint_if_due()?;
            let (pace, copy) = (self.pace, &mut self.copy);
            let copied = nicely(self.nice, || copy.round(&|bytes| pace.wrote(bytes)))?.copied_bytes;
            if copied < SMALL_ROUND || copied > before / 2 {
                break;
            }
            before = copied;
        }
        Ok(())
    }

    /// All that is to be done while checkpoints are paused, but for the log.
    fn last_round(&mut self) -> Result<(), BackupError> {
        self.rounds()?;
        self.source.checkpoint_if_due()?;
        self.source.pause_checkpoints()?;
        let pace = self.pace;
        self.copy.settle(&|bytes| pace.wrote(bytes))?;
        Ok(())
    }
}

/// How `mariadb-backup` is run, and where its files go.
pub struct Companion<'a> {
    pub call: Call<'a>,
    pub settings: &'a Settings,
    pub places: &'a Places,
    pub files: Files<'a>,
    /// What the engine has to copy, in bytes, if it is worth to wait for most of it.
    pub engine_bytes: u64,
    /// What the others have.
    pub other_bytes: u64,
}

/// Makes both copies. That of the engine lacks the log up to the end, and checkpoints are paused until it has that.
pub fn copy(
    mut engine: EngineCopy<'_>,
    companion: Companion<'_>,
) -> Result<(BackupCopy, End, Received), BackupError> {
    let (pace, over) = (engine.pace, AtomicBool::new(false));
    let (hand_over, handed) = channel();
    std::thread::scope(|threads| {
        let other = threads.spawn(|| {
            let mut turns = Turns { handed, engine: None };
            let received = wait_to_start(&companion, pace, &over).and_then(|()| run(companion, &mut turns));
            if received.is_err() {
                pace.stop();
            }
            (received, turns.engine)
        });
        pace.phase("Teak");
        let rounds = engine.rounds();
        match rounds {
            Ok(()) => pace.phase("other engines"),
            Err(_) => pace.stop(),
        }
        // SeqCst: no more than that the other thread sees it some time.
        over.store(true, Ordering::SeqCst);
        match &rounds {
            // If it has ended already, its own error says why.
            Ok(()) => drop(hand_over.send(engine)),
            Err(_) => drop(hand_over),
        }
        let (received, engine) = other.join().map_err(|_| BackupError::Stopped)?;
        match (rounds, received, engine) {
            (Ok(()), Ok(received), Some(EngineCopy { copy, end: Some(end), .. })) => {
                Ok((copy, end, received))
            }
            (Ok(()), Ok(_), _) => Err(BackupError::Usage("mariadb-backup did not block commits".into())),
            // Who was stopped by the other is not the reason.
            (Err(BackupError::Interrupted), Err(error), _) => Err(match error {
                BackupError::Stopped => BackupError::Interrupted,
                error => error,
            }),
            (Err(error), _, _) | (Ok(()), Err(error), _) => Err(error),
        }
    })
}

/// Runs `mariadb-backup`, again if it gives up on InnoDB's log.
fn run(companion: Companion<'_>, turns: &mut Turns<'_>) -> Result<Received, BackupError> {
    let Companion { call, settings, places, mut files, .. } = companion;
    for _ in 1..MOST_TRIES {
        match companion::run(&call, settings, places, turns, &mut files) {
            Err(BackupError::Companion { missed_log: true, .. }) => {}
            ended => return ended.and_then(|()| files.received()),
        }
        terminal::message("mariadb-backup gave up on InnoDB's log; it is run once more");
        files.begin_anew()?;
        let engine = turns.engine()?;
        engine.source.resume()?;
        engine.pace.hurry(false);
    }
    companion::run(&call, settings, places, turns, &mut files)?;
    files.received()
}

/// Until the engine has no more to copy than the others, or its rounds are over.
fn wait_to_start(companion: &Companion<'_>, pace: &Pace, over: &AtomicBool) -> Result<(), BackupError> {
    let ahead = companion.other_bytes.saturating_add(START);
    // SeqCst: as where it is stored.
    while pace.done().saturating_add(ahead) < companion.engine_bytes && !over.load(Ordering::SeqCst) {
        std::thread::sleep(POLL);
    }
    match pace.is_stopped() {
        true => Err(BackupError::Stopped),
        false => Ok(()),
    }
}

/// What `mariadb-backup` waits for.
struct Turns<'a> {
    handed: Receiver<EngineCopy<'a>>,
    engine: Option<EngineCopy<'a>>,
}

impl<'a> Turns<'a> {
    /// The engine's copy, when its rounds are over.
    fn engine(&mut self) -> Result<&mut EngineCopy<'a>, BackupError> {
        if self.engine.is_none() {
            self.engine = Some(self.handed.recv().map_err(|_| BackupError::Stopped)?);
        }
        self.engine.as_mut().ok_or(BackupError::Stopped)
    }
}

impl Stages for Turns<'_> {
    fn before_flush(&mut self) -> Result<(), BackupError> {
        // From here on writers to MyISAM and Aria wait, then DDL, then commits, and in the end checkpoints.
        self.engine().map(|engine| engine.pace.hurry(true))
    }

    fn before_block(&mut self) -> Result<(), BackupError> {
        self.engine()?.last_round()
    }

    fn blocked(&mut self) -> Result<(), BackupError> {
        let engine = self.engine()?;
        let mut end = engine.source.end()?;
        let begin = |settings| Snapshot::begin(settings, &engine.source.places.datadir);
        end.snapshot = engine.snapshot.map(begin).transpose()?;
        engine.end = Some(end);
        Ok(())
    }
}
