//! A dump, whatever it is: for [`crate::hostile`].

use super::charset::{Charset, Dialect};
use super::rows::{self, Watched};
use super::splitter::Splitter;
use super::statement::{classify, classify_complex_insert, Kind};
use super::{cut, scan};

/// What the loader does with a dump before it sends anything: splits, classifies, looks through rows, cuts.
pub fn dump(bytes: &[u8]) {
    let plain = Dialect::default();
    for dialect in [
        plain,
        Dialect { backslash: false, ansi_quotes: true, ..plain },
        Dialect { charset: Charset::named("SJIS"), ..plain },
    ] {
        let mut splitter = Splitter::new(bytes, 1 << 20, b";", dialect);
        let mut position = 0;
        while let Ok(Some(statement)) = splitter.next() {
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
