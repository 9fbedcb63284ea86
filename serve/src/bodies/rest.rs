//! What is left of a body when its request has been answered. It is read without being used: many clients read an
//! answer only after they have sent everything, and a connection whose body was not read to its end takes no more requests.

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::Frame;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes that are read at most.
const MAX_BYTES: usize = 64 << 20;

/// How long they may take.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A body that stays here when the one who was to read it has stopped.
#[derive(Clone)]
pub struct Rest(Arc<Mutex<Body>>);

impl Rest {
    /// All of a body.
    pub fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// For one who reads it.
    pub fn body(&self) -> Body {
        Body::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is left, and says whether its end was reached.
    pub async fn drain(mut self) -> bool {
        if self.is_end_stream() {
            return true;
        }
        let reading = async {
            let mut total = 0;
            while let Some(frame) = self.frame().await {
                total += frame.ok()?.into_data().map_or(0, |data| data.len());
                if total > MAX_BYTES {
                    return None;
                }
            }
            Some(())
        };
        let read = tokio::time::timeout(MAX_TIME, reading).await;
        matches!(read, Ok(Some(())))
    }
}

impl HttpBody for Rest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(rest: Rest) -> bool {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(rest.drain())
    }

    #[test]
    fn what_a_reader_leaves_is_read() {
        let rest = Rest::new(Body::from("some bytes"));
        drop(rest.body());
        assert!(!rest.is_end_stream() && drained(rest.clone()));
        assert!(rest.is_end_stream() && drained(rest));
    }

    #[test]
    fn a_body_that_is_too_long_is_given_up() {
        let long = Body::from(vec![0; MAX_BYTES + 1]);
        assert!(!drained(Rest::new(long)));
    }
}
