//! The decoder with events of a log of the corpus, put together otherwise.

use super::{Body, Checksum, Decoder, Error, EventType, Flags, Framer, Limits, Problem, Row};

/// Of MariaDB 10.11, without checksums: rows in full and minimal images.
const LOG: &[u8] = include_bytes!("../tests/hostile/log/mariadb_rows");

fn events() -> Vec<Vec<u8>> {
    let mut framer = Framer::new(Limits::default());
    framer.feed(LOG);
    let mut events = Vec::new();
    while let Some(frame) = framer.next_event().unwrap() {
        events.push(frame.bytes.to_vec());
    }
    events
}

/// The first of a type.
fn first(kind: EventType) -> Vec<u8> {
    events().into_iter().find(|event| event[4] == kind as u8).unwrap()
}

/// An event of server 1.
fn event(code: u8, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, code, 1, 0, 0, 0];
    bytes.extend_from_slice(&(19 + body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// One that has decoded these types, each as it comes first in the log.
fn decoder(limits: Limits, kinds: &[EventType]) -> Decoder {
    let mut decoder = Decoder::of_file("log", limits);
    for &kind in kinds {
        decoder.decode(4, &first(kind)).unwrap();
    }
    decoder
}

fn rows(body: &Body<'_>) -> Vec<String> {
    let text = |row: Result<Row<'_>, Error>| format!("{:?}", row.unwrap());
    match body {
        Body::Rows(rows) | Body::RowsPart(_, Some(rows)) => rows.iter().map(text).collect(),
        _ => Vec::new(),
    }
}

fn problem(result: Result<super::Event<'_>, Error>) -> Problem {
    result.unwrap_err().problem().clone()
}

const UP_TO_TABLE: [EventType; 2] = [EventType::FormatDescription, EventType::TableMap];

#[test]
fn an_event_in_parts_has_the_rows_of_the_whole() {
    let whole = first(EventType::WriteRowsV1);
    let expected = rows(&decoder(Limits::default(), &UP_TO_TABLE).decode(9, &whole).unwrap().body);
    assert_eq!(expected.len(), 2);
    // With a checksum of its own behind it, and without.
    for whole in [whole.clone(), [&whole[..], &[1, 2, 3, 4]].concat()] {
        let mut decoder = decoder(Limits::default(), &UP_TO_TABLE);
        let mut found = Vec::new();
        let (number, step) = (whole.len().div_ceil(50) as u32, 50);
        for (at, piece) in whole.chunks(step).enumerate() {
            let mut body = number.to_le_bytes().to_vec();
            body.extend_from_slice(&(at as u32 + 1).to_le_bytes());
            body.push(u8::from(at == 0));
            if at == 0 {
                body.extend_from_slice(&(whole.len() as u64).to_le_bytes());
            }
            body.extend_from_slice(piece);
            let part = event(EventType::PartialRowData as u8, 0, &body);
            found.extend(rows(&decoder.decode(9, &part).unwrap().body));
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn nothing_comes_between_parts() {
    let part = event(172, 0, &[2, 0, 0, 0, 1, 0, 0, 0, 1, 99, 0, 0, 0, 0, 0, 0, 0]);
    for between in [first(EventType::WriteRowsV1), first(EventType::Xid)] {
        let mut decoder = decoder(Limits::default(), &UP_TO_TABLE);
        decoder.decode(9, &part).unwrap();
        assert!(matches!(problem(decoder.decode(9, &between)), Problem::Invalid(_)));
    }
}

#[test]
fn an_unknown_event_is_an_error_unless_it_may_be_ignored() {
    let mut decoder = decoder(Limits::default(), &[EventType::FormatDescription]);
    for code in [0, 44, 159, 173, 255] {
        assert_eq!(problem(decoder.decode(9, &event(code, 0, b"x"))), Problem::UnknownEvent(code));
        let ignored = event(code, Flags::IGNORABLE, b"x");
        assert_eq!(decoder.decode(9, &ignored).unwrap().body, Body::Other(b"x"));
    }
    for code in 20..=22 {
        assert!(matches!(problem(decoder.decode(9, &event(code, 0, b"x"))), Problem::Invalid(_)));
    }
}

#[test]
fn tables_are_those_of_the_statement() {
    let rows = first(EventType::WriteRowsV1);
    let mut decoder = decoder(Limits::default(), &UP_TO_TABLE);
    // The event ends its statement.
    decoder.decode(9, &rows).unwrap();
    assert!(matches!(problem(decoder.decode(9, &rows)), Problem::NoTable(_)));
    // So does one that has no rows.
    decoder.decode(9, &first(EventType::TableMap)).unwrap();
    let end = event(EventType::WriteRowsV1 as u8, 0, &[0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 1, 1]);
    assert_eq!(decoder.decode(9, &end).unwrap().body, Body::EndOfRows);
    let error = decoder.decode(4711, &rows).unwrap_err();
    assert!(matches!(error.problem(), Problem::NoTable(_)));
    assert!(error.to_string().starts_with("log, position 4711, write_rows_v1: no table map"), "{error}");
}

#[test]
fn errors_of_values_name_table_and_column() {
    let mut rows = first(EventType::WriteRowsV1);
    rows.truncate(rows.len() - 1);
    let length = rows.len() as u32;
    rows[9..13].copy_from_slice(&length.to_le_bytes());
    let mut decoder = decoder(Limits::default(), &UP_TO_TABLE);
    let event = decoder.decode(4711, &rows).unwrap();
    let Body::Rows(rows) = &event.body else { panic!() };
    let error = rows.iter().find_map(Result::err).unwrap().to_string();
    assert!(error.starts_with("log, position 4711, write_rows_v1, table `h`.`r`"), "{error}");
}

#[test]
fn what_is_encrypted_ends_a_file_and_not_what_a_server_sends() {
    let start = event(EventType::StartEncryption as u8, 0, &[1; 17]);
    let xid = first(EventType::Xid);
    let mut file = decoder(Limits::default(), &[EventType::FormatDescription]);
    file.decode(9, &start).unwrap();
    assert_eq!(problem(file.decode(9, &xid)), Problem::Encrypted { key_version: 0x0101_0101 });
    let mut sent = Decoder::of_server(Checksum::None, Limits::default());
    for bytes in [&first(EventType::FormatDescription), &start, &xid] {
        sent.decode(9, bytes).unwrap();
    }
}

#[test]
fn nothing_is_decoded_before_the_format_is_known_but_where_a_server_is() {
    let mut decoder = Decoder::of_server(Checksum::None, Limits::default());
    assert!(decoder.decode(4, &first(EventType::Xid)).is_err());
    let rotate = event(EventType::Rotate as u8, Flags::ARTIFICIAL, b"\x04\0\0\0\0\0\0\0b.000001");
    assert!(matches!(decoder.decode(0, &rotate).unwrap().body, Body::Rotate(_)));
    let mut with_checksums = Decoder::of_server(Checksum::Crc32, Limits::default());
    assert!(matches!(problem(with_checksums.decode(0, &rotate)), Problem::Checksum { .. }));
}

#[test]
fn limits_hold_for_tables_of_a_statement() {
    let limits = Limits { tables: 2, ..Limits::default() };
    let mut decoder = decoder(limits, &[EventType::FormatDescription]);
    let mut map = first(EventType::TableMap);
    for id in 0..3 {
        map[19] = id;
        let decoded = decoder.decode(9, &map);
        assert_eq!(decoded.is_err(), id == 2);
    }
}
