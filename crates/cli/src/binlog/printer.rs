//! From events to lines of the output.

use super::event_json::{self, Where};
use super::{text, BinlogError};
use std::io::Write;
use teak_binlog::{Body, Decoder, Error, Event, Limits};

/// What lines are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// A JSON object each.
    Json,
}

/// Prints events.
pub struct Printer<'o> {
    out: &'o mut dyn Write,
    form: Form,
    file: Option<String>,
}

impl<'o> Printer<'o> {
    /// To an output.
    pub fn new(out: &'o mut dyn Write, form: Form) -> Printer<'o> {
        Printer { out, form, file: None }
    }

    /// An event of a log, and those in it if it holds a transaction.
    pub fn event(
        &mut self,
        at: &Where<'_>,
        event: &Event<'_>,
        decoder: &mut Decoder,
    ) -> Result<(), BinlogError> {
        self.print(at, event)?;
        let Body::TransactionPayload(payload) = &event.body else { return Ok(()) };
        let position = event.place.position;
        let of_payload = |problem| Error::new(event.place.clone(), problem);
        let mut events = payload.events(&Limits::default()).map_err(of_payload)?;
        while let Some(bytes) = events.next_event().map_err(of_payload)? {
            let inner = decoder.decode_in_payload(position, bytes)?;
            self.print(&Where { file: at.file, end: None }, &inner)?;
        }
        Ok(())
    }

    /// What has been printed goes to whoever reads it.
    pub fn flush(&mut self) -> Result<(), BinlogError> {
        self.out.flush().map_err(BinlogError::Output)
    }

    fn print(&mut self, at: &Where<'_>, event: &Event<'_>) -> Result<(), BinlogError> {
        // Nothing of an event is printed that has an error.
        let lines = match self.form {
            Form::Json => event_json::line(at, event)? + "\n",
            Form::Text => {
                let is_new = !at.file.is_empty() && self.file.as_deref() != Some(at.file);
                text::block(at, event, is_new)?
            }
        };
        if self.file.as_deref() != Some(at.file) {
            self.file = Some(at.file.to_string());
        }
        self.out.write_all(lines.as_bytes()).map_err(BinlogError::Output)
    }
}
