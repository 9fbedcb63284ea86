//! Stands in for LeNet where the feature `networks` is not built in.

use crate::mnist::Mnist;
use crate::plan::Plan;
use crate::results::Book;
use anyhow::{Result, bail};

/// Says what to build.
pub fn run(plan: &Plan, _: u64, _: &Mnist, _: &Book, _: usize) -> Result<()> {
    bail!(
        "{} needs networks: build with --features networks",
        plan.name
    )
}
