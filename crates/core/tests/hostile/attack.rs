//! Decoders against a corpus and its mutations. `TEAK_MUTATIONS` is how many mutations each entry of the corpus gets,
//! `TEAK_SEED` where they begin.

use super::counting::most_held;
use super::mutate::mutate;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// A decoder, and the most bytes of memory that it may hold for an input of a length.
pub struct Attacked<'a> {
    pub name: &'a str,
    pub decode: fn(&[u8]),
    pub memory_for: &'a (dyn Fn(usize) -> usize + Sync),
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The files of a directory of the corpus, by name.
pub fn entries(corpus: &Path, target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = corpus.join(target);
    let names = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut entries: Vec<_> = names
        .map(|entry| {
            let entry = entry.expect("an entry of the corpus");
            let bytes = std::fs::read(entry.path()).expect("a file of the corpus");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    entries.sort();
    entries
}

/// Every file of the corpus, each beginning of it, and mutations.
pub fn attack(corpus: &Path, target: &Attacked<'_>) {
    let (mutations, first) = (number("TEAK_MUTATIONS", 5000), number("TEAK_SEED", 1));
    let entries = entries(corpus, target.name);
    assert!(!entries.is_empty(), "the corpus has nothing for {}", target.name);
    for (name, bytes) in &entries {
        check(target, bytes, name);
        for cut in 0..bytes.len().min(300) {
            check(target, &bytes[..cut], &format!("{name} cut to {cut}"));
        }
        for seed in first..first + mutations {
            check(target, &mutate(bytes, &entries, seed), &format!("mutation {seed} of {name}"));
        }
    }
}

/// Fails with the bytes, if there is a defect.
fn check(target: &Attacked<'_>, bytes: &[u8], what: &str) {
    let mut done = Ok(());
    let held = most_held(|| done = catch_unwind(AssertUnwindSafe(|| (target.decode)(bytes))));
    let defect = match done {
        Err(_) => "it panicked".to_string(),
        Ok(()) if held > (target.memory_for)(bytes.len()) => {
            format!("{} bytes made it hold {held}", bytes.len())
        }
        Ok(()) => return,
    };
    let path = std::env::temp_dir().join(format!("teak-hostile-{}", target.name));
    std::fs::write(&path, bytes).expect("a file for the bytes");
    panic!("{}, {what}: {defect}; the bytes are in {}", target.name, path.display());
}
