//! Hostile bytes: every decoder of what a disk holds meets a small corpus of real encodings and mutations of them
//! (`teak_core::rooms::hostile` has the decoders and says what must hold).
//!
//! What a failure prints can be put into `tests/hostile/corpus/<decoder>` to stay. When the engine begins to write
//! something otherwise, give the files of before another name, as disks hold them too, and write new ones:
//! `cargo test -p teak-core --test hostile -- --ignored`.

#[path = "hostile/attack.rs"]
mod attack;
#[path = "hostile/counting.rs"]
mod counting;
#[path = "hostile/mutate.rs"]
mod mutate;

use attack::{attack, entries, Attacked};
use std::path::{Path, PathBuf};
use teak_core::rooms::hostile::{samples, TARGETS};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/corpus")
}

#[test]
fn no_decoder_panics_or_takes_memory_for_lengths_that_are_only_announced() {
    for target in TARGETS {
        let memory_for = |input| target.memory_for(input);
        attack(&corpus(), &Attacked { name: target.name, decode: target.decode, memory_for: &memory_for });
    }
}

/// So that the corpus is of real encodings, and stays so.
#[test]
fn what_the_engine_writes_today_is_in_the_corpus() {
    for (target, name, bytes) in samples() {
        let kept = entries(&corpus(), target).into_iter().any(|(_, kept)| kept == bytes);
        assert!(kept, "{target}/{name} is written otherwise now: see the top of this file");
    }
}

#[test]
#[ignore = "writes the corpus"]
fn write_the_corpus() {
    for (target, name, bytes) in samples() {
        let dir = corpus().join(target);
        std::fs::create_dir_all(&dir).expect("a directory of the corpus");
        std::fs::write(dir.join(name), bytes).expect("a file of the corpus");
    }
}
