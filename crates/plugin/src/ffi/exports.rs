//! Single tables: FLUSH TABLES ... FOR EXPORT, DISCARD and IMPORT TABLESPACE.

use std::os::raw::{c_int, c_void};
use std::path::Path;

use super::border::RawBytes;
use super::engine::with_engine;
use super::feed::{report, Context, WatchFunction};
use super::status::Status;
use super::table::RawTreeSpec;
use teak_core::server::{Admission, Incoming};
use teak_core::Error;
use teak_rows::engine::EngineHandle;

/// What is to become of a table that is imported, in memory of the shim until teak_table_import returns.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawAdmission {
    /// Its metadata until it has all of its rows.
    pub pending: RawBytes,
    /// From then on.
    pub meta: RawBytes,
    /// As in teak_alteration.
    pub guarded: u64,
    /// How its blocks are written that will change.
    pub spec: RawTreeSpec,
    /// Why it does not fit.
    pub refusal: RawBytes,
}

/// Told, on the calling thread, what a file says of the table in it: the definition that it was exported with, the
/// metadata, how many trees. Not 0: it does not fit.
pub type AdmitFunction =
    Option<unsafe extern "C" fn(*mut c_void, RawBytes, RawBytes, u64, *mut RawAdmission) -> c_int>;

/// Writes the table to the file `path`, with the `definition` that teak_table_import is to be shown. Nobody writes to
/// the table meanwhile. The file is the caller's; after an error there is none. `watch` is told how many bytes were
/// copied since it was told last, on the calling thread; not 0: stop (TEAK_INTERRUPTED).
#[no_mangle]
pub unsafe extern "C" fn teak_table_export(
    handle: *const EngineHandle,
    name: RawBytes,
    definition: RawBytes,
    path: RawBytes,
    watch: WatchFunction,
    context: *mut c_void,
) -> Status {
    let context = Context(context);
    // SAFETY: the handle is open, name, definition and path readable.
    unsafe {
        with_engine(handle, |engine| {
            let (path, watch) = (Path::new(path.name()?), |bytes| report(watch, context, bytes));
            Ok(engine.core.export_table(name.name()?, definition.slice(), path, &watch)?)
        })
    }
}

/// Empties the table as teak_table_truncate does, and gives it other metadata in the same step.
#[no_mangle]
pub unsafe extern "C" fn teak_table_empty(
    handle: *const EngineHandle,
    name: RawBytes,
    meta: RawBytes,
) -> Status {
    // SAFETY: the handle is open, the name and the metadata readable.
    unsafe { with_engine(handle, |engine| Ok(engine.core.empty(name.name()?, Some(meta.slice()))?)) }
}

/// Puts the rows of the file `path` into the table, in place of all that it has, if `admit` finds that they fit; if
/// not, TEAK_OTHER_DEFINITION. Nobody uses the table meanwhile. `watch` as for teak_table_export.
#[no_mangle]
pub unsafe extern "C" fn teak_table_import(
    handle: *const EngineHandle,
    name: RawBytes,
    path: RawBytes,
    admit: AdmitFunction,
    watch: WatchFunction,
    context: *mut c_void,
) -> Status {
    let context = Context(context);
    let ask = |incoming: Incoming<'_>| {
        let Some(admit) = admit else { return Err(Error::OtherDefinition("nobody knows it".into())) };
        let mut answer = RawAdmission {
            pending: RawBytes::NONE,
            meta: RawBytes::NONE,
            guarded: 0,
            spec: RawTreeSpec { block_bytes: 0, compression: 0, level: 0, similarity: 0 },
            refusal: RawBytes::NONE,
        };
        let (definition, meta) = (RawBytes::of(incoming.definition), RawBytes::of(incoming.meta));
        // SAFETY: the shim promised a function that takes its context; what it points to lives as long as this call of
        // the border, and is copied.
        unsafe {
            if admit(context.0, definition, meta, incoming.trees as u64, &mut answer) != 0 {
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
        }
    };
    // SAFETY: the handle is open, name and path readable.
    unsafe {
        with_engine(handle, |engine| {
            let (path, watch) = (Path::new(path.name()?), |bytes| report(watch, context, bytes));
            Ok(engine.core.import_table(name.name()?, path, &ask, &watch)?)
        })
    }
}
