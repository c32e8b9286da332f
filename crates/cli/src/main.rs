//! The `teak` command: looks at engine directories while no server uses them, and works with servers as their client.
//!
//! One module per subcommand; the work is in the core, in the crates of the others, or in the module's own directory.

mod archive;
mod backup;
mod backup_commands;
mod binlog;
mod check;
mod children;
mod directory;
mod inspect;
mod priority;
mod resolve;
mod restore;
mod salvage;
mod status;
mod url;

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use teak_console::terminal;
use teak_convert as convert;
use teak_exporter as exporter;
use teak_load as load;
use teak_replicate as replicate;
use teak_report as report;
use teak_top as top;

/// The command line of Teak, a storage engine for MariaDB
#[derive(Parser)]
#[command(name = "teak", version = VERSION, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What is in an engine directory (<datadir>/#teak): checkpoint, log, tables. The server must not run
    ///
    /// Recovers from the log, as a start of the server would, and makes no checkpoint.
    Inspect {
        /// The server's data directory, or the engine's in it
        dir: PathBuf,
    },
    /// Verify every block and every structure of every table; exit status 3 if something is damaged. The server must
    /// not run
    ///
    /// Recovers from the log, as a start of the server would, and makes no checkpoint. Whether indexes have what their
    /// rows say is for CHECK TABLE ... EXTENDED.
    Check {
        /// The server's data directory, or the engine's in it
        dir: PathBuf,
        /// Say of each table that it is ok
        #[arg(short, long)]
        verbose: bool,
    },
    /// Write the readable entries of every table as hex, a file for each, and report what is lost. The server must not
    /// run
    ///
    /// Changes nothing in the engine's directory. The columns of a row are known to the server alone: it gives the same
    /// rows in SQL when it is started with --teak-force-recovery.
    Salvage {
        /// The server's data directory, or the engine's in it
        dir: PathBuf,
        /// Where the files go: created if missing, and there must be none of that name
        #[arg(long, short, default_value = "salvaged")]
        output: PathBuf,
        /// Tables whose name begins so, as `teak inspect` shows it; without, all
        #[arg(default_value = "")]
        tables: String,
    },
    /// Load SQL dumps into a server, on several connections
    #[command(disable_help_flag = true)]
    Load(Box<load::Arguments>),
    /// Convert tables of a running server to Teak, or back to InnoDB, with their foreign keys
    #[command(disable_help_flag = true)]
    Convert(Box<convert::Arguments>),
    /// Back a running server up: Teak's tables, and all others with mariadb-backup; or verify a backup
    #[command(disable_help_flag = true)]
    Backup(Box<backup_commands::Arguments>),
    /// Make a data directory of a backup
    Restore(Box<restore::Arguments>),
    /// Show binary logs of MariaDB and MySQL, of files or as a server sends them
    #[command(disable_help_flag = true)]
    Binlog(Box<binlog::Arguments>),
    /// Follow servers of MariaDB and MySQL, and apply what they change in another server, each transaction exactly once
    Replicate(replicate::Arguments),
    /// Tell Prometheus, and a browser, how a server and its Teak tables are
    #[command(disable_help_flag = true)]
    Exporter(Box<exporter::Arguments>),
    /// Tell what a server's Teak tables and indexes take and save, and what to do about it: with evidence and statement
    #[command(disable_help_flag = true)]
    Report(Box<report::Arguments>),
    /// Show a server in a terminal: rates, who waits for whom, sessions, statements; record it, and show recordings
    #[command(disable_help_flag = true)]
    Top(Box<top::Arguments>),
    /// End transactions that Spider's heads have left prepared on shards, as these have noted
    #[command(disable_help_flag = true)]
    Resolve(Box<resolve::Arguments>),
    /// Keep files in an archive: each content once, found by typed metadata, protected by holds
    Archive(archive::Arguments),
    /// Print statements that make views of who waits for whom, in a database `teak`: teak views | mariadb
    Views,
    /// Print the version
    Version,
    /// Write the manual pages, a file for each command
    Man {
        /// Where they go: made if it is missing
        dir: PathBuf,
    },
}

/// The program: reads the command line of the process and carries it out.
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    teak_client::hide_passwords(&arguments);
    let line = CommandLine::parse_from(teak_client::split_short_password(arguments));
    // Not locked: threads of a load write events to it.
    let mut out = std::io::stdout();
    let result = match line.command {
        Command::Inspect { dir } => inspect::run(&dir, &mut out),
        Command::Check { dir, verbose } => check::run(&dir, verbose, &mut out),
        Command::Salvage { dir, output, tables } => salvage::run(&dir, &output, &tables, &mut out),
        Command::Load(arguments) => load::run(&arguments, &mut out).map_err(Failure::Load),
        Command::Convert(arguments) => convert::run(&arguments, &mut out).map_err(Failure::Convert),
        Command::Backup(arguments) => backup_commands::run(&arguments, &mut out).map_err(Failure::Backup),
        Command::Restore(arguments) => restore::run(&arguments, &mut out).map_err(Failure::Backup),
        Command::Binlog(arguments) => binlog::run(&arguments, &mut out).map_err(Failure::Binlog),
        Command::Replicate(arguments) => replicate::run(&arguments, &mut out).map_err(Failure::Replicate),
        Command::Exporter(arguments) => exporter::run(&arguments, VERSION).map_err(Failure::Exporter),
        Command::Report(arguments) => report_on(&arguments, &mut out),
        Command::Top(arguments) => top::run(&arguments, &mut out).map_err(Failure::Top),
        Command::Resolve(arguments) => resolve::run(&arguments, &mut out).map_err(Failure::Resolve),
        Command::Archive(arguments) => archive::run(&arguments, &mut out).map_err(Failure::Archive),
        Command::Views => views(&mut out),
        Command::Version => version(&mut out),
        Command::Man { dir } => man(&dir),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::message(&format!("teak: {error}"));
            status::of(&error).into()
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
    Load(load::LoadError),
    Backup(backup::BackupError),
    Convert(convert::ConvertError),
    Binlog(binlog::BinlogError),
    Replicate(replicate::ReplicateError),
    Exporter(exporter::ExporterError),
    Report(report::ReportError),
    Top(top::TopError),
    Resolve(resolve::ResolveError),
    Archive(archive::ArchiveError),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Core(error @ teak_core::Error::InUse { .. }) => {
                write!(f, "{error}: stop the server, or the other teak command, that uses the directory")
            }
            Failure::Core(error) => error.fmt(f),
            Failure::Output(error) => write!(f, "cannot write the output: {error}"),
            Failure::Damaged(0) => write!(f, "files are damaged"),
            Failure::Damaged(1) => write!(f, "1 table is damaged"),
            Failure::Damaged(tables) => write!(f, "{tables} tables are damaged"),
            Failure::Load(error) => error.fmt(f),
            Failure::Backup(error) => error.fmt(f),
            Failure::Convert(error) => error.fmt(f),
            Failure::Binlog(error) => error.fmt(f),
            Failure::Replicate(error) => error.fmt(f),
            Failure::Exporter(error) => error.fmt(f),
            Failure::Report(error) => error.fmt(f),
            Failure::Top(error) => error.fmt(f),
            Failure::Resolve(error) => error.fmt(f),
            Failure::Archive(error) => error.fmt(f),
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

/// With the commit that it was built of, if that was known.
const VERSION: &str = env!("TEAK_VERSION");

fn version(out: &mut dyn std::io::Write) -> Result<(), Failure> {
    Ok(writeln!(out, "teak {VERSION}")?)
}

fn report_on(arguments: &report::Arguments, out: &mut dyn std::io::Write) -> Result<(), Failure> {
    let written = match &arguments.directory {
        Some(dir) => report::of_directory(&directory::open(dir)?, dir, arguments, out),
        None => report::run(arguments, out),
    };
    written.map_err(Failure::Report)
}

/// For the `mariadb` client.
fn views(out: &mut dyn std::io::Write) -> Result<(), Failure> {
    Ok(out.write_all(include_bytes!("views.sql"))?)
}

/// What `--help` tells, as pages for `man`.
fn man(dir: &std::path::Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)?;
    Ok(clap_mangen::generate_to(CommandLine::command(), dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use teak_core::file::RealFileSystem;
    use teak_core::server::{Engine, NewTable};
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
            engine.create(NewTable::new(table, &[TreeSpec::default()])).unwrap();
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
    fn each_command_has_a_manual_page() {
        let dir = Directory(std::env::temp_dir().join(format!("teak-cli-man-{}", std::process::id())));
        man(&dir.0).unwrap();
        for (page, word) in [
            ("teak", "Teak"),
            ("teak-load", "resume"),
            ("teak-backup-verify", "base"),
            ("teak-restore", "until"),
        ] {
            let text = std::fs::read_to_string(dir.0.join(format!("{page}.1"))).unwrap();
            assert!(text.contains(word), "{page}: {text}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }

    #[test]
    fn commands_below_others_have_help() {
        use clap::error::ErrorKind;
        for command in [["backup", "verify"], ["backup", "unpack"]] {
            let given = ["teak", command[0], command[1], "--help"];
            let shown = CommandLine::try_parse_from(given).err().map(|error| error.kind());
            assert_eq!(shown, Some(ErrorKind::DisplayHelp), "{given:?}");
        }
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
        check::run(&dir.0, false, &mut out).unwrap();
        assert!(matches!(inspect::run(&dir.0.join("log"), &mut out), Err(Failure::NoEngine(_))));
    }

    #[test]
    fn salvage_writes_every_entry_that_no_damaged_block_held_and_says_what_is_lost() {
        use std::os::unix::fs::FileExt;
        let dir = directory("salvage");
        let file = std::fs::File::options().read(true).write(true).open(dir.0.join("s1.teak")).unwrap();
        let length = file.metadata().unwrap().len();
        let mut byte = [0];
        let run = |output: &str, tables: &str| {
            let mut out = Vec::new();
            let result = salvage::run(&dir.0, &dir.0.join(output), tables, &mut out);
            let read =
                |table: &str| std::fs::read_to_string(dir.0.join(output).join(table)).unwrap_or_default();
            (result, String::from_utf8(out).unwrap(), read("db@good.tsv"), read("db@other.tsv"))
        };
        let (result, text, good, other) = run("whole", "");
        assert!(result.is_ok(), "{text}");
        assert_eq!((good.lines().count(), other.lines().count()), (2000, 2000));
        assert!(good.contains(&format!("0\t00000007\t{}\n", "07".repeat(100))));
        let mut damaged = 0;
        for at in (4096..length).step_by(512) {
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            let (result, text, good, other) = run(&format!("at-{at}"), "db/");
            assert_eq!(other.lines().count(), 2000);
            match result {
                Ok(()) => assert_eq!(good.lines().count(), 2000),
                Err(Failure::Damaged(1)) => {
                    damaged += 1;
                    assert!(
                        good.lines().count() < 2000 && text.contains("db/good") && text.contains("s1.teak"),
                        "{text}"
                    );
                }
                Err(error) => panic!("{error}"),
            }
            file.write_all_at(&byte, at).unwrap();
        }
        assert!(damaged > 0);
        assert!(
            matches!(run("whole", "").0, Err(Failure::Output(_))),
            "files that are there stay as they are"
        );
    }

    #[test]
    fn salvage_writes_tables_of_any_names_and_an_index() {
        let dir = directory("names");
        let engine = Engine::open(Arc::new(RealFileSystem), Options::new(&dir.0)).unwrap();
        let long: Vec<String> =
            ["a", "b"].map(|end| format!("{}/{}{end}", "表".repeat(30), "能".repeat(60))).to_vec();
        let names = [&long[0], &long[1], "a@b/c", "a/b@c"];
        for name in names {
            engine.create(NewTable::new(name, &[TreeSpec::default()])).unwrap();
        }
        engine.close().unwrap();
        let output = dir.0.join("out");
        let mut out = Vec::new();
        salvage::run(&dir.0, &output, "", &mut out).unwrap();
        let index = std::fs::read_to_string(output.join("index.tsv")).unwrap();
        let files: std::collections::HashMap<_, _> =
            index.lines().filter_map(|line| line.split_once('\t')).map(|(file, name)| (name, file)).collect();
        assert_eq!(files.len(), names.len() + 2, "{index}");
        for name in names {
            assert!(output.join(files[name]).is_file(), "{name}");
        }
        assert_eq!(files["db/good"], "db@good.tsv");
        match salvage::run(&dir.0, &output, "", &mut out) {
            Err(Failure::Output(error)) => assert!(error.to_string().contains("index.tsv"), "{error}"),
            other => panic!("{other:?}"),
        }
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
        assert!(matches!(check::run(&dir.0, true, &mut out), Err(Failure::Damaged(1))));
        let text = String::from_utf8(out).unwrap();
        // What is wrong stands below the table's name.
        let mut good = text.lines().skip_while(|line| !line.starts_with("db/good: "));
        assert_eq!(good.next(), Some("db/good: damaged"), "{text}");
        assert!(good.next().is_some_and(|line| line.contains("s1.teak")), "{text}");
        assert!(text.contains("db/other: ok\n"), "{text}");
        assert!(text.ends_with("2 tables, 1 damaged\n"), "{text}");
    }

    #[test]
    fn check_takes_a_data_directory_and_is_brief_about_what_is_well() {
        let dir = directory("datadir");
        let datadir = dir.0.with_extension("data");
        let _ = std::fs::remove_dir_all(&datadir);
        std::fs::create_dir(&datadir).unwrap();
        std::fs::rename(&dir.0, datadir.join("#teak")).unwrap();
        let mut out = Vec::new();
        let checked = check::run(&datadir, false, &mut out);
        std::fs::rename(datadir.join("#teak"), &dir.0).unwrap();
        std::fs::remove_dir(&datadir).unwrap();
        checked.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "2 tables, 0 damaged\n");
    }
}
