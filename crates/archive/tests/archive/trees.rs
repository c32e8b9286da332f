//! Trees of names: against a model, those of views, and what protections keep at their paths.

use crate::place::{assert_sound, get, metadata, put, seed, Place, Random};
use std::collections::BTreeMap;
use teak_archive::{Archive, Definition, Error, Metadata, Name, Node, Oid, Protecting, Root, View};
use teak_core::file::Fault;
use teak_core::CommitFlush;

const SCHEMA: &str =
    r#"{"namespaces": {"m": {"artist": "string(20)", "track": "long", "title": "string(20)"}}}"#;
const VIEW: Root<'static> = Root::View("music");

fn write(archive: &Archive, root: Root<'_>, path: &str, bytes: &[u8]) -> Result<bool, Error> {
    archive.put_at(root, path, &mut &*bytes, &Metadata::default(), &|_| Ok(())).map(|(_, replaced)| replaced)
}

fn remove(archive: &Archive, root: Root<'_>, path: &str) -> Result<(), Error> {
    archive.remove_at(root, path, &|_| Ok(()))
}

/// What is in a directory: directories end with a slash.
fn children(archive: &Archive, root: Root<'_>, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let is_there = archive.each_child(root, path, &mut |name, node| {
        names.push(if matches!(node, Node::File(_)) { name.to_string() } else { format!("{name}/") });
        Ok(true)
    });
    assert!(is_there.unwrap(), "{path}");
    names
}

fn file(archive: &Archive, root: Root<'_>, path: &str) -> Option<Oid> {
    match archive.node(root, path).unwrap() {
        Some(Node::File(record)) => Some(record.oid),
        _ => None,
    }
}

/// Bytes of files, by path; directories have none.
type Model = BTreeMap<String, Option<Vec<u8>>>;

fn everything(archive: &Archive, path: &str, all: &mut Model) {
    for name in children(archive, Root::Files, path) {
        let whole = format!("{path}/{}", name.trim_end_matches('/')).trim_matches('/').to_string();
        if name.ends_with('/') {
            all.insert(whole.clone(), None);
            everything(archive, &whole, all);
        } else {
            let oid = file(archive, Root::Files, &whole).unwrap();
            all.insert(whole, Some(get(archive, Name::Record(oid)).unwrap()));
        }
    }
}

fn is_in(path: &str, directory: &str) -> bool {
    path == directory || path.starts_with(&format!("{directory}/"))
}

fn parent_is_there(model: &Model, path: &str) -> bool {
    path.rsplit_once('/').is_none_or(|(parent, _)| model.get(parent) == Some(&None))
}

/// What a move or a copy does to the model; `None`: it is refused.
fn transfer(model: &mut Model, from: &str, to: &str, overwrite: bool, is_move: bool) -> Option<bool> {
    let is_apart = !is_in(from, to) && !is_in(to, from);
    if !is_apart || !model.contains_key(from) || !parent_is_there(model, to) {
        return None;
    }
    let replaced = model.contains_key(to);
    if replaced && !overwrite {
        return None;
    }
    model.retain(|path, _| !is_in(path, to));
    let moved = model.iter().filter(|(path, _)| is_in(path, from));
    let moved: Model =
        moved.map(|(path, bytes)| (format!("{to}{}", &path[from.len()..]), bytes.clone())).collect();
    if is_move {
        model.retain(|path, _| !is_in(path, from));
    }
    model.extend(moved);
    Some(replaced)
}

/// A change of the archive, and of the model: what it answers, and what it is to answer; `None`: it is refused.
fn change(
    archive: &Archive,
    model: &mut Model,
    random: &mut Random,
) -> (String, Result<bool, Error>, Option<bool>) {
    let names = ["a", "b", "a b", "a!", "é~0123abcd.x"];
    let mut path = || {
        let parts: Vec<&str> = (0..1 + random.below(3)).map(|_| names[random.below(names.len())]).collect();
        parts.join("/")
    };
    let (one, two) = (path(), path());
    let (kind, overwrite, bytes) = (random.below(8), random.below(3) > 0, random.bytes(600));
    let what = format!("{kind} {one} {two} {overwrite}");
    let (found, meant) = match kind {
        0 | 1 => {
            let meant = parent_is_there(model, &one) && !model.contains_key(&one);
            if meant {
                model.insert(one.clone(), None);
            }
            (archive.make_directory(Root::Files, &one).map(|()| false), meant.then_some(false))
        }
        2 | 3 => {
            let meant = parent_is_there(model, &one) && model.get(&one) != Some(&None);
            let meant = meant.then(|| model.contains_key(&one));
            if meant.is_some() {
                model.insert(one.clone(), Some(bytes.clone()));
            }
            (write(archive, Root::Files, &one, &bytes), meant)
        }
        4 => {
            let meant = model.contains_key(&one).then_some(false);
            model.retain(|path, _| !is_in(path, &one));
            (remove(archive, Root::Files, &one).map(|()| false), meant)
        }
        5 | 6 => {
            let meant = transfer(model, &one, &two, overwrite, true);
            (archive.move_at(Root::Files, &one, &two, overwrite), meant)
        }
        _ => {
            let meant = transfer(model, &one, &two, overwrite, false);
            (archive.copy_at((Root::Files, &one), (Root::Files, &two), overwrite, true), meant)
        }
    };
    (what, found, meant)
}

/// Some changes meet a power cut, or a kill, at any moment: all of one is there then, or nothing, and what was answered
/// is.
fn history(seed: u64) {
    let mut place = Place::new(seed);
    let (mut archive, mut model, mut random) = (place.init(), Model::new(), Random(seed));
    if seed.is_multiple_of(2) {
        archive.engine().settings().set_commit_flush(CommitFlush::Sync);
    }
    for step in 0..150 {
        let fails = random.below(5) == 0;
        if fails {
            place.fs.fail_from(random.below(20) as u64, Fault::PowerCut);
        }
        let before = model.clone();
        let (what, found, meant) = change(&archive, &mut model, &mut random);
        let what = format!("seed {seed}, step {step}: {what}");
        let is_cut = place.fs.power_is_off() && found.is_err();
        assert!(is_cut || found.as_ref().ok() == meant.as_ref(), "{what}: {found:?}, and not {meant:?}");
        if fails || step % 40 == 39 {
            drop(archive);
            place.fs = if random.below(2) == 0 { place.fs.crash() } else { place.fs.kill() };
            place.seed += 1;
            archive = place.open().unwrap();
            let mut all = Model::new();
            everything(&archive, "", &mut all);
            assert!(all == model || is_cut && all == before, "{what}");
            model = all;
            assert_sound(&archive);
        }
    }
}

#[test]
fn random_changes_leave_what_a_model_has_whatever_happens_when() {
    let first = seed(7);
    for seed in first..first + 24 {
        history(seed);
    }
}

#[test]
fn what_the_api_puts_beside_each_other_is_all_there() {
    let archive = Place::new(2).init();
    let oids: Vec<Oid> = ["a/x.txt", "a/x.txt", "a/x.txt/y", "//z", "a/../b", "c"]
        .iter()
        .map(|path| put(&archive, path.as_bytes(), &[("system.path", path)]).unwrap())
        .collect();
    let digits = |oid: Oid| oid.to_string()[28..].to_string();
    let (first, second) = (format!("x~{}.txt", digits(oids[0])), format!("x~{}.txt", digits(oids[1])));
    assert_eq!(children(&archive, Root::Files, ""), ["a/", "c"]);
    assert_eq!(children(&archive, Root::Files, "a"), ["x.txt/", &first, &second]);
    assert_eq!(file(&archive, Root::Files, &format!("a/{second}")), Some(oids[1]));
    remove(&archive, Root::Files, "a/x.txt").unwrap();
    assert_eq!(children(&archive, Root::Files, "a"), ["x.txt", &second]);
    // Which of them was meant nobody knows.
    assert!(matches!(write(&archive, Root::Files, "a/x.txt", b"n"), Err(Error::Conflict(_))));
    archive.move_at(Root::Files, &format!("a/{second}"), "a/y.txt", false).unwrap();
    assert!(write(&archive, Root::Files, "a/x.txt", b"n").unwrap());
    assert_eq!(children(&archive, Root::Files, "a"), ["x.txt", "y.txt"]);
    assert_sound(&archive);
}

#[test]
fn paths_that_are_none_are_refused_and_directories_outlast_their_files() {
    let archive = Place::new(3).init();
    let long = "n".repeat(256);
    for path in ["", "..", "a/../b", "a/./b", "a//b", "a\0b", "a\nb", &long, &"d/".repeat(100_000)] {
        for refused in
            [write(&archive, Root::Files, path, b"").map(|_| ()), archive.make_directory(Root::Files, path)]
        {
            assert!(matches!(refused, Err(Error::Usage(_))), "{path:.20}: {refused:?}");
        }
    }
    put(&archive, b"1", &[("system.path", "a/b/c")]).unwrap();
    remove(&archive, Root::Files, "a/b/c").unwrap();
    assert_eq!(children(&archive, Root::Files, "a"), ["b/"]);
    assert!(matches!(write(&archive, Root::Files, "a/x/y", b""), Err(Error::Conflict(_))));
    archive
        .change_properties(Root::Files, "a", &mut |_| Ok((vec!["<p/>".into()], Metadata::default())))
        .unwrap();
    archive.move_at(Root::Files, "a", "z", false).unwrap();
    let Some(Node::Directory(folder)) = archive.node(Root::Files, "z").unwrap() else { panic!() };
    assert_eq!(folder.properties, ["<p/>"]);
}

#[test]
fn a_put_over_a_file_keeps_what_was_told_of_it() {
    let archive = Place::new(4).init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    put(&archive, b"1", &[("system.path", "f"), ("title", "t"), ("file.modified", "2020-01-01")]).unwrap();
    let checked = |wanted: bool| {
        let check = move |node: Option<&Node>| match matches!(node, Some(Node::File(_))) == wanted {
            true => Ok(()),
            false => Err(Error::Precondition("other".into())),
        };
        archive.put_at(
            Root::Files,
            "f",
            &mut &b"2"[..],
            &metadata(&[("system.content_type", "text/x")]),
            &check,
        )
    };
    assert!(matches!(checked(false), Err(Error::Precondition(_))));
    let (stored, replaced) = checked(true).unwrap();
    let record = archive.record(stored.oid).unwrap();
    assert!(replaced && archive.query_all() == [stored.oid]);
    assert_eq!((record.content_type(), record.modified()), (Some("text/x"), record.created));
    assert!(record
        .fields(&archive.schema())
        .iter()
        .any(|(name, value)| *name == "m.title" && value.to_string() == "t"));
    assert_sound(&archive);
}

trait QueryAll {
    fn query_all(&self) -> Vec<Oid>;
}

impl QueryAll for Archive {
    fn query_all(&self) -> Vec<Oid> {
        let mut oids = Vec::new();
        let mut tell = |record: &teak_archive::Record| {
            oids.push(record.oid);
            Ok(true)
        };
        self.query(&Default::default(), &mut tell).unwrap();
        oids
    }
}

fn music() -> (Place, Archive) {
    let place = Place::new(5);
    let archive = place.init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    let view = View { pattern: "/{artist}/{track:02}-{title}".into(), condition: "track > 0".into() };
    archive.create_view("music", &view).unwrap();
    (place, archive)
}

#[test]
fn paths_of_a_view_are_metadata() {
    let (place, archive) = music();
    assert!(!write(&archive, VIEW, "Bach/03-Air", b"air").unwrap());
    archive.make_directory(VIEW, "Verdi").unwrap();
    assert_eq!(children(&archive, VIEW, ""), ["Bach/", "Verdi/"]);
    let oid = file(&archive, VIEW, "Bach/03-Air").unwrap();
    archive.move_at(VIEW, "Bach/03-Air", "Verdi/04-Aria", false).unwrap();
    assert_eq!(file(&archive, VIEW, "Verdi/04-Aria"), Some(oid));
    archive.move_at(VIEW, "Verdi", "Brahms", false).unwrap();
    assert_eq!(
        (children(&archive, VIEW, ""), file(&archive, VIEW, "Brahms/04-Aria")),
        (vec!["Brahms/".into()], Some(oid))
    );
    archive.copy_at((VIEW, "Brahms"), (VIEW, "Bach"), false, true).unwrap();
    archive.copy_at((VIEW, "Bach/04-Aria"), (Root::Files, "aria"), false, true).unwrap();
    archive.copy_at((Root::Files, "aria"), (VIEW, "Bach/05-Aria"), false, true).unwrap();
    assert_eq!((archive.query_all().len(), children(&archive, Root::Files, "")), (4, vec!["aria".into()]));
    for (path, part) in [
        ("Bach/x-Air", "'x' is no long"),
        ("Bach/3-Air", "would be Bach/03-Air"),
        ("Bach/00-Air", "does not satisfy"),
        ("Bach/Air", "is not as"),
        ("Air", "has 1 names"),
        ("Bach/03-a title that is too long for it", "too long"),
    ] {
        for refused in [
            write(&archive, VIEW, path, b"").map(|_| ()),
            archive.move_at(VIEW, "Bach/04-Aria", path, true).map(|_| ()),
        ] {
            let told = refused.unwrap_err().to_string();
            assert!(told.contains(part), "{path}: {told}");
        }
    }
    remove(&archive, VIEW, "Bach").unwrap();
    assert_eq!(children(&archive, VIEW, ""), ["Brahms/"]);
    archive.make_directory(VIEW, "Satie").unwrap();
    archive.drop_view("music").unwrap();
    assert_sound(&archive);
    archive.close().unwrap();
    let archive = place.open().unwrap();
    archive
        .create_view("music", &View { pattern: "/{artist}/{title}".into(), condition: String::new() })
        .unwrap();
    assert_eq!(children(&archive, VIEW, ""), ["Brahms/"]);
}

/// What would take a file away, or change it, by its path.
type Door = (&'static str, fn(&Archive) -> Result<(), Error>);

const DOORS: [Door; 8] = [
    ("remove", |archive| remove(archive, Root::Files, "d/f")),
    ("remove its directory", |archive| remove(archive, Root::Files, "d")),
    ("put over", |archive| write(archive, Root::Files, "d/f", b"other").map(|_| ())),
    ("move", |archive| archive.move_at(Root::Files, "d/f", "d/g", true).map(|_| ())),
    ("move its directory", |archive| archive.move_at(Root::Files, "d", "e", true).map(|_| ())),
    ("move over", |archive| archive.move_at(Root::Files, "d/other", "d/f", true).map(|_| ())),
    ("copy over", |archive| {
        archive.copy_at((Root::Files, "d/other"), (Root::Files, "d/f"), true, true).map(|_| ())
    }),
    ("copy over its directory", |archive| {
        archive.copy_at((Root::Files, "z"), (Root::Files, "d"), true, true).map(|_| ())
    }),
];

#[test]
fn no_door_passes_a_protection_and_nothing_beside_it_goes() {
    for (name, door) in DOORS {
        for of_data in [false, true] {
            // Neither changes what the data is named by.
            if of_data && ["move", "move its directory"].contains(&name) {
                continue;
            }
            let archive = Place::new(6).init();
            let oid = put(&archive, b"evidence", &[("system.path", "d/f")]).unwrap();
            put(&archive, b"beside", &[("system.path", "d/other")]).unwrap();
            archive.make_directory(Root::Files, "z").unwrap();
            let held =
                if of_data { Name::Data(archive.record(oid).unwrap().data) } else { Name::Record(oid) };
            archive.protect(held, &Protecting::Hold("case".into())).unwrap();
            assert!(matches!(door(&archive), Err(Error::Protected { .. })), "{name}");
            let before = [
                ("d".to_string(), None),
                ("d/f".into(), Some(b"evidence".to_vec())),
                ("d/other".into(), Some(b"beside".to_vec())),
                ("z".into(), None),
            ];
            let mut all = Model::new();
            everything(&archive, "", &mut all);
            assert_eq!(all, Model::from(before), "{name}");
            assert_eq!(archive.record(oid).unwrap().version, 1);
            assert_sound(&archive);
            archive.protect(held, &Protecting::Release("case".into())).unwrap();
            door(&archive).unwrap();
            assert_sound(&archive);
        }
    }
}
