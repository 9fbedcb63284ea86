//! Whether a model fits into memory, asked before the work starts: a program that runs out of memory is ended without a
//! word that helps.

use crate::error::{Error, ErrorKind, Result};
use std::hint::black_box;
use sumout::Structure;

/// Numbers of 32 bits that training holds for each weight: the weight twice, its gradient, and the rule's two memories.
const NUMBERS_PER_WEIGHT: usize = 5;

/// Numbers of 32 bits that training holds for each channel of each node and row: the value and its gradient.
const NUMBERS_PER_CHANNEL: usize = 2;

/// An error if the memory for training a model of this structure, on batches of so many rows, is not there. It says what
/// would fit.
pub fn check_training(structure: &Structure, batch: usize) -> Result<()> {
    let bytes = bytes_needed(structure, batch);
    if is_free(bytes) {
        return Ok(());
    }
    let free = most_free(bytes);
    let [needed_gib, free_gib] = [bytes, free].map(|bytes| bytes as f64 / f64::from(1 << 30));
    let weights = structure.weights();
    let fitting = (weights as f64 * (free as f64 / bytes as f64)) as usize;
    let got = format!(
        "one of {weights} weights, which needs about {needed_gib:.1} GiB; {free_gib:.1} GiB are free, enough for some \
         {fitting} weights: a plan can have fewer components and channels"
    );
    let error = Error::expected(ErrorKind::Argument, "a model that fits into memory", got);
    Err(error)
}

/// Whether so many bytes can be had at once.
fn is_free(bytes: usize) -> bool {
    let mut asked: Vec<u8> = Vec::new();
    let is_free = asked.try_reserve_exact(bytes).is_ok();
    black_box(&asked); // so that the compiler does ask
    is_free
}

/// How many bytes can be had at once, to a hundredth of what is asked for.
fn most_free(asked: usize) -> usize {
    let hundredth = asked / 100;
    let mut shares = (1..100).rev().map(|share| share * hundredth);
    shares.find(|&bytes| is_free(bytes)).unwrap_or(0)
}

/// About as many bytes as training needs.
fn bytes_needed(structure: &Structure, batch: usize) -> usize {
    let levels = structure.trees.iter().flat_map(|tree| &tree.levels);
    let channels = levels.map(|level| level.children.len().saturating_mul(level.channels));
    let channels = channels.fold(0, usize::saturating_add);
    let of_rows = channels.saturating_mul(batch.saturating_mul(NUMBERS_PER_CHANNEL));
    let of_weights = structure.weights().saturating_mul(NUMBERS_PER_WEIGHT);
    of_weights
        .saturating_add(of_rows)
        .saturating_mul(size_of::<f32>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::structure::Kind;

    #[test]
    fn weights_and_rows_need_memory() {
        let table = Structure::table(&[Kind::Gaussian; 4])
            .window(4)
            .components(2);
        let structure = table.channels([8]).classes(2).build().unwrap();
        let weights = structure.weights();
        assert_eq!(bytes_needed(&structure, 16), 4 * (5 * weights + 2 * 16 * 8));
        assert_eq!(bytes_needed(&structure, usize::MAX), usize::MAX);
        check_training(&structure, 16).unwrap();
        let words = check_training(&structure, usize::MAX / 10_000);
        let words = words.unwrap_err().to_string();
        let start =
            format!("expected a model that fits into memory, got one of {weights} weights,");
        assert!(words.starts_with(&start), "{words}");
    }
}
