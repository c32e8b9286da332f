//! Batches on their way from the threads that read the log to those that apply it.
//!
//! ```text
//!  stretches of the log   0   1   2   3 ...       each read by one thread, which takes the next that nobody has
//!                         │   │
//!  worker 0  <── 0 0 │ 1 1 1 │ 2 ...              each takes the batches of stretch 0, then those of 1, ...
//!  worker 1  <── 0 │ 1 1 │ 2 2 ...
//! ```
//!
//! What falls to one worker thus arrives in the order of the log, however fast the readers are. Bytes under way are
//! bounded: a reader waits while there are too many. For the oldest stretch that is still being read those count that
//! lie before it or in it, as the workers get to all of these without it; for later stretches all count. So it ends,
//! and there is never more than twice the bound.

use super::apply::Batch;
use crate::cache::{Cache, Purpose};
use crate::sync::{Condvar, Mutex};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// See the module.
pub(super) struct Lanes {
    stretches: usize,
    most_bytes: usize,
    cache: Arc<Cache>,
    flow: Mutex<Flow>,
    /// Room for the oldest stretch that is being read, and for later ones.
    room_in_front: Condvar,
    room_behind: Condvar,
    inboxes: Vec<Inbox>,
}

#[derive(Default)]
struct Flow {
    /// The next stretch that nobody reads.
    next: usize,
    reading: BTreeSet<usize>,
    /// What is under way, by stretch, and of all.
    by_stretch: BTreeMap<usize, usize>,
    bytes: usize,
    aborted: bool,
}

impl Flow {
    fn is_oldest(&self, stretch: usize) -> bool {
        self.reading.first() == Some(&stretch)
    }

    /// What counts for a batch of the stretch.
    fn ahead_of(&self, stretch: usize) -> usize {
        match self.is_oldest(stretch) {
            true => self.by_stretch.range(..=stretch).map(|(_, bytes)| bytes).sum(),
            false => self.bytes,
        }
    }
}

#[derive(Default)]
struct Inbox {
    state: Mutex<Arrivals>,
    /// A batch of the current stretch, or its end.
    arrived: Condvar,
}

#[derive(Default)]
struct Arrivals {
    /// The stretch whose batches are taken.
    current: usize,
    /// Of it and later ones: batches, and whether these are all.
    lanes: HashMap<usize, (VecDeque<Batch>, bool)>,
    aborted: bool,
}

impl Lanes {
    /// For so many stretches and workers. `cache` accounts for what is under way: up to `most_bytes`, or one batch, and
    /// the same again.
    pub fn new(stretches: usize, workers: usize, most_bytes: usize, cache: Arc<Cache>) -> Lanes {
        Lanes {
            stretches,
            most_bytes,
            cache,
            flow: Mutex::default(),
            room_in_front: Condvar::new(),
            room_behind: Condvar::new(),
            inboxes: std::iter::repeat_with(Inbox::default).take(workers).collect(),
        }
    }

    /// The next stretch to read, which is to be followed by [`Lanes::end`]; `None`: there is no more, or all is given
    /// up.
    pub fn begin(&self) -> Option<usize> {
        let mut flow = self.flow.lock();
        let stretch = flow.next;
        if stretch == self.stretches || flow.aborted {
            return None;
        }
        flow.next += 1;
        flow.reading.insert(stretch);
        Some(stretch)
    }

    /// Hands over a batch of a stretch that is being read.
    pub fn send(&self, stretch: usize, worker: usize, batch: Batch) -> Result<()> {
        let bytes = batch.memory();
        {
            let mut flow = self.flow.lock();
            loop {
                if flow.aborted {
                    return Err(Error::OutOfMemory("a thread that replays the log has died"));
                }
                let ahead = flow.ahead_of(stretch);
                if ahead == 0 || ahead + bytes <= self.most_bytes {
                    break;
                }
                match flow.is_oldest(stretch) {
                    true => self.room_in_front.wait(&mut flow),
                    false => self.room_behind.wait(&mut flow),
                }
            }
            flow.bytes += bytes;
            *flow.by_stretch.entry(stretch).or_default() += bytes;
        }
        self.cache.charge(Purpose::Recovery, bytes);
        let inbox = &self.inboxes[worker];
        let mut state = inbox.state.lock();
        state.lanes.entry(stretch).or_default().0.push_back(batch);
        if state.current == stretch {
            inbox.arrived.notify_one();
        }
        Ok(())
    }

    /// All batches of the stretch were sent.
    pub fn end(&self, stretch: usize) {
        for inbox in &self.inboxes {
            let mut state = inbox.state.lock();
            state.lanes.entry(stretch).or_default().1 = true;
            if state.current == stretch {
                inbox.arrived.notify_one();
            }
        }
        self.flow.lock().reading.remove(&stretch);
        // One of them is the oldest now.
        self.room_behind.notify_all();
    }

    /// The next batch for a worker; `None`: there is no more, or all is given up.
    pub fn take(&self, worker: usize) -> Option<Batch> {
        let inbox = &self.inboxes[worker];
        let mut state = inbox.state.lock();
        let (stretch, batch) = loop {
            if state.aborted || state.current == self.stretches {
                return None;
            }
            let current = state.current;
            match state.lanes.get_mut(&current) {
                Some((batches, complete)) => match batches.pop_front() {
                    Some(batch) => break (current, batch),
                    None if *complete => {
                        state.lanes.remove(&current);
                        state.current += 1;
                    }
                    None => inbox.arrived.wait(&mut state),
                },
                None => inbox.arrived.wait(&mut state),
            }
        };
        drop(state);
        let bytes = batch.memory();
        self.cache.discharge(Purpose::Recovery, bytes);
        {
            let mut flow = self.flow.lock();
            flow.bytes -= bytes;
            if let Some(left) = flow.by_stretch.get_mut(&stretch) {
                *left -= bytes;
                if *left == 0 {
                    flow.by_stretch.remove(&stretch);
                }
            }
        }
        self.room_in_front.notify_one();
        // Who finds room sends a batch, which will be taken and wake the next.
        self.room_behind.notify_one();
        Some(batch)
    }

    /// Gives all up: nobody waits any more.
    pub fn abort(&self) {
        self.flow.lock().aborted = true;
        self.room_in_front.notify_all();
        self.room_behind.notify_all();
        for inbox in &self.inboxes {
            inbox.state.lock().aborted = true;
            inbox.arrived.notify_all();
        }
    }

    /// Whether all was given up.
    pub fn is_aborted(&self) -> bool {
        self.flow.lock().aborted
    }
}

/// Gives all up when it is dropped by a thread that panics: the others would wait for it.
pub(super) struct Watch<'a>(pub &'a Lanes);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::latest::Operation;
    use super::*;
    use crate::log::OpKind;
    use crate::options::SilentObserver;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn lanes(stretches: usize, workers: usize) -> Lanes {
        // Less than a batch: all but the oldest stretch wait.
        Lanes::new(stretches, workers, 100, Arc::new(Cache::new(1 << 20, Arc::new(SilentObserver))))
    }

    fn batch(stretch: usize, number: u32) -> Batch {
        let mut batch = Batch::default();
        let key = &stretch.to_be_bytes();
        let (kind, value) = (OpKind::Insert, &[7; 60][..]);
        batch.push(None, &Operation { tree: 1, key, kind, value, hash: 0, sequence: number, fresh: true });
        batch
    }

    #[test]
    fn each_worker_gets_the_batches_in_log_order_with_room_for_less_than_one() {
        const STRETCHES: usize = 60;
        let lanes = lanes(STRETCHES, 3);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (lanes, most) = (&lanes, &most);
                scope.spawn(move || {
                    let mut got = Vec::new();
                    while let Some(batch) = lanes.take(worker) {
                        most.fetch_max(lanes.flow.lock().bytes, Ordering::SeqCst);
                        for (operation, _) in batch.operations() {
                            got.push((operation.key.to_vec(), operation.sequence));
                        }
                    }
                    // A worker of a number gets more of the stretches with that remainder, and of some nothing.
                    let count = |stretch: usize| if stretch % 3 == worker { 9 } else { stretch as u32 % 2 };
                    let expected = (0..STRETCHES).flat_map(|stretch| {
                        (0..count(stretch)).map(move |number| (stretch.to_be_bytes().to_vec(), number))
                    });
                    assert!(got.into_iter().eq(expected));
                });
            }
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(stretch) = lanes.begin() {
                        for number in 0..9 {
                            lanes.send(stretch, stretch % 3, batch(stretch, number)).unwrap();
                        }
                        for worker in (0..3).filter(|worker| stretch % 3 != *worker && stretch % 2 == 1) {
                            lanes.send(stretch, worker, batch(stretch, 0)).unwrap();
                        }
                        lanes.end(stretch);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2 * batch(0, 0).memory());
        assert_eq!(lanes.cache.used(), 0);
    }

    #[test]
    fn a_thread_that_dies_leaves_nobody_waiting() {
        let lanes = lanes(10, 2);
        let stretch = lanes.begin().unwrap();
        std::thread::scope(|scope| {
            let waiting = [scope.spawn(|| lanes.take(0)), scope.spawn(|| lanes.take(1))];
            let sending = scope
                .spawn(|| (0..100).try_for_each(|number| lanes.send(stretch, 0, batch(stretch, number))));
            let dying = scope.spawn(|| {
                let _watch = Watch(&lanes);
                panic!("as a test");
            });
            assert!(dying.join().is_err());
            assert!(sending.join().unwrap().is_err());
            assert!(waiting.into_iter().filter_map(|thread| thread.join().unwrap()).count() <= 1);
        });
        assert!(lanes.begin().is_none());
    }
}
