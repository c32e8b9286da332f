//! One request of a few lines: it is read, with bounds of its length and its time, and answered.

use std::io::{Error, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// How long somebody may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long he may take to take the answer.
const TAKING: Duration = Duration::from_secs(5);
/// A request is not longer.
const LONGEST: usize = 8 << 10;
const END: &[u8] = b"\r\n\r\n";
const TEXT: &str = "text/plain; charset=utf-8";

/// Who asks.
pub trait Peer: Read + Write {
    /// From now on a read or write that takes so long is an error. More than nothing.
    fn limit(&self, time: Duration) -> Result<(), Error>;
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn of(status: &'static str, kind: &'static str, body: String) -> Answer {
        Answer { status, kind, body }
    }

    /// Numbers, as Prometheus reads them.
    pub fn metrics(body: String) -> Answer {
        Answer::of("200 OK", "text/plain; version=0.0.4; charset=utf-8", body)
    }

    /// A page.
    pub fn html(body: String) -> Answer {
        Answer::of("200 OK", "text/html; charset=utf-8", body)
    }

    /// Data for a page.
    pub fn json(body: String) -> Answer {
        Answer::of("200 OK", "application/json", body)
    }

    /// A line.
    pub fn text(body: String) -> Answer {
        Answer::of("200 OK", TEXT, body)
    }
}

type Make = Box<dyn Fn() -> Answer + Send + Sync>;

/// What can be asked for, by its path.
#[derive(Default)]
pub struct Site(Vec<(&'static str, Make)>);

impl Site {
    /// With one more path.
    pub fn with(mut self, path: &'static str, make: impl Fn() -> Answer + Send + Sync + 'static) -> Site {
        self.0.push((path, Box::new(make)));
        self
    }

    fn answer(&self, method: Option<&str>, target: Option<&str>) -> Answer {
        let (Some("GET" | "HEAD"), Some(target)) = (method, target) else {
            let status = "405 Method Not Allowed\r\nAllow: GET, HEAD";
            return Answer::of(status, TEXT, "There is GET.\n".into());
        };
        let path = target.split('?').next().unwrap_or_default();
        match self.0.iter().find(|(known, _)| *known == path) {
            Some((_, make)) => make(),
            None => {
                let known: Vec<&str> = self.0.iter().map(|(path, _)| *path).collect();
                Answer::of("404 Not Found", TEXT, format!("There are {}.\n", known.join(", ")))
            }
        }
    }
}

/// Reads a request and answers it. Who asks for nothing, or too slowly, has no answer.
pub fn answer(peer: &mut impl Peer, site: &Site) -> Result<(), Error> {
    let Some(request) = request(peer)? else { return Ok(()) };
    let line = String::from_utf8_lossy(request.split(|&byte| byte == b'\r').next().unwrap_or_default());
    let mut words = line.split(' ');
    let method = words.next();
    let Answer { status, kind, body } = site.answer(method, words.next());
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    if method != Some("HEAD") {
        bytes += &body;
    }
    send(peer, bytes.as_bytes())
}

/// The request to the end of its lines: what is not read makes of the answer a connection that is reset.
fn request(peer: &mut impl Peer) -> Result<Option<Vec<u8>>, Error> {
    let until = Instant::now() + PATIENCE;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST {
            return Ok(None);
        }
        peer.limit(left)?;
        let length = match peer.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let seen = request.len().saturating_sub(END.len());
        request.extend_from_slice(&part[..length]);
        if request[seen..].windows(END.len()).any(|four| four == END) {
            return Ok(Some(request));
        }
    }
}

/// In time as a whole: each write alone could go on for ever with who takes a byte now and then.
fn send(peer: &mut impl Peer, mut bytes: &[u8]) -> Result<(), Error> {
    let until = Instant::now() + TAKING;
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        peer.limit(left)?;
        match peer.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    peer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what it has in small parts, and keeps what is written.
    struct Asked {
        request: Vec<u8>,
        at_once: usize,
        answer: Vec<u8>,
    }

    impl Read for Asked {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
            let length = buffer.len().min(self.request.len()).min(self.at_once);
            buffer[..length].copy_from_slice(&self.request[..length]);
            self.request.drain(..length);
            Ok(length)
        }
    }

    impl Write for Asked {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
            let length = bytes.len().min(100);
            self.answer.extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    impl Peer for Asked {
        fn limit(&self, time: Duration) -> Result<(), Error> {
            assert!(!time.is_zero());
            Ok(())
        }
    }

    fn answered_in_parts(request: &[u8], at_once: usize) -> String {
        let site = Site::default()
            .with("/metrics", || Answer::metrics("x 1\n".into()))
            .with("/", || crate::page("<html><script>\n// chart.js\n</script></html>"));
        let mut asked = Asked { request: request.to_vec(), at_once, answer: Vec::new() };
        answer(&mut asked, &site).unwrap();
        String::from_utf8(asked.answer).unwrap()
    }

    fn answered(request: &[u8]) -> String {
        let answer = answered_in_parts(request, 7);
        assert_eq!(answer, answered_in_parts(request, 1));
        assert_eq!(answer, answered_in_parts(request, usize::MAX));
        answer
    }

    #[test]
    fn what_is_there_is_answered_with_its_length() {
        let told = answered(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
        assert!(head.contains("Content-Length: 4\r\n") && body == "x 1\n", "{told}");
        assert_eq!(answered(b"GET /metrics?a=b HTTP/1.1\r\n\r\n"), told);
        assert_eq!(answered(b"HEAD /metrics HTTP/1.1\r\n\r\n"), format!("{head}\r\n\r\n"));
    }

    #[test]
    fn pages_need_nothing_from_elsewhere_and_other_requests_are_refused() {
        let page = answered(b"GET / HTTP/1.0\r\n\r\n");
        assert!(page.contains("<html") && page.contains("function line("), "{page}");
        assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
        for (request, status) in [
            (&b"GET /x HTTP/1.1\r\n\r\n"[..], "HTTP/1.1 404 "),
            (b"GET http://x/metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
            (b"GET /../metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
            (b"GET\r\n\r\n", "HTTP/1.1 405 "),
            (b"\xff\r\n\r\n", "HTTP/1.1 405 "),
            (b"\r\n\r\n", "HTTP/1.1 405 "),
        ] {
            assert!(answered(request).starts_with(status), "{request:?}");
        }
        assert!(answered(b"GET /x\r\n\r\n").ends_with("There are /metrics, /.\n"));
        let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; LONGEST]].concat();
        for request in [&b""[..], b"GET / HTTP/1.1\r\n", &long] {
            assert_eq!(answered(request), "");
        }
    }
}
