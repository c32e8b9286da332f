//! Pages whose checksums are right and whose content is not: an error, and nobody goes round in circles.

use super::*;
use crate::store::BlockAddress;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::Value;

fn stored(bench: &Bench, entries: &[(&str, &[u8])]) -> BlockAddress {
    let mut builder = BlockBuilder::new();
    entries.iter().for_each(|(key, value)| builder.push(key.as_bytes(), Value::Inline(value)));
    let block = bench.space.prepare(builder.finish().bytes(), Compression::None).unwrap();
    bench.space.write(&block).unwrap();
    *block.address()
}

fn opened(bench: &Bench, root: BlockAddress, height: u32) -> Arc<Tree> {
    let root = TreeRoot { address: root, height, entries: 1, leaves: 1, stored_bytes: 0, raw_bytes: 0 };
    Tree::open(9, bench.spec, bench.space.clone(), Some(root), bench.context.clone())
}

/// Reads, writes and scans fail, or end.
fn check(tree: &Arc<Tree>, name: &str) {
    let reader = Reader::at(Timestamp::MAX);
    let damaged = |result: Result<bool>| matches!(result, Err(Error::Corrupt { .. }));
    let mut failed = 0;
    for key in ["", "a", "m", "z"] {
        let mut cursor = TreeCursor::new(tree.clone());
        failed += u32::from(damaged(cursor.get(&reader, key.as_bytes())));
        let mut moves = 0;
        let mut found = cursor.seek(&reader, Seek::AtOrAfter, key.as_bytes());
        while matches!(found, Ok(true)) && moves < 100 {
            moves += 1;
            found = cursor.next(&reader);
        }
        assert!(moves < 100, "{name}");
        failed += u32::from(damaged(found));
        let status = TxnStatus::new(1);
        let written = tree.write(key.as_bytes(), WriteOp::Insert(b"v"), &status, 1);
        failed += u32::from(damaged(written.map(|()| true)));
    }
    assert!(failed > 0, "{name}");
}

#[test]
fn a_page_that_does_not_fit_its_place_is_corrupt() {
    let bench = Bench::new(1 << 20);
    let leaf = stored(&bench, &[("m", b"1")]).encode();
    // The first key is not the lower bound.
    check(&opened(&bench, stored(&bench, &[("m", &leaf)]), 1), "root");
    let low = stored(&bench, &[("n", &leaf)]).encode();
    let good = stored(&bench, &[("", &leaf), ("m", &[])]).encode();
    check(&opened(&bench, stored(&bench, &[("", &good), ("m", &low)]), 2), "lower bound");
    // Children beyond the upper bound, a page without one, a root with one.
    let beyond = stored(&bench, &[("", &leaf), ("x", &leaf), ("y", &[])]).encode();
    let open_end = stored(&bench, &[("", &leaf)]).encode();
    let last = stored(&bench, &[("m", &leaf)]).encode();
    check(&opened(&bench, stored(&bench, &[("", &beyond), ("m", &last)]), 2), "upper bound");
    check(&opened(&bench, stored(&bench, &[("", &open_end), ("m", &last)]), 2), "no upper bound");
    check(&opened(&bench, stored(&bench, &[("", &leaf), ("m", &[])]), 1), "root with a bound");
}

#[test]
fn a_root_with_more_levels_than_any_tree_has_is_malformed() {
    let address = stored(&Bench::new(1 << 20), &[("", b"")]);
    let root = TreeRoot {
        address,
        height: TreeRoot::MOST_LEVELS,
        entries: 0,
        leaves: 1,
        stored_bytes: 0,
        raw_bytes: 0,
    };
    assert_eq!(TreeRoot::decode(&root.encode()), Some(root));
    assert_eq!(TreeRoot::decode(&TreeRoot { height: root.height + 1, ..root }.encode()), None);
}
