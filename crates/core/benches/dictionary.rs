//! How fast a dictionary is trained, encodes and decodes, and what it gains on the way.
//!
//! `cargo bench -p teak-core --bench dictionary -- FILE`, where FILE has bytes as blocks have them, 15 MB or more of
//! them: the first 12 MiB are what the dictionary is trained on. Of several passes the fastest counts, so that a
//! machine that does other things too disturbs little.

use std::hint::black_box;
use std::time::{Duration, Instant};
use teak_core::rooms::{Dictionary, Training};

const BLOCK_BYTES: usize = 33 << 10;
const TRAINED_ON_BYTES: usize = 12 << 20;
/// Blocks of one pass.
const MOST_BLOCKS: usize = 200;
const PASSES: usize = 15;

/// The shortest of several times.
fn fastest(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..PASSES).map(time).min().unwrap_or_default()
}

fn report(what: &str, bytes: usize, time: Duration) {
    let blocks = bytes as f64 / BLOCK_BYTES as f64;
    let micros = time.as_secs_f64() * 1e6;
    println!("{what:<10} {:7.1} us a block, {:6.0} MB/s", micros / blocks, bytes as f64 / micros);
}

fn main() {
    // Cargo passes an option of its own, too.
    let Some(file) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        eprintln!("usage: cargo bench -p teak-core --bench dictionary -- FILE");
        return;
    };
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (sample, rest) = bytes.split_at(TRAINED_ON_BYTES.min(bytes.len() * 4 / 5));
    let blocks: Vec<&[u8]> = rest.chunks(BLOCK_BYTES).take(MOST_BLOCKS).collect();
    let raw: usize = blocks.iter().map(|block| block.len()).sum();

    let train = || {
        let mut training = Training::default();
        sample.chunks(BLOCK_BYTES).for_each(|block| training.add(block));
        training
    };
    report(
        "count",
        sample.len(),
        fastest(|| {
            black_box(train());
        }),
    );
    let training = train();
    report(
        "finish",
        sample.len(),
        fastest(|| {
            black_box(training.finish());
        }),
    );
    let Some(dictionary) = Dictionary::trained(&training, 1) else {
        println!("no dictionary: there is nothing to gain");
        return;
    };

    let mut out = vec![0; Dictionary::bound(BLOCK_BYTES)];
    let mut encoded = Vec::new();
    let encode_all = |out: &mut [u8]| blocks.iter().map(|block| dictionary.encode(block, out)).sum();
    report(
        "encode",
        raw,
        fastest(|| {
            black_box::<usize>(encode_all(&mut out));
        }),
    );
    for block in &blocks {
        let bytes = dictionary.encode(block, &mut out);
        encoded.push(out[..bytes].to_vec());
    }
    let decode_all = || {
        for (block, coded) in blocks.iter().zip(&encoded) {
            assert_eq!(dictionary.decode(coded, block.len()).as_deref(), Ok(*block));
        }
    };
    report("decode", raw, fastest(decode_all));
    let coded: usize = encoded.iter().map(Vec::len).sum();
    println!("{dictionary:?}: {raw} bytes encoded into {coded}");
}
