//! `teak replicate verify --repair`: a row of the target that differs is made that of the source.
//!
//! The row was the same at the source from before the target's position to now, and is locked in the target meanwhile:
//! so what comes next in the log finds it as the source had it there.

use crate::chunks::{Key, Range, Shape};
use crate::sides::{Pair, SideError, Sides};
use teak_client::Error;
use teak_sql::quoting::{literal, quoted_name};

/// Makes a row the source's; `states` are the numbers of the row at the source and in the target, as they were when it
/// was found out that it differs. An inner error says why it was left as it is.
pub fn row(
    sides: &mut Sides,
    pair: &Pair,
    shape: &Shape,
    key: &Key,
    states: (Option<&[u8]>, Option<&[u8]>),
) -> Result<Result<(), String>, SideError> {
    let done = locked(sides, pair, shape, key, states);
    let is_done = matches!(done, Ok(Ok(())));
    let end = if is_done { "COMMIT" } else { "ROLLBACK" };
    match done {
        // What the target says of the row is about it, and the connection can be used on.
        Err(SideError::Target(error @ Error::Server { .. })) => {
            sides.target.execute(end).map_err(SideError::Target)?;
            Ok(Err(error.to_string()))
        }
        other => {
            sides.target.execute(end).map_err(SideError::Target)?;
            other
        }
    }
}

fn locked(
    sides: &mut Sides,
    pair: &Pair,
    shape: &Shape,
    key: &Key,
    (there, here): (Option<&[u8]>, Option<&[u8]>),
) -> Result<Result<(), String>, SideError> {
    let keys = [key.clone()];
    let range = Range::Keys(&keys);
    let counterpart = &pair.counterpart;
    // As the target's table has them, which may have rows of others, too.
    let table = counterpart.table();
    let ours = shape.called(&|name| counterpart.name_of(name)).condition(range);
    let own = counterpart.own().map(|own| [b" AND ", &own[..]].concat());
    let condition = [ours, own.unwrap_or_default()].concat();
    let (database, name) =
        (quoted_name(counterpart.name.0.as_bytes()), literal(counterpart.name.1.as_bytes()));
    let triggers = [b"SHOW TRIGGERS FROM ", &database[..], b" WHERE `Table` = ", name.as_bytes()];
    if !sides.target.query(triggers.concat()).map_err(SideError::Target)?.is_empty() {
        return Ok(Err("the target's table has triggers, which would act".into()));
    }
    let lock = [b"SELECT 1 FROM ", &table[..], b" WHERE ", &condition, b" FOR UPDATE"].concat();
    sides.target.execute("BEGIN").and_then(|_| sides.target.execute(lock)).map_err(SideError::Target)?;
    let columns = shape.given();
    let values = shape.values(&mut sides.source, &pair.there, &columns, range).map_err(SideError::Source)?;
    let is_as = |rows: Vec<(Key, Vec<u8>)>, wanted: Option<&[u8]>| {
        rows.into_iter().find(|(one, _)| one == key).map(|(_, number)| number).as_deref() == wanted
    };
    let now = shape.numbers(&mut sides.target, &pair.here, range).map_err(SideError::Target)?;
    let theirs = shape.numbers(&mut sides.source, &pair.there, range).map_err(SideError::Source)?;
    if !is_as(now, here) || !is_as(theirs, there) {
        return Ok(Err("it has changed meanwhile".into()));
    }
    let literals = values.first().map(|row| {
        columns.iter().zip(row).map(|(column, value)| column.literal(value.as_deref())).collect::<Vec<_>>()
    });
    let mut names: Vec<Vec<u8>> = columns.iter().map(|column| counterpart.column(&column.name)).collect();
    let comma = &b", "[..];
    let statement = match (there, here, literals) {
        (Some(_), Some(_), Some(literals)) => {
            let each = names.iter().zip(&literals).map(|(name, value)| [&name[..], b" = ", value].concat());
            let each = each.collect::<Vec<_>>().join(comma);
            [b"UPDATE ", &table[..], b" SET ", &each, b" WHERE ", &condition].concat()
        }
        (Some(_), None, Some(mut literals)) => {
            if let Some((name, value)) = counterpart.added() {
                names.push(name);
                literals.push(value);
            }
            let (names, literals) = (names.join(comma), literals.join(comma));
            [b"INSERT INTO ", &table[..], b" (", &names, b") VALUES (", &literals, b")"].concat()
        }
        _ => [b"DELETE FROM ", &table[..], b" WHERE ", &condition].concat(),
    };
    sides.target.execute(statement).map_err(SideError::Target)?;
    let now = shape.numbers(&mut sides.target, &pair.here, range).map_err(SideError::Target)?;
    Ok(match is_as(now, there) {
        true => Ok(()),
        false => Err("the target made another row of it".into()),
    })
}
