//! Which transactions of a source may be applied at once by several workers, and what is known to be applied. It does
//! no I/O and knows no time, so that its tests can try orders of everything.
//!
//! ```text
//! log       1 2 3 4 5 6 7 8 9 ...
//!           ─────┬─ ───┬───
//!                │     └ waiting, with a worker, or done
//!               mark: all up to it are done
//! ```
//!
//! - A transaction waits for each one before it in the log that touches a row, or a table, which it touches as well.
//! - What a worker is given at once, a batch, is one transaction in the target, in the log's order. It has only
//!   transactions for which all that they wait for is done, or before them in the batch. So no batch ever waits for
//!   another one, and whatever has become of others, what a batch finds in the target is what its transactions found at
//!   the source.
//! - If the order of commits is kept, batches are pieces of the log without gaps, and committed in its order: nothing
//!   is done above the mark then. Otherwise each batch is noted in the row of its worker, with whatever of that worker
//!   is above the mark that the target has.

use crate::above;
use crate::position::Gtid;
use crate::target::Place;
use std::collections::{HashMap, HashSet, VecDeque};

/// In which order transactions are committed in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOrder {
    /// In that of the log.
    Kept,
    /// Those that touch the same in that of the log, others as it comes.
    Free,
}

/// What a transaction touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Touch {
    /// A value of a unique key of a table.
    Key {
        /// Numbers of what is different are different nearly always; if not, one waits for the other.
        table: u64,
        /// Likewise.
        key: u64,
    },
    /// A table as a whole.
    Table(u64),
}

/// Transactions for one worker, which are one in the target.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch<T> {
    /// What they do, in the log's order.
    pub transactions: Vec<T>,
    /// Their numbers: of the first, and of the last one.
    pub first: u64,
    /// If the order is kept, these are all between the two.
    pub last: u64,
    /// What the worker's row has with them.
    pub noted: String,
}

/// A transaction up to which all are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Its number in the log.
    pub gtid: Gtid,
    /// Where it ends.
    pub place: Place,
}

#[derive(Debug)]
enum State<T> {
    /// With what it does, in bytes.
    Waits(T, usize),
    Given,
    Done,
}

#[derive(Debug)]
struct Entry<T> {
    passed: Passed,
    name: String,
    /// Numbers of those that it waits for.
    after: Vec<u64>,
    state: State<T>,
}

/// Who has touched a table.
#[derive(Debug, Default)]
struct Touches {
    /// As a whole, last.
    whole: u64,
    /// By keys, since then.
    since: Vec<u64>,
}

/// What one worker does.
#[derive(Debug, Default)]
struct Given {
    /// It has these.
    now: Vec<u64>,
    /// It did these, which the target's mark has not.
    before: Vec<(u64, String)>,
}

/// The transactions behind the mark. `T` is what one does.
#[derive(Debug)]
pub struct Schedule<T> {
    order: CommitOrder,
    /// All up to this one are done.
    mark: u64,
    /// The mark that is in the target.
    recorded: u64,
    entries: VecDeque<Entry<T>>,
    /// The GTIDs of all that the target's mark has not.
    names: HashSet<String>,
    /// Of those that the mark has here.
    passed: Vec<String>,
    waiting: usize,
    waiting_bytes: usize,
    done_above: usize,
    keys: HashMap<(u64, u64), u64>,
    tables: HashMap<u64, Touches>,
    /// When `keys` is so long, what is done is taken out of it.
    longest: usize,
    workers: Vec<Given>,
}

impl<T> Schedule<T> {
    const SHORTEST: usize = 4096;

    /// With nothing in it, behind a mark that the target has.
    pub fn new(order: CommitOrder, workers: usize, mark: u64) -> Schedule<T> {
        Schedule {
            order,
            mark,
            recorded: mark,
            entries: VecDeque::new(),
            names: HashSet::new(),
            passed: Vec::new(),
            waiting: 0,
            waiting_bytes: 0,
            done_above: 0,
            keys: HashMap::new(),
            tables: HashMap::new(),
            longest: Self::SHORTEST,
            workers: (0..workers).map(|_| Given::default()).collect(),
        }
    }

    /// All up to the transaction of this number are done.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// How much of that the target does not know yet.
    pub fn unrecorded(&self) -> u64 {
        self.mark - self.recorded
    }

    /// How many transactions are done above the mark.
    pub fn done_above(&self) -> usize {
        self.done_above
    }

    /// How many transactions there are behind the mark.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many of them wait for a worker, and how many bytes they have.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting, self.waiting_bytes)
    }

    /// Whether one of this GTID is behind the mark that the target has. Of servers whose numbers may fall another one
    /// can have the same: it may come when the first one is part of that mark, as one that is noted to be done has no
    /// other name.
    pub fn has(&self, gtid: &Gtid) -> bool {
        self.names.contains(&gtid.to_string())
    }

    /// The log's next transaction.
    pub fn add(&mut self, passed: Passed, touches: &[Touch], does: T, bytes: usize) {
        let number = self.mark + self.entries.len() as u64 + 1;
        let mut after = Vec::new();
        for touch in touches {
            match *touch {
                Touch::Table(table) => {
                    let table = self.tables.entry(table).or_default();
                    after.push(table.whole);
                    after.append(&mut table.since);
                    table.whole = number;
                }
                Touch::Key { table, key } => {
                    let of_table = self.tables.entry(table).or_default();
                    after.push(of_table.whole);
                    if of_table.since.last() != Some(&number) {
                        of_table.since.push(number);
                    }
                    after.extend(self.keys.insert((table, key), number));
                }
            }
        }
        after.retain(|&other| other > self.mark && other != number);
        after.sort_unstable();
        after.dedup();
        let name = passed.gtid.to_string();
        self.names.insert(name.clone());
        self.waiting += 1;
        self.waiting_bytes += bytes;
        self.entries.push_back(Entry { passed, name, after, state: State::Waits(does, bytes) });
        self.forget_done();
    }

    /// Takes what is done out of what is touched, now and then.
    fn forget_done(&mut self) {
        if self.keys.len() < self.longest {
            return;
        }
        let mark = self.mark;
        self.keys.retain(|_, number| *number > mark);
        self.tables.retain(|_, table| {
            table.since.retain(|number| *number > mark);
            table.whole > mark || !table.since.is_empty()
        });
        self.longest = Self::SHORTEST.max(2 * self.keys.len());
    }

    fn at(&self, number: u64) -> usize {
        (number - self.mark - 1) as usize
    }

    fn is_done(&self, number: u64) -> bool {
        number <= self.mark || matches!(self.entries[self.at(number)].state, State::Done)
    }

    /// Gives a worker, which has nothing, some transactions: so many at most, and about so many bytes. None: there are
    /// none that need not wait.
    pub fn give(&mut self, worker: usize, most: usize, bytes: usize) -> Option<Batch<T>> {
        let mut numbers: Vec<u64> = Vec::new();
        let mut taken_bytes = 0;
        for (at, entry) in self.entries.iter().enumerate() {
            let State::Waits(_, length) = &entry.state else { continue };
            if numbers.len() >= most || taken_bytes >= bytes {
                break;
            }
            let is_there = |&other: &u64| self.is_done(other) || numbers.binary_search(&other).is_ok();
            if entry.after.iter().all(is_there) {
                numbers.push(self.mark + 1 + at as u64);
                taken_bytes += length;
            } else if self.order == CommitOrder::Kept {
                break;
            }
        }
        let (first, last) = (*numbers.first()?, *numbers.last()?);
        let mut transactions = Vec::with_capacity(numbers.len());
        for &number in &numbers {
            let at = self.at(number);
            if let State::Waits(does, _) = std::mem::replace(&mut self.entries[at].state, State::Given) {
                transactions.push(does);
            }
        }
        self.waiting -= transactions.len();
        self.waiting_bytes -= taken_bytes;
        let noted = match self.order {
            CommitOrder::Kept => String::new(),
            CommitOrder::Free => {
                let now = numbers.iter().map(|&number| (number, &self.entries[self.at(number)].name));
                let before = self.workers[worker].before.iter().map(|(number, name)| (*number, name));
                above::noted(before.chain(now))
            }
        };
        self.workers[worker].now = numbers;
        Some(Batch { transactions, first, last, noted })
    }

    /// What a worker was given is committed. Those that the mark passes for that, in the log's order.
    pub fn done(&mut self, worker: usize) -> Vec<Passed> {
        for number in std::mem::take(&mut self.workers[worker].now) {
            let at = self.at(number);
            self.entries[at].state = State::Done;
            self.done_above += 1;
            if self.order == CommitOrder::Free {
                let name = self.entries[at].name.clone();
                self.workers[worker].before.push((number, name));
            }
        }
        let mut passed = Vec::new();
        while matches!(self.entries.front(), Some(Entry { state: State::Done, .. })) {
            let Some(entry) = self.entries.pop_front() else { break };
            self.passed.push(entry.name);
            self.mark += 1;
            self.done_above -= 1;
            passed.push(entry.passed);
        }
        if self.order == CommitOrder::Kept {
            // Batches move it.
            self.is_recorded();
        }
        passed
    }

    /// The target has the mark as it is.
    pub fn is_recorded(&mut self) {
        self.recorded = self.mark;
        for name in self.passed.drain(..) {
            self.names.remove(&name);
        }
        for worker in &mut self.workers {
            worker.before.retain(|(number, _)| *number > self.mark);
        }
    }
}

#[cfg(test)]
mod tests;
