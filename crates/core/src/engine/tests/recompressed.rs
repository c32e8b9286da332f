//! Large values that are deflate streams and are stored as what is in them.

use super::*;
use crate::values::texts::{deflated, text};
use crate::{Compression, Packing};

/// A stream of a text that says everything twice, further apart than deflate looks back.
fn value(i: u64, round: u64) -> Vec<u8> {
    deflated(&text(100 * round + i, 34_000).repeat(2))
}

fn key(i: u64) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn commit(engine: &Engine, tree: &Arc<Tree>, range: std::ops::Range<u64>, round: u64) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in range {
        let value = value(i, round);
        let op = if round == 0 { WriteOp::Insert(&value) } else { WriteOp::Update(&value) };
        txn.write(tree, &key(i), op).unwrap();
    }
    txn.commit().unwrap();
}

fn is_as_written(engine: &Engine, rounds: &[(std::ops::Range<u64>, u64)]) {
    let table = engine.open_table("t").unwrap();
    let rows = all(engine, table.tree(0));
    let expected = rounds.iter().flat_map(|(range, round)| range.clone().map(|i| (key(i), value(i, *round))));
    assert!(rows == expected.collect());
    engine.check_table(&table).unwrap();
}

#[test]
fn streams_come_back_to_the_bit_from_log_image_and_file_and_take_half() {
    let fs = SimulatedFileSystem::new(1);
    let engine = Engine::open(Arc::new(fs.clone()), options()).unwrap();
    let recompressed = Packing { compression: Compression::Recompress, level: 1, similarity: false };
    let spec = |packing| [TreeSpec { packing, ..TreeSpec::default() }];
    engine.create(NewTable::new("t", &spec(recompressed))).unwrap();
    engine.create(NewTable::new("plain", &spec(Compression::Zstd.into()))).unwrap();
    let (table, plain) = (engine.open_table("t").unwrap(), engine.open_table("plain").unwrap());
    // Small, so that the log has the values; and so large that it names them.
    for range in [0..5, 5..6, 6..150] {
        commit(&engine, table.tree(0), range.clone(), 0);
        commit(&engine, plain.tree(0), range, 0);
    }
    is_as_written(&engine, &[(0..150, 0)]);
    drop((table, plain));
    let (_, engine) = crash(&fs, engine);
    is_as_written(&engine, &[(0..150, 0)]);
    engine.checkpoint().unwrap();
    let (table, plain) = (engine.open_table("t").unwrap(), engine.open_table("plain").unwrap());
    let used = |table: &Table| table.disk_bytes() - table.free_bytes();
    assert!(used(&table) < used(&plain) * 6 / 10, "{} of {}", used(&table), used(&plain));
    commit(&engine, table.tree(0), 20..40, 1);
    drop((table, plain));
    engine.checkpoint().unwrap();
    is_as_written(&engine, &[(0..20, 0), (20..40, 1), (40..150, 0)]);
    engine.close().unwrap();
}
