//! A connection that fails when its client takes no bytes for a while.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A connection whose writes may wait for a limited time.
pub struct TimedStream {
    stream: TcpStream,
    write_timeout: Duration,
    /// The timer of a write that waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    /// `stream`, which fails once a write has waited for `write_timeout`.
    pub fn new(stream: TcpStream, write_timeout: Duration) -> Self {
        Self {
            stream,
            write_timeout,
            timer: None,
        }
    }

    fn limit<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        if let Poll::Ready(result) = write(Pin::new(&mut self.stream), context) {
            self.timer = None;
            return Poll::Ready(result);
        }
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(Error::new(
            ErrorKind::TimedOut,
            "the client takes no bytes",
        )))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.limit(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.limit(context, |stream, context| {
            stream.poll_write_vectored(context, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.limit(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.limit(context, |stream, context| stream.poll_shutdown(context))
    }
}
