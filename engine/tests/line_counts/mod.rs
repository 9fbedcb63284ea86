//! Checks that files and functions are short: a file has at most 400 lines before its tests, a function at most 60.
//!
//! Every crate has a test that calls [`check`]. It relies on the format: the line that closes a function is as far to
//! the right as the line that opens it.

use std::fs;
use std::path::Path;

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;

/// Fails with a list of all files and functions that are too long, of the crate whose manifest is in `folder`.
pub fn check(folder: &str) {
    let found = too_long(&Path::new(folder).join("src"));
    assert!(found.is_empty(), "too long:\n{}", found.join("\n"));
}

/// Every file and function below a folder that is too long.
pub fn too_long(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(too_long(&path));
        } else if path.extension().is_some_and(|of| of == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let place = |what: String| format!("{}: {what}", path.display());
            found.extend(too_long_in(&text).into_iter().map(place));
        }
    }
    found
}

/// What is too long in one file.
fn too_long_in(text: &str) -> Vec<String> {
    let code = |line: &&str| *line != "#[cfg(test)]";
    let lines: Vec<&str> = text.lines().take_while(code).collect();
    let mut found = Vec::new();
    if lines.len() > FILE_LINES {
        found.push(format!(
            "expected at most {FILE_LINES} lines before the tests, got {}",
            lines.len()
        ));
    }
    for first in (0..lines.len()).filter(|&first| starts_function(lines[first])) {
        let count = function_lines(&lines[first..]);
        if count > FUNCTION_LINES {
            found.push(format!(
                "expected at most {FUNCTION_LINES} lines in the function at line {}, got {count}",
                first + 1
            ));
        }
    }
    found
}

/// Whether a function starts at this line.
fn starts_function(line: &str) -> bool {
    let words = line.split(['(', '<', ' ']);
    let qualifiers = ["", "pub", "crate)", "super)", "const", "async", "unsafe"];
    let mut words = words.skip_while(|word| qualifiers.contains(word));
    words.next() == Some("fn")
}

/// Lines of the function that starts at the first line; one without a body ends at its semicolon.
fn function_lines(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let ends = |line: &&str| {
        let rest = line.get(indent..).unwrap_or_default();
        !rest.starts_with(' ') && rest.ends_with(['}', ';'])
    };
    lines
        .iter()
        .position(ends)
        .map_or(lines.len(), |end| end + 1)
}
