//! Hostile bytes: what a server sends and what a dump holds, as files of a corpus (`tests/hostile`) and mutations of
//! them. The attack and its bounds are those of the core's decoders (`crates/core/tests/hostile`).

#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use attack::{attack, Attacked};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// A payload may announce 16 MiB before it comes; a splitter begins with a buffer of 2 MiB.
const FIXED_BYTES: usize = 20 << 20;

fn run(name: &str, decode: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let memory_for = |input| 64 * input + FIXED_BYTES;
    attack(&corpus, &Attacked { name, decode, memory_for: &memory_for });
}

#[test]
fn a_server_can_answer_anything() {
    run("answer", crate::client::hostile::answer);
}

#[test]
fn a_server_can_greet_with_anything() {
    run("greeting", crate::client::hostile::greeting);
}

#[test]
fn a_dump_can_be_anything() {
    run("dump", crate::load::hostile::dump);
}
