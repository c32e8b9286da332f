//! Writing.

use teak_core::LockMode;

use super::border::{put, Array, Bytes, Out, RawBytes, SessionHandle, TableHandle};
use super::session::with_reader;
use super::status::Status;
use teak_rows::collision::Collision;
use teak_rows::outcome::{Result, Stop};
use teak_rows::row::{Batch, Entry, Promise};
use teak_rows::session::Session;

/// The key of an entry is unique: it is looked for before it goes in.
pub const TEAK_ENTRY_UNIQUE: u32 = 1;

/// A duplicate is locked exclusive instead of shared (ON DUPLICATE KEY UPDATE, REPLACE).
pub const TEAK_ROW_LOCK_DUPLICATE: u32 = 0x01;
/// The primary key comes from teak_next_row_id: not looked up.
pub const TEAK_ROW_FRESH_KEY: u32 = 0x02;
/// Nobody else can see the table (copying ALTER, temporary table): no locks; uniqueness is still checked.
pub const TEAK_ROW_PRIVATE: u32 = 0x04;
/// One of many rows that a statement inserts: may go to the file past the log; teak_append_end follows.
pub const TEAK_ROW_MANY: u32 = 0x08;
/// The same, and a duplicate key ends the statement, so a later row, or teak_append_end, may be what tells.
pub const TEAK_ROW_MANY_OR_NONE: u32 = 0x10;
/// In a transaction of its own, committed when the call returns: stays if the session's is rolled back.
pub const TEAK_ROW_APART: u32 = 0x20;
/// The row stays where it is, which the scan that has a window on the table's rows has left behind.
pub const TEAK_ROW_PASSED: u32 = 0x40;

/// Entries that stay as they are are written all the same: see teak_row_overtakes.
pub const TEAK_ROW_REWRITES: u32 = 0x80;

/// An index entry of a row.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawEntry<'a> {
    /// 1..
    pub tree: u32,
    pub flags: u32,
    /// Data == NULL: no entry (index disabled).
    pub key: Bytes<'a>,
    pub value: Bytes<'a>,
}

/// The row that an operation collided with.
#[repr(C)]
pub struct RawDuplicate {
    /// Which tree found it: 0 = primary key, else the entry's tree.
    pub tree: u32,
    /// Primary key of the existing row, or of any that has the key; valid until the session's next row operation.
    pub pk: RawBytes,
    /// Not 0: another row of the statement than the last may have been refused; `pk` is that of one with the key.
    pub late: u32,
    /// Then also that row; without data if it cannot be read. As long valid.
    pub row: RawBytes,
}

impl RawDuplicate {
    pub(super) fn of(collision: &Collision) -> RawDuplicate {
        let Collision { tree, pk, row, is_late } = collision;
        let row = if *is_late { row.as_slice() } else { &[] };
        RawDuplicate { tree: *tree, pk: RawBytes::of(pk), late: u32::from(*is_late), row: RawBytes::of(row) }
    }
}

/// The entry; `None` if its key is NULL.
fn entry<'a>(raw: &RawEntry<'a>) -> Option<Entry<'a>> {
    if raw.key.is_null() {
        return None;
    }
    let (key, value) = (raw.key.slice(), raw.value.slice());
    Some(Entry { tree: raw.tree, unique: raw.flags & TEAK_ENTRY_UNIQUE != 0, key, value })
}

fn promise(flags: u32) -> Promise {
    Promise {
        private: flags & TEAK_ROW_PRIVATE != 0,
        fresh_key: flags & TEAK_ROW_FRESH_KEY != 0,
        batch: match flags & (TEAK_ROW_MANY | TEAK_ROW_MANY_OR_NONE) {
            0 => Batch::Single,
            TEAK_ROW_MANY => Batch::Many,
            _ => Batch::ManyOrNone,
        },
        duplicate: if flags & TEAK_ROW_LOCK_DUPLICATE != 0 { LockMode::Exclusive } else { LockMode::Shared },
        rewrites: flags & TEAK_ROW_REWRITES != 0,
    }
}

/// Runs a row operation and tells which row it collided with, if it did.
fn with_row(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    out: Out<'_, RawDuplicate>,
    flags: u32,
    body: impl FnOnce(&mut Session, &TableHandle) -> Result<()>,
) -> Status {
    if let (Some(session), Some(table)) = (session, table) {
        match flags & TEAK_ROW_PASSED {
            0 => session.windows.end_of(&table.table),
            _ => session.windows.end_others(&table.table),
        }
    }
    with_reader(session, |session| {
        let table = table.ok_or(Stop::Misuse("no table"))?;
        let result = match flags & TEAK_ROW_APART {
            0 => body(session, table),
            _ => session.apart(|session| body(session, table)),
        };
        if matches!(result, Err(Stop::Duplicate)) {
            put(out, RawDuplicate::of(&session.collision));
        }
        result
    })
}

/// Whether a write to the row goes over what was committed after the snapshot, as REPEATABLE READ without snapshot
/// isolation lets it: TEAK_OK or TEAK_NOT_FOUND. To be asked before a change of a row that is locked, which then
/// has all its entries written (TEAK_ROW_REWRITES), and after an insert. From then on the entries that a snapshot's
/// read of an index finds are to be compared with their rows.
#[no_mangle]
pub extern "C" fn teak_row_overtakes(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    pk: Bytes<'_>,
) -> Status {
    with_reader(session, |session| {
        let table = table.ok_or(Stop::Misuse("no table"))?;
        match session.overtakes(&table.table, pk.slice())? {
            true => Ok(()),
            false => Err(Stop::NotFound),
        }
    })
}

/// Puts in a row and its entries. This and the next two are atomic over all trees: on any error the row and all entries
/// are as before (locks may be kept). They wait for locks as needed. TEAK_DUPLICATE fills `*duplicate`; the primary key
/// is checked first, then entries in the given order. Strict snapshot isolation: writing a row committed after an
/// existing snapshot is TEAK_CONFLICT.
#[no_mangle]
pub extern "C" fn teak_insert(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    pk: Bytes<'_>,
    row: Bytes<'_>,
    entries: Array<'_, RawEntry<'_>>,
    flags: u32,
    duplicate: Out<'_, RawDuplicate>,
) -> Status {
    let entries = entries.slice().iter().filter_map(entry);
    with_row(session, table, duplicate, flags, |session, t| {
        session.insert(&t.table, pk.slice(), row.slice(), entries, promise(flags))
    })
}

/// Replaces a row and its entries. `old_entries[i]` and `new_entries[i]` belong to the same tree; indexes whose entry
/// certainly did not change may be left out. Pairs with equal key and value cost nothing, with equal key only the value
/// is replaced.
///
/// Halloween: a scan sees the session's own writes, so a row moved ahead of the scan in the scanned tree is met again.
/// The server prevents that (used_key_is_modified makes UPDATE collect positions first); a shim that updates behind the
/// server's back must do likewise.
#[no_mangle]
pub extern "C" fn teak_update(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    old_pk: Bytes<'_>,
    new_pk: Bytes<'_>,
    row: Bytes<'_>,
    old_entries: Array<'_, RawEntry<'_>>,
    new_entries: Array<'_, RawEntry<'_>>,
    flags: u32,
    duplicate: Out<'_, RawDuplicate>,
) -> Status {
    let old = old_entries.slice().iter();
    let new = new_entries.slice().iter();
    let pairs = old.zip(new).map(|(old, new)| (entry(old), entry(new)));
    with_row(session, table, duplicate, flags, |session, t| {
        let (old_pk, new_pk, row) = (old_pk.slice(), new_pk.slice(), row.slice());
        session.update(&t.table, old_pk, new_pk, row, pairs, promise(flags))
    })
}

/// Takes a row and its entries out. TEAK_NOT_FOUND: there is no such row (any more).
#[no_mangle]
pub extern "C" fn teak_delete(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    pk: Bytes<'_>,
    entries: Array<'_, RawEntry<'_>>,
    flags: u32,
) -> Status {
    let entries = entries.slice().iter().filter_map(entry);
    with_row(session, table, None, flags, |session, t| {
        session.delete(&t.table, pk.slice(), entries, promise(flags))
    })
}
