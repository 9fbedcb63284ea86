//! Files, functions and closures of this crate are short; so in the crates that have no tests in Rust.

#[path = "../../engine/tests/line_counts/mod.rs"]
mod line_counts;

#[test]
fn files_and_functions_are_short() {
    line_counts::check(env!("CARGO_MANIFEST_DIR"));
}

#[test]
fn so_in_the_glue_of_python_and_of_the_browser() {
    for of in ["python", "web"] {
        line_counts::check(&format!("{}/../{of}", env!("CARGO_MANIFEST_DIR")));
    }
}
