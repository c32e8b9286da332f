//! Views: directories made of fields.

use crate::place::{assert_sound, put, seed, Place, Random};
use std::collections::{BTreeMap, BTreeSet};
use teak_archive::{Archive, Definition, Item, Oid, Query, View};

const SCHEMA: &str = r#"{"namespaces": {"m": {"artist": "string(400)", "album": "string(400)", "track": "long", "title": "string(600)", "ext": "string(9)"}}}"#;

fn archive() -> Archive {
    let archive = Place::new(1).init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    archive
}

fn view(archive: &Archive, name: &str, pattern: &str, condition: &str) {
    archive.create_view(name, &View { pattern: pattern.into(), condition: condition.into() }).unwrap();
}

fn names(archive: &Archive, view: &str, path: &str) -> Vec<String> {
    let listing = archive.list_view(view, path, None, usize::MAX).unwrap();
    listing.items.iter().map(|item| item.name().to_string()).collect()
}

#[test]
fn a_view_has_directories_and_files_by_their_fields() {
    let archive = archive();
    let song = |artist: &str, album: &str, track: &str, title: &str| {
        put(
            &archive,
            title.as_bytes(),
            &[("artist", artist), ("album", album), ("track", track), ("title", title), ("ext", "ogg")],
        )
        .unwrap()
    };
    let first = song("Bach", "Mass", "1", "Kyrie");
    song("Bach", "Mass", "12", "Gloria");
    song("Bach", "Mass / 2", "3", "a.b-c");
    song("AC/DC", "..", "1", "");
    put(&archive, b"no album", &[("artist", "Nobody"), ("title", "x"), ("ext", "y"), ("track", "1")])
        .unwrap();
    view(&archive, "music", "/{artist}/{album}/{track:02}-{title}.{ext}", "");
    view(&archive, "music/late", "/all/{artist}/{track:02}-{title}.{ext}", "track > 2");
    assert_eq!(names(&archive, "music", "/"), ["AC%2FDC", "Bach"]);
    assert_eq!(names(&archive, "music", "/Bach/"), ["Mass", "Mass %2F 2"]);
    assert_eq!(names(&archive, "music", "/Bach/Mass"), ["01-Kyrie.ogg", "12-Gloria.ogg"]);
    assert_eq!(names(&archive, "music", "/AC%2FDC"), ["%2E%2E"]);
    assert_eq!(names(&archive, "music", "/AC%2FDC/%2E%2E"), ["01-%none.ogg"]);
    assert_eq!(names(&archive, "music", "/Bach/Mass %2F 2"), ["03-a.b-c.ogg"]);
    assert_eq!(names(&archive, "music/late", ""), ["all"]);
    assert_eq!(names(&archive, "music/late", "all"), ["Bach"]);
    assert_eq!(names(&archive, "music/late", "all/Bach"), ["03-a.b-c.ogg", "12-Gloria.ogg"]);
    assert_eq!(archive.find_in_view("music", "/Bach/Mass/01-Kyrie.ogg").unwrap(), first);
    for wrong in [
        "/Bach/Mass/1-Kyrie.ogg",
        "/Bach",
        "/Bach/Mass/01-Kyrie.ogg/x",
        "/%42ach/Mass/01-Kyrie.ogg",
        "/../x/y",
        "/",
    ] {
        assert!(archive.find_in_view("music", wrong).is_err(), "{wrong}");
    }
    for wrong in ["/nobody", "/Nobody", "/Bach/Mass/01-Kyrie.ogg", "/a/../b", "/a\0", &"/x".repeat(100_000)] {
        assert!(archive.list_view("music", wrong, None, 10).is_err(), "{wrong}");
    }
    let metadata = archive.fields_of_path("music", "/Händel/Messiah/07-Hallelujah.ogg").unwrap();
    let oid = archive.put(&mut &b"x"[..], &metadata).unwrap().oid;
    assert_eq!(archive.find_in_view("music", "/Händel/Messiah/07-Hallelujah.ogg").unwrap(), oid);
    let told = archive.fields_of_path("music", "/a/b/x-y.z").unwrap_err().to_string();
    assert_eq!(told, "field m.track: 'x' is no long");
    assert!(archive.fields_of_path("music", "/a/b").unwrap_err().to_string().contains("2 names"));
    assert!(archive
        .fields_of_path("music", "/a/b/1-x.0123456789")
        .unwrap_err()
        .to_string()
        .contains("too long for string(9)"));
    assert_sound(&archive);
}

#[test]
fn records_with_one_path_are_all_there_the_oldest_with_the_plain_name() {
    let archive = archive();
    view(&archive, "v", "/{artist}/{title}.{ext}", "");
    let oids: Vec<Oid> = (0..4u8)
        .map(|n| put(&archive, &[n], &[("artist", "a"), ("title", "t"), ("ext", "x")]).unwrap())
        .collect();
    let listed = names(&archive, "v", "/a");
    assert_eq!((listed.len(), &*listed[0]), (4, "t.x"));
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), 4);
    for (name, oid) in listed.iter().zip(&oids) {
        assert!(
            *oid == oids[0] || (name.len() == 12 && name.starts_with("t~") && name.ends_with(".x")),
            "{name}"
        );
        assert_eq!(archive.find_in_view("v", &format!("/a/{name}")).unwrap(), *oid);
    }
    // One that would be called like that is called otherwise.
    let stem = listed[1].strip_suffix(".x").unwrap();
    let other = put(&archive, b"other", &[("artist", "a"), ("title", stem), ("ext", "x")]).unwrap();
    assert_eq!(archive.find_in_view("v", &format!("/a/{}", listed[1])).unwrap(), oids[1]);
    assert_eq!(archive.find_in_view("v", &format!("/a/{}.x", stem.replace('~', "%7E"))).unwrap(), other);
    archive.remove(oids[0]).unwrap();
    assert_eq!(archive.find_in_view("v", "/a/t.x").unwrap(), oids[1], "the next one has the plain name then");
}

#[test]
fn all_names_of_random_records_lead_to_them_page_by_page() {
    let mut random = Random(seed(1));
    let archive = archive();
    view(&archive, "v", "/{artist}/x{album}/{track:03}-{title}.{ext}", "");
    let long = ["é".repeat(300), "%/".repeat(200)];
    let texts = [
        "a",
        "",
        ".",
        "..",
        "a/b",
        "a-b",
        "~",
        "x~0123abcd",
        "a~0123456789abcdef",
        "%41",
        "\n",
        &long[0],
        &long[1],
        "é.f",
    ];
    let mut expected = BTreeSet::new();
    for number in 0..400 {
        let track = (random.below(4) as i64 - 1).to_string();
        let mut text = || texts[random.below(texts.len())];
        let fields = [
            ("artist", text()),
            ("album", text()),
            ("title", text()),
            ("track", &*track),
            ("ext", ["", "x"][number % 2]),
        ];
        expected.insert(put(&archive, &[number as u8], &fields).unwrap());
    }
    let mut found = BTreeMap::new();
    let mut waiting = vec![String::new()];
    while let Some(path) = waiting.pop() {
        let (mut from, mut seen) = (None, BTreeSet::new());
        loop {
            let page = archive.list_view("v", &path, from.as_deref(), 1 + random.below(5)).unwrap();
            for item in &page.items {
                let name = item.name();
                assert!(
                    name.len() <= 255
                        && !name.contains(['/', '\0', '\n'])
                        && ![".", "..", ""].contains(&name)
                );
                assert!(seen.insert(name.to_string()), "{path}/{name} is there twice");
                match item {
                    Item::Directory(name) => waiting.push(format!("{path}/{name}")),
                    Item::File(name, oid, _) => drop(found.insert(*oid, format!("{path}/{name}"))),
                }
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), expected);
    for (oid, path) in found {
        assert_eq!(archive.find_in_view("v", &path).unwrap(), oid, "{path}");
    }
}

#[test]
fn a_schema_keeps_what_views_need() {
    let place = Place::new(2);
    let archive = place.init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    view(&archive, "v", "/{artist}/{title}", "track is not null");
    for text in [
        r#"{"namespaces": {"m": {"artist": "string(400)", "track": "long"}}}"#,
        r#"{"namespaces": {"m": {"artist": "string(400)", "title": "string(600)"}}}"#,
    ] {
        let told = archive.set_schema(&Definition::parse(text).unwrap()).unwrap_err().to_string();
        assert!(told.contains("view v needs"), "{told}");
    }
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    put(&archive, b"x", &[("artist", "a"), ("title", "t"), ("track", "1")]).unwrap();
    assert_eq!(names(&archive, "v", "/a"), ["t"]);
    let again = View { pattern: "/{title}".into(), condition: String::new() };
    assert!(archive.create_view("v", &again).unwrap_err().to_string().contains("already"));
    for wrong in ["", "a b", "../x", "a//b", "é"] {
        assert!(archive.create_view(wrong, &again).is_err(), "{wrong}");
    }
    archive.close().unwrap();
    let archive = place.open().unwrap();
    assert_eq!(names(&archive, "v", "/a"), ["t"]);
    archive.drop_view("v").unwrap();
    assert!(archive.drop_view("v").is_err() && archive.views().unwrap().is_empty());
    archive.set_schema(&Definition::default()).unwrap();
    assert_sound(&archive);
}

#[test]
fn cursors_that_nobody_gave_are_answered_or_refused() {
    let archive = archive();
    for (artist, album) in [("A", "x"), ("B", "y"), ("B", "z")] {
        put(&archive, album.as_bytes(), &[("artist", artist), ("album", album), ("title", "t")]).unwrap();
    }
    view(&archive, "v", "/{artist}/{album}/{title}", "");
    let mut random = Random(seed(3));
    let mut places = vec![Vec::new(), vec![0xff; 20], vec![0; 300], vec![0xff; 8000]];
    for path in ["/", "/B", "/B/y"] {
        let next = archive.list_view("v", path, None, 1).unwrap().next.unwrap();
        for at in 0..next.len() {
            places.push(next[..at].to_vec());
            let mut changed = next.clone();
            changed[at] = random.next() as u8;
            places.push(changed);
        }
    }
    for from in &places {
        for path in ["/", "/B", "/B/y"] {
            // Whatever comes: it ends, and without a panic.
            let _ = archive.list_view("v", path, Some(from), 10);
        }
    }
    let query = |cursor| Query { limit: Some(1), cursor, ..Query::default() };
    let cursor = archive.query(&query(None), &mut |_| Ok(true)).unwrap().unwrap();
    for at in 0..cursor.len() {
        for byte in [b'0', b'9', b'f', b'x', 0xc3] {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = byte;
            let changed = String::from_utf8_lossy(&changed).into_owned();
            let _ = archive.query(&query(Some(changed)), &mut |_| Ok(true));
            let _ = archive.query(&query(Some(cursor[..at].into())), &mut |_| Ok(true));
        }
    }
}
