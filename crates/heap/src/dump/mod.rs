//! Profiles as files: what is recorded, for the programs that draw it.
//!
//! | file | has |
//! |---|---|
//! | `text` | the text that `jeprof` and `google-pprof` read; they look up names themselves |
//! | `pprof` | the protobuf of `pprof`, with names in it |

pub mod pprof;
pub mod text;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::control;
use crate::recorder::records::{EXACT, SAMPLED};
use crate::recorder::thread::ThreadState;
use crate::sites::{sites, Weight};

/// Bytes of a file's name, at most.
const NAME_BYTES: usize = 200;

/// What a dump is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `.heap`
    Text,
    /// `.pb`
    Pprof,
    /// `.pb.gz`
    PackedPprof,
}

impl Form {
    /// That of a file with this name.
    ///
    /// # Errors
    /// It is no name for a dump. A dump may lie beside the server's own files, so it is not called as they could be.
    pub fn of(name: &str) -> Result<Form, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > NAME_BYTES || name.starts_with('.') || !name.chars().all(is_plain)
        {
            return Err(format!(
                "'{name}' is no name for a dump: letters, digits, '.', '_' and '-', and no directory, which is \
                 teak_heap_directory"
            ));
        }
        [(".heap", Form::Text), (".pb", Form::Pprof), (".pb.gz", Form::PackedPprof)]
            .into_iter()
            .find(|(suffix, _)| name.ends_with(suffix))
            .map(|(_, form)| form)
            .ok_or_else(|| {
                format!("'{name}': a dump ends with .heap (text, for jeprof and google-pprof), .pb or .pb.gz (for pprof)")
            })
    }
}

/// Writes what is recorded to a new file; where it is.
///
/// # Errors
/// Nothing was begun, the name is none for a dump, there is such a file, or it cannot be written.
pub fn dump(thread: &ThreadState, directory: &str, name: &str) -> Result<String, String> {
    let form = Form::of(name)?;
    let running = control::running();
    if crate::recorder::recorder().is_none() {
        return Err("nothing was recorded: teak_heap_start() or teak_heap_session(1) begins that".to_string());
    }
    // Samples stand for all that there is; without any, what was followed is all that is known.
    let kind = if running.last_period.is_some() { SAMPLED } else { EXACT };
    let weight = if form == Form::Text { Weight::Raw } else { Weight::Scaled };
    let sites = sites(thread, weight, |record| record.kind & kind != 0);
    let content = match form {
        Form::Text => text::encode(&sites, running.last_period).into_bytes(),
        Form::Pprof => pprof::encode(&sites, running.last_period),
        Form::PackedPprof => {
            pack(&pprof::encode(&sites, running.last_period)).map_err(|error| error.to_string())?
        }
    };
    let path = Path::new(directory).join(name);
    write_new(&path, &content).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{} is there already: a dump is never written over a file", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    })?;
    Ok(path.to_string_lossy().into_owned())
}

fn pack(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(content)?;
    packer.finish()
}

/// A new file, or none: what was begun is removed if it cannot be finished.
fn write_new(path: &PathBuf, content: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if written.is_err() {
        // The error of writing it is what counts.
        let _ = std::fs::remove_file(path);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_form_and_no_directory() {
        assert_eq!(Form::of("a.heap"), Ok(Form::Text));
        assert_eq!(Form::of("a.pb"), Ok(Form::Pprof));
        assert_eq!(Form::of("a-1_b.pb.gz"), Ok(Form::PackedPprof));
        for bad in
            ["", "a", "ibdata1", "../a.heap", "/tmp/a.heap", ".a.heap", "a\0.heap", "a b.heap", "ä.heap"]
        {
            assert!(Form::of(bad).is_err(), "{bad}");
        }
        assert!(Form::of(&format!("{}.heap", "a".repeat(NAME_BYTES))).is_err());
    }

    #[test]
    fn a_file_is_never_written_over() {
        let directory = std::env::temp_dir().join(format!("teak-heap-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.heap");
        write_new(&path, b"first").unwrap();
        assert_eq!(write_new(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
