use super::*;
use teak_binlog::{Body, Checksum, Decoder, Event, Format, Framer, Image, Limits, Table, Value, MAGIC};

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
        gathered.table(header, &table_map(), names, &MapColumns::default());
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
            event.header.code == FORMAT_DESCRIPTION || (event.header.time, event.header.server_id) == (5, 6)
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
    for (kind, number) in
        [(WRITE_ROWS_V1, 1), (WRITE_ROWS_V1, 2), (DELETE_ROWS_V1, 3), (DELETE_ROWS_V1, 4), (WRITE_ROWS_V1, 5)]
    {
        with_rows(kind, &image(number, 1), &mut |header, rows| {
            if number == 1 {
                gathered.table(header, &table_map(), ("db", "t"), &MapColumns::default());
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
        gathered.table(header, &table_map(), ("db", "t"), &MapColumns::default());
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
            gathered.table(header, &table_map(), (database, table), &MapColumns::default());
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
fn of_what_rows_were_no_more_is_left_than_a_key() {
    let all: Vec<u8> = (1..=4).flat_map(|number| image(number, 3)).collect();
    for (kind, wanted) in [(UPDATE_ROWS_V1, 2), (DELETE_ROWS_V1, 4), (WRITE_ROWS_V1, 4)] {
        with_rows(kind, &all, &mut |_, rows| {
            let short = rows.with_old_columns(&[0]).unwrap();
            let mut found = 0;
            for (row, before) in short.iter().zip(rows) {
                let (row, before) = (row.unwrap(), before.unwrap());
                assert_eq!(row.new, before.new);
                let key = before.old.map(|image| Image(vec![image.0[0].clone(), None]));
                assert_eq!(row.old, key);
                found += 1;
            }
            assert_eq!(found, wanted);
        });
    }
}

#[test]
fn a_column_more_is_in_all_images() {
    let all: Vec<u8> = (1..=4).flat_map(|number| image(number, 3)).collect();
    for (kind, bytes) in [(WRITE_ROWS_V1, 20), (UPDATE_ROWS_V1, 300), (DELETE_ROWS_V1, 255)] {
        let (mut made, mut seen) = (vec![introduction()], 0);
        let mut gathered = Gathered::new(1 << 20);
        with_rows(kind, &all, &mut |header, rows| {
            gathered.table(
                header,
                &table_map(),
                ("db", "t"),
                &MapColumns { one_more: Some(bytes), ..MapColumns::default() },
            );
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
            gathered.table(header, &table_map(), ("db", "t"), &MapColumns::default());
            gathered.some_row(header, rows, change, images, &mut |statement| full.push(statement)).unwrap();
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
    let all: Vec<u8> = pairs.iter().flat_map(|&(old, new)| [image(old, 2), image(new, 5)].concat()).collect();
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
