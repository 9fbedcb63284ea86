//! Checks that files, functions and closures are short: a file has at most 400 lines before its tests, a function at
//! most 60, the body of a closure at most 3.
//!
//! Every crate has a test that calls [`check`]. It relies on the format: the line that closes a body is as far to the
//! right as the line that opens it.

use std::fs;
use std::path::Path;

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;
const CLOSURE_LINES: usize = 3;

/// Fails with a list of all files, functions and closures that are too long, of the crate whose manifest is in `folder`.
pub fn check(folder: &str) {
    let found = too_long(&Path::new(folder).join("src"));
    assert!(found.is_empty(), "too long:\n{}", found.join("\n"));
}

/// Every file, function and closure below a folder that is too long.
pub fn too_long(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(too_long(&path));
        } else if path.extension().is_some_and(|of| of == "rs" || of == "cu") {
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
    for first in (0..lines.len()).filter(|&first| starts_closure(lines[first])) {
        let count = function_lines(&lines[first..]).saturating_sub(2);
        if count > CLOSURE_LINES {
            found.push(format!(
                "expected at most {CLOSURE_LINES} lines in the closure at line {}, got {count}",
                first + 1
            ));
        }
    }
    found
}

/// Whether the line ends with the arguments of a closure and the brace that opens its body.
fn starts_closure(line: &str) -> bool {
    let head = line.trim_end().strip_suffix(" {");
    let head = head.map(|head| head.split(" -> ").next().unwrap_or_default());
    let arguments = head.and_then(|head| head.strip_suffix('|'));
    arguments.is_some_and(|arguments| arguments.contains('|'))
}

/// Whether a function of Rust or CUDA starts at this line.
fn starts_function(line: &str) -> bool {
    let words = line.split(['(', '<', ' ']);
    let qualifiers = ["", "pub", "crate)", "super)", "const", "async", "unsafe"];
    let mut words = words.skip_while(|word| qualifiers.contains(word));
    let cuda = ["__device__", "__global__"];
    words.next() == Some("fn")
        || (cuda.iter().any(|word| line.contains(word)) && line.contains('('))
}

/// Lines of the function or closure that starts at the first line; one without a body ends at its semicolon.
fn function_lines(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let ends = |line: &&str| {
        let rest = line.get(indent..).unwrap_or_default();
        !rest.starts_with(' ') && (rest.starts_with('}') || rest.ends_with(['}', ';']))
    };
    lines
        .iter()
        .position(ends)
        .map_or(lines.len(), |end| end + 1)
}
