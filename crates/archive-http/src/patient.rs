//! A socket whose peer may take its bytes slowly, but not as slowly as it likes: who takes nothing, or drops, holds a
//! connection, a thread and a snapshot of the archive.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// So many bytes must be taken within the patience, if they are there.
const LEAST: usize = 16 << 10;

pub(crate) struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// The end of the patience, while something waits to be taken.
    until: Option<Pin<Box<Sleep>>>,
    /// Bytes that were taken since it began.
    taken: usize,
}

impl Patient {
    pub(crate) fn new(stream: TcpStream, patience: Duration) -> Patient {
        Patient { stream, patience, until: None, taken: 0 }
    }

    /// What becomes of a write that has done this.
    fn waited(
        &mut self,
        wrote: Poll<Result<usize, Error>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, Error>> {
        match wrote {
            Poll::Ready(Ok(count)) => {
                self.taken += count;
                if self.taken >= LEAST {
                    self.until = None;
                }
                Poll::Ready(Ok(count))
            }
            Poll::Pending => {
                if self.until.is_none() {
                    self.taken = 0;
                }
                let patience = self.patience;
                let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                until.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
            }
            failed => failed,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.waited(wrote, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.waited(wrote, context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// All that there was is taken: whatever comes next has its own time.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.until = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
