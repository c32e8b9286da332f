//! Bodies of requests: what is short is read as a whole before a thread is asked for; what is longer goes through a
//! channel that holds little, so that who sends waits for the archive. Who sends too slowly is not waited for.

use crate::problem::Problem;
use hyper::body::{Body, Bytes, Incoming};
use hyper::StatusCode;
use std::io::{Error, Read};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at, Instant};

/// Of a body that is read as a whole: of JSON all of it, of objects what comes before the channel.
pub(crate) const MOST_WHOLE: usize = 256 << 10;
/// Parts, of at most some 100 KiB, that wait for the archive.
const WAITING: usize = 4;
/// Of a body that nobody wants: so much is read, as an answer beside bytes that are not taken may be lost.
const MOST_DISCARDED: usize = 1 << 20;
/// How long that may take.
pub(crate) const LINGERING: Duration = Duration::from_secs(2);
/// So many bytes must come within the patience.
const LEAST: usize = 16 << 10;

/// Why no more of a body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Broken,
    TooSlow,
}

impl Cut {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Cut::Broken => Problem::bad("the request ended before its end"),
            Cut::TooSlow => Problem::new(StatusCode::REQUEST_TIMEOUT, "the request came too slowly"),
        }
    }
}

/// A body as it comes.
pub(crate) struct Arriving {
    body: Incoming,
    patience: Duration,
    until: Instant,
    /// Since then.
    bytes: usize,
}

impl Arriving {
    pub(crate) fn new(body: Incoming, patience: Duration) -> Arriving {
        Arriving { body, patience, until: Instant::now() + patience, bytes: 0 }
    }

    /// What it says of its length, in bytes.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = match timeout_at(self.until, frame).await {
                Err(_) => return Err(Cut::TooSlow),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(Cut::Broken),
                Ok(Some(Ok(frame))) => frame,
            };
            // Trailers say nothing that is known here.
            let Ok(bytes) = frame.into_data() else { continue };
            self.bytes += bytes.len();
            if self.bytes >= LEAST {
                self.bytes = 0;
                self.until = Instant::now() + self.patience;
            }
            return Ok(Some(bytes));
        }
    }

    /// Its beginning, and whether that is all.
    pub(crate) async fn begin(&mut self) -> Result<(Vec<u8>, bool), Cut> {
        let mut begin = Vec::new();
        while begin.len() <= MOST_WHOLE {
            match self.next().await? {
                Some(bytes) => begin.extend_from_slice(&bytes),
                None => return Ok((begin, true)),
            }
        }
        Ok((begin, false))
    }

    /// After a while in which nothing was to come.
    pub(crate) fn go_on(&mut self) {
        self.until = Instant::now() + self.patience;
        self.bytes = 0;
    }

    /// Takes some of what comes, for who is answered before all was read.
    pub(crate) async fn discard(mut self) {
        self.go_on();
        let all = async {
            let mut left = MOST_DISCARDED;
            while let Ok(Some(bytes)) = self.next().await {
                match left.checked_sub(bytes.len()) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        };
        let _ = timeout(LINGERING, all).await;
    }

    /// Sends the rest, and discards it once nobody takes it.
    pub(crate) async fn send(mut self, to: mpsc::Sender<Coming>) {
        loop {
            let (coming, is_last) = match self.next().await {
                Ok(Some(bytes)) => (Coming::Bytes(bytes), false),
                Ok(None) => (Coming::End, true),
                Err(cut) => (Coming::Cut(cut), true),
            };
            let before = Instant::now();
            if to.send(coming).await.is_err() {
                return self.discard().await;
            }
            if is_last {
                return;
            }
            // While the archive was waited for, nothing could come.
            self.until += before.elapsed();
        }
    }
}

/// What comes through the channel.
pub(crate) enum Coming {
    Bytes(Bytes),
    End,
    Cut(Cut),
}

/// A body, for a thread that reads it.
pub(crate) struct Source {
    part: Bytes,
    rest: Option<mpsc::Receiver<Coming>>,
    /// Why it ended before its end.
    pub(crate) cut: Option<Cut>,
}

impl Source {
    pub(crate) fn whole(bytes: Vec<u8>) -> Source {
        Source { part: bytes.into(), rest: None, cut: None }
    }

    /// With a beginning that is there, and what sends the rest.
    pub(crate) fn streamed(begin: Vec<u8>) -> (Source, mpsc::Sender<Coming>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Source { part: begin.into(), rest: Some(receiver), cut: None }, sender)
    }

    /// What is there of it already; all, if it is no stream.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.part
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        while self.part.is_empty() {
            let Some(rest) = &mut self.rest else { return Ok(0) };
            match rest.blocking_recv() {
                Some(Coming::Bytes(bytes)) => self.part = bytes,
                Some(Coming::End) => self.rest = None,
                // Who was to send has gone with the connection.
                last => {
                    let cut = if let Some(Coming::Cut(cut)) = last { cut } else { Cut::Broken };
                    self.cut = Some(cut);
                    return Err(Error::other("the request ended before its end"));
                }
            }
        }
        let count = into.len().min(self.part.len());
        into[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}
