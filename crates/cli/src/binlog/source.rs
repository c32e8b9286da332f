//! Logs that a server sends, as it sends them to a replica.

use super::event_json::Where;
use super::printer::Printer;
use super::BinlogError;
use teak_client::Settings;
use teak_replicate::{Asked, Dump};

/// Shows what the server has, or sends.
pub fn show(settings: &Settings, asked: &Asked, printer: &mut Printer<'_>) -> Result<(), BinlogError> {
    let mut dump = Dump::begin(settings, asked)?;
    while let Some((sent, log)) = dump.receive()? {
        printer.event(&Where { file: &sent.file, end: Some(sent.end) }, &sent.event, &mut log.decoder)?;
        if asked.follow {
            printer.flush()?;
        }
    }
    Ok(())
}
