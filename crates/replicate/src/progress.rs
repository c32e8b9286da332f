//! What a running program knows of each source, for who asks it: `metrics` and `service`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What becomes of a source at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It was not begun.
    Beginning,
    /// It is followed.
    Following,
    /// Source or target cannot be used for now: it is tried again.
    Waiting,
    /// Somebody has asked for a pause.
    Paused,
    /// For an error that does not pass.
    Stopped,
    /// Somebody has asked for it, or a signal came.
    Ended,
}

impl Condition {
    /// All.
    pub const ALL: [Condition; 6] = [
        Condition::Beginning,
        Condition::Following,
        Condition::Waiting,
        Condition::Paused,
        Condition::Stopped,
        Condition::Ended,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Beginning => "beginning",
            Condition::Following => "following",
            Condition::Waiting => "waiting",
            Condition::Paused => "paused",
            Condition::Stopped => "stopped",
            Condition::Ended => "ended",
        }
    }
}

/// A number that one thread changes and others look at.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        // Relaxed: nothing else is known by it.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Makes it another one.
    pub fn set(&self, number: u64) {
        // Relaxed: as above.
        self.0.store(number, Ordering::Relaxed);
    }

    /// What it is.
    pub fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of one source since the program began. Whoever reads several of them may see one later than another.
#[derive(Debug, Default)]
pub struct Progress {
    /// The source's name.
    pub source: String,
    state: Count,
    /// Transactions of the source that are committed here.
    pub transactions: Count,
    /// Transactions that were passed over, as somebody has asked for.
    pub skipped: Count,
    /// Rows that did not fit, and were skipped or overwritten.
    pub conflicts: Count,
    /// Bytes of its log that have come.
    pub bytes: Count,
    /// How often it was begun to follow it.
    pub connections: Count,
    /// How often that ended for what passes.
    pub failures: Count,
    /// Transactions that workers have applied above the position.
    pub done_above: Count,
    /// Tables that are not copied yet, or in part.
    pub tables_to_copy: Count,
    /// When the last committed transaction was committed at the source, in seconds of Unix time; 0: not known.
    pub source_time: Count,
    has_all: Count,
}

impl Progress {
    /// Of a source that was not begun.
    pub fn new(source: &str) -> Progress {
        Progress { source: source.into(), ..Progress::default() }
    }

    /// What becomes of it.
    pub fn state(&self) -> Condition {
        let state = Condition::ALL.get(self.state.get() as usize);
        state.copied().unwrap_or(Condition::Beginning)
    }

    /// It becomes something else.
    pub fn becomes(&self, state: Condition) {
        self.state.set(state as u64);
        if state != Condition::Following {
            self.has(false);
        }
    }

    /// Whether all that has come is committed, and nothing more comes.
    pub fn has(&self, all: bool) {
        self.has_all.set(u64::from(all));
    }

    /// How long ago the last transaction was committed at the source, at least 1, or 0 if there are no others; None if
    /// that is not known.
    pub fn seconds_behind(&self) -> Option<u64> {
        if self.has_all.get() == 1 {
            return Some(0);
        }
        let time = self.source_time.get();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        (time != 0).then(|| now.saturating_sub(time).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_all_is_not_behind_and_who_does_not_follow_is() {
        let progress = Progress::new("s");
        assert_eq!((progress.state(), progress.seconds_behind()), (Condition::Beginning, None));
        progress.becomes(Condition::Following);
        progress.source_time.set(1);
        assert!(progress.seconds_behind() > Some(1_000_000_000));
        progress.has(true);
        assert_eq!(progress.seconds_behind(), Some(0));
        progress.becomes(Condition::Waiting);
        assert!(progress.seconds_behind() > Some(1));
        for state in Condition::ALL {
            progress.becomes(state);
            assert_eq!(progress.state(), state);
        }
    }
}
