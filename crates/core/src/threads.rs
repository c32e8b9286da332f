//! Work that several threads take from one place.

use crate::sync::atomic::{AtomicUsize, Ordering};
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

/// Does `work` for each of `items`, as [`share`] does; after an error some are left out.
pub(crate) fn share_out<T: Sync>(
    items: &[T],
    threads: usize,
    name: &str,
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    share(threads.min(items.len()), name, || {
        // Relaxed: each number goes to one thread, and the items were there before.
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item)?;
        }
        Ok(())
    })
}
