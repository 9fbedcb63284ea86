//! Requests of the service, through all of it but the socket. Whatever comes in, an answer goes out that is not an error
//! of the service, and one that refuses says why.

use crate::models::pets;
use std::sync::{LazyLock, Mutex};
use sumout::Model;
use sumout::model::About;
use sumout_data::model_files;
use sumout_serve::internals::InMemory;
use sumout_serve::{Limits, LogLevel, ServeOptions};

/// One service for all; a request at a time, so that none is refused because of others.
static SERVICE: LazyLock<Mutex<InMemory>> = LazyLock::new(|| Mutex::new(started(pets())));

/// One with a model whose columns have no names, which takes rows as lists.
static UNNAMED: LazyLock<Mutex<InMemory>> = LazyLock::new(|| {
    let mut model = pets();
    model.about = About::default();
    Mutex::new(started(model))
});

/// The service with a model of pets, which it has read when this returns.
fn started(model: Model) -> InMemory {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pets.sumout");
    model_files::save(&path, &model.to_bytes().expect("bytes")).expect("a file");
    service(path.display().to_string())
}

fn service(model: String) -> InMemory {
    let options = ServeOptions {
        models: vec![model],
        listen: ([127, 0, 0, 1], 0).into(),
        reload: false,
        examples: None,
        token: None,
        allow_host: vec![],
        log: LogLevel::None,
        limits: Limits {
            max_body: 1,
            max_stream: 4,
            max_rows: 1000,
            max_requests: 16,
            max_seconds: 5,
            max_waiting: 8,
        },
    };
    InMemory::new(&options).expect("a service")
}

fn answer(service: &Mutex<InMemory>, sent: &[u8]) -> Vec<u8> {
    let service = service
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    service.answer(sent)
}

/// The answer is none of ours to be sorry for; the service lives on.
fn check(service: &Mutex<InMemory>, sent: &[u8]) {
    let answered = answer(service, sent);
    let text = String::from_utf8_lossy(&answered);
    if text.is_empty() {
        return; // not a request: the connection is closed
    }
    let status = text.get(9..12).unwrap_or_default();
    let known = text.starts_with("HTTP/1.") && !status.starts_with('5');
    assert!(known, "{text}");
    if status.starts_with('4') && !sent.starts_with(b"HEAD") && text.contains("application/json") {
        assert!(text.contains("{\"error\":\""), "{text}");
    }
}

/// A request with its head; if that names no length, it gets one.
pub fn http(bytes: &[u8]) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return check(&SERVICE, bytes);
    };
    let (head, body) = (&bytes[..end], &bytes[end + 4..]);
    let lower = head.to_ascii_lowercase();
    let has = |name: &[u8]| lower.windows(name.len()).any(|part| part == name);
    if has(b"content-length") || has(b"transfer-encoding") || body.is_empty() {
        return check(&SERVICE, bytes);
    }
    let length = format!("\r\ncontent-length: {}\r\n\r\n", body.len());
    check(&SERVICE, &[head, length.as_bytes(), body].concat());
}

/// Every route and every format.
pub fn http_seeds() -> Vec<Vec<u8>> {
    let post = |path: &str, kind: &str, body: &str| {
        let host = "host: localhost\r\naccept: */*";
        format!("POST {path} HTTP/1.1\r\n{host}\r\ncontent-type: {kind}\r\n\r\n{body}")
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let rows = "{\"rows\": [[1.5, \"m\", null, 2], {\"age\": 3, \"sex\": \"f\"}, {}]}";
    let lines = "{\"age\":1}\n[2,\"f\",1,0]\n";
    let csv = "sex,age,coin,kind\n,1.50,0,\nf,2,1,1\n";
    let mut seeds: Vec<String> = [
        "/",
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/v1/models",
        "/v1/models/pets",
        "/v1/examples?count=2",
        "/v1/sample?count=3&class=yes&seed=7",
        "/v1/explain?level=0&node=0&count=2",
    ]
    .map(get)
    .to_vec();
    for (kind, body) in [
        ("application/json", rows),
        ("application/x-ndjson", lines),
        ("text/csv", csv),
    ] {
        seeds.push(post("/v1/predict?model=pets&absent=missing", kind, body));
        seeds.push(post(
            "/v1/impute?how=sample&draws=2&seed=1&classes=true",
            kind,
            body,
        ));
        seeds.push(post("/v1/impute?how=median&quantiles=0.1,0.9", kind, body));
    }
    let wrong = [
        "{}",
        "{\"rows\": [{\"age\": 1, \"age\": 2}]}",
        "{\"rows\": [{\"agee\": 1}]}",
    ];
    let many = format!("{{\"rows\": [{}{{}}]}}", "{},".repeat(1000));
    for body in wrong.into_iter().chain([many.as_str()]) {
        seeds.push(post("/v1/predict?model=pets", "application/json", body));
    }
    seeds.into_iter().map(String::into_bytes).collect()
}

/// The body of a request in Arrow's format for streams. Where it speaks of lists, columns have no names.
pub fn arrow(bytes: &[u8]) {
    let length = bytes.len();
    let kind = "application/vnd.apache.arrow.stream";
    let head = format!(
        "POST /v1/impute?absent=missing HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n\
         accept: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    let has_lists = bytes.windows(5).any(|five| five == b"lists");
    let service = if has_lists { &UNNAMED } else { &SERVICE };
    check(service, &[head.as_bytes(), bytes].concat());
}

/// Streams of pyarrow (`seeds/write.py`): every type that is read.
const STREAMS: [&[u8]; 9] = [
    include_bytes!("../seeds/signed.arrow"),
    include_bytes!("../seeds/unsigned.arrow"),
    include_bytes!("../seeds/wide.arrow"),
    include_bytes!("../seeds/half.arrow"),
    include_bytes!("../seeds/dictionaries.arrow"),
    include_bytes!("../seeds/view.arrow"),
    include_bytes!("../seeds/lists.arrow"),
    include_bytes!("../seeds/whole_lists.arrow"),
    include_bytes!("../seeds/others.arrow"),
];

/// Those, and streams that the service itself writes: rows drawn from the model, and completed rows.
pub fn arrow_seeds() -> Vec<Vec<u8>> {
    let accept = "accept: application/vnd.apache.arrow.stream\r\nconnection: close";
    let body = "age,sex,coin,kind\n1.5,,0,1\n,f,,2\n";
    let length = body.len();
    let asked = [
        format!(
            "POST /v1/impute HTTP/1.1\r\nhost: localhost\r\n{accept}\r\ncontent-type: text/csv\r\n\
             content-length: {length}\r\n\r\n{body}"
        ),
        format!("GET /v1/sample?count=2 HTTP/1.1\r\nhost: localhost\r\n{accept}\r\n\r\n"),
    ];
    let written = asked
        .iter()
        .map(|asked| body_of(&answer(&SERVICE, asked.as_bytes())));
    written.chain(STREAMS.map(<[u8]>::to_vec)).collect()
}

/// What follows the head, without the sizes of chunks if it comes in chunks.
fn body_of(answered: &[u8]) -> Vec<u8> {
    let end = answered.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.expect("a head");
    let head = String::from_utf8_lossy(&answered[..end]).to_ascii_lowercase();
    assert!(head.contains(" 200 "), "{head}");
    let mut rest = &answered[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return rest.to_vec();
    }
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..line]);
        let size = usize::from_str_radix(&size, 16).expect("a size");
        body.extend(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 4 + size..];
    }
    body
}
