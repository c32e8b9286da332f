//! Tables with other trees and other metadata: ALTER, and what DDL recovery asks about it.

use std::os::raw::c_void;
use std::sync::Arc;

use super::border::{Array, Bytes, Context, RawBytes};
use super::engine::with_engine;
use super::foreign::{links_of, relinked, RawRelink};
use super::status::Status;
use super::table::RawTreeSpec;
use teak_core::server::{Alteration, Replacement, TableChange, TreeSource};
use teak_core::Error;
use teak_rows::engine::EngineHandle;
use teak_rows::outcome::{Result, Stop};

/// In a layout: a tree that is new and empty.
pub const TEAK_NEW_TREE: u32 = u32::MAX;

/// What becomes of a table.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawAlteration<'a> {
    pub name: Bytes<'a>,
    /// For each tree its place so far, or TEAK_NEW_TREE: new and empty, of `spec`; the first stays.
    pub layout: Array<'a, u32>,
    pub meta: Bytes<'a>,
    pub spec: RawTreeSpec,
    /// Not 0: blocks are written as `spec` says (but for its size) from now on, those that are there are rewritten in
    /// the background.
    pub repacks: u64,
    /// The next AUTO_INCREMENT value from now on; 0: as it is.
    pub counter: u64,
    /// Not 0: of a table in memory, that it may take `memory_limit` bytes from now on; 0: what all of them may.
    pub limits_memory: u64,
    pub memory_limit: u64,
    /// Not 0: builds from before row layouts refuse the table from now on.
    pub guarded: u64,
}

impl RawAlteration<'_> {
    fn layout(&self) -> Result<Vec<TreeSource>> {
        let spec = self.spec.spec()?;
        let source = |&place: &u32| match place {
            TEAK_NEW_TREE => TreeSource::New(spec),
            place => TreeSource::Keep(place as usize),
        };
        let layout: Vec<TreeSource> = self.layout.slice().iter().map(source).collect();
        if layout.first() != Some(&TreeSource::Keep(0)) {
            return Err(Stop::Misuse("a table without its rows"));
        }
        Ok(layout)
    }
}

/// Gives tables other trees, and other metadata, and tables (these or others) other links, all in one step. Open
/// handles of those in `alterations` must be closed and opened again. TEAK_LINK_EXISTS if another table has a link of a
/// name that is wanted.
#[no_mangle]
pub extern "C" fn teak_tables_alter(
    handle: Option<&Arc<EngineHandle>>,
    alterations: Array<'_, RawAlteration<'_>>,
    relinks: Array<'_, RawRelink<'_>>,
) -> Status {
    with_engine(handle, |engine| {
        let raw = alterations.slice();
        let layouts = raw.iter().map(|one| one.layout()).collect::<Result<Vec<_>>>()?;
        let mut parsed = Vec::with_capacity(raw.len());
        for (one, layout) in raw.iter().zip(&layouts) {
            let packing = (one.repacks != 0).then(|| one.spec.spec()).transpose()?.map(|spec| spec.packing);
            let counter = (one.counter != 0).then_some(one.counter);
            let (table, meta) = (one.name.name()?, one.meta.slice());
            let memory_limit = (one.limits_memory != 0).then_some(one.memory_limit);
            let guarded = one.guarded != 0;
            let alteration = Alteration { table, layout, meta, packing, counter, memory_limit, guarded };
            parsed.push(TableChange::Alter(alteration));
        }
        let relinks = relinks.slice();
        let links = links_of(relinks)?;
        Ok(engine.core.change(&parsed, &relinked(relinks, &links)?)?)
    })
}

/// Which table takes the place of which.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawReplacement<'a> {
    pub name: Bytes<'a>,
    /// The name so far of the one that comes.
    pub by: Bytes<'a>,
    /// Its next AUTO_INCREMENT value.
    pub counter: u64,
}

/// Tables go, and others have their names and links from then on, and tables (these or others) get other links, all in
/// one step. Handles of the tables that go must be closed and opened again. TEAK_LINK_EXISTS as of `teak_tables_alter`.
#[no_mangle]
pub extern "C" fn teak_tables_replace(
    handle: Option<&Arc<EngineHandle>>,
    replacements: Array<'_, RawReplacement<'_>>,
    relinks: Array<'_, RawRelink<'_>>,
) -> Status {
    with_engine(handle, |engine| {
        let raw = replacements.slice();
        let mut parsed = Vec::with_capacity(raw.len());
        for one in raw {
            let (table, by, counter) = (one.name.name()?, one.by.name()?, one.counter);
            parsed.push(TableChange::Replace(Replacement { table, by, counter }));
        }
        let relinks = relinks.slice();
        let links = links_of(relinks)?;
        Ok(engine.core.change(&parsed, &relinked(relinks, &links)?)?)
    })
}

/// Calls `visit` with the metadata of table `name` or, if there is none, of each whose name begins with `parts`.
#[no_mangle]
pub extern "C" fn teak_tables_meta(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    parts: Bytes<'_>,
    visit: unsafe extern "C" fn(*mut c_void, RawBytes),
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        let names = match engine.core.table_meta(name.name()?) {
            Ok(meta) => {
                context.tell(visit, RawBytes::of(&meta));
                return Ok(());
            }
            Err(Error::NoSuchTable(_)) => engine.core.table_names(parts.name()?)?,
            Err(error) => return Err(error.into()),
        };
        for part in names {
            let meta = engine.core.table_meta(&part)?;
            context.tell(visit, RawBytes::of(&meta));
        }
        Ok(())
    })
}
