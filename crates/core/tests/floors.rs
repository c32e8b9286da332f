//! The rooms of the core and the floors of its tree, as `docs/architecture.md` draws them: whoever stands higher knows
//! what is below, never the other way round. What is read are the paths in the source (`crate::`, `super::`), without
//! comments and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up. Those of one line do not know each other.
const ROOMS: &[&[&str]] = &[
    &["arrays", "numbers", "slabs", "stop", "threads", "time", "types"],
    &["error", "finding"],
    &["file", "values"],
    &["options"],
    &["log"],
    &["store"],
    &["cache", "mvcc"],
    &["lock"],
    &["tree"],
    &["sort"],
    &["catalog"],
    &["checkpoint", "exports"],
    &["engine"],
    &["server"],
    &["api"],
];

/// Likewise in `tree/`.
const FLOORS: &[&[&str]] = &[
    &["block"],
    &["encoding", "versions"],
    &["leaf"],
    &["change"],
    &["storing"],
    &["read"],
    &["check", "check_image"],
];

/// What a path in the source begins with, from the crate's root: `crate::tree::leaf::Leaf` gives `tree`, `leaf`,
/// `Leaf`.
type Names = Vec<String>;

#[test]
fn rooms_know_only_what_is_below() {
    let found = upward(Path::new("src"), &[], ROOMS);
    assert!(found.is_empty(), "rooms that know what is above them:\n{}", found.join("\n"));
}

#[test]
fn floors_of_the_tree_know_only_what_is_below() {
    let found = upward(Path::new("src/tree"), &["tree"], FLOORS);
    assert!(found.is_empty(), "floors that know what is above them:\n{}", found.join("\n"));
}

/// Paths that lead from a part of `directory` to one that does not stand below it. A name of `directory` itself, which
/// hands on what its parts have, stands above all of them.
fn upward(directory: &Path, prefix: &[&str], order: &[&[&str]]) -> Vec<String> {
    let height = |name: &str| order.iter().position(|line| line.contains(&name));
    let mut found = Vec::new();
    for file in sources(directory) {
        let module = module_of(&file);
        let Some(own) = module.get(prefix.len()) else { continue };
        let Some(own_height) = height(own) else { continue };
        for (line, names) in paths(&fs::read_to_string(&file).expect("a source file"), &module) {
            let inside = names.iter().zip(prefix).all(|(name, part)| name == part);
            let Some(target) = names.get(prefix.len()).filter(|_| inside) else { continue };
            let is_below = match height(target) {
                Some(height) => height < own_height || target == own,
                // Types and macros that the crate's root hands on; of a room's face nothing below it may know.
                None => prefix.is_empty(),
            };
            if !is_below {
                found.push(format!("{}:{line}: {own} knows {}", file.display(), names.join("::")));
            }
        }
    }
    found
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
    for (at, line) in lines.iter().enumerate() {
        for (start, _) in line.match_indices("crate::").chain(line.match_indices("super::")) {
            let before = line[..start].chars().next_back();
            if before.is_some_and(|c| c == ':' || c == '_' || c.is_alphanumeric()) {
                continue;
            }
            // A list may go over several lines.
            let rest = lines[at..].iter().take(12).copied().collect::<String>();
            found.extend(targets(&rest[start..], module).into_iter().map(|names| (at + 1, names)));
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
