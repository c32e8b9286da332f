//! A language that nobody speaks: words of syllables, the frequent ones short, used as often as Zipf's law says.
//! Without floating point, so that every machine writes the same.

use crate::random::Random;
use std::collections::HashSet;

/// Words of the language.
const COUNT: usize = 24_000;
/// Ranks up to which words have one, and two, syllables.
const SHORT: [usize; 2] = [150, 4000];
/// Added to a rank before the weight is taken (Mandelbrot): without it the first word would be every tenth.
const SHIFT: u64 = 4;
const ONSETS: [&str; 24] = [
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pr", "ch", "th",
    "sh", "gr", "br", "cl",
];
const VOWELS: [&str; 9] = ["a", "e", "i", "o", "u", "e", "a", "ea", "io"];
const CODAS: [&str; 14] = ["", "", "", "n", "r", "s", "l", "t", "nd", "st", "ng", "m", "ck", "rt"];

/// The vocabulary.
pub struct Words {
    words: Vec<String>,
    /// Weights of all words up to and with each.
    sums: Vec<u64>,
}

impl Words {
    /// The language of a seed.
    pub fn new(seed: u64) -> Words {
        let mut random = Random::new(seed, u64::MAX);
        let (mut words, mut known) = (Vec::with_capacity(COUNT), HashSet::new());
        while words.len() < COUNT {
            let word = invent(&mut random, syllables(words.len()));
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut total = 0;
        let sums = (0..COUNT as u64)
            .map(|rank| {
                total += (1 << 32) / (rank + SHIFT);
                total
            })
            .collect();
        Words { words, sums }
    }

    /// A word, as frequent as it is.
    pub fn any(&self, random: &mut Random) -> &str {
        let place = random.below(self.sums[COUNT - 1]);
        &self.words[self.sums.partition_point(|sum| *sum <= place)]
    }

    /// The number of a word that says what a text is about.
    pub fn rare(&self, random: &mut Random) -> u32 {
        (SHORT[0] as u64 + random.below((COUNT - SHORT[0]) as u64)) as u32
    }

    /// The word of a number that came from [`Words::rare`].
    pub fn numbered(&self, number: u32) -> &str {
        &self.words[number as usize]
    }
}

fn syllables(rank: usize) -> usize {
    1 + SHORT.iter().filter(|limit| rank >= **limit).count()
}

fn invent(random: &mut Random, syllables: usize) -> String {
    let mut word = String::new();
    for _ in 0..syllables {
        for parts in [&ONSETS[..], &VOWELS, &CODAS] {
            word.push_str(parts[random.below(parts.len() as u64) as usize]);
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn frequent_words_are_short_and_as_frequent_as_the_law_says() {
        let words = Words::new(1);
        let mut random = Random::new(1, 1);
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for _ in 0..200_000 {
            *counts.entry(words.any(&mut random)).or_default() += 1;
        }
        let of = |rank: usize| f64::from(counts.get(words.words[rank].as_str()).copied().unwrap_or(0));
        // Weights 1/4 and 1/14.
        let ratio = of(0) / of(10);
        assert!((ratio / 3.5 - 1.0).abs() < 0.15, "{ratio}");
        assert!(words.words[..100].iter().all(|word| word.len() <= 6));
        assert!(counts.len() > 10_000);
    }

    #[test]
    fn a_seed_is_a_language() {
        assert_eq!(Words::new(3).words, Words::new(3).words);
        assert_ne!(Words::new(3).words, Words::new(4).words);
        assert!(words_are_unique(&Words::new(3)));
    }

    fn words_are_unique(words: &Words) -> bool {
        words.words.iter().collect::<HashSet<_>>().len() == COUNT
    }
}
