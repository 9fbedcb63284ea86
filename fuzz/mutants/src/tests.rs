//! Test programs: built once, run with each mutant.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A test program.
pub struct Test {
    pub name: String,
    program: PathBuf,
    folder: PathBuf,
    pub usual: Duration, // without a mutant
}

impl Test {
    /// Whether it fails with a mutant, or takes too long.
    pub fn notices(&self, mutant: usize) -> bool {
        let Ok(mut child) = self.command().env("MUTANT", mutant.to_string()).spawn() else {
            return false;
        };
        let begun = Instant::now();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return !status.success();
            }
            if begun.elapsed() > 10 * self.usual + Duration::from_secs(20) {
                child.kill().ok();
                child.wait().ok();
                return true;
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--test-threads", "1", "-q"])
            .current_dir(&self.folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn cargo(package: &str, names: &[String]) -> Command {
    let mut command = Command::new("cargo");
    command.args([
        "test",
        "--release",
        "--no-run",
        "--message-format=json-diagnostic-short",
    ]);
    command.args(["--manifest-path", &format!("{package}/Cargo.toml")]);
    for name in names {
        if name == "lib" {
            command.arg("--lib");
        } else {
            command.args(["--test", name]);
        }
    }
    command
}

/// The test programs, each run once without a mutant.
pub fn build(package: &str, names: &[String]) -> Result<Vec<Test>> {
    let out = cargo(package, names).stderr(Stdio::null()).output()?;
    let text = String::from_utf8(out.stdout)?;
    let folder = std::fs::canonicalize(package)?;
    let found = |name: &String| {
        let kind = if name == "lib" {
            "\"kind\":[\"lib\""
        } else {
            "\"kind\":[\"test\""
        };
        let named = |line: &&str| {
            line.contains(kind) && (name == "lib" || line.contains(&format!("\"name\":\"{name}\"")))
        };
        let line = text
            .lines()
            .filter(|line| line.contains("\"executable\":\""))
            .find(named);
        let program =
            line.and_then(|line| Some(line.split_once("\"executable\":\"")?.1.split_once('"')?.0));
        let program = program.with_context(|| format!("no test {name}"))?.into();
        let mut test = Test {
            name: name.clone(),
            program,
            folder: folder.clone(),
            usual: Duration::ZERO,
        };
        let begun = Instant::now();
        ensure!(
            test.command().status()?.success(),
            "{name} fails without a mutant"
        );
        test.usual = begun.elapsed();
        Ok(test)
    };
    names.iter().map(found).collect()
}

/// The numbers of mutants in lines that do not compile.
pub fn build_errors(package: &str, names: &[String]) -> Result<BTreeSet<usize>> {
    let out = cargo(package, names).stderr(Stdio::null()).output()?;
    let text = String::from_utf8(out.stdout)?;
    let errors = text
        .lines()
        .filter(|line| line.contains("\"level\":\"error\""));
    let mut ids = BTreeSet::new();
    for line in errors {
        // The source text of a message has the switch itself.
        for part in line.split("mutant::is(").skip(1) {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            ids.extend(digits.parse::<usize>());
        }
        eprintln!("{}", &line[..line.len().min(300)]);
    }
    ensure!(
        out.status.success() || !ids.is_empty(),
        "the build fails:\n{}",
        &text[text.len().saturating_sub(2000)..]
    );
    Ok(ids)
}
