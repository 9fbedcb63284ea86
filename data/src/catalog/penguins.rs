//! The penguins that come with this crate: a small real table with holes. `penguins/README.md` says where they are from.

/// The table as CSV, with a line of names.
pub const CSV: &str = include_str!("../../penguins/penguins.csv");
