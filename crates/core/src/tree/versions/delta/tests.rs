use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

fn put(delta: &Delta, key: &[u8], status: &Arc<TxnStatus>, sequence: u32, value: &[u8]) -> bool {
    // SAFETY: each test pushes from one thread only.
    unsafe { delta.push(key, status.clone(), sequence, VersionOp::Put(value)) }
}

fn key_of(entry: Option<EntryRef<'_>>) -> Option<&[u8]> {
    entry.map(|entry| entry.key())
}

fn value_of(version: &Version) -> Option<Vec<u8>> {
    match version.op() {
        VersionOp::Put(bytes) => Some(bytes.to_vec()),
        VersionOp::Blob(blob) => blob.bytes().ok().map(|bytes| bytes.to_vec()),
        VersionOp::Delete => None,
    }
}

/// Sequence and value, newest first.
type Chain = Vec<(u32, Option<Vec<u8>>)>;

fn chain(entry: EntryRef<'_>) -> Chain {
    std::iter::successors(entry.newest(), |version| version.older())
        .map(|version| (version.sequence, value_of(version)))
        .collect()
}

#[test]
fn an_empty_delta_has_no_entries_and_no_arena() {
    let delta = Delta::new();
    assert!(delta.is_empty() && delta.first().is_none() && delta.last().is_none());
    assert!(
        delta.find(b"a").is_none()
            && delta.first_after(b"").is_none()
            && delta.last_at_or_before(b"z").is_none()
    );
    assert_eq!(delta.memory(), 0);
}

#[test]
fn versions_of_a_key_are_newest_first() {
    let (delta, status) = (Delta::new(), TxnStatus::new(7));
    assert!(put(&delta, b"key", &status, 1, b"one"));
    // SAFETY: one thread.
    unsafe { assert!(!delta.push(b"key", status.clone(), 2, VersionOp::Delete)) };
    let blob = Arc::new(Blob::new(&b"large"[..]));
    // SAFETY: one thread.
    unsafe { assert!(!delta.push(b"key", status.clone(), 3, VersionOp::Blob(&blob))) };
    let expected = vec![(3, Some(b"large".to_vec())), (2, None), (1, Some(b"one".to_vec()))];
    assert_eq!(delta.find(b"key").map(chain), Some(expected));
    assert_eq!((delta.len(), delta.versions()), (1, 3));
}

#[test]
fn dropping_a_delta_releases_statuses_and_blobs() {
    let (status, blob) = (TxnStatus::new(7), Arc::new(Blob::new(vec![1; 100])));
    let delta = Delta::new();
    for i in 0..100u32 {
        // SAFETY: one thread.
        unsafe { delta.push(&(i % 30).to_be_bytes(), status.clone(), i, VersionOp::Blob(&blob)) };
        put(&delta, &i.to_be_bytes(), &status, i, &[0; 99]);
    }
    assert_eq!((Arc::strong_count(&status), Arc::strong_count(&blob)), (201, 101));
    drop(delta);
    assert_eq!((Arc::strong_count(&status), Arc::strong_count(&blob)), (1, 1));
}

#[test]
fn a_value_larger_than_a_chunk_is_kept_whole() {
    let (delta, status) = (Delta::new(), TxnStatus::new(7));
    let value: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
    put(&delta, b"a", &status, 1, b"small");
    put(&delta, b"b", &status, 2, &value);
    put(&delta, b"c", &status, 3, b"");
    assert_eq!(delta.find(b"b").and_then(|e| e.newest()).and_then(value_of), Some(value));
    assert_eq!(delta.find(b"c").and_then(|e| e.newest()).and_then(value_of), Some(Vec::new()));
    assert!(delta.memory() > 300_000);
}

/// Keys that collide in their heads, differ in trailing zeros, and are prefixes of each other.
fn awkward_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(0u8..3, 0..4),
        proptest::collection::vec(0u8..2, 8..12),
        (any::<u16>(), 0usize..20).prop_map(|(n, pad)| [&vec![7; pad][..], &n.to_be_bytes()].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_lookup_agrees_with_a_btreemap(
        writes in proptest::collection::vec((awkward_key(), proptest::option::of(any::<u16>())), 0..250),
        probes in proptest::collection::vec(awkward_key(), 0..80),
    ) {
        let (delta, status) = (Delta::new(), TxnStatus::new(1));
        let mut model: BTreeMap<Vec<u8>, Chain> = BTreeMap::new();
        for (i, (key, value)) in writes.iter().enumerate() {
            let (sequence, bytes) = (i as u32, value.map(|v| v.to_le_bytes()));
            let op = bytes.as_ref().map_or(VersionOp::Delete, |bytes| VersionOp::Put(bytes));
            // SAFETY: one thread.
            let new = unsafe { delta.push(key, status.clone(), sequence, op) };
            prop_assert_eq!(new, !model.contains_key(key));
            model.entry(key.clone()).or_default().insert(0, (sequence, bytes.map(|b| b.to_vec())));
        }
        prop_assert_eq!((delta.len(), delta.versions()), (model.len(), writes.len()));
        prop_assert!(delta.iter().map(|e| (e.key().to_vec(), chain(e))).eq(model.clone()));
        prop_assert_eq!(key_of(delta.first()), model.keys().next().map(|k| &k[..]));
        prop_assert_eq!(key_of(delta.last()), model.keys().next_back().map(|k| &k[..]));
        for probe in probes.iter().chain(model.keys()) {
            let at = model.range(probe.clone()..);
            let after = model.range::<Vec<u8>, _>((std::ops::Bound::Excluded(probe), std::ops::Bound::Unbounded));
            prop_assert_eq!(delta.find(probe).map(chain), model.get(probe).cloned());
            prop_assert_eq!(key_of(delta.first_at_or_after(probe)), at.map(|(k, _)| &k[..]).next());
            prop_assert_eq!(key_of(delta.first_after(probe)), after.map(|(k, _)| &k[..]).next());
            let through = model.range(..=probe.clone()).next_back();
            prop_assert_eq!(key_of(delta.last_at_or_before(probe)), through.map(|(k, _)| &k[..]));
            let before = model.range(..probe.clone()).next_back();
            prop_assert_eq!(key_of(delta.last_before(probe)), before.map(|(k, _)| &k[..]));
        }
    }
}

/// Keys with a long common start in many orders: what is found while chunks grow and divide is what was put in.
#[test]
fn many_keys_are_found_whatever_the_order_they_come_in() {
    const KEYS: u32 = if cfg!(miri) { 120 } else { 3000 };
    type Order = fn(u32) -> u32;
    let orders: [(&str, Order); 5] = [
        ("ascending", |i| i),
        ("descending", |i| KEYS - 1 - i),
        ("scattered", |i| i * 1_009 % KEYS),
        ("from both ends", |i| if i % 2 == 0 { i / 2 } else { KEYS - 1 - i / 2 }),
        ("two runs", |i| if i < KEYS / 2 { 2 * i } else { 2 * (i - KEYS / 2) + 1 }),
    ];
    for (name, order) in orders {
        let (delta, status) = (Delta::new(), TxnStatus::new(1));
        let key = |number: u32| [&b"shared by all of them "[..], &number.to_be_bytes(), b"!"].concat();
        let mut model = BTreeMap::new();
        for i in 0..KEYS {
            let number = order(i);
            assert!(put(&delta, &key(number), &status, i, &number.to_le_bytes()), "{name}: {number} is new");
            model.insert(key(number), i);
            if i % 97 == 0 || i + 1 == KEYS {
                assert!(delta.iter().map(|e| e.key().to_vec()).eq(model.keys().cloned()), "{name}: {i}");
            }
        }
        for (probe, sequence) in &model {
            let found = delta.find(probe).and_then(|entry| entry.newest());
            assert_eq!(found.map(|version| version.sequence), Some(*sequence), "{name}: {probe:?}");
            let beyond = [&probe[..], b"?"].concat();
            assert!(delta.find(&beyond).is_none(), "{name}: {beyond:?}");
            assert_eq!(key_of(delta.last_before(&beyond)), Some(&probe[..]), "{name}");
            let next =
                model.range::<Vec<u8>, _>((std::ops::Bound::Excluded(probe), std::ops::Bound::Unbounded));
            assert_eq!(
                key_of(delta.first_at_or_after(&beyond)),
                next.map(|(key, _)| &key[..]).next(),
                "{name}"
            );
        }
        for outside in [&b"a"[..], b"shared by all of them", b"shared by none", b"z"] {
            let after = model.range(outside.to_vec()..).next().map(|(key, _)| &key[..]);
            assert_eq!(key_of(delta.first_at_or_after(outside)), after, "{name}: {outside:?}");
        }
    }
}

/// Each value repeats its key and its sequence, so that a torn or misplaced version shows.
fn stamped(key: &[u8], sequence: u32) -> Vec<u8> {
    [key, &sequence.to_le_bytes(), &[sequence as u8; 20]].concat()
}

fn check_everything(delta: &Delta) -> usize {
    let (mut entries, mut previous): (usize, Option<&[u8]>) = (0, None);
    for entry in delta.iter() {
        assert!(previous.is_none_or(|previous| previous < entry.key()), "keys ascend");
        let mut newer = u32::MAX;
        for version in std::iter::successors(entry.newest(), |version| version.older()) {
            assert!(version.sequence < newer, "versions are newest first");
            newer = version.sequence;
            assert_eq!(value_of(version), Some(stamped(entry.key(), version.sequence)));
            assert_eq!(version.status.id(), 9);
        }
        assert!(newer < u32::MAX, "an entry has a version");
        assert_eq!(
            delta.find(entry.key()).map(|e| e.key()),
            Some(entry.key()),
            "what a scan met, a search finds"
        );
        // Keys only come: what has nothing before it now had nothing before it earlier. (The other way round the writer
        // may be in between.)
        let first = delta.first().map(|e| e.key());
        match delta.last_before(entry.key()) {
            None => assert_eq!(first, Some(entry.key()), "the first has no predecessor, all others have"),
            Some(before) => {
                assert!(before.key() < entry.key(), "a predecessor is before its key");
                assert!(
                    previous.is_none_or(|previous| previous <= before.key()),
                    "and not before what was met"
                );
            }
        }
        (entries, previous) = (entries + 1, Some(entry.key()));
    }
    entries
}

#[test]
fn readers_beside_one_writer_see_only_complete_entries_and_lose_none() {
    let (keys, pushes, rounds) = if cfg!(miri) { (20, 60, 1) } else { (300, 1500, 20) };
    for round in 0..rounds {
        let (delta, done) = (Delta::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut least = 0;
                    while !done.load(Ordering::SeqCst) {
                        let entries = check_everything(&delta);
                        assert!(entries >= least, "an entry once seen stays");
                        least = entries;
                    }
                });
            }
            let (status, mut random) = (TxnStatus::new(9), 0x1234_5678u32 + round);
            for sequence in 0..pushes {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let key = [&b"common prefix"[..], &((random >> 8) % keys).to_be_bytes()].concat();
                put(&delta, &key, &status, sequence, &stamped(&key, sequence));
            }
            done.store(true, Ordering::SeqCst);
        });
        assert_eq!(check_everything(&delta), delta.len());
        assert_eq!(delta.versions(), pushes as usize);
    }
}

/// The last chunk is divided all the time, and its upper half appended to the inner chunk, where nothing is moved. (A
/// reader that had counted the inner chunk's entries before took the lower half for the last.)
#[test]
fn the_last_entry_is_never_passed_over_while_keys_come_below_it() {
    let (keys, rounds) = if cfg!(miri) { (120u32, 1) } else { (4_000, 40) };
    let key = |number: u32| [&b"key"[..], &number.to_be_bytes()].concat();
    for _ in 0..rounds {
        let (delta, done, status) = (Delta::new(), AtomicBool::new(false), TxnStatus::new(9));
        put(&delta, &key(u32::MAX - 1), &status, 0, b"the greatest");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut some = Vec::new();
                while !done.load(Ordering::SeqCst) {
                    let (greatest, beyond) = (key(u32::MAX - 1), key(u32::MAX));
                    assert_eq!(key_of(delta.last_before(&beyond)), Some(&greatest[..]));
                    assert_eq!(key_of(delta.last_at_or_before(&beyond)), Some(&greatest[..]));
                    assert_eq!(key_of(delta.last()), Some(&greatest[..]));
                    assert_eq!(key_of(delta.find(&greatest)), Some(&greatest[..]));
                    delta.some_before(&beyond, &mut some);
                    assert_eq!(key_of(some.first().map(|&(entry, _)| entry)), Some(&greatest[..]));
                }
            });
            for number in 1..=keys {
                put(&delta, &key(number), &status, number, b"below");
            }
            done.store(true, Ordering::SeqCst);
        });
    }
}
