//! Reads the rows of tables that are to be copied: a thread with a connection of its own, one range after the other,
//! each in a snapshot of the source whose place in the log is known. It is there as long as its [`ChunkReader`].

use crate::chunks::{self, Range, Shape, Sum};
use crate::configuration::SourcePlan;
use crate::copying::{self, TableName};
use crate::failure::Failure;
use crate::sides::LogPlace;
use crate::tables::{self, Table};
use crate::target::without_counter;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use teak_client::{Connection, Error};
use teak_console::Status;
use teak_sql::columns::Column;
use teak_sql::quoting::quoted_name;

/// Rows of a range are so many bytes together, about.
const CHUNK_BYTES: u64 = 4 << 20;
/// But so many rows at most.
const CHUNK_ROWS: u64 = 20_000;
/// Rows of one statement are so many bytes, about.
const STATEMENT_BYTES: usize = 512 << 10;
/// A table that is read at once may have so many bytes.
const AT_ONCE_BYTES: u64 = 256 << 20;
/// So often a table is looked at whose definition changes meanwhile.
const ATTEMPTS: u32 = 20;
/// What a server says of a table that is not there, and of one that was defined anew since the snapshot.
const GONE: [u16; 2] = [1049, 1146];
const CHANGED: u16 = 1412;
/// A statement that leaves values as they are, and looks at no other table.
const AS_IT_IS: &str =
    "SET STATEMENT sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', foreign_key_checks = 0, \
     check_constraint_checks = 0 FOR ";

/// A table that is to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its database and name at the source.
    pub there: TableName,
    /// Both in the target.
    pub here: TableName,
    /// Its rows refer to each other, or to others that change them, so that all of them are needed.
    pub at_once: bool,
}

/// Which rows are wanted.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which table.
    pub table: Planned,
    /// Those above this number.
    pub above: Option<i128>,
}

/// Rows of a table.
pub struct Chunk {
    /// What was asked for.
    pub request: Request,
    /// Where in the source's log the snapshot is.
    pub place: LogPlace,
    /// The rows are those up to this number; None: all.
    pub upto: Option<i128>,
    /// The column of the number, from 0, and whether it has no sign.
    pub column: (usize, bool),
    /// How to count what the target then has.
    pub shape: Shape,
    /// What that must be; None of a sequence, which changes in no transaction.
    pub sum: Option<Sum>,
    /// What adds the rows.
    pub statements: Vec<Vec<u8>>,
}

/// What comes of a request.
pub enum Answer {
    /// Rows.
    Chunk(Box<Chunk>),
    /// The table is not there any more.
    Gone,
    /// Nothing more comes.
    Failed(Failure),
}

/// The thread that reads.
pub struct ChunkReader {
    requests: SyncSender<Request>,
    answers: Receiver<Answer>,
}

impl ChunkReader {
    /// Begins to read from a source.
    pub fn start(plan: &SourcePlan) -> Result<ChunkReader, Failure> {
        let (requests, wanted) = sync_channel::<Request>(4);
        let (found, answers) = sync_channel(1);
        let settings = plan.settings.clone();
        let work = move || {
            let mut connection = None;
            // Ends when nobody asks any more, or nobody listens.
            for request in wanted {
                let answer = match &mut connection {
                    Some(connection) => read(connection, request),
                    None => match settings.connect().and_then(|mut made| prepare(&mut made).map(|()| made)) {
                        Ok(made) => read(connection.insert(made), request),
                        Err(error) => Answer::Failed(Failure::of_source(&error)),
                    },
                };
                if found.send(answer).is_err() {
                    break;
                }
            }
        };
        let name = format!("{} copy", plan.name);
        let thread = std::thread::Builder::new().name(name).spawn(work);
        thread.map_err(|error| Failure::Passing(format!("no thread for a copy: {error}")))?;
        Ok(ChunkReader { requests, answers })
    }

    /// Asks for rows. What is asked for is read in its order.
    pub fn ask(&self, request: Request) -> Result<(), Failure> {
        self.requests.send(request).map_err(|_| ended())
    }

    /// Waits for the next answer, at most so long.
    pub fn answer(&self, at_most: Duration) -> Result<Option<Answer>, Failure> {
        match self.answers.recv_timeout(at_most) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }
}

fn ended() -> Failure {
    Failure::Passing("source: the thread that copies has ended".into())
}

fn prepare(connection: &mut Connection) -> Result<(), Error> {
    chunks::prepare(connection)?;
    connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").map(|_| ())
}

fn read(connection: &mut Connection, request: Request) -> Answer {
    for _ in 0..ATTEMPTS {
        let read = snapshot(connection, &request);
        let ended = connection.execute("ROLLBACK");
        match read {
            Ok(Ok(Some(chunk))) => return Answer::Chunk(Box::new(chunk)),
            Ok(Ok(None)) => (),
            Ok(Err(failure)) => return Answer::Failed(failure),
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => return Answer::Gone,
            Err(error) if error.code() == Some(CHANGED) && ended.is_ok() => (),
            Err(error) => return Answer::Failed(Failure::of_source(&error)),
        }
    }
    let table = &request.table.there;
    Answer::Failed(Failure::Passing(format!("source: `{}`.`{}` changes all the time", table.0, table.1)))
}

/// Reads in a transaction, which is left open. None: the table is not as it was in the snapshot.
fn snapshot(connection: &mut Connection, request: &Request) -> Result<Result<Option<Chunk>, Failure>, Error> {
    let name = copying::quoted(&request.table.there);
    let before = definition(connection, &name)?;
    connection.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let place = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'")?;
    let place: Vec<Vec<String>> = tables::texts(place).collect();
    let of =
        |what: &str| place.iter().find(|row| row[0].eq_ignore_ascii_case(what)).map(|row| row[1].clone());
    let file = of("binlog_snapshot_file").unwrap_or_default();
    let position = of("binlog_snapshot_position").and_then(|text| text.parse().ok());
    let Some(position) = position.filter(|_| !file.is_empty()) else {
        let why = "source: it does not tell where in its log a snapshot is (Binlog_snapshot_position)";
        return Ok(Err(Failure::Final(why.into(), Status::Server)));
    };
    // From here on nobody can change the definition.
    connection.execute([b"SELECT 1 FROM ", &name[..], b" LIMIT 1"].concat())?;
    if definition(connection, &name)? != before {
        return Ok(Ok(None));
    }
    let (database, table) = &request.table.there;
    let Some(table) = tables::one(connection, database, table)? else { return Ok(Ok(None)) };
    if let Some(why) = refusal(&table) {
        return Ok(Err(Failure::Final(
            format!("source: `{database}`.`{}` {why}", request.table.there.1),
            Status::Usage,
        )));
    }
    rows(connection, request, &table, (file, position)).map(|chunk| chunk.map(Some))
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
    Ok(without_counter(rows.into_iter().flatten().flatten().collect::<Vec<_>>().concat()))
}

/// The first column of a table's key, if its rows can be taken by the numbers in it: its place, and whether it has no
/// sign.
fn leading(table: &Table) -> Option<(usize, &Column, bool)> {
    let first = table.key.first()?;
    let place = table.columns.iter().position(|column| column.name == first.as_bytes())?;
    let column = &table.columns[place];
    Some((place, column, column.integer()?))
}

fn rows(
    connection: &mut Connection,
    request: &Request,
    table: &Table,
    place: LogPlace,
) -> Result<Result<Chunk, Failure>, Error> {
    let name = copying::quoted(&request.table.there);
    let leading = leading(table).filter(|_| !request.table.at_once);
    let text = |number: i128| vec![number.to_string().into_bytes()];
    let above = request.above.map(text);
    let (shape, upto, column) = match leading {
        Some((place, column, is_unsigned)) => {
            let shape = Shape::by(table, column);
            let each = table.bytes.checked_div(table.rows).unwrap_or(0).max(1);
            let rows = (CHUNK_BYTES / each).clamp(1, CHUNK_ROWS);
            let upto = shape.bound(connection, &name, above.as_ref(), rows)?;
            (shape, upto, (place, is_unsigned))
        }
        None if table.bytes > AT_ONCE_BYTES => {
            let (database, table) = &request.table.there;
            let why = format!(
                "source: `{database}`.`{table}` is large, and has no key that begins with an integer, or refers to itself: \
                 load it from a dump"
            );
            return Ok(Err(Failure::Final(why, Status::Usage)));
        }
        None => (Shape::of(table), None, (0, false)),
    };
    let range = Range::Of(above.as_ref(), upto.as_ref());
    let sum = match table.is_sequence {
        true => None,
        false => Some(shape.sum(connection, &name, range)?),
    };
    let columns = shape.given();
    let values = shape.values(connection, &name, &columns, range)?;
    let statements = statements(&copying::quoted(&request.table.here), &columns, values);
    let upto = upto.and_then(|key| String::from_utf8_lossy(key.first()?).parse().ok());
    Ok(Ok(Chunk { request: request.clone(), place, upto, column, shape, sum, statements }))
}

/// What adds rows to a table.
fn statements(table: &[u8], columns: &[&Column], rows: Vec<Vec<Option<Vec<u8>>>>) -> Vec<Vec<u8>> {
    let names: Vec<Vec<u8>> = columns.iter().map(|column| quoted_name(&column.name)).collect();
    let head =
        [AS_IT_IS.as_bytes(), b"INSERT INTO ", table, b" (", &names.join(&b", "[..]), b") VALUES "].concat();
    let mut all = Vec::new();
    let mut statement = head.clone();
    for row in rows {
        if statement.len() > STATEMENT_BYTES {
            all.push(std::mem::replace(&mut statement, head.clone()));
        }
        statement.extend_from_slice(if statement.len() > head.len() { b", (" } else { b"(" });
        for (at, (column, value)) in columns.iter().zip(row).enumerate() {
            if at > 0 {
                statement.push(b',');
            }
            statement.extend_from_slice(&column.literal(value.as_deref()));
        }
        statement.push(b')');
    }
    if statement.len() > head.len() {
        all.push(statement);
    }
    all
}
