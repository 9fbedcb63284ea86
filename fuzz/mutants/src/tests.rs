//! Test programs: built once, run with each mutant, one test function at a time.

use crate::rewrite::Mutant;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory that a test may ask for, in KiB: a mutant may ask for any.
const MEMORY: usize = 8 << 20;
/// A test is late after ten times its usual time on the processor and this; a busy machine makes none late.
const PATIENCE: Duration = Duration::from_secs(3);
/// What Linux ends a program with that was longer on the processor than it may be.
const SIGXCPU: i32 = 24;

/// A test program.
pub struct Program {
    name: String,
    path: PathBuf,
    folder: PathBuf,
}

/// A test function, run alone.
pub struct Test {
    pub name: String,
    command: [String; 2], // its program and its name there
    folder: PathBuf,
    usual: Duration, // without a mutant
    reached: BTreeSet<usize>,
}

/// How a test ended.
pub enum Outcome {
    Passed,
    Failed,
    Late,
}

/// Every test function of at most this many seconds, with its time and the mutants that it reaches, the quickest first.
pub fn measured(programs: &[Program], longest: f64) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for program in programs {
        for function in program.functions()? {
            tests.push(Test::measured(program, function)?);
        }
    }
    let all = tests.len();
    tests.retain(|test| test.usual.as_secs_f64() <= longest);
    tests.sort_by_key(|test| test.usual);
    let sum: Duration = tests.iter().map(|test| test.usual).sum();
    println!("{} of {all} tests, {:.1} s", tests.len(), sum.as_secs_f64());
    Ok(tests)
}

impl Program {
    fn functions(&self) -> Result<Vec<String>> {
        let list = ["--list", "--format", "terse"];
        let out = Command::new(&self.path).args(list).output()?;
        let text = String::from_utf8(out.stdout)?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

impl Test {
    fn measured(program: &Program, function: String) -> Result<Self> {
        let mut test = Test {
            name: format!("{}::{function}", program.name),
            command: [program.path.display().to_string(), function],
            folder: program.folder.clone(),
            usual: Duration::ZERO,
            reached: BTreeSet::new(),
        };
        let reached = std::env::temp_dir().join(format!("sumout-mutants-{}", std::process::id()));
        let begun = Instant::now();
        let status = test
            .run_with("MUTANT_REACHED", &reached.display().to_string())
            .status()?;
        ensure!(status.success(), "{} fails without a mutant", test.name);
        test.usual = begun.elapsed();
        let ids = fs::read_to_string(&reached)?;
        test.reached = ids.lines().map(str::parse).collect::<Result<_, _>>()?;
        fs::remove_file(reached)?;
        Ok(test)
    }

    pub fn reaches(&self, mutant: &Mutant) -> bool {
        self.reached.contains(&mutant.id)
    }

    /// Runs it with a mutant, until it has failed or is late.
    pub fn run(&self, mutant: &Mutant) -> Result<Outcome> {
        let status = self.run_with("MUTANT", &mutant.id.to_string()).status()?;
        Ok(match status.signal() {
            Some(SIGXCPU) => Outcome::Late,
            _ if status.success() => Outcome::Passed,
            _ => Outcome::Failed,
        })
    }

    fn run_with(&self, variable: &str, value: &str) -> Command {
        let mut command = Command::new("sh");
        let seconds = (10 * self.usual + PATIENCE).as_secs();
        let limits = match variable {
            "MUTANT" => format!(
                "ulimit -v {MEMORY}; ulimit -S -t {seconds}; timeout -s KILL {} ",
                20 * seconds
            ),
            _ => String::new(),
        };
        let limited = limits + "\"$0\" --exact \"$1\"";
        command.args(["-c", &limited]).args(&self.command);
        command.current_dir(&self.folder).env(variable, value);
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

/// The test programs.
pub fn build(package: &str, names: &[String]) -> Result<Vec<Program>> {
    let out = cargo(package, names).stderr(Stdio::null()).output()?;
    let text = String::from_utf8(out.stdout)?;
    let folder = fs::canonicalize(package)?;
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
        let path =
            line.and_then(|line| Some(line.split_once("\"executable\":\"")?.1.split_once('"')?.0));
        Ok(Program {
            name: name.clone(),
            path: path.with_context(|| format!("no test {name}"))?.into(),
            folder: folder.clone(),
        })
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
