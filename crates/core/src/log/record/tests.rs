use proptest::prelude::*;

use super::*;

type OwnedOp = (u64, u32, Vec<u8>, Option<(bool, Vec<u8>)>);

fn write(value: &Option<(bool, Vec<u8>)>) -> WriteOp<'_> {
    match value {
        Some((true, v)) => WriteOp::Insert(v),
        Some((false, v)) => WriteOp::Update(v),
        None => WriteOp::Delete,
    }
}

fn check(ops: Ops<'_>, expected: &[OwnedOp]) {
    assert_eq!(ops.iter().count(), expected.len());
    for (op, (tree, sequence, key, value)) in ops.iter().zip(expected) {
        assert_eq!((op.tree, op.sequence, op.key), (*tree, *sequence, &key[..]));
        assert_eq!(op.kind.write(op.value), write(value));
    }
}

fn buffer(ops: &[OwnedOp]) -> RedoBuffer {
    let mut redo = RedoBuffer::new();
    for (tree, sequence, key, value) in ops {
        redo.push(*tree, *sequence, key, write(value)).unwrap();
    }
    redo
}

fn op() -> impl Strategy<Value = OwnedOp> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
    (any::<u64>(), any::<u32>(), bytes(), proptest::option::of((any::<bool>(), bytes())))
}

proptest! {
    #[test]
    fn every_record_survives_the_round_trip(
        txn in any::<u64>(),
        xid in proptest::collection::vec(any::<u8>(), 0..150),
        sequence in any::<u32>(),
        list in proptest::collection::vec(op(), 0..20),
    ) {
        let redo = buffer(&list);
        check(redo.ops(), &list);
        let ops = redo.ops();
        for record in [
            LogRecord::Ops { txn, ops },
            LogRecord::Commit { txn, ops },
            LogRecord::Prepare { txn, xid: &xid, ops },
            LogRecord::Rollback { txn },
            LogRecord::RollbackTo { txn, sequence },
            LogRecord::Counter { txn, table: txn / 3, value: txn / 5, change: CounterChange::Set },
            LogRecord::Counter { txn, table: 0, value: u64::MAX, change: CounterChange::Raise },
            LogRecord::Checkpoint { number: txn },
            LogRecord::Copy { txn, ops },
            LogRecord::CopyEnd { txn, start: txn / 7, xid: None },
            LogRecord::CopyEnd { txn, start: u64::MAX, xid: Some(&xid) },
        ] {
            let bytes = record.encode();
            let mut buffer = Vec::new();
            let bytes = packed::unpack(&bytes, &mut buffer).unwrap();
            prop_assert_eq!(LogRecord::decode(bytes), Ok(record));
        }
    }

    #[test]
    fn arbitrary_bytes_decode_to_an_error_or_a_record_but_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        if let Ok(LogRecord::Commit { ops, .. }) = LogRecord::decode(&bytes) {
            ops.iter().for_each(drop);
        }
    }

    #[test]
    fn a_cut_record_is_an_error_or_has_fewer_ops(list in proptest::collection::vec(op(), 1..5), cut in 0usize..1000) {
        let redo = buffer(&list);
        let bytes = LogRecord::Commit { txn: 7, ops: redo.ops() }.encode();
        if let Ok(LogRecord::Commit { ops, .. }) = LogRecord::decode(&bytes[..cut % bytes.len()]) {
            prop_assert!(ops.iter().count() < list.len());
        }
    }
}

#[test]
fn truncating_to_a_mark_forgets_later_ops_and_keeps_sequences_right() {
    let all: Vec<OwnedOp> = (0..6).map(|i| (i, i as u32 * 3, vec![i as u8], None)).collect();
    let mut redo = buffer(&all[..3]);
    let mark = redo.mark();
    redo.push(9, 900, b"gone", WriteOp::Insert(b"x")).unwrap();
    assert!(redo.truncate_to(mark));
    for (tree, sequence, key, value) in &all[3..] {
        redo.push(*tree, *sequence, key, write(value)).unwrap();
    }
    check(redo.ops(), &all);
}

#[test]
fn a_mark_from_before_the_redo_was_logged_asks_for_a_rollback_record() {
    let mut redo = buffer(&[(1, 1, vec![1], None)]);
    let mark = redo.mark();
    redo.clear();
    redo.push(1, 2, b"k", WriteOp::Delete).unwrap();
    assert!(!redo.truncate_to(mark));
    assert!(redo.is_empty());
}

#[test]
fn a_key_past_the_limit_is_refused() {
    let mut redo = RedoBuffer::new();
    assert!(matches!(
        redo.push(1, 1, &vec![0; 65537], WriteOp::Delete),
        Err(Error::TooLarge { what: "key", bytes: 65537, .. })
    ));
    redo.push(1, 1, &vec![0; 65536], WriteOp::Delete).unwrap();
}
