//! Scans that take what they can from windows, while others and the scan's own transaction write.

use super::*;

type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// How often each kind of window was met: of the base, listed upwards, listed downwards; and how often the cursor knew
/// that it stood on the last entry before an end.
type Met = [usize; 4];

/// Goes on from where the cursor stands, so many moves up or down, and compares with `seen`.
fn walk(
    cursor: &mut TreeCursor,
    reader: &Reader<'_>,
    seen: &Model,
    (up, moves): (bool, u64),
    (random, met): (&mut Random, &mut Met),
) {
    let mut moved = 0;
    while moved < moves {
        let here = cursor.key().to_vec();
        let beyond = (Bound::Excluded(here.clone()), Bound::Unbounded);
        let mut expected: Box<dyn Iterator<Item = _>> =
            if up { Box::new(seen.range(beyond)) } else { Box::new(seen.range(..here).rev()) };
        let found = if up { cursor.next(reader) } else { cursor.prev(reader) }.unwrap();
        let row = found.then(|| (cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        assert_eq!(row.as_ref().map(|(key, value)| (key, value)), expected.next());
        moved += 1;
        if !found {
            return;
        }
        if up {
            let end = key(random.below(1000));
            let far = cursor.key() < &end[..]
                && seen
                    .range((Bound::Excluded(cursor.key().to_vec()), Bound::Excluded(end.clone())))
                    .next()
                    .is_some();
            let is_last = cursor.is_last_before(reader, Bound::Excluded(&end));
            assert!(!(is_last && far), "there is more before {end:?} behind {:?}", cursor.key());
            met[3] += usize::from(is_last);
        }
        if random.below(3) == 0 {
            continue;
        }
        let Some(window) = cursor.window(reader) else { continue };
        let kind = if window.listed().is_none() { 0 } else { 2 - usize::from(up) };
        met[kind] += 1;
        // Now and then up to a key, which has to be where it ends.
        let end = key(random.below(1000));
        let window = match (random.below(5), up) {
            (0, true) => window.before(Bound::Excluded(&end)),
            (1, true) => window.before(Bound::Included(&end)),
            (0, false) => window.behind(Bound::Excluded(&end)),
            (1, false) => window.behind(Bound::Included(&end)),
            _ => Some(window),
        };
        let mut rows = window.map_or_else(Vec::new, |window| window.rows());
        if !up {
            rows.reverse();
        }
        rows.truncate(random.below(rows.len() as u64 + 1) as usize);
        let mut passed = None;
        for (number, row) in rows.into_iter().enumerate() {
            let Some(value) = row.2 else { break };
            assert_eq!(Some((&row.1, &value)), expected.next());
            passed = Some((row.0, number + 1, row.1, value));
        }
        if let Some((at, number, key, value)) = passed {
            cursor.arrive(at, number);
            assert_eq!((cursor.key(), cursor.value().unwrap()), (&key[..], &value[..]));
            moved += number as u64;
        }
    }
}

/// Takes some of what is behind the key that was looked up, and looks some of it up again.
fn look_behind(cursor: &mut TreeCursor, reader: &Reader<'_>, seen: &Model, random: &mut Random) {
    let here = cursor.key().to_vec();
    let mut rows = cursor.window_behind(reader).map_or_else(Vec::new, |window| window.rows());
    assert_eq!(cursor.value().unwrap(), seen[&here], "the item stays");
    rows.truncate(random.below(rows.len() as u64 + 1) as usize);
    let expected = seen.range((Bound::Excluded(here), Bound::Unbounded));
    let mut passed = None;
    for ((at, key, value), expected) in rows.into_iter().zip(expected) {
        let Some(value) = value else { break };
        assert_eq!((&key, &value), expected);
        passed = Some((at, passed.map_or(1, |(_, number)| number + 1)));
    }
    let Some((at, number)) = passed else { return };
    cursor.arrive(at, number);
    let (last, value) = (cursor.key().to_vec(), cursor.value().unwrap().to_vec());
    assert_eq!(Some(&value), seen.get(&last));
    for key in [
        &last,
        seen.range((Bound::Excluded(last.clone()), Bound::Unbounded)).next().map_or(&last, |(key, _)| key),
    ] {
        assert!(cursor.get(reader, key).unwrap());
        assert_eq!(cursor.value().unwrap(), seen[key]);
    }
}

/// Three kinds of writers, each of whom has keys of his own, as by locks.
struct Writers {
    bench: Bench,
    undecided: Option<(Arc<TxnStatus>, Writes)>,
}

impl Writers {
    fn writes(random: &mut Random, residues: std::ops::Range<u64>) -> Writes {
        let (from, length) = (random.below(1000), 1 + random.below(250));
        let mine = (from..from + length).filter(|n| residues.contains(&(n % 7)));
        mine.map(|n| (key(n), (random.below(4) > 0).then(|| value(random)))).collect()
    }

    fn commit(&self, random: &mut Random, residues: std::ops::Range<u64>, model: &mut Model) {
        let writes = Self::writes(random, residues);
        self.bench.commit(&writes.clone().into_iter().collect::<Vec<_>>());
        apply(model, writes);
    }

    fn push(&self, status: &Arc<TxnStatus>, sequence: &mut u32, writes: &Writes) {
        for (key, value) in writes {
            *sequence += 1;
            let op = value.as_ref().map_or(WriteOp::Delete, |value| WriteOp::Update(value));
            self.bench.tree.write(key, op, status, *sequence).unwrap();
        }
    }

    fn begin(&mut self, random: &mut Random) {
        let (status, writes) = (TxnStatus::new(4), Self::writes(random, 0..1));
        self.push(&status, &mut 0, &writes);
        self.undecided = Some((status, writes));
    }

    fn decide(&mut self, commits: bool, model: &mut Model) {
        match self.undecided.take() {
            Some((status, writes)) if commits => {
                self.bench.context.clock.publish(&status);
                apply(model, writes);
            }
            Some((status, _)) => status.abort(),
            None => {}
        }
    }
}

fn apply(model: &mut Model, writes: Writes) {
    for (key, value) in writes {
        match value {
            Some(value) => model.insert(key, value),
            None => model.remove(&key),
        };
    }
}

/// One transaction with a snapshot scans and writes, while others write, decide and checkpoint.
fn transaction(writers: &mut Writers, model: &mut Model, random: &mut Random, met: &mut Met) {
    let guard = writers.bench.context.clock.snapshot(0);
    let own = TxnStatus::new(3);
    let reader = Reader { own: Some(&own), ..Reader::at(guard.timestamp()) };
    let mut cursor = TreeCursor::new(writers.bench.tree.clone());
    cursor.seek(&reader, Seek::Before, &key(500)).unwrap();
    let (mut seen, mut sequence) = (model.clone(), 0);
    let mut savepoint = (0, seen.clone());
    for _ in 0..30 {
        match random.below(12) {
            0 | 1 => writers.commit(random, 1..4, model),
            2 if writers.undecided.is_none() => writers.begin(random),
            2 => writers.decide(random.below(2) == 0, model),
            3 | 4 => {
                let writes = Writers::writes(random, 4..7);
                writers.push(&own, &mut sequence, &writes);
                apply(&mut seen, writes);
            }
            5 => savepoint = (sequence, seen.clone()),
            6 => {
                own.void(savepoint.0, sequence);
                seen = savepoint.1.clone();
            }
            7 => drop(writers.bench.checkpoint()),
            _ => {}
        }
        if random.below(3) == 0 {
            let target = key(random.below(1000));
            let found = cursor.get(&reader, &target).unwrap().then(|| cursor.value().unwrap().to_vec());
            assert_eq!(found.as_ref(), seen.get(&target));
            if found.is_some() {
                look_behind(&mut cursor, &reader, &seen, random);
            }
        }
        let way = (random.below(2) == 0, random.below(400));
        walk(&mut cursor, &reader, &seen, way, (random, met));
    }
    own.abort();
}

#[test]
fn windows_over_dense_deltas_show_what_the_model_says_whoever_writes() {
    let mut met = [0; 4];
    for seed in 0..16 {
        let mut random = Random(seed);
        let mut writers = Writers { bench: Bench::new(64 << 20), undecided: None };
        let mut model = Model::new();
        for _ in 0..12 {
            writers.commit(&mut random, 0..7, &mut model);
            transaction(&mut writers, &mut model, &mut random, &mut met);
            writers.decide(false, &mut model);
        }
    }
    assert!(met.iter().all(|met| *met > 100), "windows of each kind were met: {met:?}");
}

#[test]
fn windows_over_dense_deltas_show_what_is_committed_now_to_who_asks_for_that() {
    let mut met = [0; 4];
    for seed in 0..8 {
        let mut random = Random(seed);
        let writers = Writers { bench: Bench::new(64 << 20), undecided: None };
        let (mut seen, mut sequence) = (Model::new(), 0);
        for _ in 0..12 {
            writers.commit(&mut random, 0..7, &mut seen);
        }
        let own = TxnStatus::new(3);
        let reader = Reader { own: Some(&own), ..Reader::at(Timestamp::MAX) };
        let mut cursor = TreeCursor::new(writers.bench.tree.clone());
        cursor.seek(&reader, Seek::Before, &key(500)).unwrap();
        for _ in 0..60 {
            match random.below(4) {
                0 => writers.commit(&mut random, 1..4, &mut seen),
                1 => {
                    let writes = Writers::writes(&mut random, 4..7);
                    writers.push(&own, &mut sequence, &writes);
                    apply(&mut seen, writes);
                }
                _ => {}
            }
            let way = (random.below(2) == 0, random.below(400));
            walk(&mut cursor, &reader, &seen, way, (&mut random, &mut met));
        }
        own.abort();
    }
    assert!(met.iter().all(|met| *met > 100), "windows of each kind were met: {met:?}");
}

#[test]
fn a_scan_of_an_old_snapshot_sees_what_its_own_transaction_writes_ahead_and_takes_back() {
    let mut bench = Bench::new(64 << 20);
    bench.commit(&(0..20).map(|n| (key(n), Some(vec![1; 20]))).collect::<Vec<_>>());
    let guard = bench.context.clock.snapshot(0);
    // What the snapshot sees of these is history from here on.
    bench.commit(&(0..20).step_by(2).map(|n| (key(n), Some(vec![2; 20]))).collect::<Vec<_>>());
    bench.checkpoint();
    let own = TxnStatus::new(3);
    let reader = Reader { own: Some(&own), ..Reader::at(guard.timestamp()) };
    let mut cursor = TreeCursor::new(bench.tree.clone());
    let mut next = |expected: u64, byte: u8| {
        assert!(cursor.next(&reader).unwrap());
        assert_eq!((cursor.key(), cursor.value().unwrap()[0]), (&key(expected)[..], byte));
    };
    next(0, 1);
    next(1, 1);
    bench.tree.write(&key(3), WriteOp::Update(&[3]), &own, 1).unwrap();
    bench.tree.write(&key(5), WriteOp::Delete, &own, 2).unwrap();
    next(2, 1);
    next(3, 3);
    next(4, 1);
    next(6, 1);
    bench.tree.write(&key(7), WriteOp::Delete, &own, 3).unwrap();
    own.void(2, 3);
    next(7, 1);
}

#[test]
fn a_cursor_that_has_come_to_the_end_goes_on_from_its_key() {
    let bench = Bench::new(64 << 20);
    let rows = (0..600).map(|n| (key(n), Some(vec![1; 100]))).collect::<Vec<_>>();
    bench.commit(&rows);
    bench.commit(&(10..600).map(|n| (key(n), None)).collect::<Vec<_>>());
    let own = TxnStatus::new(3);
    let reader = Reader { own: Some(&own), ..Reader::at(Timestamp::MAX) };
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.get(&reader, &key(9)).unwrap() && !cursor.next(&reader).unwrap());
    bench.tree.write(&key(20), WriteOp::Insert(b"new"), &own, 1).unwrap();
    assert!(cursor.next(&reader).unwrap() && cursor.key() == key(20));
}
