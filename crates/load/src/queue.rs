//! Work for the workers, in an order that no table can tell from a serial one.
//!
//! Each table is a lane. Within a lane a task that is a *barrier* runs alone: after all before it, before all after it.
//! Others of the lane run at once. Lanes do not wait for each other.
//!
//! ```text
//! lane a:  [create] [rows] [rows] [rows] [enable keys]     barrier | any order ... | barrier
//! lane b:  [create] [rows] ...
//! ```

use super::error::LoadError;
use super::pace::Window;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the queue must know of a task.
pub trait Work {
    /// The table that it belongs to.
    fn lane(&self) -> usize;
    fn is_barrier(&self) -> bool;
    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

struct Lane<T> {
    pending: VecDeque<T>,
    running: usize,
    barrier_runs: bool,
}

struct State<T> {
    /// Those with work, the one that was met first before the others.
    lanes: BTreeMap<usize, Lane<T>>,
    bytes: usize,
    failed: bool,
    closed: bool,
    /// Workers that should work: those of smaller numbers.
    admitted: usize,
    /// Workers that can: the server gives connections to so many.
    most: usize,
    /// Workers that wait for a task.
    idle: usize,
    /// Since `watch` began: bytes of tasks that ended, and whether a worker found none.
    worked: usize,
    starved: bool,
}

impl<T> State<T> {
    fn has_ended(&self) -> bool {
        self.failed || (self.closed && self.lanes.is_empty())
    }

    fn admits(&self, worker: usize) -> bool {
        worker < self.admitted.min(self.most)
    }
}

/// Tasks that wait or run.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    /// For workers that are not admitted: what happens to tasks does not wake them.
    admission: Condvar,
    most_bytes: usize,
}

impl<T: Work> Queue<T> {
    /// At most about `most_bytes` of tasks wait.
    pub fn new(most_bytes: usize) -> Queue<T> {
        let state = State {
            lanes: BTreeMap::new(),
            bytes: 0,
            failed: false,
            closed: false,
            admitted: usize::MAX,
            most: usize::MAX,
            idle: 0,
            worked: 0,
            starved: false,
        };
        Queue { state: Mutex::new(state), changed: Condvar::new(), admission: Condvar::new(), most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nobody panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(
        &self,
        condition: impl Fn(&State<T>) -> bool,
    ) -> Result<MutexGuard<'_, State<T>>, LoadError> {
        let mut state = self.lock();
        while !state.failed && condition(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failed {
            return Err(LoadError::Stopped);
        }
        Ok(state)
    }

    /// Appends a task to its lane; waits while too much is waiting.
    pub fn push(&self, task: T) -> Result<(), LoadError> {
        let most = self.most_bytes;
        let mut state = self.wait_while(|state| state.bytes > most)?;
        state.bytes += task.bytes();
        let lane = state.lanes.entry(task.lane());
        let lane = lane.or_insert_with(|| Lane { pending: VecDeque::new(), running: 0, barrier_runs: false });
        lane.pending.push_back(task);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until nothing of the lane waits or runs.
    pub fn wait_for_lane(&self, lane: usize) -> Result<(), LoadError> {
        self.wait_while(|state| state.lanes.contains_key(&lane)).map(drop)
    }

    /// Waits until nothing waits or runs.
    pub fn wait_for_all(&self) -> Result<(), LoadError> {
        self.wait_while(|state| !state.lanes.is_empty()).map(drop)
    }

    /// Waits until the worker of this number, from 0, is among those that may work. False if there will be no work any
    /// more.
    pub fn admit(&self, worker: usize) -> bool {
        let mut state = self.lock();
        while !state.has_ended() && !state.admits(worker) {
            state = self.admission.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.has_ended()
    }

    /// From now on so many workers may work; those above go on with what they have, but get no more.
    pub fn set_admitted(&self, workers: usize) {
        self.lock().admitted = workers;
        self.wake_all();
    }

    /// There can be no more workers than this, but there is always one. How many there can be now.
    pub fn limit(&self, most: usize) -> usize {
        let mut state = self.lock();
        state.most = state.most.min(most.max(1));
        let now = state.most;
        drop(state);
        self.wake_all();
        now
    }

    /// One worker of those that are admitted has to do without its connection from now on, if there are two.
    pub fn give_way(&self) -> usize {
        let state = self.lock();
        let fewer = state.admitted.min(state.most) - 1;
        drop(state);
        self.limit(fewer)
    }

    /// The next task that may run, for the worker of this number. `None` when there will be none, after a failure, and
    /// when the worker is not admitted any more: `admit` tells.
    pub fn take(&self, worker: usize) -> Option<T> {
        let mut state = self.lock();
        while !state.has_ended() && state.admits(worker) {
            if let Some(task) = Self::first_runnable(&mut state) {
                return Some(task);
            }
            state.starved = true;
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        None
    }

    /// Watches the work for a while. `None` if it ends before.
    pub fn watch(&self, length: Duration) -> Option<Window> {
        let began = Instant::now();
        let mut state = self.lock();
        (state.worked, state.starved) = (0, state.idle > 0);
        while !state.has_ended() {
            let Some(left) = length.checked_sub(began.elapsed()) else {
                let rate = state.worked as f64 / began.elapsed().as_secs_f64();
                return Some(Window { rate, starved: state.starved, most: state.most });
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    fn first_runnable(state: &mut State<T>) -> Option<T> {
        for lane in state.lanes.values_mut() {
            let Some(barrier) = lane.pending.front().map(Work::is_barrier) else { continue };
            if lane.barrier_runs || (barrier && lane.running > 0) {
                continue;
            }
            lane.running += 1;
            lane.barrier_runs = barrier;
            return lane.pending.pop_front();
        }
        None
    }

    /// A task that was taken has ended.
    pub fn done(&self, lane: usize, bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        state.worked += bytes;
        if let Some(entry) = state.lanes.get_mut(&lane) {
            entry.running -= 1;
            entry.barrier_runs = false;
            if entry.running == 0 && entry.pending.is_empty() {
                state.lanes.remove(&lane);
            }
        }
        if state.has_ended() {
            self.admission.notify_all();
        }
        self.changed.notify_all();
    }

    fn wake_all(&self) {
        self.changed.notify_all();
        self.admission.notify_all();
    }

    /// No more tasks come: workers end after the last.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake_all();
    }

    /// Nothing more is handed out, and whoever waits is told.
    pub fn fail(&self) {
        self.lock().failed = true;
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Debug, Clone, PartialEq)]
    struct Step(usize, bool, u32);

    impl Work for Step {
        fn lane(&self) -> usize {
            self.0
        }
        fn is_barrier(&self) -> bool {
            self.1
        }
        fn bytes(&self) -> usize {
            1
        }
    }

    #[test]
    fn a_barrier_runs_alone_in_its_lane_and_holds_up_no_other() {
        let queue = Queue::new(100);
        for step in
            [Step(1, true, 0), Step(1, false, 1), Step(1, false, 2), Step(1, true, 3), Step(2, false, 4)]
        {
            queue.push(step).unwrap();
        }
        let numbers = |queue: &Queue<Step>, count: usize| -> Vec<u32> {
            (0..count).map(|_| queue.take(0).unwrap().2).collect()
        };
        assert_eq!(numbers(&queue, 2), [0, 4]);
        queue.done(1, 1);
        assert_eq!(numbers(&queue, 2), [1, 2]);
        queue.done(2, 1);
        queue.done(1, 1);
        assert!(Queue::first_runnable(&mut queue.lock()).is_none());
        queue.done(1, 1);
        assert_eq!(numbers(&queue, 1), [3]);
        queue.close();
        queue.done(1, 1);
        assert_eq!(queue.take(0), None);
        queue.wait_for_all().unwrap();
    }

    #[test]
    fn any_number_of_workers_keeps_the_order_of_each_lane() {
        let queue = Arc::new(Queue::<Step>::new(10));
        let log = Arc::new(Mutex::new(Vec::new()));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (queue, log) = (queue.clone(), log.clone());
                std::thread::spawn(move || {
                    while let Some(step) = queue.take(0) {
                        log.lock().unwrap().push((true, step.clone()));
                        std::thread::yield_now();
                        log.lock().unwrap().push((false, step.clone()));
                        queue.done(step.0, 1);
                    }
                })
            })
            .collect();
        for number in 0..3000 {
            queue.push(Step((number % 3) as usize, number % 7 < 2, number)).unwrap();
        }
        queue.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let log = log.lock().unwrap();
        for barrier in log.iter().filter(|(begins, step)| *begins && step.1) {
            let place = |begins: bool, number: u32| {
                log.iter().position(|(b, step)| *b == begins && step.2 == number).unwrap()
            };
            let number = barrier.1 .2;
            let (begin, end) = (place(true, number), place(false, number));
            for (at, (_, step)) in
                log.iter().enumerate().filter(|(_, (_, step))| step.0 == barrier.1 .0 && step.2 != number)
            {
                assert!(if step.2 < number { at < begin } else { at > end }, "{step:?} and {barrier:?}");
            }
        }
    }

    #[test]
    fn only_admitted_workers_get_tasks() {
        let queue = Arc::new(Queue::new(10));
        queue.set_admitted(1);
        queue.push(Step(1, false, 0)).unwrap();
        assert_eq!(queue.take(1), None);
        let other = queue.clone();
        let second = std::thread::spawn(move || (other.admit(1), other.take(1)));
        assert!(queue.admit(0));
        assert_eq!(queue.take(0), Some(Step(1, false, 0)));
        queue.push(Step(1, false, 1)).unwrap();
        assert!(!second.is_finished());
        queue.set_admitted(2);
        assert_eq!(second.join().unwrap(), (true, Some(Step(1, false, 1))));
        queue.close();
        queue.done(1, 1);
        queue.done(1, 1);
        assert!(!queue.admit(0) && queue.watch(Duration::from_secs(1000)).is_none());
    }

    #[test]
    fn connections_that_the_server_refuses_are_not_asked_for_again() {
        let queue: Queue<Step> = Queue::new(10);
        queue.set_admitted(8);
        assert_eq!(queue.limit(5), 5);
        assert_eq!(queue.limit(7), 5);
        assert_eq!(queue.give_way(), 4);
        queue.set_admitted(3);
        assert_eq!(queue.give_way(), 2);
        assert!(queue.admit(1) && queue.take(2).is_none());
        assert_eq!([queue.give_way(), queue.give_way()], [1, 1]);
        assert_eq!(queue.limit(0), 1);
    }

    #[test]
    fn a_window_knows_of_workers_that_had_nothing_to_do() {
        let queue = Arc::new(Queue::new(10));
        let window = |length| queue.watch(Duration::from_millis(length)).unwrap();
        queue.push(Step(1, false, 0)).unwrap();
        assert_eq!(queue.take(0), Some(Step(1, false, 0)));
        assert!(!window(1).starved);
        let other = queue.clone();
        let idle = std::thread::spawn(move || other.take(1));
        while queue.lock().idle == 0 {
            std::thread::yield_now();
        }
        assert!(window(1).starved && window(1).starved);
        queue.push(Step(1, false, 1)).unwrap();
        assert!(idle.join().unwrap().is_some());
        assert!(!window(1).starved);
    }

    #[test]
    fn a_failure_wakes_everybody() {
        let queue = Arc::new(Queue::new(0));
        queue.push(Step(1, false, 0)).unwrap();
        let waiting = queue.clone();
        let pusher = std::thread::spawn(move || waiting.push(Step(1, false, 1)).is_err());
        queue.fail();
        assert!(pusher.join().unwrap());
        assert_eq!(queue.take(0), None);
        assert!(matches!(queue.wait_for_all(), Err(LoadError::Stopped)));
    }
}
