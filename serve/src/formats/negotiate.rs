//! Formats of rows by their media types: of a body, and the one that a client prefers.

use crate::problem::Problem;
use http::header::HeaderMap;
use http::{StatusCode, header};

/// How rows are written, in requests and in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// One document.
    Json,
    /// One row per line.
    Lines,
    /// With a line of names.
    Csv,
    /// A stream of record batches.
    Arrow,
}

impl BodyFormat {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    fn of(media_type: &str) -> Option<Self> {
        let essence = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => Some(Self::Json),
            "application/x-ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/ndjson" => Some(Self::Lines),
            "text/csv" => Some(Self::Csv),
            "application/vnd.apache.arrow.stream" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// The format of a body.
    pub fn of_body(headers: &HeaderMap) -> Result<Self, Problem> {
        let named = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("nothing");
        let expected = "expected application/json, application/x-ndjson, text/csv or application/vnd.apache.arrow.stream";
        let wrong = |message: String| Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        if headers.contains_key(header::CONTENT_ENCODING) {
            let message = "content-encoding: expected a body that is not compressed";
            return Err(wrong(message.into()));
        }
        Self::of(named).ok_or_else(|| wrong(format!("content-type: {expected}, got {named}")))
    }

    /// The format that a client prefers, never one of q=0. Of equals the one named first; `usual` if it takes anything.
    pub fn accepted(headers: &HeaderMap, usual: Self) -> Result<Self, Problem> {
        let Some(accept) = headers.get(header::ACCEPT) else {
            return Ok(usual);
        };
        let wishes: Vec<Wish> = accept
            .to_str()
            .unwrap_or_default()
            .split(',')
            .map(Wish::new)
            .collect();
        let liked = |format: Self| Some((liking(&wishes, format)?, format));
        let all = [usual, Self::Json, Self::Lines, Self::Csv, Self::Arrow]
            .into_iter()
            .filter_map(liked);
        let best = all.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let message = "accept: expected application/json, application/x-ndjson, text/csv or \
                       application/vnd.apache.arrow.stream";
        best.map(|(_, format)| format)
            .ok_or_else(|| Problem::new(StatusCode::NOT_ACCEPTABLE, message))
    }
}

/// How much a format is preferred, and how early it stands; none where it is not accepted.
fn liking(wishes: &[Wish], format: BodyFormat) -> Option<(f64, i32)> {
    let fitting = wishes.iter().zip(0..);
    let fitting = fitting.filter_map(|(wish, at)| Some((wish.fits(format)?, -at, wish.quality)));
    let (_, early, quality) = fitting.max_by_key(|&(closeness, early, _)| (closeness, early))?;
    (quality > 0.0).then_some((quality, early))
}

/// One part of an `Accept` header: some formats, and how much they are preferred.
struct Wish {
    media_type: String,
    quality: f64,
}

impl Wish {
    fn new(part: &str) -> Self {
        let mut words = part.split(';').map(|word| word.trim().to_ascii_lowercase());
        let media_type = words
            .next()
            .filter(|word| !word.is_empty())
            .unwrap_or("*/*".to_owned());
        let quality = words.find_map(|word| word.strip_prefix("q=")?.trim().parse().ok());
        Self {
            media_type,
            quality: quality.unwrap_or(1.0),
        }
    }

    /// How exactly it names a format, if it does: the most exact part counts.
    fn fits(&self, format: BodyFormat) -> Option<usize> {
        let whole = format.media_type();
        match self.media_type.as_str() {
            "*/*" => Some(0),
            some => match some.strip_suffix('*') {
                Some(start) => (start.ends_with('/') && whole.starts_with(start)).then_some(1),
                None => (BodyFormat::of(some) == Some(format)).then_some(2),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn formats_by_header() {
        let accepted = |accept: &'static str| {
            let headers = [(header::ACCEPT, HeaderValue::from_static(accept))]
                .into_iter()
                .collect();
            BodyFormat::accepted(&headers, BodyFormat::Csv)
                .map_err(|problem| problem.status.as_u16())
        };
        assert_eq!(accepted("application/json"), Ok(BodyFormat::Json));
        assert_eq!(
            accepted("text/html, application/vnd.apache.arrow.stream;q=0.5"),
            Ok(BodyFormat::Arrow)
        );
        assert_eq!(
            (accepted("*/*"), accepted("image/png")),
            (Ok(BodyFormat::Csv), Err(406))
        );
        assert_eq!(
            (accepted("application/*"), accepted("text/*")),
            (Ok(BodyFormat::Json), Ok(BodyFormat::Csv))
        );
        assert_eq!(
            (accepted(""), accepted("application/ndjson, */*")),
            (Ok(BodyFormat::Csv), Ok(BodyFormat::Lines))
        );
        for refused in [
            "text/csv;q=0",
            "application/json; Q=0.0",
            "*/*;q=0",
            "text/*, text/csv;q=0",
            "image/png;q=0",
        ] {
            assert_eq!(accepted(refused), Err(406), "{refused}");
        }
        assert_eq!(
            accepted("application/json;q=0, application/x-ndjson"),
            Ok(BodyFormat::Lines)
        );
        assert_eq!(accepted("text/csv;q=0, */*"), Ok(BodyFormat::Json));
        assert_eq!(
            accepted("*/*, text/*;q=0, application/json;q=0"),
            Ok(BodyFormat::Lines)
        );
        assert_eq!(accepted("*/*;q=0, text/csv"), Ok(BodyFormat::Csv));
        assert_eq!(
            accepted("application/json, text/plain, */*"),
            Ok(BodyFormat::Json)
        );
        assert_eq!(
            accepted("application/json;q=0.1, application/vnd.apache.arrow.stream;q=0.9"),
            Ok(BodyFormat::Arrow)
        );
        assert_eq!(
            BodyFormat::of_body(&HeaderMap::new())
                .unwrap_err()
                .status
                .as_u16(),
            415
        );
    }
}
