//! Windows: entries that the shim walks over without a call for each.
//!
//! There are two kinds. A *scan's* window is opened after some moves in one direction by a cursor that reads a snapshot
//! (`step` 1 or -1): the entries that follow, in a block or in a listing ([`teak_core::server::Window`]). A window *for
//! look-ups* (`looks_up`, `step` 1) is opened when a cursor is asked for one key after the other in ascending order:
//! the shim looks for the next key among the next few; if that is of no use it is opened ever less often. Of a scan
//! that was just placed there may be no window but its end: `ends` says that nothing follows, so that the shim need not
//! ask.
//!
//! ```text
//!                                            a   b   c   d   e   f   g      next   left  opened
//! the scan has come to b: opened                 ^   .   .   .   .   .       c      5      5
//! three are taken by the shim                    ^   x   x   x   .   .       f      2      5
//! any call on the cursor: it settles                         ^               -      0      0     at e: next - step,
//!                                                                                               3 read: opened - left
//! for look-ups: b was found, opened              ^   .   .   .   .   .       c      5      5
//! e is looked for, and found behind c, d         ^   .   .   x   .   .       f      2      3
//! any call on the cursor                                     ^               -      0      0     at e, 1 read
//! ```
//!
//! Who writes what: the engine opens it, and settles it before the next call on the cursor does anything
//! ([`CursorHandle::settle`]); in between the shim moves `next` and `left`, and takes off `opened` what it has passed
//! over, so that `opened - left` is always what was taken. Nobody but the session's thread does either.
//!
//! A window holds for one *moment* of its session, a number in the session that grows whenever the session changes what
//! one of its windows might show ([`Windows`]): the window keeps the moment in which it was opened, and one that is not
//! of now is as good as empty, for `ends` as well. A change of a row that the scan has left behind need not end it
//! (`TEAK_ROW_PASSED`).

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::border::CursorHandle;
use teak_core::server::{Items, Listed, Table, Window};
use teak_rows::bounds::Direction;
use teak_rows::outcome::Result;
use teak_rows::session::Session;

/// A scan of so few entries opens no window.
const FEW_MOVES: u32 = 2;
/// A window of fewer entries costs more than it saves.
const FEW_ENTRIES: usize = 4;
/// So many moves are made one by one after a window that would have been too small.
const REST: u32 = 16;
/// So many look-ups in ascending order open a window.
const FEW_LOOK_UPS: u32 = 3;
/// So many look-ups go without one, at most, when windows were of no use.
const MOST_REST: u32 = 4096;
/// Room for what follows the prefix in a key; longer keys come one by one.
const SUFFIX_ROOM: usize = 1024;

/// Byte strings that lie side by side in a block.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawItems {
    /// All, one after the other.
    pub bytes: *const u8,
    /// NULL: all have one length. u32 each, not aligned, one more than items; with bit 31 it is a large value's.
    pub starts: *const u8,
    pub length: usize,
}

impl RawItems {
    const NONE: RawItems = RawItems { bytes: ptr::null(), starts: ptr::null(), length: 0 };

    fn of(items: Items<'_>) -> RawItems {
        let starts = items.starts.map_or(ptr::null(), <[u8]>::as_ptr);
        RawItems { bytes: items.bytes.as_ptr(), starts, length: items.length }
    }
}

/// An entry wherever it is; never a large value.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawListed {
    pub key: *const u8,
    pub value: *const u8,
    /// Of all of the key; with bit 31, of what follows the window's prefix.
    pub key_length: u32,
    pub value_length: u32,
}

const _: () = assert!(size_of::<RawListed>() == size_of::<Listed>(), "which is what it points to");

/// Entries that a scan takes out of the engine's leaf without a call for each.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawWindow {
    /// Entries from `next` on that were neither taken nor passed over.
    pub left: usize,
    /// Number of the next one; set by who takes it, with `left`.
    pub next: usize,
    /// Of the session, in which it holds.
    pub moment: u64,
    /// 1 or -1: the way of the scan; 1 for look-ups.
    pub step: isize,
    /// Begins with `prefix` bytes that all keys have, behind which are `room` more.
    pub key: *mut u8,
    pub prefix: usize,
    pub room: usize,
    pub suffixes: RawItems,
    pub values: RawItems,
    /// NULL: the entries are in `suffixes` and `values`.
    pub listed: *const RawListed,
    /// Not 0: it was opened for look-ups in a snapshot, which find their keys here.
    pub looks_up: usize,
    /// Not 0: at its moment the scan that was placed last has nothing behind the entry that it stands on.
    pub ends: usize,
    /// Entries that it was opened with, but for those that were passed over.
    pub opened: usize,
}

impl RawWindow {
    /// No entries.
    pub fn closed() -> RawWindow {
        RawWindow {
            left: 0,
            next: 0,
            moment: 0,
            step: 1,
            key: ptr::null_mut(),
            prefix: 0,
            room: 0,
            suffixes: RawItems::NONE,
            values: RawItems::NONE,
            listed: ptr::null(),
            looks_up: 0,
            ends: 0,
            opened: 0,
        }
    }

    fn open(&mut self, window: &Window<'_>, key: &mut Vec<u8>, direction: Direction, moment: u64) {
        let (entries, prefix) = (window.entries(), window.prefix());
        if key.len() < prefix.len() + SUFFIX_ROOM {
            key.resize(prefix.len() + SUFFIX_ROOM, 0);
        }
        key[..prefix.len()].copy_from_slice(prefix);
        self.key = key.as_mut_ptr();
        self.prefix = prefix.len();
        self.room = SUFFIX_ROOM;
        (self.next, self.step) = match direction {
            Direction::Up => (entries.start, 1),
            Direction::Down => (entries.end - 1, -1),
        };
        self.suffixes = RawItems::of(window.suffixes());
        self.values = RawItems::of(window.values());
        self.listed = window.listed().map_or(ptr::null(), |listed| listed.as_ptr().cast());
        self.looks_up = 0;
        self.moment = moment;
        self.opened = entries.len();
        self.left = entries.len();
    }

    /// The entry that the shim has gone to, and over how many; it is closed.
    fn close(&mut self) -> Option<(usize, usize)> {
        let passed = std::mem::take(&mut self.opened) - std::mem::take(&mut self.left);
        (passed > 0).then(|| (self.next.wrapping_add_signed(-self.step), passed))
    }
}

/// How a scan goes while it opens no window.
#[derive(Default)]
pub struct Pace {
    moves: u32,
    rest: u32,
    /// Look-ups in ascending order, up to now.
    look_ups: u32,
    /// How many go without a window, and how many after the next that is of no use.
    look_up_rest: u32,
    next_rest: u32,
    uncounted: u64,
    /// Owns what the window's `key` points to.
    key: Vec<u8>,
}

impl CursorHandle {
    /// Lets the cursor catch up with the shim, and closes the window. To be called before anything else.
    fn settle(&mut self) {
        self.window.ends = 0;
        if self.window.opened == 0 {
            return;
        }
        let passed = match self.window.close() {
            Some((at, passed)) => {
                self.cursor.arrive(at, passed);
                self.pace.uncounted += passed as u64;
                passed
            }
            None => 0,
        };
        // The next one would be of no more use.
        match self.window.looks_up {
            0 if passed == 0 => self.pace.rest = REST,
            0 => {}
            _ if passed < FEW_ENTRIES => {
                self.pace.next_rest = (2 * self.pace.next_rest).clamp(REST, MOST_REST);
                self.pace.look_up_rest = self.pace.next_rest;
            }
            _ => self.pace.next_rest = 0,
        }
    }

    /// Settles it without a session; the engine counts what was read.
    pub fn settle_alone(&mut self) {
        self.settle();
        let read = std::mem::take(&mut self.pace.uncounted);
        // Most cursors that are reset have been before.
        if read > 0 {
            self.engine.core.count_reads(read);
        }
    }

    /// Settles it with the session, which counts what it has read.
    pub fn settle_for(&mut self, session: &mut Session) {
        self.settle();
        let read = std::mem::take(&mut self.pace.uncounted);
        if let (1.., Ok(txn)) = (read, session.txn()) {
            txn.count_reads(read);
        }
    }

    /// The cursor was placed anew.
    pub fn placed(&mut self) {
        self.pace.moves = 0;
        self.pace.rest = 0;
    }

    /// A scan has found its first entry: if that is its last, the shim need not ask again. Of look-ups in an index
    /// that is not unique most end so.
    #[inline]
    pub fn found_first(&mut self, session: &mut Session, windows: &Windows) -> Result<()> {
        if self.cursor.is_at_last(session)? {
            (self.window.ends, self.window.moment) = (1, windows.now());
            windows.note(self.cursor.table(), &self.window);
        }
        Ok(())
    }

    /// The cursor has found a key that it was asked for, which is greater than the one before, or not; opens the window
    /// if it seems that neighbours are going to be asked for.
    #[inline]
    pub fn looked_up(&mut self, ascends: bool, session: &mut Session, windows: &Windows) -> Result<()> {
        if !ascends {
            self.pace.look_ups = 0;
            return Ok(());
        }
        self.pace.look_ups = self.pace.look_ups.saturating_add(1);
        if self.pace.look_ups < FEW_LOOK_UPS {
            return Ok(());
        }
        if self.pace.look_up_rest > 0 {
            self.pace.look_up_rest -= 1;
            return Ok(());
        }
        if let Some(window) = self.cursor.window_behind(session)? {
            // Else the leaf ends here.
            if window.entries().len() >= FEW_ENTRIES {
                self.window.open(&window, &mut self.pace.key, Direction::Up, windows.now());
                self.window.looks_up = 1;
                windows.note(self.cursor.table(), &self.window);
            }
        }
        Ok(())
    }

    /// The cursor was moved; opens the window if that seems worth it.
    pub fn moved(&mut self, session: &mut Session, windows: &Windows) -> Result<()> {
        self.pace.moves = self.pace.moves.saturating_add(1);
        if self.pace.moves < FEW_MOVES {
            return Ok(());
        }
        if self.pace.rest > 0 {
            self.pace.rest -= 1;
            return Ok(());
        }
        let direction = self.cursor.direction();
        match self.cursor.window(session)? {
            Some(window) if window.entries().len() >= FEW_ENTRIES => {
                self.window.open(&window, &mut self.pace.key, direction, windows.now());
                windows.note(self.cursor.table(), &self.window);
            }
            _ => self.pace.rest = REST,
        }
        Ok(())
    }
}

/// What a session knows of its cursors' windows.
#[derive(Default)]
pub struct Windows {
    moment: AtomicU64,
    /// Tables with windows of this moment; NULL: with several.
    tables: UnsafeCell<Vec<(*const Table, *const RawWindow)>>,
}

impl Windows {
    fn now(&self) -> u64 {
        // Relaxed: only the thread that works for the session reads and writes it.
        self.moment.load(Ordering::Relaxed)
    }

    /// Where the shim reads it.
    pub fn moment(&self) -> *const u64 {
        self.moment.as_ptr()
    }

    /// The session changes something: all windows end.
    pub fn end_all(&self) {
        // SAFETY: one thread works for a session at a time, and no reference outlives these functions.
        let tables = unsafe { &mut *self.tables.get() };
        if !tables.is_empty() {
            tables.clear();
            // Relaxed: as in `now`.
            self.moment.store(self.now() + 1, Ordering::Relaxed);
        }
    }

    /// It changes rows of a table: windows into that one end.
    pub fn end_of(&self, table: &Arc<Table>) {
        // SAFETY: as in `end_all`.
        if unsafe { &*self.tables.get() }.iter().any(|(of, _)| *of == Arc::as_ptr(table)) {
            self.end_all();
        }
    }

    /// It changes, of a table with a window, a row that the scan of this window has left behind: it need not end.
    pub fn end_others(&self, table: &Arc<Table>) {
        // SAFETY: as in `end_all`.
        let tables = unsafe { &*self.tables.get() };
        if tables.iter().any(|(of, window)| *of == Arc::as_ptr(table) && window.is_null()) {
            self.end_all();
        }
    }

    fn note(&self, table: &Arc<Table>, window: &RawWindow) {
        // SAFETY: as in `end_all`.
        let tables = unsafe { &mut *self.tables.get() };
        match tables.iter_mut().find(|(of, _)| *of == Arc::as_ptr(table)) {
            Some((_, only)) if !ptr::eq(*only, window) => *only = ptr::null(),
            Some(_) => {}
            None => tables.push((Arc::as_ptr(table), window)),
        }
    }
}
