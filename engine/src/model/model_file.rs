//! The model file: one safetensors file (`.sumout`), tensors plus one JSON text in its metadata (`docs/model-file.md`).
//!
//! ```text
//! log_prior              (K) f64                 log P(y)
//! scaling.offset, .scale (1) or (width)          z = (w(x) − offset) · scale; w is in `column_range.rs`, `curve.rs`
//! curves.x, .y (knots of all columns)             of those with a curve; how many each has is in the JSON text
//! classes.logits         (K, tops of all trees)  W_top = softmax over the last axis; f32, or f16 in a small file
//! tree0.level1.logits    (matrices, C, A)        W     = softmax over the last axis; f32, or f16 in a small file
//! tree0.leaves.mean      (coordinates, M)        Gaussian coordinates, family after family; log_sigma likewise
//! tree0.leaves0.loadings (coordinates, R, M)     factors of the first family, where it has them
//! tree0.leaves.logits    (values, M)             discrete coordinates, V rows each; softmax over those rows
//! state.NAME             (n) f32 or f64          only in training checkpoints
//! ```
//!
//! Bytes from anywhere give a model that [`check`] accepts, or an error that says what is wrong. Every size that the
//! text names is compared with the tensors before anything of that size is made, so memory is bounded by the file.
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! use sumout::Model;
//! let sequence = Structure::sequence(8).patch(2).components(3).classes(2);
//! let structure = sequence.level(2, 4, Sharing::Shared).level(2, 5, Sharing::Own).build()?;
//! let model = Model::random(structure, 1.0, 7);
//! let bytes = model.to_bytes()?;
//! assert_eq!(Model::from_bytes(&bytes)?, model);
//! assert!(Model::from_bytes(&bytes[..100]).is_err());
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::layers::leaf::{Coordinate, Family, values_of};
use crate::layers::weights::{TreeWeights, Weights};
use crate::model::check::check;
use crate::model::factors_tensor::{insert_factors, take_factors};
use crate::model::logits_tensor::{Logits, logits_in_rows, mixing_from};
use crate::model::tensor_file::{self, Tensor, Tensors, wrong};
use crate::model::{About, ColumnRange, Curve, Model, Scaling};
use crate::structure::{Kind, Structure, Tree};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The format version that this build writes and reads.
pub const VERSION: u32 = 1;

const STATE: &str = "state.";

/// The parts of a training checkpoint: what a trainer needs to go on to the same bits. The file also opens as a plain
/// model.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The model so far.
    pub model: Model,
    /// Settings and counters. JSON keeps whole numbers exactly; numbers whose every bit counts go to `doubles`.
    pub state: Value,
    /// Moments and the like, by name.
    pub tensors: BTreeMap<String, Vec<f32>>,
    /// Numbers of double precision, by other names.
    pub doubles: BTreeMap<String, Vec<f64>>,
}

/// The JSON text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    structure: Structure,
    about: About,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<ColumnRange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    knots: Vec<usize>, // of the curve of each column
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    state: Option<Value>,
}

/// All of the header that other versions have too.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

/// A `null` that is there is not the same as nothing.
fn present<'de, D: Deserializer<'de>>(source: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(source).map(Some)
}

/// The file of a model.
pub fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    write(model, None, model_tensors(model, Logits::Single)?)
}

/// The file of a model with mixing weights of 16 bits.
pub fn to_small_bytes(model: &Model) -> Result<Vec<u8>> {
    write(model, None, model_tensors(model, Logits::Half)?)
}

/// The model of a file, checked.
pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
    read(bytes).map(|(model, _, _)| model)
}

/// The file of a model in training.
pub fn checkpoint_to_bytes(checkpoint: &Parts) -> Result<Vec<u8>> {
    let mut tensors = model_tensors(&checkpoint.model, Logits::Single)?;
    for (name, values) in &checkpoint.tensors {
        tensors.insert(
            format!("{STATE}{name}"),
            Tensor::floats(&[values.len()], values.iter().copied()),
        );
    }
    for (name, values) in &checkpoint.doubles {
        if tensors
            .insert(format!("{STATE}{name}"), Tensor::doubles(values))
            .is_some()
        {
            return Err(wrong(format!(
                "two tensors of the state are called '{name}'"
            )));
        }
    }
    write(&checkpoint.model, Some(checkpoint.state.clone()), tensors)
}

/// The model in training of a file; an error for a plain model.
pub fn checkpoint_from_bytes(bytes: &[u8]) -> Result<Parts> {
    let (model, state, mut left) = read(bytes)?;
    let state = state.ok_or_else(|| {
        wrong("expected a training checkpoint, got a model without training state")
    })?;
    let mut checkpoint = Parts {
        model,
        state,
        tensors: BTreeMap::new(),
        doubles: BTreeMap::new(),
    };
    let names: Vec<(String, bool)> = left
        .left()
        .map(|(name, is_double)| (name.to_string(), is_double))
        .collect();
    for (name, is_double) in names {
        let short = name.strip_prefix(STATE).unwrap_or(&name).to_string();
        if is_double {
            checkpoint.doubles.insert(short, left.doubles(&name, None)?);
        } else {
            checkpoint.tensors.insert(short, left.floats(&name, None)?);
        }
    }
    Ok(checkpoint)
}

fn write(
    model: &Model,
    state: Option<Value>,
    tensors: BTreeMap<String, Tensor>,
) -> Result<Vec<u8>> {
    let header = Header {
        version: VERSION,
        structure: model.structure.clone(),
        about: model.about.clone(),
        ranges: model.scaling.ranges.clone(),
        knots: model.scaling.curves.iter().map(|c| c.x.len()).collect(),
        state,
    };
    let text = serde_json::to_string(&header).map_err(wrong)?;
    parse_header(&text)?; // a text that could not be read again, such as one nested too deeply, is not written
    tensor_file::write(tensors, &text)
}

/// All tensors of a model, which is checked first.
fn model_tensors(model: &Model, bits: Logits) -> Result<BTreeMap<String, Tensor>> {
    check(model)?;
    let mut tensors = BTreeMap::new();
    tensors.insert("log_prior".into(), Tensor::doubles(&model.log_prior));
    for (name, values) in [
        ("offset", &model.scaling.offset),
        ("scale", &model.scaling.scale),
    ] {
        tensors.insert(
            format!("scaling.{name}"),
            Tensor::floats(&[values.len()], values.iter().copied()),
        );
    }
    let curves = &model.scaling.curves;
    if !curves.is_empty() {
        let x: Vec<f32> = curves.iter().flat_map(|c| &c.x).copied().collect();
        let y: Vec<f32> = curves.iter().flat_map(|c| &c.y).copied().collect();
        for (name, knots) in [("x", x), ("y", y)] {
            let tensor = Tensor::floats(&[knots.len()], knots.into_iter());
            tensors.insert(format!("curves.{name}"), tensor);
        }
    }
    let classes = &model.weights.classes;
    tensors.insert(
        "classes.logits".into(),
        logits_in_rows(&[classes.rows, classes.columns], classes, bits),
    );
    for (t, (tree, blueprint)) in model
        .weights
        .trees
        .iter()
        .zip(&model.structure.trees)
        .enumerate()
    {
        for (name, values) in leaf_rows(tree)
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
        {
            let shape = [values.len() / blueprint.components, blueprint.components];
            tensors.insert(
                format!("tree{t}.leaves.{name}"),
                Tensor::floats(&shape, values.into_iter()),
            );
        }
        insert_factors(t, tree, &mut tensors);
        for (l, mixing) in tree.levels.iter().enumerate() {
            let shape = [mixing.matrices, mixing.rows, mixing.columns];
            tensors.insert(
                format!("tree{t}.level{}.logits", l + 1),
                logits_in_rows(&shape, mixing, bits),
            );
        }
    }
    Ok(tensors)
}

/// The curves of the columns, whose knots stand one after the other.
fn read_curves(tensors: &mut Tensors<'_>, knots: &[usize]) -> Result<Vec<Curve>> {
    if knots.is_empty() {
        return Ok(Vec::new());
    }
    let all = knots
        .iter()
        .try_fold(0usize, |sum, &count| sum.checked_add(count));
    let all = all.ok_or_else(|| wrong("knots: too many"))?;
    let x = tensors.floats("curves.x", Some(&[all]))?;
    let y = tensors.floats("curves.y", Some(&[all]))?;
    let (mut from, mut curves) = (0, Vec::new());
    for count in knots {
        let part = from..from + count;
        from = part.end;
        curves.push(Curve {
            x: x[part.clone()].to_vec(),
            y: y[part].to_vec(),
        });
    }
    Ok(curves)
}

/// The leaves of a tree stacked, family after family and coordinate after coordinate, each (rows, M).
fn leaf_rows(tree: &TreeWeights) -> [(&'static str, Vec<f32>); 3] {
    let (mut means, mut log_sigmas, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for coordinate in tree.families.iter().flat_map(|family| &family.coordinates) {
        match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => {
                means.extend_from_slice(mean);
                log_sigmas.extend_from_slice(log_sigma);
            }
            Coordinate::Discrete { logits } => tables.extend_from_slice(logits),
        }
    }
    [
        ("mean", means),
        ("log_sigma", log_sigmas),
        ("logits", tables),
    ]
}

fn parse_header(text: &str) -> Result<Header> {
    let explain = |e: serde_json::Error| wrong(format!("metadata: {e}"));
    let AnyVersion { version } = serde_json::from_str(text).map_err(explain)?;
    if version != VERSION {
        return Err(Error::Version {
            expected: VERSION,
            got: version,
        });
    }
    serde_json::from_str(text).map_err(explain)
}

/// The model, the state if there is one, and the state's tensors.
fn read(bytes: &[u8]) -> Result<(Model, Option<Value>, Tensors<'_>)> {
    let mut tensors = Tensors::open(bytes)?;
    let Header {
        structure,
        about,
        ranges,
        knots,
        state,
        ..
    } = parse_header(&tensors.text)?;
    structure.check()?;
    let (k, tops) = (structure.classes, structure.root_channels());
    let classes = mixing_from(
        tensors.floats_or_halves("classes.logits", &[k, tops])?,
        [1, k, tops],
    );
    let trees = structure
        .trees
        .iter()
        .enumerate()
        .map(|(t, tree)| read_tree(&mut tensors, t, tree));
    let weights = Weights {
        trees: trees.collect::<Result<_>>()?,
        classes,
    };
    let log_prior = tensors.doubles("log_prior", Some(&[k]))?;
    let scaling = Scaling {
        offset: tensors.floats("scaling.offset", None)?,
        scale: tensors.floats("scaling.scale", None)?,
        ranges,
        curves: read_curves(&mut tensors, &knots)?,
    };
    if let Some((name, _)) = tensors
        .left()
        .find(|(name, _)| state.is_none() || !name.starts_with(STATE))
    {
        return Err(wrong(format!(
            "tensor '{name}' has no place in this structure"
        )));
    }
    let model = Model {
        structure,
        weights,
        log_prior,
        scaling,
        about,
    };
    check(&model)?;
    if tensors.damaged {
        return Err(wrong("its checksum is another one: the file is damaged"));
    }
    Ok((model, state, tensors))
}

fn read_tree(tensors: &mut Tensors<'_>, t: usize, tree: &Tree) -> Result<TreeWeights> {
    let m = tree.components;
    let values: Vec<Option<usize>> = tree
        .families
        .iter()
        .flatten()
        .map(|&kind| values_of(kind))
        .collect();
    let mut leaves = |name: &str, rows: usize| match rows {
        0 => Ok(Vec::new().into_iter()),
        _ => tensors
            .floats(&format!("tree{t}.leaves.{name}"), Some(&[rows, m]))
            .map(Vec::into_iter),
    };
    let gaussians = values.iter().filter(|values| values.is_none()).count();
    let mut means = leaves("mean", gaussians)?;
    let mut log_sigmas = leaves("log_sigma", gaussians)?;
    let mut tables = leaves("logits", values.into_iter().flatten().sum())?;
    let mut coordinate = |&kind: &Kind| match values_of(kind) {
        None => Coordinate::Gaussian {
            mean: means.by_ref().take(m).collect(),
            log_sigma: log_sigmas.by_ref().take(m).collect(),
        },
        Some(values) => Coordinate::Discrete {
            logits: tables.by_ref().take(values * m).collect(),
        },
    };
    let mut families = Vec::with_capacity(tree.families.len());
    for kinds in &tree.families {
        families.push(Family {
            components: m,
            coordinates: kinds.iter().map(&mut coordinate).collect(),
            factors: None,
        });
    }
    for (f, family) in families.iter_mut().enumerate() {
        family.factors = take_factors(tensors, (t, f), family)?;
    }
    let mut levels = Vec::with_capacity(tree.levels.len());
    for l in 1..=tree.levels.len() {
        let shape = [
            tree.levels[l - 1].matrices(),
            tree.channels(l),
            tree.channels(l - 1),
        ];
        let logits = tensors.floats_or_halves(&format!("tree{t}.level{l}.logits"), &shape)?;
        levels.push(mixing_from(logits, shape));
    }
    Ok(TreeWeights { families, levels })
}
