//! Checks that modules use each other one way: a module uses only those that stand before it in its parent's list.
//!
//! Every crate has a test that calls [`check`]. It reads the `mod` lines of each folder and all paths that start with
//! `crate::` or `super::`; test modules are left out.

use std::fs;
use std::path::{Path, PathBuf};

/// One module: its path in the crate, its own code, and its children in the order of their `mod` lines.
struct Module {
    path: Vec<String>,
    file: PathBuf,
    code: String,
    children: Vec<Module>,
}

/// Every use of a later module in the crate whose manifest is in `folder`.
pub fn circles(folder: &Path) -> Vec<String> {
    let source = folder.join("src");
    let root = ["lib.rs", "main.rs"].map(|name| source.join(name));
    let root = root
        .iter()
        .find(|path| path.is_file())
        .expect("lib.rs or main.rs");
    let module = read(root, &source, Vec::new());
    let mut found = Vec::new();
    check_module(&module, &module, &mut found);
    found
}

/// Fails with a list of all uses of a later module.
pub fn check(folder: &str) {
    let found = circles(Path::new(folder));
    assert!(
        found.is_empty(),
        "modules that use a later one:\n{}",
        found.join("\n")
    );
}

fn read(file: &Path, folder: &Path, path: Vec<String>) -> Module {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let code = without_tests(&text);
    let mut children = Vec::new();
    for name in code.lines().filter_map(child_name) {
        let flat = folder.join(format!("{name}.rs"));
        let nested = folder.join(&name).join("mod.rs");
        let file = if flat.is_file() { flat } else { nested };
        let path = path.iter().cloned().chain([name.clone()]).collect();
        children.push(read(&file, &folder.join(&name), path));
    }
    Module {
        path,
        file: file.to_owned(),
        code,
        children,
    }
}

/// The code before the test module, without comments.
fn without_tests(text: &str) -> String {
    let end = text
        .find("#[cfg(test)]\nmod tests")
        .or(text.find("#[cfg(test)]\npub(crate) mod tests"));
    let lines = text[..end.unwrap_or(text.len())].lines();
    let code = |line: &&str| !line.trim_start().starts_with("//");
    lines
        .filter(code)
        .fold(String::new(), |all, line| all + line + "\n")
}

/// The name in `mod name;`, whatever its visibility.
fn child_name(line: &str) -> Option<String> {
    let rest = line.strip_suffix(';')?;
    let (before, name) = rest.rsplit_once("mod ")?;
    let plain = before.is_empty() || (before.starts_with("pub") && before.ends_with(' '));
    plain.then(|| name.to_owned())
}

fn check_module(module: &Module, root: &Module, found: &mut Vec<String>) {
    for path in paths(&module.code, &module.path) {
        if let Some(later) = later_module(root, &module.path, &path) {
            found.push(format!("{} uses {later}", module.file.display()));
        }
    }
    module
        .children
        .iter()
        .for_each(|child| check_module(child, root, found));
}

/// All absolute module paths that the code names.
fn paths(code: &str, here: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (start, prefix) in [("crate::", &[][..]), ("super::", here)] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let parent = &prefix[..prefix.len().saturating_sub(1)];
            expand(&code[at + start.len()..], parent.to_vec(), &mut all);
        }
    }
    all
}

/// `a::{b, c::d}` as the paths a::b and a::c::d.
fn expand(text: &str, mut path: Vec<String>, all: &mut Vec<Vec<String>>) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    expand(group[start..at].trim_start(), path.clone(), all);
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    path.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(rest) => expand(rest, path, all),
        None => all.push(path),
    }
}

/// The module that `to` names, if it stands after `from` under their common parent.
fn later_module(root: &Module, from: &[String], to: &[String]) -> Option<String> {
    let mut parent = root;
    for depth in 0.. {
        let place = |path: &[String]| {
            let name = path.get(depth)?;
            parent
                .children
                .iter()
                .position(|child| child.path.last() == Some(name))
        };
        let (mine, other) = (place(from), place(to)?);
        match mine {
            Some(mine) if mine == other => parent = &parent.children[mine],
            Some(mine) => return (other > mine).then(|| to.join("::")),
            None => return None, // a parent may use its children
        }
    }
    None
}
