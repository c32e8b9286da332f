//! A dump, or a definition of MySQL, whatever it is, as functions that take any bytes at all: the feature `hostile`,
//! for `fuzz/`. The tests here attack them as the decoders of the core are attacked (`crates/core/tests/hostile`), with
//! a corpus (`tests/hostile`) and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, and no more memory is asked for than 64 times as much (of a
//! definition 256 times), and what does not depend on them.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use super::charset::{Charset, Dialect};
use super::mysql::{self, Context, FunctionColumn, KnownTable};
use super::rows::{self, Watched};
use super::splitter::Splitter;
use super::statement::{classify, classify_complex_insert, Kind};
use super::{cut, scan};

/// What `teak load` does with a dump before it sends anything: splits, classifies, looks through rows, cuts.
pub fn dump(bytes: &[u8]) {
    let plain = Dialect::OWN;
    for dialect in [
        plain,
        Dialect { backslash: false, ansi_quotes: true, ..plain },
        Dialect { charset: Charset::named("SJIS"), ..plain },
    ] {
        let mut splitter = Splitter::new(bytes, 1 << 20, b";", dialect);
        let mut position = 0;
        while let Ok(Some(statement)) = splitter.next_statement() {
            assert!(statement.offset >= position && statement.text.len() <= bytes.len());
            position = statement.offset;
            look(statement.text, dialect);
        }
        assert!(splitter.offset() <= bytes.len() as u64);
    }
    let mut finder = scan::Finder::new(b';');
    let mut at = 0;
    while let Some(found) = finder.next(bytes, at) {
        assert!(found >= at && found < bytes.len());
        at = found + 1;
    }
}

/// What `teak replicate` does with a statement that changes definitions of a MySQL before MariaDB gets it.
pub fn definition(bytes: &[u8]) {
    let table = KnownTable {
        columns: vec![b"a".to_vec(), b"b".to_vec()],
        functions: vec![FunctionColumn {
            name: b"f".to_vec(),
            expression: b"b+1".to_vec(),
            key: b"k".to_vec(),
        }],
        keys: vec![b"k".to_vec()],
        checks: vec![(b"t_chk_1".to_vec(), b"a > 0".to_vec())],
    };
    let types = ["int".to_string(), "int".to_string()];
    let known = Context {
        engine: Some("Teak"),
        utf8mb4_collation: Some(255),
        has_inline_references: true,
        table: Some(&table),
        types: &types,
    };
    for dialect in [
        Dialect::OWN,
        Dialect { backslash: false, ansi_quotes: true, ..Dialect::OWN },
        Dialect { charset: Charset::named("SJIS"), ..Dialect::OWN },
    ] {
        for context in [&Context::default(), &known] {
            // Whatever it is, it is the same each time.
            let first = mysql::rewritten(bytes, dialect, context);
            assert_eq!(first, mysql::rewritten(bytes, dialect, context));
        }
    }
}

fn look(text: &[u8], dialect: Dialect) {
    let _ = classify_complex_insert(text, dialect);
    if let Kind::Insert(insert) = classify(text, dialect, true) {
        let watched = Watched { auto_increment: Some(0), passing: vec![1, 2], passing_for_null: vec![1] };
        let _ = rows::scan(text, insert.rows_at, dialect, &watched);
        for limit in [text.len() / 2, 100] {
            if let Ok(parts) = cut::cut(text, insert.rows_at, dialect, limit) {
                assert!(parts.iter().all(|part| part.text.len() <= limit && part.rows > 0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, Attacked};
    use super::{counting, definition, dump};
    use std::path::Path;

    /// A splitter begins with a buffer of 2 MiB.
    const FIXED_BYTES: usize = 4 << 20;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    #[test]
    fn a_dump_can_be_anything() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        let memory_for = |input| 64 * input + FIXED_BYTES;
        attack(&corpus, &Attacked { name: "dump", decode: dump, memory_for: &memory_for });
    }

    #[test]
    fn a_definition_can_be_anything() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        let memory_for = |input| 256 * input + FIXED_BYTES;
        attack(&corpus, &Attacked { name: "definition", decode: definition, memory_for: &memory_for });
    }
}
