use super::*;
use crate::values::texts::{noise, text};
use crate::values::zlib::crc32;
use proptest::prelude::*;

const MOST: usize = 1 << 20;

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/deflated").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A value with `frame` that has `content` in it.
fn written(kind: Kind, level: u8, memory: Memory, content: &[u8]) -> Vec<u8> {
    let kept: &[u8] = if kind == Kind::Gzip { b"\x1f\x8b\x08\0\0\0\0\0\0\x03" } else { b"" };
    let (before, behind) = (Box::default(), Box::default());
    let recipe = Recipe { frame: Frame { kind, kept: kept.into() }, level, memory, before, behind };
    let mut value = recipe.frame.head(level, content.len());
    let mut stream = Vec::with_capacity(content.len() * 2 + 200);
    let made = Deflater::with(level, memory, |deflater| deflater.step(content, &mut stream, usize::MAX));
    assert!(made.expect("a stream").ended);
    value.extend_from_slice(&stream);
    value.extend_from_slice(&recipe.frame.tail(content));
    value
}

/// The value's content and recipe, after both were proved.
fn proved(value: &[u8]) -> Option<Inflated> {
    let inflated = inflate(value, MOST)?;
    assert!(inflated.bytes.len() <= MOST);
    assert_eq!(inflated.recipe.recreate(&inflated.bytes, value.len()).as_deref(), Ok(value));
    let mut stored = b"before".to_vec();
    inflated.recipe.encode(&mut stored);
    let used = stored.len() - 6;
    stored.extend_from_slice(b"behind");
    assert_eq!(Recipe::decode(&stored[6..]), Ok((inflated.recipe.clone(), used)));
    Some(inflated)
}

/// As rows of tables have them: what is around the stream is kept, and what is in it is found.
#[test]
fn streams_inside_of_a_value_whose_length_stands_in_front_are_inflated() {
    let content = text(17, 30_000);
    for kind in [Kind::Raw, Kind::Zlib, Kind::Gzip, Kind::Counted, Kind::Column] {
        let stream = written(kind, 6, Memory::Usual, &content);
        let length = (stream.len() as u32).to_le_bytes();
        for (before, width, behind) in
            [(&b"\x01\x02\0\xfe"[..], 4, &b""[..]), (b"", 3, b"behind"), (&[7; 250], 2, &[9; 255])]
        {
            let value = [before, &length[..width], &stream, behind].concat();
            let inflated = proved(&value).unwrap_or_else(|| panic!("{kind:?}, {width}"));
            assert!(inflated.bytes == content);
            assert_eq!(content_of(&value, MOST).as_deref(), Some(&content[..]));
            // The length is not what is there.
            let wrong = [before, &(stream.len() as u32 - 1).to_le_bytes()[..width], &stream, behind].concat();
            assert!(inflate(&wrong, MOST).is_none() && content_of(&wrong, MOST).is_none());
        }
        let far = [&[7; 260][..], &length, &stream].concat();
        assert!(inflate(&far, MOST).is_none());
    }
}

/// Streams of Python 3.11, PHP 8.2, Perl 5.36 and MariaDB 10.11 (all with zlib 1.2.13), and of GNU gzip 1.12, which has
/// a deflate of its own. Levels that make the same of this text cannot be told apart: the most frequent one counts.
#[test]
fn streams_of_others_are_inflated_with_the_level_that_made_them() {
    use Kind::{Column, ColumnZlib, Counted, Gzip, Raw, Zlib};
    let short = [
        ("python_zlib_1", Zlib, 1),
        ("python_zlib_2", Zlib, 2),
        ("python_zlib_3", Zlib, 3),
        ("python_zlib_4", Zlib, 4),
        ("python_zlib_5", Zlib, 5),
        ("python_zlib_6", Zlib, 6),
        ("python_zlib_7", Zlib, 7),
        ("python_zlib_8", Zlib, 9),
        ("python_zlib_9", Zlib, 9),
        ("python_raw_1", Raw, 1),
        ("python_raw_6", Raw, 6),
        ("python_raw_9", Raw, 9),
        ("python_gzip_1", Gzip, 1),
        ("python_gzip_6", Gzip, 6),
        ("python_gzip_9", Gzip, 9),
        ("gzip", Gzip, 6),
        ("gzip_best", Gzip, 9),
        ("perl_gzip", Gzip, 6),
        ("php_gzdeflate", Raw, 6),
        ("php_gzcompress", Zlib, 6),
        ("php_gzencode", Gzip, 6),
        ("mariadb_compress", Counted, 6),
        ("mariadb_column", Column, 6),
        ("mariadb_column_zlib", ColumnZlib, 6),
    ];
    for (name, kind, level) in short {
        let found = proved(&fixture(name)).unwrap_or_else(|| panic!("{name} is refused"));
        assert!(found.bytes == text(1, 12_000), "{name}");
        assert_eq!((found.recipe.frame.kind, found.recipe.level), (kind, level), "{name}");
        assert_eq!(found.recipe.memory, Memory::Usual, "{name}");
    }
    for (name, memory) in [("python_raw_6_memory_8", Memory::Usual), ("python_raw_6_memory_9", Memory::Most)]
    {
        let found = proved(&fixture(name)).expect(name);
        assert!(found.bytes == text(2, 90_000), "{name}");
        assert_eq!((found.recipe.level, found.recipe.memory), (6, memory), "{name}");
    }
}

/// Length and CRC-32 of raw streams of three contents, by level and memory, as zlib 1.2.13 makes them (`write.py`
/// beside the fixtures): what a recipe of generation 1 means, for ever.
const OUTPUTS: [[[(usize, u32); 3]; 2]; 9] = [
    // Level 1.
    [
        [(99796, 0x01b7f653), (100035, 0x42ce13b4), (71, 0xdc7999f7)],
        [(99909, 0xc8a73e18), (100020, 0xf8648ffa), (71, 0xdc7999f7)],
    ],
    // Level 2.
    [
        [(92907, 0x12a8a9bb), (100035, 0x42ce13b4), (71, 0xdc7999f7)],
        [(92910, 0x09244fe0), (100020, 0xf8648ffa), (71, 0xdc7999f7)],
    ],
    // Level 3.
    [
        [(82575, 0xa7a20c3b), (100035, 0x42ce13b4), (71, 0xdc7999f7)],
        [(82686, 0x48f6d906), (100020, 0xf8648ffa), (71, 0xdc7999f7)],
    ],
    // Level 4.
    [
        [(82756, 0x5732bd52), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(82804, 0x1d8b3e2b), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
    // Level 5.
    [
        [(79379, 0xaea08392), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(79437, 0x3abb6514), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
    // Level 6.
    [
        [(75200, 0xcf1c168f), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(75285, 0xdfeacc2e), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
    // Level 7.
    [
        [(73509, 0x373a911f), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(73631, 0x9e58515f), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
    // Level 8.
    [
        [(70282, 0xa6eacc6a), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(70330, 0x979a485d), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
    // Level 9.
    [
        [(70273, 0xbfc5261b), (100035, 0x5618c7c8), (72, 0x1ddbc54a)],
        [(70321, 0xc0945bd3), (100020, 0xe5047d7c), (72, 0x1ddbc54a)],
    ],
];

#[test]
fn what_a_recipe_makes_never_changes() {
    let contents = [text(3, 300_000), noise(4, 100_000), text(5, 100)];
    for (level, outputs) in (1..).zip(OUTPUTS) {
        for (memory, outputs) in [Memory::Usual, Memory::Most].into_iter().zip(outputs) {
            for (content, output) in contents.iter().zip(outputs) {
                let stream = written(Kind::Raw, level, memory, content);
                assert_eq!((stream.len(), crc32(&stream)), output, "level {level}, {memory:?}");
            }
        }
    }
    let stored: Vec<_> =
        contents.iter().map(|content| written(Kind::Raw, 0, Memory::Usual, content)).collect();
    let stored: Vec<_> = stored.iter().map(|stream| (stream.len(), crc32(stream))).collect();
    assert_eq!(stored, [(300_025, 1983454802), (100_010, 1205022752), (105, 3825171809)]);
}

#[test]
fn each_level_and_memory_is_found() {
    for content in [text(6, 120_000), text(7, 70), noise(8, 50_000), Vec::new()] {
        for (level, memory) in HABITS.into_iter().chain([(0, Memory::Usual)]) {
            for kind in (0..6).filter_map(Kind::of_number) {
                if matches!(kind, Kind::Column | Kind::ColumnZlib) && content.is_empty() {
                    continue;
                }
                let value = written(kind, level, memory, &content);
                let found =
                    proved(&value).unwrap_or_else(|| panic!("{kind:?} {level} {memory:?} {}", content.len()));
                assert!(found.bytes == content);
                assert_eq!(found.recipe.frame.kind, kind);
            }
        }
    }
}

#[test]
fn gzip_headers_are_kept_with_all_their_fields() {
    let content = text(13, 5_000);
    let body = written(Kind::Raw, 6, Memory::Usual, &content);
    let tail = [crc32(&content).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
    let (extra, name, comment, sum) = (b"\x05\0ab\x01\0c", b"name.txt\0", b"a comment\0", b"\x12\x34");
    for flags in 0..32u8 {
        let mut value = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 2, 255];
        let fields: [(u8, &[u8]); 4] = [(4, extra), (8, name), (16, comment), (2, sum)];
        fields.iter().filter(|field| flags & field.0 != 0).for_each(|field| value.extend_from_slice(field.1));
        let head = value.len();
        value.extend_from_slice(&body);
        value.extend_from_slice(&tail);
        let found = proved(&value).unwrap_or_else(|| panic!("flags {flags}"));
        assert_eq!(found.recipe.frame.kept[..], value[..head]);
        // A header that says it is longer than the value.
        assert!(flags == 0 || inflate(&value[..head - 1], MOST).is_none());
    }
    let reserved = [&[0x1f, 0x8b, 8, 32, 1, 2, 3, 4, 2, 255][..], &body, &tail].concat();
    assert!(inflate(&reserved, MOST).is_none());
    let long = [&[0x1f, 0x8b, 8, 8, 1, 2, 3, 4, 2, 255][..], &[b'n'; 1100], b"\0", &body, &tail].concat();
    assert!(inflate(&long, MOST).is_none(), "a name of 1100 bytes is not kept");
}

#[test]
fn what_is_no_whole_stream_is_refused() {
    let content = text(14, 9_000);
    for kind in (0..6).filter_map(Kind::of_number) {
        let value = written(kind, 6, Memory::Usual, &content);
        assert!(proved(&value).is_some());
        for cut in (0..value.len()).step_by(7).chain(value.len() - 12..value.len()) {
            assert!(inflate(&value[..cut], MOST).is_none(), "{kind:?} cut to {cut}");
        }
        for more in [&b"."[..], b"\0", b"more", &value] {
            assert!(inflate(&[&value[..], more].concat(), MOST).is_none(), "{kind:?} with something behind");
        }
        for bit in (0..value.len() * 8).step_by(11) {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Without a checksum it may be what zlib makes of another content; a gzip header is kept as it is.
            let found = proved(&flipped);
            let has_no_sum = matches!(kind, Kind::Raw | Kind::Column);
            assert!(found.is_none_or(|found| has_no_sum || kind == Kind::Gzip && found.bytes == content));
        }
        assert!(inflate(&value, content.len() - 1).is_none(), "longer than it may be");
        assert_eq!(
            inflate(&value, content.len()).map(|found| found.bytes == content),
            Some(true),
            "{kind:?}"
        );
    }
    // No dictionary, and no smaller window.
    let value = written(Kind::Zlib, 6, Memory::Usual, &content);
    assert!(inflate(&[&[0x78, 0xbb][..], &value[2..]].concat(), MOST).is_none());
    assert!(inflate(&[&[0x68, 0x81][..], &value[2..]].concat(), MOST).is_none());
    assert!(inflate(&content, MOST).is_none());
}

/// A checksum's last byte is a blank in one of 256 values.
#[test]
fn compress_ends_with_a_dot_if_it_would_end_with_a_blank() {
    let made = (0..2000).map(|seed| (seed, written(Kind::Counted, 6, Memory::Usual, &text(seed, 50))));
    let dotted: Vec<_> = made.filter(|(_, value)| value.ends_with(b" .")).collect();
    assert!(!dotted.is_empty());
    for (seed, value) in dotted {
        assert!(proved(&value).expect("a value with a dot").bytes == text(seed, 50));
        assert!(inflate(&value[..value.len() - 1], MOST).is_none());
    }
}

/// The first byte of a length, or of a stream, is that of a compressed column, too.
#[test]
fn what_begins_like_another_kind_is_found() {
    for length in (0x0a00..0x0b00).chain(1..0x100) {
        let content = text(16, length);
        let value = written(Kind::Counted, 1, Memory::Usual, &content);
        assert_eq!(proved(&value).map(|found| found.recipe.frame.kind), Some(Kind::Counted), "{length}");
    }
    let raw = (0..300).map(|seed| written(Kind::Raw, 6, Memory::Usual, &text(seed, 30)));
    let raw: Vec<_> = raw.filter(|value| matches!(value[0], 0x81..=0x8c)).collect();
    assert!(raw.iter().all(|value| proved(value).is_some_and(|found| found.recipe.frame.kind == Kind::Raw)));
}

#[test]
fn recipes_of_nobody_are_errors() {
    let sound = [0x10, 0x06];
    assert!(Recipe::decode(&sound).is_ok());
    for wrong in [
        &[][..],
        &[0x10],
        &[0x20, 6],
        &[0, 6],
        &[0x16, 6],
        &[0x10, 10],
        &[0x10, 0x26],
        &[0x12, 6],
        &[0x12, 6, 1],
    ] {
        assert!(Recipe::decode(wrong).is_err(), "{wrong:?}");
    }
    let (recipe, _) = Recipe::decode(&sound).expect("a recipe");
    for length in [0, 1, 60, 5_000, usize::MAX] {
        assert!(recipe.recreate(&text(15, 1000), length).is_err(), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_a_value_that_is_made_again_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        proved(&bytes);
        for head in [&[0x78, 0x9c][..], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x8a\x01\0", b"\x10\0\0\0\x78\x9c"] {
            proved(&[head, &bytes].concat());
        }
    }

    #[test]
    fn any_content_is_found_in_its_stream(
        content in prop::collection::vec(prop::sample::select(&b"aaaabcde \0\xff"[..]), 1..3000),
        habit in prop::sample::select(&HABITS[..]),
        kind in 0..6u8,
    ) {
        let kind = Kind::of_number(kind).expect("a kind");
        let value = written(kind, habit.0, habit.1, &content);
        prop_assert_eq!(proved(&value).map(|found| found.bytes), Some(content));
    }

    #[test]
    fn any_bytes_are_a_recipe_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40), length in 0..500usize) {
        if let Ok((recipe, used)) = Recipe::decode(&bytes) {
            let mut again = Vec::new();
            recipe.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..used]);
            let made = recipe.recreate(&bytes, length);
            prop_assert!(made.is_ok_and(|value| value.len() == length) || recipe.recreate(&bytes, length).is_err());
        }
    }
}
