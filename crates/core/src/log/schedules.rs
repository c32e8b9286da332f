//! Group commit under many schedules: whoever leads, whoever waits, and whatever fails meanwhile.

use super::tests::{create, numbers, record};
use super::{Log, Lsn};
use crate::file::{Fault, SimulatedFileSystem};
use crate::sync::{explore, yield_now};
use crate::{CommitFlush, Error};
use std::sync::{Arc, Mutex};

/// What closures and returned calls tell, in their order. Nobody is interrupted while he tells.
#[derive(Default)]
struct Told {
    published: Vec<(Lsn, u64)>,
    /// Published when they were queued, perhaps before others that wait.
    early: Vec<(Lsn, u64)>,
    failed: Vec<u64>,
    /// What `Log::published` said, and how many had been published by then.
    looks: Vec<(Lsn, usize)>,
}

/// All that is published goes in the order of the log, and what lies before `Log::published` is.
fn look(log: &Log, told: &Mutex<Told>) {
    let published = log.published();
    let mut now = told.lock().unwrap();
    let by_then = now.published.len();
    now.looks.push((published, by_then));
    drop(now);
    log.while_settled(|published, early| {
        let told = told.lock().unwrap();
        let behind = told.published.iter().filter(|(end, _)| *end > published);
        assert_eq!(behind.count(), 0, "a commit behind the end of what is published");
        let not_told = |lsn: &&Lsn| !told.early.iter().any(|(end, _)| end > lsn);
        assert_eq!(early.iter().find(not_told), None, "a record that nobody has published");
    });
}

fn commit(log: &Log, told: &Arc<Mutex<Told>>, number: u64, flush: CommitFlush) {
    let teller = told.clone();
    let publish = move |end| {
        // As one who takes a latch: others go on.
        yield_now();
        let mut told = teller.lock().unwrap();
        assert!(told.published.last().is_none_or(|last| last.0 < end), "out of the log's order");
        told.published.push((end, number));
    };
    match log.commit(record(number, 40), flush, publish) {
        Ok(end) => {
            let told = told.lock().unwrap();
            assert!(told.published.contains(&(end, number)), "returned before it was published");
            drop(told);
            assert!(flush == CommitFlush::Lazy || log.written() >= end, "returned before it was written");
            assert!(flush != CommitFlush::Sync || log.synced() >= end, "returned before it was synced");
            assert!(log.published() >= end || flush == CommitFlush::Lazy);
        }
        Err(Error::DiskFull { .. }) => told.lock().unwrap().failed.push(number),
        Err(error) => panic!("{error}"),
    }
    look(log, told);
}

fn append_published(log: &Log, told: &Arc<Mutex<Told>>, number: u64) {
    let publish = || {
        let end = log.end();
        told.lock().unwrap().early.push((end, number));
    };
    log.append_published(record(number, 40), publish).unwrap();
}

/// Five threads with all that a log is asked for; `fault`: the disk is full, once.
fn five_threads(fault: bool) {
    let fs = SimulatedFileSystem::new(1);
    let log = Arc::new(create(&fs));
    let told = Arc::new(Mutex::new(Told::default()));
    if fault {
        fs.fail_after(2, Fault::Enospc);
    }
    let work: [fn(&Log, &Arc<Mutex<Told>>); 5] = [
        |log, told| {
            commit(log, told, 1, CommitFlush::Sync);
            commit(log, told, 2, CommitFlush::Lazy);
        },
        |log, told| {
            commit(log, told, 3, CommitFlush::Write);
            commit(log, told, 4, CommitFlush::Sync);
        },
        |log, told| {
            commit(log, told, 5, CommitFlush::Lazy);
            commit(log, told, 6, CommitFlush::Write);
        },
        |log, told| {
            append_published(log, told, 7);
            look(log, told);
        },
        |log, told| {
            let end = log.end();
            match log.sync_up_to(end) {
                Ok(()) => assert!(log.synced() >= end),
                Err(error) => assert!(matches!(error, Error::DiskFull { .. }), "{error}"),
            }
            look(log, told);
        },
    ];
    let threads = work.map(|work| {
        let (log, told) = (log.clone(), told.clone());
        shuttle::thread::spawn(move || work(&log, &told))
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    fs.heal();
    log.sync_up_to(log.end()).unwrap();
    let told = told.lock().unwrap();
    for &(published, by_then) in &told.looks {
        let late = told.published[by_then..].iter().find(|(end, _)| *end <= published);
        assert_eq!(late, None, "`published` was {published} before it was");
    }
    let mut expected = told.published.iter().chain(&told.early).map(|told| told.1).collect::<Vec<_>>();
    let mut found = numbers(&fs, 0).unwrap();
    let in_order = found.iter().filter(|number| **number != 7).copied();
    assert_eq!(in_order.collect::<Vec<_>>(), told.published.iter().map(|told| told.1).collect::<Vec<_>>());
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "failed: {:?}", told.failed);
    assert_eq!(found.len() + told.failed.len(), 7);
}

#[test]
fn commits_are_published_in_the_order_of_the_log_and_return_when_they_are_as_durable_as_they_want() {
    explore(|| five_threads(false));
}

#[test]
fn a_group_that_fails_takes_nobody_along_but_its_members() {
    explore(|| five_threads(true));
}

/// Whichever operation of the file system fails: who was told that a record is durable finds it after a crash, though
/// no later sync of the same file fails.
fn syncs_side_by_side(fault_at: u64) {
    let fs = SimulatedFileSystem::new(1);
    let log = Arc::new(create(&fs));
    fs.fail_after(fault_at, Fault::Eio);
    let told = Arc::new(Mutex::new(Vec::new()));
    let work: [fn(&Log) -> Option<u64>; 4] = [
        |log| log.commit(record(1, 40), CommitFlush::Sync, |_| ()).ok().map(|_| 1),
        |log| log.commit(record(2, 40), CommitFlush::Sync, |_| ()).ok().map(|_| 2),
        |log| {
            let end = log.commit(record(3, 40), CommitFlush::Write, |_| ()).ok()?;
            log.sync_up_to(end).ok().map(|()| 3)
        },
        |log| {
            let end = log.commit(record(4, 40), CommitFlush::Lazy, |_| ()).ok()?;
            log.sync_up_to(end).ok()?;
            assert!(log.synced() >= end);
            Some(4)
        },
    ];
    let threads = work.map(|work| {
        let (log, told) = (log.clone(), told.clone());
        shuttle::thread::spawn(move || {
            let number = work(&log);
            told.lock().unwrap().extend(number);
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let found = numbers(&fs.crash(), 0).unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.iter().find(|number| !found.contains(number)), None, "told {told:?}, found {found:?}");
}

#[test]
fn what_was_told_to_be_durable_is_whichever_write_or_sync_fails() {
    (0..8).for_each(|fault_at| explore(move || syncs_side_by_side(fault_at)));
}
