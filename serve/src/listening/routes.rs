//! All routes, and what every request passes on its way in and out.

use crate::access::harden;
use crate::bodies::rest::Rest;
use crate::endpoints::app::{App, Document, RowCount};
use crate::endpoints::openapi;
use crate::endpoints::{generate, rows};
use crate::models::registry::ServedModel;
use crate::monitoring::metrics::Metrics;
use crate::page::FILES;
use crate::problem::Problem;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// All routes.
pub fn router(app: App) -> Router {
    let page = FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(async || *file))
    });
    page.route(
        "/healthz",
        get(async || Document(json!({ "status": "ok" }))),
    )
    .route("/metrics", get(metrics))
    .route(
        "/openapi.json",
        get(async |State(app): State<App>| Document(openapi::document(&app.registry.all()))),
    )
    .route("/v1/models", get(models))
    .route("/v1/models/{model}", get(model))
    .route("/v1/predict", post(rows::predict))
    .route("/v1/impute", post(rows::impute))
    .route("/v1/sample", get(generate::sample))
    .route("/v1/explain", get(generate::explain))
    .route("/v1/examples", get(generate::examples))
    .fallback(not_found)
    .method_not_allowed_fallback(wrong_method)
    .layer(middleware::from_fn_with_state(app.clone(), pass))
    .with_state(app)
}

async fn not_found() -> Problem {
    let message = "there is nothing here; /openapi.json says what there is";
    Problem::new(StatusCode::NOT_FOUND, message)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    // The router adds the header Allow, but does not say here what is in it.
    let takes_rows = matches!(uri.path(), "/v1/predict" | "/v1/impute");
    let expected = if takes_rows { "POST" } else { "GET or HEAD" };
    let message = format!("method: expected {expected}, got {method}");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, message)
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

/// Checks, counts and logs a request.
async fn pass(State(app): State<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (head, body) = request.into_parts();
    let rest = Rest::new(body);
    let request = Request::from_parts(head, rest.body());
    let (active, before) = Active::new(&app.metrics);
    let checked = app.access.check(&method, request.uri(), request.headers());
    let mut response = match checked {
        Err(problem) => problem.into_response(),
        Ok(())
            if before >= app.limits.requests() as i64
                && path != "/healthz"
                && !app.arrivals.make_room(None) =>
        {
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
        .get::<RowCount>()
        .map_or(0, |rows| rows.0 as u64);
    app.log
        .request(method.as_str(), &path, status, time.as_secs_f64(), rows);
    // A client that was too slow has had its time.
    if response.status() == StatusCode::REQUEST_TIMEOUT || !rest.drain().await {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn metrics(State(app): State<App>) -> Response {
    let waiting: Vec<(String, usize)> = app
        .registry
        .all()
        .iter()
        .map(|live| (live.name.clone(), live.worker.waiting()))
        .collect();
    let text = app.metrics.page(&waiting, app.log.dropped());
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// All models, without their trees.
async fn models(State(app): State<App>) -> Document {
    let short = |live: &Arc<ServedModel>| {
        let mut about = live.about.clone();
        about.as_object_mut().map(|about| about.remove("trees"));
        about
    };
    Document(json!({ "models": app.registry.all().iter().map(short).collect::<Vec<_>>() }))
}

/// One model, with them.
async fn model(State(app): State<App>, Path(name): Path<String>) -> Result<Document, Problem> {
    Ok(Document(app.registry.find(Some(&name))?.about.clone()))
}
