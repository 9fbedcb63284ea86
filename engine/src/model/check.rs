//! What makes a model one that can answer: shapes, distributions, finite numbers, names.

use crate::error::Result;
use crate::layers::leaf::{Coordinate, Factors, Family, MAX_RANK, values_of};
use crate::layers::mixing::Mixing;
use crate::model::tensor_file::wrong;
use crate::model::{About, ColumnRange, Model};
use crate::structure::{ClassRows, Kind, Structure};

/// log σ of a leaf lies within ± this, where σ and 1/σ are numbers of f32.
pub const LOG_SIGMA_LIMIT: f32 = 80.0;

/// Loadings of factors lie within ± this, so that sums of their squares stay numbers.
const LARGEST_LOADING: f32 = 1e18;

/// Says what is wrong with a model that cannot answer questions: sizes that differ from the blueprint's, numbers that are
/// none. A logit of −∞ is a weight of exactly zero; a whole row of them is no distribution.
pub fn check(model: &Model) -> Result<()> {
    let (structure, weights) = (&model.structure, &model.weights);
    structure.check()?;
    model.scaling.check(structure.width()).map_err(wrong)?;
    check_bends(model)?;
    check_prior(&model.log_prior, structure.classes)?;
    check_about(&model.about, structure)?;
    let shape = [1, structure.classes, structure.root_channels()];
    check_mixing("classes.logits", &weights.classes, shape)?;
    if structure.class_rows == ClassRows::Identity {
        let off_diagonal = |i: &usize| i / structure.classes != i % structure.classes;
        let weight = |i: usize| {
            weights
                .classes
                .logit(0, i / structure.classes, i % structure.classes)
        };
        if (0..structure.classes * structure.classes)
            .filter(off_diagonal)
            .any(|i| weight(i) != f32::NEG_INFINITY)
        {
            return Err(wrong("classes.logits: expected the identity"));
        }
    }
    if weights.trees.len() != structure.trees.len() {
        return Err(wrong(format!(
            "expected weights of {} trees, got {}",
            structure.trees.len(),
            weights.trees.len()
        )));
    }
    for (t, (tree, blueprint)) in weights.trees.iter().zip(&structure.trees).enumerate() {
        let expected = (blueprint.families.len(), blueprint.levels.len());
        if (tree.families.len(), tree.levels.len()) != expected {
            return Err(wrong(format!(
                "tree{t}: expected {} families and {} levels",
                expected.0, expected.1
            )));
        }
        for (f, (family, kinds)) in tree.families.iter().zip(&blueprint.families).enumerate() {
            check_family(family, kinds, blueprint.components)
                .map_err(|text| wrong(format!("tree{t}.leaves, family {f}: {text}")))?;
        }
        for (l, mixing) in tree.levels.iter().enumerate() {
            let shape = [
                blueprint.levels[l].matrices(),
                blueprint.channels(l + 1),
                blueprint.channels(l),
            ];
            check_mixing(&format!("tree{t}.level{}.logits", l + 1), mixing, shape)?;
        }
    }
    Ok(())
}

/// Bounds and curves are for columns of numbers in tables.
fn check_bends(model: &Model) -> Result<()> {
    let structure = &model.structure;
    let is_bent = !(model.scaling.ranges.is_empty() && model.scaling.curves.is_empty());
    if structure.frame.is_some() && is_bent {
        return Err(wrong("bounds or curves: expected a table, got images"));
    }
    for (column, kind) in structure.row_kinds().into_iter().enumerate() {
        if model.scaling.curve_of(column).is_some() && kind != Kind::Gaussian {
            let what = format!("curves: column {column} is {kind:?}, expected numbers");
            return Err(wrong(what));
        }
    }
    for (column, (range, &kind)) in model
        .scaling
        .ranges
        .iter()
        .zip(&structure.row_kinds())
        .enumerate()
    {
        if *range != ColumnRange::default() && kind != Kind::Gaussian {
            return Err(wrong(format!(
                "bounds: column {column} is {kind:?}, expected numbers"
            )));
        }
    }
    Ok(())
}

fn check_prior(log_prior: &[f64], classes: usize) -> Result<()> {
    let total: f64 = log_prior.iter().map(|log| log.exp()).sum();
    if log_prior.len() != classes || (total - 1.0).abs() > 1e-4 || total.is_nan() {
        let got = log_prior.len();
        return Err(wrong(format!(
            "log_prior: expected {classes} numbers that sum to 1, got {got} with a sum of {total}"
        )));
    }
    Ok(())
}

/// Names are all there, or none.
fn check_about(about: &About, structure: &Structure) -> Result<()> {
    let lists = [
        ("classes", about.classes.len(), structure.classes),
        ("columns", about.columns.len(), structure.width()),
        ("categories", about.categories.len(), structure.width()),
    ];
    if let Some((what, got, expected)) = lists
        .iter()
        .find(|(_, got, expected)| *got != 0 && got != expected)
    {
        return Err(wrong(format!(
            "names of {what}: expected {expected} or none, got {got}"
        )));
    }
    for (column, (names, &kind)) in about
        .categories
        .iter()
        .zip(&structure.row_kinds())
        .enumerate()
    {
        if !names.is_empty() && Some(names.len()) != values_of(kind) {
            return Err(wrong(format!(
                "names of categories: column {column} is {kind:?}, got {} names",
                names.len()
            )));
        }
    }
    Ok(())
}

fn check_mixing(name: &str, mixing: &Mixing, shape: [usize; 3]) -> Result<()> {
    let [matrices, rows, columns] = shape;
    if [mixing.matrices, mixing.rows, mixing.columns] != shape
        || mixing.logits.len() != matrices * mixing.matrix_len()
    {
        return Err(wrong(format!("{name}: expected shape {shape:?}")));
    }
    for (matrix, c) in (0..matrices).flat_map(|matrix| (0..rows).map(move |c| (matrix, c))) {
        if !is_distribution((0..columns).map(|a| mixing.logit(matrix, c, a))) {
            return Err(wrong(format!(
                "{name}: row {c} of matrix {matrix} is no distribution"
            )));
        }
    }
    Ok(())
}

/// Whether a softmax of these logits exists.
fn is_distribution(mut logits: impl Iterator<Item = f32>) -> bool {
    let mut some = false;
    let none_wrong = logits.all(|logit| {
        some |= logit.is_finite();
        logit < f32::INFINITY // not if NaN
    });
    none_wrong && some
}

fn check_family(family: &Family, kinds: &[Kind], m: usize) -> std::result::Result<(), String> {
    if family.components != m || family.coordinates.len() != kinds.len() {
        return Err(format!(
            "expected {m} components of {} coordinates",
            kinds.len()
        ));
    }
    for (s, (coordinate, &kind)) in family.coordinates.iter().zip(kinds).enumerate() {
        let wrong = match (coordinate, values_of(kind)) {
            (Coordinate::Gaussian { mean, log_sigma }, None)
                if (mean.len(), log_sigma.len()) == (m, m) =>
            {
                let is_number =
                    |d: &usize| mean[*d].is_finite() && log_sigma[*d].abs() <= LOG_SIGMA_LIMIT;
                (0..m).find(|d| !is_number(d))
            }
            (Coordinate::Discrete { logits }, Some(values)) if logits.len() == values * m => {
                (0..m).find(|&d| !is_distribution(logits.iter().skip(d).step_by(m).copied()))
            }
            _ => {
                return Err(format!(
                    "coordinate {s}: expected {m} components of {kind:?}"
                ));
            }
        };
        if let Some(d) = wrong {
            return Err(format!("coordinate {s}: component {d} is no distribution"));
        }
    }
    family
        .factors
        .as_ref()
        .map_or(Ok(()), |factors| check_factors(factors, kinds, m))
}

/// Loadings are there for every coordinate, small enough, and 0 where it is discrete.
fn check_factors(factors: &Factors, kinds: &[Kind], m: usize) -> std::result::Result<(), String> {
    let (rank, loadings) = (factors.rank, &factors.loadings);
    let most = MAX_RANK.min(kinds.len()); // more would say nothing more
    if !(1..=most).contains(&rank) || loadings.len() != kinds.len() * rank * m {
        return Err(format!("factors: expected 1 to {most} for {m} components"));
    }
    for (s, (kind, loadings)) in kinds
        .iter()
        .zip(loadings.chunks_exact(rank * m))
        .enumerate()
    {
        let largest = if *kind == Kind::Gaussian {
            LARGEST_LOADING
        } else {
            0.0
        };
        if !loadings.iter().all(|loading| loading.abs() <= largest) {
            return Err(format!(
                "factors: coordinate {s} has a loading beyond ±{largest}"
            ));
        }
    }
    Ok(())
}
