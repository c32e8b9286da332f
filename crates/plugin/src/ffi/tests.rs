//! The C functions, called as the shim calls them.

use std::mem::MaybeUninit;
use std::os::raw::c_char;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

use teak_rows::engine::EngineHandle;

use super::border::*;
use super::callbacks::Callbacks;
use super::check::{teak_check_feed, teak_check_free};
use super::counts::teak_engine_metrics;
use super::foreign::{
    teak_look, teak_table_rename, teak_target_free, teak_target_new, RawFound, RawReading, TEAK_LOOK_ROW,
};
use super::status::Status;
use super::window::RawWindow;
use super::{cursor::*, engine::*, guard::*, row::*, session::*, table::*};

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log(_level: u32, text: *const c_char, len: usize) {
    // SAFETY: the engine hands over a text of that length.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    LOGGED.lock().unwrap().push(String::from_utf8_lossy(text).into_owned());
}

fn raw(bytes: &[u8]) -> Bytes<'_> {
    Bytes::of(bytes)
}

/// What a function makes that ends well.
fn made<T>(make: impl FnOnce(Out<'_, T>) -> Status) -> T {
    let mut out = MaybeUninit::uninit();
    assert_eq!(make(Some(&mut out)), Status::Ok);
    // SAFETY: a function that says so has stored its result.
    unsafe { out.assume_init() }
}

/// Where a result goes that takes the place of another.
fn into<T>(out: &mut T) -> Out<'_, T> {
    assert!(!std::mem::needs_drop::<T>());
    // SAFETY: what is stored there is a `T`, and what was there need not be dropped.
    Some(unsafe { &mut *std::ptr::from_mut(out).cast() })
}

/// What lies in the memory of a handle, looked at before the next call on it.
fn seen<'a>(bytes: RawBytes) -> &'a [u8] {
    // SAFETY: a function has stored it, and the tests call none on the handle before they have compared it.
    unsafe { bytes.slice() }
}

/// Whether the shim would take entries from the window.
fn is_open(window: *const RawWindow, moment: *const u64) -> bool {
    // SAFETY: cursor and session, whose the two are, live as long as the tests ask.
    unsafe { (*window).left > 0 && (*window).moment == *moment }
}

fn none<'a, T>() -> Array<'a, T> {
    Array::of(&[])
}

fn last_error() -> String {
    let mut buffer = [0; 300];
    let len = teak_last_error(Room::of(&mut buffer));
    let buffer = buffer.map(|byte| byte as u8);
    String::from_utf8_lossy(&buffer[..len.min(buffer.len() - 1)]).into_owned()
}

fn nothing() -> RawEntryView {
    RawEntryView { key: RawBytes::NONE, value: RawBytes::NONE }
}

/// An engine with a table of two trees, one of them plain.
#[allow(clippy::redundant_allocation)] // That is what C++ has.
struct Opened {
    engine: Option<Box<Arc<EngineHandle>>>,
    table: Option<Box<TableHandle>>,
    dir: PathBuf,
}

impl Opened {
    fn new(name: &str) -> Opened {
        let dir = std::env::temp_dir().join(format!("teak-border-{}-{name}", std::process::id()));
        let callbacks = Callbacks { log: Some(log), ..Callbacks::default() };
        let spec =
            [RawTreeSpec { block_bytes: 0, compression: TEAK_COMPRESSION_ZSTD, level: 0, similarity: 0 }; 2];
        let mut options = made(|out| {
            teak_options_default(out);
            Status::Ok
        });
        options.commit_flush = 0;
        options.directory = raw(dir.to_str().unwrap().as_bytes());
        let engine = made(|out| teak_engine_open(Some(&options), Some(&callbacks), out));
        let created = teak_table_create(Some(&engine), raw(b"db/t"), Array::of(&spec), raw(b"meta"));
        assert_eq!(created, Status::Ok);
        let table = made(|out| teak_table_open(Some(&engine), raw(b"db/t"), out));
        Opened { engine: Some(engine), table: Some(table), dir }
    }

    fn engine(&self) -> Option<&Arc<EngineHandle>> {
        self.engine.as_deref()
    }

    fn table(&self) -> Option<&TableHandle> {
        self.table.as_deref()
    }

    fn session(&self) -> Box<SessionHandle> {
        let session = made(|out| teak_session_new(self.engine(), null_mut(), 7, out));
        assert_eq!(teak_txn_begin(Some(&session), TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
        session
    }

    /// A row without entries.
    fn insert(&self, session: &SessionHandle, pk: &[u8], row: &[u8]) -> Status {
        teak_insert(Some(session), self.table(), raw(pk), raw(row), none(), 0, None)
    }

    /// Likewise; the row is there.
    fn update(&self, session: &SessionHandle, pk: &[u8], row: &[u8]) -> Status {
        teak_update(Some(session), self.table(), raw(pk), raw(pk), raw(row), none(), none(), 0, None)
    }

    /// A cursor of a new transaction over so many rows, which are in a block: keys are their numbers, values "old".
    fn cursor_over_rows(&self, session: &SessionHandle, rows: u32) -> Box<CursorHandle> {
        for n in 0..rows {
            assert_eq!(self.insert(session, &n.to_be_bytes(), b"old"), Status::Ok);
        }
        assert_eq!(teak_commit(Some(session)), Status::Ok);
        assert_eq!(teak_engine_checkpoint(self.engine()), Status::Ok);
        assert_eq!(teak_txn_begin(Some(session), TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
        made(|out| teak_cursor_new(self.table(), 0, 0, out))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        teak_table_close(self.table.take());
        teak_engine_close(self.engine.take());
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn what_looks_go_to_does_not_keep_a_dropped_table() {
    let mut opened = Opened::new("target");
    let session = opened.session();
    let mut found = RawFound { entry: RawBytes::NONE, row: RawBytes::NONE, count: 0 };
    assert_eq!(opened.insert(&session, b"1", b"row"), Status::Ok);
    let target = teak_target_new(opened.table());
    teak_table_close(opened.table.take());
    let mut look = || {
        let context = Context(null_mut());
        let reading = RawReading { primary_of: None, is_history: None, by_row: 0, context };
        let (target, reading, out) = (target.as_deref(), Some(&reading), into(&mut found));
        let none = Bytes::NONE;
        teak_look(Some(&session), target, 0, raw(b"1"), none, none, TEAK_LOOK_ROW, 1, reading, out)
    };
    assert_eq!(look(), Status::Ok);
    assert_eq!(teak_commit(Some(&session)), Status::Ok);
    assert_eq!(teak_table_drop(opened.engine(), raw(b"db/t")), Status::Ok);
    assert_eq!(teak_txn_begin(Some(&session), TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    assert_eq!(look(), Status::NoTable);
    assert_eq!(teak_rollback(Some(&session)), Status::Ok);
    teak_target_free(target);
    teak_session_free(Some(session));
    assert_eq!(found.count, 1);
}

#[test]
fn rows_go_in_and_come_out() {
    let opened = Opened::new("rows");
    let session = opened.session();
    let (of, mut out) = (Some(&*session), nothing());
    for n in 0..100u32 {
        let pk = n.to_be_bytes();
        let key = [&[n as u8 % 10][..], &pk].concat();
        let entry = [RawEntry { tree: 1, flags: 0, key: raw(&key), value: Bytes::NONE }];
        let inserted = teak_insert(of, opened.table(), raw(&pk), raw(b"row"), Array::of(&entry), 0, None);
        assert_eq!(inserted, Status::Ok);
    }
    assert_eq!(teak_txn_has_writes(of), 1);
    assert_eq!(teak_commit(of), Status::Ok);
    assert_eq!(teak_txn_is_active(of), 0);

    assert_eq!(teak_txn_begin(of, TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    let mut cursor = made(|out| teak_cursor_new(opened.table(), 1, 0, out));
    let end = RawBound { key: raw(&[3]), kind: TEAK_BOUND_INCLUDE };
    let (mut found, seek, read) = (0, TEAK_SEEK_AT_OR_AFTER, TEAK_READ_SNAPSHOT);
    let mut status =
        teak_cursor_seek(of, Some(&mut cursor), seek, raw(&[3]), Some(&end), read, into(&mut out));
    while status == Status::Ok {
        assert_eq!(seen(out.key)[0], 3);
        found += 1;
        status = teak_cursor_next(of, Some(&mut cursor), into(&mut out));
    }
    assert_eq!((found, status), (10, Status::End));
    let locking = TEAK_READ_EXCLUSIVE;
    let got = teak_cursor_get(of, Some(&mut cursor), raw(&[3, 0, 0, 0, 13]), locking, into(&mut out));
    assert_eq!(got, Status::Ok);
    let mut rows = made(|out| teak_cursor_new(opened.table(), 0, 0, out));
    let pk = RawBytes::of(&seen(out.key)[1..]);
    let mut entry = nothing();
    // SAFETY: the handles are open, and the key is in the memory of the first.
    let fetched = unsafe {
        teak_fetch_row(of, &mut *cursor, &mut *rows, pk, locking, into(&mut out), into(&mut entry))
    };
    assert_eq!(fetched, Status::Ok);
    assert_eq!(seen(out.value), b"row");
    assert_eq!(seen(entry.key), [3, 0, 0, 0, 13]);
    let rows_twice: *mut CursorHandle = &mut *rows;
    // SAFETY: likewise; that the two are one is refused before they are looked at.
    let fetched = unsafe { teak_fetch_row(of, rows_twice, rows_twice, pk, locking, into(&mut out), None) };
    assert_eq!(fetched, Status::Misuse);

    let estimate = made(|out| teak_estimate_range(of, opened.table(), 1, Some(&end), Some(&end), out));
    assert!((1..=100).contains(&estimate), "{estimate}");
    teak_cursor_reset(Some(&mut cursor));
    assert_eq!(teak_cursor_next(of, Some(&mut cursor), into(&mut out)), Status::End);
    teak_cursor_free(Some(rows));
    teak_cursor_free(Some(cursor));
    teak_session_free(Some(session));
}

#[test]
fn a_duplicate_comes_with_its_row() {
    let opened = Opened::new("duplicate");
    let session = opened.session();
    let (of, table) = (Some(&*session), opened.table());
    let value = [&2u16.to_le_bytes()[..], b"r1"].concat();
    let entry = [RawEntry { tree: 1, flags: TEAK_ENTRY_UNIQUE, key: raw(b"u"), value: raw(&value) }];
    let no_entry = [RawEntry { tree: 1, flags: 0, key: Bytes::NONE, value: Bytes::NONE }];
    let (entry, no_entry) = (|| Array::of(&entry), || Array::of(&no_entry));
    let mut duplicate = RawDuplicate { tree: 9, pk: RawBytes::NONE, late: 0, row: RawBytes::NONE };
    let (r1, r2) = (raw(b"r1"), raw(b"r2"));
    assert_eq!(teak_insert(of, table, r1, raw(b""), entry(), 0, None), Status::Ok);
    let refused = teak_insert(of, table, r2, raw(b""), entry(), 0, into(&mut duplicate));
    assert_eq!(refused, Status::Duplicate);
    assert_eq!((duplicate.tree, seen(duplicate.pk)), (1, &b"r1"[..]));
    assert_eq!(teak_insert(of, table, r2, raw(b""), no_entry(), 0, None), Status::Ok);
    assert_eq!(teak_update(of, table, r1, r1, raw(b"new"), entry(), no_entry(), 0, None), Status::Ok);
    assert_eq!(teak_delete(of, table, r2, no_entry(), 0), Status::Ok);
    assert_eq!(teak_delete(of, table, raw(b"r3"), none(), 0), Status::NotFound);
    teak_session_free(Some(session));
}

#[test]
fn handles_that_are_missing_are_misuse_and_say_so() {
    assert_eq!(teak_commit(None), Status::Misuse);
    assert!(last_error().contains("no session"));
    assert_eq!(teak_engine_checkpoint(None), Status::Misuse);
    assert_eq!(teak_table_create(None, raw(b"t"), none(), Bytes::NONE), Status::Misuse);
    assert_eq!(teak_check_feed(None, None, None, Context(null_mut())), Status::Misuse);
    teak_check_free(None);
    assert_eq!(teak_txn_is_active(None), 0);
    assert_eq!(teak_recover(None, Room::of(&mut []), 0), 0);
    teak_interrupt(None);
    teak_session_free(None);
    teak_cursor_free(None);
    teak_table_close(None);
}

#[test]
fn a_long_error_text_is_cut_between_characters() {
    remember(&"äöü");
    let mut buffer = [b'x' as c_char; 6];
    let len = teak_last_error(Room::of(&mut buffer));
    assert_eq!((len, &buffer.map(|byte| byte as u8)), (6, b"\xC3\xA4\xC3\xB6\0x"));
}

#[test]
fn a_panic_is_logged_and_turns_the_engine_read_only() {
    let opened = Opened::new("panic");
    let session = opened.session();
    let status = with_session(Some(&session), |_| panic!("the tree is on fire"));
    assert_eq!(status, Status::Internal);
    assert!(last_error().contains("the tree is on fire"));
    let logged = LOGGED.lock().unwrap().join("\n");
    assert!(logged.contains("the tree is on fire") && logged.contains("ffi/tests.rs"), "{logged}");
    assert_eq!(opened.insert(&session, b"1", b""), Status::ReadOnly);
    teak_session_free(Some(session));
}

#[test]
fn ddl_finds_and_loses_tables() {
    let opened = Opened::new("ddl");
    let engine = opened.engine();
    let create = |name: &[u8], block_bytes| {
        let (compression, level, similarity) = (TEAK_COMPRESSION_NONE, 0, 0);
        let spec = [RawTreeSpec { block_bytes, compression, level, similarity }];
        teak_table_create(engine, raw(name), Array::of(&spec), Bytes::NONE)
    };
    assert_eq!(create(b"db/t", 16 << 10), Status::Exists);
    assert_eq!(create(b"db/u", 16 << 10), Status::Ok);
    assert_eq!(teak_table_rename(engine, raw(b"db/u"), raw(b"db/v"), none(), 1, raw(b"")), Status::Ok);
    assert_eq!(teak_table_exists(engine, raw(b"db/u")), 0);
    assert_eq!(teak_table_exists(engine, raw(b"db/v")), 1);
    assert_eq!(create(b"/tmp/#sql-temptable-1", 16 << 10), Status::Ok);
    assert_eq!(made(|out| teak_tables_count(engine, out)), 2, "temporary ones do not count");
    assert_eq!(teak_tables_drop_temporary(engine), Status::Ok);
    assert_eq!(teak_table_exists(engine, raw(b"/tmp/#sql-temptable-1")), 0);
    assert_eq!(teak_table_exists(engine, raw(b"db/v")), 1);
    assert_eq!(teak_table_truncate(engine, raw(b"db/v")), Status::Ok);
    assert_eq!(teak_table_drop(engine, raw(b"db/u")), Status::NoTable);
    assert_eq!(teak_table_drop(engine, raw(b"\xFF")), Status::Misuse);
    assert_eq!(teak_tables_drop_prefix(engine, raw(b"db/")), Status::Ok);
    assert_eq!(teak_table_exists(engine, raw(b"db/t")), 0);
    assert_eq!(seen(teak_table_meta(opened.table())), b"meta");
    assert_eq!(teak_table_trees(opened.table()), 2);
    assert_eq!(create(b"w", 100), Status::Misuse);
}

#[test]
fn the_status_names_the_oldest_snapshot() {
    let opened = Opened::new("status");
    let session = opened.session();
    assert_eq!(teak_open_snapshot(Some(&session)), Status::Ok);
    let mut text = made(|out| teak_engine_status_text(opened.engine(), out));
    let said = seen(RawBytes { data: text.data.cast(), len: text.len }).to_vec();
    teak_buffer_free(Some(&mut text));
    teak_buffer_free(Some(&mut text));
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("oldest: session 7"), "{said}");
    let plain = teak_engine_metrics(opened.engine(), 0, Room::of(&mut []));
    // As plugin.cc has room for.
    assert!(plain > 0 && plain <= 128);
    assert!(teak_engine_metrics(opened.engine(), 1, Room::of(&mut [])) > plain + 100);
    // SAFETY: it consists of numbers.
    let mut snapshots: [RawSnapshot; 2] = unsafe { std::mem::zeroed() };
    assert_eq!(teak_engine_snapshots(opened.engine(), Room::of(&mut [])), 1);
    assert_eq!(teak_engine_snapshots(opened.engine(), Room::of(&mut snapshots)), 1);
    assert_eq!((snapshots[0].session, snapshots[0].too_old, snapshots[1].session), (7, 0, 0));
    teak_session_free(Some(session));
}

#[test]
fn prepared_transactions_are_listed_until_they_are_decided() {
    let opened = Opened::new("xa");
    let (one, two) = (opened.session(), opened.session());
    let mut xids = [const { RawXid { data: [0; 160], len: 0 } }; 4];
    for (session, xid) in [(one, b"b"), (two, b"a")] {
        assert_eq!(opened.insert(&session, xid, b""), Status::Ok);
        assert_eq!(teak_prepare(Some(&session), raw(xid), 1), Status::Ok);
        assert_eq!(teak_txn_is_prepared(Some(&session)), 1);
        teak_session_free(Some(session));
    }
    assert_eq!(teak_recover(opened.engine(), Room::of(&mut xids), 0), 2);
    assert_eq!((xids[0].data[0], xids[0].len), (b'a', 1));
    assert_eq!(teak_recover(opened.engine(), Room::of(&mut xids), 1), 1);
    assert_eq!(xids[0].data[0], b'b');
    assert_eq!(teak_commit_by_xid(opened.engine(), raw(b"a")), Status::Ok);
    assert_eq!(teak_rollback_by_xid(opened.engine(), raw(b"b")), Status::Ok);
    assert_eq!(teak_rollback_by_xid(opened.engine(), raw(b"b")), Status::NoXid);
    let mut statistics = RawTableStatistics::default();
    teak_table_get_statistics(opened.table(), into(&mut statistics));
    assert_eq!(statistics.rows, 1);
}

#[test]
fn a_tree_is_sampled_leaf_by_leaf() {
    let opened = Opened::new("sample");
    let session = opened.session();
    for n in 0..500u32 {
        opened.insert(&session, &n.to_be_bytes(), b"row");
    }
    assert_eq!(teak_commit(Some(&session)), Status::Ok);
    let mut outline = made(|out| teak_tree_outline(opened.table(), 0, raw(b""), raw(b""), out));
    assert!(outline.n_keys > 0 && outline.are_leaves == 1);
    // SAFETY: the sample, which is not given back yet, says so.
    let firsts = unsafe { std::slice::from_raw_parts(outline.keys, outline.n_keys) };
    let mut all = Vec::new();
    for first in firsts {
        let mut sample = made(|out| teak_tree_sample(opened.table(), 0, raw(seen(*first)), out));
        // SAFETY: likewise.
        let keys = unsafe { std::slice::from_raw_parts(sample.keys, sample.n_keys) };
        all.extend(keys.iter().map(|key| seen(*key).to_vec()));
        teak_sample_free(Some(&mut sample));
        teak_sample_free(Some(&mut sample));
    }
    assert!(all.is_sorted() && all.len() == 500);
    teak_sample_free(Some(&mut outline));
    teak_session_free(Some(session));
}

#[test]
fn a_window_ends_when_its_session_writes_to_the_table_or_takes_something_back() {
    let opened = Opened::new("windows");
    let session = opened.session();
    let mut cursor = opened.cursor_over_rows(&session, 200);
    let (of, mut out) = (Some(&*session), nothing());
    let pk = |n: u32| n.to_be_bytes();
    let (window, moment) = (teak_cursor_window(Some(&mut cursor)), teak_session_moment(of));
    let open = || is_open(window, moment);
    let end = RawBound { key: Bytes::NONE, kind: TEAK_BOUND_NONE };
    let change = |n: u32, value: &[u8]| opened.update(&session, &pk(n), value);

    let (seek, read) = (TEAK_SEEK_FIRST, TEAK_READ_SNAPSHOT);
    let found = teak_cursor_seek(of, Some(&mut cursor), seek, Bytes::NONE, Some(&end), read, into(&mut out));
    assert_eq!(found, Status::Ok);
    let mut at = 0;
    let mut go = |out: &mut RawEntryView| {
        at += 1;
        assert_eq!(teak_cursor_next(of, Some(&mut cursor), into(out)), Status::Ok);
        assert_eq!(seen(out.key), pk(at));
    };
    while !open() {
        go(&mut out);
    }
    // The next row of the window changes: the session's own scan has to see it.
    let next = u32::from_be_bytes(*seen(out.key).first_chunk().unwrap()) + 1;
    assert_eq!(teak_statement_begin(of, TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    assert_eq!(change(next, b"new"), Status::Ok);
    assert!(!open(), "a write to the table ends the window");
    go(&mut out);
    assert_eq!(seen(out.value), b"new");

    // Likewise when it is taken back.
    while !open() {
        go(&mut out);
    }
    assert_eq!(teak_statement_rollback(of), Status::Ok);
    assert!(!open(), "a rollback ends the window");
    let got = teak_cursor_get(of, Some(&mut cursor), raw(&pk(next)), read, into(&mut out));
    assert_eq!(got, Status::Ok);
    assert_eq!(seen(out.value), b"old");
    teak_cursor_free(Some(cursor));
    teak_session_free(Some(session));
}

#[test]
fn look_ups_in_key_order_open_a_window_that_ends_as_that_of_a_scan_does() {
    let opened = Opened::new("look-ups");
    let session = opened.session();
    let mut cursor = opened.cursor_over_rows(&session, 200);
    let (of, mut out) = (Some(&*session), nothing());
    let pk = |n: u32| n.to_be_bytes();
    let (window, moment) = (teak_cursor_window(Some(&mut cursor)), teak_session_moment(of));
    // SAFETY: the cursor, whose it is, lives to the end of the test.
    let open = || is_open(window, moment) && unsafe { (*window).looks_up } != 0;
    let mut get = |n: u32, value: &[u8]| {
        let (key, read) = (pk(n), TEAK_READ_SNAPSHOT);
        let status = teak_cursor_get(of, Some(&mut cursor), raw(&key), read, into(&mut out));
        assert_eq!((status, seen(out.key), seen(out.value)), (Status::Ok, &key[..], value));
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
    assert_eq!(teak_statement_begin(of, TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    assert_eq!(opened.update(&session, &pk(n + 1), b"new"), Status::Ok);
    assert!(!open(), "a write to the table ends it");
    get(n + 1, b"new");
    get(n + 2, b"old");
    assert_eq!(teak_statement_rollback(of), Status::Ok);
    assert!(!open(), "a rollback ends it");
    get(n + 1, b"old");
    // Keys that are far from each other, whose windows are of no use.
    let (mut opened_for_nothing, mut windows) = (0, 0);
    for n in (0..200).step_by(5) {
        get(n, b"old");
        windows += usize::from(open());
        // SAFETY: as above.
        opened_for_nothing += usize::from(open() && unsafe { (*window).left } < 4);
    }
    assert!(windows <= 3 && opened_for_nothing == 0, "{windows}");
    teak_cursor_free(Some(cursor));
    teak_session_free(Some(session));
}

#[test]
fn a_long_locking_scan_has_windows_where_many_rows_were_changed() {
    let opened = Opened::new("locked");
    let session = opened.session();
    let (of, mut out) = (Some(&*session), nothing());
    const ROWS: u32 = 12_000;
    for n in 0..ROWS {
        assert_eq!(opened.insert(&session, &n.to_be_bytes(), &[1; 100]), Status::Ok);
    }
    assert_eq!(teak_commit(of), Status::Ok);
    assert_eq!(teak_engine_checkpoint(opened.engine()), Status::Ok);
    assert_eq!(teak_txn_begin(of, TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    // So few that no leaf is due for consolidation, which would make another block of it.
    for n in (0..ROWS).filter(|n| n % 3 == 1) {
        assert_eq!(opened.update(&session, &n.to_be_bytes(), &[2; 8]), Status::Ok);
    }
    assert_eq!(teak_commit(of), Status::Ok);
    assert_eq!(teak_txn_begin(of, TEAK_REPEATABLE_READ, 1, 0), Status::Ok);
    let mut cursor = made(|out| teak_cursor_new(opened.table(), 0, 0, out));
    let window = teak_cursor_window(Some(&mut cursor));
    let end = RawBound { key: Bytes::NONE, kind: TEAK_BOUND_NONE };
    let (seek, read) = (TEAK_SEEK_FIRST, TEAK_READ_EXCLUSIVE);
    let mut status =
        teak_cursor_seek(of, Some(&mut cursor), seek, Bytes::NONE, Some(&end), read, into(&mut out));
    let (mut n, mut listed) = (0u32, 0);
    while status == Status::Ok {
        let value: &[u8] = if n % 3 == 1 { &[2; 8] } else { &[1; 100] };
        assert_eq!((seen(out.key), seen(out.value)), (&n.to_be_bytes()[..], value));
        // SAFETY: the cursor, whose it is, lives to the end of the test.
        listed += usize::from(unsafe { (*window).left > 0 && !(*window).listed.is_null() });
        status = teak_cursor_next(of, Some(&mut cursor), into(&mut out));
        n += 1;
    }
    assert_eq!((status, n), (Status::End, ROWS));
    assert!(listed > 100, "{listed}");
    teak_cursor_free(Some(cursor));
    teak_session_free(Some(session));
}
