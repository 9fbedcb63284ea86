//! What can be asked for, and what every request passes on its way in and out.

use crate::access::{Gate, harden};
use crate::endpoints::{generate as views, rows as asks};
use crate::formats::negotiate::Format;
use crate::limits::Limits;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::openapi;
use crate::problem::Problem;
use crate::registry::{Live, Shelf};
use crate::spool::Spool;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use sumout_data::layout::some_of;
use tokio::sync::Semaphore;

/// What all requests share.
#[derive(Clone)]
pub struct App {
    /// The models.
    pub shelf: Arc<Shelf>,
    /// Who may ask.
    pub gate: Arc<Gate>,
    /// How much.
    pub limits: Limits,
    /// What happened.
    pub metrics: Arc<Metrics>,
    /// Where it is told.
    pub log: Arc<Log>,
    /// Room for streams.
    pub streams: Arc<Semaphore>,
}

/// The rows of an answer, for the log.
#[derive(Clone, Copy)]
struct Rows(usize);

/// Rows that were answered.
pub struct Answered {
    body: Body,
    format: Format,
    rows: usize,
}

impl Answered {
    /// An answer that is complete.
    pub fn new(spool: Spool, format: Format, rows: usize) -> Result<Self, Problem> {
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
        response.extensions_mut().insert(Rows(self.rows));
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
    let wrong = |error: axum::extract::rejection::QueryRejection| {
        let text = error.body_text();
        let text = text
            .strip_prefix("Failed to deserialize query string: ")
            .unwrap_or(&text);
        Problem::bad(format!(
            "query: {}",
            expected(text, uri).unwrap_or_else(|| text.to_owned())
        ))
    };
    Query::try_from_uri(uri)
        .map(|Query(asked)| asked)
        .map_err(wrong)
}

/// What the parsers of numbers and truth values say, in words that name what was expected and what came.
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

/// The class of that name.
pub fn class_of(live: &Live, name: &str) -> Result<usize, Problem> {
    let found = live.classes.iter().position(|known| known == name);
    found.ok_or_else(|| {
        let name: String = name.chars().take(40).collect();
        Problem::bad(format!(
            "class: expected {}, got '{name}'",
            some_of(&live.classes)
        ))
    })
}

/// All routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route(
            "/",
            get(async || {
                page(
                    "text/html; charset=utf-8",
                    include_str!("../web/index.html"),
                )
            }),
        )
        .route(
            "/app.js",
            get(async || {
                page(
                    "text/javascript; charset=utf-8",
                    include_str!("../web/app.js"),
                )
            }),
        )
        .route(
            "/style.css",
            get(async || page("text/css; charset=utf-8", include_str!("../web/style.css"))),
        )
        .route(
            "/healthz",
            get(async || Document(json!({ "status": "ok" }))),
        )
        .route("/metrics", get(metrics))
        .route(
            "/openapi.json",
            get(async |State(app): State<App>| Document(openapi::document(&app.shelf.all()))),
        )
        .route("/v1/models", get(models))
        .route("/v1/models/{model}", get(model))
        .route("/v1/predict", post(asks::predict))
        .route("/v1/impute", post(asks::impute))
        .route("/v1/sample", get(views::sample))
        .route("/v1/explain", get(views::explain))
        .route("/v1/examples", get(views::examples))
        .fallback(async || {
            Problem::new(
                StatusCode::NOT_FOUND,
                "there is nothing here; /openapi.json says what there is",
            )
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            // The router adds the header Allow, but does not say here what is in it.
            let expected = if matches!(uri.path(), "/v1/predict" | "/v1/impute") {
                "POST"
            } else {
                "GET or HEAD"
            };
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("method: expected {expected}, got {method}"),
            )
        })
        .layer(middleware::from_fn_with_state(app.clone(), pass))
        .with_state(app)
}

fn page(kind: &'static str, text: &'static str) -> Response {
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        text,
    )
        .into_response()
}

/// One more request is under way, until this goes.
struct Active<'a>(&'a Metrics);

impl<'a> Active<'a> {
    fn new(metrics: &'a Metrics) -> (Self, i64) {
        let before = metrics.active.fetch_add(1, Relaxed);
        (Self(metrics), before)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Relaxed);
    }
}

/// Lets a request in or not; counts and logs it.
async fn pass(State(app): State<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (active, before) = Active::new(&app.metrics);
    let checked = app.gate.check(&method, request.uri(), request.headers());
    let mut response = match checked {
        Err(problem) => problem.into_response(),
        Ok(()) if before >= app.limits.requests() as i64 && path != "/healthz" => {
            let message = format!(
                "expected at most {} requests at once; try again in a moment",
                app.limits.requests()
            );
            Problem::new(StatusCode::TOO_MANY_REQUESTS, message).into_response()
        }
        Ok(()) => next.run(request).await,
    };
    drop(active);
    harden(response.headers_mut());
    let (status, time) = (response.status().as_u16(), start.elapsed());
    app.metrics.request(&path, status, time);
    let rows = response
        .extensions()
        .get::<Rows>()
        .map_or(0, |rows| rows.0 as u64);
    app.log
        .request(method.as_str(), &path, status, time.as_secs_f64(), rows);
    response
}

async fn metrics(State(app): State<App>) -> Response {
    let waiting: Vec<(String, usize)> = app
        .shelf
        .all()
        .iter()
        .map(|live| (live.name.clone(), live.engine.waiting()))
        .collect();
    let text = app.metrics.page(&waiting, app.log.dropped());
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// All models, without their trees.
async fn models(State(app): State<App>) -> Document {
    let short = |live: &Arc<Live>| {
        let mut about = live.about.clone();
        about.as_object_mut().map(|about| about.remove("trees"));
        about
    };
    Document(json!({ "models": app.shelf.all().iter().map(short).collect::<Vec<_>>() }))
}

/// One model, with them.
async fn model(State(app): State<App>, Path(name): Path<String>) -> Result<Document, Problem> {
    Ok(Document(app.shelf.find(Some(&name))?.about.clone()))
}
