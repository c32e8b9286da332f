//! Scans of strict transactions meet what has gone since their snapshot.

use teak_core::Error;

use super::*;
use crate::bounds::Direction;

#[test]
fn a_strict_scan_meets_rows_that_were_deleted_since_its_snapshot() {
    let scans = [
        (Start::First, "", End::Open, vec!["1"]),
        (Start::Last, "", End::Open, vec!["7", "5"]),
        (Start::AtOrAfter, "3", End::Include(b"4"), vec![]),
        (Start::Before, "4", End::Include(b"2"), vec![]),
    ];
    for (start, key, end, before) in scans {
        let bench = Bench::new();
        let mut first = bench.repeatable();
        for number in ["1", "3", "5", "7"] {
            bench.insert(&mut first, row(number, &format!("u{number}"), "p")).unwrap();
        }
        first.commit().unwrap();
        let mut late = bench.repeatable();
        bench.get(&mut late, "1", Read::SNAPSHOT).unwrap();
        let mut early = bench.repeatable();
        bench.delete(&mut early, row("3", "u3", "p")).unwrap();
        // Comes and goes, and no snapshot saw it.
        bench.insert(&mut early, row("4", "u4", "p")).unwrap();
        early.commit().unwrap();
        let mut early = bench.repeatable();
        bench.delete(&mut early, row("4", "u4", "p")).unwrap();
        early.commit().unwrap();

        let mut cursor = bench.cursor(0);
        let mut met = Vec::new();
        let mut step = cursor.seek(&mut late, start, key.as_bytes(), end, EXCLUSIVE);
        while step.is_ok() {
            met.push(String::from_utf8_lossy(cursor.key()).into_owned());
            step = match start.direction() {
                Direction::Up => cursor.next(&mut late),
                Direction::Down => cursor.prev(&mut late),
            };
        }
        assert!(matches!(step, Err(Stop::Core(Error::SnapshotConflict))), "{start:?}");
        assert_eq!(met, before, "{start:?}");
        // Beyond it nothing has changed.
        cursor.seek(&mut late, Start::AtOrAfter, b"4", End::Open, EXCLUSIVE).unwrap();
        assert_eq!(cursor.key(), b"5");
        // Its own deletions are none.
        bench.delete(&mut late, row("5", "u5", "p")).unwrap();
        cursor.seek(&mut late, Start::AtOrAfter, b"4", End::Open, EXCLUSIVE).unwrap();
        assert_eq!(cursor.key(), b"7");
    }
}

#[test]
fn a_look_at_one_row_ends_what_a_scan_has_to_meet() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("3", "u3", "p"), row("5", "u5", "p"), row("7", "u7", "p")]);
    let mut late = bench.repeatable();
    bench.get(&mut late, "1", Read::SNAPSHOT).unwrap();
    let mut early = bench.repeatable();
    bench.delete(&mut early, row("3", "u3", "p")).unwrap();
    early.commit().unwrap();
    let mut cursor = bench.cursor(0);
    cursor.seek(&mut late, Start::First, b"", End::Open, EXCLUSIVE).unwrap();
    cursor.get(&mut late, b"5", EXCLUSIVE).unwrap();
    cursor.next(&mut late).unwrap();
    assert_eq!(cursor.key(), b"7", "the row that is gone lies before where it went on from");
}
