//! The workers of a load: as many at once as `pace` finds good and the server has connections for.
//!
//! Each has a thread from the beginning, and a connection only while it is admitted: one that sleeps for long would be
//! closed by the server.

use super::error::LoadError;
use super::pace::Pace;
use super::state::LoadState;
use super::worker;
use std::sync::atomic::Ordering;
use std::thread::{Builder, Scope};
use std::time::Duration;

const MOST_CONNECTIONS: usize = 256;
/// How long a number of connections is watched at a time: many tasks, so that those at its ends count little.
const WINDOW: Duration = Duration::from_secs(1);

/// How many workers there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Team {
    /// At first.
    first: usize,
    /// At most; the number adapts if this is more.
    most: usize,
}

impl Team {
    /// So many as are wanted, or what suits a server on a machine like this until it is measured. Without workers if
    /// `serial`.
    pub fn new(wanted: Option<usize>, serial: bool) -> Result<Team, LoadError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let first = wanted.unwrap_or((2 * processors).clamp(4, 16));
        if !(1..=MOST_CONNECTIONS).contains(&first) {
            return Err(LoadError::Usage(format!("--connections must be from 1 to {MOST_CONNECTIONS}")));
        }
        Ok(match (serial, wanted) {
            (true, _) => Team { first: 0, most: 0 },
            (false, Some(_)) => Team { first, most: first },
            (false, None) => Team { first, most: 4 * first },
        })
    }

    /// How many there can be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Starts the workers.
    pub fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        shared: &'scope LoadState,
    ) -> Result<(), LoadError> {
        admit(shared, self.first);
        let thread = |name: String| Builder::new().name(name);
        for number in 0..self.most {
            thread(format!("load-{number}")).spawn_scoped(scope, move || worker::run(shared, number))?;
        }
        if self.most > self.first {
            thread("pace".into()).spawn_scoped(scope, move || self.adapt(shared))?;
        }
        Ok(())
    }

    /// Watches the work and admits as many workers as turn out to be good, until it ends.
    fn adapt(self, shared: &LoadState) {
        let mut pace = Pace::new(self.first, self.most);
        while let Some(window) = shared.queue.watch(WINDOW) {
            pace.observe(window);
            admit(shared, pace.connections());
        }
    }
}

/// So many workers may work; without any, there is the loader's own connection.
fn admit(shared: &LoadState, workers: usize) {
    shared.queue.set_admitted(workers);
    // Relaxed: only shown.
    shared.counters.connections.store(workers.max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_wanted_stays() {
        assert_eq!(Team::new(Some(7), false).unwrap(), Team { first: 7, most: 7 });
        assert_eq!(Team::new(Some(7), true).unwrap().most(), 0);
        let free = Team::new(None, false).unwrap();
        assert!(free.first >= 4 && free.most > free.first && free.most <= MOST_CONNECTIONS);
        assert!(Team::new(Some(0), false).is_err() && Team::new(Some(257), false).is_err());
    }
}
