//! Schemas that change while there are records.

use crate::place::{assert_sound, collect, metadata, put, Place};
use teak_archive::{Archive, Definition, Error, Result};

fn set(archive: &Archive, text: &str) -> Result<()> {
    archive.set_schema(&Definition::parse(text)?)
}

#[test]
fn a_schema_that_contradicts_a_record_changes_nothing_and_names_it() {
    let archive = Place::new(1).init();
    set(&archive, r#"{"namespaces": {"m": {"a": "string(10)", "n": "long"}}}"#).unwrap();
    let oid = put(&archive, b"1", &[("m.a", "0123456789")]).unwrap();
    let before = archive.schema();
    for (text, part) in [
        (
            r#"{"namespaces": {"m": {"a": "string(9)"}}}"#,
            "field m.a: a value of length 10 is too long for string(9)",
        ),
        (
            r#"{"namespaces": {"m": {"a": "string(10)", "n": {"type": "long", "required": true}}}}"#,
            "field m.n: is required, a long",
        ),
        (r#"{"namespaces": {"m": {"a": "long"}}}"#, "cannot become a long"),
    ] {
        let told = set(&archive, text).unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
        assert!(told.contains(&oid.to_string()) || text.contains("\"long\"}"), "{told}");
        assert_eq!(archive.schema(), before);
    }
    archive.update(oid, &metadata(&[("n", "5")])).unwrap();
    set(&archive, r#"{"namespaces": {"m": {"a": "string(10)", "n": {"type": "long", "required": true}}}}"#)
        .unwrap();
    let told = put(&archive, b"2", &[("m.a", "x")]).unwrap_err().to_string();
    assert!(told.contains("m.n: is required"), "{told}");
    // A field that comes again is another one.
    set(&archive, r#"{"namespaces": {"m": {"n": "long"}}}"#).unwrap();
    set(&archive, r#"{"namespaces": {"m": {"a": "long", "n": "long"}}}"#).unwrap();
    let fields = archive.record(oid).unwrap();
    assert!(fields.fields(&archive.schema()).iter().all(|(name, _)| *name != "m.a"));
    assert_sound(&archive);
}

#[test]
fn indexes_come_with_what_was_there_and_go_with_gc() {
    let place = Place::new(2);
    let archive = place.init();
    set(&archive, r#"{"namespaces": {"m": {"a": "string(10)", "n": "long"}}}"#).unwrap();
    for number in 0..2500 {
        let fields = [("m.a", "x"), ("m.n", &number.to_string())];
        put(&archive, &[number as u8], if number % 3 == 0 { &[] } else { &fields }).unwrap();
    }
    set(
        &archive,
        r#"{"namespaces": {"m": {"a": "string(10)", "n": "long"}}, "indexes": [["m.a", "m.n"], ["m.n"]]}"#,
    )
    .unwrap();
    assert!(archive.schema().indexes().all(|(_, is_ready)| is_ready));
    assert_sound(&archive);
    set(&archive, r#"{"namespaces": {"m": {"a": "string(10)", "n": "long"}}, "indexes": [["m.n"]]}"#)
        .unwrap();
    assert_sound(&archive);
    assert_eq!(collect(&archive).entries, 1666);
    assert_sound(&archive);
    archive.close().unwrap();
    let archive = place.open().unwrap();
    assert_eq!(archive.schema().indexes().count(), 3);
    assert_sound(&archive);
}

#[test]
fn an_index_that_a_crash_left_half_built_is_built_by_gc() {
    let mut place = Place::new(3);
    let archive = place.init();
    for number in 0..3000u32 {
        put(&archive, &number.to_be_bytes(), &[("file.name", &number.to_string())]).unwrap();
    }
    archive.engine().settings().set_commit_flush(teak_core::CommitFlush::Sync);
    place.fs.fail_from(5, teak_core::file::Fault::PowerCut);
    let told = set(&archive, r#"{"indexes": [["file.name"]]}"#);
    assert!(matches!(told, Err(Error::Core(_))), "{told:?}");
    drop(archive);
    place.fs = place.fs.crash();
    let archive = place.open().unwrap();
    collect(&archive);
    assert!(archive.schema().indexes().all(|(_, is_ready)| is_ready));
    assert_sound(&archive);
}
