//! The archive as trees of names, as file systems have them: that of `system.path`, and those of views.
//!
//! A record is at its path, and whatever is before a slash of it is a directory. What records alone do not say is a
//! row of the tree `directories`: a directory that was made, which may be empty, and what properties it was given. Of
//! several records with one path the oldest has the plain name, as in views; a file beside a directory of its name has
//! 8 digits of its OID.
//!
//! | file | is about |
//! |---|---|
//! | `folders.rs` | rows of directories |
//! | `look.rs` | what is at a path, in it, and below it, at a moment |
//! | `place.rs` | what a record has that is to be at a path |
//! | `change.rs` | making, putting, removing, moving, copying, each in one transaction |

mod change;
mod folders;
mod look;
mod place;

pub use change::{ChangeProperties, Check};

use crate::archive::Archive;
use crate::rows::Record;
use crate::schema::{built_in, Value};
use crate::{Error, Result};

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root<'a> {
    /// That of `system.path`.
    Files,
    /// That of a view.
    View(&'a str),
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A directory.
    Directory(Folder),
    /// The record of a file.
    File(Box<Record>),
}

/// What is known of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// When it was made, in microseconds since 1970; `None`: it is there because of what is in it.
    pub created: Option<i64>,
    /// As they were given; what they mean is for who gave them.
    pub properties: Vec<String>,
}

/// Is told the name of a child and what it is; whether more are wanted.
pub type TellChild<'a> = dyn FnMut(&str, Node) -> Result<bool> + 'a;

/// Of a name, in bytes: that of file systems.
const MOST_NAME_BYTES: usize = 255;
/// Of a path, in bytes, as `system.path` has them.
const MOST_PATH_BYTES: usize = 3500;

impl Archive {
    /// What is at a path; that of the tree itself is empty. Slashes at its ends count for nothing.
    pub fn node(&self, root: Root<'_>, path: &str) -> Result<Option<Node>> {
        self.look(root)?.node(&joined(path)?)
    }

    /// Tells what is in a directory, as of one moment: its directories, whose names are in memory for that, and then
    /// its files. `false`: there is no such directory.
    pub fn each_child(&self, root: Root<'_>, path: &str, call: &mut TellChild<'_>) -> Result<bool> {
        let (look, path) = (self.look(root)?, joined(path)?);
        if look.directory(&path)?.is_none() {
            return Ok(false);
        }
        look.each_child(&path, call)?;
        Ok(true)
    }
}

impl Record {
    /// The type of its data, if it was told.
    pub fn content_type(&self) -> Option<&str> {
        match self.given(built_in::CONTENT_TYPE) {
            Some(Value::String(of)) => Some(of),
            _ => None,
        }
    }

    /// When its data was changed last, as far as is known: `file.modified`, or when it was put.
    pub fn modified(&self) -> i64 {
        match self.given(built_in::FILE_MODIFIED) {
            Some(Value::Timestamp(modified)) => *modified,
            _ => self.created,
        }
    }

    /// Properties that it was given, as [`Folder`] has them.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        let list = match self.given(built_in::PROPERTIES) {
            Some(Value::List(list)) => &list[..],
            _ => &[],
        };
        list.iter().filter_map(|property| match property {
            Value::String(property) => Some(&**property),
            _ => None,
        })
    }

    fn given(&self, number: u32) -> Option<&Value> {
        let at = self.values.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(&self.values[at].1)
    }
}

/// A path without slashes at its ends, if it is one.
fn joined(path: &str) -> Result<String> {
    let trimmed = path.trim_matches('/');
    let is_name = |name: &str| !["", ".", ".."].contains(&name);
    match trimmed.contains('\0') || !(trimmed.is_empty() || trimmed.split('/').all(is_name)) {
        true => Err(Error::Usage(format!("'{}' is no path", path.escape_debug()))),
        false => Ok(trimmed.to_string()),
    }
}

/// The same, of something that is to be made.
fn joined_new(path: &str) -> Result<String> {
    let path = joined(path)?;
    let shown = || path.chars().take(60).collect::<String>().escape_debug().to_string();
    if path.len() > MOST_PATH_BYTES || path.split('/').any(|name| name.len() > MOST_NAME_BYTES) {
        let text = format!(
            "path {}...: a name has at most {MOST_NAME_BYTES} bytes, and all of it {MOST_PATH_BYTES}",
            shown()
        );
        return Err(Error::Usage(text));
    }
    match path.is_empty() || path.chars().any(char::is_control) {
        true => Err(Error::Usage(format!("'{}': a name has no control characters", shown()))),
        false => Ok(path),
    }
}

/// The directory that something is in, and its own name.
fn parent_of(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// What all paths below a directory begin with.
fn below(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}/")
    }
}
