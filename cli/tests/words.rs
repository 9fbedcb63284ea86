//! Every path and every command that the Markdown names exists.

use clap::CommandFactory;
use std::path::{Path, PathBuf};
use sumout_cli::args::Args;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// All Markdown of the root and of some folders, with the folders in them.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    add_pages(&root(), false, &mut pages);
    for folder in ["docs", "data/digits", "data/penguins", "experiments", "web"] {
        add_pages(&root().join(folder), true, &mut pages);
    }
    add_pages(&root().join("python"), false, &mut pages);
    assert!(pages.len() >= 7, "{}", pages.len());
    pages
}

fn add_pages(folder: &Path, deep: bool, pages: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep {
            add_pages(&path, deep, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            pages.push((path, text));
        }
    }
}

/// The text between single backquotes, without fenced blocks.
fn quoted(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut spans = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
        }
    }
    spans
}

/// A span that can only be a path of this repository: a known folder first, or a known ending.
fn is_path(span: &str) -> bool {
    let folders = [
        "engine/",
        "cli/",
        "data/",
        "serve/",
        "report/",
        "python/",
        "web/",
        "experiments/",
        "docs/",
        ".ci/",
        ".github/",
    ];
    let whole = span
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let named = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ];
    whole && (folders.iter().any(|folder| span.starts_with(folder)) || named.contains(&span))
}

#[test]
fn every_path_exists() {
    let mut seen = 0;
    for (page, text) in pages() {
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .map(str::to_string);
        let links: Vec<String> = links
            .filter(|link| !link.contains("://") && !link.starts_with('#'))
            .collect();
        for path in quoted(&text)
            .into_iter()
            .filter(|span| is_path(span))
            .chain(links)
        {
            seen += 1;
            let beside = page.parent().unwrap().join(&path);
            assert!(
                root().join(&path).exists() || beside.exists(),
                "{}: '{path}' is not there",
                page.display()
            );
        }
    }
    assert!(seen > 30, "{seen}");
}

/// Rows of ARCHITECTURE.md under a heading such as `## engine/: …` name files and folders of that
/// crate, and no crate or folder of the engine is left out.
#[test]
fn the_map_of_folders_is_whole() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut sources = root();
    let mut listed = Vec::new();
    for line in text.lines() {
        if let Some((crate_folder, _)) = line.strip_prefix("## ").and_then(|h| h.split_once("/:")) {
            sources = root().join(crate_folder).join("src");
        }
        let Some(cell) = line.strip_prefix("| `") else {
            continue;
        };
        let cell = format!("`{}", cell.split('|').next().unwrap_or_default());
        for name in quoted(&cell) {
            let path = sources.join(name.trim_end_matches('/'));
            assert!(path.exists(), "ARCHITECTURE.md lists {}", path.display());
            listed.push(path);
        }
    }
    let engine = std::fs::read_dir(root().join("engine/src")).unwrap();
    let parts = engine.map(|entry| entry.unwrap().path());
    let crates = [
        "engine",
        "data",
        "serve",
        "report",
        "cli",
        "python",
        "web",
        "experiments",
    ];
    for part in parts.chain(crates.map(|name| root().join(name))) {
        // The crate's face, and the second half of a module that is listed, need no row.
        let is_known = part.ends_with("lib.rs") || listed.contains(&part.with_extension("rs"));
        assert!(
            is_known || listed.contains(&part),
            "not listed: {}",
            part.display()
        );
    }
}

/// `sumout …` and `cargo run --release -- …` lines use commands and options that exist.
#[test]
fn every_command_exists() {
    let command = Args::command();
    let mut seen = 0;
    for (page, text) in pages() {
        let lines = text.lines().map(str::to_string).chain(quoted(&text));
        for line in lines {
            let line = line
                .trim()
                .split(" #")
                .next()
                .unwrap_or_default()
                .to_string();
            let words = line
                .strip_prefix("cargo run --release -- ")
                .or(line.strip_prefix("sumout "));
            let Some(words) = words else { continue };
            let mut words = words.split_whitespace();
            let name = words.next().unwrap_or_default();
            if name.starts_with("--") || !name.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            let Some(found) = command.find_subcommand(name) else {
                assert!(
                    line.starts_with("sumout is"),
                    "{}: no command '{name}' in '{line}'",
                    page.display()
                );
                continue;
            };
            seen += 1;
            let options = words.filter_map(|word| word.strip_prefix("--"));
            for option in options.filter(|option| *option != "help") {
                let known = found
                    .get_arguments()
                    .chain(command.get_arguments())
                    .any(|a| a.get_long() == Some(option));
                assert!(
                    known,
                    "{}: '{name}' has no option --{option}",
                    page.display()
                );
            }
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn scripts_are_there() {
    for script in ["test.sh", ".ci/run", ".github/workflows/test.yml"] {
        assert!(root().join(script).exists(), "{script}");
    }
}
