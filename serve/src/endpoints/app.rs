//! What endpoints share: the state of the service, the forms of an answer, and how a query is read.

use crate::access::Access;
use crate::bodies::arrivals::{Arrivals, BodyKind};
use crate::bodies::spool::Spool;
use crate::formats::negotiate::BodyFormat;
use crate::limits::{Limits, STREAMS};
use crate::models::registry::Registry;
use crate::monitoring::log::Log;
use crate::monitoring::metrics::Metrics;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::Query;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all requests share.
#[derive(Clone)]
pub struct App {
    /// The models.
    pub registry: Arc<Registry>,
    /// Who may use them.
    pub access: Arc<Access>,
    /// How much.
    pub limits: Limits,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Where requests are logged.
    pub log: Arc<Log>,
    /// Permits for streams.
    pub streams: Arc<Semaphore>,
    /// Bodies that are arriving.
    pub arrivals: Arc<Arrivals>,
}

impl App {
    /// A place for a stream; a slow one gives way.
    pub async fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        const HANDOVER: Duration = Duration::from_secs(2);
        if let Ok(permit) = self.streams.clone().try_acquire_owned() {
            return Ok(permit);
        }
        if self.arrivals.make_room(Some(BodyKind::Stream)) {
            let freed = tokio::time::timeout(HANDOVER, self.streams.clone().acquire_owned()).await;
            if let Ok(Ok(permit)) = freed {
                return Ok(permit);
            }
        }
        let message =
            format!("expected at most {STREAMS} large requests at once; try again in a moment");
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, message))
    }
}

/// How many rows an answer has, for the log.
#[derive(Clone, Copy)]
pub struct RowCount(pub usize);

/// Rows that were answered.
pub struct Answered {
    body: Body,
    format: BodyFormat,
    rows: usize,
}

impl Answered {
    /// An answer that is complete.
    pub fn new(spool: Spool, format: BodyFormat, rows: usize) -> Result<Self, Problem> {
        let body = spool
            .into_body()
            .map_err(|error| Problem::ours(format!("the answer was lost: {error}")))?;
        Ok(Self { body, format, rows })
    }
}

impl IntoResponse for Answered {
    fn into_response(self) -> Response {
        let mut response = (
            [(header::CONTENT_TYPE, self.format.media_type())],
            self.body,
        )
            .into_response();
        response.extensions_mut().insert(RowCount(self.rows));
        response
    }
}

/// A JSON document.
pub struct Document(pub Value);

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        (
            [(header::CONTENT_TYPE, "application/json")],
            self.0.to_string(),
        )
            .into_response()
    }
}

/// The query of a request.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    match Query::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(error) => Err(bad_query(&error.body_text(), uri)),
    }
}

/// What is wrong with a query, from what the parser says of it.
fn bad_query(text: &str, uri: &Uri) -> Problem {
    let text = text
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(text);
    let message = expected(text, uri).unwrap_or_else(|| text.to_owned());
    Problem::bad(format!("query: {message}"))
}

/// What the parsers of numbers and truth values say, as "expected X, got Y".
fn expected(text: &str, uri: &Uri) -> Option<String> {
    let (name, what) = text.split_once(": ")?;
    let expected = match what {
        "provided string was not `true` or `false`" => "true or false",
        "number too large to fit in target type" => "a smaller whole number",
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "a whole number"
        }
        _ => return None,
    };
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    let got: String = pairs
        .iter()
        .find(|(key, _)| key == name)?
        .1
        .chars()
        .take(40)
        .collect();
    Some(format!("{name}: expected {expected}, got '{got}'"))
}
