//! The matrix of holds: each door of the library times each protection.

use crate::place::{assert_sound, get, metadata, put, Place, SECOND};
use std::sync::atomic::Ordering;
use teak_archive::{Archive, Definition, Digest, Error, Name, Oid, Protecting};

const SCHEMA: &str = r#"{"namespaces": {"m": {"a": "string(10)"}}}"#;

/// What would remove or change something; whether it was refused.
type Door = (&'static str, fn(&Archive, Oid) -> Result<(), Error>);

const DOORS: [Door; 4] = [
    ("remove", |archive, oid| archive.remove(oid)),
    ("update", |archive, oid| archive.update(oid, &metadata(&[("m.a", "2")])).map(|_| ())),
    ("drop the field", |archive, _| archive.set_schema(&Definition::default())),
    ("remove and collect", |archive, oid| {
        archive.remove(oid)?;
        archive.collect(Some(0), &|| false).map(|_| ())
    }),
];

fn archive() -> (Place, Archive, Oid) {
    let place = Place::new(1);
    let archive = place.init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    let oid = put(&archive, b"evidence", &[("m.a", "1")]).unwrap();
    (place, archive, oid)
}

fn untouched(archive: &Archive, oid: Oid) {
    assert_eq!(get(archive, Name::Record(oid)).unwrap(), b"evidence");
    let record = archive.record(oid).unwrap();
    assert_eq!(
        (record.version, record.fields(&archive.schema()).last().unwrap().1.to_string()),
        (1, "1".into())
    );
    assert_sound(archive);
}

#[test]
fn no_door_passes_a_protection_of_a_record() {
    for (name, door) in DOORS {
        for is_hold in [true, false] {
            let (place, archive, oid) = archive();
            let until = place.now.load(Ordering::SeqCst) + 100 * SECOND;
            let what = if is_hold { Protecting::Hold("case".into()) } else { Protecting::Retain(until) };
            archive.protect(Name::Record(oid), &what).unwrap();
            assert!(matches!(door(&archive, oid), Err(Error::Protected { .. })), "{name}");
            untouched(&archive, oid);
            match is_hold {
                true => archive.protect(Name::Record(oid), &Protecting::Release("case".into())).unwrap(),
                false => place.pass(101),
            }
            door(&archive, oid).unwrap();
        }
    }
}

#[test]
fn no_door_passes_a_protection_of_data() {
    for (name, door) in DOORS.iter().filter(|(name, _)| name.starts_with("remove")) {
        for is_hold in [true, false] {
            let (place, archive, oid) = archive();
            let until = place.now.load(Ordering::SeqCst) + 100 * SECOND;
            let what = if is_hold { Protecting::Hold("case".into()) } else { Protecting::Retain(until) };
            archive.protect(Name::Data(Digest::of(b"evidence")), &what).unwrap();
            assert!(matches!(door(&archive, oid), Err(Error::Protected { .. })), "{name}");
            untouched(&archive, oid);
        }
    }
}

#[test]
fn gc_keeps_protected_data_that_has_no_record_and_takes_it_when_it_is_released() {
    let (place, archive, oid) = archive();
    let data = Name::Data(Digest::of(b"evidence"));
    archive.remove(oid).unwrap();
    let hold = |name: &str| archive.protect(data, &Protecting::Hold(name.into()));
    hold("one").unwrap();
    hold("two").unwrap();
    place.pass(1_000_000);
    for release in ["one", "two"] {
        let collected = archive.collect(Some(0), &|| false).unwrap();
        assert_eq!((collected.data, collected.kept), (0, 1));
        assert_eq!(get(&archive, data).unwrap(), b"evidence");
        archive.protect(data, &Protecting::Release(release.into())).unwrap();
    }
    assert_eq!(archive.collect(Some(0), &|| false).unwrap().data, 1);
    assert_sound(&archive);
}

#[test]
fn retention_becomes_longer_and_never_shorter_and_holds_have_names() {
    let (_place, archive, oid) = archive();
    let name = Name::Record(oid);
    archive.protect(name, &Protecting::Retain(2_000_000_000 * SECOND)).unwrap();
    let told = archive.protect(name, &Protecting::Retain(1_900_000_000 * SECOND)).unwrap_err().to_string();
    assert!(told.contains("longer, not shorter"), "{told}");
    archive.protect(name, &Protecting::Retain(2_100_000_000 * SECOND)).unwrap();
    for wrong in ["", "a\nb", &"x".repeat(256)] {
        assert!(archive.protect(name, &Protecting::Hold(wrong.to_string())).is_err());
    }
    assert!(archive.protect(name, &Protecting::Release("none".into())).is_err());
    archive.protect(name, &Protecting::Hold("b".into())).unwrap();
    archive.protect(name, &Protecting::Hold("a".into())).unwrap();
    let told = archive.remove(oid).unwrap_err().to_string();
    assert!(told.contains("retained until 2036") && told.contains("on hold by a, b"), "{told}");
    let mut actions = Vec::new();
    archive
        .audit(0, &mut |entry| {
            assert_eq!(entry.actor, "tester");
            actions.push(entry.action.clone());
            Ok(true)
        })
        .unwrap();
    assert_eq!(actions, ["schema", "retain", "retain", "hold", "hold"]);
}
