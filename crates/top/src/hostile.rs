//! A recording, and a sample of one, as functions that take any bytes at all: the feature `hostile`, for `fuzz/`. The
//! tests here attack them as the decoders of the core are attacked (`crates/core/tests/hostile`), with a corpus
//! (`tests/hostile`) and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, neither what reads them nor what shows what they say; no
//! more memory is asked for than 64 times as much, and what a sample may take; and nothing harmful is shown.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use crate::moment::Moment;
use crate::recording::Recording;
use crate::sample::Sample;
use crate::screen::{draw, Around};
use crate::state::State;
use crate::views::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::io::Cursor;

/// A file, of which some samples are shown.
pub fn recording(bytes: &[u8]) {
    let Ok(mut recording) = Recording::open(Cursor::new(bytes)) else { return };
    let mut before = None;
    for number in 0..recording.len().min(4) {
        let Ok(sample) = recording.sample(number) else { continue };
        show(&sample, before.as_ref());
        before = Some(sample);
    }
}

/// A sample as it is in a file, once it is not compressed.
pub fn sample(bytes: &[u8]) {
    if let Ok(sample) = crate::recording::decoded(bytes) {
        show(&sample, Some(&sample));
    }
}

/// All views of it.
fn show(sample: &Sample, before: Option<&Sample>) {
    let moment = Moment::new(sample, before);
    let mut state = State::new(true);
    for view in View::ALL {
        state.view = view;
        let table = state.table(&moment);
        let text = crate::harmless::json(&table.json().to_string());
        assert!(!text.chars().any(|character| character.is_control()), "{text}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        draw(&mut buffer, &Around { moment, place: String::new(), has_colours: false }, &table, &state);
        assert!(buffer.content.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
    }
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, Attacked};
    use super::counting;
    use std::path::Path;

    /// What a sample may be, and what is made of it.
    const FIXED_BYTES: usize = 64 << 20;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    fn attack_reader(name: &str, decode: fn(&[u8])) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        attack(&corpus, &Attacked { name, decode, memory_for: &|input| 64 * input + FIXED_BYTES });
    }

    #[test]
    fn a_recording_can_be_anything() {
        attack_reader("recording", super::recording);
    }

    #[test]
    fn a_sample_can_be_anything() {
        attack_reader("sample", super::sample);
    }
}
