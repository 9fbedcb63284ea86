//! Every target on its seeds, and on seeds that were changed at random. `SUMOUT_FUZZ_RUNS` multiplies how often.

use std::panic::{AssertUnwindSafe, catch_unwind};
use sumout_fuzz::mutate::mutated;
use sumout_fuzz::{Target, find, targets};

/// Runs a target once; what fails is shown as bytes that can be given to it again.
fn run(target: &Target, bytes: &[u8]) {
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    assert!(
        result.is_ok(),
        "{} failed on b\"{}\"",
        target.name,
        bytes.escape_ascii()
    );
}

fn fuzz(name: &str) {
    let target = find(name);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| run(&target, seed));
    let times =
        std::env::var("SUMOUT_FUZZ_RUNS").map_or(1, |times| times.parse().expect("a number"));
    for number in 0..u64::from(target.test_runs * times) {
        run(&target, &mutated(&seeds, number));
    }
}

macro_rules! fuzzed {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                fuzz(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert!(targets().iter().all(|target| run.contains(&target.name)));
        }
    };
}

fuzzed!(
    csv,
    json_lines,
    npy,
    npz,
    png,
    idx,
    norb,
    beside,
    sound,
    #[cfg(feature = "parquet")]
    parquet,
    model_file,
    checkpoint,
    plan,
    #[cfg(feature = "service")]
    arrow,
    #[cfg(feature = "service")]
    http,
    agreement,
);
