//! Connections: how many, how long they may be silent, and how they end.

use crate::limits::CONNECTIONS;
use anyhow::Result;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How long the head of a request may take, and a connection be idle.
const HEAD: Duration = Duration::from_secs(20);

/// How long what is under way may take when the service ends.
const LAST: Duration = Duration::from_secs(30);

/// Serves until `stop` is true, then finishes what is under way.
pub async fn serve(listener: TcpListener, router: Router, stop: fn() -> bool) -> Result<()> {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = stopped(stop) => break,
        };
        let Some((stream, permit)) = accepted else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            let _ = connection.await; // clients hang up as they like
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST, graceful.shutdown()).await;
    Ok(())
}

/// The next connection, when there is room for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(_) => {
            // A client that left at once, or no file descriptors: the latter takes time.
            tokio::time::sleep(Duration::from_millis(20)).await;
            None
        }
    }
}

/// Returns when the program is to end.
async fn stopped(stop: fn() -> bool) {
    while !stop() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
