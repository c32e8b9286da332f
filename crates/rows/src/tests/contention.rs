//! Threads that contend for a few rows. Whatever interleaving happens: sums hold, indexes agree with rows, and a
//! serializable scan finds the same again.

use std::thread;
use std::time::Instant;

use teak_core::Error;

use super::random::Random;
use super::*;

const ROWS: u64 = 12;
const TOTAL: u64 = 100 * ROWS;

/// An account: the balance is in the plain index, so each change moves an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    pk: String,
    unique: String,
    balance: u64,
}

impl Account {
    fn parse(text: &str) -> Account {
        let mut parts = text.split('/').map(str::to_string);
        let (pk, unique) = (parts.next().unwrap(), parts.next().unwrap());
        Account { pk, unique, balance: parts.next().unwrap().parse().unwrap() }
    }

    fn plain(&self) -> String {
        format!("{:05}", self.balance)
    }

    fn insert(&self, bench: &Bench, session: &mut Session) -> Result<()> {
        bench.insert(session, row(&self.pk, &self.unique, &self.plain()))
    }

    fn replace(&self, bench: &Bench, session: &mut Session, new: &Account) -> Result<()> {
        let (before, after) = (self.plain(), new.plain());
        bench.update(session, row(&self.pk, &self.unique, &before), row(&new.pk, &new.unique, &after))
    }

    fn delete(&self, bench: &Bench, session: &mut Session) -> Result<()> {
        bench.delete(session, row(&self.pk, &self.unique, &self.plain()))
    }
}

fn some_key(random: &mut Random) -> String {
    // Twice as many names as rows: about half of them are gaps.
    format!("{:02}", random.below(2 * ROWS))
}

/// All accounts as the read sees them, by primary key.
fn accounts(bench: &Bench, session: &mut Session, read: Read) -> Result<Vec<Account>> {
    let mut cursor = bench.cursor(0);
    let mut found = Vec::new();
    let mut result = cursor.seek(session, Start::First, b"", End::Open, read);
    loop {
        match result {
            Ok(()) => found.push(Account::parse(&text(&cursor)?)),
            Err(Stop::NotFound | Stop::End) => return Ok(found),
            Err(error) => return Err(error),
        }
        result = cursor.next(session);
    }
}

/// All accounts through the index on the balance.
fn by_balance(bench: &Bench, session: &mut Session, read: Read) -> Result<Vec<Account>> {
    let (mut index, mut rows) = (bench.cursor(2), bench.cursor(0));
    let mut found = Vec::new();
    let mut result = index.seek(session, Start::First, b"", End::Open, read);
    loop {
        match result {
            Ok(()) => {
                let entry = String::from_utf8(index.key().to_vec()).unwrap();
                let (balance, pk) = entry.split_once('\0').unwrap();
                match rows.fetch(session, &mut index, pk.as_bytes(), read) {
                    Ok(()) => {
                        let account = Account::parse(&text(&rows)?);
                        assert_eq!((account.plain().as_str(), account.pk.as_str()), (balance, pk));
                        found.push(account);
                    }
                    Err(Stop::NotFound) => assert_ne!(read, Read::SNAPSHOT),
                    Err(error) => return Err(error),
                }
            }
            Err(Stop::NotFound | Stop::End) => break,
            Err(error) => return Err(error),
        }
        result = index.next(session);
    }
    found.sort_by(|a, b| a.pk.cmp(&b.pk));
    Ok(found)
}

fn one(bench: &Bench, session: &mut Session, pk: &str) -> Result<Account> {
    Ok(Account::parse(&bench.get(session, pk, EXCLUSIVE)?))
}

fn transfer(bench: &Bench, session: &mut Session, random: &mut Random) -> Result<()> {
    let (from, to) = (some_key(random), some_key(random));
    if from == to {
        return Ok(());
    }
    let (from, to) = (one(bench, session, &from)?, one(bench, session, &to)?);
    let amount = random.below(from.balance + 1);
    from.replace(bench, session, &Account { balance: from.balance - amount, ..from.clone() })?;
    to.replace(bench, session, &Account { balance: to.balance + amount, ..to.clone() })
}

/// Gives an account another name, by update or by deleting and inserting.
fn rename(bench: &Bench, session: &mut Session, random: &mut Random) -> Result<()> {
    let old = one(bench, session, &some_key(random))?;
    let (pk, unique) = (some_key(random), some_key(random));
    let new = Account { pk, unique, balance: old.balance };
    if random.below(2) == 0 {
        return old.replace(bench, session, &new);
    }
    old.delete(bench, session)?;
    new.insert(bench, session)
}

fn total(accounts: &[Account]) -> u64 {
    accounts.iter().map(|a| a.balance).sum()
}

/// A consistent read of everything, twice and in two ways.
fn audit(bench: &Bench, session: &mut Session) -> Result<()> {
    let seen = accounts(bench, session, Read::SNAPSHOT)?;
    assert_eq!((seen.len() as u64, total(&seen)), (ROWS, TOTAL));
    assert_eq!(by_balance(bench, session, Read::SNAPSHOT)?, seen);
    let mut unique: Vec<String> = seen.iter().map(|a| a.unique.clone()).collect();
    unique.sort();
    assert_eq!(bench.keys(session, 1, Read::SNAPSHOT)?, unique);
    assert_eq!(accounts(bench, session, Read::SNAPSHOT)?, seen);
    Ok(())
}

/// A locking read of everything: it finds the same again, so there are no phantoms.
fn locking_audit(bench: &Bench, session: &mut Session, random: &mut Random) -> Result<()> {
    let read = if random.below(2) == 0 { SHARED } else { EXCLUSIVE };
    let seen = match random.below(2) {
        0 => accounts(bench, session, read)?,
        _ => by_balance(bench, session, read)?,
    };
    assert_eq!((seen.len() as u64, total(&seen)), (ROWS, TOTAL));
    assert_eq!(accounts(bench, session, Read { sight: crate::scan::Sight::Latest, ..read })?, seen);
    Ok(())
}

fn worker(bench: &Bench, seed: u64, until: Instant) -> u64 {
    let mut random = Random::new(seed);
    let mut commits = 0;
    while Instant::now() < until {
        let level = [Level::RepeatableRead, Level::Serializable][random.below(2) as usize];
        let mut session = bench.session(level);
        let result = match random.below(10) {
            0 => audit(bench, &mut session),
            1 => locking_audit(bench, &mut session, &mut random),
            2..=4 => rename(bench, &mut session, &mut random),
            _ => transfer(bench, &mut session, &mut random),
        };
        match result {
            Ok(()) => {
                session.commit().unwrap();
                commits += 1;
            }
            Err(
                Stop::NotFound
                | Stop::Duplicate
                | Stop::Core(Error::LockTimeout | Error::Deadlock | Error::SnapshotConflict),
            ) => session.rollback(),
            Err(error) => panic!("{error}"),
        }
    }
    commits
}

#[test]
fn contention_breaks_nothing() {
    let seed = Random::seed();
    let bench = Bench::new();
    let mut filler = bench.repeatable();
    for n in 0..ROWS {
        let name = format!("{:02}", 2 * n);
        Account { pk: name.clone(), unique: name, balance: 100 }.insert(&bench, &mut filler).unwrap();
    }
    filler.commit().unwrap();
    let until = Instant::now() + Duration::from_secs(2);
    let commits: u64 = thread::scope(|scope| {
        let bench = &bench;
        let workers: Vec<_> =
            (0..4).map(|n| scope.spawn(move || worker(bench, seed.wrapping_add(n), until))).collect();
        while Instant::now() < until {
            bench.engine.core.checkpoint().unwrap();
        }
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    assert!(commits > 100, "{commits} commits");
    audit(&bench, &mut bench.repeatable()).unwrap();
    let before = accounts(&bench, &mut bench.repeatable(), Read::SNAPSHOT).unwrap();
    let bench = bench.reopen();
    audit(&bench, &mut bench.repeatable()).unwrap();
    assert_eq!(accounts(&bench, &mut bench.repeatable(), Read::SNAPSHOT).unwrap(), before);
}
