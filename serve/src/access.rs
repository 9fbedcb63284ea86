//! Who may use the service: the host name, the origin and the token of a request; and the headers that every answer carries.

use crate::page::FILES;
use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::net::IpAddr;

/// Which requests are let through.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whether only this machine can reach the service. Then a page of another site must not get here through the
    /// browser of someone on this machine, not even by a name that points to 127.0.0.1.
    pub loopback: bool,
    /// Other host names of the service.
    pub hosts: Vec<String>,
    /// The bearer token that clients must send.
    pub token: Option<String>,
}

/// Whether a path needs no token: the health check, and the page, which asks for one.
fn is_open(path: &str) -> bool {
    path == "/healthz" || FILES.iter().any(|file| file.path == path)
}

impl Access {
    /// The problem of a request that may not pass.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let forbidden = |what: String| Err(Problem::new(StatusCode::FORBIDDEN, what));
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let host = host
            .or(uri.authority().map(|authority| authority.as_str()))
            .unwrap_or_default();
        if self.loopback && !self.knows(host) {
            let host: String = host.chars().take(60).collect();
            return forbidden(format!(
                "host: expected localhost or a name given by --allow-host, got '{host}'"
            ));
        }
        if let Some(origin) = headers.get(header::ORIGIN)
            && method != Method::GET
            && method != Method::HEAD
        {
            let origin = origin.to_str().unwrap_or_default();
            let site = origin
                .strip_prefix("http://")
                .or(origin.strip_prefix("https://"));
            if site != Some(host) {
                let origin: String = origin.chars().take(60).collect();
                return forbidden(format!(
                    "origin: expected a page of this service, got '{origin}'"
                ));
            }
        }
        match &self.token {
            Some(token) if !is_open(uri.path()) && !is_authorised(headers, token) => {
                let message = "authorization: expected the bearer token of this service";
                Err(Problem::new(StatusCode::UNAUTHORIZED, message))
            }
            _ => Ok(()),
        }
    }

    /// Whether a Host header names this machine, with any port.
    fn knows(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let local = name.eq_ignore_ascii_case("localhost")
            || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        local
            || self
                .hosts
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn is_authorised(headers: &HeaderMap, token: &str) -> bool {
    let given = headers
        .get(header::AUTHORIZATION)
        .map_or(&[][..], HeaderValue::as_bytes);
    let (scheme, given) = given.split_at_checked(7).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"bearer ") & same(given.trim_ascii(), token.as_bytes())
}

/// Compares in a time that does not depend on how much is right.
fn same(given: &[u8], token: &[u8]) -> bool {
    let mut differs = given.len() ^ token.len();
    for (i, byte) in given.iter().enumerate() {
        differs |= usize::from(byte ^ token[i % token.len()]);
    }
    std::hint::black_box(differs) == 0
}

/// Headers of every answer: nothing from elsewhere, nothing inside other pages, nothing guessed.
pub fn harden(headers: &mut HeaderMap) {
    const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(access: &Access, method: &Method, path: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        access
            .check(method, &path.parse().unwrap(), &headers)
            .map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_machine() {
        let access = Access {
            loopback: true,
            hosts: vec!["box.lan".into()],
            token: None,
        };
        for (host, expected) in [
            ("localhost:7878", 200),
            ("127.0.0.1", 200),
            ("127.1.2.3:1", 200),
            ("[::1]:7878", 200),
            ("box.lan:80", 200),
            ("evil.example", 403),
            ("localhost.evil.example:7878", 403),
            ("10.0.0.1", 403),
            ("", 403),
        ] {
            assert_eq!(
                status(&access, &Method::GET, "/", &[(header::HOST, host)]),
                expected,
                "{host}"
            );
        }
        let open = Access {
            loopback: false,
            ..access
        };
        assert_eq!(
            status(&open, &Method::GET, "/", &[(header::HOST, "anything")]),
            200
        );
    }

    #[test]
    fn only_pages_of_this_service() {
        let access = Access {
            loopback: true,
            hosts: vec![],
            token: None,
        };
        let post = |origin| {
            let headers = [(header::HOST, "localhost:7878"), (header::ORIGIN, origin)];
            status(&access, &Method::POST, "/v1/predict", &headers)
        };
        assert_eq!(
            (
                post("http://localhost:7878"),
                post("http://evil.example"),
                post("null")
            ),
            (200, 403, 403)
        );
        assert_eq!(
            post("http://localhost:7879"),
            403,
            "another port is another site"
        );
        let headers = [
            (header::HOST, "localhost:7878"),
            (header::ORIGIN, "http://evil.example"),
        ];
        for harmless in [Method::GET, Method::HEAD] {
            let read = status(&access, &harmless, "/v1/models", &headers);
            assert_eq!(
                read, 200,
                "the browser keeps the answer from the other page"
            );
        }
    }

    #[test]
    fn a_token_is_asked_for() {
        let access = Access {
            loopback: false,
            hosts: vec![],
            token: Some("secret".into()),
        };
        let get = |path, token| {
            status(
                &access,
                &Method::GET,
                path,
                &[(header::AUTHORIZATION, token)],
            )
        };
        assert_eq!(
            (
                get("/v1/models", "Bearer secret"),
                get("/v1/models", "bearer  secret ")
            ),
            (200, 200)
        );
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer secre",
            "Bearer secretsecret",
            "Bearer Secret",
            "Bearer SEcret", // two bytes that differ in the same bit
            "Basic secret",
        ] {
            assert_eq!(get("/v1/models", wrong), 401, "{wrong}");
        }
        assert_eq!(
            (get("/healthz", ""), get("/", ""), get("/metrics", "")),
            (200, 200, 401)
        );
    }

    #[test]
    fn answers_stay_where_they_belong() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=9"));
        harden(&mut headers);
        assert_eq!(headers[header::CACHE_CONTROL], "max-age=9", "it was given");
        for (name, part) in [
            ("content-security-policy", "frame-ancestors 'none'"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert!(headers[name].to_str().unwrap().contains(part), "{name}");
        }
    }
}
