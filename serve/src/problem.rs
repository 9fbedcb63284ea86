//! Why a request cannot be answered: a status, and one sentence that says what and where.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sumout_data::ErrorKind;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// 4xx for errors of the client, 503 for too many requests at once, 500 for errors of the service.
    pub status: StatusCode,
    /// What was expected and what came.
    pub message: String,
}

impl Problem {
    /// A problem of this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// A request that cannot be understood.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A request larger than the limits.
    pub fn large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// More requests than can be computed now.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Something that should not have happened.
    pub fn ours(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl From<sumout::Error> for Problem {
    fn from(error: sumout::Error) -> Self {
        Self::bad(error.to_string())
    }
}

/// Bad rows are the client's error; rows that are too long are beyond a limit.
impl From<sumout_data::Error> for Problem {
    fn from(error: sumout_data::Error) -> Self {
        match error.kind() {
            ErrorKind::RowTooLong => Self::large(error.to_string()),
            _ => Self::bad(error.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.message }).to_string();
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            body,
        )
            .into_response();
        let headers = response.headers_mut();
        if matches!(
            self.status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        ) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The rest of the body need not be read.
        if matches!(
            self.status,
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
        ) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
