//! `sumout serve` as clients meet it: over the wire, with a model trained by the program itself.

mod program;

use program::{Folder, flowers};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A row of a stream.
const ROW: &str = "1.25,2.5,red\n";

/// A model of flowers, trained once.
fn flower_model() -> &'static [u8] {
    static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
    MODEL.get_or_init(|| {
        let folder = Folder::new();
        folder.write("flowers.csv", &flowers(120));
        let run = folder
            .run("train --data flowers.csv --target species --out flowers.sumout --steps 200");
        assert_eq!(run.code, 0, "{}", run.stderr);
        fs::read(folder.path("flowers.sumout")).unwrap()
    })
}

/// The service, ended with this value.
struct Service {
    folder: Folder,
    child: Child,
    address: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A status, headers in small letters, and a body.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    fn error(&self) -> String {
        format!("{} {}", self.status, self.json()["error"].as_str().unwrap())
    }
}

impl Service {
    fn start(options: &str) -> Self {
        Self::with_token(options, None)
    }

    fn with_token(options: &str, token: Option<&str>) -> Self {
        let folder = Folder::new();
        fs::write(folder.path("flowers.sumout"), flower_model()).unwrap();
        Self::of_folder(folder, options, token)
    }

    /// Serves `flowers.sumout` of a folder.
    fn of_folder(folder: Folder, options: &str, token: Option<&str>) -> Self {
        let (child, address) = Self::launch(&folder, options, token);
        Self {
            folder,
            child,
            address,
        }
    }

    /// Kills the program, with whatever it is doing, and starts it again.
    fn kill_and_restart(&mut self, options: &str) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.address) = Self::launch(&self.folder, options, None);
    }

    /// The program and its address.
    fn launch(folder: &Folder, options: &str, token: Option<&str>) -> (Child, String) {
        let mut command = folder.command(&format!(
            "serve flowers.sumout --listen 127.0.0.1:0 --log none {options}"
        ));
        if let Some(token) = token {
            command.env("SUMOUT_TOKEN", token);
        }
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap_or_default();
        assert!(!address.is_empty(), "{line}");
        (child, address.to_owned())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let length = body.len();
        let host = if headers.to_lowercase().contains("host:") {
            ""
        } else {
            "host: localhost\r\n"
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.write_all(body); // a refused body may not be read to its end
        read(stream)
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", b"")
    }

    fn post(&self, path: &str, kind: &str, body: impl AsRef<[u8]>) -> Reply {
        self.send(
            "POST",
            path,
            &format!("content-type: {kind}\r\n"),
            body.as_ref(),
        )
    }

    fn rows(&self, path: &str, rows: Value) -> Reply {
        self.post(path, JSON, json!({ "rows": rows }).to_string())
    }
}

const JSON: &str = "application/json";

/// Waits for something that may take a moment on a busy machine.
fn eventually(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    Reply {
        status,
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

#[test]
fn categories_have_probabilities() {
    let service = Service::start("");
    let rows = json!([[2.5, null, null], [2.5, 3, "red"]]);
    let path = "/v1/impute?probabilities=true";
    let answer = service.rows(path, rows).json();
    let row = &answer["rows"][0];
    let shares: Vec<f64> = serde_json::from_value(row["probabilities"][2].clone()).unwrap();
    assert_eq!(shares.len(), 3, "blue, red, white");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{row}");
    let best = (0..3).max_by(|&a, &b| shares[a].total_cmp(&shares[b]));
    let names = ["blue", "red", "white"];
    assert_eq!(row["values"][2], json!(best.map(|best| names[best])));
    let observed = json!([null, null, [0.0, 1.0, 0.0]]);
    assert_eq!(answer["rows"][1]["probabilities"], observed);
    let csv = service.post(path, "text/csv", "width,length,colour\n2.5,,\n2.5,3,red\n");
    let lines: Vec<Vec<&str>> = csv
        .body
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        lines[0][3..],
        ["p_colour=blue", "p_colour=red", "p_colour=white"]
    );
    let written: Vec<f64> = lines[1][3..].iter().map(|p| p.parse().unwrap()).collect();
    assert!(
        written
            .iter()
            .zip(&shares)
            .all(|(a, b)| (a - b).abs() < 1e-6),
        "{}",
        csv.body
    );
    assert_eq!(lines[2], ["2.5", "3", "red", "0", "1", "0"]);
}

#[test]
fn answers_are_those_of_the_command_line_in_every_format() {
    let service = Service::start("");
    let csv = "width,length,colour,note\n2.5,,blue,a\n,,,\"b,c\"\n1.5,3,red,\n";
    service.folder.write("new.csv", csv);
    let run = service.folder.run("predict flowers.sumout --data new.csv");
    let answer = service.post("/v1/predict", "text/csv", csv);
    assert_eq!((answer.status, answer.body.lines().count()), (200, 4));
    // The command line may put other columns before them.
    assert!(
        run.stdout
            .lines()
            .zip(answer.body.lines())
            .all(|(ours, theirs)| ours.ends_with(theirs)),
        "{}",
        answer.body
    );
    let csv_answer = answer.body;
    let rows = json!([[2.5, null, "blue"], {}, { "colour": "red", "length": 3, "width": 1.5 }]);
    let answer = service.rows("/v1/predict", rows.clone()).json();
    for (line, row) in csv_answer
        .lines()
        .skip(1)
        .zip(answer["rows"].as_array().unwrap())
    {
        let shown: Vec<f64> = line
            .split(',')
            .skip(1)
            .map(|cell| cell.parse().unwrap())
            .collect();
        assert_eq!(line.split(',').next(), row["class"].as_str());
        assert_eq!(json!(shown[..3]), row["posterior"]);
        assert_eq!(json!(shown[3]), row["log_likelihood"]);
    }
    let lines: String = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{row}\n"))
        .collect();
    let by_line = service.post("/v1/predict", "application/x-ndjson", lines);
    let by_line: Vec<Value> = by_line
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(json!(by_line), answer["rows"]);
    let accept = "content-type: text/csv\r\naccept: application/json\r\n";
    assert_eq!(
        service
            .send("POST", "/v1/predict", accept, csv.as_bytes())
            .json(),
        answer
    );

    let filled = service.post("/v1/impute", "text/csv", csv).body;
    let ours = service.folder.run("impute flowers.sumout --data new.csv");
    assert_eq!(filled, ours.stdout, "to the last digit");
    let median = service.post("/v1/impute?how=median", "text/csv", csv).body;
    let ours = service
        .folder
        .run("impute flowers.sumout --data new.csv --how median");
    assert_eq!(median, ours.stdout);
    assert_ne!(median, filled);
    let short = "colour,note\nblue,a\n,b\n";
    let refused = service.post("/v1/impute", "text/csv", short).error();
    assert!(
        refused.starts_with("400 line 1: expected a column 'width'"),
        "{refused}"
    );
    let filled = service
        .post("/v1/impute?absent=missing", "text/csv", short)
        .body;
    service.folder.write("short.csv", short);
    let ours = "impute flowers.sumout --data short.csv --absent missing";
    assert_eq!(filled, service.folder.run(ours).stdout);
    assert!(
        filled.starts_with("colour,note,width,length\nblue,a,"),
        "{filled}"
    );
    let answer = service
        .post("/v1/predict?absent=missing", "text/csv", short)
        .body;
    let same = service
        .rows("/v1/predict", json!([{ "colour": "blue" }, {}]))
        .json();
    let log = answer
        .lines()
        .nth(1)
        .and_then(|line| line.split(',').next_back());
    assert_eq!(log.unwrap(), same["rows"][0]["log_likelihood"].to_string());

    let filled = service
        .post("/v1/impute?classes=true", "text/csv", csv)
        .body;
    let mut lines = filled.lines();
    assert_eq!(
        lines.next(),
        Some("width,length,colour,note,class,p_iris,p_rose,p_tulip,log_likelihood")
    );
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("2.5,") && first.contains(",blue,a,"),
        "{first}"
    );
    let imputed = service
        .rows("/v1/impute?deviation=true&draws=2&seed=7", rows)
        .json();
    let cell = imputed["rows"][0]["values"][1].as_f64().unwrap();
    assert_eq!(first.split(',').nth(1), Some(&*(cell as f32).to_string()));
    let row = &imputed["rows"][0];
    assert_eq!(
        (&row["deviation"][0], &row["values"][2]),
        (&json!(0.0), &json!("blue"))
    );
    assert!(row["deviation"][1].as_f64().unwrap() > 0.0);
    assert_eq!(row.get("warning"), None);
    assert_eq!(
        imputed["rows"][1]["deviation"][2],
        Value::Null,
        "a category has none"
    );
    let far = service
        .rows("/v1/predict", json!([[1e30, null, null]]))
        .json();
    assert!(
        far["rows"][0]["warning"]
            .as_str()
            .unwrap()
            .starts_with("too unlike the training data")
    );
    assert!(row["draws"][0][1] != row["draws"][1][1] && row["draws"][0][0] == json!(2.5));
}

#[test]
fn samples_neurons_and_models() {
    let service = Service::start("");
    let about = service.get("/v1/models").json();
    assert_eq!(
        (&about["models"][0]["name"], &about["models"][0]["target"]),
        (&json!("flowers"), &json!("species"))
    );
    assert_eq!(
        about["models"][0]["columns"][2]["categories"],
        json!(["blue", "red", "white"])
    );
    let levels = service.get("/v1/models/flowers").json()["trees"][0]
        .as_array()
        .unwrap()
        .len();
    let samples = service.get("/v1/sample?class=rose&count=3&seed=5").json();
    assert_eq!(samples["rows"].as_array().unwrap().len(), 3);
    assert!(
        samples["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["class"] == "rose" && row["values"][0].is_number())
    );
    assert_eq!(
        service.get("/v1/sample?class=rose&count=3&seed=5").json(),
        samples,
        "the same seed draws the same"
    );
    let neurons = service
        .get(&format!(
            "/v1/explain?level={}&node=0&channels=2&count=3",
            levels - 1
        ))
        .json();
    let channels: Vec<&Value> = neurons["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["channel"])
        .collect();
    assert!(
        channels.len() == 6 && channels[0] == channels[2] && channels[0] != channels[3],
        "{channels:?}"
    );
    let csv = service.send("GET", "/v1/sample?count=1", "accept: text/csv\r\n", b"");
    assert!(
        csv.body.starts_with("width,length,colour,class\n"),
        "{}",
        csv.body
    );
}

#[test]
fn nonsense_is_named_and_the_service_lives_on() {
    let service = Service::start("--max-body 1 --max-rows 4000 --max-seconds 2");
    let says = |body: &str| service.post("/v1/predict", JSON, body).error();
    assert!(
        says("{\"rows\": [[1, 1e999, null]]}")
            .starts_with("400 row 1, column 'length': expected a finite number, got one out")
    );
    assert!(
        says("{\"rows\": [[], [1, 2, \"red\"]]}")
            .starts_with("400 row 1: expected a list of 3 cells, got 0")
    );
    assert_eq!(
        says("{\"rows\": [[1, 2, \"pink\"]]}"),
        "400 row 1, column 'colour': expected blue, red, white, got 'pink'"
    );
    assert!(says("{\"rows\": [[1, 2, \"NA\"]]}").ends_with("expected blue, red, white, got 'NA'"));
    assert!(says(&format!("{{\"rows\": {}", "[".repeat(10_000))).starts_with("400 "));
    assert!(says(&"{\"a\":".repeat(10_000)).starts_with("400 "));
    assert!(
        says(&format!("{{\"rows\": [{}{{}}]}}", "{},".repeat(4000)))
            .starts_with("413 rows: expected at most 4000")
    );
    assert!(says(&" ".repeat(3 << 20)).starts_with("413 body: expected at most 1048576 bytes"));
    let csv = |text: &str| service.post("/v1/impute", "text/csv", text).error();
    assert_eq!(
        csv("width,length,colour\n1,2,red\n1,inf,red\n"),
        "400 line 3, column 'length': expected a finite number of 32 bits, got 'inf'"
    );
    assert_eq!(
        csv(&format!("width,length,colour\n{},", "1".repeat(2 << 20))),
        "413 line 2: expected rows or batches of at most 1048576 bytes, got more"
    );
    let line = service
        .post(
            "/v1/predict",
            "application/x-ndjson",
            "{}\n{\"width\": true}\n",
        )
        .error();
    assert_eq!(
        line,
        "400 line 2, column 'width': expected a number or null, got 'true'"
    );
    let arrow = |bytes: &[u8]| {
        service
            .post("/v1/predict", "application/vnd.apache.arrow.stream", bytes)
            .error()
    };
    assert_eq!(arrow(b""), "400 expected an Arrow stream, got nothing");
    assert!(arrow(&[255; 100]).starts_with("400 expected an Arrow stream"));
    assert!(
        arrow(&[255, 255, 255, 255, 0, 0, 16, 0])
            .starts_with("400 the Arrow stream ends in the middle")
    );
    let get = |path: &str| service.get(path).error();
    assert!(get("/v1/sample?count=9999999").starts_with("400 count: expected 1 to 1000"));
    assert_eq!(
        get("/v1/sample?count=-1"),
        "400 query: count: expected a whole number, got '-1'"
    );
    assert!(get("/v1/sample?counts=1").contains("unknown field `counts`"));
    let never = service.send("GET", "/v1/sample", "accept: application/json;q=0\r\n", b"");
    assert!(
        never.error().starts_with("406 accept: expected"),
        "{}",
        never.body
    );
    assert!(get("/v1/explain?level=99&node=0").starts_with("404 level: expected 0 (the leaves)"));
    assert_eq!(
        get("/v1/explain?level=0"),
        "400 node: expected a whole number from 0, got none"
    );
    assert_eq!(
        get("/v1/sample?class=oak"),
        "400 class: expected iris, rose, tulip, got 'oak'"
    );
    assert_eq!(
        get("/v1/sample?model=oak"),
        "404 model: expected one of flowers, got 'oak'"
    );
    assert!(
        get("/../../etc/passwd").starts_with("404 ")
            && get("/v1/models/..%2f..%2fetc%2fpasswd").starts_with("404 ")
    );
    assert_eq!(get("/v1/predict"), "405 method: expected POST, got GET");
    assert!(service.get("/v1/predict").head.contains("\r\nallow: post"));
    let deleted = service.send("DELETE", "/v1/models/flowers", "", b"");
    assert_eq!(
        deleted.error(),
        "405 method: expected GET or HEAD, got DELETE"
    );
    assert!(
        deleted.head.contains("\r\nallow: get,head"),
        "{}",
        deleted.head
    );
    let impute = |query: &str| {
        service
            .rows(&format!("/v1/impute?{query}"), json!([{}]))
            .error()
    };
    assert_eq!(
        impute("draws=two"),
        "400 query: draws: expected a whole number, got 'two'"
    );
    assert_eq!(
        impute("seed=99999999999999999999"),
        "400 query: seed: expected a smaller whole number, got '99999999999999999999'"
    );
    assert_eq!(
        impute("classes=yes"),
        "400 query: classes: expected true or false, got 'yes'"
    );
    for how in ["median", "mode", "sample"] {
        let expected =
            format!("400 deviation: expected how=mean, which alone has one, got how={how}");
        assert_eq!(impute(&format!("deviation=true&how={how}")), expected);
    }
    assert!(
        service
            .post("/v1/predict", "text/plain", "1")
            .error()
            .starts_with("415 content-type: expected")
    );
    let mut stream = service.connect();
    stream.write_all(b"nonsense\r\n\r\n").unwrap();
    assert_eq!(read(stream).status, 400);
    assert_eq!(service.rows("/v1/predict", json!([{}])).status, 200);
}

#[test]
fn slow_bodies_time_out_and_hinder_nobody() {
    let service = Service::start("--max-seconds 4");
    let mut slow: Vec<TcpStream> = Vec::new();
    for kind in [JSON, "text/csv", "application/vnd.apache.arrow.stream"] {
        let mut stream = service.connect();
        let head = format!(
            "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        slow.push(stream);
    }
    let start = Instant::now();
    assert_eq!(service.get("/healthz").status, 200);
    assert_eq!(service.rows("/v1/predict", json!([{}])).status, 200);
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "nobody waits for them"
    );
    for stream in slow {
        let reply = read(stream);
        assert_eq!(reply.error(), "408 body: expected it within 4 seconds");
    }
}

/// Slow bodies take every place; after a moment they give way to those who are quick, one for one.
#[test]
fn slow_bodies_give_way_when_the_service_is_full() {
    let service = Service::start("--max-requests 6 --max-seconds 30");
    let hold = |kind: &str| {
        let mut stream = service.connect();
        let head = format!(
            "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..6).map(|_| hold(JSON)).collect();
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(service.rows("/v1/predict", json!([{}])).status, 200);
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "nobody waits for them"
    );
    let answered = |mut stream: TcpStream| {
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes); // the others wait on
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let answers: Vec<String> = slow.into_iter().map(answered).collect();
    let gave_way = |answer: &&String| {
        answer.contains(" 408 ") && answer.contains("slowly while others waited for its place")
    };
    let count = answers.iter().filter(gave_way).count();
    assert!((1..=3).contains(&count), "one for one: {answers:?}");
}

/// The same for the threads of streams, of which there are fewer.
#[test]
fn slow_streams_give_way_too() {
    let service = Service::start("--max-seconds 30");
    let hold = || {
        let mut stream = service.connect();
        let head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\ncontent-length: 1000\r\n\r\nwidth,";
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..8).map(|_| hold()).collect();
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    for _ in 0..3 {
        let csv = service.post("/v1/predict", "text/csv", "width,length,colour\n1,2,red\n");
        assert_eq!(csv.status, 200, "{}", csv.body);
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "nobody waits for them"
    );
    drop(slow);
}

/// A byte now and then is no way to keep a place; a client that sends all the time keeps it.
#[test]
fn dribbling_streams_give_way_and_steady_ones_do_not() {
    let service = Service::start("--max-requests 8 --max-seconds 30");
    let begin = |rows: usize| {
        let mut stream = service.connect();
        let length = "width,length,colour\n".len() + rows * ROW.len();
        let head = format!(
            "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: text/csv\r\ncontent-length: {length}\r\n\r\nwidth,length,colour\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut steady = begin(40 * 1000);
    let sender = std::thread::spawn(move || {
        for _ in 0..40 {
            steady.write_all(ROW.repeat(1000).as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
        steady
    });
    for _ in 0..7 {
        let mut stream = begin(1000);
        std::thread::spawn(move || {
            while stream.write_all(b"1").is_ok() {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
    }
    std::thread::sleep(Duration::from_millis(2500));
    for _ in 0..3 {
        let csv = service.post("/v1/predict", "text/csv", "width,length,colour\n1,2,red\n");
        assert_eq!(csv.status, 200, "{}", csv.body);
    }
    let reply = read(sender.join().unwrap());
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn only_so_many_at_once() {
    let service = Service::start("--max-requests 2");
    let hold = || {
        let mut stream = service.connect();
        let head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let held = RefCell::new(Vec::new());
    eventually("two are under way", || {
        held.replace((0..2).map(|_| hold()).collect()); // anew: one that met a question of ours was refused
        std::thread::sleep(Duration::from_millis(100));
        service.get("/v1/models").status == 429
    });
    let refused = service.get("/v1/models");
    assert!(
        refused
            .error()
            .starts_with("429 expected at most 2 requests at once")
    );
    assert!(refused.head.contains("retry-after: 1"));
    assert_eq!(
        service.get("/healthz").status,
        200,
        "health checks are never refused"
    );
    drop(held);
    eventually("there is room again", || {
        service.get("/v1/models").status == 200
    });
}

#[test]
fn tokens_hosts_and_headers() {
    let folder = Folder::new();
    fs::write(folder.path("m.sumout"), flower_model()).unwrap();
    let run = folder.run("serve m.sumout --listen 0.0.0.0:0");
    assert_eq!(
        (
            run.code,
            run.stderr
                .contains("give a token in SUMOUT_TOKEN or --token-file")
        ),
        (2, true),
        "{}",
        run.stderr
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let run = folder.run(&format!(
        "serve m.sumout --listen {}",
        taken.local_addr().unwrap()
    ));
    assert_eq!(
        (run.code, run.stderr.contains("cannot listen")),
        (2, true),
        "{}",
        run.stderr
    );
    assert!(
        !run.stderr.contains("stopped"),
        "it never started: {}",
        run.stderr
    );
    let run = folder.run("serve");
    assert!(
        run.code == 2 && run.stderr.contains("`sumout demo` trains one in a minute"),
        "{}",
        run.stderr
    );
    let service = Service::with_token("--allow-host box.lan", Some("a-long-enough-token"));
    assert!(
        service
            .get("/v1/models")
            .error()
            .starts_with("401 authorization: expected the bearer token")
    );
    let token = "authorization: Bearer a-long-enough-token\r\n";
    assert_eq!(service.send("GET", "/v1/models", token, b"").status, 200);
    assert_eq!(
        service
            .send(
                "GET",
                "/v1/models",
                "authorization: Bearer a-long-enough-tokem\r\n",
                b""
            )
            .status,
        401
    );
    assert_eq!(
        (
            service.get("/healthz").status,
            service.get("/metrics").status
        ),
        (200, 401)
    );
    assert_eq!(
        service
            .send("GET", "/", "host: evil.example\r\n", b"")
            .status,
        403
    );
    assert_eq!(
        service.send("GET", "/", "host: box.lan\r\n", b"").status,
        200
    );
    let origin =
        format!("{token}origin: http://evil.example\r\ncontent-type: application/json\r\n");
    assert_eq!(
        service
            .send("POST", "/v1/predict", &origin, b"{\"rows\": []}")
            .status,
        403
    );
    let page = service.get("/");
    assert!(
        page.body.contains("<title>Sumout</title>")
            && page
                .head
                .contains("content-security-policy: default-src 'self'")
    );
    assert!(page.head.contains("x-content-type-options: nosniff"));
}

/// Examples need to suit only one of the models.
#[test]
fn examples_for_one_of_several_models() {
    let folder = Folder::new();
    let rows: String = (0..40).map(|i| format!("{},{}\n", i % 7, i % 5)).collect();
    folder.write("other.csv", &format!("a,b\n{rows}"));
    let run = folder.run("train --data other.csv --steps 5 --out other.sumout");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let other = folder.path("other.sumout");
    let data = folder.path("other.csv");
    let (other, data) = (other.display(), data.display());
    let service = Service::start(&format!("{other} --examples {data}"));
    let examples = |model: &str| {
        let reply = service.get(&format!("/v1/examples?model={model}")).json();
        reply["rows"].as_array().unwrap().len()
    };
    assert!(examples("other") > 0 && examples("flowers") == 0);
    folder.write("neither.csv", "c,d\n1,2\n");
    let run = folder.run("serve other.sumout --examples neither.csv --listen 127.0.0.1:0");
    assert!(
        run.code == 2 && run.stderr.contains("expected a column 'a'"),
        "{}",
        run.stderr
    );
}

#[test]
fn several_models_and_a_new_file() {
    let service = Service::start("second=flowers.sumout --reload");
    assert_eq!(
        service.rows("/v1/predict", json!([{}])).error(),
        "400 model: expected one of flowers, second, got none"
    );
    assert_eq!(
        service.rows("/v1/predict?model=second", json!([{}])).status,
        200
    );
    let count = |name: &str| {
        let page = service.get("/metrics").body;
        page.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok())
            .unwrap()
    };
    let wait = |name: &str, wanted: u32| eventually(name, || count(name) >= wanted);
    fs::write(service.folder.path("flowers.sumout"), "nonsense").unwrap();
    wait("sumout_reloads_failed_total", 2);
    assert_eq!(
        service
            .rows("/v1/predict?model=flowers", json!([{}]))
            .status,
        200,
        "the old model stays"
    );
    fs::write(service.folder.path("flowers.sumout"), flower_model()).unwrap();
    wait("sumout_reloads_total", 2);
    assert_eq!(
        service
            .rows("/v1/predict?model=flowers", json!([{}]))
            .status,
        200
    );
}

/// A model is trained anew in place of the one that is served; both programs are killed at some moment. The service then
/// has the old model or the new one.
#[test]
fn killed_while_it_reloads_it_serves_the_old_model_or_the_new_one() {
    let mut service = Service::start("--reload");
    service.folder.write("flowers.csv", &flowers(120));
    let train = "train --data flowers.csv --target species --out flowers.sumout --seed 2 --steps 2";
    let answer = |service: &Service| service.rows("/v1/predict", json!([[1.5, null, null]])).body;
    let old = answer(&service);
    assert_eq!(service.folder.run(train).code, 0);
    eventually("the new model", || answer(&service) != old);
    let new = answer(&service);
    let mut seen = Vec::new();
    for moment in 0..8 {
        let path = service.folder.path("old");
        fs::write(&path, flower_model()).unwrap();
        fs::rename(path, service.folder.path("flowers.sumout")).unwrap();
        let mut training = service.folder.command(train).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100 * moment));
        training.kill().unwrap();
        training.wait().unwrap();
        let before = answer(&service);
        service.kill_and_restart("--reload");
        seen.extend([before, answer(&service)]);
    }
    let strange = seen.iter().find(|&answer| ![&old, &new].contains(&answer));
    assert_eq!(strange, None, "neither {old} nor {new}");
}

/// The rest of a body that nobody wants is read, so that the connection takes the next request.
#[test]
fn a_refused_request_does_not_take_the_next_one_with_it() {
    let service = Service::start("");
    let mut stream = service.connect();
    for path in ["predict?model=nobody", "impute", "nothing"] {
        let head =
            format!("POST /v1/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50)); // refused by its head alone
        stream.write_all(b"text").unwrap();
    }
    let last = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(last).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let statuses: Vec<&str> = answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|text| &text[..3])
        .collect();
    assert_eq!(statuses, ["404", "415", "404", "200"]);
}

#[cfg(unix)]
#[test]
fn it_finishes_what_is_under_way() {
    let mut service = Service::start("");
    let mut stream = service.connect();
    let head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\ncontent-length: 30\r\n\r\nwidth,length,";
    stream.write_all(head.as_bytes()).unwrap();
    let active = || service.get("/metrics").body.contains("sumout_active 2\n"); // this question too
    eventually("the request is under way", active);
    let kill = std::process::Command::new("kill")
        .args(["-TERM", &service.child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    eventually("nothing new is taken", || {
        TcpStream::connect(&service.address).is_err()
    });
    stream.write_all(b"colour\n1,2,red\n\n\n").unwrap();
    let reply = read(stream);
    assert_eq!(
        (reply.status, reply.body.lines().count()),
        (200, 2),
        "{}",
        reply.body
    );
    assert_eq!(service.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_long_stream_is_answered_whole() {
    let service = Service::start("");
    let rows = 20_000;
    let text: String = std::iter::once("width,length,colour\n".to_owned())
        .chain((0..rows).map(|i| format!("{},,red\n", i % 7)))
        .collect();
    let answer = service.post("/v1/predict", "text/csv", &text);
    assert_eq!(
        (answer.status, answer.body.lines().count()),
        (200, rows + 1)
    );
    let lines: Vec<&str> = answer.body.lines().collect();
    assert!(
        (1..rows - 7).all(|i| lines[i] == lines[i + 7]),
        "rows come back in their order"
    );
    let wrong = service
        .post("/v1/predict", "text/csv", text + "x,,red\n")
        .error();
    assert_eq!(
        wrong,
        format!(
            "400 line {}, column 'width': expected a number, got 'x'",
            rows + 2
        )
    );
}

#[test]
fn the_description_is_of_this_version_and_these_models() {
    let service = Service::start("");
    let document = service.get("/openapi.json").json();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        document["components"]["schemas"]["Model"]["enum"],
        json!(["flowers"])
    );
    assert_eq!(
        document["components"]["schemas"]["Class"]["enum"],
        json!(["iris", "rose", "tulip"])
    );
    for path in document["paths"].as_object().unwrap().keys() {
        let path = path.replace("{model}", "flowers");
        assert_ne!(service.get(&path).status, 404, "{path}");
    }
}

/// A model that predicts a number answers with its distribution, whatever the row says of that number.
#[test]
fn a_number_is_predicted_with_its_quantiles() {
    let folder = Folder::new();
    folder.write("flowers.csv", &flowers(120));
    let run = folder.run(
        "train --data flowers.csv --target length --regression --steps 30 --trees 1 --out \
         flowers.sumout",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder.write("asked.csv", "width,colour,species\n1.5,red,iris\n,,tulip\n");
    let expected = folder.run("predict flowers.sumout --data asked.csv").stdout;
    let service = Service::of_folder(folder, "", None);
    let csv = "width,colour,species\n1.5,red,iris\n,,tulip\n";
    assert_eq!(service.post("/v1/predict", "text/csv", csv).body, expected);
    let rows = json!([
        {"width": 1.5, "colour": "red", "species": "iris", "length": 100},
        {"species": "tulip"}
    ]);
    let answer = service.rows("/v1/predict", rows).json();
    let first = &answer["rows"][0];
    assert!(first["mean"].as_f64().unwrap() < answer["rows"][1]["mean"].as_f64().unwrap());
    assert_eq!(first["quantiles"].as_array().unwrap().len(), 5, "{first}");
    assert!(first["sd"].as_f64().unwrap() > 0.0 && first.get("class").is_none());
    let about = service.get("/v1/models/flowers").json();
    assert_eq!(about["predicts"], "length", "{about}");
}
