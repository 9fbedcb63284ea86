//! A file with a line for each mutant that was tried: what became of it, by which test, and the mutant.

use crate::rewrite::Mutant;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub struct Results {
    path: PathBuf,
    file: Mutex<File>,
    earlier: BTreeSet<String>,
}

impl Results {
    /// Opens a file that may have the results of an earlier run.
    pub fn open(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(path)
            .with_context(name)?;
        let lines = lines(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            earlier: lines.into_iter().map(|(_, mutant)| mutant).collect(),
        })
    }

    /// Whether an earlier run has tried it.
    pub fn has(&self, mutant: &Mutant) -> bool {
        self.earlier.contains(&mutant.key())
    }

    /// Adds a result: its word and a test.
    pub fn add(&self, mutant: &Mutant, result: &str) -> Result<()> {
        let mut file = self.file.lock().expect("no thread panics");
        Ok(writeln!(file, "{result} {mutant}")?)
    }

    /// Those that no test noticed, and how many there are of each kind.
    pub fn summary(&self, mutants: &[Mutant]) -> Result<String> {
        let lines = lines(&self.path)?;
        let known: BTreeSet<String> = mutants.iter().map(Mutant::key).collect();
        let count = |word: &str| {
            let of_it =
                |(other, mutant): &&(String, String)| other == word && known.contains(mutant);
            lines.iter().filter(of_it).count()
        };
        let mut text = String::new();
        for (word, mutant) in &lines {
            if (word == "missed" || word == "unreached") && known.contains(mutant) {
                text += &format!("{word} {mutant}\n");
            }
        }
        let words = ["caught", "late", "missed", "unreached"];
        let counts: Vec<String> = words
            .iter()
            .map(|word| format!("{} {word}", count(word)))
            .collect();
        Ok(text + &format!("{}, of {}", counts.join(", "), mutants.len()))
    }
}

/// The word and the mutant of each line.
fn lines(path: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(path)?;
    let parts = |line: &str| {
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        Some((parts.next()?, parts.nth(1)?))
    };
    Ok(text.lines().filter_map(parts).collect())
}
