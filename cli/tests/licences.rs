//! Every crate that is built has a licence that lets anyone use it with the source or without.

use serde_json::Value;
use std::process::Command;

const FREE: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0", // the certificates that downloads trust: data
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether one of the choices of every part is free. No expression has an AND inside a choice.
fn is_free(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let is_free = |choice: &str| FREE.contains(&choice.trim());
    plain
        .split(" AND ")
        .all(|part| part.split(" OR ").any(is_free))
}

#[test]
fn only_free_licences() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_free(licence), "{}: {licence}", package["name"]);
    }
}

#[test]
fn others_are_found() {
    assert!(is_free("(MIT OR GPL-3.0) AND Unicode-3.0") && is_free("Unlicense/MIT"));
    assert!(!is_free("none") && !is_free("MIT AND GPL-3.0") && !is_free("AGPL-3.0"));
}
