//! Foreign keys: links between tables, which the shim gives their meaning, and looks at the rows of another table.

use std::os::raw::{c_int, c_void};
use std::sync::{Arc, Weak};

use super::border::{put, Array, Bytes, Context, Out, RawBytes, RawEntryView, SessionHandle, TableHandle};
use super::engine::{ask_engine, with_engine};
use super::feed::{report, WatchFunction};
use super::guard::value;
use super::session::{ask, with_reader, with_session};
use super::status::Status;
use super::table::{ask_table, tree_specs, RawTreeSpec};
use teak_core::server::{Link, NewTable, Relink, Renaming, Table};
use teak_core::{Error, LockMode, Residence, View, WaitPolicy};
use teak_rows::engine::EngineHandle;
use teak_rows::foreign::{Found, History, Look, PrimaryOf};
use teak_rows::orphans::{Kinship, Named, Relatives, Side};
use teak_rows::outcome::{Result, Stop};

/// A relation of one table to another, kept with the first.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawLink<'a> {
    /// Name of the table that has it; in teak_table_create_linked it is not looked at.
    pub table: Bytes<'a>,
    pub name: Bytes<'a>,
    /// Name of the table that it leads to, which need not exist.
    pub target: Bytes<'a>,
    /// The shim's.
    pub body: Bytes<'a>,
}

impl<'a> RawLink<'a> {
    fn of(table: &'a str, link: &'a Link) -> RawLink<'a> {
        RawLink {
            table: Bytes::of(table.as_bytes()),
            name: Bytes::of(link.name.as_bytes()),
            target: Bytes::of(link.target.as_bytes()),
            body: Bytes::of(&link.body),
        }
    }

    fn link(&self) -> Result<Link> {
        let (name, target, body) = (self.name.name()?, self.target.name()?, self.body.slice());
        Ok(Link { name: name.to_string(), target: target.to_string(), body: body.to_vec() })
    }
}

/// In memory alone: see teak_options.
pub const TEAK_RESIDENCE_MEMORY: u16 = 1;
/// In memory, and in a file as far as there is no room; nothing of the table outlives the server.
pub const TEAK_RESIDENCE_TEMPORARY: u16 = 2;
/// Both: in memory alone, and nothing of the table outlives the server.
pub const TEAK_RESIDENCE_TEMPORARY_MEMORY: u16 = 3;

/// As teak_table_create, of a table with one of TEAK_RESIDENCE_. `limit_bytes`, for those in memory alone: 0 if it may
/// take what all of them may. Temporary ones are made, changed and dropped without log or sync.
#[no_mangle]
pub extern "C" fn teak_table_create_resident(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    trees: Array<'_, RawTreeSpec>,
    meta: Bytes<'_>,
    residence: u16,
    limit_bytes: u64,
) -> Status {
    with_engine(handle, |engine| {
        let specs = tree_specs(trees)?;
        let residence = match residence {
            TEAK_RESIDENCE_MEMORY => Residence::Memory { limit_bytes },
            TEAK_RESIDENCE_TEMPORARY => Residence::Temporary { limit_bytes: None },
            TEAK_RESIDENCE_TEMPORARY_MEMORY => Residence::Temporary { limit_bytes: Some(limit_bytes) },
            _ => return Err(Stop::Misuse("no such residence")),
        };
        Ok(engine.core.create(NewTable {
            residence,
            meta: meta.slice(),
            ..NewTable::new(name.name()?, &specs)
        })?)
    })
}

/// As teak_table_create, with links to other tables.
#[no_mangle]
pub extern "C" fn teak_table_create_linked(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    trees: Array<'_, RawTreeSpec>,
    meta: Bytes<'_>,
    links: Array<'_, RawLink<'_>>,
) -> Status {
    with_engine(handle, |engine| {
        let specs = tree_specs(trees)?;
        let links = links.slice().iter().map(|l| l.link()).collect::<Result<Vec<_>>>()?;
        Ok(engine.core.create(NewTable {
            meta: meta.slice(),
            links: &links,
            ..NewTable::new(name.name()?, &specs)
        })?)
    })
}

/// Gives a table another name, and its links the names in `names`, in their order. `carries`: links of all tables that
/// lead to it follow. `successor_of` (len 0: of none): a table that is about to go, and gives it the names of its
/// links. TEAK_LINK_EXISTS if another table has a link with one of the names.
#[no_mangle]
pub extern "C" fn teak_table_rename(
    handle: Option<&Arc<EngineHandle>>,
    from: Bytes<'_>,
    to: Bytes<'_>,
    names: Array<'_, Bytes<'_>>,
    carries: u8,
    successor_of: Bytes<'_>,
) -> Status {
    with_engine(handle, |engine| {
        let names = names.slice().iter().map(|name| name.name()).collect::<Result<Vec<_>>>()?;
        let successor_of = Some(successor_of.name()?).filter(|name| !name.is_empty());
        let (carries, link_names) = (carries != 0, Some(&names[..]));
        let renaming = Renaming::new(from.name()?, to.name()?);
        Ok(engine.core.rename(Renaming { carries, link_names, successor_of, ..renaming })?)
    })
}

/// Whether a table other than `table` has a link of this name.
#[no_mangle]
pub extern "C" fn teak_link_is_of_other(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    table: Bytes<'_>,
    out: Out<'_, u8>,
) -> Status {
    with_engine(handle, |engine| {
        let (holder, table) = (engine.core.table_with_link(name.name()?)?, table.name()?);
        put(out, u8::from(holder.is_some_and(|holder| holder != table)));
        Ok(())
    })
}

/// What becomes of a table's links.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawRelink<'a> {
    pub table: Bytes<'a>,
    /// All that it has from now on.
    pub links: Array<'a, RawLink<'a>>,
}

impl RawRelink<'_> {
    fn links(&self) -> Result<Vec<Link>> {
        self.links.slice().iter().map(|link| link.link()).collect()
    }
}

/// The links of each, which [`relinked`] refers to.
pub(super) fn links_of(relinks: &[RawRelink<'_>]) -> Result<Vec<Vec<Link>>> {
    relinks.iter().map(|relink| relink.links()).collect()
}

/// As the engine takes them.
pub(super) fn relinked<'a>(relinks: &'a [RawRelink<'_>], links: &'a [Vec<Link>]) -> Result<Vec<Relink<'a>>> {
    let each = relinks.iter().zip(links);
    each.map(|(relink, links)| Ok(Relink { table: relink.table.name()?, links })).collect()
}

/// Calls `visit` with each link that the table has. TEAK_NO_TABLE if there is none of this name.
#[no_mangle]
pub extern "C" fn teak_links_of(
    handle: Option<&Arc<EngineHandle>>,
    table: Bytes<'_>,
    visit: unsafe extern "C" fn(*mut c_void, RawLink<'_>),
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        let name = table.name()?;
        engine.core.links(name)?.iter().for_each(|link| context.tell(visit, RawLink::of(name, link)));
        Ok(())
    })
}

/// Calls `visit` with each link that leads to the table, which need not exist.
#[no_mangle]
pub extern "C" fn teak_links_to(
    handle: Option<&Arc<EngineHandle>>,
    table: Bytes<'_>,
    visit: unsafe extern "C" fn(*mut c_void, RawLink<'_>),
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        let links = engine.core.links_to(table.name()?)?;
        links.iter().for_each(|(from, link)| context.tell(visit, RawLink::of(from, link)));
        Ok(())
    })
}

/// Calls `visit` with each link of each table.
#[no_mangle]
pub extern "C" fn teak_all_links(
    handle: Option<&Arc<EngineHandle>>,
    visit: unsafe extern "C" fn(*mut c_void, RawLink<'_>),
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        for name in engine.core.linked_tables()? {
            // It may have gone since.
            let links = match engine.core.links(&name) {
                Err(Error::NoSuchTable(_)) => continue,
                links => links?,
            };
            links.iter().for_each(|link| context.tell(visit, RawLink::of(&name, link)));
        }
        Ok(())
    })
}

/// Grows after each change of a table that has links or that links lead to: what was found out about links holds as
/// long as it is what it was before that was asked.
#[no_mangle]
pub extern "C" fn teak_link_changes(handle: Option<&Arc<EngineHandle>>) -> u64 {
    ask_engine(handle, |engine| engine.core.link_changes())
}

/// What is written from here on, teak_row_undo undoes; until the next call of this with that depth or a smaller one.
/// `depth` is that of the row in a cascade, from 0 on, one after the other.
#[no_mangle]
pub extern "C" fn teak_row_mark(session: Option<&SessionHandle>, depth: usize) -> Status {
    with_reader(session, |session| session.mark_row(depth))
}

/// Undoes the row operations since teak_row_mark with this depth; locks are kept.
#[no_mangle]
pub extern "C" fn teak_row_undo(session: Option<&SessionHandle>, depth: usize) -> Status {
    with_session(session, |session| session.undo_row(depth))
}

/// Locks a row that is about to be changed, before it is asked whether others name it. TEAK_NOT_FOUND: it has gone.
#[no_mangle]
pub extern "C" fn teak_row_hold(
    session: Option<&SessionHandle>,
    table: Option<&TableHandle>,
    pk: Bytes<'_>,
) -> Status {
    with_reader(session, |session| {
        let table = table.ok_or(Stop::Misuse("no table"))?;
        session.hold_row(&table.table, pk.slice())
    })
}

/// How the rows of a table are read by constraints. Its functions get its context, and must not call into Teak.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawReading {
    /// The primary key that an entry of an index names (len 0: the entry is malformed); what it gives is its own until
    /// the next call.
    pub primary_of: Option<unsafe extern "C" fn(context: *mut c_void, entry: RawEntryView) -> RawBytes>,
    /// Given a primary key, or (`by_row`) a row: not 0 if that row is history, which constraints do not see. NULL: none
    /// is.
    pub is_history: Option<unsafe extern "C" fn(context: *mut c_void, row: RawBytes) -> c_int>,
    /// Keys do not say it.
    pub by_row: u8,
    /// The shim's.
    pub context: Context,
}

impl RawReading {
    fn primary_of(&self, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let entry = RawEntryView { key: RawBytes::of(key), value: RawBytes::of(value) };
        let pk = self.context.tell(self.primary_of?, entry);
        // SAFETY: what the function gives is readable until it is called again.
        let pk = unsafe { pk.slice() };
        (!pk.is_empty()).then(|| pk.to_vec())
    }

    fn is_history(&self, row: &[u8]) -> bool {
        self.is_history.is_some_and(|says| self.context.tell(says, RawBytes::of(row)) != 0)
    }

    fn history<'a>(&self, says: &'a dyn Fn(&[u8]) -> bool) -> History<'a> {
        match self.is_history {
            None => History::Never,
            Some(_) if self.by_row != 0 => History::ByRow(says),
            Some(_) => History::ByKey(says),
        }
    }
}

/// What a look has found, and how much more teak_look_found has: valid until the next look of the session.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawFound {
    /// Key of the entry in the tree that was looked at; len 0: nothing was found.
    pub entry: RawBytes,
    /// Primary key of the row.
    pub row: RawBytes,
    /// So many rows were found.
    pub count: usize,
}

impl RawFound {
    fn of(all: &[Found], place: usize) -> RawFound {
        let bytes = |of: fn(&Found) -> &[u8]| all.get(place).map_or(RawBytes::NONE, |f| RawBytes::of(of(f)));
        RawFound { entry: bytes(|found| &found.entry), row: bytes(|found| &found.row), count: all.len() }
    }
}

/// A table that looks go to. It does not keep the table open, nor its file, once the table has been dropped.
pub struct TargetHandle {
    engine: Arc<EngineHandle>,
    name: String,
    table: Weak<Table>,
}

impl TargetHandle {
    /// What has the name now, if it is another one.
    fn table(&self) -> Result<Arc<Table>> {
        match self.table.upgrade() {
            Some(table) => Ok(table),
            None => Ok(self.engine.core.open_table(&self.name)?),
        }
    }
}

/// NULL if `table` is.
#[no_mangle]
pub extern "C" fn teak_target_new(table: Option<&TableHandle>) -> Option<Box<TargetHandle>> {
    ask_table(table, |t| {
        let (engine, name) = (t.engine.clone(), t.table.name());
        Some(Box::new(TargetHandle { engine, name, table: Arc::downgrade(&t.table) }))
    })
}

/// NULL is ignored.
#[no_mangle]
pub extern "C" fn teak_target_free(target: Option<Box<TargetHandle>>) {
    value(None, (), || drop(target));
}

/// Flag of teak_look: the prefix is a whole primary key.
pub const TEAK_LOOK_ROW: u32 = 1;
/// Flag of teak_look: what is found is locked exclusively, else shared.
pub const TEAK_LOOK_TO_CHANGE: u32 = 2;
/// Flag of teak_look: if nothing is found, nobody else puts it in before the transaction ends (above READ COMMITTED);
/// with TEAK_LOOK_TO_CHANGE nobody else puts more of it in.
pub const TEAK_LOOK_STAYS_MISSING: u32 = 4;
/// Flag of teak_look: TEAK_WOULD_BLOCK, rather than a wait for another transaction's row.
pub const TEAK_LOOK_NO_WAIT: u32 = 8;
/// Flag of teak_look: the table keeps its rows before the transaction ends (teak_table_wait_for_holders).
pub const TEAK_LOOK_COUNTS_ON: u32 = 16;

/// 0 or 1: the open transaction has looked at the table so that it keeps its rows, and somebody waits for that
/// (teak_table_wait_for_holders): the table is as it was, to the end of the transaction.
#[no_mangle]
pub extern "C" fn teak_txn_is_awaited(session: Option<&SessionHandle>, target: Option<&TargetHandle>) -> u8 {
    let table = target.and_then(|target| target.table.upgrade());
    u8::from(table.is_some_and(|table| ask(session, |session| session.is_awaited(&table))))
}

/// The first rows, at most `most`, of the table that have a key that begins with `prefix` in tree `tree`, now, whatever
/// snapshot the session has; with `after` (len 0: from the start) behind the entry with that key. They are locked, and
/// no history, nor the row with the primary key `except` (len 0: none).
#[no_mangle]
pub extern "C" fn teak_look(
    session: Option<&SessionHandle>,
    target: Option<&TargetHandle>,
    tree: u32,
    prefix: Bytes<'_>,
    after: Bytes<'_>,
    except: Bytes<'_>,
    flags: u32,
    most: usize,
    reading: Option<&RawReading>,
    out: Out<'_, RawFound>,
) -> Status {
    with_reader(session, |session| {
        let (Some(target), Some(reading)) = (target, reading) else {
            return Err(Stop::Misuse("no table"));
        };
        let has = |flag| flags & flag != 0;
        let primary_of = |key: &[u8], value: &[u8]| reading.primary_of(key, value);
        let says = |row: &[u8]| reading.is_history(row);
        let look = Look {
            table: &*target.table()?,
            tree,
            prefix: prefix.slice(),
            is_row: has(TEAK_LOOK_ROW),
            primary_of: &primary_of,
            history: reading.history(&says),
            except: except.non_empty(),
            policy: if has(TEAK_LOOK_NO_WAIT) { WaitPolicy::NoWait } else { WaitPolicy::Wait },
            stays_missing: has(TEAK_LOOK_STAYS_MISSING),
            counts_on: has(TEAK_LOOK_COUNTS_ON),
        };
        let mode = if has(TEAK_LOOK_TO_CHANGE) { LockMode::Exclusive } else { LockMode::Shared };
        session.found = session.find(&look, after.non_empty(), mode, most)?;
        put(out, RawFound::of(&session.found, 0));
        Ok(())
    })
}

/// What the last teak_look has found, from place 0 on.
#[no_mangle]
pub extern "C" fn teak_look_found(
    session: Option<&SessionHandle>,
    place: usize,
    out: Out<'_, RawFound>,
) -> Status {
    with_reader(session, |session| {
        put(out, RawFound::of(&session.found, place));
        Ok(())
    })
}

/// What an entry of a child's index names.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawNamed {
    /// With this the parent's key begins; len 0: it names nothing.
    pub parent: RawBytes,
    /// So many bytes of the child's key say that; 0: the entry is malformed.
    pub bytes: usize,
}

/// What is called for the rows of a child; all get the context of teak_find_orphans.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRelatives {
    /// What it gives is its own until the next call.
    pub named: Option<unsafe extern "C" fn(context: *mut c_void, child: RawBytes) -> RawNamed>,
    /// Takes an entry that names a parent which is not there; 0: that is enough.
    pub orphan: Option<unsafe extern "C" fn(context: *mut c_void, entry: RawEntryView) -> c_int>,
    /// Now and then, with the entries so far. Not 0: stop (TEAK_INTERRUPTED).
    pub watch: WatchFunction,
}

/// The shim's functions with their context.
struct Asked<'a> {
    functions: &'a RawRelatives,
    context: Context,
    table: &'a Table,
    tree: u32,
}

impl Relatives for Asked<'_> {
    fn named(&mut self, child: &[u8]) -> Result<Named<'_>> {
        let ask = self.functions.named.ok_or(Stop::Misuse("nobody knows what is named"))?;
        let RawNamed { parent, bytes } = self.context.tell(ask, RawBytes::of(child));
        // SAFETY: what the function gives is readable until it is called again, for which `self` has to be free.
        let parent = unsafe { parent.slice() };
        match bytes == 0 || bytes > child.len() {
            true => Err(Stop::Inconsistent { table: self.table.name(), tree: self.tree }),
            false => Ok(Named { parent: Some(parent).filter(|parent| !parent.is_empty()), bytes }),
        }
    }

    fn orphan(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let entry = RawEntryView { key: RawBytes::of(key), value: RawBytes::of(value) };
        Ok(self.functions.orphan.is_some_and(|tell| self.context.tell(tell, entry) != 0))
    }

    fn watch(&mut self, entries: u64) -> Result<()> {
        Ok(report(self.functions.watch, self.context, entries)?)
    }
}

/// Tells of all rows of one table that name a row of another which is not there. `tree`: the trees with the keys by
/// which they name and are named. `latest` not 0: what is committed, for who keeps writers out of both; else as of the
/// session's snapshot.
#[no_mangle]
pub extern "C" fn teak_find_orphans(
    session: Option<&SessionHandle>,
    child: Option<&TableHandle>,
    child_tree: u32,
    child_reading: Option<&RawReading>,
    parent: Option<&TableHandle>,
    parent_tree: u32,
    parent_reading: Option<&RawReading>,
    latest: u8,
    functions: Option<&RawRelatives>,
    context: Context,
) -> Status {
    with_session(session, |session| {
        let (Some(child), Some(parent), Some(functions)) = (child, parent, functions) else {
            return Err(Stop::Misuse("no table"));
        };
        let (child, parent) = (&child.table, &parent.table);
        if child_tree as usize >= child.trees() || parent_tree as usize >= parent.trees() {
            return Err(Stop::Misuse("no such tree"));
        }
        let (Some(of_child), Some(of_parent)) = (child_reading, parent_reading) else {
            return Err(Stop::Misuse("nobody reads rows"));
        };
        let view = if latest != 0 { View::Latest } else { View::Snapshot };
        let primary_of_child: &PrimaryOf<'_> = &|key, value| of_child.primary_of(key, value);
        let primary_of_parent: &PrimaryOf<'_> = &|key, value| of_parent.primary_of(key, value);
        let child_says = |row: &[u8]| of_child.is_history(row);
        let parent_says = |row: &[u8]| of_parent.is_history(row);
        let kinship = Kinship {
            child: Side {
                table: child,
                tree: child_tree,
                primary_of: primary_of_child,
                history: of_child.history(&child_says),
            },
            parent: Side {
                table: parent,
                tree: parent_tree,
                primary_of: primary_of_parent,
                history: of_parent.history(&parent_says),
            },
            view,
        };
        session.find_orphans(&kinship, &mut Asked { functions, context, table: child, tree: child_tree })
    })
}
