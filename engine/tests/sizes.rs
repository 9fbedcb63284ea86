//! Files, functions and closures of the engine are short.

mod line_counts;

#[test]
fn files_and_functions_are_short() {
    line_counts::check(env!("CARGO_MANIFEST_DIR"));
}

/// The check itself: a file, functions and closures with one line too many.
#[test]
fn long_files_and_functions_are_found() {
    let folder = std::env::temp_dir().join(format!("sumout-sizes-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let body = |lines: usize| "        let _ = 1;\n".repeat(lines);
    let function = |lines: usize| format!("    pub fn f(\n    ) {{\n{}    }}\n", body(lines - 3));
    let tests = "#[cfg(test)]\nmod tests {}\n";
    write("full.rs", format!("{}{tests}", "//\n".repeat(400)));
    write("deep/long.rs", format!("{}{tests}", "//\n".repeat(401)));
    write("short.rs", format!("    fn g();\n{}", function(60)));
    write("tall.rs", function(61));
    write("tall.cu", function(61).replace("pub fn", "__device__"));
    let closure = |head: &str, lines: usize| format!("    {head} {{\n{}    }});\n", body(lines));
    write(
        "closed.rs",
        closure("f(|x| -> u8", 4) + &closure("g(move ||", 4) + &closure("h(|x|", 3),
    );
    let mut found = line_counts::too_long(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    found.sort();
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[0].ends_with("at line 1, got 4"), "{found:?}");
    assert!(found[1].ends_with("at line 7, got 4"), "{found:?}");
    assert!(found[2].ends_with("before the tests, got 401"), "{found:?}");
    assert!(found[3].ends_with("at line 1, got 61"), "{found:?}");
    assert!(found[3].contains("tall.cu"), "{found:?}");
}
