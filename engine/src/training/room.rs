//! Whether a model fits into memory, asked before the work starts: a program that runs out of memory is ended without a
//! word that helps.

use crate::arithmetic::matmul::padded;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::structure::{Structure, Tree};
use crate::training::settings::Settings;
use std::fs;
use std::hint::black_box;

/// Numbers of 32 bits that training holds for each weight: the weight twice, its gradient, and the rule's two memories.
const NUMBERS_PER_WEIGHT: usize = 5;

/// The same for each class of a row: its score twice as long, its probability, a derivative and a bound.
const NUMBERS_PER_CLASS: usize = 5;

/// An error if the memory for training a model of this structure is not there. It says what would fit.
pub fn check_memory(structure: &Structure, settings: &Settings, device: Device) -> Result<()> {
    check_all(&[structure], settings, device)
}

/// The same for a model whose trees are those of all these structures.
pub(crate) fn check_all(
    structures: &[&Structure],
    settings: &Settings,
    device: Device,
) -> Result<()> {
    let weights = structures.iter().map(|structure| structure.weights()).sum();
    let bytes = bytes_needed(structures, weights, settings, device);
    let limit = available().unwrap_or(usize::MAX);
    if bytes <= limit && is_free(bytes) {
        return Ok(());
    }
    let free = most_free(bytes.min(limit));
    let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    Err(Error::Memory {
        weights,
        needed: gib(bytes),
        free: gib(free),
        fitting: (weights as f64 * (free as f64 / bytes as f64)) as usize,
    })
}

/// Bytes that the system has for programs, and that a container still may have, as Linux says it.
fn available() -> Option<usize> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let of_system = number_after(&meminfo, "MemAvailable:").map(|kib| kib.saturating_mul(1024));
    [of_system, left_in_container()].into_iter().flatten().min()
}

/// What a container's limit leaves beside what its programs hold; what it keeps of files can be taken back.
fn left_in_container() -> Option<usize> {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    let held = fs::read_to_string("/sys/fs/cgroup/memory.stat").ok()?;
    let limit: usize = limit.trim().parse().ok()?; // "max" where there is none
    Some(limit.saturating_sub(number_after(&held, "anon")?))
}

/// The number behind a word that begins a line.
fn number_after(text: &str, word: &str) -> Option<usize> {
    let lines = text.lines().map(str::split_ascii_whitespace);
    let found = lines.map(|mut words| (words.next(), words.next()));
    let mut numbers = found.filter(|(first, _)| *first == Some(word));
    numbers.next()?.1?.parse().ok()
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
    let mut shares = (1..=100).rev().map(|share| share * hundredth);
    shares.find(|&bytes| is_free(bytes)).unwrap_or(0)
}

/// About as many bytes as training needs.
fn bytes_needed(
    structures: &[&Structure],
    weights: usize,
    settings: &Settings,
    device: Device,
) -> usize {
    let passes = 1 + usize::from(settings.target.is_some()); // rows with the target, and without it
    let rows = match device {
        Device::Cpu => passes.saturating_mul(settings.batch),
        Device::Cuda(_) => 0, // they are on the card
    };
    let ends = |model: &&Structure| model.width() + NUMBERS_PER_CLASS * model.classes;
    let of_ends = structures.first().map_or(0, ends); // the trees share columns and classes
    let trees = structures.iter().flat_map(|structure| &structure.trees);
    let of_trees = trees.map(|tree| per_row(tree, settings));
    let per_row = of_trees.fold(of_ends, usize::saturating_add);
    let of_weights = weights.saturating_mul(NUMBERS_PER_WEIGHT);
    of_weights
        .saturating_add(per_row.saturating_mul(rows))
        .saturating_mul(size_of::<f32>())
}

/// Numbers that a pass keeps of a row. Leaves whose inputs are summed out have none.
fn per_row(tree: &Tree, settings: &Settings) -> usize {
    let inputs = tree.positions.iter().map(|leaf| leaf.inputs.len());
    let inputs = inputs.sum::<usize>() as f64 / tree.nodes(0) as f64;
    let seen = 1.0 - settings.drop_inputs.powf(inputs);
    let of_leaves = (of_layer(tree, 0) as f64 * seen) as usize;
    let above = (1..=tree.levels.len()).map(|layer| of_layer(tree, layer));
    above.fold(of_leaves, usize::saturating_add)
}

/// Of each node its value and its derivative, and its mixed channels.
fn of_layer(tree: &Tree, layer: usize) -> usize {
    let mut of_node = 2 * padded(tree.channels(layer));
    if layer < tree.levels.len() {
        of_node += padded(tree.channels(layer + 1));
    }
    tree.nodes(layer).saturating_mul(of_node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Kind;

    #[test]
    fn weights_and_rows_need_memory() {
        let table = Structure::table(&[Kind::Gaussian; 4])
            .window(4)
            .components(2);
        let structure = table.channels([8]).classes(2).build().unwrap();
        let weights = structure.weights();
        let of_leaves = 4 * (2 * padded(2) + padded(8));
        let others = 4 + 2 * padded(8) + 5 * 2; // columns, the node above the leaves, classes
        let of = |batch, drop_inputs| Settings {
            batch,
            drop_inputs,
            ..Settings::default()
        };
        let needed = |settings, device| bytes_needed(&[&structure], weights, &settings, device);
        let whole = 5 * weights + 16 * (of_leaves + others);
        assert_eq!(needed(of(16, 0.0), Device::Cpu), 4 * whole);
        let holes = 5 * weights + 16 * (of_leaves / 2 + others);
        assert_eq!(needed(of(16, 0.5), Device::Cpu), 4 * holes);
        assert_eq!(needed(of(16, 0.5), Device::Cuda(0)), 4 * 5 * weights);
        assert_eq!(needed(of(usize::MAX, 0.0), Device::Cpu), usize::MAX);
        check_all(&[], &of(16, 0.0), Device::Cpu).unwrap(); // a fit that lost its model has no tree
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let table = Structure::table(&[Kind::Gaussian; 4]).components(2);
        let structure = table.channels([8]).classes(2).build().unwrap();
        let mut settings = Settings::default();
        check_memory(&structure, &settings, Device::Cpu).unwrap();
        settings.batch = usize::MAX / 10_000;
        let words = check_memory(&structure, &settings, Device::Cpu);
        let words = words.unwrap_err().to_string();
        let weights = structure.weights();
        let start =
            format!("expected a model that fits into memory, got one of {weights} weights,");
        assert!(words.starts_with(&start), "{words}");
        assert!(!words.contains(" 0.0 GiB are free"), "{words}");
        let words = check_all(&[&structure; 3], &settings, Device::Cpu);
        let words = words.unwrap_err().to_string();
        assert!(
            words.contains(&format!(" {} weights,", 3 * weights)),
            "{words}"
        );
    }

    #[test]
    fn what_linux_says() {
        let text = "MemTotal:       24000 kB\nMemAvailable:   23308 kB\nanon_thp 7\nanon 5\n";
        assert_eq!(number_after(text, "MemAvailable:"), Some(23_308));
        assert_eq!(number_after(text, "anon"), Some(5));
        assert_eq!(number_after("max\n", "anon"), None);
        #[cfg(target_os = "linux")]
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
