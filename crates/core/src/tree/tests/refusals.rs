//! Memory that cannot be freed: who is refused, and who is not.

use super::*;

const CACHE: u64 = 256 << 10;

#[test]
fn with_the_spill_file_full_only_writes_are_refused_and_a_checkpoint_makes_room_for_them() {
    let mut bench = Bench::new(CACHE);
    bench.context.spill.set_maximum(0);
    let write = |bench: &Bench, n: u64| {
        let status = TxnStatus::new(n);
        bench.tree.write(&key(n), WriteOp::Insert(&[7; 500]), &status, 1)?;
        Ok(bench.context.clock.publish(&status))
    };
    let (rows, refusal) = (0..10_000)
        .find_map(|n| write(&bench, n).err().map(|error: Error| (n, error)))
        .expect("ten times the budget is refused");
    assert!(matches!(refusal, Error::SpillFull { .. }), "{refusal}");
    assert!(bench.context.cache.used() > CACHE + CACHE / 5);
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len() as u64, rows);
    bench.checkpoint().unwrap();
    bench.context.cache.make_room().unwrap();
    assert!(bench.context.cache.used() <= CACHE + CACHE / 20);
    write(&bench, rows).unwrap();
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len() as u64, rows + 1);
}
