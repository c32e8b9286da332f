//! Statements that a duplicate ends, whenever it is found: keys are looked for when rows and entries are written
//! together.

use super::locks::{is_timeout, three};
use super::*;

const SORTS: Promise = Promise {
    private: false,
    fresh_key: false,
    batch: Batch::ManyOrNone,
    duplicate: LockMode::Shared,
    rewrites: false,
};

/// 100 rows of which those of `unique` have what it says.
fn load_sorted(bench: &Bench, loader: &mut Session, unique: impl Fn(u32) -> String) -> Result<()> {
    for n in 100..200 {
        let (pk, unique) = (n.to_string(), unique(n));
        bench.insert_with(loader, row(&pk, &unique, "p"), SORTS).map_err(|(stop, _)| stop)?;
    }
    loader.finish_rows(&bench.table, false)
}

/// 200 rows in no order.
fn load_scattered(bench: &Bench, loader: &mut Session, pk: impl Fn(u32) -> String) -> Result<()> {
    for n in 0..200 {
        let unique = format!("x{n}");
        bench.insert_with(loader, row(&pk(n), &unique, "p"), SORTS).map_err(|(stop, _)| stop)?;
    }
    loader.finish_rows(&bench.table, false)
}

fn scattered(n: u32) -> String {
    format!("k{}", n * 77 % 211)
}

/// What the loader was told late.
fn collided(loader: &Session) -> (u32, String, String, bool) {
    let collision = &loader.collision;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (collision.tree, text(&collision.pk), text(&collision.row), collision.is_late)
}

#[test]
fn rows_that_come_in_no_order_are_told_late_that_their_key_is_taken_and_which() {
    let bench = Bench::new();
    three(&bench);
    let mut loader = bench.repeatable();
    let mut try_load = |pk: &dyn Fn(u32) -> String, expected: (u32, &str, &str)| {
        loader.statement_begin().unwrap();
        assert!(matches!(load_scattered(&bench, &mut loader, pk), Err(Stop::Duplicate)));
        let (tree, pk, row, is_late) = collided(&loader);
        assert_eq!((tree, &*pk, &*row, is_late), (expected.0, expected.1, expected.2, true));
        loader.statement_rollback().unwrap();
    };
    // That of a row that is there; of another of the statement; of both the one that came first.
    try_load(&|n| if n == 190 { "3".into() } else { scattered(n) }, (0, "3", "3/x190/p"));
    let twin = scattered(150);
    let row = format!("{twin}/x180/p");
    try_load(&|n| scattered(if n == 180 { 150 } else { n }), (0, &twin, &row));
    let both = |n| match n {
        190 => "3".into(),
        n => scattered(if n == 180 { 150 } else { n }),
    };
    try_load(&both, (0, &twin, &row));
    loader.statement_begin().unwrap();
    load_scattered(&bench, &mut loader, scattered).unwrap();
    loader.commit().unwrap();
    assert_eq!(bench.committed(0).len(), 203);
    assert_eq!(bench.committed(1).len(), 203);
}

/// A row that is too long to wait is looked for at once, but is not the first for that.
#[test]
fn of_rows_that_wait_and_rows_that_do_not_the_first_is_told() {
    let bench = Bench::new();
    three(&bench);
    let long = "p".repeat(5000);
    for first in [150_u32, 160] {
        let mut loader = bench.repeatable();
        loader.statement_begin().unwrap();
        let rows = (0..200).try_for_each(|n| {
            let pk = match n {
                150 => "1".to_string(),
                160 => "3".to_string(),
                n => scattered(n),
            };
            // Of the two one waits.
            let plain = if [150, 160].contains(&n) && n != first { &*long } else { "p" };
            let unique = format!("x{n}");
            bench.insert_with(&mut loader, row(&pk, &unique, plain), SORTS).map_err(|(stop, _)| stop)
        });
        let result = rows.and_then(|()| loader.finish_rows(&bench.table, false));
        assert!(matches!(result, Err(Stop::Duplicate)));
        assert_eq!(loader.collision.pk, b"1");
    }
}

/// Nobody waits for somebody who reads a row that makes the statement fail.
#[test]
fn a_key_that_somebody_else_has_locked_is_looked_for_at_once() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.repeatable();
    bench.get(&mut reader, "3", SHARED).unwrap();
    let mut loader = bench.repeatable();
    loader.statement_begin().unwrap();
    let pk = |n| if n == 190 { "3".into() } else { scattered(n) };
    assert!(matches!(load_scattered(&bench, &mut loader, pk), Err(Stop::Duplicate)));
    assert_eq!((loader.collision.tree, &*loader.collision.pk), (0, &b"3"[..]));
    loader.statement_rollback().unwrap();
    // One that is locked and not there is waited for.
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row(&scattered(190), "y", "p")).unwrap();
    loader.statement_begin().unwrap();
    assert!(is_timeout(load_scattered(&bench, &mut loader, scattered)));
    writer.rollback();
    loader.statement_rollback().unwrap();
    loader.statement_begin().unwrap();
    load_scattered(&bench, &mut loader, scattered).unwrap();
    loader.commit().unwrap();
    assert_eq!(bench.committed(0).len(), 203);
}

/// Who reads a range at a level that keeps it does not find in it later what waited meanwhile.
#[test]
fn rows_that_wait_do_not_come_into_ranges_that_others_have_locked() {
    let bench = Bench::new();
    three(&bench);
    let mut loader = bench.repeatable();
    loader.statement_begin().unwrap();
    for n in 0..200 {
        // The first are written as they come.
        let pk = if n < 100 { scattered(n) } else { format!("z{}", scattered(n)) };
        let unique = format!("x{n}");
        bench.insert_with(&mut loader, row(&pk, &unique, "p"), SORTS).map_err(|(stop, _)| stop).unwrap();
    }
    let mut reader = bench.session(Level::Serializable);
    let count = |reader: &mut Session| {
        let mut cursor = bench.cursor(0);
        let mut found = 0;
        let mut result = cursor.seek(reader, Start::AtOrAfter, b"z", End::Open, SHARED);
        while result.is_ok() {
            found += 1;
            result = cursor.next(reader);
        }
        assert!(matches!(result, Err(Stop::NotFound | Stop::End)), "{result:?}");
        found
    };
    assert_eq!(count(&mut reader), 0);
    assert!(is_timeout(loader.finish_rows(&bench.table, false)));
    loader.statement_rollback().unwrap();
    loader.commit().unwrap();
    assert_eq!(count(&mut reader), 0);
}

#[test]
fn a_load_that_sorts_is_told_at_its_end_which_unique_key_is_taken() {
    let bench = Bench::new();
    three(&bench);
    let mut loader = bench.repeatable();
    loader.statement_begin().unwrap();
    let twin = |n| if n == 190 { "x150".to_string() } else { format!("x{n}") };
    assert!(matches!(load_sorted(&bench, &mut loader, twin), Err(Stop::Duplicate)));
    assert_eq!(collided(&loader), (1, "190".into(), "190/x150/p".into(), true));
    loader.statement_rollback().unwrap();
    loader.statement_begin().unwrap();
    // Both are: the row that came first is told.
    let taken = |n| match n {
        170 => "u3".to_string(),
        190 => "u1".to_string(),
        n => format!("x{n}"),
    };
    assert!(matches!(load_sorted(&bench, &mut loader, taken), Err(Stop::Duplicate)));
    assert_eq!(collided(&loader), (1, "170".into(), "170/u3/p".into(), true));
    loader.statement_rollback().unwrap();
    loader.statement_begin().unwrap();
    load_sorted(&bench, &mut loader, |n| format!("x{n}")).unwrap();
    loader.commit().unwrap();
    assert_eq!(bench.committed(1).len(), 103);
}

/// The key that a load is going to put in is locked from when its row comes: one of the two waits.
#[test]
fn a_load_that_sorts_waits_for_who_has_a_unique_key_and_is_waited_for() {
    let bench = Bench::new();
    let mut other = bench.repeatable();
    bench.insert(&mut other, row("1", "x170", "p")).unwrap();
    let mut loader = bench.repeatable();
    loader.statement_begin().unwrap();
    assert!(is_timeout(load_sorted(&bench, &mut loader, |n| format!("x{n}"))));
    loader.rollback();
    other.rollback();
    let (mut loader, mut other) = (bench.repeatable(), bench.repeatable());
    loader.statement_begin().unwrap();
    for n in 100..200 {
        let (pk, unique) = (n.to_string(), format!("x{n}"));
        bench.insert_with(&mut loader, row(&pk, &unique, "p"), SORTS).map_err(|(stop, _)| stop).unwrap();
    }
    assert!(is_timeout(bench.insert(&mut other, row("1", "x170", "p"))));
    other.rollback();
    loader.finish_rows(&bench.table, false).unwrap();
    loader.commit().unwrap();
    let mut other = bench.repeatable();
    assert!(matches!(bench.insert(&mut other, row("1", "x170", "p")), Err(Stop::Duplicate)));
}

/// One that goes on after a duplicate knows it at once, and gathers on.
#[test]
fn a_duplicate_does_not_end_the_gathering_of_a_statement_that_goes_on() {
    let bench = Bench::new();
    three(&bench);
    let mut writer = bench.repeatable();
    let append = Promise { batch: Batch::Many, ..Promise::default() };
    for n in 100..200 {
        let key = n.to_string();
        bench.insert_with(&mut writer, row(&key, &key, "p"), append).map_err(|(stop, _)| stop).unwrap();
    }
    let met = |bench: &Bench| bench.keys(&mut bench.repeatable(), 2, EXCLUSIVE).unwrap().len();
    let before = met(&bench);
    assert!(before < 50, "most entries were there before the end");
    assert!(matches!(bench.insert_with(&mut writer, row("3", "x", "p"), append), Err((Stop::Duplicate, 0))));
    assert!(!writer.collision.is_late);
    assert_eq!(met(&bench), before);
}
