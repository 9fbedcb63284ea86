//! What is fuzzed, as plain functions: each takes any bytes and panics if the program does what it must not do.
//!
//! `fuzz/libfuzzer` runs them under libFuzzer, which looks for bytes that reach new code. `fuzz/tests/mutated.rs` runs
//! the same functions on stable Rust, on seeds that [`mutate`] changes at random.

mod files;
pub mod tables;
pub mod binary;
pub mod models;
pub mod plan;
#[cfg(feature = "service")]
pub mod service;
pub mod agreement;
pub mod mutate;

/// Something that takes bytes from anywhere.
pub struct Target {
    /// What libFuzzer calls it.
    pub name: &'static str,
    /// Panics if something is wrong with what the program does with these bytes.
    pub run: fn(&[u8]),
    /// Small inputs that are sound, and those that were wrong once.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How often it runs in the tests, so that all of them take seconds.
    pub test_runs: u32,
}

/// All targets.
pub fn targets() -> Vec<Target> {
    let file = |name, run, seeds| target(name, run, seeds, 3000);
    vec![
        file("csv", tables::csv, tables::csv_seeds),
        file("json_lines", tables::json_lines, tables::json_lines_seeds),
        file("npy", binary::npy, binary::npy_seeds),
        file("npz", binary::npz, binary::npz_seeds),
        file("png", binary::png, binary::png_seeds),
        file("idx", binary::idx, binary::idx_seeds),
        file("norb", binary::norb, binary::norb_seeds),
        file("beside", binary::beside, binary::beside_seeds),
        file("sound", binary::sound, binary::sound_seeds),
        #[cfg(feature = "parquet")]
        file("parquet", tables::parquet, tables::parquet_seeds),
        target("model_file", models::model_file, models::model_seeds, 3000),
        target(
            "checkpoint",
            models::checkpoint,
            models::checkpoint_seeds,
            2000,
        ),
        target("plan", plan::plan, plan::seeds, 2000),
        #[cfg(feature = "service")]
        target("arrow", service::arrow, service::arrow_seeds, 2000),
        #[cfg(feature = "service")]
        target("http", service::http, service::http_seeds, 2000),
        target("agreement", agreement::agreement, agreement::seeds, 400),
    ]
}

fn target(
    name: &'static str,
    run: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    test_runs: u32,
) -> Target {
    Target {
        name,
        run,
        seeds,
        test_runs,
    }
}

/// The target of this name.
pub fn find(name: &str) -> Target {
    let found = targets().into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target '{name}'"))
}
