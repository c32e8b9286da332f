//! A log, whatever it is, as a function that takes any bytes at all: the feature `hostile`, for `fuzz/`. The tests here
//! attack it as the decoders of the core are attacked (`crates/core/tests/hostile`), with a corpus (`tests/hostile`)
//! and mutations of it, and cut and change whole logs at every byte.
//!
//! What must hold: whatever the bytes are, nothing panics, and no more memory is asked for than 64 times as much, and
//! what the limits allow.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use super::{
    Body, Change, Column, ColumnType, Conversion, Decoder, Error, Event, Framer, Limits, Place, Positions,
    Rows, Value,
};

/// Far below those of a server, so that what they bound is small in tests, too.
const LIMITS: Limits = Limits { event_bytes: 1 << 20, tables: 256 };

/// All that a log says, down to its values.
pub fn log(bytes: &[u8]) {
    let _ = told(bytes, true);
}

/// What the events of a log say, as text, and how it ends. Where one by itself is wrong, the next one is tried if
/// `persist`.
fn told(bytes: &[u8], persist: bool) -> (Vec<String>, Result<(), Error>) {
    let mut framer = Framer::new(LIMITS);
    let mut decoder = Decoder::of_file("log", LIMITS);
    let mut positions = Positions::default();
    let mut events = Vec::new();
    let place = |framer: &Framer| Place { file: None, position: framer.position(), event: None };
    for part in bytes.chunks(999) {
        framer.feed(part);
        loop {
            let at = place(&framer);
            let frame = match framer.next_event() {
                Ok(None) => break,
                Ok(Some(frame)) => frame,
                Err(problem) => return (events, Err(Error::new(at, problem))),
            };
            assert!(frame.position >= 4 && frame.position + frame.bytes.len() as u64 <= bytes.len() as u64);
            match decoder.decode(frame.position, frame.bytes).and_then(|event| {
                positions.rotate("log", frame.position);
                positions.pass(&event.header);
                look(&event, &mut decoder)
            }) {
                Ok(text) => events.push(text),
                Err(_) if persist => (),
                Err(error) => return (events, Err(error)),
            }
        }
    }
    let end = framer.finish().map_err(|problem| Error::new(place(&framer), problem));
    (events, end)
}

/// Looks at all that an event has.
fn look(event: &Event<'_>, decoder: &mut Decoder) -> Result<String, Error> {
    let mut out = format!("{} {:?} ", event.place, event.header.kind());
    match &event.body {
        Body::Rows(rows) | Body::RowsPart(_, Some(rows)) => look_at_rows(rows, &mut out)?,
        Body::TransactionPayload(payload) => {
            let of_payload = |problem| Error::new(event.place.clone(), problem);
            let mut events = payload.events(&LIMITS).map_err(of_payload)?;
            while let Some(bytes) = events.next_event().map_err(of_payload)? {
                let inner = decoder.decode_in_payload(event.place.position, bytes)?;
                match &inner.body {
                    Body::Rows(rows) => look_at_rows(rows, &mut out)?,
                    _ => out.push_str(&short(&inner.body)),
                }
            }
        }
        body => out.push_str(&short(body)),
    }
    Ok(out)
}

fn short(body: &Body<'_>) -> String {
    match body {
        Body::MariaDbGtid(transaction) => format!("{} {:?}", transaction.gtid, transaction.flag_names()),
        Body::MySqlGtid(transaction) => format!("{transaction:?}"),
        Body::PreviousGtids(set) => set.to_string(),
        Body::Query(query) => format!("{:?} {}", query.session, query.statement.len()),
        Body::TableMap(table) => table.columns.iter().map(|column| column.sql_type()).collect(),
        _ => String::new(),
    }
}

fn look_at_rows(rows: &Rows<'_>, out: &mut String) -> Result<(), Error> {
    for row in rows {
        let row = row?;
        for image in [&row.old, &row.new].into_iter().flatten() {
            for (at, value) in image.0.iter().enumerate() {
                let Some(value) = value else { continue };
                let text = match value {
                    Value::Json(document) => document.text(),
                    Value::JsonChanges(changes) => {
                        changes.iter().filter_map(|change| change.value).map(|v| v.text()).collect()
                    }
                    Value::Bytes(bytes) => Ok(bytes.len().to_string()),
                    Value::Decimal(number) => Ok(number.to_string()),
                    Value::DateTime(moment) => Ok(moment.to_string()),
                    Value::Timestamp(moment) => Ok(moment.to_string()),
                    other => Ok(format!("{other:?}")),
                };
                let text = text.map_err(|problem| rows.error(at, problem))?;
                if out.len() < 1 << 16 {
                    out.push_str(&text);
                }
            }
        }
    }
    look_at_others(rows)
}

/// Rows written anew, without some columns and with one more, are those that came but for these.
fn look_at_others(rows: &Rows<'_>) -> Result<(), Error> {
    look_at_converted(rows)?;
    let columns = rows.table.columns.len();
    if rows.has_partial_json() {
        return Ok(());
    }
    for left_out in
        [vec![], (0..columns).step_by(2).collect(), (1..columns).step_by(3).chain([columns + 9]).collect()]
    {
        let narrowed = rows.without_columns(&left_out)?;
        let has = |at: usize| match rows.change {
            Change::Write => narrowed.has_new(at),
            Change::Update | Change::Delete => narrowed.has_old(at),
        };
        // Images without anything are of no bytes, and nobody sees how many they were.
        if !(0..columns).any(has) {
            continue;
        }
        let mut others = narrowed.iter();
        for row in rows {
            let (row, other) = (row?, others.next().transpose()?);
            let Some(other) = other else { panic!("fewer rows without {left_out:?}") };
            for (image, other) in [(row.old, other.old), (row.new, other.new)] {
                assert_eq!(image.is_some(), other.is_some());
                let both = image.iter().zip(&other).flat_map(|(image, other)| image.0.iter().zip(&other.0));
                for (at, (value, other)) in both.enumerate() {
                    let wanted = value.as_ref().filter(|_| !left_out.contains(&at));
                    assert_eq!(format!("{wanted:?}"), format!("{:?}", other.as_ref()), "column {at}");
                }
            }
        }
        assert!(others.next().is_none(), "more rows without {left_out:?}");
    }
    let widened = rows.with_column(300, b"more")?;
    let mut others = widened.iter();
    for row in rows {
        let (row, other) = (row?, others.next().transpose()?);
        let Some(other) = other else { panic!("fewer rows with a column more") };
        for (image, other) in [(row.old, other.old), (row.new, other.new)] {
            let (image, other) = (image.map(|image| image.0), other.map(|image| image.0));
            let Some((image, other)) = image.zip(other) else { continue };
            assert_eq!(format!("{image:?}"), format!("{:?}", &other[..columns]));
            assert!(matches!(&other[columns..], [Some(Value::Bytes(bytes))] if **bytes == *b"more"));
        }
    }
    assert!(others.next().is_none(), "more rows with a column more");
    Ok(())
}

/// Rows for a server without MySQL's own types are as many, and the same but for values of these.
fn look_at_converted(rows: &Rows<'_>) -> Result<(), Error> {
    let of = |(at, column): (usize, &Column)| match column.kind {
        ColumnType::Json { .. } => Some((at, Conversion::Text)),
        ColumnType::Vector { .. } => Some((at, Conversion::Blob(3))),
        _ => None,
    };
    let conversions: Vec<_> = rows.table.columns.iter().enumerate().filter_map(of).collect();
    let converted = rows.converted(&conversions, &mut |_, _| Some("{\"a\": [1, {\"b\": 2}]}".into()));
    // A change may be of another document than that.
    let converted = match converted {
        Err(_) if rows.has_partial_json() => return Ok(()),
        converted => converted?,
    };
    assert!(!converted.has_partial_json());
    let mut others = converted.iter();
    for row in rows {
        let (row, other) = (row?, others.next().transpose()?);
        let Some(other) = other else { panic!("fewer rows with other types") };
        for (image, other) in [(row.old, other.old), (row.new, other.new)] {
            let both = image.iter().zip(&other).flat_map(|(image, other)| image.0.iter().zip(&other.0));
            for (at, (value, other)) in both.enumerate() {
                let is_converted = conversions.iter().any(|(place, _)| *place == at);
                match (value, other) {
                    (Some(Value::Json(document)), Some(Value::Bytes(text))) => {
                        assert_eq!(document.text().ok().as_deref().map(str::as_bytes), Some(&text[..]));
                    }
                    (Some(Value::Null) | None, other) => assert_eq!(value, other),
                    (Some(_), Some(Value::Bytes(_))) if is_converted => (),
                    (value, other) => assert_eq!(format!("{value:?}"), format!("{other:?}"), "column {at}"),
                }
            }
        }
    }
    assert!(others.next().is_none(), "more rows with other types");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, entries, Attacked};
    use super::{counting, log, told, LIMITS};
    use crate::Problem;
    use std::path::PathBuf;

    /// What comes out of compressed events and values, rows of very many columns, and the tables of a statement.
    const FIXED_BYTES: usize = 16 * LIMITS.event_bytes as usize;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    fn corpus() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
    }

    #[test]
    fn a_log_can_be_anything() {
        let memory_for = |input| 64 * input + FIXED_BYTES;
        attack(&corpus(), &Attacked { name: "log", decode: log, memory_for: &memory_for });
    }

    #[test]
    fn whole_logs_have_no_error() {
        for (name, bytes) in entries(&corpus(), "log").iter().chain(&entries(&corpus(), "with_checksums")) {
            if !name.starts_with("fuzzed") {
                let (events, end) = told(bytes, false);
                assert!(end.is_ok() && events.len() > 3, "{name}: {end:?}");
            }
        }
    }

    #[test]
    fn a_log_cut_at_any_byte_gives_the_events_before_and_tells_that_it_ends() {
        for (name, bytes) in entries(&corpus(), "with_checksums") {
            let (whole, _) = told(&bytes, false);
            for end in 0..bytes.len() {
                let (events, result) = told(&bytes[..end], false);
                assert_eq!(events, whole[..events.len()], "{name} cut to {end}");
                let fits = match result.map_err(|error| error.problem().clone()) {
                    // Between two events there is nothing to tell.
                    Ok(()) => true,
                    Err(Problem::Truncated { left }) => left > 0,
                    Err(Problem::NotABinaryLog) => end < 4,
                    Err(_) => false,
                };
                assert!(fits, "{name} cut to {end}");
            }
        }
    }

    #[test]
    fn a_change_of_any_byte_is_told_and_leaves_the_events_before() {
        for (name, bytes) in entries(&corpus(), "with_checksums") {
            let (whole, _) = told(&bytes, false);
            for at in 0..bytes.len() {
                for change in [1, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= change;
                    let (events, result) = told(&changed, false);
                    assert_eq!(events, whole[..events.len()], "{name}, byte {at} changed by {change:x}");
                    // That a log is in use is what a server changes in it.
                    let is_in_use = at == 4 + 17 && change == 1;
                    assert_eq!(result.is_ok(), is_in_use, "{name}, byte {at} changed by {change:x}");
                }
            }
        }
    }
}
