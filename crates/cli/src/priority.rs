//! Work that leaves the processor to others.

/// Does `work` in a thread of its own that is so nice; the threads that it starts are, too. A process may not become
/// less nice again, but a thread can end.
pub fn nicely<T: Send>(nice: u8, work: impl FnOnce() -> T + Send) -> T {
    if nice == 0 {
        return work();
    }
    let body = || {
        become_nice(nice);
        work()
    };
    std::thread::scope(|threads| match threads.spawn(body).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Adds to the niceness of this thread; in Linux each thread has its own. Where that is refused, it stays as it was.
fn become_nice(by: u8) {
    // SAFETY: nice takes a number and has no memory of ours.
    unsafe { libc::nice(libc::c_int::from(by)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn niceness() -> libc::c_int {
        // SAFETY: as above; 0 is the calling thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn threads_of_nice_work_are_nice_and_nobody_else_is() {
        let before = niceness();
        let expected = (before + 3).min(19);
        let inner = nicely(3, || std::thread::spawn(niceness).join());
        assert_eq!(inner.ok(), Some(expected));
        assert_eq!(niceness(), before);
        assert_eq!(nicely(0, niceness), before);
    }
}
