//! Links between tables: kept with the record that has them, and found from the other side.

use super::*;
use crate::file::Fault;

fn link(name: &str, target: &str) -> Link {
    Link { name: name.to_string(), target: target.to_string(), body: name.as_bytes().to_vec() }
}

/// Who has links to `target`, each as "table.link".
fn referrers(engine: &Engine, target: &str) -> Vec<String> {
    let found = engine.links_to(target).unwrap();
    found.into_iter().map(|(table, link)| format!("{table}.{}", link.name)).collect()
}

fn targets(engine: &Engine, name: &str) -> Vec<String> {
    engine.links(name).unwrap().into_iter().map(|link| link.target).collect()
}

/// Links to the table follow, and its own have these names.
fn carried<'a>(from: &'a str, to: &'a str, link_names: &'a [&'a str]) -> Renaming<'a> {
    Renaming { carries: true, link_names: Some(link_names), ..Renaming::new(from, to) }
}

/// Tables `parent`, and `child` with two links to it, one to itself and one to a table that is not there.
fn family(engine: &Engine) {
    engine.create(NewTable::new("parent", &specs(1))).unwrap();
    let links = [link("a", "parent"), link("b", "child"), link("c", "parent"), link("d", "absent")];
    engine.create(NewTable { meta: b"meta", links: &links, ..NewTable::new("child", &specs(1)) }).unwrap();
}

fn expect_sound(engine: &Engine) {
    engine.checkpoint().unwrap();
    let findings = engine.check_files(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn links_are_found_from_both_sides_and_outlive_a_crash() {
    let fs = SimulatedFileSystem::new(1);
    let engine = open(&fs);
    family(&engine);
    let (fs, engine) = crash(&fs, engine);
    let look = |engine: &Engine| {
        assert_eq!(referrers(engine, "parent"), ["child.a", "child.c"]);
        assert_eq!(referrers(engine, "child"), ["child.b"]);
        assert_eq!(referrers(engine, "absent"), ["child.d"]);
        assert_eq!(engine.linked_tables().unwrap(), ["child"]);
        assert_eq!(targets(engine, "child"), ["parent", "child", "parent", "absent"]);
        assert_eq!(engine.open_table("child").unwrap().meta(), b"meta");
    };
    look(&engine);
    expect_sound(&engine);
    let (_fs, engine) = crash(&fs, engine);
    look(&engine);
}

#[test]
fn links_follow_a_renamed_target_only_if_they_are_told_to() {
    let fs = SimulatedFileSystem::new(2);
    let engine = open(&fs);
    family(&engine);
    engine.rename(Renaming::new("parent", "aside")).unwrap();
    assert_eq!(referrers(&engine, "parent"), ["child.a", "child.c"]);
    assert!(referrers(&engine, "aside").is_empty());
    engine.rename(Renaming::new("aside", "parent")).unwrap();
    engine.rename(carried("parent", "elder", &[])).unwrap();
    assert_eq!(referrers(&engine, "elder"), ["child.a", "child.c"]);
    assert!(referrers(&engine, "parent").is_empty());
    engine.rename(carried("child", "infant", &["a", "b", "c", "d"])).unwrap();
    assert_eq!(targets(&engine, "infant"), ["elder", "infant", "elder", "absent"]);
    assert_eq!(referrers(&engine, "infant"), ["infant.b"]);
    engine.rename(Renaming::new("infant", "copy")).unwrap();
    assert_eq!(targets(&engine, "copy"), ["elder", "infant", "elder", "absent"]);
    assert_eq!(referrers(&engine, "infant"), ["copy.b"]);
    expect_sound(&engine);
}

#[test]
fn links_go_with_their_table_and_stay_when_it_is_altered_or_emptied() {
    let fs = SimulatedFileSystem::new(3);
    let engine = open(&fs);
    family(&engine);
    engine.empty("child", None).unwrap();
    engine
        .change(
            &[Alteration::new("child", &[TreeSource::Keep(0), TreeSource::New(specs(1)[0])], b"").into()],
            &[],
        )
        .unwrap();
    assert_eq!(targets(&engine, "child").len(), 4);
    engine.drop("parent", IfPrepared::Refuse).unwrap();
    assert_eq!(referrers(&engine, "parent"), ["child.a", "child.c"]);
    engine.create(NewTable::new("parent", &specs(1))).unwrap();
    expect_sound(&engine);
    engine.drop("child", IfPrepared::Refuse).unwrap();
    assert!(["parent", "child", "absent"].iter().all(|target| referrers(&engine, target).is_empty()));
    expect_sound(&engine);
}

#[test]
fn only_changes_of_linked_tables_are_counted() {
    let fs = SimulatedFileSystem::new(4);
    let engine = open(&fs);
    engine.create(NewTable::new("alone", &specs(1))).unwrap();
    engine.rename(Renaming::new("alone", "other")).unwrap();
    engine.drop("other", IfPrepared::Refuse).unwrap();
    assert_eq!(engine.link_changes(), 0);
    family(&engine);
    let mut last = engine.link_changes();
    let steps: [&dyn Fn(); 5] = [
        &|| engine.create(NewTable::new("absent", &specs(1))).unwrap(),
        &|| engine.empty("parent", None).unwrap(),
        &|| engine.change(&[Alteration::new("parent", &[TreeSource::Keep(0)], b"").into()], &[]).unwrap(),
        &|| engine.rename(carried("parent", "elder", &[])).unwrap(),
        &|| engine.drop("child", IfPrepared::Refuse).unwrap(),
    ];
    for step in steps {
        step();
        assert!(engine.link_changes() > last);
        last = engine.link_changes();
    }
}

fn names(engine: &Engine, table: &str) -> Vec<String> {
    engine.links(table).unwrap().into_iter().map(|link| link.name).collect()
}

#[test]
fn no_two_links_have_one_name() {
    let fs = SimulatedFileSystem::new(5);
    let engine = open(&fs);
    family(&engine);
    let create = |table: &str, link_names: &[&str]| {
        let links: Vec<Link> = link_names.iter().map(|name| link(name, "parent")).collect();
        engine.create(NewTable { links: &links, ..NewTable::new(table, &specs(1)) })
    };
    let refused = |result: crate::Result<()>| match result.unwrap_err() {
        Error::LinkExists { table, name } => format!("{table}.{name}"),
        other => panic!("{other}"),
    };
    assert_eq!(refused(create("other", &["e", "c"])), "child.c");
    assert_eq!(refused(create("other", &["e", "e"])), ".e");
    create("other", &["e", "", ""]).unwrap();
    create("another", &["", "f"]).unwrap();
    let relink = |table: &'static str, links: &[Link]| engine.change(&[], &[Relink { table, links }]);
    assert_eq!(refused(relink("other", &[link("f", "parent")])), "another.f");
    assert_eq!(refused(engine.rename(carried("other", "o", &["e", "a"]))), "child.a");
    assert_eq!(names(&engine, "other"), ["e", "", ""]);
    // A table's own names it may give to others of its links.
    relink("child", &[link("d", "parent"), link("a", "parent")]).unwrap();
    assert_eq!(targets(&engine, "child"), ["parent", "parent"]);
    engine.rename(carried("child", "infant", &["a", "d"])).unwrap();
    assert_eq!(engine.table_with_link("d").unwrap().as_deref(), Some("infant"));
    expect_sound(&engine);
    // Names that nobody has are free.
    engine.rename(Renaming { link_names: Some(&[]), ..Renaming::new("infant", "aside") }).unwrap();
    assert_eq!(
        (names(&engine, "aside"), engine.table_with_link("d").unwrap()),
        (vec!["".into(), "".into()], None)
    );
    engine.drop("another", IfPrepared::Refuse).unwrap();
    create("last", &["a", "b", "c", "d", "f"]).unwrap();
    engine.empty("last", None).unwrap();
    expect_sound(&engine);
    let (_fs, engine) = crash(&fs, engine);
    assert_eq!(engine.table_with_link("f").unwrap().as_deref(), Some("last"));
    expect_sound(&engine);
}

#[test]
fn a_copy_takes_the_names_of_links_of_the_table_whose_place_it_takes() {
    let fs = SimulatedFileSystem::new(6);
    let engine = open(&fs);
    family(&engine);
    engine
        .create(NewTable {
            links: &[link("", "parent"), link("", "parent")],
            ..NewTable::new("copy", &specs(1))
        })
        .unwrap();
    let (link_names, successor_of) = (Some(&["c", "e"][..]), Some("child"));
    engine.rename(Renaming { link_names, successor_of, ..Renaming::new("copy", "successor") }).unwrap();
    assert_eq!(names(&engine, "successor"), ["c", "e"]);
    assert_eq!(names(&engine, "child"), ["a", "b", "", "d"]);
    expect_sound(&engine);
    engine.drop("child", IfPrepared::Refuse).unwrap();
    expect_sound(&engine);
}

#[test]
fn a_table_that_is_altered_gets_other_links_in_the_same_step() {
    for cut in 0.. {
        let fs = SimulatedFileSystem::new(cut * 3 + 2);
        let engine = open(&fs);
        family(&engine);
        let alteration = Alteration::new("parent", &[TreeSource::Keep(0)], b"new");
        let own = [link("p", "absent")];
        let relinks = [Relink { table: "parent", links: &own }, Relink { table: "child", links: &[] }];
        fs.fail_after(cut, Fault::PowerCut);
        let result = engine.change(&[alteration.into()], &relinks).and_then(|()| engine.checkpoint());
        let finished = !fs.power_is_off();
        let (_fs, engine) = crash(&fs, engine);
        let state = (
            engine.table_meta("parent").unwrap(),
            referrers(&engine, "absent"),
            names(&engine, "child").len(),
        );
        match state.0.is_empty() {
            true => assert_eq!(state, (vec![], vec!["child.d".to_string()], 4)),
            false => assert_eq!(state, (b"new".to_vec(), vec!["parent.p".to_string()], 0)),
        }
        expect_sound(&engine);
        if finished {
            result.unwrap();
            return;
        }
    }
}

#[test]
fn a_table_that_takes_the_place_of_another_gets_other_links_in_the_same_step() {
    for cut in 0.. {
        let fs = SimulatedFileSystem::new(cut * 7 + 3);
        let engine = open(&fs);
        family(&engine);
        engine
            .create(NewTable { links: &[link("e", "child")], ..NewTable::new("third", &specs(1)) })
            .unwrap();
        engine.create(NewTable { meta: b"new", ..NewTable::new("new", &specs(2)) }).unwrap();
        let replacement = Replacement { table: "child", by: "new", counter: 5 };
        // One of its own stays, with another target; one of another table follows.
        let (own, others) = ([link("a", "absent"), link("f", "child")], [link("g", "child")]);
        let taken = [Relink { table: "child", links: &[link("e", "parent")] }];
        assert!(matches!(engine.change(&[replacement.into()], &taken), Err(Error::LinkExists { .. })));
        let relinks = [Relink { table: "child", links: &own }, Relink { table: "third", links: &others }];
        fs.fail_after(cut, Fault::PowerCut);
        let result = engine.change(&[replacement.into()], &relinks).and_then(|()| engine.checkpoint());
        let finished = !fs.power_is_off();
        let (_fs, engine) = crash(&fs, engine);
        let is_new = engine.table_meta("child").unwrap() == b"new";
        let found = ["parent", "child", "absent"].map(|target| referrers(&engine, target));
        let wanted: [&[&str]; 3] = match is_new {
            true => [&[], &["child.f", "third.g"], &["child.a"]],
            false => [&["child.a", "child.c"], &["child.b", "third.e"], &["child.d"]],
        };
        assert_eq!(found, wanted.map(|links| links.iter().map(|link| link.to_string()).collect::<Vec<_>>()));
        // The names that are not used any more may be taken.
        if is_new {
            engine
                .create(NewTable {
                    links: &[link("b", "child"), link("e", "child")],
                    ..NewTable::new("fourth", &specs(1))
                })
                .unwrap();
        }
        expect_sound(&engine);
        if finished {
            result.unwrap();
            return;
        }
    }
}

#[test]
fn a_power_cut_at_any_moment_of_a_rename_leaves_all_links_with_one_name() {
    for cut in 0.. {
        let fs = SimulatedFileSystem::new(cut * 5 + 1);
        let engine = open(&fs);
        family(&engine);
        engine
            .create(NewTable { links: &[link("e", "parent")], ..NewTable::new("third", &specs(1)) })
            .unwrap();
        if cut % 2 == 0 {
            engine.checkpoint().unwrap();
        }
        fs.fail_after(cut, Fault::PowerCut);
        let result = engine.rename(carried("parent", "elder", &[])).and_then(|()| engine.checkpoint());
        let finished = !fs.power_is_off();
        let (_fs, engine) = crash(&fs, engine);
        let all = ["child.a", "child.c", "third.e"];
        match engine.open_table("elder") {
            Ok(_) => assert_eq!(
                (referrers(&engine, "elder"), referrers(&engine, "parent")),
                (all.map(str::to_string).to_vec(), vec![])
            ),
            Err(_) => assert_eq!(
                (referrers(&engine, "parent"), referrers(&engine, "elder")),
                (all.map(str::to_string).to_vec(), vec![])
            ),
        }
        expect_sound(&engine);
        if finished {
            result.unwrap();
            return;
        }
    }
}
