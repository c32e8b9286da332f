//! A queue with several consumers. Each takes the first job that nobody else is at, without waiting for anybody; a job
//! is gone when the transaction that has done it commits, and is there again if its consumer fails.
//!
//! `cargo run --release -p teak-core --example queue`

mod scratch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use teak_core::{CommitFlush, Engine, Error, Isolation, Options, Result, Tree, TreeSpec};

const JOBS: u64 = 1000;
const CONSUMERS: u64 = 4;

fn main() -> Result<()> {
    let dir = scratch::Directory::new("queue");
    let engine = Engine::open_with(Options { commit_flush: CommitFlush::Lazy, ..Options::new(dir.path()) })?;
    let table = engine.create_table("jobs", &[TreeSpec::default(); 2])?;
    // What is to be done, and what came of it.
    let (jobs, results) = (table.tree(0), table.tree(1));
    let consumed: Result<Vec<Vec<u64>>> = std::thread::scope(|scope| {
        let producer = scope.spawn(|| produce(&engine, jobs));
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|number| {
                let engine = &engine;
                scope.spawn(move || consume(engine, jobs, results, number))
            })
            .collect();
        producer.join().expect("the producer has panicked")?;
        consumers.into_iter().map(|consumer| consumer.join().expect("a consumer has panicked")).collect()
    });
    let consumed = consumed?;

    // Each job was done once.
    let all: Vec<u64> = consumed.iter().flatten().copied().collect();
    assert_eq!(all.len() as u64, JOBS);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), (0..JOBS).collect());
    let after = engine.snapshot();
    assert_eq!(after.rows(jobs).count(), 0);
    for row in after.rows(results) {
        let (job, result) = row?;
        assert_eq!(number(&result), number(&job) * number(&job));
    }
    assert_eq!(after.rows(results).count() as u64, JOBS);
    println!("jobs by consumer: {:?}", consumed.iter().map(Vec::len).collect::<Vec<_>>());
    engine.close()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

fn produce(engine: &Engine, jobs: &Arc<Tree>) -> Result<()> {
    for job in 0..JOBS {
        let mut txn = engine.begin();
        txn.insert(jobs, job.to_be_bytes(), "a number to be squared")?;
        txn.commit()?;
    }
    Ok(())
}

/// Works until all has been done; the jobs that it did.
fn consume(engine: &Engine, jobs: &Arc<Tree>, results: &Arc<Tree>, consumer: u64) -> Result<Vec<u64>> {
    let (mut done, mut attempts) = (Vec::new(), 0);
    while (engine.snapshot().rows(results).count() as u64) < JOBS {
        // Looking at the queue locks nothing.
        for row in engine.snapshot().rows(jobs).take(50) {
            let (key, _) = row?;
            let mut txn = engine.begin_at(Isolation::ReadCommitted);
            txn.set_lock_timeout(Duration::ZERO);
            match txn.get_for_update(jobs, &key) {
                Ok(Some(_)) => {}
                // Somebody else has done it since the look, or is at it.
                Ok(None) | Err(Error::WouldBlock) => continue,
                Err(error) => return Err(error),
            }
            txn.delete(jobs, &key)?;
            txn.insert(results, &key, (number(&key) * number(&key)).to_be_bytes())?;
            attempts += 1;
            if attempts % 10 == consumer {
                // It fails, as consumers do: the job stays.
                txn.rollback();
                continue;
            }
            txn.commit()?;
            done.push(number(&key));
        }
    }
    Ok(done)
}
