//! Every decoder of bytes that come from a disk, each as a function that takes any bytes at all: the feature `rooms`,
//! for `tests/hostile.rs` and for `fuzz/`.
//!
//! What must hold: whatever the bytes are, there is an error or a value, and what the value offers can be used. Nothing
//! panics, and no more memory is asked for than [`Target::memory_for`] says, whatever lengths the bytes announce.
//! Checksums in front of a decoder do not count here: who can write files can write checksums.
//!
//! [`samples`] are bytes as the engine writes them, for mutations to start from.

use crate::catalog::directory;
use crate::catalog::{Link, TableRecord};
use crate::checkpoint::direct::DirectBlock;
use crate::log::{hostile::unpack, CounterChange, LogRecord, Op, OpKind, RedoBuffer};
use crate::options::{Compression, Packing};
use crate::store::{hostile as store, in_parts, BlockAddress, ChildAddress, Dictionary, Training, TreeRoot};
use crate::tree::block::blob::{Blob, BlobAddress, Member};
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::hostile::{by_columns, in_frames, read_packed};
use crate::tree::block::{large_values, Block, Value};
use crate::tree::PatchBlock;
use crate::values::deflated::{inflate, Recipe};
use crate::values::{self, bundle::Content};
use crate::{TreeSpec, WriteOp};
use std::sync::{Arc, OnceLock};

/// A decoder.
pub struct Target {
    /// As directories of the corpus are called.
    pub name: &'static str,
    /// Takes any bytes.
    pub decode: fn(&[u8]),
    /// How many times the input it may hold in memory, beyond [`FIXED_BYTES`].
    pub times: usize,
}

impl Target {
    const fn new(name: &'static str, decode: fn(&[u8])) -> Target {
        Target { name, decode, times: 64 }
    }

    /// Bytes of memory that it may hold at a time for so many of input.
    pub fn memory_for(&self, input: usize) -> usize {
        self.times * input + FIXED_BYTES
    }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target::new("block", block),
    // LZ4 can announce, and keep, 255 times what it takes; the record and its operations are there once each.
    Target { times: 300, ..Target::new("log_record", log_record) },
    Target::new("superblock", superblock),
    Target::new("directory_row", directory_row),
    Target::new("catalog_record", catalog_record),
    Target::new("dictionary", dictionary),
    Target::new("coded_words", coded_words),
    Target::new("stored_block", stored_block),
    Target::new("frames", frames),
    Target::new("large_value", large_value),
    Target::new("free_map", free_map),
    Target::new("export", crate::exports::hostile::description),
    Target::new("deflated", deflated),
    Target::new("recipe", recipe),
    Target::new("bundle", bundle),
];

/// Runs one of [`TARGETS`]: for `fuzz/`, which watches memory by itself.
///
/// # Panics
/// If there is none of that name, and if the decoder has a defect.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no decoder is called {name}")).decode)(bytes);
}

/// What does not depend on the input: tables of a dictionary; a stored block of [`STORED_BYTES`] and its words.
const FIXED_BYTES: usize = 6 << 20;
/// What a stored block may announce here. In a file it is what its address says, which the page above vouches for.
const STORED_BYTES: u32 = 1 << 20;
/// What a deflated value may have in it here.
const INFLATED_BYTES: usize = 1 << 20;

fn nothing(_: BlobAddress) -> Arc<Blob> {
    Arc::new(Blob::new(Vec::new()))
}

/// A leaf or an inner page, as it is in memory or by columns.
fn block(bytes: &[u8]) {
    let large = large_values(bytes);
    let Ok(block) = Block::parse(bytes.to_vec(), &nothing) else { return };
    assert_eq!(large.map(|large| large.len()), Ok(block.blobs().len()));
    let mut key = Vec::new();
    for i in 0..block.len() {
        block.key_into(i, &mut key);
        assert_eq!(block.search(&key), Ok(i));
        key.push(0);
        assert!(block.lower_bound(&key) > i);
        if let Value::Inline(value) = block.value(i) {
            // Of an inner page it is a child's address.
            let _ = ChildAddress::decode(value);
        }
    }
    assert_eq!(block.lower_bound(b""), 0);
    patch(bytes, &block);
    let again = Block::parse_spilled(block.bytes().to_vec(), block.blobs().into());
    assert!(again.is_ok_and(|again| again.len() == block.len()));
}

/// The same as a patch of itself.
fn patch(bytes: &[u8], block: &Block) {
    let Ok(changes) = PatchBlock::parse(bytes.to_vec()) else { return };
    let mut left = 0;
    changes.each(|_, value| left += usize::from(value.is_some()));
    assert_eq!(changes.applied_to(block).len(), left);
}

/// A record of the log, compressed or not, and what its operations name.
fn log_record(bytes: &[u8]) {
    let mut buffer = Vec::new();
    let Ok(record) = unpack(bytes, &mut buffer).and_then(LogRecord::decode) else { return };
    if let LogRecord::Ops { ops, .. } | LogRecord::Commit { ops, .. } | LogRecord::Prepare { ops, .. } =
        record
    {
        for op in ops.iter() {
            assert!(op.tree >= ops.least_tree());
            let _ = (op.rows_added(), DirectBlock::of(&op));
        }
    }
    // Numbers have more than one encoding, so the bytes may differ.
    let encoded = record.encode();
    let mut buffer = Vec::new();
    let again = unpack(&encoded, &mut buffer).and_then(LogRecord::decode);
    assert!(again.is_ok_and(|again| again.txn() == record.txn()));
}

/// One copy of a superblock.
fn superblock(bytes: &[u8]) {
    store::superblock(bytes);
}

/// The value of a row of the directory; the first byte chooses of which kind.
fn directory_row(bytes: &[u8]) {
    let Some((kind, value)) = bytes.split_first() else { return };
    match kind % 7 {
        0 => drop(directory::decode_root(value)),
        1 => drop(directory::decode_map(value)),
        2 => drop(directory::decode_dictionary(value)),
        3 => drop(directory::decode_number(value)),
        4 => drop(directory::decode_digest(value)),
        5 => drop(directory::decode_orphan(value)),
        _ => {
            if let Ok(counted) = directory::decode_counted(value) {
                assert_eq!(directory::decode_counted(&directory::encode_counted(&counted)), Ok(counted));
            }
        }
    }
    let _ = (directory::space_of_counted_key(value), directory::space_of_orphan_key(value));
}

/// A row of the catalog.
fn catalog_record(bytes: &[u8]) {
    let _ = crate::catalog::name_of_key(bytes);
    if let Ok(record) = TableRecord::decode(bytes) {
        assert_eq!(TableRecord::decode(&record.encode()), Ok(record));
    }
}

const TEXT: &[u8] =
    b"the words of the dictionary are the words that are frequent, and others\xff\x00 are not";

/// A tree's dictionary: it encodes what it decodes, whatever words it has.
fn dictionary(bytes: &[u8]) {
    let Ok(dictionary) = Dictionary::parse(1, bytes.to_vec()) else { return };
    let mut coded = vec![0; Dictionary::bound(TEXT.len())];
    let end = dictionary.encode(TEXT, &mut coded);
    assert_eq!(dictionary.decode(&coded[..end], TEXT.len()).as_deref(), Ok(TEXT));
}

/// Words encoded by a dictionary.
fn coded_words(bytes: &[u8]) {
    let Some((length, coded)) = bytes.split_first_chunk::<2>() else { return };
    let Some(dictionary) = sample_dictionary() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    if let Ok(raw) = dictionary.decode(coded, length) {
        assert_eq!(raw.len(), length);
    }
}

/// A compressed block: how (1 byte), the length that its address announces (4 bytes), the bytes in the file.
fn stored_block(bytes: &[u8]) {
    let Some(([how, length @ ..], stored)) = bytes.split_first_chunk::<5>() else { return };
    let (compression, dictionary) = match how % 5 {
        0 => (Compression::None, None),
        1 => (Compression::Lz4, None),
        2 => (Compression::Zstd, None),
        3 => (Compression::Lz4, sample_dictionary()),
        _ => (Compression::Zstd, sample_dictionary()),
    };
    let raw_bytes = match compression {
        Compression::None => stored.len(),
        _ => (u32::from_le_bytes(*length) % STORED_BYTES) as usize,
    };
    if let Ok(raw) = store::decompress(stored, raw_bytes, compression, dictionary) {
        assert_eq!(raw.len(), raw_bytes);
    }
}

/// A leaf in frames as the file has it: how it is compressed (1 byte), the length that its address announces (4 bytes),
/// the bytes. Row by row there is what is in the whole.
fn frames(bytes: &[u8]) {
    let Some(([how, length @ ..], stored)) = bytes.split_first_chunk::<5>() else { return };
    let compression = if how % 2 == 0 { Compression::Lz4 } else { Compression::Zstd };
    let raw_bytes = (u32::from_le_bytes(*length) % STORED_BYTES) as usize;
    let whole = in_parts::read_all(stored, raw_bytes, compression);
    let whole = whole.and_then(|raw| Block::parse(raw, &nothing));
    let Ok((first, parts)) = in_parts::read(stored, raw_bytes, compression) else { return };
    read_packed(&first, parts, whole.ok().as_ref());
}

/// The row of a large value in its block, and what an operation in the log says of one.
fn large_value(bytes: &[u8]) {
    if let Ok(address) = BlobAddress::decode(bytes) {
        assert_eq!(address.encode()[..], *bytes);
    }
    for kind in [OpKind::Block, OpKind::InsertStored, OpKind::Insert] {
        let op = Op { kind, tree: 1, sequence: 1, key: b"", value: bytes };
        if let Some(named) = DirectBlock::of(&op) {
            assert_eq!(named.encode(), bytes);
        }
    }
}

/// What is free of a file.
fn free_map(bytes: &[u8]) {
    store::free_map(bytes);
}

/// A value that may be a deflate stream: what is taken for one is made again.
fn deflated(bytes: &[u8]) {
    let Some(inflated) = inflate(bytes, INFLATED_BYTES) else { return };
    assert!(inflated.bytes.len() <= INFLATED_BYTES);
    assert!(inflated.recipe.recreate(&inflated.bytes, bytes.len()).is_ok_and(|again| again == bytes));
    let mut encoded = Vec::new();
    inflated.recipe.encode(&mut encoded);
    assert_eq!(Recipe::decode(&encoded), Ok((inflated.recipe, encoded.len())));
}

/// Several values as one: all that it has, and one that it may not have.
fn bundle(bytes: &[u8]) {
    let Ok(members) = values::bundle::decode(bytes) else { return };
    for (number, member) in members.iter().enumerate() {
        let value = member.value();
        assert_eq!(value, member.content().value());
        if let Ok(value) = value {
            assert_eq!(values::bundle::value(bytes, number, value.len() as u64), Ok(value));
        }
    }
    assert!(values::bundle::value(bytes, members.len(), 1).is_err());
}

/// A length (4 bytes), the recipe of a value so long, and what it is made of.
fn recipe(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = u32::from_le_bytes(*length) as usize;
    let Ok((recipe, used)) = Recipe::decode(rest) else { return };
    if let Ok(value) = recipe.recreate(&rest[used..], length) {
        assert_eq!(value.len(), length);
    }
}

// ---- bytes as the engine writes them ----

fn text(rows: usize) -> Vec<u8> {
    let words = ["frequent", "words", "of", "the", "dictionary", "others", "are", "not"];
    (0..rows).flat_map(|i| format!("{} {} {i} ", words[i % 8], words[i / 3 % 8]).into_bytes()).collect()
}

fn sample_dictionary() -> Option<&'static Dictionary> {
    static TRAINED: OnceLock<Option<Dictionary>> = OnceLock::new();
    let train = || {
        let mut training = Training::default();
        training.add(&text(2000));
        Dictionary::trained(&training, 1)
    };
    TRAINED.get_or_init(train).as_ref()
}

fn sample_address() -> BlockAddress {
    BlockAddress {
        offset: 8192,
        stored_bytes: 1000,
        raw_bytes: 32 << 10,
        checksum: 0x0123_4567_89ab_cdef,
        compression: Compression::Zstd,
        in_parts: false,
        is_tight: false,
        dictionary: 0,
    }
}

/// A target's name, a name of the sample, and its bytes.
pub fn samples() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut samples = Vec::new();
    sample_blocks(&mut samples);
    sample_records(&mut samples);
    sample_rows(&mut samples);
    sample_stored(&mut samples);
    sample_deflated(&mut samples);
    samples
}

type Samples = Vec<(&'static str, &'static str, Vec<u8>)>;

fn sample_blocks(samples: &mut Samples) {
    let built = |rows: &mut dyn FnMut(&mut BlockBuilder)| {
        let mut builder = BlockBuilder::new();
        rows(&mut builder);
        builder.finish()
    };
    let fixed = built(&mut |builder| {
        (0..40u32).for_each(|i| builder.push(&i.to_be_bytes(), Value::Inline(&[i as u8; 12])));
    });
    let texts = built(&mut |builder| {
        (10..60).for_each(|i| {
            let value = text(i % 7);
            builder
                .push(format!("name of row {i}, {}", "x".repeat(i % 11)).as_bytes(), Value::Inline(&value));
        });
    });
    let blob = Arc::new(Blob::new(vec![1; 100]));
    let large = built(&mut |builder| {
        for i in 0..8u8 {
            let value = if i % 3 == 0 { Value::Blob(&blob) } else { Value::Inline(&[7, i]) };
            builder.push(&[b'k', i], value);
        }
    });
    let page = built(&mut |builder| {
        let address = sample_address().encode();
        (0..9u64).for_each(|i| builder.push(&(i * 1000).to_be_bytes(), Value::Inline(&address)));
        builder.push(&u64::MAX.to_be_bytes(), Value::Inline(&[]));
    });
    let empty = Block::empty();
    let mut image = large.bytes().to_vec();
    let address = BlobAddress { extent: sample_address(), length: 32 << 10, member: None }.encode();
    let rows = large.blobs().len() * address.len();
    let at = image.len() - rows;
    image[at..].chunks_exact_mut(address.len()).for_each(|row| row.copy_from_slice(&address));
    for (name, block) in [("fixed", &fixed), ("texts", &texts), ("page", &page), ("empty", &empty)] {
        samples.push(("block", name, block.bytes().to_vec()));
    }
    samples.push(("block", "large", image.clone()));
    samples.push(("block", "fixed_by_columns", by_columns(&fixed, fixed.bytes(), 4, 12)));
    samples.push(("block", "texts_by_columns", by_columns(&texts, texts.bytes(), 5, 0)));
    samples.push(("block", "large_by_columns", by_columns(&large, &image, 1, 1)));
    let framed =
        [("fixed_in_frames", 0, Compression::Lz4, &fixed), ("texts_in_frames", 1, Compression::Zstd, &texts)];
    for (name, how, compression, block) in framed {
        let (raw, cuts) = in_frames(block, block.bytes(), 150);
        let announced = (raw.len() as u32).to_le_bytes();
        let stored = in_parts::compressed(&raw, &cuts, compression);
        samples.push(("frames", name, [&[how][..], &announced, &stored].concat()));
        samples.push(("block", name, raw));
    }
}

fn sample_records(samples: &mut Samples) {
    let mut redo = RedoBuffer::new();
    let ops = [WriteOp::Insert(b"value"), WriteOp::Update(b"another value"), WriteOp::Delete];
    for (i, op) in (1u32..).zip(ops.iter().cycle().take(12)) {
        // Short keys and values are never refused.
        let _ = redo.push(u64::from(10 + i % 3), i, format!("key {i}").as_bytes(), *op);
    }
    let named =
        DirectBlock { rows: 40, space: 3, address: sample_address(), dictionary: Some(sample_address()) };
    let value = named.encode();
    redo.put(&Op { kind: OpKind::Block, tree: 9, sequence: 20, key: b"", value: &value });
    let one = DirectBlock { rows: 1, dictionary: None, ..named }.encode();
    redo.put(&Op { kind: OpKind::InsertStored, tree: 9, sequence: 21, key: b"k", value: &one });
    let mut large = RedoBuffer::new();
    for i in 0..4000u32 {
        let _ = large.push(7, i + 1, &i.to_be_bytes(), WriteOp::Insert(&[b'v'; 80]));
    }
    let ops = redo.ops();
    let records = [
        ("ops", LogRecord::Ops { txn: 77, ops }),
        ("commit", LogRecord::Commit { txn: 300, ops }),
        ("prepare", LogRecord::Prepare { txn: 1, xid: b"an xid", ops }),
        ("rollback", LogRecord::Rollback { txn: 5 }),
        ("rollback_to", LogRecord::RollbackTo { txn: 5, sequence: 9 }),
        ("counter", LogRecord::Counter { txn: 5, table: 3, value: 1000, change: CounterChange::Raise }),
        ("checkpoint", LogRecord::Checkpoint { number: 12 }),
        ("packed", LogRecord::Commit { txn: 8, ops: large.ops() }),
    ];
    for (name, record) in records {
        samples.push(("log_record", name, record.encode()));
    }
    samples.push(("large_value", "block", value));
    samples.push(("large_value", "value", one));
    samples.push((
        "large_value",
        "address",
        BlobAddress { extent: sample_address(), length: 32 << 10, member: None }.encode().to_vec(),
    ));
    let member = Some(Member { number: 7, of: 30 });
    samples.push((
        "large_value",
        "member",
        BlobAddress { extent: sample_address(), length: 9000, member }.encode().to_vec(),
    ));
}

fn sample_rows(samples: &mut Samples) {
    let root = TreeRoot {
        address: sample_address(),
        height: 2,
        entries: 100_000,
        leaves: 300,
        stored_bytes: 3 << 20,
        raw_bytes: 9 << 20,
    };
    let counted = directory::Counted { before: 4096, end: 8192, early: vec![5000, 6000] };
    let rows = [
        ("root", 0, directory::encode_root(&root)),
        ("map", 1, directory::encode_map(&sample_address())),
        ("dictionary", 2, directory::encode_dictionary(&(3, sample_address()))),
        ("number", 3, directory::encode_number(1 << 40)),
        ("digest", 4, directory::encode_digest(b"sixteen bytes...")),
        ("orphan", 5, directory::encode_orphan()),
        ("counted", 6, directory::encode_counted(&counted)),
    ];
    for (name, kind, value) in rows {
        samples.push(("directory_row", name, [&[kind][..], &value].concat()));
    }
    let packed = TreeSpec {
        packing: Packing { compression: Compression::Zstd, level: 7, similarity: false },
        ..TreeSpec::default()
    };
    let trees = vec![(20, TreeSpec::default()), (21, packed)];
    let record = TableRecord {
        space: 4,
        residence: crate::Residence::File,
        trees,
        links: Vec::new(),
        meta: b"what the server remembers".to_vec(),
        guarded: false,
    };
    let link = |name: &str| Link {
        name: name.to_string(),
        target: "db/parent".to_string(),
        body: b"columns and rules".to_vec(),
    };
    let linked = TableRecord { links: vec![link("db/first"), link("")], ..record.clone() };
    let guarded = TableRecord { guarded: true, ..record.clone() };
    samples.push(("catalog_record", "table", record.encode()));
    samples.push(("catalog_record", "linked", linked.encode()));
    samples.push(("catalog_record", "guarded", guarded.encode()));
    let residence = crate::Residence::Memory { limit_bytes: 1 << 20 };
    samples.push(("catalog_record", "in_memory", TableRecord { residence, ..record.clone() }.encode()));
    samples.push(("catalog_record", "name", crate::catalog::name_key("db/table")));
    samples.push(("superblock", "newest", store::sample_superblock(root, sample_address())));
    samples.push(("free_map", "ranges", store::sample_free_map()));
    samples.push(("free_map", "bundles", store::sample_map_of_bundles(sample_address())));
    samples.push((
        "export",
        "description",
        crate::exports::hostile::sample_description(root, sample_address()),
    ));
}

fn sample_stored(samples: &mut Samples) {
    let raw = text(120);
    let announced = (raw.len() as u32).to_le_bytes();
    let how = [
        ("plain", 0, Compression::None, None),
        ("lz4", 1, Compression::Lz4, None),
        ("zstd", 2, Compression::Zstd, None),
        ("lz4_words", 3, Compression::Lz4, sample_dictionary()),
        ("zstd_words", 4, Compression::Zstd, sample_dictionary()),
    ];
    for (name, number, compression, dictionary) in how {
        let stored = store::compress(&raw, compression, dictionary);
        samples.push(("stored_block", name, [&[number][..], &announced, &stored].concat()));
    }
    if let Some(dictionary) = sample_dictionary() {
        samples.push(("dictionary", "words", dictionary.stored().to_vec()));
        let mut coded = vec![0; Dictionary::bound(raw.len())];
        let end = dictionary.encode(&raw, &mut coded);
        samples.push(("coded_words", "text", [&announced[..2], &coded[..end]].concat()));
    }
}

/// Streams are made by recipes, from what they have in them.
fn sample_deflated(samples: &mut Samples) {
    const GZIP: &[u8] = b"\x12\x06\x15\0\x1f\x8b\x08\x0c\0\0\0\0\0\x03\x04\0ab\0\0name\0";
    let recipes: [(&str, &[u8]); 6] = [
        ("raw", b"\x10\x06"),
        ("stored", b"\x10\x00"),
        ("zlib", b"\x11\x19"),
        ("gzip", GZIP),
        ("counted", b"\x13\x01"),
        ("column", b"\x14\x06"),
    ];
    let content = text(60);
    for (name, encoded) in recipes {
        let recipe = Recipe::decode(encoded).map(|(recipe, _)| recipe);
        let lengths = 0..content.len() * 2;
        let value = recipe
            .ok()
            .and_then(|recipe| lengths.into_iter().find_map(|length| recipe.recreate(&content, length).ok()));
        let Some(value) = value else { continue };
        let length = (value.len() as u32).to_le_bytes();
        samples.push(("recipe", name, [&length[..], encoded, &content].concat()));
        samples.push(("deflated", name, value.clone()));
        if let (Some(inflated), Some(plain)) = (Content::inflated(&value), Content::plain(&content)) {
            let members = [(b"key".to_vec(), inflated), (vec![0; 8], plain)];
            samples.push(("bundle", name, values::bundle::encode(&members)));
        }
    }
}
