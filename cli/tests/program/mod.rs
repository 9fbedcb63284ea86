//! The program as a user starts it, in a folder of its own.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// What a run left behind.
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// A folder that goes away.
pub struct Folder(tempfile::TempDir);

#[allow(dead_code, reason = "every test program uses some of it")]
impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in it, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The program with arguments that have no spaces in them.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sumout"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("SUMOUT_DATA");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    pub fn run_with(&self, line: &str, input: &str) -> Run {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// The line, what it printed, and its exit code, as a terminal would show them.
    pub fn show(&self, line: &str) -> String {
        let Run {
            stdout,
            stderr,
            code,
        } = self.run(line);
        let code = if code == 0 {
            String::new()
        } else {
            format!("[exit code {code}]\n")
        };
        format!(
            "$ sumout {line}\n{}{}{code}\n",
            rounded(&stdout),
            rounded(&stderr)
        )
    }

    /// The same for what must be refused as a mistake of the user and leave nothing behind.
    pub fn refuse(&self, line: &str) -> String {
        let before = self.names();
        let shown = self.show(line);
        assert!(shown.ends_with("[exit code 2]\n\n"), "{shown}");
        assert_eq!(self.names(), before, "{line}");
        shown
    }
}

/// Three kinds of flowers, some with holes.
#[allow(dead_code, reason = "every test program uses some of it")]
pub fn flowers(rows: usize) -> String {
    let mut text = "width,length,colour,species\n".to_owned();
    for i in 0..rows {
        let class = i % 3;
        let noise = |step: usize| (i * step % 17) as f64 / 10.0;
        let cell = |hole: bool, value: String| if hole { String::new() } else { value };
        let width = cell(i % 7 == 3, format!("{:.1}", 1.0 + class as f64 + noise(5)));
        let length = cell(
            i % 5 == 4,
            format!("{:.1}", 2.0 + 2.0 * class as f64 + noise(11)),
        );
        let colour = cell(
            i % 11 == 6,
            ["red", "blue", "red", "white"][(class + i / 30) % 4].to_owned(),
        );
        let species = cell(i % 29 == 28, ["iris", "rose", "tulip"][class].to_owned());
        text.push_str(&format!("{width},{length},{colour},{species}\n"));
    }
    text
}

/// Every number of more than two decimals to two of them: processors round differently.
#[allow(dead_code, reason = "every test program uses some of it")]
pub fn rounded(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..]
            .find(|c| !is_part(c))
            .map_or(rest.len(), |length| start + length);
        let (number, is_hash) = (
            &rest[start..end],
            rest[..start].ends_with(|c: char| c.is_ascii_alphanumeric()),
        );
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        result.push_str(&rest[..start]);
        match number.parse::<f64>() {
            Ok(x) if decimals > 2 && !is_hash => result.push_str(&format!("{x:.2}")),
            _ => result.push_str(number),
        }
        rest = &rest[end..];
    }
    result + rest
}
