//! Training without the interpreter's lock, which is taken between its parts, and a few times a second while steps are
//! made, to tell how far it is and to hear Ctrl-C.

use crate::device::ready;
use crate::exception;
use crate::model::Model;
use crate::threads::pool;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::ThreadPool;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use sumout::device::{Device, Precision};
use sumout::model::About;
use sumout::recipes::images;
use sumout::recipes::presets::Preset;
use sumout::recipes::tables::{self, ColumnPlan};
use sumout::structure::{Kind, Structure};
use sumout::training::class_clusters::class_clusters;
use sumout::training::data::Data;
use sumout::training::leaf_init::{LeafStart, start_leaves};
use sumout::training::settings::Settings;
use sumout::training::trainer::{Proceed, Trainer};

/// How long Python is not heard.
const PATIENCE: Duration = Duration::from_millis(50);

/// From so many images on one tree is enough.
const MANY_IMAGES: usize = 1_000;

/// Trees that may stand side by side.
const MOST_TREES: usize = 1_000;

/// Learns a model from rows (n, width), labels (n; −1 is missing) and weights (n, or none).
///
/// `categories` says of each column how many there are, 0 for a number; `prior` is P(y), up to a factor. `plan` and
/// `settings` are JSON objects laid over what suits the data, `about` is the JSON of names.
/// `heard(step, steps, objective)` is called now and then.
#[pyfunction]
#[pyo3(signature = (values, labels, weights, categories, image_shape, prior, plan, settings, about, device, threads, heard))]
pub fn train(
    py: Python<'_>,
    values: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    categories: Vec<u32>,
    image_shape: Option<(usize, usize, usize)>,
    prior: Vec<f64>,
    plan: &str,
    settings: &str,
    about: &str,
    device: &str,
    threads: usize,
    heard: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let data = Data {
        values: values.as_slice()?,
        labels: labels.as_slice()?,
        weights: weights.as_slice()?,
    };
    let (pool, device) = (pool(threads)?, ready(device)?);
    let kind = |&count: &u32| {
        if count == 0 {
            Kind::Gaussian
        } else {
            Kind::Categorical(count)
        }
    };
    let kinds: Vec<Kind> = categories.iter().map(kind).collect();
    let about: About = parse(about)?;
    let (plan, changes): (Value, Value) = (parse(plan)?, parse(settings)?);
    let trees = trees_of(&plan, data.labels.len(), image_shape.is_some())?;
    let chosen =
        py.detach(|| pool.install(|| suit(&kinds, data.values, image_shape, prior.len(), &plan)))?;
    let settings = laid_over(&chosen.settings, &changes)?;
    let start = |tree: usize| -> PyResult<Trainer> {
        let settings = Settings {
            seed: settings.seed + tree as u64,
            ..settings.clone()
        };
        let mut model =
            sumout::Model::random(chosen.structure.clone(), settings.spread, settings.seed);
        (model.scaling, model.about) = (chosen.scaling.clone(), about.clone());
        model.about.training = history(data.labels.len(), &settings);
        model.set_prior(&prior).map_err(exception)?;
        data.check(&model).map_err(exception)?;
        start_leaves(&mut model, data.values, &settings.leaves, settings.seed);
        Trainer::with_model(model, settings).map_err(exception)
    };
    let beside = match image_shape {
        None if prior.len() > 1 => tables::clusters(&kinds, data.values),
        _ => None,
    };
    let together = beside.map(|leaves| {
        let finish = tables::finish(&settings, leaves);
        let generative = if changes.get("generative").is_some() {
            settings.generative
        } else {
            finish.generative
        };
        (
            leaves,
            Settings {
                seed: settings.seed + trees as u64,
                generative,
                ..finish
            },
        )
    });
    let of_trees = trees.saturating_mul(settings.steps);
    let all = of_trees.saturating_add(together.as_ref().map_or(0, |(_, finish)| finish.steps));
    let mut models = Vec::with_capacity(trees);
    for tree in 0..trees {
        let trainer = py.detach(|| pool.install(|| start(tree)))?;
        py.check_signals()?;
        let before = tree.saturating_mul(settings.steps);
        models.push(learn(
            py,
            trainer,
            &data,
            (device, &pool),
            heard.as_ref(),
            (before, all),
        )?);
    }
    let join = || side_by_side(models, &data, together.as_ref(), settings.seed);
    let mut model = py.detach(|| pool.install(join)).map_err(exception)?;
    py.check_signals()?;
    if let Some((_, finish)) = together {
        let trainer = pool
            .install(|| Trainer::with_model(model, finish))
            .map_err(exception)?;
        model = learn(
            py,
            trainer,
            &data,
            (device, &pool),
            heard.as_ref(),
            (of_trees, all),
        )?;
    }
    Model::new(model)?.on(device)
}

/// How many trees are trained: as the plan says, or as many as suit the rows.
fn trees_of(plan: &Value, rows: usize, images: bool) -> PyResult<usize> {
    let usual = if images && rows >= MANY_IMAGES {
        1
    } else {
        tables::trees(rows)
    };
    let trees = size(plan, "trees")?.unwrap_or(usual);
    let wrong =
        || PyValueError::new_err(format!("trees: expected at most {MOST_TREES}, got {trees}"));
    (trees <= MOST_TREES).then_some(trees).ok_or_else(wrong)
}

/// Trees as one model; beside them, with as much weight, clusters of every class, if those are wanted: their leaves, and
/// how all are to be trained on together.
fn side_by_side(
    trees: Vec<sumout::Model>,
    data: &Data<'_>,
    together: Option<&(LeafStart, Settings)>,
    seed: u64,
) -> sumout::Result<sumout::Model> {
    let mut trees = sumout::Model::mixture(trees)?;
    let Some((leaves, finish)) = together else {
        return Ok(trees);
    };
    trees.about.training["clusters"] = json!(leaves);
    trees.about.training["finish"] = json!(finish);
    let clusters = class_clusters(&trees, data, leaves, seed)?;
    sumout::Model::mixture(vec![trees, clusters])
}

/// Teaches a model more rows; it is not changed, a new one comes back. P(y) becomes `prior`.
#[pyfunction]
#[pyo3(signature = (model, values, labels, weights, prior, settings, device, threads, heard))]
pub fn go_on(
    py: Python<'_>,
    model: &Model,
    values: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    weights: PyReadonlyArray1<'_, f32>,
    prior: Vec<f64>,
    settings: &str,
    device: &str,
    threads: usize,
    heard: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let data = Data {
        values: values.as_slice()?,
        labels: labels.as_slice()?,
        weights: weights.as_slice()?,
    };
    let (mut model, pool, device) = (model.look(Clone::clone), pool(threads)?, ready(device)?);
    pool.install(|| data.check(&model)).map_err(exception)?;
    model.set_prior(&prior).map_err(exception)?;
    let mut suited = tables::settings(&model.structure.row_kinds(), data.values);
    let told = [
        &model.about.training["settings"]["leaves"],
        &model.about.training["clusters"],
    ];
    let narrowest = told
        .into_iter()
        .filter_map(|leaves| LeafStart::deserialize(leaves).ok());
    if let Some(leaves) = narrowest.min_by(|a, b| a.floor.total_cmp(&b.floor)) {
        suited.leaves = leaves; // a few rows do not make them wider
    }
    let settings = laid_over(&suited, &parse(settings)?)?;
    let steps = settings.steps;
    let trainer = pool
        .install(|| Trainer::with_model(model, settings))
        .map_err(exception)?;
    Model::new(learn(
        py,
        trainer,
        &data,
        (device, &pool),
        heard.as_ref(),
        (0, steps),
    )?)?
    .on(device)
}

/// Trains to the end; `before` steps of `all` were done by other runs, which are told as one.
fn learn(
    py: Python<'_>,
    mut trainer: Trainer,
    data: &Data<'_>,
    (device, pool): (Device, &ThreadPool),
    heard: Option<&Py<PyAny>>,
    (before, all): (usize, usize),
) -> PyResult<sumout::Model> {
    let Settings {
        steps, generative, ..
    } = *trainer.settings();
    let tell = |py: Python<'_>, step: usize, objective: f64| -> PyResult<()> {
        py.check_signals()?;
        let told = heard.map(|heard| heard.call1(py, (before + step, all, objective)));
        told.transpose().map(drop)
    };
    if device != Device::Cpu {
        return learn_on_card(py, trainer, data, device, tell);
    }
    while trainer.steps_done() < steps {
        let trainer = &mut trainer;
        let objective = py.detach(|| pool.install(|| some_steps(trainer, data, steps, generative)));
        tell(py, trainer.steps_done(), objective.map_err(exception)?)?;
    }
    Ok(trainer.into_model())
}

/// The same on a GPU, which is given the data once; signals are for this thread, so it is not one of the pool.
fn learn_on_card(
    py: Python<'_>,
    mut trainer: Trainer,
    data: &Data<'_>,
    device: Device,
    tell: impl Fn(Python<'_>, usize, f64) -> PyResult<()> + Sync,
) -> PyResult<sumout::Model> {
    let (mut told, mut failed) = (Instant::now(), Ok(()));
    let done = py.detach(|| {
        trainer.use_device(device, Precision::Tf32)?;
        trainer.run(data, None, &mut |_, progress| {
            if failed.is_ok() && (told.elapsed() > PATIENCE || progress.step == progress.steps) {
                failed = Python::attach(|py| tell(py, progress.step, progress.objective));
                told = Instant::now();
            }
            if failed.is_ok() {
                Proceed::Continue
            } else {
                Proceed::Stop
            }
        })?;
        Ok(trainer.into_model())
    });
    failed?;
    done.map_err(exception)
}

/// Steps for a moment; the last one's objective a row.
fn some_steps(
    trainer: &mut Trainer,
    data: &Data<'_>,
    steps: usize,
    generative: f64,
) -> sumout::Result<f64> {
    let started = Instant::now();
    loop {
        let loss = trainer.advance(data)?;
        if trainer.steps_done() == steps || started.elapsed() > PATIENCE {
            return Ok(loss.objective(generative));
        }
    }
}

/// Structure, settings and scaling that suit the data, but for the sizes that `plan` gives.
fn suit(
    kinds: &[Kind],
    values: &[f32],
    image_shape: Option<(usize, usize, usize)>,
    classes: usize,
    plan: &Value,
) -> PyResult<Preset> {
    let (components, channels) = (size(plan, "components")?, size(plan, "channels")?);
    if let Some(shape) = image_shape {
        let mut spec = images::spec(shape.0, shape.1, shape.2);
        spec.components = components.unwrap_or(spec.components);
        spec.levels
            .iter_mut()
            .for_each(|level| level.channels = channels.unwrap_or(level.channels));
        let structure = Structure::image(&spec, classes).map_err(exception)?;
        return Ok(Preset {
            structure,
            ..images::for_images(shape, values, classes).map_err(exception)?
        });
    }
    let rows = values.len() / kinds.len();
    let mut columns = ColumnPlan::for_rows(rows);
    columns.components = components.unwrap_or(columns.components);
    columns.channels = channels.map_or(columns.channels, |channels| vec![channels]);
    let structure = columns
        .structure(kinds, values, classes)
        .map_err(exception)?;
    Ok(Preset {
        structure,
        settings: tables::settings(kinds, values),
        scaling: tables::standardise(kinds, values),
    })
}

/// A size that `plan` gives, if it does.
fn size(plan: &Value, name: &str) -> PyResult<Option<usize>> {
    let Some(given) = plan.get(name) else {
        return Ok(None);
    };
    let size = given
        .as_u64()
        .filter(|&size| size > 0)
        .and_then(|size| usize::try_from(size).ok());
    let wrong = || {
        PyValueError::new_err(format!(
            "{name}: expected a whole number from 1, got {given}"
        ))
    };
    size.map(Some).ok_or_else(wrong)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Settings with some of them changed.
fn laid_over(base: &Settings, changes: &Value) -> PyResult<Settings> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let mut all = serde_json::to_value(base).map_err(wrong)?;
    for (key, value) in changes.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let settings: Settings = serde_json::from_value(all).map_err(wrong)?;
    settings.check().map_err(exception)?;
    Ok(settings)
}

/// What the model file tells of its training.
fn history(rows: usize, settings: &Settings) -> Value {
    json!({ "program": concat!("sumout ", env!("CARGO_PKG_VERSION"), " (Python)"), "rows": rows, "settings": settings })
}
