//! What the files of an engine say, without a server: sizes, and what a start has to do.
//!
//! They know trees by number, not by the names of indexes, and nothing of uses.

use crate::facts::{Directory, Facts, Index, Table};
use std::collections::BTreeMap;
use std::path::Path;
use teak_core::server::{Engine, Table as Opened};
use teak_core::{Compression, Error};

/// The facts of an engine that was opened for a look in `path`.
pub fn facts(engine: &Engine, path: &Path) -> Result<Facts, Error> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    let mut damaged = Vec::new();
    for name in engine.table_names("")? {
        match engine.open_table(&name) {
            Ok(opened) => add(&mut tables, &name, &opened),
            Err(error) => damaged.push(format!("{name}: {error}")),
        }
    }
    let numbers = engine.statistics();
    let directory = Directory {
        path: path.display().to_string(),
        log_bytes: numbers.log_bytes_since_checkpoint,
        prepared_transactions: numbers.prepared_transactions,
        damaged,
    };
    let mut tables: Vec<Table> = tables.into_values().collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.disk_bytes));
    Ok(Facts { directory: Some(directory), tables, ..Facts::default() })
}

/// Adds one to its table, of which it may be a partition.
fn add(tables: &mut BTreeMap<String, Table>, name: &str, opened: &Opened) {
    let (database, file) = name.split_once('/').unwrap_or(("", name));
    let shown = decoded(crate::facts::table_of(file));
    let database = decoded(database);
    let table = tables.entry(format!("{database}/{shown}")).or_insert_with(|| Table {
        database,
        name: shown,
        ..Table::default()
    });
    let free = opened.free_bytes();
    table.disk_bytes += opened.disk_bytes().saturating_sub(free);
    table.free_bytes += free;
    let bundles = opened.bundle_usage().unwrap_or_default();
    table.bundled_values += bundles.values;
    table.bundled_bytes += bundles.value_bytes;
    table.bundled_disk_bytes += bundles.stored_bytes;
    for number in 0..opened.trees() {
        let tree = opened.tree(number);
        if number == 0 {
            table.rows += tree.entries();
            table.compression = compression(tree.spec().packing.compression).into();
        }
        table.raw_bytes += tree.raw_bytes();
        table.block_bytes += tree.disk_bytes();
        table.dictionary_bytes += tree.dictionary_bytes();
        if table.indexes.len() == number {
            table.indexes.push(Index { name: format!("tree {number}"), ..Index::default() });
        }
        let index = &mut table.indexes[number];
        index.entries += tree.entries();
        index.raw_bytes += tree.raw_bytes();
        index.disk_bytes += tree.disk_bytes();
    }
}

/// As `TEAK_TABLES` has it.
fn compression(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
        Compression::Recompress => "recompress",
    }
}

/// A name as SQL has it, of one that the server gave a file: `@` and four hexadecimal digits are a character. Those
/// that it writes as `@` and two letters stay.
fn decoded(file: &str) -> String {
    let mut parts = file.split('@');
    let mut name = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let code = part.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32) {
            Some(character) => {
                name.push(character);
                name.push_str(&part[4..]);
            }
            None => {
                name.push('@');
                name.push_str(part);
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_names_again() {
        let cases = [
            ("plain_1", "plain_1"),
            ("a@002db@0020", "a-b "),
            ("@0g", "@0g"),
            ("x@00", "x@00"),
            ("@d800", "@d800"),
            ("@4e2d@ü", "中@ü"),
        ];
        cases.into_iter().for_each(|(file, name)| assert_eq!(decoded(file), name));
    }
}
