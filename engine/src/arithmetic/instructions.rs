//! Which instructions the engine uses: the best that this machine has, or fewer where a variable of the environment says so.
//!
//! One program runs on every machine of its kind; what differs is chosen when it starts. `SUMOUT_INSTRUCTIONS` is for
//! tests of the slower ways: `plain`, `avx2` or `avx512`; anything else is as if it were not set.

use pulp::Arch;
use std::env;
use std::sync::OnceLock;

const VARIABLE: &str = "SUMOUT_INSTRUCTIONS";

/// Sets of instructions, each with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instructions {
    /// Those that every machine has.
    Plain,
    /// Vectors of 8 numbers.
    Avx2,
    /// Vectors of 16 numbers.
    Avx512,
    /// Tiles, and whatever else there is.
    All,
}

/// The most that may be used.
pub(crate) fn allowed() -> Instructions {
    static ALLOWED: OnceLock<Instructions> = OnceLock::new();
    *ALLOWED.get_or_init(|| match env::var(VARIABLE).as_deref() {
        Ok("plain") => Instructions::Plain,
        Ok("avx2") => Instructions::Avx2,
        Ok("avx512") => Instructions::Avx512,
        _ => Instructions::All,
    })
}

/// The vectors that are used.
pub fn arch() -> Arch {
    match allowed() {
        Instructions::Plain => Arch::Scalar,
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3),
        _ => Arch::new(),
    }
}
