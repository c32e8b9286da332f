//! Packets of the client protocol over a socket, plain or encrypted.
//!
//! ```text
//! length: 3 bytes, little-endian | sequence: 1 byte | payload
//! ```
//!
//! A payload of 2^24 - 1 bytes is continued by the next packet; the last part is shorter, if need be empty.

use super::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The longest payload of one packet.
const LONGEST: usize = (1 << 24) - 1;
/// A longer answer than a server may send is a broken one.
const LONGEST_ANSWER: usize = 1 << 30;
/// Longer payloads are written from where they are, without a copy.
const COPIED: usize = 64 << 10;

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn descriptor(&self) -> RawFd {
        match self {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }

    fn set_read_timeout(&self, limit: Duration) -> std::io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    fn set_write_timeout(&self, limit: Duration) -> std::io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(Some(limit)),
            Socket::Unix(stream) => stream.set_write_timeout(Some(limit)),
        }
    }

    fn try_clone(&self) -> std::io::Result<Socket> {
        Ok(match self {
            Socket::Tcp(stream) => Socket::Tcp(stream.try_clone()?),
            Socket::Unix(stream) => Socket::Unix(stream.try_clone()?),
        })
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(buffer),
            Socket::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain(Socket),
    Encrypted(Box<rustls::StreamOwned<rustls::ClientConnection, Socket>>),
    /// Only while it is encrypted.
    None,
}

impl Stream {
    fn as_read(&mut self) -> Result<&mut dyn Read, Error> {
        match self {
            Stream::Plain(socket) => Ok(socket),
            Stream::Encrypted(stream) => Ok(stream),
            Stream::None => Err(Error::Protocol("the connection is closed".into())),
        }
    }

    fn socket(&self) -> Result<&Socket, Error> {
        match self {
            Stream::Plain(socket) => Ok(socket),
            Stream::Encrypted(stream) => Ok(&stream.sock),
            Stream::None => Err(Error::Protocol("the connection is closed".into())),
        }
    }

    /// Whether bytes were received that nobody has read yet.
    fn holds_some(&mut self) -> bool {
        match self {
            Stream::Encrypted(stream) => {
                stream.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
            }
            _ => false,
        }
    }

    fn as_write(&mut self) -> Result<&mut dyn Write, Error> {
        match self {
            Stream::Plain(socket) => Ok(socket),
            Stream::Encrypted(stream) => Ok(stream),
            Stream::None => Err(Error::Protocol("the connection is closed".into())),
        }
    }
}

/// What is asked when nothing was received, or could be sent, for as long as the limits of time say; and how often that
/// was so now, with nothing between. An error ends the connection.
pub type OnSilence = Box<dyn FnMut(u32) -> Result<(), Error> + Send>;

/// Ends a connection that another thread uses: what that waits for, and what it asks for later, is an error.
#[derive(Debug)]
pub struct Closer(Socket);

impl Closer {
    /// Ends it.
    pub fn close(&self) {
        // One that has no other end any more cannot be closed, and need not be.
        let _ = match &self.0 {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Reads and writes packets.
pub struct Packets {
    stream: Stream,
    on_silence: Option<OnSilence>,
    /// How often that was asked since something was received, or sent.
    silences: u32,
    /// Nothing more can be sent.
    is_lost: bool,
    /// Bytes received and not yet taken: `input[taken..received]`.
    input: Vec<u8>,
    taken: usize,
    received: usize,
    output: Vec<u8>,
    sequence: u8,
    local: bool,
}

impl Packets {
    /// Over a socket on which nothing was exchanged yet.
    pub fn new(socket: Socket) -> Packets {
        let local = matches!(socket, Socket::Unix(_));
        let (input, output) = (vec![0; 16 << 10], Vec::new());
        let stream = Stream::Plain(socket);
        Packets {
            stream,
            on_silence: None,
            silences: 0,
            is_lost: false,
            input,
            taken: 0,
            received: 0,
            output,
            sequence: 0,
            local,
        }
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Encrypted(_))
    }

    /// Whether this is a local socket.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Continues encrypted. Bytes that came before, which nobody signed, are an error.
    pub fn encrypt(&mut self, session: rustls::ClientConnection) -> Result<(), Error> {
        if self.taken != self.received {
            return Err(Error::Protocol("data before the encryption began".into()));
        }
        let Stream::Plain(socket) = std::mem::replace(&mut self.stream, Stream::None) else {
            return Err(Error::Protocol("the connection is encrypted already".into()));
        };
        let mut stream = Box::new(rustls::StreamOwned::new(session, socket));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| match is_silence(&error) {
                true => lost(error),
                false => Error::Tls(error.to_string()),
            })?;
        }
        self.stream = Stream::Encrypted(stream);
        Ok(())
    }

    /// A new command begins: its packets are counted from 0.
    pub fn restart(&mut self) {
        self.sequence = 0;
    }

    /// The number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The next packet has this number: the answer begins to a command behind which others were sent.
    pub fn resume(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Sends `first` followed by `rest` as one payload.
    pub fn send(&mut self, first: &[u8], rest: &[u8]) -> Result<(), Error> {
        let mut parts = (first, rest);
        loop {
            let length = (parts.0.len() + parts.1.len()).min(LONGEST);
            self.output.clear();
            self.output.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
            self.output.push(self.sequence);
            self.sequence = self.sequence.wrapping_add(1);
            let from_first = length.min(parts.0.len());
            self.output.extend_from_slice(&parts.0[..from_first]);
            let (now, later) = parts.1.split_at(length - from_first);
            parts = (&parts.0[from_first..], later);
            if now.len() <= COPIED {
                self.output.extend_from_slice(now);
            }
            let output = std::mem::take(&mut self.output);
            let sent = self.write(&output);
            self.output = output;
            sent?;
            if now.len() > COPIED {
                self.write(now)?;
            }
            if length < LONGEST {
                return self.flush();
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.stream.as_write()?.write(bytes) {
                Ok(0) => return Err(self.loses(std::io::ErrorKind::WriteZero.into())),
                Ok(count) => (bytes, self.silences) = (&bytes[count..], 0),
                Err(error) => self.goes_on(error)?,
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        while let Err(error) = self.stream.as_write()?.flush() {
            self.goes_on(error)?;
        }
        Ok(())
    }

    /// Whether to try again what has failed.
    fn goes_on(&mut self, error: std::io::Error) -> Result<(), Error> {
        match &mut self.on_silence {
            _ if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Some(ask) if is_silence(&error) => {
                self.silences += 1;
                let asked = ask(self.silences);
                self.is_lost = asked.is_err();
                asked
            }
            _ => Err(self.loses(error)),
        }
    }

    fn loses(&mut self, error: std::io::Error) -> Error {
        self.is_lost = true;
        lost(error)
    }

    /// Whether an error has shown that nothing more can be sent.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Waits for something to be received, or for the end of the connection, at most so long; a signal ends the wait.
    /// Whether there is something.
    pub fn wait(&mut self, at_most: Duration) -> Result<bool, Error> {
        if self.taken < self.received || self.stream.holds_some() {
            return Ok(true);
        }
        let mut input =
            libc::pollfd { fd: self.stream.socket()?.descriptor(), events: libc::POLLIN, revents: 0 };
        let limit = at_most.as_millis().try_into().unwrap_or(libc::c_int::MAX);
        // SAFETY: there is one structure, which lives as long as the call.
        Ok(unsafe { libc::poll(&mut input, 1, limit) } > 0)
    }

    /// From now on it is an error if nothing comes for so long while a payload is received.
    pub fn set_read_timeout(&mut self, limit: Duration) -> Result<(), Error> {
        self.on_silence = None;
        self.stream.socket()?.set_read_timeout(limit).map_err(Error::io("a limit of time cannot be set"))
    }

    /// The same, and also if nothing can be sent for so long.
    pub fn set_timeouts(&mut self, limit: Duration) -> Result<(), Error> {
        self.set_read_timeout(limit)?;
        self.stream.socket()?.set_write_timeout(limit).map_err(Error::io("a limit of time cannot be set"))
    }

    /// What another thread can end the connection by.
    pub fn closer(&self) -> Result<Closer, Error> {
        self.stream.socket()?.try_clone().map(Closer).map_err(Error::io("a socket cannot be shared"))
    }

    /// What is done instead of that from now on.
    pub fn on_silence(&mut self, ask: OnSilence) {
        self.on_silence = Some(ask);
    }

    /// Receives one payload into `payload`.
    pub fn receive(&mut self, payload: &mut Vec<u8>) -> Result<(), Error> {
        payload.clear();
        loop {
            self.fill(4)?;
            let header = &self.input[self.taken..self.taken + 4];
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            if header[3] != self.sequence {
                return Err(Error::Protocol(format!("packet {} where {} was due", header[3], self.sequence)));
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.taken += 4;
            if payload.len() + length > LONGEST_ANSWER {
                return Err(Error::Protocol("an answer of more than 1 GiB".into()));
            }
            self.take(length, payload)?;
            if length < LONGEST {
                return Ok(());
            }
        }
    }

    /// Makes sure that at least `wanted` bytes, a few, are in the input.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        if self.taken == self.received {
            (self.taken, self.received) = (0, 0);
        } else if self.input.len() - self.taken < wanted {
            self.input.copy_within(self.taken..self.received, 0);
            (self.taken, self.received) = (0, self.received - self.taken);
        }
        while self.received - self.taken < wanted {
            let mut input = std::mem::take(&mut self.input);
            let read = self.read_some(&mut input[self.received..]);
            self.input = input;
            self.received += read?;
        }
        Ok(())
    }

    /// Moves the next `length` bytes to `payload`, those that are not here yet directly from the socket.
    fn take(&mut self, length: usize, payload: &mut Vec<u8>) -> Result<(), Error> {
        let here = length.min(self.received - self.taken);
        payload.extend_from_slice(&self.input[self.taken..self.taken + here]);
        self.taken += here;
        let mut filled = payload.len();
        payload.resize(filled + length - here, 0);
        while filled < payload.len() {
            filled += self.read_some(&mut payload[filled..])?;
        }
        Ok(())
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.stream.as_read()?.read(buffer) {
                Ok(0) => {
                    let kind = std::io::ErrorKind::UnexpectedEof;
                    return Err(self.loses(std::io::Error::new(kind, "the server closed it")));
                }
                Ok(count) => {
                    self.silences = 0;
                    return Ok(count);
                }
                Err(error) => self.goes_on(error)?,
            }
        }
    }
}

/// A limit of time has passed.
fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn lost(error: std::io::Error) -> Error {
    let error = match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            std::io::Error::new(std::io::ErrorKind::TimedOut, "the server says nothing")
        }
        _ => error,
    };
    Error::Io { what: "the connection to the server is lost".into(), error }
}

/// Takes fields off a payload; each fails where the payload is too short.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        if length > self.0.len() {
            return Err(Error::Protocol("a packet that is too short".into()));
        }
        let (field, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(field)
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.bytes(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.little_endian(2)? as u16)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.little_endian(4)? as u32)
    }

    fn little_endian(&mut self, length: usize) -> Result<u64, Error> {
        Ok(self.bytes(length)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Bytes up to a zero, or to the end.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        let field = &self.0[..end];
        self.0 = &self.0[(end + 1).min(self.0.len())..];
        field
    }

    /// A number of 1 to 9 bytes; `None` is SQL's NULL.
    pub fn number(&mut self) -> Result<Option<u64>, Error> {
        match self.u8()? {
            0xfb => Ok(None),
            0xfc => self.little_endian(2).map(Some),
            0xfd => self.little_endian(3).map(Some),
            0xfe => self.little_endian(8).map(Some),
            0xff => Err(Error::Protocol("an error where a number was due".into())),
            small => Ok(Some(u64::from(small))),
        }
    }

    /// Bytes with their length before them; `None` is SQL's NULL.
    pub fn string(&mut self) -> Result<Option<&'a [u8]>, Error> {
        match self.number()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).unwrap_or(usize::MAX)).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Packets, Packets) {
        let (a, b) = UnixStream::pair().unwrap();
        (Packets::new(Socket::Unix(a)), Packets::new(Socket::Unix(b)))
    }

    #[test]
    fn payloads_of_all_lengths_arrive() {
        let lengths = [
            0,
            1,
            3,
            16 << 10,
            (64 << 10) - 4,
            COPIED,
            COPIED + 1,
            LONGEST - 1,
            LONGEST,
            LONGEST + 1,
            2 * LONGEST,
            40 << 20,
        ];
        let (mut a, mut b) = pair();
        let sender = std::thread::spawn(move || {
            for length in lengths {
                a.restart();
                let payload: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
                let (first, rest) = payload.split_at(length.min(3));
                a.send(first, rest).unwrap();
            }
        });
        let mut payload = Vec::new();
        for length in lengths {
            b.restart();
            b.receive(&mut payload).unwrap();
            assert_eq!(payload.len(), length);
            assert!(payload.iter().enumerate().all(|(i, &byte)| byte == (i % 251) as u8));
        }
        sender.join().unwrap();
    }

    #[test]
    fn a_closed_socket_and_a_wrong_sequence_are_errors() {
        let (a, mut b) = pair();
        drop(a);
        assert!(matches!(b.receive(&mut Vec::new()), Err(Error::Io { .. })));
        let (mut a, mut b) = pair();
        a.send(b"x", b"").unwrap();
        a.send(b"y", b"").unwrap();
        b.receive(&mut Vec::new()).unwrap();
        b.restart();
        assert!(matches!(b.receive(&mut Vec::new()), Err(Error::Protocol(_))));
    }

    #[test]
    fn fields_never_read_past_the_end() {
        for payload in
            [&b""[..], b"\xfe1234567", b"\xfc1", b"\x05abc", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffxx"]
        {
            assert!(Fields(payload).string().is_err(), "{payload:?}");
        }
        assert_eq!(Fields(b"\x02abc").string().unwrap(), Some(&b"ab"[..]));
        assert_eq!(Fields(b"\xfb").string().unwrap(), None);
        let mut fields = Fields(b"ab\0c");
        assert_eq!(
            (fields.until_zero(), fields.until_zero(), fields.until_zero()),
            (&b"ab"[..], &b"c"[..], &b""[..])
        );
    }
}
