//! The socket that is asked, and threads that answer: one for each who asks, up to a bound, so that who asks slowly
//! holds nobody up.

use crate::http::{answer, Peer, Site};
use std::fmt;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many are answered at once; the others wait in the kernel's queue. Each is done in seconds, whatever it does.
const MOST: usize = 256;
/// Of a thread that answers: it formats text, and its buffers are on the heap.
const STACK: usize = 256 << 10;
/// After an accept that failed, as for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);
/// So long who is being answered is waited for at the end.
const ENDING: Duration = Duration::from_secs(1);

/// Where somebody listens: an address with a port, or the path of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address with a port.
    Tcp(SocketAddr),
    /// A socket of this path.
    Socket(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => address.fmt(f),
            Listen::Socket(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        match text.strip_prefix('/') {
            Some(_) => Ok(Listen::Socket(text.into())),
            None => text.parse().map(Listen::Tcp).map_err(|_| {
                format!(
                    "{text} is neither an address with a port, such as 127.0.0.1:9104, nor an absolute path"
                )
            }),
        }
    }
}

/// A socket that people ask at; it ends with the program.
pub struct Listening {
    /// A file that goes with it.
    socket: Option<PathBuf>,
    answered: Arc<Answered>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(socket);
        }
        self.answered.wait_for_all();
    }
}

/// How many are being answered.
#[derive(Default)]
struct Answered {
    now: Mutex<usize>,
    less: Condvar,
}

impl Answered {
    fn now(&self) -> MutexGuard<'_, usize> {
        // A number is right whatever thread has panicked.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more may be answered.
    fn one_more(self: &Arc<Self>) -> One {
        let now = self.less.wait_while(self.now(), |now| *now >= MOST);
        *now.unwrap_or_else(PoisonError::into_inner) += 1;
        One(Arc::clone(self))
    }

    fn wait_for_all(&self) {
        // Who takes longer has had his time.
        drop(self.less.wait_timeout_while(self.now(), ENDING, |now| *now > 0));
    }
}

/// One who is being answered.
struct One(Arc<Answered>);

impl Drop for One {
    fn drop(&mut self) {
        *self.0.now() -= 1;
        self.0.less.notify_all();
    }
}

impl Peer for TcpStream {
    fn limit(&self, time: Duration) -> Result<(), Error> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Peer for UnixStream {
    fn limit(&self, time: Duration) -> Result<(), Error> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// Answers whoever asks, on threads of their own.
pub fn listen(at: &Listen, site: Site) -> Result<Listening, Error> {
    let builder = std::thread::Builder::new().name("listen".into());
    let (site, answered) = (Arc::new(site), Arc::new(Answered::default()));
    let listening = |socket| Listening { socket, answered: Arc::clone(&answered) };
    match at {
        Listen::Tcp(address) => {
            let (listener, listening) = (TcpListener::bind(address)?, listening(None));
            let accept = move || listener.accept().map(|(stream, _)| stream);
            builder.spawn(move || serve(&accept, &site, &answered))?;
            Ok(listening)
        }
        Listen::Socket(path) => {
            let (listener, listening) = (bind(path)?, listening(Some(path.clone())));
            let accept = move || listener.accept().map(|(stream, _)| stream);
            builder.spawn(move || serve(&accept, &site, &answered))?;
            Ok(listening)
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

fn serve<P: Peer + Send + 'static>(
    accept: &dyn Fn() -> Result<P, Error>,
    site: &Arc<Site>,
    answered: &Arc<Answered>,
) {
    loop {
        let begun = accept().and_then(|mut peer| {
            let (site, one) = (Arc::clone(site), answered.one_more());
            let work = move || {
                let _one = one;
                // Who does not wait for his answer has none.
                drop(answer(&mut peer, &site));
            };
            std::thread::Builder::new().name("answer".into()).stack_size(STACK).spawn(work)
        });
        if begun.is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Answer;
    use std::io::{Read, Write};

    #[test]
    fn addresses_and_paths_are_told_apart() {
        for text in ["127.0.0.1:9104", "[::1]:9104", "/run/teak/metrics.sock"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for text in
            ["", "9104", ":9104", "localhost:9104", "127.0.0.1", "run/metrics.sock", "127.0.0.1:99999"]
        {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }

    #[test]
    fn who_asks_slowly_holds_nobody_up_and_his_socket_goes() {
        let path = std::env::temp_dir().join(format!("teak-metrics-{}.sock", std::process::id()));
        let at = Listen::Socket(path.clone());
        let site = || Site::default().with("/metrics", || Answer::metrics("x 1\n".into()));
        let ask = || {
            let mut peer = UnixStream::connect(&path).unwrap();
            peer.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            peer.read_to_string(&mut text).unwrap();
            text
        };
        let listening = listen(&at, site()).unwrap();
        let silent: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert!(ask().ends_with("x 1\n"));
        assert!(matches!(listen(&at, site()), Err(error) if error.kind() == ErrorKind::AddrInUse));
        drop(silent);
        drop(listening);
        assert!(!path.exists());
    }
}
