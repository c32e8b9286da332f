//! The `teak` command: a look at an engine directory while no server uses it.
//!
//! One module per subcommand; the work is in the library.

mod check;
mod directory;
mod inspect;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: teak inspect DIR    what is in an engine directory (<datadir>/#teak): checkpoint, log, tables
       teak check DIR      read every block of every table and verify it; exit status 1 if something is damaged
       teak version

The server must not run. Both commands recover from the log, as a start of the server would, and make no checkpoint.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = std::io::stdout().lock();
    let result = match arguments[..] {
        ["inspect", dir] => inspect::run(Path::new(dir), &mut out),
        ["check", dir] => check::run(Path::new(dir), &mut out),
        ["version" | "--version" | "-V"] => version(&mut out),
        ["help" | "--help" | "-h"] => print(&mut out, USAGE),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("teak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    Core(teak_core::Error),
    Output(std::io::Error),
    /// This many tables are damaged; each was reported.
    Damaged(usize),
    NoEngine(std::path::PathBuf),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Core(error) => error.fmt(f),
            Failure::Output(error) => write!(f, "cannot write the output: {error}"),
            Failure::Damaged(1) => write!(f, "1 table is damaged"),
            Failure::Damaged(tables) => write!(f, "{tables} tables are damaged"),
            Failure::NoEngine(dir) => write!(f, "{} is not an engine directory of Teak", dir.display()),
        }
    }
}

impl From<teak_core::Error> for Failure {
    fn from(error: teak_core::Error) -> Failure {
        Failure::Core(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Output(error)
    }
}

fn print(out: &mut dyn std::io::Write, text: &str) -> Result<(), Failure> {
    Ok(out.write_all(text.as_bytes())?)
}

fn version(out: &mut dyn std::io::Write) -> Result<(), Failure> {
    Ok(writeln!(out, "teak {}", env!("CARGO_PKG_VERSION"))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Arc;
    use teak_core::engine::Engine;
    use teak_core::file::RealFileSystem;
    use teak_core::{Isolation, Options, TreeSpec, WriteOp};

    struct Directory(PathBuf);

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn directory(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("teak-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let engine = Engine::open(Arc::new(RealFileSystem), Options::new(&path)).unwrap();
        for table in ["db/good", "db/other"] {
            engine.create_table(table, &[TreeSpec::default()], b"", None).unwrap();
            let tree = engine.open_table(table).unwrap().tree(0).clone();
            let mut txn = engine.begin(Isolation::Repeatable);
            for i in 0..2000u32 {
                txn.write(&tree, &i.to_be_bytes(), WriteOp::Insert(&[i as u8; 100])).unwrap();
            }
            txn.commit().unwrap();
        }
        engine.close().unwrap();
        Directory(path)
    }

    #[test]
    fn inspect_names_tables_and_leaves_the_directory_usable() {
        let dir = directory("inspect");
        for _ in 0..2 {
            let mut out = Vec::new();
            inspect::run(&dir.0, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("db/good") && text.contains("2000"), "{text}");
        }
        let mut out = Vec::new();
        check::run(&dir.0, &mut out).unwrap();
        assert!(matches!(inspect::run(&dir.0.join("log"), &mut out), Err(Failure::NoEngine(_))));
    }

    #[test]
    fn check_finds_a_flipped_bit_and_names_the_table_and_no_other() {
        use std::os::unix::fs::FileExt;
        let dir = directory("check");
        let file = std::fs::File::options().read(true).write(true).open(dir.0.join("s1.teak")).unwrap();
        // Every block of the table, so that the one with the newest rows is hit.
        let length = file.metadata().unwrap().len();
        for at in (4096..length).step_by(512) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        }
        let mut out = Vec::new();
        assert!(matches!(check::run(&dir.0, &mut out), Err(Failure::Damaged(1))));
        let text = String::from_utf8(out).unwrap();
        let of = |table: &str| text.lines().find(|line| line.contains(table)).unwrap_or_default().to_string();
        assert!(of("db/good").contains("s1.teak"), "{text}");
        assert!(of("db/other").contains("ok"), "{text}");
    }
}
