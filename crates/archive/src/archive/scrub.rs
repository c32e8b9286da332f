//! Reading all again: each chunk by its hash, in the order in which they are stored, then whether each content has its
//! chunk, then whom the damaged ones hurt. What is damaged hinders nothing else.

use super::get::{by_data, check_chunk, oid_of_entry};
use super::Archive;
use crate::rows::{list_key, read_list, Content, LIST_END};
use crate::{Digest, Error, Oid, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use teak_core::{Error as CoreError, Snapshot};

/// How a scrub goes.
pub struct Scrub<'a> {
    /// Bytes a second that it reads at most, before compression; `None`: as fast as it can.
    pub bytes_per_second: Option<u64>,
    /// From the beginning, also if one was interrupted.
    pub restart: bool,
    /// Whether it is to stop; the next one goes on.
    pub stop: &'a dyn Fn() -> bool,
}

/// What a scrub has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Chunks that were read; of an interrupted one, with those before.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<Damage>,
    /// Whether it came to the end.
    pub is_complete: bool,
}

/// A damaged chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its name.
    pub chunk: Digest,
    /// Data of which it is a part.
    pub data: Vec<Digest>,
    /// Records of that data.
    pub records: Vec<Oid>,
}

/// What is kept of a scrub.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    /// Number of the chunk that is next.
    next: u64,
    chunks: u64,
    bytes: u64,
    /// Numbers of those that are damaged.
    damaged: BTreeSet<u64>,
}

/// After so many bytes its place is written, and another snapshot taken.
const STEP_BYTES: u64 = 64 << 20;
/// Where a leaf cannot be read, so many numbers are tried one by one before a cursor is tried again.
const PROBED: u64 = 1000;
/// So many contents are looked at with one snapshot.
const CONTENTS: usize = 100_000;

impl Archive {
    /// Reads all chunks, and names those that are damaged and the objects they hurt.
    pub fn scrub(&self, how: &Scrub<'_>) -> Result<Scrubbed> {
        let kept = if how.restart { None } else { self.setting("scrub")? };
        let mut state: State = kept.unwrap_or_default();
        let (began, before) = (Instant::now(), state.bytes);
        loop {
            let is_left = self.scrub_step(&mut state, how.stop)?;
            if !is_left {
                break;
            }
            self.keep(&state)?;
            if (how.stop)() {
                return Ok(Scrubbed { chunks: state.chunks, bytes: state.bytes, ..Scrubbed::default() });
            }
            pace(how, began, state.bytes - before);
        }
        let damage = self.whom_it_hurts(&state.damaged)?;
        self.transact(|txn| Ok(txn.delete(&self.trees.settings, "scrub").map(|_| ())?))?;
        self.answered()?;
        Ok(Scrubbed { chunks: state.chunks, bytes: state.bytes, damage, is_complete: true })
    }

    fn keep(&self, state: &State) -> Result<()> {
        self.transact(|txn| self.write_setting(txn, "scrub", state))?;
        self.answered()
    }

    /// Reads [`STEP_BYTES`]; whether there is more.
    fn scrub_step(&self, state: &mut State, stop: &dyn Fn() -> bool) -> Result<bool> {
        let snapshot = self.engine.snapshot();
        let end = state.bytes + STEP_BYTES;
        let mut rows = snapshot.range(&self.trees.chunks, state.next.to_be_bytes()..);
        while state.bytes < end && !stop() {
            let found = match rows.advance() {
                Ok(false) => return Ok(false),
                Ok(true) => rows.value().map(|row| (check_chunk(row).is_some(), bytes_of(row))),
                Err(error) => Err(error),
            };
            // A row that is found and cannot be read has its key.
            let number = rows.key().try_into().map(u64::from_be_bytes).ok().filter(|n| *n >= state.next);
            match (found, number) {
                (Ok((is_good, bytes)), Some(number)) => state.count(number, is_good, bytes),
                (Err(error), Some(number)) if is_damage(&error) => {
                    state.count(number, false, 0);
                    rows = snapshot.range(&self.trees.chunks, state.next.to_be_bytes()..);
                }
                (Err(error), None) if is_damage(&error) => {
                    if !self.probe(&snapshot, state)? {
                        return Ok(false);
                    }
                    rows = snapshot.range(&self.trees.chunks, state.next.to_be_bytes()..);
                }
                (Err(error), _) => return Err(error.into()),
                (Ok(_), None) => return Err(Error::row("chunks", rows.key())),
            }
        }
        Ok(true)
    }

    /// Where no cursor comes by; whether numbers are left.
    fn probe(&self, snapshot: &Snapshot, state: &mut State) -> Result<bool> {
        let end = self.next_chunk.load(std::sync::atomic::Ordering::SeqCst);
        for number in state.next..end.min(state.next.saturating_add(PROBED)) {
            match snapshot.get(&self.trees.chunks, number.to_be_bytes()) {
                Ok(Some(row)) => state.count(number, check_chunk(&row).is_some(), bytes_of(&row)),
                Ok(None) => state.next = number + 1,
                Err(error) if is_damage(&error) => state.count(number, false, 0),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(state.next < end)
    }

    /// Names of the damaged chunks, and of those that are missing, with data and records.
    fn whom_it_hurts(&self, damaged: &BTreeSet<u64>) -> Result<Vec<Damage>> {
        let mut hurt: BTreeMap<Digest, BTreeSet<Digest>> = BTreeMap::new();
        let mut from = Vec::new();
        loop {
            let snapshot = self.engine.snapshot();
            let mut rows = snapshot.range(&self.trees.contents, from.clone()..);
            let mut left = CONTENTS;
            while left > 0 && rows.advance()? {
                left -= 1;
                let name = Digest(rows.key().try_into().map_err(|_| Error::row("contents", rows.key()))?);
                let content =
                    Content::read(rows.value()?).ok_or_else(|| Error::row("contents", rows.key()))?;
                let Some(chunk) = content.chunk else { continue };
                if damaged.contains(&chunk.number) || !self.is_there(&snapshot, chunk.number)? {
                    let data = hurt.entry(name).or_default();
                    data.extend(content.data.map(|_| name));
                }
            }
            if left > 0 {
                break;
            }
            from = [rows.key(), &[0]].concat();
        }
        if hurt.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.engine.snapshot();
        let mut rows = snapshot.rows(&self.trees.lists);
        while rows.advance()? {
            let (list, at) =
                rows.key().split_first_chunk::<16>().ok_or_else(|| Error::row("lists", rows.key()))?;
            if at == LIST_END.to_be_bytes() {
                continue;
            }
            let chunks = read_list(rows.value()?).ok_or_else(|| Error::row("lists", rows.key()))?;
            for chunk in chunks {
                let Some(data) = hurt.get_mut(&chunk.name) else { continue };
                let end = snapshot.get(&self.trees.lists, list_key(list, LIST_END))?;
                data.extend(end.and_then(|name| name.try_into().ok()).map(Digest));
            }
        }
        hurt.into_iter().map(|(chunk, data)| self.damage(&snapshot, chunk, data)).collect()
    }

    fn is_there(&self, snapshot: &Snapshot, number: u64) -> Result<bool> {
        let key = number.to_be_bytes();
        match snapshot.range(&self.trees.chunks, key..=key).advance() {
            Ok(found) => Ok(found),
            Err(error) if is_damage(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn damage(&self, snapshot: &Snapshot, chunk: Digest, data: BTreeSet<Digest>) -> Result<Damage> {
        let mut records = Vec::new();
        for name in &data {
            let prefix = by_data(*name);
            let mut entries = snapshot.range(&self.trees.entries, prefix.clone()..);
            while entries.advance()? && entries.key().starts_with(&prefix) {
                records.push(oid_of_entry(entries.key())?);
            }
        }
        Ok(Damage { chunk, data: data.into_iter().collect(), records })
    }
}

impl State {
    fn count(&mut self, number: u64, is_good: bool, bytes: u64) {
        self.next = number.saturating_add(1);
        self.chunks += 1;
        self.bytes += bytes;
        if !is_good {
            self.damaged.insert(number);
        }
    }
}

/// Without the name before them; of a row that is too short there are none.
fn bytes_of(row: &[u8]) -> u64 {
    row.len().saturating_sub(32) as u64
}

fn is_damage(error: &CoreError) -> bool {
    matches!(
        error,
        CoreError::Corrupt { .. }
            | CoreError::UnknownVersion { .. }
            | CoreError::Io { operation: "read", .. }
    )
}

/// Waits until so many bytes may have been read.
fn pace(how: &Scrub<'_>, began: Instant, bytes: u64) {
    let Some(rate) = how.bytes_per_second else { return };
    let due = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
    while let Some(left) = due.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        if (how.stop)() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}
