//! Reads the rows of tables that are to be copied: range by range, each in a snapshot of the source whose place in the
//! log is known. A MariaDB tells it. A MySQL does not, so there the table is locked for reading while the snapshot is
//! made and the end of the log is asked for: all that has changed it is before that end, and in the snapshot. So it is
//! of a MariaDB with XA transactions (`prepared.rs`).

use crate::chunks::{self, Range, Shape};
use crate::configuration::SourcePlan;
use crate::copying::{self, Part, TableName};
use crate::counterpart::Counterpart;
use crate::dump::greeted;
use crate::failure::Failure;
use crate::links::Links;
use crate::prepared::{listed, Snapshot};
use crate::sent_rows::SentRows;
use crate::sides::LogPlace;
use crate::tables::{self, Table};
use crate::target::{self, without_counter};
use std::time::Duration;
use teak_binlog::Family;
use teak_client::{values, Connection, Error};
use teak_console::Status;
use teak_sql::columns::Column;
use teak_sql::quoting::quoted_name;

/// Rows of a range are so many bytes together, about.
const CHUNK_BYTES: u64 = 4 << 20;
/// But so many rows at most.
const CHUNK_ROWS: u64 = 40_000;
/// Where rows are longer than was known, a range ends behind so many bytes.
const TOO_MANY_BYTES: usize = 2 * CHUNK_BYTES as usize;
/// A table that is read at once may have so many bytes.
const AT_ONCE_BYTES: u64 = 256 << 20;
/// So long a source is left alone between two attempts to lock a table.
const PAUSE: Duration = Duration::from_millis(500);
/// So often a table is looked at whose definition changes meanwhile.
const ATTEMPTS: u32 = 20;
/// What a server says of a table that is not there.
const GONE: [u16; 2] = [1049, 1146];
/// And of one that was defined anew since the snapshot, or is about to be.
const CHANGES: [u16; 2] = [1412, 1205];

/// A table that is to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its database and name at the source.
    pub there: TableName,
    /// Both in the target.
    pub here: TableName,
    /// What it is there.
    pub counterpart: Counterpart,
    /// Columns of which no values come.
    pub left_out: Vec<String>,
    /// Its rows refer to each other, or to others that change them, so that all of them are needed.
    pub at_once: bool,
    /// Those that it refers to, also through others, in the target, which are to be whole before it is begun.
    pub parents: Vec<TableName>,
    /// No other rows can be in the way of its rows, also of an earlier time: they may be added before their turn.
    pub is_apart: bool,
    /// Keys that are not unique are built when all rows are there.
    pub defers_keys: bool,
}

impl Planned {
    /// The table without the columns of which no values come.
    fn copied(&self, table: &Table) -> Table {
        let mut table = table.clone();
        let is_left_out = |column: &Column| self.left_out.iter().any(|name| name.as_bytes() == column.name);
        table.columns.retain(|column| !is_left_out(column));
        table
    }
}

/// Which rows are wanted.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which table.
    pub table: Planned,
    /// Those above this number.
    pub above: Option<i128>,
    /// Nobody may write to the table while the snapshot is made.
    pub locks: bool,
}

/// Rows of a table.
pub struct Chunk {
    /// What was asked for.
    pub request: Request,
    /// The rows are those up to this number of a column; None: all.
    pub upto: Option<Part>,
    /// How to ask for the same rows.
    pub shape: Shape,
    /// A sequence changes in no transaction, and is not compared.
    pub is_sequence: bool,
    /// As [`Shape::exactly`] asks for them.
    pub rows: SentRows,
}

impl Chunk {
    /// The statement that asks for its rows at the source.
    pub fn query(&self) -> Vec<u8> {
        self.query_of(&self.shape, &copying::quoted(&self.request.table.there))
    }

    /// The same in the target.
    pub fn query_here(&self) -> Vec<u8> {
        let counterpart = &self.request.table.counterpart;
        if counterpart.is_alike() {
            return self.query_of(&self.shape, &counterpart.table());
        }
        let shape = self.shape.clone().without_hint();
        self.query_of(&shape, &counterpart.rows(shape.columns()))
    }

    fn query_of(&self, shape: &Shape, table: &[u8]) -> Vec<u8> {
        let key = |number: i128| vec![number.to_string().into_bytes()];
        let upto = match self.upto {
            Some(Part::UpTo { last, .. }) => Some(key(last)),
            _ => None,
        };
        let above = self.request.above.map(key);
        shape.exactly(table, Range::Of(above.as_ref(), upto.as_ref()))
    }
}

/// Why there are no rows.
pub enum NotRead {
    /// The table is not there any more.
    Gone,
    /// Something else.
    Failed(Failure),
}

impl From<Failure> for NotRead {
    fn from(failure: Failure) -> NotRead {
        NotRead::Failed(failure)
    }
}

/// A connection to a source that reads, and one that keeps a table's definition as it is until the first has it.
///
/// InnoDB would show a snapshot a table that was rebuilt since, if that had begun before: without an error, and without
/// the rows that were changed after the snapshot.
pub struct ChunkReader {
    connection: Connection,
    keeper: Connection,
    known: Option<Known>,
    family: Family,
    /// Tables are locked, and nothing waits for long.
    has_limits: bool,
}

/// What was learned of the table that was read last.
struct Known {
    definition: Vec<u8>,
    table: Table,
    /// How long a row is, about.
    row_bytes: u64,
}

impl ChunkReader {
    /// Connects; `links` may end the connections.
    pub fn connect(plan: &SourcePlan, links: &Links) -> Result<ChunkReader, Failure> {
        let connect = || {
            let mut connection = plan.settings.connect()?;
            links.add(&connection)?;
            chunks::prepare(&mut connection)?;
            connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            Ok(connection)
        };
        let connect = || connect().map_err(|error| Failure::of_source(&error));
        let (connection, keeper) = (connect()?, connect()?);
        let family = greeted(&connection);
        let mut reader = ChunkReader { connection, keeper, known: None, family, has_limits: false };
        if family == Family::MySql {
            reader.limit_waits().map_err(|error| Failure::of_source(&error))?;
        }
        Ok(reader)
    }

    /// The source's number.
    pub fn server_id(&mut self) -> Result<u32, Failure> {
        target::server_id(&mut self.connection).map_err(|error| Failure::of_source(&error))
    }

    /// Who writes to a table waits while it is locked, and while that waits for who has written and not committed.
    fn limit_waits(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_limits, true) {
            let mut both = [&mut self.connection, &mut self.keeper].into_iter();
            both.try_for_each(|of| of.execute("SET SESSION lock_wait_timeout = 1").map(|_| ()))?;
        }
        Ok(())
    }

    /// Begins a snapshot, in which the definition of the table is as it will be.
    pub fn begin(&mut self, request: &Request) -> Result<Snapshot, NotRead> {
        for _ in 0..ATTEMPTS {
            match self.snapshot(request) {
                Ok(Ok(Some(snapshot))) => return Ok(snapshot),
                Ok(Ok(None)) => (),
                Ok(Err(failure)) => return Err(failure.into()),
                Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => {
                    return Err(NotRead::Gone)
                }
                Err(error) if error.code().is_some_and(|code| CHANGES.contains(&code)) => (),
                Err(error) => return Err(Failure::of_source(&error).into()),
            }
            self.end()?;
            if self.has_limits {
                // Those who have waited are let through.
                std::thread::sleep(PAUSE);
            }
        }
        let table = &request.table.there;
        let why = match self.has_limits {
            false => "changes all the time",
            true => "changes, or is written to by a transaction that does not end, all the time",
        };
        Err(Failure::Passing(format!("source: `{}`.`{}` {why}", table.0, table.1)).into())
    }

    /// Reads rows in the snapshot that was begun.
    pub fn read(&mut self, request: Request) -> Result<Chunk, NotRead> {
        match self.rows(request) {
            Ok(chunk) => Ok(chunk?),
            Err(error) => Err(Failure::of_source(&error).into()),
        }
    }

    /// Ends the snapshot.
    pub fn end(&mut self) -> Result<(), Failure> {
        if self.has_limits {
            self.keeper.execute("UNLOCK TABLES").map_err(|error| Failure::of_source(&error))?;
        }
        let mut ended = [&mut self.connection, &mut self.keeper].into_iter().map(|of| of.execute("ROLLBACK"));
        ended.try_for_each(|end| end.map(|_| ())).map_err(|error| Failure::of_source(&error))
    }

    /// None: there is no such table any more.
    fn snapshot(&mut self, request: &Request) -> Result<Result<Option<Snapshot>, Failure>, Error> {
        let name = copying::quoted(&request.table.there);
        let is_locked = request.locks || self.family == Family::MySql;
        let (place, prepared) = match is_locked {
            false => self.snapshot_beside_writers(&name)?,
            true => self.snapshot_of_locked(&name)?,
        };
        let Some(place) = place else {
            let why = "source: it does not tell where in its log a snapshot is (Binlog_snapshot_position)";
            return Ok(Err(Failure::Final(why.into(), Status::Server)));
        };
        let connection = &mut self.connection;
        let definition = definition(connection, &name)?;
        if self.known.as_ref().is_none_or(|known| known.definition != definition) {
            let (database, table) = &request.table.there;
            let Some(found) = tables::one(connection, database, table)? else { return Ok(Ok(None)) };
            if let Some(why) = refusal(&found) {
                let why = format!("source: `{database}`.`{table}` {why}");
                return Ok(Err(Failure::Final(why, Status::Usage)));
            }
            let row_bytes = found.bytes.checked_div(found.rows).unwrap_or(0).max(1);
            self.known = Some(Known { definition, table: found, row_bytes });
        }
        Ok(Ok(Some(Snapshot { place, prepared, is_locked })))
    }

    /// Begins it at a MariaDB, and keeps the table's definition as it is; its place, and what was prepared before.
    fn snapshot_beside_writers(&mut self, name: &[u8]) -> Result<(Option<LogPlace>, Vec<String>), Error> {
        // It waits for statements that change the definition; later ones wait for it.
        self.keeper.execute("START TRANSACTION")?;
        self.keeper.execute([b"SELECT 1 FROM ", name, b" LIMIT 0"].concat())?;
        let prepared = listed(&mut self.keeper)?;
        self.connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let place = place_of_snapshot(&mut self.connection)?;
        // From here on nobody can change it. Who waits to do so waits for the keeper, which must not wait for who waits
        // for him.
        let keep = [b"SET STATEMENT lock_wait_timeout = 0 FOR SELECT 1 FROM ", name, b" LIMIT 1"].concat();
        self.connection.execute(keep)?;
        self.keeper.execute("ROLLBACK")?;
        Ok((place, prepared))
    }

    /// The same of a table that nobody writes to meanwhile. What a MySQL has prepared is not asked for.
    fn snapshot_of_locked(&mut self, name: &[u8]) -> Result<(Option<LogPlace>, Vec<String>), Error> {
        self.limit_waits()?;
        self.keeper.execute([b"LOCK TABLES ", name, b" READ"].concat())?;
        let prepared = match self.family {
            Family::MariaDb => listed(&mut self.keeper)?,
            Family::MySql => Vec::new(),
        };
        self.connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let place = match self.family {
            Family::MariaDb => place_of_snapshot(&mut self.connection)?,
            Family::MySql => end_of_log(&mut self.keeper)?.map(|(place, _)| place),
        };
        self.connection.execute([b"SELECT 1 FROM ", name, b" LIMIT 1"].concat())?;
        self.keeper.execute("UNLOCK TABLES")?;
        Ok((place, prepared))
    }

    fn rows(&mut self, request: Request) -> Result<Result<Chunk, Failure>, Error> {
        let Some(known) = &mut self.known else {
            return Ok(Err(Failure::Passing("source: rows are read in no snapshot".into())));
        };
        let (table, name) = (&known.table, copying::quoted(&request.table.there));
        let limit = (CHUNK_BYTES / known.row_bytes).clamp(1, CHUNK_ROWS);
        let leading = leading(table).filter(|_| !request.table.at_once);
        // Where no two rows have a number, the last of so many rows tells how far they go.
        let (numbered, several) = match leading {
            Some(leading) if table.key.len() == 1 && table.index == "PRIMARY" => (Some(leading), None),
            leading => (None, leading),
        };
        if leading.is_none() && table.bytes > AT_ONCE_BYTES {
            let (database, table) = &request.table.there;
            let why = format!(
                "source: `{database}`.`{table}` is large, and has no key that begins with an integer, or refers to itself: \
                 load it from a dump"
            );
            return Ok(Err(Failure::Final(why, Status::Usage)));
        }
        let copied = request.table.copied(table);
        let shape = leading.map_or_else(|| Shape::of(&copied), |(_, column, _)| Shape::by(&copied, column));
        let upto = match several {
            None => None,
            Some((column, _, is_unsigned)) => {
                let above = request.above.map(|number| vec![number.to_string().into_bytes()]);
                let upto = shape.bound(&mut self.connection, &name, above.as_ref(), limit)?;
                let last = upto.and_then(|key| number(key.first()?));
                last.map(|last| Part::UpTo { last, column, is_unsigned })
            }
        };
        let (is_sequence, rows) = (table.is_sequence, SentRows::default());
        let mut chunk = Chunk { request, upto, shape, is_sequence, rows };
        let mut query = chunk.query();
        if let Some((_, column, _)) = numbered {
            let limit = format!(" LIMIT {limit}");
            query.extend_from_slice(
                &[b" ORDER BY ", &quoted_name(&column.name)[..], limit.as_bytes()].concat(),
            );
        }
        let (rows, mut sent) = (&mut chunk.rows, 0);
        self.connection.query_each(query, &mut |row| {
            sent += 1;
            if numbered.is_none() || rows.bytes() <= TOO_MANY_BYTES {
                rows.push(row);
            }
            Ok(())
        })?;
        let is_short = sent < limit && rows.len() as u64 == sent;
        if let Some((column, of, is_unsigned)) = numbered.filter(|_| !is_short) {
            let at = chunk.shape.compared().iter().position(|compared| compared.name == of.name);
            let last = rows.get(rows.len() - 1).zip(at).and_then(|(row, at)| values(row).nth(at)?.ok()?);
            let last = last.and_then(number);
            let last = last.ok_or_else(|| Error::Protocol("a key that is no number".into()))?;
            chunk.upto = Some(Part::UpTo { last, column, is_unsigned });
        }
        if let Some(bytes) = rows.bytes().checked_div(rows.len()) {
            known.row_bytes = (bytes as u64).max(1);
        }
        Ok(Ok(chunk))
    }
}

/// Where in the source's log the snapshot of a connection is; None if the server does not tell.
pub fn place_of_snapshot(connection: &mut Connection) -> Result<Option<LogPlace>, Error> {
    let place = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'")?;
    let place: Vec<Vec<String>> = tables::texts(place).collect();
    let of =
        |what: &str| place.iter().find(|row| row[0].eq_ignore_ascii_case(what)).map(|row| row[1].clone());
    let position = of("binlog_snapshot_position").and_then(|text| text.parse().ok());
    Ok(of("binlog_snapshot_file").filter(|file| !file.is_empty()).zip(position))
}

/// Where the log of a MySQL ends, and the GTIDs of what was carried out there.
pub fn end_of_log(connection: &mut Connection) -> Result<Option<(LogPlace, String)>, Error> {
    // What it was called before 8.2.
    const NO_SUCH_STATEMENT: u16 = 1064;
    let shown = match connection.query("SHOW BINARY LOG STATUS") {
        Err(error) if error.code() == Some(NO_SUCH_STATEMENT) => connection.query("SHOW MASTER STATUS"),
        shown => shown,
    };
    let Some(row) = tables::texts(shown?).next() else { return Ok(None) };
    let [file, position, .., gtids] = &row[..] else { return Ok(None) };
    let place = position.parse().ok().map(|position| (file.clone(), position));
    Ok(place.map(|place| (place, gtids.replace(['\n', ' '], ""))))
}

/// Why a table cannot be copied.
pub fn refusal(table: &Table) -> Option<String> {
    if !["InnoDB", "Teak"].iter().any(|engine| table.engine.eq_ignore_ascii_case(engine)) {
        return Some(format!("is of {}, which has no snapshots: load it from a dump", table.engine));
    }
    if table.is_versioned {
        return Some("has versions, which a copy would lose: load it from a dump".into());
    }
    None
}

fn definition(connection: &mut Connection, name: &[u8]) -> Result<Vec<u8>, Error> {
    let rows = connection.query([b"SHOW CREATE TABLE ", name].concat())?;
    let text = without_counter(rows.into_iter().flatten().flatten().collect::<Vec<_>>().concat());
    Ok([name, &text].concat())
}

fn number(text: &[u8]) -> Option<i128> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The first column of a table's key, if its rows can be taken by the numbers in it: its place, and whether it has no
/// sign.
fn leading(table: &Table) -> Option<(usize, &Column, bool)> {
    let first = table.key.first()?;
    let place = table.columns.iter().position(|column| column.name == first.as_bytes())?;
    let column = &table.columns[place];
    Some((place, column, column.integer()?))
}
