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
        columns: MapColumns,
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
mod tests {
    use super::MapColumns::{AsTheyAre, OneMore};
    use super::*;
    use teak_binlog::{Body, Checksum, Decoder, Event, Format, Framer, Limits, Table, Value, MAGIC};

    /// The number of what a base64 digit stands for.
    fn bytes_of(statement: &[u8]) -> Vec<u8> {
        let digits = statement.strip_prefix(b"BINLOG '").unwrap().strip_suffix(b"'").unwrap();
        assert_eq!(digits.len() % 4, 0);
        let value = |digit: u8| match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => 0,
        };
        let mut bytes = Vec::new();
        for four in digits.chunks(4) {
            let number = four.iter().fold(0, |sum: u32, &digit| sum << 6 | u32::from(value(digit)));
            let filled = four.iter().filter(|&&digit| digit == b'=').count();
            bytes.extend_from_slice(&number.to_be_bytes()[1..4 - filled]);
        }
        bytes
    }

    /// What the decoder finds in a log of these statements.
    fn decoded(statements: &[Vec<u8>], see: &mut dyn FnMut(&Event<'_>)) {
        let mut framer = Framer::new(Limits::default());
        framer.feed(&MAGIC);
        statements.iter().for_each(|statement| framer.feed(&bytes_of(statement)));
        let mut decoder = Decoder::of_server(Checksum::None, Limits::default());
        while let Some(frame) = framer.next_event().unwrap() {
            see(&decoder.decode(frame.position, frame.bytes).unwrap());
        }
        framer.finish().unwrap();
    }

    /// A table of an INT and a BLOB, as the body of a table map.
    fn table_map() -> Vec<u8> {
        b"\x07\0\0\0\0\0\x01\0\x02db\0\x01t\0\x02\x03\xfc\x01\x02\x03".to_vec()
    }

    fn image(number: u32, length: usize) -> Vec<u8> {
        let blob = (length as u16).to_le_bytes();
        [&[0xfc][..], &number.to_le_bytes(), &blob, &vec![7; length]].concat()
    }

    /// A log with rows of that table, as the decoder has them: `see` is shown the header and the rows.
    fn with_rows(kind: u8, images: &[u8], see: &mut dyn FnMut(&Header, &Rows<'_>)) {
        let mut events = bytes_of(&introduction());
        push(&mut events, TABLE_MAP, (5, 6), &[&table_map()]);
        let bitmaps: &[u8] = if kind == UPDATE_ROWS_V1 { &[3, 3] } else { &[3] };
        push(&mut events, kind, (5, 6), &[b"\x07\0\0\0\0\0\x03\0\x02", bitmaps, images]);
        let mut framer = Framer::new(Limits::default());
        framer.feed(&MAGIC);
        framer.feed(&events);
        let mut decoder = Decoder::of_server(Checksum::None, Limits::default());
        while let Some(frame) = framer.next_event().unwrap() {
            let event = decoder.decode(frame.position, frame.bytes).unwrap();
            if let Body::Rows(rows) = &event.body {
                see(&event.header, rows);
            }
        }
    }

    /// The statements that rows become, for a target that takes packets of so many bytes.
    fn statements(kind: u8, images: &[u8], longest_packet: usize) -> Result<Vec<Vec<u8>>, TooLong> {
        let names = ("db", "t");
        let mut gathered = Gathered::new(longest_packet);
        let mut made = Vec::new();
        let mut taken = Ok(());
        with_rows(kind, images, &mut |header, rows| {
            gathered.table(header, &table_map(), names, AsTheyAre);
            taken = gathered.rows(header, rows, &mut |statement| made.push(statement));
            gathered.end(&mut |statement| made.push(statement));
        });
        taken.map(|()| made)
    }

    /// The first column of each row, and how many events ended a statement.
    fn numbers(statements: &[Vec<u8>]) -> (Vec<i64>, usize) {
        let (mut found, mut ends) = (Vec::new(), 0);
        let all = [&[introduction()], statements].concat();
        decoded(&all, &mut |event| {
            assert!(
                event.header.code == FORMAT_DESCRIPTION
                    || (event.header.time, event.header.server_id) == (5, 6)
            );
            if let Body::Rows(rows) = &event.body {
                assert_eq!(rows.flags & Rows::NO_FOREIGN_KEY_CHECKS, Rows::NO_FOREIGN_KEY_CHECKS);
                ends += usize::from(rows.flags & Rows::STATEMENT_END != 0);
                for row in rows {
                    let row = row.unwrap();
                    let values = row.new.or(row.old).unwrap().0;
                    let Some(Value::Integer(number)) = &values[0] else { panic!("{values:?}") };
                    found.push(number.signed());
                }
            }
        });
        (found, ends)
    }

    #[test]
    fn the_introduction_is_a_format_description_without_checksums() {
        let mut formats = Vec::new();
        decoded(&[introduction()], &mut |event| {
            if let Body::FormatDescription(format) = &event.body {
                formats.push(Format::clone(format));
            }
        });
        assert_eq!(formats.len(), 1);
        assert_eq!(formats[0].checksum, Checksum::None);
        assert_eq!(formats[0].fixed_bytes[TABLE_MAP as usize - 1], 8);
    }

    #[test]
    fn rows_written_anew_are_those_that_came() {
        let images: Vec<u8> = (0..50).flat_map(|number| image(number, number as usize)).collect();
        for kind in [WRITE_ROWS_V1, DELETE_ROWS_V1, UPDATE_ROWS_V1] {
            let made = statements(kind, &images, 16 << 20).unwrap();
            let wanted = match kind {
                UPDATE_ROWS_V1 => (0..25).map(|number| 2 * number + 1).collect(),
                _ => (0..50).collect(),
            };
            assert_eq!((made.len(), numbers(&made)), (1, (wanted, 1)));
        }
    }

    #[test]
    fn many_rows_become_several_statements_each_with_tables_and_end() {
        let images: Vec<u8> = (0..100).flat_map(|number| image(number, 5000)).collect();
        for (longest_packet, most) in [(1 << 20, 1), (400_000, 2), (100_000, 10), (20_000, 100)] {
            let made = statements(WRITE_ROWS_V1, &images, longest_packet).unwrap();
            assert!(made.len() <= most && made.iter().all(|statement| statement.len() < longest_packet));
            assert_eq!(numbers(&made), ((0..100).collect(), made.len()));
        }
        assert_eq!(statements(WRITE_ROWS_V1, &images, 17_000), Err(TooLong { bytes: 5007 }));
    }

    #[test]
    fn events_that_follow_each_other_are_one_if_they_change_the_same_in_the_same_way() {
        let mut gathered = Gathered::new(1 << 20);
        let mut made = vec![introduction()];
        for (kind, number) in [
            (WRITE_ROWS_V1, 1),
            (WRITE_ROWS_V1, 2),
            (DELETE_ROWS_V1, 3),
            (DELETE_ROWS_V1, 4),
            (WRITE_ROWS_V1, 5),
        ] {
            with_rows(kind, &image(number, 1), &mut |header, rows| {
                if number == 1 {
                    gathered.table(header, &table_map(), ("db", "t"), AsTheyAre);
                }
                let header = Header { time: header.time + u32::from(number == 2), ..*header };
                gathered.rows(&header, rows, &mut |_| panic!("it is not full")).unwrap();
            });
        }
        gathered.end(&mut |statement| made.push(statement));
        let mut found = Vec::new();
        decoded(&made, &mut |event| {
            if let Body::Rows(rows) = &event.body {
                found.push((rows.change, rows.iter().count(), rows.flags & Rows::STATEMENT_END));
            }
        });
        // The second one is of another second.
        let wanted =
            [(Change::Write, 1, 0), (Change::Write, 1, 0), (Change::Delete, 2, 0), (Change::Write, 1, 1)];
        assert_eq!(found, wanted);
    }

    #[test]
    fn one_row_is_a_statement_of_its_own() {
        let images: Vec<u8> = (0..3).flat_map(|number| image(number, 10)).collect();
        let mut gathered = Gathered::new(1 << 20);
        let mut made = Vec::new();
        with_rows(WRITE_ROWS_V1, &images, &mut |header, rows| {
            gathered.table(header, &table_map(), ("db", "t"), AsTheyAre);
            let (mut from, mut each) = (0, rows.iter());
            while each.next().is_some() {
                let to = images.len() - each.images_left().len();
                made.extend(gathered.row(header, rows, rows.change, &images[from..to]));
                from = to;
            }
            gathered.end(&mut |_| panic!("nothing is left"));
        });
        assert_eq!((made.len(), numbers(&made)), (3, (vec![0, 1, 2], 3)));
    }

    #[test]
    fn a_table_map_is_decoded_as_it_was_but_for_its_names() {
        for (database, table) in [("db", "t"), ("", "t"), ("another_name", "t"), ("d", "another_table")] {
            let mut gathered = Gathered::new(1 << 20);
            let (mut made, mut maps) = (vec![introduction()], Vec::new());
            with_rows(WRITE_ROWS_V1, &image(1, 1), &mut |header, rows| {
                gathered.table(header, &table_map(), (database, table), AsTheyAre);
                gathered.rows(header, rows, &mut |_| ()).unwrap();
                gathered.end(&mut |statement| made.push(statement));
            });
            decoded(&made, &mut |event| {
                if let Body::TableMap(table) = &event.body {
                    maps.push(Table::clone(table));
                }
            });
            assert_eq!((maps.len(), maps[0].quoted_name()), (1, format!("`{database}`.`{table}`")));
            assert_eq!(maps[0].columns.len(), 2);
        }
    }

    #[test]
    fn columns_that_are_left_out_are_in_no_image() {
        // The second column of every other row is NULL.
        let null = |number: u32| [&[0xfe][..], &number.to_le_bytes()].concat();
        let all = [image(1, 3), null(2), image(3, 300), null(4)].concat();
        for kind in [WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1] {
            for (left_out, numbers, blobs) in [(vec![1], 10, 0), (vec![0], 0, 2), (vec![], 10, 2)] {
                let (mut found, mut texts) = (0, 0);
                with_rows(kind, &all, &mut |_, rows| {
                    let narrowed = rows.without_columns(&left_out).unwrap();
                    for row in &narrowed {
                        let row = row.unwrap();
                        for image in row.old.iter().chain(&row.new) {
                            for &at in &left_out {
                                assert_eq!(image.0[at], None);
                            }
                            if let Some(Value::Integer(number)) = &image.0[0] {
                                found += number.signed();
                            }
                            texts += u32::from(matches!(&image.0[1], Some(Value::Bytes(_))));
                        }
                    }
                });
                assert_eq!((found, texts), (numbers, blobs), "{kind} {left_out:?}");
            }
        }
    }

    #[test]
    fn a_column_more_is_in_all_images() {
        let all: Vec<u8> = (1..=4).flat_map(|number| image(number, 3)).collect();
        for (kind, bytes) in [(WRITE_ROWS_V1, 20), (UPDATE_ROWS_V1, 300), (DELETE_ROWS_V1, 255)] {
            let (mut made, mut seen) = (vec![introduction()], 0);
            let mut gathered = Gathered::new(1 << 20);
            with_rows(kind, &all, &mut |header, rows| {
                gathered.table(header, &table_map(), ("db", "t"), OneMore(bytes));
                let rows = rows.with_column(bytes, b"wiki1").unwrap();
                gathered.rows(header, &rows, &mut |_| ()).unwrap();
                gathered.end(&mut |statement| made.push(statement));
            });
            decoded(&made, &mut |event| {
                let Body::Rows(rows) = &event.body else { return };
                assert_eq!(rows.table.columns.len(), 3);
                for row in rows {
                    let row = row.unwrap();
                    for image in row.old.iter().chain(&row.new) {
                        let Some(Value::Integer(number)) = &image.0[0] else { panic!("{image:?}") };
                        seen += number.signed();
                        assert_eq!(image.0[1], Some(Value::Bytes(vec![7; 3].into())));
                        assert_eq!(image.0[2], Some(Value::Bytes(b"wiki1".into())));
                    }
                }
            });
            assert_eq!(seen, 1 + 2 + 3 + 4);
        }
    }

    /// What is kept of rows if those up to a number are there, as changes and first columns.
    fn kept(kind: u8, images: &[u8], last: i128) -> Vec<(Change, Vec<i64>)> {
        let part = crate::copying::Part::UpTo { last, column: 0, is_unsigned: false };
        let (mut made, mut found) = (Vec::new(), Vec::new());
        let mut gathered = Gathered::new(1 << 20);
        with_rows(kind, images, &mut |header, rows| {
            let mut full = Vec::new();
            part.keep(rows, &[], &mut |_, (change, images)| {
                gathered.table(header, &table_map(), ("db", "t"), AsTheyAre);
                gathered
                    .some_row(header, rows, change, images, &mut |statement| full.push(statement))
                    .unwrap();
                gathered.end(&mut |statement| full.push(statement));
                Ok(())
            })
            .unwrap();
            made.append(&mut full);
        });
        decoded(&[&[introduction()], &made[..]].concat(), &mut |event| {
            if let Body::Rows(rows) = &event.body {
                for row in rows {
                    let row = row.unwrap();
                    let first = |image: teak_binlog::Image<'_>| match &image.0[0] {
                        Some(Value::Integer(number)) => number.signed(),
                        other => panic!("{other:?}"),
                    };
                    found.push((rows.change, row.old.into_iter().chain(row.new).map(first).collect()));
                }
            }
        });
        found
    }

    #[test]
    fn rows_that_are_not_there_are_left_out_and_those_that_cross_come_or_go() {
        let all: Vec<u8> = (1..=4).flat_map(|number| image(number, 3)).collect();
        assert_eq!(kept(WRITE_ROWS_V1, &all, 2), [(Change::Write, vec![1]), (Change::Write, vec![2])]);
        assert_eq!(kept(DELETE_ROWS_V1, &all, 1), [(Change::Delete, vec![1])]);
        let pairs = [(1, 2), (1, 9), (9, 2), (8, 9), (5, 5)];
        let all: Vec<u8> =
            pairs.iter().flat_map(|&(old, new)| [image(old, 2), image(new, 5)].concat()).collect();
        assert_eq!(
            kept(UPDATE_ROWS_V1, &all, 5),
            [
                (Change::Update, vec![1, 2]),
                (Change::Delete, vec![1]),
                (Change::Write, vec![2]),
                (Change::Update, vec![5, 5])
            ]
        );
    }
}
