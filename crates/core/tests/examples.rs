//! The programs in `examples/`, which check what they do. Cargo builds them with the tests, but for `--test examples`
//! alone: that needs `--examples` as well.

use std::path::PathBuf;
use std::process::Command;

fn run(program: &str) {
    // This test is in `deps`, next to `examples`.
    let mut path = std::env::current_exe().expect("this program's path");
    path.pop();
    path.pop();
    let path: PathBuf = path.join("examples").join(program);
    let output = Command::new(&path).output().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program}: {}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn accounts_keep_their_sum() {
    run("accounts");
}

#[test]
fn each_job_of_the_queue_is_done_once() {
    run("queue");
}

#[test]
fn the_long_report_does_not_change() {
    run("report");
}

#[test]
fn a_bulk_load_is_there_after_a_crash() {
    run("bulk_load");
}
