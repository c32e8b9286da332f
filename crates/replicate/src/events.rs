//! Events with rows as a server takes them in a BINLOG statement: those of the source, written anew. They are all of
//! one form (version 1, not compressed, without checksums), whatever form the source's log has.
//!
//! ```text
//! BINLOG 'base64 of: { table map } { rows }, the last ones with the flag that they end a statement'
//! ```
//!
//! Rows that follow each other and are changed in the same way are one event, however many the source's log has: the
//! server prepares table and engine for each event, and an engine that is told of many rows at once can load them.

mod columns;

pub use columns::MapColumns;
use teak_binlog::{base64, Change, Header, Rows, HEADER_BYTES};

const FORMAT_DESCRIPTION: u8 = 15;
const TABLE_MAP: u8 = 19;
const WRITE_ROWS_V1: u8 = 23;
const UPDATE_ROWS_V1: u8 = 24;
const DELETE_ROWS_V1: u8 = 25;
/// The fixed part of table maps and of rows: the table's id in six bytes, flags in two.
const FIXED_BYTES: usize = 8;
/// Where in a header the event's length is, and in the fixed part of rows the flags.
const LENGTH: std::ops::Range<usize> = 9..13;
const FLAGS: usize = 6;
/// Bytes of events in one statement, about: so many rows that come become blocks of Teak's at once; more are no faster.
const ENOUGH: usize = 512 << 10;

/// What is in front of the images of an event, at most: header, fixed part, and bits for 4096 columns, twice.
const HEAD: usize = 2 << 10;

/// What statements with events begin with; behind the digits is a quote.
pub const BINLOG: &[u8] = b"BINLOG '";

/// A row that no statement can have.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong {
    /// In bytes, as an event.
    pub bytes: usize,
}

/// The statement that a session begins with, before others of its kind.
pub fn introduction() -> Vec<u8> {
    let mut event = Vec::new();
    event.extend_from_slice(&4u16.to_le_bytes());
    let mut version = [0; 50];
    let name = b"10.11.0-MariaDB";
    version[..name.len()].copy_from_slice(name);
    event.extend_from_slice(&version);
    event.extend_from_slice(&0u32.to_le_bytes());
    event.push(HEADER_BYTES as u8);
    // The lengths of fixed parts; of types that never come they do not matter.
    let mut lengths = [0; 171];
    lengths[2 - 1] = 13;
    lengths[4 - 1] = 8;
    lengths[FORMAT_DESCRIPTION as usize - 1] = 84;
    for kind in [TABLE_MAP, WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1] {
        lengths[kind as usize - 1] = FIXED_BYTES as u8;
    }
    for kind in [30, 31, 32] {
        lengths[kind - 1] = FIXED_BYTES as u8 + 2;
    }
    event.extend_from_slice(&lengths);
    // No checksums, and room for the one that this event would have.
    event.extend_from_slice(&[0; 5]);
    let mut events = Vec::new();
    push(&mut events, FORMAT_DESCRIPTION, (0, 0), &[&event]);
    statement(&events)
}

/// A statement with events as one that needs no introduction: it has it. The digits of that stand for whole bytes.
pub fn alone(statement: &[u8]) -> Vec<u8> {
    let mut text = introduction();
    text.pop();
    text.extend_from_slice(statement.strip_prefix(BINLOG).unwrap_or_default());
    text
}

fn statement(events: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(BINLOG.len() + events.len().div_ceil(3) * 4 + 1);
    text.extend_from_slice(BINLOG);
    base64(events).for_each(|four| text.extend_from_slice(&four));
    text.push(b'\'');
    text
}

/// Appends an event: its header, with time and server, and the parts of its body. Returns where the body begins.
fn push(events: &mut Vec<u8>, kind: u8, (time, server_id): (u32, u32), parts: &[&[u8]]) -> usize {
    let length = HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
    events.extend_from_slice(&time.to_le_bytes());
    events.push(kind);
    events.extend_from_slice(&server_id.to_le_bytes());
    events.extend_from_slice(&(length as u32).to_le_bytes());
    events.extend_from_slice(&[0; 6]);
    let body = events.len();
    for part in parts {
        events.extend_from_slice(part);
    }
    body
}

/// The rows of one statement of the source, gathered into statements for the target.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Table maps of the source's statement.
    maps: Vec<u8>,
    rows: Vec<u8>,
    /// Where in the rows the last event begins.
    last: usize,
    /// The longest statement that the target takes, in bytes of events.
    longest: usize,
}

impl Gathered {
    /// For a target that takes packets of so many bytes.
    pub fn new(longest_packet: usize) -> Gathered {
        // Three bytes become four, and there is more than the events.
        let longest = longest_packet.saturating_sub(8 << 10) / 4 * 3;
        Gathered { longest, ..Gathered::default() }
    }

    /// A table whose rows will come: the event's body behind its header, without a checksum, and the names that its
    /// database and itself have in the target.
    pub fn table(
        &mut self,
        header: &Header,
        body: &[u8],
        (database, table): (&str, &str),
        columns: &MapColumns,
    ) {
        let (fixed, named) = body.split_at(body.len().min(FIXED_BYTES));
        // Each name has a length before it, and a zero behind it. Names have at most 64 characters.
        let behind = |named: &[u8]| named.first().map_or(0, |&length| 2 + usize::from(length));
        let theirs = behind(named);
        let theirs = theirs + behind(named.get(theirs..).unwrap_or_default());
        let rest = named.get(theirs..).unwrap_or_default();
        let written = columns.written(rest);
        let rest = written.as_deref().unwrap_or(rest);
        let length = |name: &str| [name.len() as u8];
        let (first, second) = (length(database), length(table));
        let parts = [fixed, &first, database.as_bytes(), &[0], &second, table.as_bytes(), &[0], rest];
        push(&mut self.maps, TABLE_MAP, (header.time, header.server_id), &parts);
    }

    /// Rows; statements that are full go to `out`.
    pub fn rows(
        &mut self,
        header: &Header,
        rows: &Rows<'_>,
        out: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), TooLong> {
        let images = rows.images();
        if self.maps.len() + self.rows.len() + images.len() > ENOUGH.min(self.longest) {
            self.flush(out);
        }
        if self.maps.len() + images.len() + HEAD <= self.longest {
            self.event(header, rows, rows.change, images);
            return Ok(());
        }
        // Too many for one statement: as many at once as it can have.
        let (mut from, mut to) = (0, 0);
        let mut each = rows.iter();
        while each.next().is_some() {
            let end = images.len() - each.images_left().len();
            if self.maps.len() + (end - from) + HEAD > self.longest {
                if to == from {
                    return Err(TooLong { bytes: end - from });
                }
                self.event(header, rows, rows.change, &images[from..to]);
                self.flush(out);
                from = to;
            }
            to = end;
        }
        self.event(header, rows, rows.change, &images[from..]);
        Ok(())
    }

    /// One row, with the bytes of its images, as a statement of its own.
    pub fn row(
        &mut self,
        header: &Header,
        rows: &Rows<'_>,
        change: Change,
        images: &[u8],
    ) -> Option<Vec<u8>> {
        let mut made = None;
        self.event(header, rows, change, images);
        self.flush(&mut |statement| made = Some(statement));
        made
    }

    /// One row among others; a statement that is full goes to `out`. Of a change of an update its coming or its going
    /// alone may be taken.
    pub fn some_row(
        &mut self,
        header: &Header,
        rows: &Rows<'_>,
        change: Change,
        images: &[u8],
        out: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), TooLong> {
        if self.maps.len() + self.rows.len() + images.len() + HEAD > ENOUGH.min(self.longest) {
            self.flush(out);
        }
        if self.maps.len() + images.len() + HEAD > self.longest {
            return Err(TooLong { bytes: images.len() });
        }
        self.event(header, rows, change, images);
        Ok(())
    }

    fn event(&mut self, header: &Header, rows: &Rows<'_>, change: Change, images: &[u8]) {
        let kind = match change {
            Change::Write => WRITE_ROWS_V1,
            Change::Update => UPDATE_ROWS_V1,
            Change::Delete => DELETE_ROWS_V1,
        };
        let mut head = rows.table.id.to_le_bytes()[..6].to_vec();
        head.extend_from_slice(&(rows.flags & !Rows::STATEMENT_END).to_le_bytes());
        head.extend_from_slice(&packed(rows.table.columns.len()));
        let (old, new): (&[u8], &[u8]) = match change {
            Change::Write => (&[], rows.new_columns()),
            Change::Delete => (rows.old_columns(), &[]),
            Change::Update => (rows.old_columns(), rows.new_columns()),
        };
        let mut event = Vec::with_capacity(HEADER_BYTES + head.len() + old.len() + new.len());
        push(&mut event, kind, (header.time, header.server_id), &[&head, old, new]);
        let last = &self.rows[self.last..];
        if last.get(..LENGTH.start) == Some(&event[..LENGTH.start])
            && last.get(LENGTH.end..event.len()) == Some(&event[LENGTH.end..])
        {
            // More rows of the last event.
            self.rows.extend_from_slice(images);
        } else {
            self.last = self.rows.len();
            self.rows.extend_from_slice(&event);
            self.rows.extend_from_slice(images);
        }
        let length = ((self.rows.len() - self.last) as u32).to_le_bytes();
        self.rows[self.last..][LENGTH].copy_from_slice(&length);
    }

    /// The source's statement is at its end: what is left goes to `out`.
    pub fn end(&mut self, out: &mut dyn FnMut(Vec<u8>)) {
        self.flush(out);
        self.maps.clear();
    }

    /// Forgets what was gathered.
    pub fn clear(&mut self) {
        self.maps.clear();
        self.forget_rows();
    }

    fn forget_rows(&mut self) {
        self.rows.clear();
        self.last = 0;
    }

    fn flush(&mut self, out: &mut dyn FnMut(Vec<u8>)) {
        if self.rows.is_empty() {
            return;
        }
        self.rows[self.last + HEADER_BYTES + FLAGS] |= Rows::STATEMENT_END as u8;
        out(statement(&[&self.maps[..], &self.rows].concat()));
        self.forget_rows();
    }
}

/// A number of columns, or of bytes that tell of these, as the protocol packs it: there are at most 4096.
fn packed(number: usize) -> Vec<u8> {
    match number {
        few @ 0..=250 => vec![few as u8],
        many => [&[252][..], &(many as u16).to_le_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests;
