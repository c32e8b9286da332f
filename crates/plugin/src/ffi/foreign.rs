//! Foreign keys: links between tables, which the shim gives their meaning, and looks at the rows of another table.

use std::os::raw::c_void;

use super::border::{array, put, RawBytes, RawEntryView, SessionHandle, TableHandle};
use super::engine::with_engine;
use super::guard::value;
use super::session::{with_reader, with_session};
use super::status::Status;
use super::table::RawTreeSpec;
use teak_core::server::Link;
use teak_core::LockMode;
use teak_rows::engine::EngineHandle;
use teak_rows::foreign::{Found, Look};
use teak_rows::outcome::{Result, Stop};

/// A relation of one table to another, kept with the first.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawLink {
    /// Name of the table that has it; in teak_table_create_linked it is not looked at.
    pub table: RawBytes,
    pub name: RawBytes,
    /// Name of the table that it leads to, which need not exist.
    pub target: RawBytes,
    /// The shim's.
    pub body: RawBytes,
}

impl RawLink {
    fn of(table: &str, link: &Link) -> RawLink {
        RawLink {
            table: RawBytes::of(table.as_bytes()),
            name: RawBytes::of(link.name.as_bytes()),
            target: RawBytes::of(link.target.as_bytes()),
            body: RawBytes::of(&link.body),
        }
    }

    /// # Safety
    /// Its bytes are readable.
    unsafe fn link(&self) -> Result<Link> {
        // SAFETY: by the contract of this function.
        let (name, target, body) = unsafe { (self.name.name()?, self.target.name()?, self.body.slice()) };
        Ok(Link { name: name.to_string(), target: target.to_string(), body: body.to_vec() })
    }
}

/// As teak_table_create, with links to other tables.
#[no_mangle]
pub unsafe extern "C" fn teak_table_create_linked(
    handle: *const EngineHandle,
    name: RawBytes,
    trees: *const RawTreeSpec,
    n_trees: usize,
    meta: RawBytes,
    links: *const RawLink,
    n_links: usize,
) -> Status {
    // SAFETY: the handle is open, the arrays and what they point to readable.
    unsafe {
        with_engine(handle, |engine| {
            let specs = array(trees, n_trees).iter().map(|s| s.spec()).collect::<Result<Vec<_>>>()?;
            let links = array(links, n_links).iter().map(|l| l.link()).collect::<Result<Vec<_>>>()?;
            if specs.is_empty() {
                return Err(Stop::Misuse("a table without a tree"));
            }
            Ok(engine.core.create_linked_table(name.name()?, &specs, meta.slice(), &links)?)
        })
    }
}

/// Gives a table another name; links of all tables follow.
#[no_mangle]
pub unsafe extern "C" fn teak_table_rename_with_links(
    handle: *const EngineHandle,
    from: RawBytes,
    to: RawBytes,
) -> Status {
    // SAFETY: the handle is open, the names readable.
    unsafe {
        with_engine(handle, |engine| Ok(engine.core.rename_table_with_links(from.name()?, to.name()?)?))
    }
}

/// Calls `visit` with each link that the table has. TEAK_NO_TABLE if there is none of this name.
#[no_mangle]
pub unsafe extern "C" fn teak_links_of(
    handle: *const EngineHandle,
    table: RawBytes,
    visit: unsafe extern "C" fn(*mut c_void, RawLink),
    context: *mut c_void,
) -> Status {
    // SAFETY: the handle is open, the name readable; the shim's function takes its own context, and bytes that live
    // until it returns.
    unsafe {
        with_engine(handle, |engine| {
            let name = table.name()?;
            engine.core.links(name)?.iter().for_each(|link| visit(context, RawLink::of(name, link)));
            Ok(())
        })
    }
}

/// Calls `visit` with each link that leads to the table, which need not exist.
#[no_mangle]
pub unsafe extern "C" fn teak_links_to(
    handle: *const EngineHandle,
    table: RawBytes,
    visit: unsafe extern "C" fn(*mut c_void, RawLink),
    context: *mut c_void,
) -> Status {
    // SAFETY: as above.
    unsafe {
        with_engine(handle, |engine| {
            let links = engine.core.links_to(table.name()?)?;
            links.iter().for_each(|(from, link)| visit(context, RawLink::of(from, link)));
            Ok(())
        })
    }
}

/// Grows after each change of a table that has links or that links lead to: what was found out about links holds as
/// long as it is what it was before that was asked.
#[no_mangle]
pub unsafe extern "C" fn teak_link_changes(handle: *const EngineHandle) -> u64 {
    // SAFETY: the handle is open or NULL.
    let engine = unsafe { handle.as_ref() };
    value(engine, 0, || engine.map_or(0, |engine| engine.core.link_changes()))
}

/// What is written from here on, teak_row_undo undoes; until the next call of this with that depth or a smaller one.
/// `depth` is that of the row in a cascade, from 0 on, one after the other.
#[no_mangle]
pub unsafe extern "C" fn teak_row_mark(session: *const SessionHandle, depth: usize) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_reader(session, |session| session.mark_row(depth)) }
}

/// Undoes the row operations since teak_row_mark with this depth; locks are kept.
#[no_mangle]
pub unsafe extern "C" fn teak_row_undo(session: *const SessionHandle, depth: usize) -> Status {
    // SAFETY: the handle is open.
    unsafe { with_session(session, |session| session.undo_row(depth)) }
}

/// Locks a row that is about to be changed, before it is asked whether others name it. TEAK_NOT_FOUND: it has gone.
#[no_mangle]
pub unsafe extern "C" fn teak_row_hold(
    session: *const SessionHandle,
    table: *const TableHandle,
    pk: RawBytes,
) -> Status {
    // SAFETY: the handles are open, the key readable.
    unsafe {
        with_reader(session, |session| {
            let table = table.as_ref().ok_or(Stop::Misuse("no table"))?;
            session.hold_row(&table.table, pk.slice())
        })
    }
}

/// What a look has found: valid until the next look of the session.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawFound {
    /// Key of the entry in the tree that was looked at; len 0: nothing was found.
    pub entry: RawBytes,
    /// Primary key of the row.
    pub row: RawBytes,
}

/// The first row of the table that has a key that begins with `prefix` in tree `tree`, now, whatever snapshot the
/// session has; with `after` (len 0: from the start) behind the entry with that key. It is locked: exclusively if
/// `is_to_change`, else shared. `is_row`: the prefix is a whole primary key. `primary_of` gives the primary key that an
/// entry names (of an index; len 0: the entry is malformed); what it gives is its own until the next call, and it must
/// not call into Teak.
#[no_mangle]
pub unsafe extern "C" fn teak_look(
    session: *const SessionHandle,
    table: *const TableHandle,
    tree: u32,
    prefix: RawBytes,
    after: RawBytes,
    is_row: u8,
    is_to_change: u8,
    primary_of: unsafe extern "C" fn(*mut c_void, RawEntryView) -> RawBytes,
    context: *mut c_void,
    out: *mut RawFound,
) -> Status {
    // SAFETY: the handles are open, the keys readable, the result writable; the shim's function takes its own context,
    // and what it gives is readable until it is called again.
    unsafe {
        let primary_of = |key: &[u8], value: &[u8]| {
            let entry = RawEntryView { key: RawBytes::of(key), value: RawBytes::of(value) };
            let pk = primary_of(context, entry).slice();
            (!pk.is_empty()).then(|| pk.to_vec())
        };
        with_reader(session, |session| {
            let table = &table.as_ref().ok_or(Stop::Misuse("no table"))?.table;
            let look =
                Look { table, tree, prefix: prefix.slice(), is_row: is_row != 0, primary_of: &primary_of };
            let mode = if is_to_change != 0 { LockMode::Exclusive } else { LockMode::Shared };
            let after = Some(after.slice()).filter(|entry| !entry.is_empty());
            session.found = session.find(&look, after, mode)?;
            let bytes = |of: fn(&Found) -> &[u8]| {
                session.found.as_ref().map_or(RawBytes::NONE, |f| RawBytes::of(of(f)))
            };
            put(out, RawFound { entry: bytes(|found| &found.entry), row: bytes(|found| &found.row) });
            Ok(())
        })
    }
}
