//! `teak backup` and the commands below it: the one that proves a backup by a restore is of [`crate::restore`], which
//! knows [`crate::backup`], and not the other way round.

use crate::backup::options::Help;
use crate::backup::{self, kept, unpack, verify, BackupError};
use crate::restore::rehearse;
use clap::{Args, Subcommand};
use std::io::Write;
use std::path::PathBuf;

/// What is asked for.
#[derive(Args, Debug)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
#[group(skip)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    make: backup::Arguments,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read a backup again and compare all checksums, recover it in memory, and check every table; of an incremental
    /// one without --base, compare its own checksums
    Verify(verify::Arguments),
    /// Restore a backup to a directory for that, start a server on it, check every table, and remove it again
    Rehearse(Box<rehearse::Arguments>),
    /// The backups in a directory: when they were made, how large they are, and what stands on what
    List(kept::ListArguments),
    /// Remove the backups in a directory that no rule keeps; what a kept one stands on stays
    Prune(kept::PruneArguments),
    /// Make the directory of a backup of its stream, which is read from standard input
    Unpack {
        /// Empty, or does not exist
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Show no progress
        #[arg(long, short = 'q')]
        quiet: bool,
        #[command(flatten)]
        help: Help,
    },
}

/// Makes a backup, or does with those that there are what the command says.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), BackupError> {
    match &arguments.command {
        None => backup::run(&arguments.make, out),
        Some(Command::Verify(arguments)) => verify::run(arguments, out),
        Some(Command::Rehearse(arguments)) => rehearse::run(arguments, out),
        Some(Command::List(arguments)) => kept::list(arguments, out),
        Some(Command::Prune(arguments)) => kept::prune(arguments, out),
        Some(Command::Unpack { dir, quiet, .. }) => unpack::run(dir, *quiet),
    }
}
