//! Writing.

use teak_core::LockMode;

use super::border::{array, put, RawBytes, SessionHandle, TableHandle};
use super::session::with_reader;
use super::status::Status;
use teak_rows::outcome::{Result, Stop};
use teak_rows::row::{Entry, Manner};
use teak_rows::session::Session;

/// `teak_entry`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawEntry {
    pub tree: u32,
    pub flags: u32,
    pub key: RawBytes,
    pub value: RawBytes,
}

/// `teak_duplicate`
#[repr(C)]
#[allow(missing_docs)]
pub struct RawDuplicate {
    pub tree: u32,
    pub pk: RawBytes,
}

/// The entry; `None` if its key is NULL.
///
/// # Safety
/// Key and value are readable as long as the result is used.
unsafe fn entry(raw: &RawEntry) -> Option<Entry<'_>> {
    if raw.key.data.is_null() {
        return None;
    }
    // SAFETY: by the contract of this function.
    let (key, value) = unsafe { (raw.key.slice(), raw.value.slice()) };
    Some(Entry { tree: raw.tree, unique: raw.flags & 1 != 0, key, value })
}

fn manner(flags: u32) -> Manner {
    Manner {
        duplicate: if flags & 1 != 0 { LockMode::Exclusive } else { LockMode::Shared },
        fresh_key: flags & 2 != 0,
        no_locks: flags & 4 != 0,
        append: flags & 8 != 0,
        sorts: flags & 16 != 0,
        apart: flags & 32 != 0,
    }
}

/// Runs a row operation and tells which row it collided with, if it did.
///
/// # Safety
/// The handles are open; `out` is writable or NULL.
unsafe fn with_row(
    session: *const SessionHandle,
    table: *const TableHandle,
    out: *mut RawDuplicate,
    body: impl FnOnce(&mut Session, &TableHandle, &mut u32) -> Result<()>,
) -> Status {
    // SAFETY: by the contract of this function.
    unsafe {
        if let (Some(session), Some(table)) = (session.as_ref(), table.as_ref()) {
            session.windows.end_of(&table.table);
        }
        with_reader(session, |session| {
            let table = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            let mut tree = 0;
            let result = body(session, table, &mut tree);
            if matches!(result, Err(Stop::Duplicate)) {
                put(out, RawDuplicate { tree, pk: RawBytes::of(&session.duplicate_pk) });
            }
            result
        })
    }
}

/// `teak_insert`
#[no_mangle]
pub unsafe extern "C" fn teak_insert(
    session: *const SessionHandle,
    table: *const TableHandle,
    pk: RawBytes,
    row: RawBytes,
    entries: *const RawEntry,
    n_entries: usize,
    flags: u32,
    duplicate: *mut RawDuplicate,
) -> Status {
    // SAFETY: the handles are open, the arrays and what they point to readable, the result writable or NULL.
    unsafe {
        let entries = array(entries, n_entries).iter().filter_map(|raw| entry(raw));
        with_row(session, table, duplicate, |session, t, tree| {
            session.insert(&t.table, pk.slice(), row.slice(), entries, manner(flags), tree)
        })
    }
}

/// `teak_update`
#[no_mangle]
pub unsafe extern "C" fn teak_update(
    session: *const SessionHandle,
    table: *const TableHandle,
    old_pk: RawBytes,
    new_pk: RawBytes,
    row: RawBytes,
    old_entries: *const RawEntry,
    new_entries: *const RawEntry,
    n_entries: usize,
    flags: u32,
    duplicate: *mut RawDuplicate,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let old = array(old_entries, n_entries).iter();
        let new = array(new_entries, n_entries).iter();
        let pairs = old.zip(new).map(|(old, new)| (entry(old), entry(new)));
        with_row(session, table, duplicate, |session, t, tree| {
            let (old_pk, new_pk, row) = (old_pk.slice(), new_pk.slice(), row.slice());
            session.update(&t.table, old_pk, new_pk, row, pairs, manner(flags), tree)
        })
    }
}

/// `teak_delete`
#[no_mangle]
pub unsafe extern "C" fn teak_delete(
    session: *const SessionHandle,
    table: *const TableHandle,
    pk: RawBytes,
    entries: *const RawEntry,
    n_entries: usize,
    flags: u32,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let entries = array(entries, n_entries).iter().filter_map(|raw| entry(raw));
        with_row(session, table, std::ptr::null_mut(), |session, t, _| {
            session.delete(&t.table, pk.slice(), entries, manner(flags))
        })
    }
}
