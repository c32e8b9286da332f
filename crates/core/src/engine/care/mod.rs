//! What is done by the way, for all: checkpoints, old snapshots, packing, tables that are closed as damaged.
//!
//! | file | what |
//! |---|---|
//! | `background.rs` | the threads |
//! | `checkpoints.rs`, `progress.rs` | when checkpoints happen and what they contain; where they stand, who waits |
//! | `pause.rs` | times without checkpoints |
//! | `damaged.rs` | tables that are closed because their files cannot be read |
//! | `snapshots.rs` | what old snapshots hold, and when they give way |
//! | `alike.rs` | putting large values together that are alike |
//! | `walk.rs` | walks over the leaves of a table |
//! | `pack.rs` | giving back what a table has more than it needs |

pub(super) mod alike;
pub(super) mod background;
pub(super) mod checkpoints;
pub(super) mod damaged;
pub(super) mod pack;
pub(super) mod pause;
mod progress;
pub(super) mod snapshots;
mod walk;

use self::alike::Alike;
use self::background::Rounds;
use self::damaged::Damaged;
use self::progress::Progress;
use crate::catalog::Contained;
use crate::checkpoint::{Arrival, Checkpointer};
use crate::log::Lsn;
use crate::options::Options;
use crate::sync::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What this floor keeps.
pub(in crate::engine) struct Care {
    pub(in crate::engine) checkpointer: Checkpointer,
    pub(in crate::engine) progress: Arc<Progress>,
    /// Of an engine without threads.
    rounds: Rounds,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// What is known of large values that are alike.
    alike: Alike,
    /// Tables that were closed because their files cannot be read.
    pub(in crate::engine) damaged: Mutex<Damaged>,
    /// Files that were filled from outside, which the next checkpoint makes those of their tables.
    arrivals: Mutex<Vec<Arrival>>,
    /// What `teak-history` has told of its last look.
    history_trouble: Mutex<Option<String>>,
}

impl Care {
    /// Of an engine whose last checkpoint contains `contained`; a replay on top of it begins at `replay_from`.
    pub(in crate::engine) fn new(
        checkpointer: Checkpointer,
        contained: Contained,
        replay_from: Lsn,
        options: &Options,
    ) -> Care {
        Care {
            checkpointer,
            progress: Arc::new(Progress::from(replay_from)),
            rounds: Rounds::new(&options.time),
            threads: Mutex::default(),
            alike: Alike::new(&options.time, options.cache_bytes),
            damaged: Mutex::new(Damaged::none(contained, replay_from)),
            arrivals: Mutex::default(),
            history_trouble: Mutex::default(),
        }
    }
}
