//! Work that several threads take from one place.

use crate::{Error, Result};

/// Runs `work`, which ends when nothing is left to do, on this thread and on up to `threads - 1` more, called `name`
/// and a number. All are waited for; the error is that of any of them. A thread that cannot be started is not missed.
pub(crate) fn share(threads: usize, name: &str, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    if threads <= 1 {
        return work();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = |number| {
            let thread = std::thread::Builder::new().name(format!("{name}-{number}"));
            thread.spawn_scoped(scope, work)
        };
        let others: Vec<_> = (1..threads).filter_map(|number| spawn(number).ok()).collect();
        let mut result = work();
        for thread in others {
            let outcome = thread.join();
            result = result.and(outcome.unwrap_or(Err(Error::OutOfMemory("a background thread has died"))));
        }
        result
    })
}
