//! Any bytes come back; no bytes, however damaged, make the decoder panic.

use super::*;
use proptest::prelude::*;

fn text(words: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::new();
    for _ in 0..words {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        // The product of two: small numbers are frequent.
        let rank = ((state >> 24) * ((state >> 16) & 0xff)) >> 8;
        let word = format!(
            " {}{}\u{e4}r",
            ["ver", "stand", "Ge", "it's"][rank as usize % 4],
            "abcdefghijklmnopqrstuvwxyz".split_at((rank % 26) as usize).0
        );
        out.extend_from_slice(&word.as_bytes()[..word.len().min(15)]);
    }
    out
}

fn trained(number: u16) -> Dictionary {
    let mut training = Training::default();
    (0..4).for_each(|seed| training.add(&text(4000, seed)));
    Dictionary::trained(&training, number).unwrap()
}

fn encode(dictionary: &Dictionary, raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; Dictionary::bound(raw.len())];
    let bytes = dictionary.encode(raw, &mut out);
    out.truncate(bytes);
    out
}

#[test]
fn text_gets_smaller_and_comes_back() {
    let dictionary = trained(3);
    assert_eq!(dictionary.number(), 3);
    let raw = text(3000, 77);
    let coded = encode(&dictionary, &raw);
    assert!(coded.len() * 2 < raw.len(), "{} of {}", coded.len(), raw.len());
    assert_eq!(dictionary.decode(&coded, raw.len()).unwrap(), raw);
    for wrong in [0, raw.len() - 1, raw.len() + 1, raw.len() * 2] {
        assert!(dictionary.decode(&coded, wrong).is_err());
    }
}

#[test]
fn the_same_blocks_give_the_same_dictionary() {
    assert_eq!(trained(1).stored(), trained(2).stored());
}

#[test]
fn what_has_no_words_gets_no_dictionary() {
    let mut training = Training::default();
    (0..999u32).for_each(|i| training.add(&i.to_le_bytes()));
    assert!(Dictionary::trained(&training, 1).is_none());
    assert!(Dictionary::trained(&Training::default(), 1).is_none());
    // Words, but no byte that is free.
    let mut training = Training::default();
    (0..1000).for_each(|_| training.add(&(0..=255u8).chain(*b" word ").collect::<Vec<u8>>()));
    assert!(Dictionary::trained(&training, 1).is_none());
}

#[test]
fn the_memory_of_a_training_is_bounded() {
    let mut training = Training::default();
    for i in 0..600_000u32 {
        let word: Vec<u8> = (0..6).map(|place| b'a' + ((i >> (4 * place)) & 15) as u8).collect();
        training.add(&word);
    }
    assert!(training.memory() < 16 << 20, "{} bytes", training.memory());
}

/// A dictionary of so many words, with its words.
fn made(singles: usize, leads: usize, count: usize) -> (Dictionary, Vec<Vec<u8>>) {
    let digit = |digit: u8| digit - b'0' + b'a';
    let words: Vec<Vec<u8>> = (0..count).map(|i| format!("{i:05}").bytes().map(digit).collect()).collect();
    let mut stored = MAGIC.to_vec();
    stored.extend([VERSION, 0, singles as u8, leads as u8]);
    stored.extend((count as u32).to_le_bytes());
    stored.extend((1..b'a').chain(0x80..=0xff).take(singles + leads));
    stored.extend(words.iter().map(|word| word.len() as u8));
    stored.extend(words.concat());
    (Dictionary::parse(1, stored).unwrap(), words)
}

#[test]
fn each_word_of_a_dictionary_is_found() {
    // The last one has as many as there can be.
    for (singles, leads, count) in [(1, 0, 1), (60, 94, 24_000), (2, 200, 2 + BYTES * 200)] {
        let (dictionary, words) = made(singles, leads, count);
        for (i, word) in words.iter().enumerate() {
            let coded = encode(&dictionary, word);
            assert_eq!(coded.len(), if i < singles { 1 } else { 2 }, "word {i} of {count}");
            assert_eq!(dictionary.decode(&coded, word.len()).unwrap(), *word);
            let longer = [&word[..], b"x"].concat();
            assert_eq!(dictionary.decode(&encode(&dictionary, &longer), longer.len()).unwrap(), longer);
        }
    }
}

#[test]
fn a_code_without_a_word_or_without_its_second_byte_is_an_error() {
    // The second leading byte has ten words, the third none.
    let (dictionary, words) = made(2, 3, 2 + BYTES + 10);
    let codes = dictionary.stored[HEADER_BYTES..][..5].to_vec();
    let word = |code: &[u8]| dictionary.decode(code, words[0].len());
    assert_eq!(word(&[codes[3], 9]).unwrap(), words[2 + BYTES + 9]);
    for raw in 0..200 {
        for code in [&[codes[3], 10], &[codes[3], 0xff], &[codes[4], 0]] {
            assert!(dictionary.decode(code, raw).is_err());
            assert!(dictionary.decode(&[code, &[codes[0]; 40][..]].concat(), raw).is_err());
        }
        assert!(dictionary.decode(&[codes[2]], raw).is_err());
        assert!(dictionary.decode(&[codes[0], codes[3]], raw).is_err());
        assert!(dictionary.decode(&dictionary.stored[5..6], raw).is_err());
    }
}

/// The words of some bytes, byte by byte.
fn spans(bytes: &[u8]) -> Vec<Span> {
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || byte == b'\'' || byte >= 0x80;
    let mut spans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if end > at {
            let space = at > 0 && bytes[at - 1] == b' ';
            spans.push(Span { start: at - usize::from(space), end });
        }
        at = end + 1;
    }
    spans
}

/// Bytes that are partly words of the dictionary, partly anything.
fn mixture() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        (0usize..20, any::<u32>()).prop_map(|(words, seed)| text(words, seed)),
        proptest::collection::vec(any::<u8>(), 0..40),
        "[ a-zA-Z']{0,40}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_come_back(raw in mixture()) {
        thread_local!(static DICTIONARY: Dictionary = trained(1));
        DICTIONARY.with(|dictionary| {
            let coded = encode(dictionary, &raw);
            prop_assert_eq!(dictionary.decode(&coded, raw.len()).unwrap(), raw);
            Ok(())
        })?;
    }

    #[test]
    fn the_words_of_any_bytes_are_found(
        parts in proptest::collection::vec(mixture(), 1..12), letters in 0usize..1200, cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = parts.concat();
        let at = cut.index(bytes.len() + 1);
        bytes.splice(at..at, std::iter::repeat_n(b'x', letters));
        let mut words = Words::new(&bytes);
        let mut found = Vec::new();
        while let Some(edges) = words.next_batch() {
            prop_assert!(edges.len() <= Words::MOST);
            found.extend(edges.iter().map(|edges| Span::between(&bytes, edges)));
        }
        prop_assert_eq!(found, spans(&bytes));
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(coded in proptest::collection::vec(any::<u8>(), 0..300), raw in 0usize..2000) {
        thread_local!(static DICTIONARY: Dictionary = trained(1));
        DICTIONARY.with(|dictionary| {
            let _ = dictionary.decode(&coded, raw);
        });
    }

    #[test]
    fn a_damaged_dictionary_is_an_error_or_still_encodes_what_it_decodes(
        at in any::<prop::sample::Index>(), byte: u8, cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let raw = text(300, 5);
        let mut stored = trained(1).stored().to_vec();
        if let Some(cut) = cut {
            stored.truncate(cut.index(stored.len()));
        } else {
            let at = at.index(stored.len());
            stored[at] = byte;
        }
        if let Ok(dictionary) = Dictionary::parse(1, stored) {
            let coded = encode(&dictionary, &raw);
            prop_assert_eq!(dictionary.decode(&coded, raw.len()).unwrap(), raw);
        }
    }
}
