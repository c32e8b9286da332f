//! Counts of a running program over HTTP: `/metrics` in the text form of Prometheus, and `/` as a page that draws them.
//!
//! What is answered needs no library: one request of a few lines is read, with bounds of its length and its time, and
//! answered, one after the other.

use crate::configuration::Listen;
use crate::progress::{Condition, Progress};
use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long somebody may take to ask, and each part of an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// A request is not longer.
const LONGEST: usize = 8 << 10;
/// After an accept that failed, as for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);
const PAGE: &str = include_str!("metrics.html");
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A socket that people ask at; it ends with the program.
pub struct Listening {
    /// A file that goes with it.
    socket: Option<PathBuf>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Answers whoever asks, on a thread of its own.
pub fn listen(at: &Listen, sources: Arc<[Progress]>) -> Result<Listening, Error> {
    let builder = std::thread::Builder::new().name("metrics".into());
    match at {
        Listen::Tcp(address) => {
            let listener = TcpListener::bind(address)?;
            let accept = move || {
                let (stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(stream)
            };
            builder.spawn(move || serve(&accept, &sources))?;
            Ok(Listening { socket: None })
        }
        Listen::Socket(path) => {
            let listener = bind(path)?;
            let accept = move || {
                let (stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(stream)
            };
            builder.spawn(move || serve(&accept, &sources))?;
            Ok(Listening { socket: Some(path.clone()) })
        }
    }
}

/// In place of a socket at which nobody listens, as a program that was killed leaves it.
fn bind(path: &Path) -> Result<UnixListener, Error> {
    let is_socket = || std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    let is_left =
        || UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_socket() && is_left() => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

fn serve<S: Read + Write>(accept: &dyn Fn() -> Result<S, Error>, sources: &[Progress]) {
    loop {
        match accept() {
            // Who does not wait for his answer has none.
            Ok(mut stream) => drop(answer(&mut stream, sources)),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn answer(stream: &mut (impl Read + Write), sources: &[Progress]) -> Result<(), Error> {
    let began = Instant::now();
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    // To its end, as what is not read makes of the answer a connection that is reset.
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let length = stream.read(&mut part)?;
        request.extend_from_slice(&part[..length]);
        if length == 0 || request.len() > LONGEST || began.elapsed() > PATIENCE {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(request.split(|&byte| byte == b'\r').next().unwrap_or_default());
    let mut words = line.split(' ');
    let (status, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", TEXT, text(sources)),
        (Some("GET"), Some("/")) => ("200 OK", "text/html; charset=utf-8", PAGE.to_string()),
        (Some("GET"), Some(_)) => ("404 Not Found", TEXT, "There are / and /metrics.\n".into()),
        _ => ("405 Method Not Allowed\r\nAllow: GET", TEXT, "There is GET.\n".into()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// All counts.
fn text(sources: &[Progress]) -> String {
    type Count<'c> = &'c dyn Fn(&Progress) -> Option<u64>;
    let counts: [(&str, &str, &str, Count<'_>); 9] = [
        ("transactions_total", "counter", "Transactions of the source that were applied", &|source| {
            Some(source.transactions.get())
        }),
        ("skipped_total", "counter", "Transactions that were passed over by skip", &|source| {
            Some(source.skipped.get())
        }),
        ("conflicts_total", "counter", "Rows that did not fit and were skipped or overwritten", &|source| {
            Some(source.conflicts.get())
        }),
        ("received_bytes_total", "counter", "Bytes of the source's log", &|source| Some(source.bytes.get())),
        ("connections_total", "counter", "How often it was begun to follow the source", &|source| {
            Some(source.connections.get())
        }),
        ("failures_total", "counter", "How often that ended for what passes", &|source| {
            Some(source.failures.get())
        }),
        ("tables_to_copy", "gauge", "Tables that are not copied yet", &|source| {
            Some(source.tables_to_copy.get())
        }),
        (
            "source_time_seconds",
            "gauge",
            "When the last applied transaction was committed at the source",
            &|source| Some(source.source_time.get()).filter(|&time| time != 0),
        ),
        (
            "behind_seconds",
            "gauge",
            "How long ago that was, 0 if the source has no others",
            &Progress::seconds_behind,
        ),
    ];
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "# HELP teak_replicate_{name} {help}\n# TYPE teak_replicate_{name} {kind}");
    };
    head(&mut text, "state", "gauge", "What becomes of the source: 1 for the state that it is in");
    for source in sources {
        let now = source.state();
        for state in Condition::ALL {
            let (name, state, is) = (&source.source, state.name(), u8::from(state == now));
            let _ = writeln!(text, "teak_replicate_state{{source=\"{name}\",state=\"{state}\"}} {is}");
        }
    }
    for (name, kind, help, count) in counts {
        head(&mut text, name, kind, help);
        for source in sources {
            if let Some(count) = count(source) {
                let _ = writeln!(text, "teak_replicate_{name}{{source=\"{}\"}} {count}", source.source);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what it has in small parts, and keeps what is written.
    struct Asked {
        request: Vec<u8>,
        answer: Vec<u8>,
    }

    impl Read for Asked {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
            let length = buffer.len().min(self.request.len()).min(7);
            buffer[..length].copy_from_slice(&self.request[..length]);
            self.request.drain(..length);
            Ok(length)
        }
    }

    impl Write for Asked {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
            self.answer.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    fn answered(request: &[u8]) -> String {
        let mut asked = Asked { request: request.to_vec(), answer: Vec::new() };
        let sources = [Progress::new("a"), Progress::new("b")];
        sources[1].becomes(Condition::Paused);
        sources[1].transactions.set(7);
        answer(&mut asked, &sources).unwrap();
        String::from_utf8(asked.answer).unwrap()
    }

    #[test]
    fn counts_are_told_as_prometheus_reads_them() {
        let told = answered(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        for line in [
            "# TYPE teak_replicate_transactions_total counter",
            "teak_replicate_transactions_total{source=\"b\"} 7",
            "teak_replicate_state{source=\"b\",state=\"paused\"} 1",
            "teak_replicate_state{source=\"b\",state=\"following\"} 0",
            "teak_replicate_state{source=\"a\",state=\"beginning\"} 1",
        ] {
            assert!(body.lines().any(|other| other == line), "{line}: {body}");
        }
        assert!(!body.contains("behind_seconds{"), "what is not known is told: {body}");
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_other_requests_are_refused() {
        let page = answered(b"GET / HTTP/1.0\r\n\r\n");
        assert!(page.contains("<html") && !page.contains("http://") && !page.contains("https://"), "{page}");
        for (request, status) in [
            (&b"GET /x HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 404 "),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
            (b"\xff\r\n\r\n", "HTTP/1.1 405 "),
            (b"\r\n\r\n", "HTTP/1.1 405 "),
        ] {
            assert!(answered(request).starts_with(status), "{request:?}");
        }
        let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; LONGEST]].concat();
        for request in [&b""[..], b"GET / HTTP/1.1\r\n", &long] {
            assert_eq!(answered(request), "");
        }
    }
}
