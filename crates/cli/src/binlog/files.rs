//! Logs in files, and on standard input.

use super::event_json::Where;
use super::printer::Printer;
use super::start::Start;
use super::BinlogError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use teak_binlog::{Decoder, Error, Framer, Limits, Place};

/// So much of a file is read at once.
const READ_BYTES: usize = 256 << 10;

/// Shows files, one after the other.
pub fn show(
    files: &[PathBuf],
    mut start: Option<Start>,
    printer: &mut Printer<'_>,
) -> Result<(), BinlogError> {
    for file in files {
        show_file(file, &mut start, printer)?;
    }
    start.map_or(Ok(()), |start| start.finish())
}

fn show_file(path: &Path, start: &mut Option<Start>, printer: &mut Printer<'_>) -> Result<(), BinlogError> {
    let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    let failed = |error| BinlogError::Read { file: name.clone(), error };
    let mut input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    // In the output a file is called as the server calls it.
    let short = path.file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
    let mut framer = Framer::new(Limits::default());
    let mut decoder = Decoder::of_file(name.as_str(), Limits::default());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        framer.feed(&buffer[..read]);
        while let Some(frame) = framed(&mut framer, &name)? {
            let event = decoder.decode(frame.position, frame.bytes)?;
            let at = Where { file: &short, end: Some(frame.position + frame.bytes.len() as u64) };
            if start.as_mut().map_or(Ok(true), |start| start.passes(&event))? {
                printer.event(&at, &event, &mut decoder)?;
            }
        }
    }
    framer.finish().map_err(|problem| at(&framer, &name, problem))
}

fn framed<'f>(framer: &'f mut Framer, name: &str) -> Result<Option<teak_binlog::Frame<'f>>, BinlogError> {
    let position = framer.position();
    framer.next_event().map_err(|problem| {
        let place = Place { file: Some(name.into()), position, event: None };
        Error::new(place, problem).into()
    })
}

fn at(framer: &Framer, name: &str, problem: teak_binlog::Problem) -> BinlogError {
    let place = Place { file: Some(name.into()), position: framer.position(), event: None };
    Error::new(place, problem).into()
}
