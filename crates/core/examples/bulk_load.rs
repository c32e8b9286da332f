//! A bulk load: rows in the order of their keys go straight into the table's file. Then reads, in the same engine and
//! after a crash.
//!
//! `cargo run --release -p teak-core --example bulk_load`

mod scratch;

use std::time::Instant;
use teak_core::{Engine, Error, Result, TreeSpec};

const ROWS: u64 = 100_000;

fn key(i: u64) -> [u8; 8] {
    // Big-endian, so that the bytes have the order of the numbers.
    (i * 10).to_be_bytes()
}

fn value(i: u64) -> String {
    format!("the value of row {i}, as long as rows are, with some text that is in each of them")
}

fn main() -> Result<()> {
    let dir = scratch::Directory::new("bulk-load");
    let engine = Engine::open(dir.path())?;
    let table = engine.create_table("words", &[TreeSpec::default()])?;
    let began = Instant::now();
    let mut txn = engine.begin();
    let loaded = txn.load(table.tree(0), (0..ROWS).map(|i| (key(i), value(i))))?;
    txn.commit()?;
    assert_eq!(loaded, ROWS);
    println!("{loaded} rows in {:?}", began.elapsed());

    // A second load of the same is refused, and leaves nothing behind.
    let mut txn = engine.begin();
    let before = ROWS..ROWS + 5000;
    let refused = txn.load(table.tree(0), before.chain([7]).map(|i| (key(i), value(i))));
    assert!(matches!(refused, Err(Error::DuplicateRow { key: of }) if of == key(7)));
    txn.commit()?;
    read(&engine)?;

    // Not closed: the next start finds what was committed.
    drop((table, engine));
    let engine = Engine::open(dir.path())?;
    read(&engine)?;
    assert!(engine.check()?.is_empty());
    engine.close()
}

fn read(engine: &Engine) -> Result<()> {
    let table = engine.open_table("words")?;
    let (words, snapshot) = (table.tree(0), engine.snapshot());
    let began = Instant::now();
    let mut cursor = snapshot.rows(words);
    for i in 0..ROWS {
        assert!(cursor.advance()?);
        assert_eq!((cursor.key(), cursor.value()?), (&key(i)[..], value(i).as_bytes()));
    }
    assert!(!cursor.advance()?);
    println!("all rows read in {:?}", began.elapsed());
    for i in (0..ROWS).step_by(997) {
        assert_eq!(snapshot.get(words, key(i))?, Some(value(i).into_bytes()));
        assert_eq!(snapshot.get(words, (i * 10 + 1).to_be_bytes())?, None);
        let next = snapshot.range(words, (i * 10 + 1).to_be_bytes()..).next().transpose()?;
        assert_eq!(next.map(|(key, _)| key), (i + 1 < ROWS).then(|| key(i + 1).to_vec()));
    }
    Ok(())
}
