//! Where statements and connections begin and end. Called for each of them, so it has to be short.

use super::border::{paused, Bytes, OwnThread};
use super::hooks::functions;
use crate::control;

/// The thread works on a statement of this connection, which has this text; empty: that is not known. The text is
/// looked at now: the server may free it before the statement ends.
#[no_mangle]
pub extern "C" fn teak_heap_statement_begins(thread: OwnThread, connection: u64, query: Bytes<'_>) {
    paused(thread, (), |thread| control::begin_statement(thread, connection, query.slice()));
}

/// The statement is over.
#[no_mangle]
pub extern "C" fn teak_heap_statement_ends(thread: OwnThread) {
    paused(thread, (), |thread| thread.end());
}

/// The connection is gone.
#[no_mangle]
pub extern "C" fn teak_heap_connection_ends(thread: OwnThread, connection: u64) {
    paused(thread, (), |thread| {
        if let Ok(functions) = functions() {
            control::disconnect(thread, functions, connection);
        }
    });
}
