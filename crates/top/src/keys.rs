//! Keys, as terminals send them. The libraries for this go round for ever when a terminal is gone, which is when nobody
//! is there to end them.

use std::io::{Error, ErrorKind, Read, Result};
use std::time::Duration;
use teak_console::signals::Input;

/// What follows an Escape of a sequence follows it at once.
const OF_SEQUENCE: Duration = Duration::from_millis(50);
const ESCAPE: u8 = 0x1b;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// What is written with it.
    Char(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// Standard input, and what has come of a key.
pub struct Keys {
    input: Input,
    bytes: Vec<u8>,
}

impl Keys {
    /// Of a terminal that gives each byte as it comes.
    pub fn open() -> Result<Keys> {
        Ok(Keys { input: Input::open()?, bytes: Vec::new() })
    }

    /// The next one, if it comes in this time. An error: the terminal is gone, or a signal came.
    pub fn next(&mut self, at_most: Duration) -> Result<Option<Key>> {
        let mut wait = at_most;
        loop {
            if let Some(key) = take(&mut self.bytes, false) {
                return Ok(Some(key));
            }
            if !self.input.wait(if self.bytes.is_empty() { wait } else { OF_SEQUENCE })? {
                return Ok(take(&mut self.bytes, true));
            }
            let mut bytes = [0; 64];
            match self.input.read(&mut bytes)? {
                0 => return Err(Error::new(ErrorKind::UnexpectedEof, "the terminal is gone")),
                count => self.bytes.extend_from_slice(&bytes[..count]),
            }
            // What is no key is not waited for again.
            wait = Duration::ZERO;
        }
    }
}

/// The first key of what has come, which goes with it; if that is all, its beginning is one. What is no key goes, too.
fn take(bytes: &mut Vec<u8>, is_all: bool) -> Option<Key> {
    while let Some(first) = bytes.first().copied() {
        let (length, key) = match first {
            b'\r' | b'\n' => (1, Some(Key::Enter)),
            b'\t' => (1, Some(Key::Tab)),
            3 => (1, Some(Key::Interrupt)),
            8 | 0x7f => (1, Some(Key::Backspace)),
            ESCAPE => match sequence(bytes) {
                Some(found) => found,
                None if is_all => (bytes.len(), (bytes.len() == 1).then_some(Key::Escape)),
                None => return None,
            },
            _ if first < b' ' => (1, None),
            _ => match character(bytes) {
                Some(found) => found,
                None if is_all => (bytes.len(), None),
                None => return None,
            },
        };
        bytes.drain(..length);
        if key.is_some() {
            return key;
        }
    }
    None
}

/// How long the sequence is that these begin with, and its key; None if there is more of it to come.
fn sequence(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    if !matches!(bytes.get(1)?, b'[' | b'O') {
        return Some((1, Some(Key::Escape)));
    }
    let end = 2 + bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let key = match (&bytes[2..end], bytes[end]) {
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'C') => Key::Right,
        (_, b'D') => Key::Left,
        (_, b'H') | (b"1" | b"7", b'~') => Key::Home,
        (_, b'F') | (b"4" | b"8", b'~') => Key::End,
        (_, b'Z') => Key::BackTab,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        _ => return Some((end + 1, None)),
    };
    Some((end + 1, Some(key)))
}

/// The same of a character in UTF-8.
fn character(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((1, None)),
    };
    let text = std::str::from_utf8(bytes.get(..length)?).ok();
    let found = text.and_then(|text| text.chars().next()).filter(|character| !character.is_control());
    Some((if text.is_some() { length } else { 1 }, found.map(Key::Char)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &[u8]) -> Vec<Key> {
        let mut bytes = text.to_vec();
        std::iter::from_fn(|| take(&mut bytes, true)).collect()
    }

    #[test]
    fn keys_are_what_terminals_send() {
        assert_eq!(
            keys(b"q\r\x7f\t\x03"),
            [Key::Char('q'), Key::Enter, Key::Backspace, Key::Tab, Key::Interrupt]
        );
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"), [Key::Up, Key::Down, Key::Right, Key::Left]);
        assert_eq!(
            keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z"),
            [Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::BackTab]
        );
        assert_eq!(keys("ü木".as_bytes()), [Key::Char('ü'), Key::Char('木')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1bq"), [Key::Escape, Key::Char('q')]);
        assert_eq!(
            keys(b"\x1b[15~x\x1b[200~\xff\xc3(\x00y"),
            [Key::Char('x'), Key::Char('('), Key::Char('y')]
        );
        assert_eq!(keys(b"\x1b[1;"), []);
    }

    #[test]
    fn what_has_not_come_is_waited_for() {
        for text in [&b"\x1b"[..], b"\x1b[", b"\x1b[5", b"\xe6\x9c"] {
            let mut bytes = text.to_vec();
            assert_eq!(take(&mut bytes, false), None);
            assert_eq!(bytes, text);
        }
    }

    #[test]
    fn whatever_comes_comes_to_an_end() {
        let mut state: u32 = 1;
        for _ in 0..10_000 {
            let mut bytes: Vec<u8> = (0..8)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    [0x1b, b'[', b'O', b'~', 0xc3, 0xe6, b'5', (state >> 16) as u8]
                        [(state >> 24) as usize % 8]
                })
                .collect();
            while take(&mut bytes, true).is_some() {}
            assert!(bytes.is_empty());
        }
    }
}
