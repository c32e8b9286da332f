//! Statements and their results, in the text protocol; values of prepared statements in the binary one.

use super::packet::{Closer, Fields, OnSilence, Packets};
use super::request::{prepared, Prepared, Request};
use super::Error;
use std::collections::VecDeque;
use std::time::Duration;

const COM_QUIT: u8 = 1;
const COM_STMT_PREPARE: u8 = 0x16;
/// Statements that are sent before an answer is read. The kernel keeps a few hundred short answers for who does not
/// read them, and then holds up the server, which would no longer read statements.
const MOST_UNANSWERED: usize = 32;
/// More results of the same statement follow.
const MORE_RESULTS: u16 = 8;

/// What the server says of a statement that it carried out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completed {
    /// Rows that changed, over all results of the statement.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT number that it made; 0 if it made none.
    pub last_insert_id: u64,
    /// How many warnings and notes it left.
    pub warnings: u16,
    /// Such as `Records: 3  Duplicates: 0  Warnings: 0`.
    pub info: String,
    status: u16,
}

/// Rows of a result; a value is its text, or `None` for NULL.
pub type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// The values of a row as the server sent it; `None` is NULL.
pub fn values(row: &[u8]) -> impl Iterator<Item = Result<Option<&[u8]>, Error>> {
    let mut fields = Fields(row);
    std::iter::from_fn(move || (!fields.0.is_empty()).then(|| fields.string()))
}

/// What takes the rows of a result.
enum Taken<'a> {
    All(&'a mut Rows),
    Each(&'a mut dyn FnMut(&[u8]) -> Result<(), Error>),
}

/// Is shown what the server sends.
type Show<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// A connection to a server. Dropped, it says good-bye.
pub struct Connection {
    packets: Packets,
    version: String,
    payload: Vec<u8>,
    /// Of the command that is sent.
    head: Vec<u8>,
    ahead: Ahead,
}

/// Statements that were sent, and whose answers were not read yet.
#[derive(Default)]
struct Ahead {
    /// With which numbers their packets ended.
    ends: VecDeque<u8>,
    /// What the server says of the last one that is answered, or of the first one that failed.
    answered: Option<Result<Completed, Error>>,
}

impl Connection {
    pub(super) fn new(packets: Packets, version: String) -> Connection {
        Connection { packets, version, payload: Vec::new(), head: Vec::new(), ahead: Ahead::default() }
    }

    /// The version as the server gives it, such as `10.11.18-MariaDB`.
    pub fn version(&self) -> &str {
        // MariaDB pretends to be an old MySQL towards replicas.
        self.version.strip_prefix("5.5.5-").unwrap_or(&self.version)
    }

    /// Carries out one statement; rows of results are read and dropped.
    ///
    /// After a server's error the connection can be used on; after another it cannot.
    pub fn execute(&mut self, statement: impl AsRef<[u8]>) -> Result<Completed, Error> {
        self.send(statement.as_ref())?;
        self.receive_all(None)
    }

    /// Carries out statements one after the other, of which some are sent before the first one is answered. After an
    /// error of the server the others are carried out as well; the first one is returned. What the server says of the
    /// last statement.
    pub fn execute_all<'a>(
        &mut self,
        statements: impl IntoIterator<Item = impl Into<Request<'a>>>,
    ) -> Result<Completed, Error> {
        self.send_all(statements)?;
        self.finish()
    }

    /// The same without waiting for all answers: the next call of this, or [`Connection::finish`], has the error of
    /// what failed; other statements are carried out behind it, and have theirs only.
    pub fn execute_ahead<'a>(
        &mut self,
        statements: impl IntoIterator<Item = impl Into<Request<'a>>>,
    ) -> Result<(), Error> {
        self.send_all(statements)?;
        match self.ahead.answered.take() {
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits for what was sent ahead. What the server says of the last statement, or the first error.
    pub fn finish(&mut self) -> Result<Completed, Error> {
        self.answer_all()?;
        self.ahead.answered.take().unwrap_or_else(|| Ok(Completed::default()))
    }

    /// Has the server prepare a statement with one parameter.
    pub fn prepare(&mut self, statement: &str) -> Result<Prepared, Error> {
        self.answer_all()?;
        self.command(&[&[COM_STMT_PREPARE], statement.as_bytes()].concat())?;
        let (prepared, packets) = prepared(self.receive()?)?;
        (0..packets).try_for_each(|_| self.receive().map(|_| ()))?;
        Ok(prepared)
    }

    fn send_all<'a>(
        &mut self,
        statements: impl IntoIterator<Item = impl Into<Request<'a>>>,
    ) -> Result<(), Error> {
        for statement in statements {
            if self.ahead.ends.len() == MOST_UNANSWERED {
                self.answer()?;
            }
            self.request(statement.into())?;
            self.ahead.ends.push_back(self.packets.sequence());
        }
        Ok(())
    }

    fn answer_all(&mut self) -> Result<(), Error> {
        while !self.ahead.ends.is_empty() {
            self.answer()?;
        }
        Ok(())
    }

    /// Reads the answer to the first statement that has none.
    fn answer(&mut self) -> Result<(), Error> {
        self.packets.resume(self.ahead.ends.pop_front().unwrap_or_default());
        let answer = match self.receive_all(None) {
            Err(error @ Error::Server { .. }) => Err(error),
            other => Ok(other?),
        };
        if !matches!(self.ahead.answered, Some(Err(_))) {
            self.ahead.answered = Some(answer);
        }
        Ok(())
    }

    /// Carries out one statement and returns the rows of its first result.
    pub fn query(&mut self, statement: impl AsRef<[u8]>) -> Result<Rows, Error> {
        self.send(statement.as_ref())?;
        let mut rows = Rows::new();
        self.receive_all(Some(Taken::All(&mut rows)))?;
        Ok(rows)
    }

    /// The same, of a statement with one result, and the names of its columns.
    pub fn query_with_names(&mut self, statement: &str) -> Result<(Vec<String>, Rows), Error> {
        self.query_at_most(statement, usize::MAX)
    }

    /// The same; more rows than so many are an error, after which the connection cannot be used.
    pub fn query_at_most(&mut self, statement: &str, most: usize) -> Result<(Vec<String>, Rows), Error> {
        self.send(statement.as_bytes())?;
        let (mut rows, mut columns, mut names) = (Rows::new(), None, Vec::new());
        let mut take = |row: &[u8]| {
            if rows.len() == most {
                return Err(Error::Protocol(format!("more than {most} rows")));
            }
            rows.push(values(row).map(|value| Ok(value?.map(<[u8]>::to_vec))).collect::<Result<_, Error>>()?);
            Ok(())
        };
        self.receive_and(Some(Taken::Each(&mut take)), &mut |payload| {
            match columns {
                // An error begins with what is no number.
                None => columns = Some(Fields(payload).number().ok().flatten().unwrap_or(0)),
                Some(count) if (names.len() as u64) < count => {
                    let mut fields = Fields(payload);
                    // Before it are those of the catalog, of the database, and of the table, twice.
                    let name = (0..5).map(|_| fields.string()).last().transpose()?.flatten();
                    names.push(String::from_utf8_lossy(name.unwrap_or_default()).into_owned());
                }
                Some(_) => {}
            }
            Ok(())
        })?;
        Ok((names, rows))
    }

    /// Shows each row of the first result as it was sent, for [`values`].
    pub fn query_each(
        &mut self,
        statement: impl AsRef<[u8]>,
        row: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.send(statement.as_ref())?;
        self.receive_and(Some(Taken::Each(row)), &mut |_| Ok(())).map(|_| ())
    }

    /// Carries out a `LOAD DATA LOCAL`, whose data come from `fill`, part by part, until one is empty. Whatever file
    /// the server asks for, it gets these.
    pub fn load(
        &mut self,
        statement: impl AsRef<[u8]>,
        fill: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<Completed, Error> {
        self.send(statement.as_ref())?;
        self.packets.receive(&mut self.payload)?;
        match self.payload.first() {
            Some(0xfb) => (),
            Some(0xff) => return Err(server_error(&self.payload)),
            _ => return Err(Error::Protocol("an answer to LOAD DATA LOCAL that asks for no data".into())),
        }
        let mut part = Vec::new();
        loop {
            part.clear();
            fill(&mut part);
            self.packets.send(&part, b"")?;
            if part.is_empty() {
                return self.receive_all(None);
            }
        }
    }

    /// The first value of the first row, as text; `None` if there is none or it is NULL.
    pub fn value(&mut self, statement: impl AsRef<[u8]>) -> Result<Option<String>, Error> {
        let first =
            self.query(statement)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        Ok(first.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }

    /// Sends a command that is no statement. What it is answered with is for [`Connection::receive`].
    pub fn command(&mut self, command: &[u8]) -> Result<(), Error> {
        self.packets.restart();
        self.packets.send(command, b"")
    }

    /// The next payload of the answer to a command, however long that goes on; an error of the server is one here.
    pub fn receive(&mut self) -> Result<&[u8], Error> {
        self.packets.receive(&mut self.payload)?;
        match self.payload.first() {
            Some(0xff) => Err(server_error(&self.payload)),
            _ => Ok(&self.payload),
        }
    }

    /// Waits for something to be received, at most so long; a signal ends the wait. Whether there is something, which
    /// may be the end of the connection.
    pub fn wait(&mut self, at_most: Duration) -> Result<bool, Error> {
        self.packets.wait(at_most)
    }

    /// From now on it is an error, after which the connection cannot be used, if nothing comes for so long.
    pub fn set_read_timeout(&mut self, limit: Duration) -> Result<(), Error> {
        self.packets.set_read_timeout(limit)
    }

    /// What another thread can end it by.
    pub fn closer(&self) -> Result<Closer, Error> {
        self.packets.closer()
    }

    /// What is asked instead when nothing comes, or can be sent, for as long as the limits of time say.
    pub(super) fn on_silence(&mut self, ask: OnSilence) {
        self.packets.on_silence(ask);
    }

    /// Passes a command of somebody else on; the payloads of the answer, which may be an error of the server. Only of
    /// commands whose answer looks like that of a statement.
    pub(super) fn relay(&mut self, command: &[u8], answer: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        self.packets.restart();
        self.packets.send(command, b"")?;
        let received = self.receive_and(None, &mut |payload| {
            answer.push(payload.to_vec());
            Ok(())
        });
        match received {
            Err(Error::Server { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, statement: &[u8]) -> Result<(), Error> {
        self.answer_all()?;
        self.request(statement.into())
    }

    fn request(&mut self, request: Request<'_>) -> Result<(), Error> {
        self.packets.restart();
        let rest = request.payload(&mut self.head);
        self.packets.send(&self.head, rest)
    }

    fn next(&mut self, show: Show<'_>) -> Result<(), Error> {
        self.packets.receive(&mut self.payload)?;
        show(&self.payload)
    }

    /// Reads all results of a statement; the rows of the first that has any go to `rows`.
    fn receive_all(&mut self, rows: Option<Taken<'_>>) -> Result<Completed, Error> {
        self.receive_and(rows, &mut |_| Ok(()))
    }

    /// The same; each payload is shown.
    fn receive_and(&mut self, mut rows: Option<Taken<'_>>, show: Show<'_>) -> Result<Completed, Error> {
        let mut total = Completed::default();
        loop {
            self.next(show)?;
            let status = match self.payload.first().copied() {
                Some(0) => {
                    let completed = completed(&self.payload)?;
                    let affected_rows = total.affected_rows.saturating_add(completed.affected_rows);
                    total = Completed { affected_rows, ..completed };
                    total.status
                }
                Some(0xff) => return Err(server_error(&self.payload)),
                Some(0xfb) => return Err(self.refuse_file()?),
                Some(_) => self.result_set(rows.take(), show)?,
                None => return Err(Error::Protocol("an empty answer".into())),
            };
            total.status = status;
            if status & MORE_RESULTS == 0 {
                return Ok(total);
            }
        }
    }

    /// The server asks for a file of the client (LOAD DATA LOCAL): it gets none, since any server could ask for any
    /// file.
    fn refuse_file(&mut self) -> Result<Error, Error> {
        self.packets.send(b"", b"")?;
        self.packets.receive(&mut self.payload)?;
        Ok(Error::Protocol("the server asked for a local file (LOAD DATA LOCAL), which is refused".into()))
    }

    /// Reads columns and rows, and returns the status after them.
    fn result_set(&mut self, mut rows: Option<Taken<'_>>, show: Show<'_>) -> Result<u16, Error> {
        let columns = Fields(&self.payload)
            .number()?
            .ok_or_else(|| Error::Protocol("a result without columns".into()))?;
        for _ in 0..columns {
            self.next(show)?;
        }
        self.next(show)?;
        end_of_rows(&self.payload)?.ok_or_else(|| Error::Protocol("more columns than announced".into()))?;
        loop {
            self.next(show)?;
            if let Some(status) = end_of_rows(&self.payload)? {
                return Ok(status);
            }
            match &mut rows {
                None => (),
                Some(Taken::Each(see)) => see(&self.payload)?,
                Some(Taken::All(rows)) => {
                    let mut fields = Fields(&self.payload);
                    let row: Result<_, Error> =
                        (0..columns).map(|_| Ok(fields.string()?.map(<[u8]>::to_vec))).collect();
                    rows.push(row?);
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.packets.is_lost() {
            return;
        }
        self.packets.restart();
        // If it does not arrive, the server notices the closed socket.
        let _ = self.packets.send(&[COM_QUIT], b"");
    }
}

/// The status, if the payload ends columns or rows.
fn end_of_rows(payload: &[u8]) -> Result<Option<u16>, Error> {
    match payload.first() {
        Some(0xff) => Err(server_error(payload)),
        Some(0xfe) if payload.len() < 9 => {
            let mut fields = Fields(&payload[1..]);
            fields.u16()?;
            Ok(Some(fields.u16()?))
        }
        _ => Ok(None),
    }
}

fn completed(payload: &[u8]) -> Result<Completed, Error> {
    let mut fields = Fields(&payload[1..]);
    let affected_rows = fields.number()?.unwrap_or(0);
    let last_insert_id = fields.number()?.unwrap_or(0);
    let status = fields.u16()?;
    let warnings = fields.u16()?;
    // The length before the text is left out by some servers.
    let rest = fields.0;
    let info = fields.string().ok().flatten().unwrap_or(rest);
    Ok(Completed {
        affected_rows,
        last_insert_id,
        warnings,
        info: String::from_utf8_lossy(info).into_owned(),
        status,
    })
}

/// The error in a packet that begins with 0xff.
pub(super) fn server_error(payload: &[u8]) -> Error {
    let code = payload.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    let rest = payload.get(3..).unwrap_or_default();
    let (state, message) = match rest {
        [b'#', state @ ..] if state.len() >= 5 => state.split_at(5),
        _ => (&b"HY000"[..], rest),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Error::Server { code, state: text(state), message: text(message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Socket;
    use std::os::unix::net::UnixStream;

    /// A connection whose server sends these packets and then closes.
    fn answering(packets: Vec<Vec<u8>>) -> Connection {
        let (client, server) = UnixStream::pair().unwrap();
        let mut server = Packets::new(Socket::Unix(server));
        std::thread::spawn(move || {
            let mut query = Vec::new();
            if server.receive(&mut query).is_ok() {
                for packet in packets {
                    let _ = server.send(&packet, b"");
                }
            }
        });
        Connection::new(Packets::new(Socket::Unix(client)), "5.5.5-10.11.1-MariaDB".into())
    }

    #[test]
    fn rows_nulls_and_several_results() {
        let packets = vec![
            vec![1],
            b"column".to_vec(),
            vec![0xfe, 0, 0, 0, 0],
            b"\x02ab".to_vec(),
            vec![0xfb],
            vec![0xfe, 0, 0, 8, 0],
            vec![0, 5, 0, 2, 0, 0, 0],
        ];
        assert_eq!(answering(packets.clone()).query("x").unwrap(), [[Some(b"ab".to_vec())], [None]]);
        assert_eq!(answering(packets).execute("x").unwrap().affected_rows, 5);
    }

    #[test]
    fn an_error_amid_rows_and_a_broken_answer_are_errors() {
        let error = b"\xff\x26\x04#23000Duplicate".to_vec();
        let amid = vec![vec![1], vec![0], vec![0xfe, 0, 0, 0, 0], b"\x01a".to_vec(), error.clone()];
        let error_text = answering(amid).execute("x").unwrap_err();
        assert_eq!(error_text.code(), Some(1062));
        assert_eq!(error_text.to_string(), "ERROR 1062 (23000): Duplicate");
        for broken in [
            vec![],
            vec![vec![]],
            vec![vec![0]],
            vec![vec![2], vec![0]],
            vec![vec![1], vec![0], vec![0xfe], vec![9, 9]],
        ] {
            assert!(answering(broken.clone()).query("x").is_err(), "{broken:?}");
        }
    }

    #[test]
    fn answers_of_several_statements_come_in_their_order_also_behind_an_error() {
        let completed = |rows| vec![0, rows, 0, 2, 0, 0, 0];
        let error = b"\xff\x26\x04#23000Duplicate".to_vec();
        for (answers, wanted) in [
            (vec![completed(1), completed(2)], Ok(2)),
            (vec![error.clone(), completed(2), b"\xff\x00\x04#23000Other".to_vec()], Err(1062)),
            (std::iter::repeat_n(completed(1), 2000).chain([completed(5)]).collect(), Ok(5)),
        ] {
            let (client, server) = UnixStream::pair().unwrap();
            let mut server = Packets::new(Socket::Unix(server));
            // The first one is longer than a packet.
            let length = |at| if at == 0 { 17 << 20 } else { 20 };
            let statements: Vec<String> = (0..answers.len()).map(|at| "x".repeat(length(at))).collect();
            std::thread::spawn(move || {
                let mut query = Vec::new();
                for answer in answers {
                    server.restart();
                    server.receive(&mut query).unwrap();
                    server.send(&answer, b"").unwrap();
                }
                server.restart();
                server.receive(&mut query).unwrap();
                server.send(&[0, 9, 0, 2, 0, 0, 0], b"").unwrap();
            });
            let mut connection = Connection::new(Packets::new(Socket::Unix(client)), "10.11.1".into());
            let done = connection.execute_all(&statements);
            let done = done.map(|completed| u16::try_from(completed.affected_rows).unwrap());
            assert_eq!(done.map_err(|error| error.code().unwrap()), wanted);
            assert_eq!(connection.execute("y").unwrap().affected_rows, 9);
        }
    }

    #[test]
    fn a_statement_is_prepared_and_what_the_server_tells_of_its_parameter_is_passed_over() {
        let told = b"\0\x07\0\0\0\0\0\x01\0\0\0\0".to_vec();
        let mut connection =
            answering(vec![told, b"parameter".to_vec(), vec![0xfe, 0, 0, 0, 0], vec![0, 3, 0, 2, 0, 0, 0]]);
        let prepared = connection.prepare("SET @a = ?").unwrap();
        // The number of the next packet is that of the answer to the first command, as nobody reads a second one.
        connection.ahead.ends.push_back(4);
        assert_eq!(connection.finish().unwrap().affected_rows, 3);
        let mut head = Vec::new();
        Request::Prepared(prepared, [b"", b""]).payload(&mut head);
        assert_eq!(head[1..5], [7, 0, 0, 0]);
        let refused = answering(vec![b"\xff\xb5\x05#42000Too many".to_vec()]).prepare("SET @a = ?");
        assert_eq!(refused.unwrap_err().code(), Some(1461));
    }

    #[test]
    fn a_wait_ends_with_what_comes_or_with_its_limit() {
        let mut connection = answering(vec![vec![0; 7], vec![0; 7]]);
        assert!(!connection.wait(Duration::ZERO).unwrap());
        connection.command(b"x").unwrap();
        assert!(connection.wait(Duration::from_secs(60)).unwrap());
        assert_eq!(connection.receive().unwrap(), [0; 7]);
        // The second one, whether it is read from the socket already or not, and then the end.
        assert!(connection.wait(Duration::from_secs(60)).unwrap());
        connection.receive().unwrap();
        assert!(connection.wait(Duration::from_secs(60)).unwrap());
        assert!(matches!(connection.receive(), Err(Error::Io { .. })));
    }

    #[test]
    fn data_of_a_load_go_part_by_part_and_rows_come_as_they_were_sent() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut server = Packets::new(Socket::Unix(server));
        let thread = std::thread::spawn(move || {
            let (mut received, mut all) = (Vec::new(), Vec::new());
            server.receive(&mut received).unwrap();
            server.send(b"\xfbname", b"").unwrap();
            while !received.is_empty() {
                server.receive(&mut received).unwrap();
                all.extend_from_slice(&received);
            }
            server.send(&[0, 2, 0, 2, 0, 0, 0], b"").unwrap();
            server.restart();
            server.receive(&mut received).unwrap();
            let column = b"column".to_vec();
            for packet in [
                vec![2],
                column.clone(),
                column,
                vec![0xfe, 0, 0, 0, 0],
                b"\x02ab\xfb".to_vec(),
                vec![0xfe, 0, 0, 0, 0],
            ] {
                server.send(&packet, b"").unwrap();
            }
            all
        });
        let mut connection = Connection::new(Packets::new(Socket::Unix(client)), "10.11.1".into());
        let mut parts = [&b"1\n"[..], b"2\n"].into_iter();
        let loaded =
            connection.load("x", &mut |part| part.extend_from_slice(parts.next().unwrap_or_default()));
        assert_eq!(loaded.unwrap().affected_rows, 2);
        let mut rows = Vec::new();
        let row = &mut |row: &[u8]| {
            rows.push(row.to_vec());
            Ok(())
        };
        connection.query_each("y", row).unwrap();
        let found: Vec<Option<&[u8]>> = values(&rows[0]).map(|value| value.unwrap()).collect();
        assert_eq!((rows.len(), found), (1, vec![Some(&b"ab"[..]), None]));
        assert!(values(b"\x05ab").next().is_some_and(|value| value.is_err()));
        assert_eq!(thread.join().unwrap(), b"1\n2\n");
    }

    #[test]
    fn a_server_gets_no_local_file() {
        let error = answering(vec![b"\xfb/etc/passwd".to_vec()]).execute("x").unwrap_err();
        assert!(matches!(error, Error::Protocol(_) | Error::Io { .. }), "{error}");
    }
}
