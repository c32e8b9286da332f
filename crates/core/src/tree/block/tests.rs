use super::builder::BlockBuilder;
use super::columns::Columns;
use super::packed::PackedBlock;
use super::*;
use crate::options::Compression;
use crate::store::in_parts as parts;
use crate::store::BlockAddress;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn no_blobs(_: BlobAddress) -> Arc<Blob> {
    unreachable!("there is no blob in the block")
}

fn build(entries: &Entries) -> Block {
    let mut builder = BlockBuilder::new();
    entries.iter().for_each(|(key, value)| builder.push(key, Value::Inline(value)));
    let estimate = builder.estimated_bytes();
    let block = builder.finish();
    assert!(estimate >= block.bytes().len() && estimate <= block.bytes().len() + 4 * entries.len() + 8);
    block
}

/// Bytes of a frame, or none.
fn frame_sizes() -> impl Strategy<Value = Option<usize>> {
    proptest::option::of(1usize..4000)
}

fn inline(value: Value<'_>) -> &[u8] {
    match value {
        Value::Inline(bytes) => bytes,
        Value::Blob(blob) => panic!("{blob:?} where bytes were pushed"),
    }
}

fn contents(block: &Block) -> Entries {
    let mut key = Vec::new();
    (0..block.len())
        .map(|i| {
            block.key_into(i, &mut key);
            (key.clone(), inline(block.value(i)).to_vec())
        })
        .collect()
}

/// Keys with shared prefixes, heads that collide, trailing zeros, and keys that are prefixes of others.
fn awkward_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(0u8..3, 0..5),
        proptest::collection::vec(0u8..2, 8..12),
        any::<u32>().prop_map(|n| n.to_be_bytes().to_vec()),
        "[a-c]{0,9}".prop_map(String::into_bytes),
    ]
}

fn awkward_entries() -> impl Strategy<Value = Entries> {
    let value =
        prop_oneof![Just(Vec::new()), Just(vec![1, 2, 3, 4]), proptest::collection::vec(any::<u8>(), 0..40)];
    let common = prop_oneof![Just(Vec::new()), Just(b"a common prefix".to_vec()), Just(vec![0; 8])];
    (
        common,
        prop_oneof![Just(true), Just(false)],
        proptest::collection::btree_map(awkward_key(), value, 0..120),
    )
        .prop_map(|(common, same_value, entries)| {
            let value = |value| if same_value { b"same".to_vec() } else { value };
            entries.into_iter().map(|(k, v)| ([&common[..], &k].concat(), value(v))).collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_block_holds_what_was_pushed_and_survives_parsing(entries in awkward_entries()) {
        let block = build(&entries);
        prop_assert_eq!(block.len(), entries.len());
        prop_assert_eq!(&contents(&block), &entries);
        let parsed = Block::parse(block.bytes().to_vec(), &no_blobs).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&contents(&parsed), &entries);
    }

    #[test]
    fn search_agrees_with_a_sorted_vector(
        entries in awkward_entries(), probes in proptest::collection::vec(awkward_key(), 0..60),
    ) {
        let block = build(&entries);
        let keys: Vec<&Vec<u8>> = entries.keys().collect();
        let longer = keys.iter().map(|key| [&key[..], &[0]].concat());
        let prefixed = probes.iter().map(|probe| [block.prefix(), probe].concat());
        let all = keys.iter().map(|key| key.to_vec()).chain(longer).chain(prefixed).chain(probes.clone());
        for probe in all.collect::<Vec<_>>() {
            let found = keys.binary_search(&&probe);
            prop_assert_eq!(block.search(&probe), found);
            let place = found.unwrap_or_else(|place| place);
            for from in [0, place.saturating_sub(5), place.saturating_sub(1), place] {
                prop_assert_eq!(block.search_from(from, &probe), found);
            }
            for to in [place, place + 1, place + 5, keys.len()].map(|to| to.min(keys.len())) {
                // All entries from there on are behind the key: with itself it is not.
                let to = if found.is_ok() { to.max(place + 1) } else { to };
                prop_assert_eq!(block.search_before(to, &probe), found);
            }
            let end = if found.is_ok() { place + 1 } else { place };
            for within in [0..keys.len(), place..end, place..keys.len(), place.saturating_sub(3)..end] {
                prop_assert_eq!(block.search_within(within, &probe), found);
            }
            prop_assert_eq!(block.lower_bound(&probe), keys.partition_point(|key| **key < probe));
            prop_assert_eq!(block.upper_bound(&probe), keys.partition_point(|key| **key <= probe));
            for (i, key) in keys.iter().enumerate() {
                prop_assert_eq!(block.compare(i, &probe), key[..].cmp(&probe[..]));
            }
        }
    }

    #[test]
    fn ranges_of_old_blocks_and_new_entries_build_the_same_block(
        entries in awkward_entries(), old: u64, reuse in awkward_entries(),
    ) {
        let from_old = build(&entries.iter().enumerate()
            .filter(|(i, _)| old >> (i % 64) & 1 == 1).map(|(_, (k, v))| (k.clone(), v.clone())).collect());
        let mut builder = BlockBuilder::new();
        reuse.iter().for_each(|(key, value)| builder.push(key, Value::Inline(value)));
        builder.finish();
        let mut next = 0;
        for (i, (key, value)) in entries.iter().enumerate() {
            if old >> (i % 64) & 1 == 0 {
                let end = from_old.lower_bound(key);
                builder.push_range(&from_old, next..end);
                builder.push(key, Value::Inline(value));
                next = end;
            }
        }
        builder.push_range(&from_old, next..from_old.len());
        let rebuilt = builder.finish();
        prop_assert_eq!(&contents(&rebuilt), &entries);
        let direct = build(&entries);
        prop_assert_eq!(rebuilt.bytes(), direct.bytes());
    }

    #[test]
    fn a_block_stored_by_columns_comes_back_byte_for_byte(
        entries in awkward_entries(), keys in 0usize..20, values in 0usize..50, frame_bytes in frame_sizes(),
    ) {
        let block = build(&entries);
        let packed = columns::pack(&block, block.bytes(), Columns { keys, values }, frame_bytes).bytes;
        let unpacked = Block::parse(packed, &no_blobs).map_err(TestCaseError::fail)?;
        prop_assert_eq!(unpacked.bytes(), block.bytes());
        expect_packed(&block, Columns { keys, values }, frame_bytes.unwrap_or(1))?;
    }

    #[test]
    fn rows_of_many_lengths_and_whole_tiles_come_back(
        rows in proptest::collection::vec((any::<[u8; 3]>(), proptest::collection::vec(any::<u8>(), 19..300)), 0..70),
        keys in 0usize..30, values in 0usize..310, frame_bytes in frame_sizes(),
    ) {
        let block = build(&rows.into_iter().enumerate()
            .map(|(i, (noise, value))| ([&(i as u16).to_be_bytes()[..], &noise, &[0; 14]].concat(), value)).collect());
        let packed = columns::pack(&block, block.bytes(), Columns { keys, values }, frame_bytes).bytes;
        let unpacked = Block::parse(packed, &no_blobs).map_err(TestCaseError::fail)?;
        prop_assert_eq!(unpacked.bytes(), block.bytes());
        expect_packed(&block, Columns { keys, values }, frame_bytes.unwrap_or(1000))?;
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_without_panic(
        entries in awkward_entries(), damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<u16>()), probes in proptest::collection::vec(awkward_key(), 0..10),
        by_columns in proptest::option::of((0usize..12, 0usize..12)), frame_bytes in frame_sizes(),
    ) {
        let block = build(&entries);
        let mut bytes = match by_columns {
            Some((keys, values)) => {
                columns::pack(&block, block.bytes(), Columns { keys, values }, frame_bytes).bytes.to_vec()
            }
            None => block.bytes().to_vec(),
        };
        for (at, value) in damage {
            let at = if at & 1 == 0 { usize::from(at) % bytes.len() } else { usize::from(at) % HEADER_BYTES };
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        let named = RefCell::new(Vec::new());
        let blob = |at| {
            named.borrow_mut().push(at);
            Arc::new(Blob::new(Vec::new()))
        };
        let large = large_values(&bytes);
        if let Ok(block) = Block::parse(bytes, &blob) {
            prop_assert_eq!(large, Ok(named.into_inner()));
            let mut key = Vec::new();
            for i in 0..block.len() {
                block.key_into(i, &mut key);
                prop_assert_eq!(block.search(&key), Ok(i));
                block.value(i);
            }
            probes.iter().for_each(|probe| { block.lower_bound(probe); });
        }
    }
}

#[test]
fn an_empty_block_finds_nothing() {
    let block = Block::empty();
    assert_eq!((block.len(), block.search(b""), block.search(b"a")), (0, Err(0), Err(0)));
    assert_eq!(block.bytes().len(), HEADER_BYTES);
    assert!(Block::parse(block.bytes().to_vec(), &no_blobs).is_ok());
}

#[test]
fn entries_of_fixed_size_cost_only_their_heads() {
    let entries = (0..1000u32).map(|i| (i.to_be_bytes().to_vec(), Vec::new())).collect();
    let block = build(&entries);
    assert_eq!(block.prefix(), [0, 0]);
    assert_eq!(block.bytes().len(), HEADER_BYTES + 2 + 1000 * (4 + 2));
}

#[test]
fn keys_alike_in_four_bytes_get_wide_heads() {
    let key = |i: u32| [&[i as u8 & 1][..], b"abcd", &(i as u16).to_be_bytes()].concat();
    let block = build(&(0..1000).map(|i| (key(i), Vec::new())).collect());
    assert!(block.wide_heads);
    (0..1000).for_each(|i| assert!(block.search(&key(i)).is_ok()));
}

#[test]
fn every_byte_of_header_and_heads_is_checked() {
    let entries = (0..40u32).map(|i| (vec![i as u8, 0, 0, 0, 9], vec![7; i as usize])).collect();
    let block = build(&entries);
    let bytes = block.bytes().to_vec();
    for at in 0..block.layout.heads_end {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Block::parse(damaged, &no_blobs).is_err(), "byte {at}");
    }
}

#[test]
fn few_bytes_on_disk_cannot_ask_for_much_memory() {
    let block = build(&Entries::from([(Vec::new(), Vec::new())]));
    let packed = columns::pack(&block, block.bytes(), Columns::default(), None).bytes;
    let parse = |at: usize, number: u32| {
        let mut damaged = packed.to_vec();
        damaged[at..at + 4].copy_from_slice(&number.to_le_bytes());
        Block::parse(damaged, &no_blobs)
    };
    assert!(parse(4, 1).is_ok());
    for at in [4, 8, 12, 16, 20] {
        for number in [2, 1 << 20, 1 << 28, u32::MAX] {
            assert!(parse(at, number).is_err(), "{number} at {at}");
        }
    }
}

#[test]
fn every_byte_of_a_header_on_disk_is_checked() {
    let entries = (0..40u32).map(|i| (vec![i as u8, 0, 0, 0, 9], vec![7; 1 + i as usize])).collect();
    let block = build(&entries);
    // The number of rows in a frame, behind it, only the checksum tells from another.
    for frame_bytes in [None, Some(100)] {
        let packed = columns::pack(&block, block.bytes(), Columns { keys: 3, values: 1 }, frame_bytes).bytes;
        for at in 0..HEADER_BYTES + 6 {
            let mut damaged = packed.to_vec();
            damaged[at] ^= 0x10;
            assert!(Block::parse(damaged, &no_blobs).is_err(), "byte {at}");
        }
    }
}

#[test]
fn blobs_keep_their_place_among_inline_values() {
    let blobs: Vec<Arc<Blob>> = (0..3).map(|i| Arc::new(Blob::new(vec![i; 100]))).collect();
    let mut builder = BlockBuilder::new();
    builder.push(b"a", Value::Blob(&blobs[0]));
    builder.push(b"b", Value::Inline(b"four"));
    builder.push(b"c", Value::Blob(&blobs[1]));
    builder.push(b"d", Value::Blob(&blobs[2]));
    let block = builder.finish();
    builder.push_range(&block, 1..4);
    let tail = builder.finish();
    let spilled = Block::parse_spilled(tail.bytes().to_vec(), tail.blobs().into()).unwrap();
    for block in [&tail, &spilled] {
        assert_eq!(inline(block.value(0)), b"four");
        for (i, blob) in [(1, &blobs[1]), (2, &blobs[2])] {
            assert!(matches!(block.value(i), Value::Blob(found) if Arc::ptr_eq(found, blob)));
        }
    }
    assert!(Block::parse_spilled(tail.bytes().to_vec(), Box::default()).is_err());
    let packed = columns::pack(&tail, tail.bytes(), Columns { keys: 9, values: 9 }, Some(1)).bytes;
    assert_eq!(Block::parse_spilled(packed, tail.blobs().into()).unwrap().bytes(), tail.bytes());
}

#[test]
fn large_values_are_found_without_the_rows() {
    let blob = Arc::new(Blob::new(vec![1; 100]));
    let mut builder = BlockBuilder::new();
    builder.push(b"a", Value::Blob(&blob));
    builder.push(b"b", Value::Inline(b"four"));
    builder.push(b"c", Value::Blob(&blob));
    let block = builder.finish();
    let extent = BlockAddress {
        offset: 4096,
        stored_bytes: 60,
        raw_bytes: 100,
        checksum: 7,
        compression: Compression::Zstd,
        in_parts: false,
        is_tight: false,
        dictionary: 0,
    };
    let named = [0, 1].map(|i| BlobAddress {
        extent: BlockAddress { checksum: i, ..extent },
        length: 100,
        member: None,
    });
    let mut bytes = block.bytes().to_vec();
    let from = bytes.len() - 2 * BLOB_ADDRESS_BYTES;
    bytes.truncate(from);
    named.iter().for_each(|address| bytes.extend_from_slice(&address.encode()));
    assert_eq!(large_values(&bytes).unwrap(), named);
    let packed = columns::pack(&block, &bytes, Columns { keys: 1, values: 0 }, None).bytes;
    assert_eq!(large_values(&packed).unwrap(), named);
    assert!(large_values(&bytes[..HEADER_BYTES + BLOB_ADDRESS_BYTES]).is_err());
    assert_eq!(large_values(build(&BTreeMap::new()).bytes()), Ok(Vec::new()));
}

#[test]
fn a_large_entry_makes_an_oversize_block() {
    let entries = Entries::from([(vec![3; 64 << 10], vec![4; 16 << 20])]);
    assert_eq!(contents(&build(&entries)), entries);
}

#[test]
#[should_panic(expected = "out of order")]
fn pushing_a_key_twice_is_a_bug() {
    let mut builder = BlockBuilder::new();
    builder.push(b"a", Value::Inline(b""));
    builder.push(b"a", Value::Inline(b""));
}

/// `block` as if it had been read, its keys unpacked.
fn packed(block: &Block, columns: Columns, frame_bytes: usize) -> Option<PackedBlock> {
    let stored = columns::pack(block, block.bytes(), columns, Some(frame_bytes));
    if stored.cuts.is_empty() {
        return None;
    }
    let bytes = parts::compressed(&stored.bytes, &stored.cuts, Compression::Zstd);
    let (first, parts) = parts::read(&bytes, stored.bytes.len(), Compression::Zstd).unwrap();
    PackedBlock::parse(&first, parts).unwrap()
}

fn expect_packed(block: &Block, columns: Columns, frame_bytes: usize) -> Result<(), TestCaseError> {
    let Some(packed) = packed(block, columns, frame_bytes) else { return Ok(()) };
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for i in 0..block.len() {
        block.key_into(i, &mut key);
        prop_assert_eq!(packed.keys().search(&key), Ok(i));
        packed.value_into(i, &mut value).unwrap().unwrap();
        prop_assert_eq!(&value[..], inline(block.value(i)));
    }
    prop_assert_eq!(packed.keys().len(), block.len());
    let whole = packed.whole().unwrap().map_err(TestCaseError::fail)?;
    prop_assert_eq!(whole.bytes(), block.bytes());
    Ok(())
}

#[test]
fn a_packed_block_takes_what_it_takes_on_disk() {
    let digits = |i: u32| (0..180u32).map(|n| b'0' + (i.wrapping_mul(n * n + 77) >> 7) as u8 % 10).collect();
    let block = build(&(0..170u32).map(|i| (i.to_be_bytes().to_vec(), digits(i))).collect());
    let packed = packed(&block, Columns { keys: 4, values: 180 }, 8 << 10).unwrap();
    assert!(packed.memory() * 3 < block.memory() * 2, "{} of {}", packed.memory(), block.memory());
}

#[test]
fn a_block_with_large_values_has_no_frames() {
    let mut builder = BlockBuilder::new();
    builder.push(b"a", Value::Blob(&Arc::new(Blob::new(vec![1; 100]))));
    (0..90u8).for_each(|i| builder.push(&[b'b', i], Value::Inline(&[i; 100])));
    let block = builder.finish();
    let stored = columns::pack(&block, block.bytes(), Columns::default(), Some(1000));
    assert!(stored.cuts.is_empty() && stored.bytes[2] == columns::VERSION);
}
