//! Another program's connection, whose statements go to the server over one of ours.
//!
//! The guest logs in here, on a socket that only this user reaches, and whatever it says of itself is taken: it needs
//! no password, and none is seen in a list of processes. What it is told of the server's abilities is what our own
//! connection agreed on, so the packets can be passed on as they are.

use super::handshake;
use super::packet::{Packets, Socket};
use super::{Connection, Error};
use std::os::unix::net::UnixStream;

const COM_QUIT: u8 = 1;
const COM_INIT_DB: u8 = 2;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
/// ER_UNKNOWN_COM_ERROR
const UNKNOWN_COMMAND: u16 = 1047;

/// The guest's side.
pub struct Guest {
    packets: Packets,
    command: Vec<u8>,
}

/// What became of one command.
#[derive(Debug, PartialEq)]
pub enum Answered {
    /// The guest has its answer.
    Yes,
    /// The guest has gone.
    Gone,
}

impl Guest {
    /// Lets a program in that has connected, as if it had reached `server`.
    pub fn welcome(stream: UnixStream, server: &Connection) -> Result<Guest, Error> {
        let mut packets = Packets::new(Socket::Unix(stream));
        packets.send(&handshake::invitation(server.version()), b"")?;
        let mut command = Vec::new();
        packets.receive(&mut command)?;
        packets.send(handshake::ADMITTED, b"")?;
        Ok(Guest { packets, command })
    }

    /// Takes the next command and answers it. `before` and `after` are called around the server's work, with the
    /// statement, in whose place `before` may put another; an error of theirs is the answer.
    pub fn serve(
        &mut self,
        server: &mut Connection,
        before: &mut dyn FnMut(&mut String, &mut Connection) -> Result<(), String>,
        after: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<Answered, Error> {
        self.packets.restart();
        if self.packets.receive(&mut self.command).is_err() || self.command.first() == Some(&COM_QUIT) {
            return Ok(Answered::Gone);
        }
        let mut statement = match self.command.split_first() {
            Some((&COM_QUERY, statement)) => String::from_utf8_lossy(statement).into_owned(),
            Some((&(COM_PING | COM_INIT_DB), _)) => String::new(),
            _ => return self.refuse(UNKNOWN_COMMAND, "this connection takes statements only"),
        };
        let given = statement.clone();
        if let Err(message) = before(&mut statement, server) {
            return self.refuse(UNKNOWN_COMMAND, &message);
        }
        // It need not be a text; what is passed on unchanged is not made one.
        if statement != given {
            self.command.truncate(1);
            self.command.extend_from_slice(statement.as_bytes());
        }
        // The answer is kept back until `after` has done its work.
        let mut answer = Vec::new();
        server.relay(&self.command, &mut answer)?;
        if let Err(message) = after(&statement) {
            return self.refuse(UNKNOWN_COMMAND, &message);
        }
        Ok(self.answer(answer.iter().map(Vec::as_slice)))
    }

    /// A guest that has gone before its answer came has no complaint about the server.
    fn answer<'a>(&mut self, mut payloads: impl Iterator<Item = &'a [u8]>) -> Answered {
        match payloads.try_for_each(|payload| self.packets.send(payload, b"")) {
            Ok(()) => Answered::Yes,
            Err(_) => Answered::Gone,
        }
    }

    fn refuse(&mut self, code: u16, message: &str) -> Result<Answered, Error> {
        let payload = [&[0xff][..], &code.to_le_bytes(), b"#HY000", message.as_bytes()].concat();
        Ok(self.answer(std::iter::once(&payload[..])))
    }
}
