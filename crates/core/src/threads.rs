//! The library's own threads: how they are started, who is told of them, and work that several take from one place.

use std::io;
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle, Scope};

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::{Error, Result};

/// What a program wants to do on each thread of the library, of all engines in it.
#[derive(Debug, Clone, Copy)]
pub struct ThreadWatch {
    /// When one begins; with its name, a number at the end where there may be several.
    pub begins: fn(name: &str),
    /// When it ends, also by a panic.
    pub ends: fn(),
}

static WATCH: OnceLock<ThreadWatch> = OnceLock::new();

/// Has `watch` told of all threads that are started from now on. The first one that was given stays.
pub fn watch_threads(watch: ThreadWatch) {
    // Another one is as good: a program has one way of keeping lists of threads.
    let _ = WATCH.set(watch);
}

/// Lives as long as a thread works.
struct Watched(Option<&'static ThreadWatch>);

impl Watched {
    fn begin() -> Watched {
        let watch = WATCH.get();
        if let Some(watch) = watch {
            (watch.begins)(std::thread::current().name().unwrap_or("teak"));
        }
        Watched(watch)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watch) = self.0 {
            (watch.ends)();
        }
    }
}

/// A thread called `name` that does `work`.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name).spawn(|| {
        let _watched = Watched::begin();
        work()
    })
}

/// Likewise, one that ends before `scope` does.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<std::thread::ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name).spawn_scoped(scope, || {
        let _watched = Watched::begin();
        work()
    })
}

/// Runs `work`, which ends when nothing is left to do, on this thread and on up to `threads - 1` more, called `name`
/// and a number. All are waited for; the error is that of any of them. A thread that cannot be started is not missed.
pub(crate) fn share(threads: usize, name: &str, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    if threads <= 1 {
        return work();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = |number| spawn_scoped(scope, format!("{name}-{number}"), work);
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
