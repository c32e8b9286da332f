use super::*;
use crate::values::texts::{noise, text, word, Random};

/// `content` with so many places changed: words replaced, put in and taken out.
fn edited(content: &[u8], places: u64, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut edited = content.to_vec();
    for _ in 0..places {
        let at = random.below(edited.len() as u64 - 100) as usize;
        let gone = random.below(3) as usize * random.below(40) as usize;
        let words: Vec<_> = (0..random.below(6)).map(|_| word(&mut random)).collect();
        edited.splice(at..at + gone, words.join(" ").into_bytes());
    }
    edited
}

fn sketch(seed: u64) -> Sketch {
    Sketch::of(&noise(seed, 2400))
}

#[test]
fn texts_with_a_few_edits_are_found_and_unrelated_ones_are_not() {
    const TEXTS: u64 = 400;
    let mut kin = Kin::new(1 << 20);
    (0..TEXTS).for_each(|seed| kin.note(&Sketch::of(&text(seed, 35_000)), seed));
    for places in [1, 2, 5, 10, 20] {
        let found = |&seed: &u64| {
            let again = edited(&text(seed, 35_000), places, seed + 77);
            kin.find(&Sketch::of(&again)).is_some_and(|(group, _)| group == seed)
        };
        let rate = (0..TEXTS).filter(found).count();
        assert!(rate as u64 * 100 >= TEXTS * 99, "{rate} of {TEXTS} with {places} edits");
    }
    let others =
        (TEXTS..2 * TEXTS).filter(|&seed| kin.find(&Sketch::of(&text(seed, 35_000))).is_some()).count();
    assert!(others as u64 * 100 < TEXTS, "{others} of {TEXTS} unrelated ones");
}

/// What many have in common at their beginning makes them no kin.
#[test]
fn a_letterhead_is_not_enough() {
    let head = text(1, 2_000);
    let page = |seed| Sketch::of(&[&head[..], &text(seed, 20_000)].concat());
    let mut kin = Kin::new(1 << 20);
    (100..200).for_each(|seed| kin.note(&page(seed), seed));
    let found = (200..400).filter(|&seed| kin.find(&page(seed)).is_some()).count();
    assert!(found < 60, "{found} of 200");
}

#[test]
fn the_group_that_shares_most_is_found_and_the_last_one_counts() {
    let mut kin = Kin::new(1 << 16);
    let content = text(1, 35_000);
    assert_eq!(kin.find(&Sketch::of(&content)), None);
    kin.note(&Sketch::of(&content), 5);
    assert_eq!(kin.find(&Sketch::of(&content)), Some((5, FEATURES)));
    let half = [&content[..17_000], &text(2, 18_000)].concat();
    kin.note(&Sketch::of(&half), 3);
    assert_eq!(kin.find(&Sketch::of(&half)), Some((3, FEATURES)));
    kin.note(&Sketch::of(&content), 9);
    assert_eq!(kin.find(&Sketch::of(&content)), Some((9, FEATURES)));
}

#[test]
fn the_budget_holds_and_recent_ones_survive() {
    let budget = 100_000;
    let mut kin = Kin::new(budget);
    let sketches: Vec<_> = (0..4000).map(sketch).collect();
    // Millions of features: each sketch again and again, with another group.
    (0..500_000).for_each(|i| kin.note(&sketches[i % 4000], i as u64));
    let taken = kin.tags.capacity() * size_of::<[u32; WAYS]>()
        + kin.groups.capacity() * size_of::<[u64; WAYS]>()
        + kin.forgotten.capacity() * size_of::<u64>();
    assert!(taken <= budget, "{taken}");
    // There is room for a thousand, in buckets that fill unevenly.
    let found = |i: usize| kin.find(&sketches[i]).is_some_and(|(group, _)| group == 496_000 + i as u64);
    let counted = |range: std::ops::Range<usize>| range.filter(|&i| found(i)).count();
    assert_eq!(counted(3500..4000), 500);
    let oldest = counted(0..500);
    assert!(oldest < 25, "{oldest} of the oldest are still there");
}

#[test]
fn what_is_forgotten_is_not_found_until_it_is_noted_again() {
    let mut kin = Kin::new(1 << 20);
    let sketches: Vec<_> = (0..1000).map(sketch).collect();
    sketches.iter().zip(0..).for_each(|(sketch, group)| kin.note(sketch, group));
    // More than are remembered before a sweep.
    (0..600).for_each(|group| kin.forget(group));
    (0..600).for_each(|group| kin.forget(group));
    for (sketch, group) in sketches.iter().zip(0..) {
        assert_eq!(kin.find(sketch).map(|found| found.0), (group >= 600).then_some(group));
    }
    kin.note(&sketches[599], 599);
    assert_eq!(kin.find(&sketches[599]), Some((599, FEATURES)));
    assert_eq!(kin.find(&sketches[598]), None);
    assert_eq!(kin.find(&sketches[0]), None);
}

#[test]
fn the_smallest_index_and_the_smallest_values_do_no_harm() {
    let mut kin = Kin::new(0);
    for seed in 0..100 {
        kin.note(&sketch(seed), seed);
        kin.find(&sketch(seed));
    }
    for value in [&b""[..], b"short"] {
        kin.note(&Sketch::of(value), 1000);
        assert_eq!(kin.find(&Sketch::of(value)), None, "one feature is not enough");
    }
}
