//! Bounds of scans in the language of the server ("keys that begin with these parts"), turned into plain comparisons.
//!
//! Keys are self-delimiting part by part, so all keys that begin with a tuple of parts lie together: from the encoded
//! tuple up to, but without, its `successor`.

use std::ops::Bound;

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `next`
    Up,
    /// `prev`
    Down,
}

impl Direction {
    /// The other way.
    pub(crate) fn opposite(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

/// Where a scan starts; prefix semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// First key of all.
    First,
    /// Last key of all.
    Last,
    /// First key that begins with the given bytes or is greater.
    AtOrAfter,
    /// First key greater than all that begin with the bytes.
    After,
    /// Last key that begins with the bytes or is smaller.
    AtOrBefore,
    /// Last key smaller than the bytes.
    Before,
}

impl Start {
    /// The way a scan from there goes on.
    pub fn direction(self) -> Direction {
        match self {
            Start::First | Start::AtOrAfter | Start::After => Direction::Up,
            Start::Last | Start::AtOrBefore | Start::Before => Direction::Down,
        }
    }
}

/// Where a scan ends: whether keys that begin with the bytes are inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End<'a> {
    /// Nowhere.
    Open,
    /// They are.
    Include(&'a [u8]),
    /// They are not.
    Exclude(&'a [u8]),
}

/// Makes `out` the smallest key greater than all keys that begin with `prefix`; `false` if there is none (no bytes, or
/// all 0xFF).
pub(crate) fn successor(prefix: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let Some(last) = prefix.iter().rposition(|b| *b != 0xFF) else { return false };
    out.extend_from_slice(&prefix[..=last]);
    out[last] += 1;
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Open,
    Included,
    Excluded,
    /// Nothing is inside.
    Nothing,
}

/// One end of a range of keys, in a buffer that is reused.
#[derive(Debug, Default)]
pub struct Edge {
    kind: Kind,
    key: Vec<u8>,
}

impl Edge {
    /// Where keys begin for a scan up from `start`, or end for a scan down.
    pub(crate) fn set_start(&mut self, start: Start, key: &[u8]) {
        self.kind = match start {
            Start::First | Start::Last => Kind::Open,
            Start::AtOrAfter => self.copy(key, Kind::Included),
            Start::Before => self.copy(key, Kind::Excluded),
            Start::After if successor(key, &mut self.key) => Kind::Included,
            Start::After => Kind::Nothing,
            Start::AtOrBefore if successor(key, &mut self.key) => Kind::Excluded,
            Start::AtOrBefore => Kind::Open,
        };
    }

    /// Where keys end for a scan in `direction`.
    pub fn set_end(&mut self, end: End<'_>, direction: Direction) {
        self.kind = match (end, direction) {
            (End::Open, _) => Kind::Open,
            (End::Exclude(key), Direction::Up) => self.copy(key, Kind::Excluded),
            (End::Include(key), Direction::Down) => self.copy(key, Kind::Included),
            (End::Include(key), Direction::Up) if successor(key, &mut self.key) => Kind::Excluded,
            (End::Include(_), Direction::Up) => Kind::Open,
            (End::Exclude(key), Direction::Down) if successor(key, &mut self.key) => Kind::Included,
            (End::Exclude(_), Direction::Down) => Kind::Nothing,
        };
    }

    /// The keys beyond `key`, which is not among them.
    pub(crate) fn set_beyond(&mut self, key: &[u8]) {
        self.kind = self.copy(key, Kind::Excluded);
    }

    /// From `key` on, which is among them.
    pub(crate) fn set_at(&mut self, key: &[u8]) {
        self.kind = self.copy(key, Kind::Included);
    }

    /// No end.
    pub(crate) fn set_open(&mut self) {
        self.kind = Kind::Open;
    }

    fn copy(&mut self, key: &[u8], kind: Kind) -> Kind {
        self.key.clear();
        self.key.extend_from_slice(key);
        kind
    }

    /// Whether no key can be inside.
    pub(crate) fn is_nothing(&self) -> bool {
        self.kind == Kind::Nothing
    }

    /// As a bound; `None` if nothing is inside.
    pub fn bound(&self) -> Option<Bound<&[u8]>> {
        match self.kind {
            Kind::Open => Some(Bound::Unbounded),
            Kind::Included => Some(Bound::Included(&self.key)),
            Kind::Excluded => Some(Bound::Excluded(&self.key)),
            Kind::Nothing => None,
        }
    }

    /// Whether `key` is on the inner side of this edge for a scan that moves towards it in `direction`.
    pub(crate) fn admits(&self, key: &[u8], direction: Direction) -> bool {
        match (self.kind, direction) {
            (Kind::Open, _) => true,
            (Kind::Nothing, _) => false,
            (Kind::Excluded, Direction::Up) => key < self.key.as_slice(),
            (Kind::Included, Direction::Up) => key <= self.key.as_slice(),
            (Kind::Excluded, Direction::Down) => key > self.key.as_slice(),
            (Kind::Included, Direction::Down) => key >= self.key.as_slice(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_is_behind_all_keys_with_the_prefix() {
        let mut out = Vec::new();
        assert!(successor(b"ab", &mut out));
        assert_eq!(out, b"ac");
        assert!(successor(b"a\xff\xff", &mut out));
        assert_eq!(out, b"b");
        assert!(!successor(b"\xff", &mut out));
        assert!(!successor(b"", &mut out));
    }

    #[test]
    fn ends_speak_of_prefixes() {
        let mut edge = Edge::default();
        edge.set_end(End::Include(b"m"), Direction::Up);
        assert!(edge.admits(b"m", Direction::Up) && edge.admits(b"mz", Direction::Up));
        assert!(!edge.admits(b"n", Direction::Up));
        edge.set_end(End::Exclude(b"m"), Direction::Up);
        assert!(edge.admits(b"lz", Direction::Up) && !edge.admits(b"m", Direction::Up));
        edge.set_end(End::Include(b"m"), Direction::Down);
        assert!(edge.admits(b"m", Direction::Down) && !edge.admits(b"lz", Direction::Down));
        edge.set_end(End::Exclude(b"m"), Direction::Down);
        assert!(edge.admits(b"n", Direction::Down) && !edge.admits(b"mz", Direction::Down));
        edge.set_end(End::Exclude(b"\xff"), Direction::Down);
        assert!(!edge.admits(b"\xff\xff", Direction::Down));
        edge.set_end(End::Include(b"\xff"), Direction::Up);
        assert!(edge.admits(b"\xff\xff", Direction::Up));
    }
}
