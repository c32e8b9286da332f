//! Reads one at a time by random ids. Every value is compared with what was stored, by its hash.

use super::corpus::{hash, Corpus};
use super::tables::{name, prepare};
use crate::histogram::Histogram;
use crate::random::Random;
use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use teak_client::{Connection, Settings};

/// Streams of random numbers for the ids are those of another seed than the texts'.
const IDS: u64 = 0x1D5;
/// How often it is looked whether all readers have ended.
const GLANCE: Duration = Duration::from_millis(20);

/// Hashes of the values of each table; id 1 is the first.
pub struct Values {
    tables: Vec<Vec<u64>>,
    /// How many of each table, its first ones, are not read.
    passed: Vec<u64>,
    seed: u64,
}

impl Values {
    /// None yet, of so many tables.
    pub fn new(corpus: &Corpus, tables: u64) -> Values {
        let (values, passed) = (vec![Vec::new(); tables as usize], vec![0; tables as usize]);
        Values { tables: values, passed, seed: corpus.seed ^ IDS }
    }

    /// The next value of a table.
    pub fn push(&mut self, table: u64, hash: u64) {
        self.tables[table as usize].push(hash);
    }

    /// Only values that come from here on are read.
    pub fn pass(&mut self) {
        self.passed = self.tables.iter().map(|values| values.len() as u64).collect();
    }

    /// How many of a table are read.
    fn read_of(&self, table: usize) -> u64 {
        self.tables[table].len() as u64 - self.passed[table]
    }

    /// The ids of one group: equal for equal numbers, and each value that is read is as likely as any other.
    fn group(&self, number: u64, size: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let total: u64 = (0..self.tables.len()).map(|table| self.read_of(table)).sum();
        let mut random = Random::new(self.seed, number);
        (0..size).map(move |_| {
            let mut place = random.below(total);
            let mut table = 0;
            while place >= self.read_of(table) {
                place -= self.read_of(table);
                table += 1;
            }
            place += self.passed[table];
            (table as u64, place + 1, self.tables[table][place as usize])
        })
    }
}

/// What one run reads.
pub struct Plan<'a> {
    pub settings: &'a Settings,
    pub values: &'a Values,
    pub threads: u64,
    /// Ids of a group.
    pub group: u64,
}

/// What it took.
pub struct Reads {
    pub times: Histogram,
    pub seconds: f64,
    /// Reads in each whole second.
    pub series: Vec<u64>,
}

impl Plan<'_> {
    /// Run number `number` from 0. `progress` gets how many were read, about once a second. Ends early when `stop` is
    /// set, and sets it when a reader fails.
    pub fn run(&self, number: u64, stop: &AtomicBool, mut progress: impl FnMut(u64)) -> Result<Reads, Error> {
        let connections = (0..self.threads).map(|_| connect(self.settings)).collect::<Result<Vec<_>, _>>()?;
        let done = AtomicU64::new(0);
        let began = Instant::now();
        let mut reads = Reads { times: Histogram::default(), seconds: 0.0, series: Vec::new() };
        std::thread::scope(|scope| -> Result<(), Error> {
            let readers: Vec<_> = (number * self.threads..)
                .zip(connections)
                .map(|(group, connection)| {
                    let done = &done;
                    scope.spawn(move || {
                        let result = self.read(connection, group, done, stop);
                        if result.is_err() {
                            stop.store(true, Ordering::SeqCst);
                        }
                        result
                    })
                })
                .collect();
            let mut before = 0;
            while readers.iter().any(|reader| !reader.is_finished()) {
                std::thread::sleep(GLANCE);
                if began.elapsed().as_secs() > reads.series.len() as u64 {
                    let now = done.load(Ordering::SeqCst);
                    reads.series.push(now - before);
                    before = now;
                    progress(now);
                }
            }
            let mut last = began;
            for reader in readers {
                let (times, ended) = reader.join().map_err(|_| Error::Panic("a reader"))??;
                reads.times.merge(&times);
                last = last.max(ended);
            }
            reads.seconds = last.duration_since(began).as_secs_f64();
            Ok(())
        })?;
        Ok(reads)
    }

    /// One group, and when it ended.
    fn read(
        &self,
        mut connection: Connection,
        group: u64,
        done: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<(Histogram, Instant), Error> {
        let mut times = Histogram::default();
        for (table, id, expected) in self.values.group(group, self.group) {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            times.record(read_one(&mut connection, table, id, expected)?);
            done.fetch_add(1, Ordering::SeqCst);
        }
        Ok((times, Instant::now()))
    }
}

/// A connection as reads and inserts want it.
pub fn connect(settings: &Settings) -> Result<Connection, Error> {
    let mut connection = settings.connect()?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// Reads a value, and how long that took; another value than was stored is an error.
pub fn read_one(connection: &mut Connection, table: u64, id: u64, expected: u64) -> Result<Duration, Error> {
    let statement = format!("SELECT blob_text FROM {} WHERE blob_id = {id}", name(table));
    let began = Instant::now();
    let rows = connection.query(statement)?;
    let took = began.elapsed();
    let wrong = |found| Error::WrongValue { table: name(table), id, expected, found };
    match rows.as_slice() {
        [row] => match row.as_slice() {
            [Some(value)] if hash(value) == expected => Ok(took),
            [Some(value)] => Err(wrong(format!("{:016x} ({} bytes)", hash(value), value.len()))),
            _ => Err(wrong("NULL".into())),
        },
        rows => Err(wrong(format!("{} rows", rows.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_store::corpus::Form;
    use std::collections::HashSet;

    fn values() -> Values {
        let corpus = Corpus { seed: 1, histories: 1, revisions: 1, unrelated: false, form: Form::Plain };
        let mut values = Values::new(&corpus, 3);
        (0..10).for_each(|n| values.push(0, n));
        (10..30).for_each(|n| values.push(2, n));
        values
    }

    #[test]
    fn groups_repeat_differ_and_hold_all_ids() {
        let values = values();
        let group = |number, size| -> Vec<_> { values.group(number, size).collect() };
        assert_eq!(group(1, 50), group(1, 50));
        assert_ne!(group(1, 50), group(2, 50));
        let all = group(3, 2000);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 30);
        for (table, id, hash) in all {
            assert_eq!(hash, if table == 0 { id - 1 } else { id + 9 });
            assert!(table != 1);
        }
    }

    #[test]
    fn what_was_passed_is_not_read() {
        let mut values = values();
        values.pass();
        values.push(1, 100);
        values.push(2, 101);
        values.push(2, 102);
        let read: HashSet<_> = values.group(3, 200).collect();
        assert_eq!(read, HashSet::from([(1, 1, 100), (2, 21, 101), (2, 22, 102)]));
    }
}
