//! Why a request cannot be answered: a status, and one sentence that says what and where.

use http::StatusCode;
use std::io;
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

/// A problem while an answer is written: too large, or a disk that is full.
pub fn unwritable(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Problem::large(error.to_string()),
        _ => Problem::ours(format!("the answer could not be kept: {error}")),
    }
}
