//! What is answered, while it is being made: by a thread that writes, to a connection that takes it. What is short is
//! answered as a whole, with its status; of what is longer the status goes first, and if it fails then, the connection
//! ends before what was announced, so that nobody takes a part for the whole.

use crate::problem::Problem;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use hyper::{HeaderMap, Response, StatusCode};
use std::io::{Error, ErrorKind, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// Of a part.
const PART_BYTES: usize = 64 << 10;
/// Parts that wait for the connection.
const WAITING: usize = 2;

/// An answer that is being made.
pub(crate) struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    /// Of all of it, in bytes, if that is known.
    length: Option<u64>,
    buffer: Vec<u8>,
    /// Who waits for the head.
    head: Option<oneshot::Sender<Response<ReplyBody>>>,
    /// Who takes parts, once the head is gone.
    parts: Option<mpsc::Sender<Part>>,
}

pub(crate) enum Part {
    Bytes(Bytes),
    End,
}

/// What a connection takes.
pub(crate) enum ReplyBody {
    Whole(Option<Bytes>),
    Parts { parts: mpsc::Receiver<Part>, left: Option<u64> },
}

/// The answer ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
pub(crate) struct BrokenOff;

impl Reply {
    pub(crate) fn new(head: oneshot::Sender<Response<ReplyBody>>) -> Reply {
        Reply {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            length: None,
            buffer: Vec::new(),
            head: Some(head),
            parts: None,
        }
    }

    pub(crate) fn status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// A header; a value that cannot be one is left out.
    pub(crate) fn header(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
    }

    /// How many bytes it will have.
    pub(crate) fn length(&mut self, bytes: u64) {
        self.length = Some(bytes);
    }

    /// JSON as a whole.
    pub(crate) fn json(&mut self, value: &serde_json::Value) {
        self.header(CONTENT_TYPE, "application/json");
        self.buffer = (value.to_string() + "\n").into_bytes();
    }

    /// The end of it.
    pub(crate) fn finish(mut self) {
        match self.head.take() {
            Some(head) => {
                let buffer = std::mem::take(&mut self.buffer);
                // Of HEAD nothing was written, and its length is told.
                let body = match self.length {
                    Some(length) if buffer.is_empty() && length > 0 => {
                        let (_, parts) = mpsc::channel(1);
                        ReplyBody::Parts { parts, left: Some(length) }
                    }
                    _ => ReplyBody::Whole(Some(buffer.into())),
                };
                // Who does not wait for the answer has none.
                let _ = head.send(self.response(body));
            }
            None => {
                let _ = self.send_buffer();
                if let Some(parts) = &self.parts {
                    let _ = parts.blocking_send(Part::End);
                }
            }
        }
    }

    /// What it is instead, or its end before the end.
    pub(crate) fn fail(mut self, problem: &Problem) {
        if let Some(head) = self.head.take() {
            let _ = head.send(of_problem(problem));
        }
    }

    fn response(&mut self, body: ReplyBody) -> Response<ReplyBody> {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = std::mem::take(&mut self.headers);
        finish_headers(response.headers_mut());
        response
    }

    fn send_buffer(&mut self) -> Result<(), Error> {
        if let Some(head) = self.head.take() {
            let (sender, parts) = mpsc::channel(WAITING);
            self.parts = Some(sender);
            let body = ReplyBody::Parts { parts, left: self.length };
            head.send(self.response(body)).map_err(|_| gone())?;
        }
        let bytes = std::mem::take(&mut self.buffer);
        match &self.parts {
            Some(parts) if !bytes.is_empty() => {
                parts.blocking_send(Part::Bytes(bytes.into())).map_err(|_| gone())
            }
            _ => Ok(()),
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::BrokenPipe, "who asked is gone")
}

impl Write for Reply {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        if self.buffer.len() >= PART_BYTES {
            self.send_buffer()?;
        }
        let count = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// What is not much waits for more.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The answer to a request that failed.
pub(crate) fn of_problem(problem: &Problem) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Whole(Some(problem.body().into())));
    *response.status_mut() = problem.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(problem.headers.iter().cloned());
    finish_headers(headers);
    response
}

fn finish_headers(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            ReplyBody::Whole(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            ReplyBody::Parts { parts, left } => parts.poll_recv(context).map(|part| match part {
                Some(Part::Bytes(bytes)) => {
                    if let Some(left) = left {
                        *left = left.saturating_sub(bytes.len() as u64);
                    }
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Part::End) => None,
                None => Some(Err(BrokenOff)),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ReplyBody::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ReplyBody::Parts { left: Some(left), .. } => SizeHint::with_exact(*left),
            ReplyBody::Parts { left: None, .. } => SizeHint::default(),
        }
    }
}
