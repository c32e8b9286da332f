//! `teak archive view`.

use super::{changing, objects, open, values, ArchiveError};
use clap::{Args, Subcommand};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use teak_archive::{Item, Name, View};

#[derive(Args, Debug)]
pub(super) struct Viewed {
    /// The archive
    path: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make a view, and its index
    Create {
        /// Letters, digits and . _ - /
        name: String,
        /// Such as '/{artist}/{album}/{track:02}-{title}.{ext}'
        pattern: String,
        /// Which records it shows, of those that have all fields of the pattern
        #[arg(long = "where", value_name = "EXPRESSION", default_value = "")]
        condition: String,
    },
    /// Remove a view, and nothing that it shows
    Drop {
        /// The view
        name: String,
    },
    /// The views, with their patterns and conditions
    List,
    /// Show pattern and condition of a view
    Show {
        /// The view
        name: String,
    },
    /// What is in a directory of a view; names of directories end with /
    Ls {
        /// The view
        name: String,
        /// A directory
        #[arg(default_value = "/")]
        directory: String,
        /// With OID and size
        #[arg(long, short)]
        long: bool,
    },
    /// Write the bytes of a file of a view
    Cat {
        /// The view
        name: String,
        /// The file
        file: String,
    },
    /// Store a file with the fields that a path of a view gives, and print its OID
    Put {
        /// The view
        name: String,
        /// Where it is to be
        at: String,
        /// What to store; `-` is standard input
        file: PathBuf,
        /// More metadata
        #[arg(long, value_name = "FIELD=VALUE", value_parser = values::field)]
        meta: Vec<(String, String)>,
    },
}

/// Items of a directory that are in memory at a time.
const PAGE: usize = 1000;

pub(super) fn view(viewed: &Viewed, out: &mut dyn Write) -> Result<(), ArchiveError> {
    match &viewed.action {
        Action::Create { name, pattern, condition } => changing(&viewed.path, |archive| {
            let view = View { pattern: pattern.clone(), condition: condition.clone() };
            Ok(archive.create_view(name, &view)?)
        }),
        Action::Drop { name } => changing(&viewed.path, |archive| Ok(archive.drop_view(name)?)),
        Action::List => {
            let views = open(&viewed.path)?.views()?;
            let mut lines = views.iter();
            Ok(lines
                .try_for_each(|(name, view)| writeln!(out, "{name}\t{}\t{}", view.pattern, view.condition))?)
        }
        Action::Show { name } => {
            let views = open(&viewed.path)?.views()?;
            let view =
                views.get(name).ok_or_else(|| ArchiveError::Usage(format!("there is no view '{name}'")))?;
            writeln!(out, "{}", view.pattern)?;
            match view.condition.is_empty() {
                true => Ok(()),
                false => Ok(writeln!(out, "{}", view.condition)?),
            }
        }
        Action::Ls { name, directory, long } => list(viewed, name, directory, *long, out),
        Action::Cat { name, file } => {
            let archive = open(&viewed.path)?;
            archive.get(Name::Record(archive.find_in_view(name, file)?), None, out)?;
            Ok(out.flush()?)
        }
        Action::Put { name, at, file, meta } => changing(&viewed.path, |archive| {
            let mut metadata = archive.fields_of_path(name, at)?;
            for (field, value) in meta {
                metadata.text(field, value);
            }
            let stored = objects::put_one(archive, file, metadata)?;
            Ok(writeln!(out, "{}", stored.oid)?)
        }),
    }
}

fn list(
    viewed: &Viewed,
    name: &str,
    directory: &str,
    long: bool,
    out: &mut dyn Write,
) -> Result<(), ArchiveError> {
    let archive = open(&viewed.path)?;
    let mut out = BufWriter::new(out);
    let mut from = None;
    loop {
        let page = archive.list_view(name, directory, from.as_deref(), PAGE)?;
        for item in &page.items {
            match item {
                Item::Directory(name) => writeln!(out, "{name}/")?,
                Item::File(name, oid, size) if long => writeln!(out, "{oid}\t{size}\t{name}")?,
                Item::File(name, ..) => writeln!(out, "{name}")?,
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(out.flush()?);
        }
    }
}
