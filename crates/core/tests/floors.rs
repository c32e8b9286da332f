//! The rooms of the core and the floors of its tree and its engine, as `docs/architecture.md` lists them: whoever
//! stands higher knows what is below, never the other way round. A room or floor that the map has not fails, as does
//! one that is on the map only. What is read are the paths in the source (`crate::`, `super::`), without comments and
//! tests.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The map, from the crate's directory.
const MAP: &str = "../../docs/architecture.md";

/// What a path in the source begins with, from the crate's root: `crate::tree::leaf::Leaf` gives `tree`, `leaf`,
/// `Leaf`.
type Names = Vec<String>;

#[test]
fn rooms_know_only_what_is_below() {
    look_at("src");
}

#[test]
fn floors_of_the_tree_know_only_what_is_below() {
    look_at("src/tree");
}

#[test]
fn floors_of_the_engine_know_only_what_is_below() {
    look_at("src/engine");
}

/// Lines of the map for this directory, from the ground up: a fence that begins with its name. Those of one line do not
/// know each other. A star is on what holds the state of all the others: they know it, and it may name them.
fn order_of(directory: &str) -> Vec<Vec<String>> {
    let map = fs::read_to_string(MAP).expect("the map");
    let fence = format!("```floors {directory}\n");
    let (_, rest) = map.split_once(&fence).unwrap_or_else(|| panic!("{MAP} has no {fence}"));
    let (lines, _) = rest.split_once("```").expect("the end of a fence");
    lines.lines().rev().map(|line| line.split_whitespace().map(str::to_string).collect()).collect()
}

/// Fails where a part of `directory` is not on the map, or knows one that does not stand below it.
fn look_at(directory: &str) {
    let order = order_of(directory);
    let src = Path::new(directory);
    let prefix = module_of(&src.join("mod.rs"));
    let files: Vec<(PathBuf, Names)> =
        sources(src).into_iter().map(|file| (file.clone(), module_of(&file))).collect();
    let listed: BTreeSet<&str> = order.iter().flatten().map(|name| name.trim_end_matches('*')).collect();
    let part = |(_, module): &'_ (PathBuf, Names)| module.get(prefix.len()).cloned();
    let parts: Vec<String> = files.iter().filter_map(part).collect();
    let there: BTreeSet<&str> = parts.iter().map(String::as_str).collect();
    let of_one: Vec<_> = listed.symmetric_difference(&there).collect();
    assert!(of_one.is_empty(), "in {MAP} or in {directory}, but not in both: {of_one:?}");
    let found = upward(&files, &prefix, &order);
    assert!(found.is_empty(), "parts of {directory} that know what is not below them:\n{}", found.join("\n"));
}

/// Paths that lead from a part to one that does not stand below it. Of the crate's own names each counts for the room
/// that it is from. A name of another directory's face, which hands on what its parts have, stands above all of them.
fn upward(files: &[(PathBuf, Names)], prefix: &[String], order: &[Vec<String>]) -> Vec<String> {
    let is = |listed: &String, name: &str| listed.trim_end_matches('*') == name;
    let height = |name: &str| order.iter().position(|line| line.iter().any(|listed| is(listed, name)));
    let has_star =
        |name: &str| order.iter().flatten().any(|listed| is(listed, name) && listed.ends_with('*'));
    let root = root_names();
    let mut found = Vec::new();
    for (file, module) in files {
        let Some(own) = module.get(prefix.len()).filter(|own| !has_star(own)) else { continue };
        for (line, names) in paths(&fs::read_to_string(file).expect("a source file"), module) {
            let inside = names.iter().zip(prefix).all(|(name, part)| name == part);
            let Some(target) = names.get(prefix.len()).filter(|_| inside) else { continue };
            let target = root.get(target).filter(|_| prefix.is_empty()).unwrap_or(target);
            if target != own && height(target).is_none_or(|target| Some(target) >= height(own)) {
                found.push(format!("{}:{line}: {own} knows {}", file.display(), names.join("::")));
            }
        }
    }
    found
}

/// What `lib.rs` hands on, and the rooms that it is from.
fn root_names() -> HashMap<String, String> {
    let text = fs::read_to_string("src/lib.rs").expect("the crate's root");
    let lists = text.split("\npub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let from = |(list, _): (&str, &str)| targets(&format!("crate::{list}"), &[]);
    lists.flat_map(from).map(|names| (names[1].clone(), names[0].clone())).collect()
}

/// Files of the program, without tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("a source directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        if name.ends_with("tests") || name == "hostile" {
            continue;
        }
        match path.is_dir() {
            true => files.extend(sources(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// The module that a file is: `src/tree/leaf/mod.rs` is `tree`, `leaf`.
fn module_of(file: &Path) -> Names {
    let path = file.strip_prefix("src").expect("a source file").with_extension("");
    let mut names: Names = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| name == "mod" || name == "lib") {
        names.pop();
    }
    names
}

/// Paths in the text of `module` that begin with `crate::` or `super::`, with their lines. Of a list in braces each
/// member counts.
fn paths(text: &str, module: &[String]) -> Vec<(usize, Names)> {
    let mut found = Vec::new();
    // An inner module of tests is the last thing in a file.
    let program = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = program.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut own = module.to_vec();
    for (at, line) in lines.iter().enumerate() {
        match line.split_once("mod ").and_then(|(_, rest)| rest.strip_suffix(" {")) {
            Some(inner) if !line.starts_with(' ') => own.push(inner.to_string()),
            _ if line.starts_with('}') => own.truncate(module.len()),
            _ => {}
        }
        for (start, _) in line.match_indices("crate::").chain(line.match_indices("super::")) {
            let before = line[..start].chars().next_back();
            if before.is_some_and(|c| c == ':' || c == '_' || c.is_alphanumeric()) {
                continue;
            }
            // A list may go over several lines.
            let rest = lines[at..].iter().take(12).copied().collect::<String>();
            found.extend(targets(&rest[start..], &own).into_iter().map(|names| (at + 1, names)));
        }
    }
    found
}

fn targets(path: &str, module: &[String]) -> Vec<Names> {
    let mut base: Names = Vec::new();
    let mut rest = path;
    if let Some(after) = rest.strip_prefix("crate::") {
        rest = after;
    } else {
        base = module.to_vec();
        while let Some(after) = rest.strip_prefix("super::") {
            base.pop();
            rest = after;
        }
    }
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() {
            break;
        }
        base.push(name.to_string());
        match after.strip_prefix("::") {
            Some(after) => rest = after,
            None => return vec![base],
        }
    }
    let Some(list) = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()) else {
        return vec![base];
    };
    let member = |name: &str| {
        let name = name.split("::").next().unwrap_or_default().trim();
        (!name.is_empty() && name != "self").then(|| [&base[..], &[name.to_string()]].concat())
    };
    list.split(',').filter_map(member).collect()
}
