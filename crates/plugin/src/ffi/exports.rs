//! Single tables: FLUSH TABLES ... FOR EXPORT, DISCARD and IMPORT TABLESPACE.

use std::os::raw::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use super::border::{Bytes, Context, RawBytes};
use super::engine::with_engine;
use super::feed::{report, WatchFunction};
use super::status::Status;
use super::table::RawTreeSpec;
use teak_core::server::{Admission, Incoming};
use teak_core::Error;
use teak_rows::engine::EngineHandle;

/// What is to become of a table that is imported, in memory of the shim until teak_table_import returns.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawAdmission<'a> {
    /// Its metadata until it has all of its rows.
    pub pending: Bytes<'a>,
    /// From then on.
    pub meta: Bytes<'a>,
    /// As in teak_alteration.
    pub guarded: u64,
    /// How its blocks are written that will change.
    pub spec: RawTreeSpec,
    /// Why it does not fit.
    pub refusal: Bytes<'a>,
}

/// Told, on the calling thread, what a file says of the table in it: the definition that it was exported with, the
/// metadata, how many trees. Not 0: it does not fit.
pub type AdmitFunction =
    Option<unsafe extern "C" fn(*mut c_void, RawBytes, RawBytes, u64, *mut RawAdmission<'_>) -> c_int>;

/// Writes the table to the file `path`, with the `definition` that teak_table_import is to be shown. Nobody writes to
/// the table meanwhile. The file is the caller's; after an error there is none. `watch` is told how many bytes were
/// copied since it was told last, on the calling thread; not 0: stop (TEAK_INTERRUPTED).
#[no_mangle]
pub extern "C" fn teak_table_export(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    definition: Bytes<'_>,
    path: Bytes<'_>,
    watch: WatchFunction,
    context: Context,
) -> Status {
    with_engine(handle, |engine| {
        let (path, watch) = (Path::new(path.name()?), |bytes| report(watch, context, bytes));
        Ok(engine.core.export_table(name.name()?, definition.slice(), path, &watch)?)
    })
}

/// Empties the table as teak_table_truncate does, and gives it other metadata in the same step.
#[no_mangle]
pub extern "C" fn teak_table_empty(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    meta: Bytes<'_>,
) -> Status {
    with_engine(handle, |engine| Ok(engine.core.empty(name.name()?, Some(meta.slice()))?))
}

/// Puts the rows of the file `path` into the table, in place of all that it has, if `admit` finds that they fit; if
/// not, TEAK_OTHER_DEFINITION. Nobody uses the table meanwhile. `watch` as for teak_table_export.
#[no_mangle]
pub extern "C" fn teak_table_import(
    handle: Option<&Arc<EngineHandle>>,
    name: Bytes<'_>,
    path: Bytes<'_>,
    admit: AdmitFunction,
    watch: WatchFunction,
    context: Context,
) -> Status {
    let ask = |incoming: Incoming<'_>| {
        let Some(admit) = admit else { return Err(Error::OtherDefinition("nobody knows it".into())) };
        let mut answer = RawAdmission {
            pending: Bytes::NONE,
            meta: Bytes::NONE,
            guarded: 0,
            spec: RawTreeSpec { block_bytes: 0, compression: 0, level: 0, similarity: 0 },
            refusal: Bytes::NONE,
        };
        let (definition, meta) = (RawBytes::of(incoming.definition), RawBytes::of(incoming.meta));
        // SAFETY: as for `Context::tell`. What the answer points to lives until teak_table_import returns.
        if unsafe { admit(context.0, definition, meta, incoming.trees as u64, &mut answer) } != 0 {
            let refusal = String::from_utf8_lossy(answer.refusal.slice()).into_owned();
            return Err(Error::OtherDefinition(refusal));
        }
        let spec = answer.spec.spec().map_err(|_| Error::OtherDefinition("its options".into()))?;
        Ok(Admission {
            pending: answer.pending.slice().to_vec(),
            meta: answer.meta.slice().to_vec(),
            guarded: answer.guarded != 0,
            packing: spec.packing,
        })
    };
    with_engine(handle, |engine| {
        let (path, watch) = (Path::new(path.name()?), |bytes| report(watch, context, bytes));
        Ok(engine.core.import_table(name.name()?, path, &ask, &watch)?)
    })
}
