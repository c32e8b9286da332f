//! Adds rows that were read at a source to the target, each range in a transaction of its own, with how far the copy of
//! the table is, and compares what the target then has.

use crate::chunk_reader::{Chunk, Planned};
use crate::chunks;
use crate::configuration::SourcePlan;
use crate::control;
use crate::copying::{self, Part};
use crate::counterpart::Counterpart;
use crate::failure::Failure;
use crate::links::Links;
use crate::prepared;
use crate::target::{set_origin, take_over_lock};
use teak_client::{values, Connection, Error, Settings};
use teak_console::Status;
use teak_sql::columns::Column;

/// What holds for the whole connection: no other table is looked at, and values stay as they are.
const SESSION: &str =
    "SET SESSION check_constraint_checks = 0, tx_isolation = 'READ-COMMITTED', autocommit = 1, \
     wait_timeout = 31536000, net_read_timeout = 3600, net_write_timeout = 3600, max_statement_time = 0";
/// Rows go to the server in parts of so many bytes, about.
const PART_BYTES: usize = 64 << 10;
/// No such table.
const GONE: [u16; 2] = [1049, 1146];

/// A connection to the target that adds rows.
pub struct ChunkWriter {
    connection: Connection,
    source: String,
}

impl ChunkWriter {
    /// Connects, and takes the locks of these numbers: what former copies began has ended then. `links` may end the
    /// connection. The source has this number.
    pub fn connect(
        settings: &Settings,
        source: &SourcePlan,
        server_id: u32,
        locks: impl Iterator<Item = usize>,
        links: &Links,
    ) -> Result<ChunkWriter, Failure> {
        let settings = Settings { local_data: true, ..settings.clone() };
        let connect = || {
            let mut connection = settings.connect()?;
            links.add(&connection)?;
            chunks::prepare(&mut connection)?;
            connection.execute(SESSION)?;
            if let Some(domain) = source.gtid_domain_id {
                set_origin(&mut connection, domain, Some(server_id))?;
            }
            Ok(connection)
        };
        let of_target = |error: Error| Failure::of_target(&error, || "the beginning of a copy".into());
        let mut connection = connect().map_err(of_target)?;
        for lock in locks {
            // Who has it is of a former copy, as the lock of the source is held: nobody else sends him anything.
            let lock = lock_of_copy(&source.name, lock);
            if !take_over_lock(&mut connection, &lock).map_err(of_target)? {
                let why = "target: what a former copy of this source began, such as keys, has not ended yet";
                return Err(Failure::Passing(why.into()));
            }
        }
        Ok(ChunkWriter { connection, source: source.name.clone() })
    }

    /// Adds rows in a transaction that is left open.
    pub fn write(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let table = copying::quoted(&chunk.request.table.here);
        let shown = String::from_utf8_lossy(&table).into_owned();
        let of_target = |error: Error| Failure::of_target(&error, || format!("a copy of {shown}"));
        self.connection.execute("BEGIN").map_err(of_target)?;
        self.add(chunk).map_err(of_target)?;
        if chunk.is_sequence {
            return Ok(());
        }
        let mut comparison = chunk.rows.comparison();
        let read = self.connection.query_each(chunk.query_here(), &mut |row| comparison.see(row));
        read.map_err(of_target)?;
        comparison.end().map_err(|here| {
            let there = chunk.rows.len();
            let why =
                format!("copy of {shown}: {there} rows at the source are {here} in the target, or others");
            Failure::Final(why, Status::Damage)
        })
    }

    fn add(&mut self, chunk: &Chunk) -> Result<(), Error> {
        let columns = chunk.shape.compared();
        if chunk.rows.len() == 0 {
            return Ok(());
        }
        if chunk.is_sequence || !columns.iter().any(|column| column.is_given()) {
            return self.connection.execute(insertion(&columns, chunk)?).map(|_| ());
        }
        let mut next = 0;
        let mut damage = Ok(());
        let counterpart = &chunk.request.table.counterpart;
        let loaded = self.connection.load(loading(counterpart, &columns), &mut |part| {
            while let Some(row) = chunk.rows.get(next).filter(|_| part.len() < PART_BYTES && damage.is_ok()) {
                damage = as_text(row, &columns, part);
                next += 1;
            }
        });
        loaded.and(damage)
    }

    /// Ends the transaction: rows and how far the copy is are there together, at a position that is still the same.
    pub fn commit(
        &mut self,
        table: &Planned,
        part: Option<Part>,
        position: &str,
        asked: u64,
    ) -> Result<(), Failure> {
        let of_target = |error: Error| Failure::of_target(&error, || "COMMIT of a copy".into());
        let noting = copying::noting(&self.source, &table.here, part);
        self.connection.execute(noting).map_err(of_target)?;
        self.connection.execute(prepared::something_is_copied(&self.source)).map_err(of_target)?;
        let same = control::as_it_was(&self.source, position, asked, "LOCK IN SHARE MODE");
        if self.connection.value(same).map_err(of_target)?.as_deref() != Some("1") {
            return Err(control::moved(&mut self.connection, &self.source, position));
        }
        self.connection.execute("COMMIT").map(|_| ()).map_err(of_target)
    }

    /// Takes what it has added back.
    pub fn withdraw(&mut self) -> Result<(), Failure> {
        let done = self.connection.execute("ROLLBACK");
        done.map(|_| ()).map_err(|error| Failure::of_target(&error, || "ROLLBACK of a copy".into()))
    }

    /// Builds the keys of a table whose rows are there.
    pub fn build_keys(&mut self, table: &Planned) -> Result<(), Failure> {
        let name = copying::quoted(&table.here);
        match self.connection.execute([b"ALTER TABLE ", &name[..], b" ENABLE KEYS"].concat()) {
            // The log tells what has become of it.
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => Ok(()),
            Err(error) => {
                let what = || format!("keys of {}", String::from_utf8_lossy(&name));
                Err(Failure::of_target(&error, what))
            }
            Ok(_) => {
                // Unless a statement of the log has let the copy begin anew meanwhile.
                let rows = copying::noting_keys(&self.source, &table.here);
                let done = self.connection.execute(rows);
                done.map(|_| ()).map_err(|error| Failure::of_target(&error, || "teak_replicate.copy".into()))
            }
        }
    }
}

/// The name of a lock of the connections that copy.
fn lock_of_copy(source: &str, number: usize) -> String {
    format!("'teak_copy_{number}/{source}'")
}

/// What asks for rows with these columns, as [`as_text`] has them.
fn loading(counterpart: &Counterpart, columns: &[&Column]) -> Vec<u8> {
    let (mut targets, mut settings) = (Vec::new(), Vec::new());
    for (at, column) in columns.iter().enumerate().filter(|(_, column)| column.is_given()) {
        let variable = format!("@c{at}").into_bytes();
        let name = counterpart.column(&column.name);
        match column.loaded(&variable) {
            None => targets.push(name),
            Some(value) => {
                settings.push([&name[..], b" = ", &value].concat());
                targets.push(variable);
            }
        }
    }
    if let Some((name, value)) = counterpart.added() {
        settings.push([&name[..], b" = ", &value].concat());
    }
    let settings = match settings.is_empty() {
        true => Vec::new(),
        false => [b" SET ", &settings.join(&b", "[..])[..]].concat(),
    };
    let targets = targets.join(&b", "[..]);
    [
        b"LOAD DATA LOCAL INFILE 'rows' INTO TABLE ",
        &counterpart.table()[..],
        b" CHARACTER SET binary (",
        &targets,
        b")",
        &settings,
    ]
    .concat()
}

/// A row as LOAD DATA reads it by default: fields end with a tab, rows with a new line, `\` escapes, `\N` is NULL.
fn as_text(row: &[u8], columns: &[&Column], text: &mut Vec<u8>) -> Result<(), Error> {
    let mut is_first = true;
    for (value, column) in values(row).zip(columns) {
        let value = value?;
        if !column.is_given() {
            continue;
        }
        if !std::mem::replace(&mut is_first, false) {
            text.push(b'\t');
        }
        let Some(mut value) = value else {
            text.extend_from_slice(b"\\N");
            continue;
        };
        while let Some(at) = memchr::memchr3(b'\t', b'\n', b'\\', value) {
            text.extend_from_slice(&value[..at]);
            text.push(b'\\');
            text.push(value[at]);
            value = &value[at + 1..];
        }
        text.extend_from_slice(value);
    }
    text.push(b'\n');
    Ok(())
}

/// What adds rows to what LOAD DATA does not know: sequences, and tables without a column that is given.
fn insertion(columns: &[&Column], chunk: &Chunk) -> Result<Vec<u8>, Error> {
    let counterpart = &chunk.request.table.counterpart;
    let (added, added_value) = counterpart.added().unzip();
    let given = || columns.iter().filter(|column| column.is_given());
    let names: Vec<Vec<u8>> = given().map(|column| counterpart.column(&column.name)).chain(added).collect();
    let (table, names) = (counterpart.table(), names.join(&b", "[..]));
    let mut statement = [b"INSERT INTO ", &table[..], b" (", &names, b") VALUES "].concat();
    for at in 0..chunk.rows.len() {
        let row = chunk.rows.get(at).unwrap_or_default();
        let literals = values(row)
            .zip(columns)
            .filter(|(_, column)| column.is_given())
            .map(|(value, column)| Ok(column.literal(value?)))
            .chain(added_value.clone().map(Ok))
            .collect::<Result<Vec<_>, Error>>()?;
        statement.extend_from_slice(if at > 0 { b", (" } else { b"(" });
        statement.extend_from_slice(&literals.join(&b", "[..]));
        statement.push(b')');
    }
    Ok(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, expression: Option<&str>) -> Column {
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let expression = expression.and_then(value);
        let row =
            vec![value(name), value(kind), value(kind), None, None, value("YES"), None, None, expression];
        Column::read(row, true)
    }

    #[test]
    fn rows_are_text_as_load_data_reads_it() {
        let columns = [
            column("a", "int", None),
            column("g", "int", Some("a + 1")),
            column("e", "enum", None),
            column("b", "blob", None),
        ];
        let columns: Vec<&Column> = columns.iter().collect();
        let mut text = Vec::new();
        as_text(b"\x017\x018\xfb\x05\t\n\\\0\r", &columns, &mut text).unwrap();
        as_text(b"\xfb\x018\x012\x00", &columns, &mut text).unwrap();
        assert_eq!(text, b"7\t\\N\t\\\t\\\n\\\\\0\r\n\\N\t2\t\n");
        assert!(as_text(b"\x05ab", &columns, &mut text).is_err());
        let statement = String::from_utf8(loading(&Counterpart::new("d", "t"), &columns)).unwrap();
        assert!(statement.ends_with("binary (`a`, @c2, `b`) SET `e` = CAST(@c2 AS UNSIGNED)"), "{statement}");
    }
}
