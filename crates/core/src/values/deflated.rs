//! Values that are deflate streams: many texts whose streams differ everywhere are alike once they are inflated.
//!
//! A value is inflated only if it can be made again: the pinned zlib has deflated what was in it, with a level that the
//! [`Recipe`] names, and each byte was the same. Who reads the value gets what [`Recipe::recreate`] makes of the
//! inflated bytes.
//!
//! ```text
//! recipe   generation << 4 | AROUND | kind of frame u8 | memory << 4 | level u8
//!          and for gzip: length u16 little-endian | its header
//!          and with AROUND, 8: length u8 | what stands before the frame | length u8 | what stands behind it
//! ```
//!
//! A *generation* is a library and its output: 1 is zlib 1.3.2 (and many before it), with windows of 32 KiB and the
//! default strategy. Another output would be another generation, and the library of this one would stay for what was
//! stored. `docs/design/values.md` has what zlib's output depends on.

use super::frame::{begins_stored, Frame, Guess, Kind};
use super::place::{places, MOST_AROUND};
use super::zlib::{Deflater, Failed, Inflater, Memory, MOST_BYTES};
use std::cell::Cell;
use std::collections::TryReserveError;

/// See the module's documentation.
const GENERATION: u8 = 1;
/// Set where the stream and its frame are not all of the value.
const AROUND: u8 = 8;
/// Bytes that are compared at a time.
const COMPARED_BYTES: usize = 4 << 10;
/// Bytes that are inflated before memory is taken for all: what is no stream has failed by then.
const FIRST_BYTES: usize = 1 << 10;
/// More room than a stream needs: zlib says that it is at its end only while there is room, and how it divides bytes
/// that it stores depends on the room, until there is enough.
const AMPLE_BYTES: usize = 64;

/// Levels and memory that writers use, most frequent first: the default, the best, the fastest.
const HABITS: [(u8, Memory); 12] = [
    (6, Memory::Usual),
    (9, Memory::Usual),
    (1, Memory::Usual),
    (6, Memory::Most),
    (9, Memory::Most),
    (1, Memory::Most),
    (5, Memory::Usual),
    (4, Memory::Usual),
    (7, Memory::Usual),
    (8, Memory::Usual),
    (3, Memory::Usual),
    (2, Memory::Usual),
];

thread_local! {
    /// Number of the habit that made the last value which this thread has taken: mostly the next has it, too. Each one
    /// that is tried in vain costs as much as the one that succeeds, and PHP's is the fourth.
    static LAST_HABIT: Cell<usize> = const { Cell::new(0) };
}

/// What is in a deflate stream, and how the stream is made of it.
#[derive(Debug)]
pub(crate) struct Inflated {
    pub bytes: Vec<u8>,
    pub recipe: Recipe,
}

/// How a value is made of what is in it, to the bit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Recipe {
    frame: Frame,
    level: u8,
    memory: Memory,
    /// Of the value, before the frame and behind it: at most [`MOST_AROUND`] bytes each.
    before: Box<[u8]>,
    behind: Box<[u8]>,
}

/// What is in `value`, if the whole of it, or most of it ([`super::place`]), is a zlib stream, a gzip file of one
/// member, a raw deflate stream, or one of these as MariaDB's COMPRESS() and its compressed columns have it; of at most
/// `most` bytes inflated; and if the pinned zlib makes the same of it again.
///
/// Most of what is no such value is refused within a microsecond. What is, costs inflating it and deflating it again;
/// streams of other libraries, which differ from all that zlib makes, cost up to twelve times the latter.
pub(crate) fn inflate(value: &[u8], most: usize) -> Option<Inflated> {
    if value.len() > MOST_BYTES {
        return None;
    }
    places(value).find_map(|place| {
        let part = &value[place.clone()];
        let mut inflated =
            Frame::guesses(part).find_map(|guess| remade(part, guess, most.min(MOST_BYTES)))?;
        inflated.recipe.before = value[..place.start].into();
        inflated.recipe.behind = value[place.end..].into();
        Some(inflated)
    })
}

/// What is in `value`, if it looks as one of those that [`inflate`] takes; whether it can be made again is not tried.
pub(crate) fn content_of(value: &[u8], most: usize) -> Option<Vec<u8>> {
    if value.len() > MOST_BYTES {
        return None;
    }
    let parts = places(value).map(|place| &value[place]);
    let mut guesses = parts.flat_map(|part| Frame::guesses(part).map(move |guess| (part, guess)));
    guesses.find_map(|(part, Guess { frame, start, announced })| {
        let most = announced.unwrap_or(most).min(most);
        let (bytes, used) = content(&part[start..], most).ok()?;
        (part[start + used..] == *frame.tail(&bytes)).then_some(bytes)
    })
}

/// The value as `guess` says, if it can be made again so.
fn remade(value: &[u8], Guess { frame, start, announced }: Guess, most: usize) -> Option<Inflated> {
    let most = announced.unwrap_or(most).min(most);
    let (head, stream) = value.split_at(start);
    let (bytes, used) = content(stream, most).ok()?;
    let (stream, tail) = stream.split_at(used);
    if tail != frame.tail(&bytes) || announced.is_some_and(|announced| announced != bytes.len()) {
        return None;
    }
    let stored = begins_stored(stream).then_some((0, Memory::Usual));
    let hinted = frame.hinted_level().map(|level| (level, Memory::Usual));
    let last = HABITS[LAST_HABIT.get()];
    let first = [stored, hinted, Some(last)].into_iter().flatten();
    let others = HABITS.into_iter().filter(|habit| Some(*habit) != hinted && *habit != last);
    let (level, memory) = first.chain(others).find(|&(level, memory)| {
        frame.head(level, bytes.len()) == head && makes(level, memory, &bytes, stream)
    })?;
    if let Some(habit) = HABITS.iter().position(|habit| *habit == (level, memory)) {
        LAST_HABIT.set(habit);
    }
    let (before, behind) = (Box::default(), Box::default());
    Some(Inflated { bytes, recipe: Recipe { frame, level, memory, before, behind } })
}

/// What is in the deflate stream that `stream` begins with, and how long that stream is.
fn content(stream: &[u8], most: usize) -> Result<(Vec<u8>, usize), Failed> {
    Inflater::with(|inflater| {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(most.min(FIRST_BYTES)).map_err(no_memory)?;
        let mut taken = 0;
        loop {
            let before = bytes.len();
            let step = inflater.step(&stream[taken..], &mut bytes, most - before)?;
            taken += step.taken;
            if step.ended {
                return Ok((bytes, taken));
            }
            if bytes.len() == most
                || bytes.len() == before && step.taken == 0 && !bytes.spare_capacity_mut().is_empty()
            {
                // Longer than it may be, or cut off.
                return Err(Failed);
            }
            // No deflate stream has more than 1032 bytes for each of its own; texts have three or four.
            let wanted = (stream.len() * 4).max(before * 2).min(most);
            bytes.try_reserve_exact(wanted - bytes.len().min(wanted)).map_err(no_memory)?;
        }
    })
}

/// Whether `bytes` become `stream`. Ends at the first piece that differs.
fn makes(level: u8, memory: Memory, bytes: &[u8], stream: &[u8]) -> bool {
    let room = if level == 0 { stream.len() + AMPLE_BYTES } else { COMPARED_BYTES };
    let compare = |deflater: &mut Deflater| {
        let mut piece = Vec::new();
        piece.try_reserve_exact(room).map_err(no_memory)?;
        let (mut input, mut rest) = (bytes, stream);
        loop {
            piece.clear();
            let step = deflater.step(input, &mut piece, room)?;
            input = &input[step.taken..];
            match rest.strip_prefix(&piece[..]) {
                Some(after) if step.ended => return Ok(after.is_empty()),
                Some(after) if !piece.is_empty() => rest = after,
                _ => return Ok(false),
            }
        }
    };
    Deflater::with(level, memory, compare).unwrap_or(false)
}

fn no_memory(_: TryReserveError) -> Failed {
    Failed
}

impl Recipe {
    /// Appends the recipe to `out`: two bytes, for gzip files fourteen and more, and what stands around the frame.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let is_all = self.before.is_empty() && self.behind.is_empty();
        out.push(GENERATION << 4 | if is_all { 0 } else { AROUND } | self.frame.kind as u8);
        out.push((self.memory as u8) << 4 | self.level);
        if self.frame.kind == Kind::Gzip {
            // At most `MOST_HEAD` bytes.
            out.extend_from_slice(&(self.frame.kept.len() as u16).to_le_bytes());
            out.extend_from_slice(&self.frame.kept);
        }
        if !is_all {
            for around in [&self.before, &self.behind] {
                debug_assert!(around.len() <= MOST_AROUND);
                out.push(around.len() as u8);
                out.extend_from_slice(around);
            }
        }
    }

    /// The recipe that `bytes` begin with, and its length.
    ///
    /// # Errors
    /// They begin with none.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Recipe, usize), String> {
        let (&[first, second], rest) = bytes.split_first_chunk().ok_or("a recipe is cut off")?;
        let kind = match first >> 4 {
            GENERATION => Kind::of_number(first & 15 & !AROUND),
            other => return Err(format!("a recipe of generation {other}, this build knows {GENERATION}")),
        };
        let kind = kind.ok_or_else(|| format!("a recipe for values of kind {}", first & 15))?;
        let level = second & 15;
        let memory = match second >> 4 {
            0 => Memory::Usual,
            1 => Memory::Most,
            other => return Err(format!("a recipe with memory {other}")),
        };
        if level > 9 {
            return Err(format!("a recipe with level {level}"));
        }
        let mut kept: &[u8] = &[];
        let mut used = 2;
        if kind == Kind::Gzip {
            let (length, rest) = rest.split_first_chunk().ok_or("a recipe is cut off")?;
            let length = usize::from(u16::from_le_bytes(*length));
            kept = rest.get(..length).ok_or("a recipe is cut off in its header")?;
            used += 2 + length;
        }
        let frame = Frame { kind, kept: kept.into() };
        if !frame.is_sound() {
            return Err("a recipe whose header is none of gzip".to_string());
        }
        let (mut before, mut behind) = (Box::default(), Box::default());
        if first & AROUND != 0 {
            let mut around = || -> Result<Box<[u8]>, String> {
                let rest = bytes.get(used..).and_then(|rest| rest.split_first());
                let (&length, rest) = rest.ok_or("a recipe is cut off")?;
                let kept =
                    rest.get(..usize::from(length)).ok_or("a recipe is cut off in what stands around")?;
                used += 1 + kept.len();
                Ok(kept.into())
            };
            (before, behind) = (around()?, around()?);
            if before.is_empty() && behind.is_empty() {
                return Err("a recipe with nothing around its stream".to_string());
            }
        }
        Ok((Recipe { frame, level, memory, before, behind }, used))
    }

    /// The value of `length` bytes that `inflated` was in.
    ///
    /// # Errors
    /// There is no memory for it, or another value comes of it.
    pub(crate) fn recreate(&self, inflated: &[u8], length: usize) -> Result<Vec<u8>, String> {
        let other = || format!("{} inflated bytes do not make a value of {length}", inflated.len());
        // What zlib cannot compress, it stores, with five bytes for each of its blocks.
        let around = self.before.len() + self.behind.len();
        let longest = inflated.len() + inflated.len() / 8 + self.frame.kept.len() + around + AMPLE_BYTES;
        if length > longest || inflated.len() > MOST_BYTES {
            return Err(other());
        }
        let mut value = Vec::new();
        let no_memory = |_| format!("no memory for a value of {length} bytes");
        value.try_reserve_exact(length + AMPLE_BYTES).map_err(no_memory)?;
        let (head, tail) = (self.frame.head(self.level, inflated.len()), self.frame.tail(inflated));
        let room = length.checked_sub(around + head.len() + tail.len()).ok_or_else(other)? + AMPLE_BYTES;
        value.extend_from_slice(&self.before);
        value.extend_from_slice(&head);
        let made =
            Deflater::with(self.level, self.memory, |deflater| deflater.step(inflated, &mut value, room));
        let ended = made.map_err(|Failed| "zlib has no memory to deflate a value")?.ended;
        value.extend_from_slice(&tail);
        value.extend_from_slice(&self.behind);
        (ended && value.len() == length).then_some(value).ok_or_else(other)
    }
}

#[cfg(test)]
mod tests;
