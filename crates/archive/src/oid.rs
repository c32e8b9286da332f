//! Names: of records by the time they were made, of data by content.

use crate::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

/// The name of a record: a UUID of version 7, so later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub [u8; 16]);

impl Oid {
    /// When it was made, in microseconds since 1970; to the millisecond.
    pub fn created(self) -> i64 {
        let mut millis = [0; 8];
        millis[2..].copy_from_slice(&self.0[..6]);
        i64::from_be_bytes(millis) * 1000
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Oid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Oid, Error> {
        let bad = || Error::Name(text.to_string());
        let parts: Vec<&str> = text.split('-').collect();
        if parts.iter().map(|part| part.len()).ne([8, 4, 4, 4, 12]) {
            return Err(bad());
        }
        Ok(Oid(from_hex(&parts.concat()).ok_or_else(bad)?))
    }
}

/// The name of data or of a chunk: BLAKE3 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// Without the `b3:`, as `b3sum` writes it.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b3:{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Digest, Error> {
        let digest = text.strip_prefix("b3:").and_then(from_hex);
        digest.map(Digest).ok_or_else(|| Error::Name(text.to_string()))
    }
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// What can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A record.
    Record(Oid),
    /// Data, whichever records it has.
    Data(Digest),
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Name, Error> {
        match text.starts_with("b3:") {
            true => text.parse().map(Name::Data),
            false => text.parse().map(Name::Record),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Record(oid) => oid.fmt(f),
            Name::Data(digest) => digest.fmt(f),
        }
    }
}

/// Makes OIDs: each is greater than those before it, also when the clock goes back.
pub(crate) struct OidMaker(Mutex<State>);

struct State {
    millis: i64,
    /// Of those made in one millisecond.
    counter: u16,
    /// Vigna's SplitMix64; names are not secrets.
    random: u64,
}

const COUNTER_END: u16 = 1 << 12;

impl OidMaker {
    pub(crate) fn new(seed: u64) -> OidMaker {
        OidMaker(Mutex::new(State { millis: 0, counter: 0, random: seed }))
    }

    /// A new one; `now` is in microseconds.
    pub(crate) fn make(&self, now: i64) -> Oid {
        let mut state = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let millis = now / 1000;
        if millis > state.millis {
            (state.millis, state.counter) = (millis, 0);
        } else {
            state.counter += 1;
            if state.counter == COUNTER_END {
                state.millis += 1;
                state.counter = 0;
            }
        }
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = state.random;
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&state.millis.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(0x7000 | state.counter).to_be_bytes());
        bytes[8..].copy_from_slice(&(random & (u64::MAX >> 2) | 1 << 63).to_be_bytes());
        Oid(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_ascend_whatever_the_clock_does_and_come_back_from_their_text() {
        let maker = OidMaker::new(7);
        let mut last = Oid([0; 16]);
        for step in 0..20_000i64 {
            let oid = maker.make(1_700_000_000_000_000 + step % 3 * 1000 - step / 10);
            assert!(oid > last);
            assert_eq!(oid.to_string().parse::<Oid>().unwrap(), oid);
            assert_eq!(&oid.to_string()[14..15], "7");
            last = oid;
        }
        for wrong in [
            "",
            "x",
            "b3:",
            "b3:zz",
            "01234567-89ab-cdef-0123-456789abcde",
            "é1234567-89ab-cdef-0123-456789abcd",
        ] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
        let digest = Digest::of(b"");
        assert_eq!(digest.to_string().parse::<Name>().unwrap(), Name::Data(digest));
    }
}
