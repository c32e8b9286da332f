//! Changes one entry of one tree, as no statement would: makes states in which an index disagrees with its rows, for
//! tests of the checkers.
//!
//! usage: edit_tree ENGINE_DIRECTORY TABLE TREE delete|move
//!
//! `delete` removes the tree's first entry; `move` adds a zero byte to its key, so that the number of entries stays.

use std::sync::Arc;
use teak_core::file::RealFileSystem;
use teak_core::server::{Cursor, Engine};
use teak_core::{Isolation, Options, View, WriteOp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, table, tree, verb] = &arguments[..] else { return Err("see the top of the source".into()) };
    let engine = Engine::open(Arc::new(RealFileSystem), Options { background: false, ..Options::new(dir) })?;
    let table = engine.open_table(table)?;
    let tree = table.tree(tree.parse()?).clone();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let mut cursor = Cursor::new(tree.clone());
    if !cursor.first(&mut txn, View::Latest)? {
        return Err("the tree is empty".into());
    }
    let (key, value) = (cursor.key().to_vec(), cursor.value()?.to_vec());
    txn.write(&tree, &key, WriteOp::Delete)?;
    if verb == "move" {
        txn.write(&tree, &[&key[..], &[0]].concat(), WriteOp::Insert(&value))?;
    }
    txn.commit()?;
    drop((cursor, tree, table));
    Ok(engine.close()?)
}
