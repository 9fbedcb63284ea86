//! The target whose name this program has, under libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<sumout_fuzz::Target> =
    LazyLock::new(|| sumout_fuzz::find(env!("CARGO_BIN_NAME")));

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
