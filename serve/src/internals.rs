//! Parts of the service for tests. Not for anyone else: any version may change them.

use crate::listening::routes;
use crate::service::{ServeOptions, app};
use anyhow::Result;
use axum::Router;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::runtime::Runtime;

/// The whole service but its socket: bytes of a client in, bytes of the service out.
pub struct InMemory {
    router: Router,
    runtime: Runtime,
}

impl InMemory {
    /// Loads the models.
    pub fn new(options: &ServeOptions) -> Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Ok(Self {
            router: routes::router(app(options)?),
            runtime: runtime.enable_all().build()?,
        })
    }

    /// All that a client gets who sends these bytes and no more.
    pub fn answer(&self, sent: &[u8]) -> Vec<u8> {
        let wire = Wire {
            sent: sent.to_vec(),
            read: 0,
            answered: Arc::default(),
        };
        let answered = wire.answered.clone();
        let service = TowerToHyperService::new(self.router.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .half_close(true)
            .keep_alive(false);
        // Whether hyper calls it an error is not what a client sees.
        let _ = self
            .runtime
            .block_on(async { http.serve_connection(wire, service).await });
        let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut answered)
    }
}

/// A connection whose client has said all that it says.
struct Wire {
    sent: Vec<u8>,
    read: usize,
    answered: Arc<Mutex<Vec<u8>>>,
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.sent[self.read..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
