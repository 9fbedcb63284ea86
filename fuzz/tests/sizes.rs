//! Files and functions of this crate are short.

#[path = "../../engine/tests/line_counts/mod.rs"]
mod line_counts;

#[test]
fn files_and_functions_are_short() {
    line_counts::check(env!("CARGO_MANIFEST_DIR"));
}
