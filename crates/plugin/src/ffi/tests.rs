//! The C functions, called as the shim calls them.

use std::os::raw::c_char;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use teak_rows::engine::EngineHandle;

use super::border::{
    CursorHandle, RawBound, RawBuffer, RawBytes, RawEntryView, SessionHandle, TableHandle,
    TEAK_BOUND_INCLUDE, TEAK_BOUND_NONE,
};
use super::callbacks::Callbacks;
use super::check::{teak_check_feed, teak_check_free};
use super::foreign::{
    teak_look, teak_table_rename, teak_target_free, teak_target_new, RawFound, RawReading, TEAK_LOOK_ROW,
};
use super::status::Status;
use super::{cursor::*, engine::*, guard::*, row::*, session::*, table::*};

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(_level: u32, text: *const c_char, len: usize) {
    // SAFETY: the engine hands over a text of that length.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    LOGGED.lock().unwrap().push(String::from_utf8_lossy(text).into_owned());
}

fn raw(bytes: &[u8]) -> RawBytes {
    RawBytes::of(bytes)
}

fn last_error() -> String {
    let mut buffer = [0u8; 300];
    // SAFETY: the buffer has that size.
    let len = unsafe { teak_last_error(buffer.as_mut_ptr().cast(), buffer.len()) };
    String::from_utf8_lossy(&buffer[..len.min(buffer.len() - 1)]).into_owned()
}

fn nothing() -> RawEntryView {
    RawEntryView { key: RawBytes::NONE, value: RawBytes::NONE }
}

/// An engine with a table of two trees, one of them plain.
struct Opened {
    engine: *mut EngineHandle,
    table: *mut TableHandle,
    dir: PathBuf,
}

impl Opened {
    fn new(name: &str) -> Opened {
        let dir = std::env::temp_dir().join(format!("teak-border-{}-{name}", std::process::id()));
        let callbacks = Callbacks { log: Some(log), ..Callbacks::default() };
        let (mut engine, mut table) = (null_mut(), null_mut());
        let mut options = std::mem::MaybeUninit::uninit();
        let spec =
            [RawTreeSpec { block_bytes: 0, compression: TEAK_COMPRESSION_ZSTD, level: 0, similarity: 0 }; 2];
        // SAFETY: all pointers are to locals of the right types.
        unsafe {
            teak_options_default(options.as_mut_ptr());
            let mut options = options.assume_init();
            options.commit_flush = 0;
            options.directory = raw(dir.to_str().unwrap().as_bytes());
            assert_eq!(teak_engine_open(&options, &callbacks, &mut engine), Status::Ok);
            assert_eq!(teak_table_create(engine, raw(b"db/t"), spec.as_ptr(), 2, raw(b"meta")), Status::Ok);
            assert_eq!(teak_table_open(engine, raw(b"db/t"), &mut table), Status::Ok);
        }
        Opened { engine, table, dir }
    }

    fn session(&self) -> *mut SessionHandle {
        let mut session = null_mut();
        // SAFETY: the engine is open.
        unsafe {
            assert_eq!(teak_session_new(self.engine, null_mut(), 7, &mut session), Status::Ok);
            assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
        }
        session
    }

    /// A cursor of a new transaction over so many rows, which are in a block: keys are their numbers, values "old".
    fn cursor_over_rows(&self, session: *mut SessionHandle, rows: u32) -> *mut CursorHandle {
        let mut cursor = null_mut();
        // SAFETY: handles are open, pointers are to locals.
        unsafe {
            for n in 0..rows {
                let pk = n.to_be_bytes();
                let status =
                    teak_insert(session, self.table, raw(&pk), raw(b"old"), null(), 0, 0, null_mut());
                assert_eq!(status, Status::Ok);
            }
            assert_eq!(teak_commit(session), Status::Ok);
            assert_eq!(teak_engine_checkpoint(self.engine), Status::Ok);
            assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
            assert_eq!(teak_cursor_new(self.table, 0, 0, &mut cursor), Status::Ok);
        }
        cursor
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the handles any more.
        unsafe {
            teak_table_close(self.table);
            teak_engine_close(self.engine);
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn what_looks_go_to_does_not_keep_a_dropped_table() {
    let mut opened = Opened::new("target");
    let session = opened.session();
    let mut found = RawFound { entry: RawBytes::NONE, row: RawBytes::NONE, count: 0 };
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        let inserted = teak_insert(session, opened.table, raw(b"1"), raw(b"row"), null(), 0, 0, null_mut());
        assert_eq!(inserted, Status::Ok);
        let target = teak_target_new(opened.table);
        teak_table_close(std::mem::replace(&mut opened.table, null_mut()));
        let none = RawBytes::NONE;
        let mut look = || {
            let reading = RawReading { primary_of: None, is_history: None, by_row: 0, context: null_mut() };
            teak_look(session, target, 0, raw(b"1"), none, none, TEAK_LOOK_ROW, 1, &reading, &mut found)
        };
        assert_eq!(look(), Status::Ok);
        assert_eq!(teak_commit(session), Status::Ok);
        assert_eq!(teak_table_drop(opened.engine, raw(b"db/t")), Status::Ok);
        assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
        assert_eq!(look(), Status::NoTable);
        assert_eq!(teak_rollback(session), Status::Ok);
        teak_target_free(target);
        teak_session_free(session);
    }
    assert_eq!(found.count, 1);
}

#[test]
fn rows_go_in_and_come_out() {
    let opened = Opened::new("rows");
    let session = opened.session();
    let mut cursor = null_mut();
    let mut out = nothing();
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        for n in 0..100u32 {
            let pk = n.to_be_bytes();
            let key = [&[n as u8 % 10][..], &pk].concat();
            let entry = RawEntry { tree: 1, flags: 0, key: raw(&key), value: RawBytes::NONE };
            let inserted =
                teak_insert(session, opened.table, raw(&pk), raw(b"row"), &entry, 1, 0, null_mut());
            assert_eq!(inserted, Status::Ok);
        }
        assert_eq!(teak_txn_has_writes(session), 1);
        assert_eq!(teak_commit(session), Status::Ok);
        assert_eq!(teak_txn_is_active(session), 0);

        assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
        assert_eq!(teak_cursor_new(opened.table, 1, 0, &mut cursor), Status::Ok);
        let end = RawBound { key: raw(&[3]), kind: TEAK_BOUND_INCLUDE };
        let mut found = 0;
        let mut status = teak_cursor_seek(
            session,
            cursor,
            TEAK_SEEK_AT_OR_AFTER,
            raw(&[3]),
            &end,
            TEAK_READ_SNAPSHOT,
            &mut out,
        );
        while status == Status::Ok {
            assert_eq!(out.key.slice()[0], 3);
            found += 1;
            status = teak_cursor_next(session, cursor, &mut out);
        }
        assert_eq!((found, status), (10, Status::End));
        let (mut rows, mut estimate) = (null_mut(), 0);
        assert_eq!(
            teak_cursor_get(session, cursor, raw(&[3, 0, 0, 0, 13]), TEAK_READ_EXCLUSIVE, &mut out),
            Status::Ok
        );
        assert_eq!(teak_cursor_new(opened.table, 0, 0, &mut rows), Status::Ok);
        let pk = RawBytes { data: out.key.data.add(1), len: 4 };
        let mut entry = nothing();
        assert_eq!(
            teak_fetch_row(session, cursor, rows, pk, TEAK_READ_EXCLUSIVE, &mut out, &mut entry),
            Status::Ok
        );
        assert_eq!(out.value.slice(), b"row");
        assert_eq!(entry.key.slice(), [3, 0, 0, 0, 13]);
        assert_eq!(
            teak_fetch_row(session, rows, rows, pk, TEAK_READ_EXCLUSIVE, &mut out, null_mut()),
            Status::Misuse
        );

        assert_eq!(teak_estimate_range(session, opened.table, 1, &end, &end, &mut estimate), Status::Ok);
        assert!((1..=100).contains(&estimate), "{estimate}");
        teak_cursor_reset(cursor);
        assert_eq!(teak_cursor_next(session, cursor, &mut out), Status::End);
        teak_cursor_free(rows);
        teak_cursor_free(cursor);
        teak_session_free(session);
    }
}

#[test]
fn a_duplicate_comes_with_its_row() {
    let opened = Opened::new("duplicate");
    let session = opened.session();
    let value = [&2u16.to_le_bytes()[..], b"r1"].concat();
    let entry = RawEntry { tree: 1, flags: TEAK_ENTRY_UNIQUE, key: raw(b"u"), value: raw(&value) };
    let none = RawEntry { tree: 1, flags: 0, key: RawBytes::NONE, value: RawBytes::NONE };
    let mut duplicate = RawDuplicate { tree: 9, pk: RawBytes::NONE, late: 0, row: RawBytes::NONE };
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        let table = opened.table;
        assert_eq!(teak_insert(session, table, raw(b"r1"), raw(b""), &entry, 1, 0, null_mut()), Status::Ok);
        let refused = teak_insert(session, table, raw(b"r2"), raw(b""), &entry, 1, 0, &mut duplicate);
        assert_eq!(refused, Status::Duplicate);
        assert_eq!((duplicate.tree, duplicate.pk.slice()), (1, &b"r1"[..]));
        assert_eq!(teak_insert(session, table, raw(b"r2"), raw(b""), &none, 1, 0, null_mut()), Status::Ok);
        let updated =
            teak_update(session, table, raw(b"r1"), raw(b"r1"), raw(b"new"), &entry, &none, 1, 0, null_mut());
        assert_eq!(updated, Status::Ok);
        assert_eq!(teak_delete(session, table, raw(b"r2"), &none, 1, 0), Status::Ok);
        assert_eq!(teak_delete(session, table, raw(b"r3"), null(), 0, 0), Status::NotFound);
        teak_session_free(session);
    }
}

#[test]
fn handles_that_are_missing_are_misuse_and_say_so() {
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        assert_eq!(teak_commit(null()), Status::Misuse);
        assert!(last_error().contains("no session"));
        assert_eq!(teak_engine_checkpoint(null()), Status::Misuse);
        assert_eq!(teak_table_create(null(), raw(b"t"), null(), 0, RawBytes::NONE), Status::Misuse);
        assert_eq!(teak_check_feed(null(), null_mut(), null(), null_mut()), Status::Misuse);
        teak_check_free(null_mut());
        assert_eq!(teak_txn_is_active(null()), 0);
        assert_eq!(teak_recover(null(), null_mut(), 0, 0), 0);
        teak_interrupt(null());
        teak_session_free(null_mut());
        teak_cursor_free(null_mut());
        teak_table_close(null_mut());
    }
}

#[test]
fn a_long_error_text_is_cut_between_characters() {
    remember(&"äöü");
    let mut buffer = [b'x'; 6];
    // SAFETY: the buffer has that size.
    let len = unsafe { teak_last_error(buffer.as_mut_ptr().cast(), buffer.len()) };
    assert_eq!((len, &buffer), (6, b"\xC3\xA4\xC3\xB6\0x"));
}

#[test]
fn a_panic_is_logged_and_turns_the_engine_read_only() {
    let opened = Opened::new("panic");
    let session = opened.session();
    // SAFETY: handles are open.
    unsafe {
        let status = with_session(session, |_| panic!("the tree is on fire"));
        assert_eq!(status, Status::Internal);
        assert!(last_error().contains("the tree is on fire"));
        let logged = LOGGED.lock().unwrap().join("\n");
        assert!(logged.contains("the tree is on fire") && logged.contains("ffi/tests.rs"), "{logged}");
        let refused = teak_insert(session, opened.table, raw(b"1"), raw(b""), null(), 0, 0, null_mut());
        assert_eq!(refused, Status::ReadOnly);
        teak_session_free(session);
    }
}

#[test]
fn ddl_finds_and_loses_tables() {
    let opened = Opened::new("ddl");
    let engine = opened.engine;
    let spec =
        RawTreeSpec { block_bytes: 16 << 10, compression: TEAK_COMPRESSION_NONE, level: 0, similarity: 0 };
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        assert_eq!(teak_table_create(engine, raw(b"db/t"), &spec, 1, RawBytes::NONE), Status::Exists);
        assert_eq!(teak_table_create(engine, raw(b"db/u"), &spec, 1, RawBytes::NONE), Status::Ok);
        assert_eq!(teak_table_rename(engine, raw(b"db/u"), raw(b"db/v"), null(), 0, 1, raw(b"")), Status::Ok);
        assert_eq!(teak_table_exists(engine, raw(b"db/u")), 0);
        assert_eq!(teak_table_exists(engine, raw(b"db/v")), 1);
        assert_eq!(
            teak_table_create(engine, raw(b"/tmp/#sql-temptable-1"), &spec, 1, RawBytes::NONE),
            Status::Ok
        );
        let mut tables = 0;
        assert_eq!(teak_tables_count(engine, &mut tables), Status::Ok);
        assert_eq!(tables, 2, "temporary ones do not count");
        assert_eq!(teak_tables_drop_temporary(engine), Status::Ok);
        assert_eq!(teak_table_exists(engine, raw(b"/tmp/#sql-temptable-1")), 0);
        assert_eq!(teak_table_exists(engine, raw(b"db/v")), 1);
        assert_eq!(teak_table_truncate(engine, raw(b"db/v")), Status::Ok);
        assert_eq!(teak_table_drop(engine, raw(b"db/u")), Status::NoTable);
        assert_eq!(teak_table_drop(engine, raw(b"\xFF")), Status::Misuse);
        assert_eq!(teak_tables_drop_prefix(engine, raw(b"db/")), Status::Ok);
        assert_eq!(teak_table_exists(engine, raw(b"db/t")), 0);
        assert_eq!(teak_table_meta(opened.table).slice(), b"meta");
        assert_eq!(teak_table_trees(opened.table), 2);
        let spec =
            RawTreeSpec { block_bytes: 100, compression: TEAK_COMPRESSION_NONE, level: 0, similarity: 0 };
        assert_eq!(teak_table_create(engine, raw(b"w"), &spec, 1, RawBytes::NONE), Status::Misuse);
    }
}

#[test]
fn the_status_names_the_oldest_snapshot() {
    let opened = Opened::new("status");
    let session = opened.session();
    let mut text = RawBuffer { data: null(), len: 0, owner: null_mut() };
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        assert_eq!(teak_open_snapshot(session), Status::Ok);
        assert_eq!(teak_engine_status_text(opened.engine, &mut text), Status::Ok);
        let seen = std::slice::from_raw_parts(text.data.cast::<u8>(), text.len).to_vec();
        teak_buffer_free(&mut text);
        teak_buffer_free(&mut text);
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.contains("oldest: session 7"), "{seen}");
        let n = teak_engine_status_variables(opened.engine, null_mut(), 0);
        assert!(n > 0 && n <= 64);
        let mut snapshots: [RawSnapshot; 2] = std::mem::zeroed();
        assert_eq!(teak_engine_snapshots(opened.engine, null_mut(), 0), 1);
        assert_eq!(teak_engine_snapshots(opened.engine, snapshots.as_mut_ptr(), 2), 1);
        assert_eq!((snapshots[0].session, snapshots[0].too_old, snapshots[1].session), (7, 0, 0));
        teak_session_free(session);
    }
}

#[test]
fn prepared_transactions_are_listed_until_they_are_decided() {
    let opened = Opened::new("xa");
    let (one, two) = (opened.session(), opened.session());
    let mut xids = [const { RawXid { data: [0; 160], len: 0 } }; 4];
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        for (session, xid) in [(one, b"b"), (two, b"a")] {
            let inserted = teak_insert(session, opened.table, raw(xid), raw(b""), null(), 0, 0, null_mut());
            assert_eq!(inserted, Status::Ok);
            assert_eq!(teak_prepare(session, raw(xid), 1), Status::Ok);
            assert_eq!(teak_txn_is_prepared(session), 1);
            teak_session_free(session);
        }
        assert_eq!(teak_recover(opened.engine, xids.as_mut_ptr(), 4, 0), 2);
        assert_eq!((xids[0].data[0], xids[0].len), (b'a', 1));
        assert_eq!(teak_recover(opened.engine, xids.as_mut_ptr(), 4, 1), 1);
        assert_eq!(xids[0].data[0], b'b');
        assert_eq!(teak_commit_by_xid(opened.engine, raw(b"a")), Status::Ok);
        assert_eq!(teak_rollback_by_xid(opened.engine, raw(b"b")), Status::Ok);
        assert_eq!(teak_rollback_by_xid(opened.engine, raw(b"b")), Status::NoXid);
        let mut statistics = std::mem::MaybeUninit::uninit();
        teak_table_get_statistics(opened.table, statistics.as_mut_ptr());
        assert_eq!(statistics.assume_init().rows, 1);
    }
}

#[test]
fn a_sample_is_grouped_by_leaves() {
    let opened = Opened::new("sample");
    let session = opened.session();
    let mut sample = std::mem::MaybeUninit::uninit();
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        for n in 0..500u32 {
            let pk = n.to_be_bytes();
            teak_insert(session, opened.table, raw(&pk), raw(b"row"), null(), 0, 0, null_mut());
        }
        assert_eq!(teak_commit(session), Status::Ok);
        assert_eq!(teak_tree_sample(opened.table, 0, 3, sample.as_mut_ptr()), Status::Ok);
        let mut sample = sample.assume_init();
        assert!((1..=3).contains(&sample.n_leaves));
        let ends = std::slice::from_raw_parts(sample.leaf_ends, sample.n_leaves);
        assert_eq!(ends.last(), Some(&sample.n_keys));
        let keys = std::slice::from_raw_parts(sample.keys, sample.n_keys);
        assert!(keys[..ends[0]].is_sorted_by(|a, b| a.slice() < b.slice()));
        teak_sample_free(&mut sample);
        teak_sample_free(&mut sample);
        teak_session_free(session);
    }
}

#[test]
fn a_window_ends_when_its_session_writes_to_the_table_or_takes_something_back() {
    let opened = Opened::new("windows");
    let session = opened.session();
    let cursor = opened.cursor_over_rows(session, 200);
    let mut out = nothing();
    let pk = |n: u32| n.to_be_bytes();
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        let (window, moment) = (teak_cursor_window(cursor), teak_session_moment(session));
        let open = || (*window).left > 0 && (*window).moment == *moment;
        let end = RawBound { key: RawBytes::NONE, kind: TEAK_BOUND_NONE };
        let change = |n: u32, value: &[u8]| {
            let (pk, table) = (pk(n), opened.table);
            teak_update(session, table, raw(&pk), raw(&pk), raw(value), null(), null(), 0, 0, null_mut())
        };

        assert_eq!(
            teak_cursor_seek(
                session,
                cursor,
                TEAK_SEEK_FIRST,
                RawBytes::NONE,
                &end,
                TEAK_READ_SNAPSHOT,
                &mut out
            ),
            Status::Ok
        );
        let mut at = 0;
        let mut go = |session, out: &mut RawEntryView| {
            at += 1;
            assert_eq!(teak_cursor_next(session, cursor, out), Status::Ok);
            assert_eq!(out.key.slice(), pk(at));
        };
        while !open() {
            go(session, &mut out);
        }
        // The next row of the window changes: the session's own scan has to see it.
        let next = u32::from_be_bytes(*out.key.slice().first_chunk().unwrap()) + 1;
        assert_eq!(teak_statement_begin(session), Status::Ok);
        assert_eq!(change(next, b"new"), Status::Ok);
        assert!(!open(), "a write to the table ends the window");
        go(session, &mut out);
        assert_eq!(out.value.slice(), b"new");

        // Likewise when it is taken back.
        while !open() {
            go(session, &mut out);
        }
        assert_eq!(teak_statement_rollback(session), Status::Ok);
        assert!(!open(), "a rollback ends the window");
        assert_eq!(
            teak_cursor_get(session, cursor, raw(&pk(next)), TEAK_READ_SNAPSHOT, &mut out),
            Status::Ok
        );
        assert_eq!(out.value.slice(), b"old");
        teak_cursor_free(cursor);
        teak_session_free(session);
    }
}

#[test]
fn look_ups_in_key_order_open_a_window_that_ends_as_that_of_a_scan_does() {
    let opened = Opened::new("look-ups");
    let session = opened.session();
    let cursor = opened.cursor_over_rows(session, 200);
    let mut out = nothing();
    let pk = |n: u32| n.to_be_bytes();
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        let (window, moment) = (teak_cursor_window(cursor), teak_session_moment(session));
        let open = || (*window).left > 0 && (*window).moment == *moment && (*window).looks_up != 0;
        let mut get = |n: u32, value: &[u8]| {
            let status = teak_cursor_get(session, cursor, raw(&pk(n)), TEAK_READ_SNAPSHOT, &mut out);
            assert_eq!((status, out.key.slice(), out.value.slice()), (Status::Ok, &pk(n)[..], value));
        };
        for n in [70, 9, 50, 8, 40, 7] {
            get(n, b"old");
            assert!(!open(), "not of look-ups in no order");
        }
        let mut n = 9;
        while !open() {
            n += 1;
            get(n, b"old");
        }
        assert!(n < 20, "neighbours open it soon");
        assert_eq!(teak_statement_begin(session), Status::Ok);
        let (next, table) = (pk(n + 1), opened.table);
        let changed = teak_update(
            session,
            table,
            raw(&next),
            raw(&next),
            raw(b"new"),
            null(),
            null(),
            0,
            0,
            null_mut(),
        );
        assert_eq!(changed, Status::Ok);
        assert!(!open(), "a write to the table ends it");
        get(n + 1, b"new");
        get(n + 2, b"old");
        assert_eq!(teak_statement_rollback(session), Status::Ok);
        assert!(!open(), "a rollback ends it");
        get(n + 1, b"old");
        // Keys that are far from each other, whose windows are of no use.
        let (mut opened_for_nothing, mut windows) = (0, 0);
        for n in (0..200).step_by(5) {
            get(n, b"old");
            windows += usize::from(open());
            opened_for_nothing += usize::from(open() && (*window).left < 4);
        }
        assert!(windows <= 3 && opened_for_nothing == 0, "{windows}");
        teak_cursor_free(cursor);
        teak_session_free(session);
    }
}

#[test]
fn a_long_locking_scan_has_windows_where_many_rows_were_changed() {
    let opened = Opened::new("locked");
    let session = opened.session();
    let mut cursor = null_mut();
    let mut out = nothing();
    const ROWS: u32 = 12_000;
    // SAFETY: handles are open, pointers are to locals.
    unsafe {
        let table = opened.table;
        for n in 0..ROWS {
            let pk = n.to_be_bytes();
            let status = teak_insert(session, table, raw(&pk), raw(&[1; 100]), null(), 0, 0, null_mut());
            assert_eq!(status, Status::Ok);
        }
        assert_eq!(teak_commit(session), Status::Ok);
        assert_eq!(teak_engine_checkpoint(opened.engine), Status::Ok);
        assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
        // So few that no leaf is due for consolidation, which would make another block of it.
        for n in (0..ROWS).filter(|n| n % 3 == 1) {
            let pk = n.to_be_bytes();
            let (old, new) = (raw(&pk), raw(&pk));
            let status =
                teak_update(session, table, old, new, raw(&[2; 8]), null(), null(), 0, 0, null_mut());
            assert_eq!(status, Status::Ok);
        }
        assert_eq!(teak_commit(session), Status::Ok);
        assert_eq!(teak_txn_begin(session, TEAK_REPEATABLE_READ, 0), Status::Ok);
        assert_eq!(teak_cursor_new(table, 0, 0, &mut cursor), Status::Ok);
        let window = teak_cursor_window(cursor);
        let end = RawBound { key: RawBytes::NONE, kind: TEAK_BOUND_NONE };
        let first = TEAK_SEEK_FIRST;
        let mut status =
            teak_cursor_seek(session, cursor, first, RawBytes::NONE, &end, TEAK_READ_EXCLUSIVE, &mut out);
        let (mut n, mut listed) = (0u32, 0);
        while status == Status::Ok {
            let value: &[u8] = if n % 3 == 1 { &[2; 8] } else { &[1; 100] };
            assert_eq!((out.key.slice(), out.value.slice()), (&n.to_be_bytes()[..], value));
            listed += usize::from((*window).left > 0 && !(*window).listed.is_null());
            status = teak_cursor_next(session, cursor, &mut out);
            n += 1;
        }
        assert_eq!((status, n), (Status::End, ROWS));
        assert!(listed > 100, "{listed}");
        teak_cursor_free(cursor);
        teak_session_free(session);
    }
}
