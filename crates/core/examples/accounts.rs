//! Transfers between accounts by several threads at once. No money is lost or made, and no account is overdrawn, at any
//! moment that anybody can look at.
//!
//! `cargo run --release -p teak-core --example accounts`

mod scratch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use teak_core::{CommitFlush, Engine, Error, Options, Result, Snapshot, Tree, TreeSpec};

const ACCOUNTS: u32 = 100;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 500;
const AT_FIRST: u64 = 1000;

fn main() -> Result<()> {
    let dir = scratch::Directory::new("accounts");
    // Commits do not wait for the disk here: what is shown is what several threads see of each other.
    let options = Options { commit_flush: CommitFlush::Lazy, ..Options::new(dir.path()) };
    let engine = Engine::open_with(options)?;
    let table = engine.create_table("accounts", &[TreeSpec::default()])?;
    let accounts = table.tree(0);
    let mut txn = engine.begin();
    for account in 0..ACCOUNTS {
        txn.insert(accounts, account.to_be_bytes(), AT_FIRST.to_be_bytes())?;
    }
    txn.commit()?;

    let (done, again) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (engine, done, again) = (&engine, &done, &again);
                scope.spawn(move || transfers(engine, accounts, seed, done, again))
            })
            .collect();
        // Every snapshot shows all of each transfer, or nothing.
        while threads.iter().any(|thread| !thread.is_finished()) {
            assert_eq!(sum(&engine.snapshot(), accounts)?, u64::from(ACCOUNTS) * AT_FIRST);
        }
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread has panicked"))
    })?;
    let (done, again) = (done.into_inner(), again.into_inner());
    assert_eq!(done, THREADS * TRANSFERS);
    assert_eq!(sum(&engine.snapshot(), accounts)?, u64::from(ACCOUNTS) * AT_FIRST);
    println!("{done} transfers, {again} begun again; the sum is what it was");
    engine.close()
}

/// Moves money to and fro, each time in a transaction, and again from its beginning if another was in the way.
fn transfers(
    engine: &Engine,
    accounts: &Arc<Tree>,
    seed: u64,
    done: &AtomicU64,
    again: &AtomicU64,
) -> Result<()> {
    let mut state = seed + 1;
    let mut random = |below: u64| {
        // Numbers that are random enough, by Marsaglia.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..TRANSFERS {
        let (from, to) = (random(ACCOUNTS.into()) as u32, random(ACCOUNTS.into()) as u32);
        let amount = random(AT_FIRST);
        loop {
            match transfer(engine, accounts, from, to, amount) {
                Ok(()) => break,
                // What it had done is undone: the transaction was dropped.
                Err(Error::Deadlock | Error::SnapshotConflict) => again.fetch_add(1, Ordering::SeqCst),
                Err(error) => return Err(error),
            };
        }
        done.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

fn transfer(engine: &Engine, accounts: &Arc<Tree>, from: u32, to: u32, amount: u64) -> Result<()> {
    let mut txn = engine.begin();
    // Locked: what is read here stays true until the commit.
    let has = balance(txn.get_for_update(accounts, from.to_be_bytes())?);
    if from == to || has < amount {
        return Ok(());
    }
    txn.update(accounts, from.to_be_bytes(), (has - amount).to_be_bytes())?;
    let has = balance(txn.get_for_update(accounts, to.to_be_bytes())?);
    txn.update(accounts, to.to_be_bytes(), (has + amount).to_be_bytes())?;
    txn.commit()
}

fn balance(value: Option<Vec<u8>>) -> u64 {
    let bytes = value.expect("the account is there").try_into().expect("eight bytes");
    u64::from_be_bytes(bytes)
}

fn sum(snapshot: &Snapshot, accounts: &Arc<Tree>) -> Result<u64> {
    snapshot.rows(accounts).map(|row| row.map(|(_, value)| balance(Some(value)))).sum()
}
