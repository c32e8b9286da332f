//! Looks at the rows of another table: which they find, and that the two sides of a constraint do not pass each other.

use std::thread;

use teak_core::{Error, WaitPolicy};

use super::*;
use crate::foreign::{History, Look, PrimaryOf};
use crate::unique::primary_key;

/// Whether there is a row whose key in `tree` begins with `prefix`.
fn look(bench: &Bench, session: &mut Session, tree: u32, prefix: &str) -> Result<bool> {
    let primary_of = |key: &[u8], value: &[u8]| match tree {
        1 => primary_key(value).map(<[u8]>::to_vec),
        _ => key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec),
    };
    session.look(&to(bench, tree, prefix, &primary_of))
}

/// A look that waits, and leaves what is missing alone.
fn to<'a>(bench: &'a Bench, tree: u32, prefix: &'a str, primary_of: &'a PrimaryOf<'a>) -> Look<'a> {
    let (table, prefix, is_row) = (&*bench.table, prefix.as_bytes(), tree == 0);
    let (history, except, policy) = (History::Never, None, WaitPolicy::Wait);
    let (stays_missing, counts_on) = (false, false);
    Look { table, tree, prefix, is_row, primary_of, history, except, policy, stays_missing, counts_on }
}

fn is_timeout<T>(result: Result<T>) -> bool {
    matches!(result, Err(Stop::Core(Error::LockTimeout)))
}

const KEYS: [(u32, &str); 3] = [(0, "1"), (1, "u1"), (2, "p\0")];

#[test]
fn a_look_finds_what_is_committed_whatever_the_snapshot_sees() {
    let bench = Bench::new();
    let mut old = bench.repeatable();
    old.open_snapshot().unwrap();
    bench.fill(&[row("1", "u1", "p")]);
    for (tree, key) in KEYS {
        assert!(look(&bench, &mut old, tree, key).unwrap(), "tree {tree}");
    }
    for (tree, key) in [(0, "2"), (1, "u2"), (2, "q\0")] {
        assert!(!look(&bench, &mut old, tree, key).unwrap(), "tree {tree}");
    }
    let mut gone = bench.repeatable();
    gone.open_snapshot().unwrap();
    old.rollback();
    let mut deleter = bench.repeatable();
    bench.delete(&mut deleter, row("1", "u1", "p")).unwrap();
    deleter.commit().unwrap();
    for (tree, key) in KEYS {
        assert!(!look(&bench, &mut gone, tree, key).unwrap(), "tree {tree}");
    }
}

#[test]
fn what_was_found_stays_to_the_end_of_the_transaction() {
    for (tree, key) in KEYS {
        let bench = Bench::new();
        bench.fill(&[row("1", "u1", "p")]);
        let mut child = bench.session(Level::ReadCommitted);
        assert!(look(&bench, &mut child, tree, key).unwrap());
        let mut deleter = bench.repeatable();
        assert!(is_timeout(deleter.hold_row(&bench.table, b"1")));
        assert!(is_timeout(bench.delete(&mut deleter, row("1", "u1", "p"))));
        child.commit().unwrap();
        bench.delete(&mut deleter, row("1", "u1", "p")).unwrap();
    }
}

#[test]
fn a_look_waits_for_who_puts_the_row_in_or_takes_it_out() {
    for (tree, key) in KEYS {
        for (inserts, commits) in [(true, true), (true, false), (false, true), (false, false)] {
            let bench = Bench::new();
            let mut writer = bench.repeatable();
            if inserts {
                bench.insert(&mut writer, row("1", "u1", "p")).unwrap();
            } else {
                bench.fill(&[row("1", "u1", "p")]);
                bench.delete(&mut writer, row("1", "u1", "p")).unwrap();
            }
            let (mut child, connection) = bench.patient();
            thread::scope(|scope| {
                let found = scope.spawn(|| look(&bench, &mut child, tree, key).unwrap());
                connection.until_asleep();
                match commits {
                    true => writer.commit().unwrap(),
                    false => writer.rollback(),
                }
                assert_eq!(found.join().unwrap(), inserts == commits, "tree {tree}");
            });
        }
    }
}

#[test]
fn what_goes_while_a_look_waits_is_not_found_though_nobody_had_changed_it_before() {
    for (tree, key) in KEYS {
        for goes in [true, false] {
            let bench = Bench::new();
            bench.fill(&[row("0", "u0", "o"), row("1", "u1", "p")]);
            let mut writer = bench.repeatable();
            writer.hold_row(&bench.table, b"1").unwrap();
            let (mut child, connection) = bench.patient();
            thread::scope(|scope| {
                let found = scope.spawn(|| look(&bench, &mut child, tree, key).unwrap());
                connection.until_asleep();
                if goes {
                    bench.delete(&mut writer, row("1", "u1", "p")).unwrap();
                }
                writer.commit().unwrap();
                assert_eq!(found.join().unwrap(), !goes, "tree {tree}");
            });
        }
    }
}

#[test]
fn a_key_that_passes_to_another_row_is_found_there() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let mut writer = bench.repeatable();
    bench.delete(&mut writer, row("1", "u1", "p")).unwrap();
    bench.insert(&mut writer, row("2", "u1", "p")).unwrap();
    let (mut child, connection) = bench.patient();
    thread::scope(|scope| {
        let found = scope.spawn(|| look(&bench, &mut child, 1, "u1").unwrap());
        connection.until_asleep();
        writer.commit().unwrap();
        assert!(found.join().unwrap());
    });
    let mut deleter = bench.repeatable();
    assert!(is_timeout(deleter.hold_row(&bench.table, b"2")), "the row that has the key now is locked");
}

#[test]
fn what_was_missing_stays_so_above_read_committed_if_the_look_says_so() {
    for (tree, key) in KEYS {
        for (level, stays_missing) in
            [(Level::RepeatableRead, true), (Level::ReadCommitted, true), (Level::RepeatableRead, false)]
        {
            let bench = Bench::new();
            bench.fill(&[row("2", "u2", "q")]);
            let mut child = bench.session(level);
            let primary_of = |_: &[u8], _: &[u8]| None;
            let look = Look { stays_missing, ..to(&bench, tree, key, &primary_of) };
            assert!(!child.look(&look).unwrap());
            let mut parent = bench.repeatable();
            let kept = stays_missing && level == Level::RepeatableRead;
            let put_in = bench.insert(&mut parent, row("1", "u1", "p"));
            assert_eq!(is_timeout(put_in), kept, "tree {tree}, {level:?}");
            bench.insert(&mut parent, row("3", "u3", "r")).unwrap();
            child.commit().unwrap();
            if kept {
                bench.insert(&mut parent, row("1", "u1", "p")).unwrap();
            }
        }
    }
}

#[test]
fn of_what_is_to_be_changed_no_more_comes_above_read_committed_if_the_look_says_so() {
    for (level, stays_missing) in
        [(Level::RepeatableRead, true), (Level::ReadCommitted, true), (Level::RepeatableRead, false)]
    {
        let bench = Bench::new();
        bench.fill(&[row("2", "u2", "p")]);
        let mut parent = bench.session(level);
        let primary_of = |key: &[u8], _: &[u8]| key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec);
        let look = Look { stays_missing, ..to(&bench, 2, "p\0", &primary_of) };
        let found = parent.find(&look, None, LockMode::Exclusive, 1).unwrap();
        assert_eq!(found.len(), 1);
        let kept = stays_missing && level == Level::RepeatableRead;
        for (key, unique) in [("1", "u1"), ("3", "u3")] {
            let mut child = bench.repeatable();
            let put_in = bench.insert(&mut child, row(key, unique, "p"));
            assert_eq!(is_timeout(put_in), kept, "{key}, {level:?}");
        }
    }
}

#[test]
fn a_look_that_may_not_wait_says_so() {
    for (tree, key) in KEYS {
        let bench = Bench::new();
        bench.fill(&[row("1", "u1", "p")]);
        let mut holder = bench.repeatable();
        holder.hold_row(&bench.table, b"1").unwrap();
        let mut child = bench.repeatable();
        let primary_of = |key: &[u8], value: &[u8]| match tree {
            1 => primary_key(value).map(<[u8]>::to_vec),
            _ => key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec),
        };
        let look = Look { policy: WaitPolicy::NoWait, ..to(&bench, tree, key, &primary_of) };
        assert!(matches!(child.look(&look), Err(Stop::Core(Error::WouldBlock))), "tree {tree}");
        holder.commit().unwrap();
        assert!(child.look(&look).unwrap());
    }
}

#[test]
fn a_transaction_finds_its_own_rows_and_undoes_one() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    session.mark_row(0).unwrap();
    bench.insert(&mut session, row("2", "u2", "q")).unwrap();
    assert!(look(&bench, &mut session, 2, "q\0").unwrap());
    session.undo_row(0).unwrap();
    assert!(!look(&bench, &mut session, 2, "q\0").unwrap());
    assert!(look(&bench, &mut session, 1, "u1").unwrap());
    session.commit().unwrap();
    assert_eq!(bench.committed(2), ["p\u{0}1"]);
}

#[test]
fn children_are_found_one_after_the_other_and_locked() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("2", "u2", "p"), row("3", "u3", "q"), row("4", "u4", "p")]);
    let mut session = bench.repeatable();
    let primary_of = |key: &[u8], _: &[u8]| key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec);
    let look = to(&bench, 2, "p\0", &primary_of);
    for most in [1, 2, 3, 9] {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let some = session.find(&look, after.as_deref(), LockMode::Exclusive, most).unwrap();
            assert!(some.len() <= most);
            let Some(last) = some.last() else { break };
            after = Some(last.entry.clone());
            found.extend(some.into_iter().map(|next| String::from_utf8(next.row).unwrap()));
        }
        assert_eq!(found, ["1", "2", "4"]);
    }
    let mut other = bench.repeatable();
    assert!(is_timeout(bench.get(&mut other, "4", SHARED)));
    assert_eq!(bench.get(&mut other, "3", SHARED).unwrap(), "3/u3/q");
}

#[test]
fn children_that_lie_together_are_locked_at_once_if_nobody_else_is_there() {
    let bench = Bench::new();
    bench.fill(&[row("p1", "u1", "p"), row("p2", "u2", "p"), row("p4", "u4", "p"), row("q1", "u5", "q")]);
    let primary_of = |_: &[u8], _: &[u8]| None;
    let look = Look { is_row: false, ..to(&bench, 0, "p", &primary_of) };
    for alone in [true, false] {
        let mut third = bench.repeatable();
        if !alone {
            bench.get(&mut third, "q1", SHARED).unwrap();
        }
        let mut session = bench.repeatable();
        let mut found = session.find(&look, None, LockMode::Exclusive, 2).unwrap();
        let last = found.last().unwrap().entry.clone();
        found.extend(session.find(&look, Some(&last), LockMode::Exclusive, 2).unwrap());
        let keys: Vec<_> = found.iter().map(|next| next.row.as_slice()).collect();
        assert_eq!(keys, [b"p1", b"p2", b"p4"]);
        let mut other = bench.repeatable();
        assert!(is_timeout(bench.get(&mut other, "p1", SHARED)));
        assert!(is_timeout(bench.get(&mut other, "p4", SHARED)));
        assert_eq!(is_timeout(bench.insert(&mut other, row("p3", "u3", "p"))), alone);
        assert_eq!(bench.get(&mut other, "q1", SHARED).unwrap(), "q1/u5/q");
        bench.delete(&mut session, row("p2", "u2", "p")).unwrap();
        session.rollback();
    }
}

#[test]
fn marks_of_a_cascade_undo_from_their_depth_on() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    for (depth, pk) in ["1", "2", "3"].into_iter().enumerate() {
        session.mark_row(depth).unwrap();
        bench.insert(&mut session, row(pk, &format!("u{pk}"), "p")).unwrap();
    }
    session.undo_row(1).unwrap();
    assert!(matches!(session.undo_row(2), Err(Stop::Misuse(_))));
    assert!(matches!(session.mark_row(3), Err(Stop::Misuse(_))));
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["1"]);
}

#[test]
fn a_look_passes_history_by_and_does_not_lock_it() {
    let bench = Bench::new();
    bench.fill(&[row("1", "past", "p"), row("2", "u2", "p"), row("3", "past too", "p"), row("4", "u4", "p")]);
    let primary_of = |key: &[u8], _: &[u8]| key.split(|byte| *byte == 0).nth(1).map(<[u8]>::to_vec);
    let by_key = |key: &[u8]| key == b"1" || key == b"3";
    let by_row = |row: &[u8]| row.windows(4).any(|part| part == b"past");
    for history in [History::ByKey(&by_key), History::ByRow(&by_row)] {
        let mut session = bench.repeatable();
        let look = Look { history, ..to(&bench, 2, "p\0", &primary_of) };
        let mut found = Vec::new();
        let mut after = None;
        while let Some(next) = session.find(&look, after.as_deref(), LockMode::Exclusive, 1).unwrap().pop() {
            found.push(String::from_utf8(next.row).unwrap());
            after = Some(next.entry);
        }
        assert_eq!(found, ["2", "4"]);
        let mut other = bench.repeatable();
        assert!(is_timeout(bench.get(&mut other, "2", SHARED)));
        assert_eq!(bench.get(&mut other, "1", SHARED).unwrap(), "1/past/p");
        session.rollback();
    }
}
