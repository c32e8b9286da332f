//! Tells the program which commit it is built of: `0.1.0 (af000ed)`. Without git, or outside of a checkout, it has
//! the version alone.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It grows with each commit, on whichever branch.
    if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={path}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let version = match git(&["describe", "--always", "--exclude=*"]) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_string(),
    };
    println!("cargo:rustc-env=TEAK_VERSION={version}");
}

/// What git says, if it says anything.
fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_string()).filter(|text| !text.is_empty())
}
