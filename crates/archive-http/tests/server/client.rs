//! A server of a simulated disk, and a client that says byte for byte what it is told to.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use teak_archive::{Archive, Chunking, Options, Rules};
use teak_archive_http::{ServeError, Server, Settings};
use teak_core::file::SimulatedFileSystem;
use teak_core::Options as EngineOptions;

/// Who waits longer waits for ever.
const LONGEST: Duration = Duration::from_secs(60);

/// A server that runs, and ends with this.
pub struct Served {
    pub address: SocketAddr,
    pub fs: SimulatedFileSystem,
    pub log: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

pub fn options() -> Options {
    let engine = EngineOptions {
        background: false,
        recovery_threads: 1,
        cache_bytes: 8 << 20,
        ..EngineOptions::new("/archive")
    };
    Options { engine, seed: Some(1), ..Options::new("/archive") }
}

impl Served {
    pub fn new() -> Served {
        Served::with(|_| {})
    }

    /// Of an archive with small chunks, in which no data without records is kept.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Served {
        let fs = SimulatedFileSystem::new(1);
        let (chunking, rules) =
            (Chunking::new(64, 256, 1024).unwrap(), Rules { grace_seconds: 0, keep_versions: 9 });
        let archive = Archive::init_on(Arc::new(fs.clone()), options(), chunking, &rules).unwrap();
        Served::of(archive, fs, change)
    }

    pub fn of(archive: Archive, fs: SimulatedFileSystem, change: impl FnOnce(&mut Settings)) -> Served {
        let (log, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let mut settings = Settings::new("127.0.0.1:0".parse().unwrap());
        let lines = log.clone();
        settings.log = Arc::new(move |line| lines.lock().unwrap().push(line.to_string()));
        change(&mut settings);
        let server = Server::bind(settings).unwrap();
        let (address, stopped) = (server.address(), stop.clone());
        let serve = move || server.serve(archive, &mut || stopped.load(Ordering::SeqCst));
        Served { address, fs, log, stop, thread: Some(std::thread::spawn(serve)) }
    }

    pub fn connect(&self) -> Conversation {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        stream.set_write_timeout(Some(LONGEST)).unwrap();
        Conversation(BufReader::new(stream))
    }

    /// One request by a connection of its own. A line of `headers` ends with `\n`.
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
        let mut conversation = self.connect();
        conversation.send(&request(self.address, method, target, headers, body)).unwrap();
        conversation.answer(method).unwrap()
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "", b"")
    }

    /// The OID of what is put.
    pub fn put(&self, bytes: &[u8], parameters: &str) -> String {
        let answer = self.ask("POST", &format!("/api/objects{parameters}"), "", bytes);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["oid"].as_str().unwrap().to_string()
    }

    pub fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Ends it, and opens its archive.
    pub fn end(mut self) -> Archive {
        self.tell_to_stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        let archive = Archive::open_on(Arc::new(self.fs.clone()), options()).unwrap();
        let wrong = archive.check_references().unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        archive
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tell_to_stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || matches!(ended, Ok(Ok(()))), "{ended:?}");
        }
    }
}

/// The bytes of a request with a body.
pub fn request(host: SocketAddr, method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = headers.replace('\n', "\r\n");
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{length}{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// A connection.
pub struct Conversation(pub BufReader<TcpStream>);

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|wrong| panic!("{wrong}: {self:?}"))
    }

    /// Of a refusal: its status, and its text.
    pub fn refusal(&self) -> (u16, String) {
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        (self.status, self.json()["error"].as_str().unwrap().to_string())
    }

    pub fn field(&self) -> String {
        self.json()["field"].as_str().unwrap_or_default().to_string()
    }
}

impl Conversation {
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.get_mut().write_all(bytes)
    }

    /// Whether the other side has ended it, without another byte.
    pub fn has_ended(&mut self) -> bool {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// The answer to a request of that method; an error if it ends before its end.
    pub fn answer(&mut self, method: &str) -> Result<Answer, Error> {
        let status = self.line()?;
        let status: u16 =
            status.split(' ').nth(1).and_then(|digits| digits.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_string());
        }
        if status == 100 {
            return self.answer(method);
        }
        let mut body = Vec::new();
        if method == "HEAD" || matches!(status, 204 | 304) {
            return Ok(Answer { status, headers, body });
        }
        if headers.get("transfer-encoding").is_some_and(|of| of == "chunked") {
            loop {
                let length = usize::from_str_radix(&self.line()?, 16).map_err(|_| ErrorKind::InvalidData)?;
                let mut part = vec![0; length];
                self.0.read_exact(&mut part)?;
                body.extend(part);
                self.line()?;
                if length == 0 {
                    break;
                }
            }
        } else {
            let length = headers.get("content-length").and_then(|length| length.parse().ok());
            body.resize(length.ok_or(ErrorKind::InvalidData)?, 0);
            self.0.read_exact(&mut body)?;
        }
        Ok(Answer { status, headers, body })
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        line.strip_suffix("\r\n").map(str::to_string).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

/// Random numbers of `TEAK_SEED`, or of another number.
pub fn seed(otherwise: u64) -> u64 {
    let seed = std::env::var("TEAK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(otherwise);
    println!("TEAK_SEED={seed}");
    seed
}

/// Bytes that do not repeat.
pub fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(count).collect()
}
