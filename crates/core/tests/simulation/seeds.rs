//! Random histories by number: a seed that failed is printed and reproduces.
//!
//! `TEAK_SEEDS=n` runs n seeds, `TEAK_SEEDS=a..b` those from a up to b, without b, `TEAK_SEED=x` only that one. Without
//! either, 500 are run. What fails is made shorter for `TEAK_SHORTEN_SECONDS` (60) and printed.

#[path = "shorten.rs"]
mod shorten;

// The program of concurrent histories has no steps to tell.
#[allow(unused_imports)]
pub use shorten::{play, shown, tell, Steps};

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Sebastiano Vigna's SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number less than `n` (0 for `n` = 0).
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// One of `space` keys; lengths and shared beginnings of many kinds.
pub fn key(random: &mut Random, space: usize) -> Vec<u8> {
    let n = random.below(space) as u32;
    match n % 4 {
        0 => n.to_be_bytes().to_vec(),
        1 => format!("user/{n:05}").into_bytes(),
        2 => format!("a/long/beginning/that/all/of/these/keys/have/{}", n * 7919).into_bytes(),
        _ => [&[0xff, (n % 5) as u8][..], &vec![n as u8; 1 + n as usize % 150]].concat(),
    }
}

/// A value of random content of up to `largest` bytes, mostly small.
pub fn value(random: &mut Random, largest: usize) -> Vec<u8> {
    let limit = match random.below(100) {
        0..=1 => largest,
        2..=9 => 5_000,
        10..=39 => 600,
        _ => 60,
    };
    let length = random.below(limit.min(largest) + 1);
    if random.percent(40) {
        // Words, which dictionaries are made of.
        let words =
            ["forum", "article", "thread", "author", "it's", "verst\u{e4}ndlich", "crawled", "published"];
        let text = (0..length).flat_map(|_| [" ", words[random.below(words.len())]]).collect::<String>();
        return text.into_bytes()[..length].to_vec();
    }
    let word = random.next().to_le_bytes();
    let mut value: Vec<u8> = word.iter().copied().cycle().take(length).collect();
    // Half of it compresses well, the other half not at all.
    if random.percent(50) {
        value
            .chunks_mut(8)
            .for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]));
    }
    value
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What `TEAK_SEEDS` says.
fn range() -> Range<u64> {
    let number = |text: &str| text.parse().expect("TEAK_SEEDS is n or a..b");
    match std::env::var("TEAK_SEEDS").as_deref().map(|text| (text, text.split_once(".."))) {
        Ok((_, Some((first, end)))) => number(first)..number(end),
        Ok((count, None)) => 0..number(count),
        Err(_) => 0..500,
    }
}

/// Runs `history` for each seed, on all processors.
pub fn for_each_seed(test: &str, history: impl Fn(u64, &mut Steps) + Sync) {
    let patience = Duration::from_secs(number("TEAK_SHORTEN_SECONDS").unwrap_or(60));
    let failure = |seed: u64| play(|steps| history(seed, steps), patience);
    if let Some(seed) = number("TEAK_SEED") {
        return failure(seed).map_or((), |left| panic!("{test} with seed {seed} {left}"));
    }
    let seeds = range();
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicBool::new(false);
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::SeqCst);
        if seed >= seeds.end || failed.load(Ordering::SeqCst) {
            return;
        }
        if let Some(left) = failure(seed) {
            failed.store(true, Ordering::SeqCst);
            eprintln!("\n*** {test} failed with seed {seed}: TEAK_SEED={seed} cargo test --test {test} reproduces it ***\n\n{left}");
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    assert!(!failed.load(Ordering::SeqCst), "{test}: a seed failed, see above");
}
