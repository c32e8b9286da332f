//! Whatever goes in comes out sorted, whether it fits or not.

use super::*;
use crate::cache::Purpose;
use crate::file::SimulatedFileSystem;
use std::path::Path;

fn sorter(budget_bytes: usize, threads: bool) -> (Arc<SpillFile>, Sorter) {
    let fs = SimulatedFileSystem::new(7);
    crate::file::FileSystem::create_dir(&fs, Path::new("/tmp")).unwrap();
    let spill = SpillFile::create(&fs, Path::new("/tmp"), u64::MAX).unwrap();
    (spill.clone(), Sorter::new(spill, budget_bytes, threads))
}

/// Keys of different lengths that share long prefixes, in an order of no kind.
fn entry(i: u64) -> (Vec<u8>, Vec<u8>) {
    let spread = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = format!("{}{:03}", "same prefix ".repeat((spread >> 60) as usize % 3), spread % 100_003);
    ([key.as_bytes(), &i.to_be_bytes()].concat(), vec![i as u8; (spread >> 50) as usize % 40])
}

/// Returns the bytes that were spilled; without threads they depend on the entries only.
fn check(budget_bytes: usize, entries: u64) -> u64 {
    check_with(2 * budget_bytes, entries, true);
    check_with(budget_bytes, entries, false)
}

fn check_with(budget_bytes: usize, entries: u64, threads: bool) -> u64 {
    let (spill, mut sorter) = sorter(budget_bytes, threads);
    let mut expected = Vec::new();
    for i in 0..entries {
        let (key, value) = entry(i);
        sorter.push(&key, &value).unwrap();
        expected.push((key, value));
    }
    assert_eq!(sorter.entries(), entries);
    let spilled = spill.used_bytes();
    expected.sort();
    let mut sorted = sorter.finish().unwrap();
    for (key, value) in &expected {
        assert!(sorted.advance().unwrap());
        assert_eq!(sorted.entry(), (&key[..], &value[..]));
    }
    assert!(!sorted.advance().unwrap() && !sorted.advance().unwrap());
    drop(sorted);
    assert_eq!(spill.used_bytes(), 0, "temporary space is given back");
    spilled
}

#[test]
fn entries_come_out_sorted_from_memory_from_runs_and_from_merged_runs() {
    assert_eq!(check(1 << 20, 0), 0);
    assert_eq!(check(1 << 20, 1), 0);
    assert_eq!(check(1 << 20, 1000), 0);
    assert!(check(10 << 10, 2000) > 0);
    // More runs than a level keeps.
    assert!(check(2 << 10, 8000) > 0);
}

#[test]
fn entries_of_sorters_that_were_absorbed_come_out_among_the_others() {
    for budget_bytes in [2 << 10, 100 << 10, 1 << 20] {
        let (spill, mut sorter) = sorter(budget_bytes, false);
        let mut expected = Vec::new();
        for part in 0..4 {
            let mut other = Sorter::new(spill.clone(), budget_bytes, part % 2 == 1);
            for i in 0..2000 {
                let (key, value) = entry(part * 2000 + i);
                let to = if i % 5 == 0 { &mut sorter } else { &mut other };
                to.push(&key, &value).unwrap();
                expected.push((key, value));
            }
            sorter.absorb(other).unwrap();
        }
        assert_eq!(sorter.entries(), 8000);
        expected.sort();
        let mut sorted = sorter.finish().unwrap();
        for (key, value) in &expected {
            assert!(sorted.advance().unwrap());
            assert_eq!(sorted.entry(), (&key[..], &value[..]));
        }
        assert!(!sorted.advance().unwrap());
        drop(sorted);
        assert_eq!(spill.used_bytes(), 0);
    }
}

#[test]
fn keys_that_begin_alike_are_told_apart_behind_that_whatever_runs_they_are_in() {
    for (prefix, other) in
        [("", ""), ("http://www.example.org/", ""), ("http://www.example.org/", "http://www."), ("x", "y")]
    {
        let (_, mut sorter) = sorter(2 << 10, false);
        let mut expected = Vec::new();
        for i in 0..4000u64 {
            let spread = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Late, so that the first runs share more than the last; sometimes nothing but the prefix.
            let prefix = if i > 3900 { other } else { prefix };
            let key = [prefix.as_bytes(), &spread.to_be_bytes()[..spread as usize % 9]].concat();
            sorter.push(&key, &[]).unwrap();
            expected.push(key);
        }
        expected.sort();
        let mut sorted = sorter.finish().unwrap();
        for key in &expected {
            assert!(sorted.advance().unwrap());
            assert_eq!(sorted.entry().0, key);
        }
        assert!(!sorted.advance().unwrap());
    }
}

#[test]
fn an_entry_larger_than_the_memory_is_a_run_of_its_own() {
    let (_, mut sorter) = sorter(100, false);
    let values = [vec![2; 300_000], vec![1; 10], vec![3; 500]];
    for (i, value) in values.iter().enumerate() {
        sorter.push(&[9 - i as u8], value).unwrap();
    }
    let mut sorted = sorter.finish().unwrap();
    for (i, value) in values.iter().enumerate().rev() {
        assert!(sorted.advance().unwrap());
        assert_eq!(sorted.entry(), (&[9 - i as u8][..], &value[..]));
    }
}

#[test]
fn a_full_spill_file_is_an_error_and_leaves_nothing() {
    for threads in [false, true] {
        full_spill_file(threads);
    }
}

fn full_spill_file(threads: bool) {
    let fs = SimulatedFileSystem::new(7);
    crate::file::FileSystem::create_dir(&fs, Path::new("/tmp")).unwrap();
    let spill = SpillFile::create(&fs, Path::new("/tmp"), 10_000).unwrap();
    let mut sorter = Sorter::new(spill.clone(), 4000, threads);
    let mut random = 1u64;
    let result = (0..10_000u64).try_for_each(|i| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        sorter.push(&[i.to_le_bytes(), random.to_be_bytes()].concat(), &random.to_le_bytes())
    });
    assert!(matches!(result, Err(crate::Error::SpillFull { .. })), "{result:?}");
    drop(sorter);
    assert_eq!(spill.used_bytes(), 0);
}

#[test]
fn memory_is_charged_and_runs_are_written_when_others_need_it() {
    for (others, spills) in [(0, false), (7 << 20, true)] {
        let cache = Arc::new(Cache::new(8 << 20, Arc::new(crate::SilentObserver)));
        cache.charge(Purpose::Values, others);
        let (spill, sorter) = sorter(64 << 20, false);
        let mut sorter = sorter.charged_to(&cache);
        let mut entries = 0;
        while sorter.run.memory() < 2 << 20 && entries < 60_000 {
            let (key, value) = entry(entries);
            sorter.push(&key, &value).unwrap();
            entries += 1;
            assert!(cache.used() as usize >= others + sorter.run.memory().saturating_sub(300 << 10));
        }
        assert_eq!(spill.used_bytes() > 0, spills);
        assert!(cache.used() as usize <= others + (3 << 20));
        // However much is asked for, half of the cache is all.
        assert_eq!(sorter.budget_bytes, 4 << 20);
        // In the end what others need is not held by what waits to be merged.
        let held = cache.used() as usize - others;
        cache.charge(Purpose::Values, 8 << 20);
        let mut sorted = sorter.finish().unwrap();
        assert!(held > 0 && cache.used() as usize == others + (8 << 20) && spill.used_bytes() > 0);
        cache.discharge(Purpose::Values, 8 << 20);
        let mut last = Vec::new();
        for _ in 0..entries {
            assert!(sorted.advance().unwrap() && last[..] <= *sorted.entry().0);
            last = sorted.entry().0.to_vec();
        }
        assert!(!sorted.advance().unwrap());
        drop(sorted);
        assert_eq!((cache.used() as usize, spill.used_bytes()), (others, 0));
        cache.discharge(Purpose::Values, others);
    }
}
