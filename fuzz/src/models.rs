//! Model files and checkpoints. What opens is a model that works; what does not is an error.
//!
//! A file is its bytes, or, so that a fuzzer need not guess the length of the header, the header as one line of text and
//! then the data.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use sumout::internals::Factors;
use sumout::model::{ColumnRange, Curve};
use sumout::recipes::{Fit, FitProgress, Fitting, Rounds};
use sumout::structure::{Kind, Structure};
use sumout::training::{Checkpoint, Data};
use sumout::{Error, Model, Predictor, Rows};

/// A model over age (a number), sex (f, m), coin (0 or 1) and a category without names, for two classes.
pub fn pets() -> Model {
    let kinds = [
        Kind::Gaussian,
        Kind::Categorical(2),
        Kind::Bernoulli,
        Kind::Categorical(3),
    ];
    let table = Structure::table(&kinds).window(2).components(2);
    let structure = table.channels([3]).classes(2).build();
    let mut model = Model::random(structure.expect("a structure"), 1.0, 1);
    model.about.columns = ["age", "sex", "coin", "kind"].map(str::to_owned).to_vec();
    model.about.categories = vec![vec![], vec!["f".into(), "m".into()], vec![], vec![]];
    model.about.classes = vec!["no".into(), "yes".into()];
    model
}

/// The bytes of a file.
fn file_of(bytes: &[u8]) -> Vec<u8> {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) if bytes.starts_with(b"{") => {
            let length = (end as u64).to_le_bytes();
            [&length, &bytes[..end], &bytes[end + 1..]].concat()
        }
        _ => bytes.to_vec(),
    }
}

/// A file with its header as a line of text, and without its checksum, which no change would survive.
fn as_text(file: &[u8]) -> Vec<u8> {
    let (length, rest) = file.split_first_chunk().expect("eight bytes");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header = String::from_utf8_lossy(header);
    // {"__metadata__":{"sumout":"{\"checksum\":\"…\",\"…
    let (before, after) = header.split_once("{\\\"").expect("a text");
    let (checksum, after) = after.split_once(",\\\"").expect("more than a checksum");
    assert!(checksum.starts_with("checksum"), "{checksum}");
    [format!("{before}{{\\\"{after}\n").as_bytes(), data].concat()
}

/// Rows that a model takes: one with a hole in every second place, one with nothing else, one of zeros.
fn rows_of(model: &Model) -> Vec<f32> {
    let width = model.structure.width();
    let hole = |place: usize| place / width == 1 || (place < width && place % 2 == 1);
    let number = |place| if hole(place) { f32::NAN } else { 0.0 };
    (0..3 * width).map(number).collect()
}

fn check_works(model: Model) {
    model.check().expect("what opens is sound");
    let bytes = model.to_bytes().expect("what opens can be written");
    let again = Model::from_bytes(&bytes).expect("what is written opens");
    assert_eq!(again.to_bytes().expect("the same"), bytes);
    let values = rows_of(&model);
    let mut predictor = Predictor::new(model).expect("a sound model answers");
    let width = predictor.model().structure.width();
    let rows = Rows::new(&values, width).expect("rows");
    // Zero may be out of the bounds of a column.
    let Ok(posterior) = predictor.posterior(rows) else {
        return;
    };
    assert!(posterior.as_slice().iter().all(|p| (0.0..=1.0).contains(p)));
    let nothing = vec![f32::NAN; width];
    let nothing = Rows::new(&nothing, width).expect("a row");
    let log = predictor.log_marginal(nothing).expect("nothing is known");
    assert!(log[0].abs() < 1e-6, "all is summed out: {log:?}");
    predictor.impute_mean(nothing, None).expect("a mean");
}

fn check_refused(error: &Error) {
    assert!(!error.to_string().is_empty());
}

/// A model file.
pub fn model_file(bytes: &[u8]) {
    match Model::from_bytes(&file_of(bytes)) {
        Ok(model) => check_works(model),
        Err(error) => check_refused(&error),
    }
}

/// Two numbers that depend on each other.
fn correlated() -> Model {
    let table = Structure::table(&[Kind::Gaussian; 2]).groups([vec![0, 1]]);
    let structure = table.components(2).channels([2]).classes(2).build();
    let mut model = Model::random(structure.expect("a structure"), 1.0, 1);
    let loadings = vec![0.5, -1.0, 2.0, 0.0];
    let family = &mut model.weights.trees[0].families[0];
    family.factors = Some(Factors { rank: 1, loadings });
    model
}

/// Three numbers: one with a curve, a whole one between bounds, and one with a lower bound.
fn bent() -> Model {
    let table = Structure::table(&[Kind::Gaussian; 3]).components(2);
    let structure = table.channels([2]).classes(2).build();
    let mut model = Model::random(structure.expect("a structure"), 1.0, 1);
    let curve = Curve {
        x: vec![-1.0, 0.0, 2.0],
        y: vec![-2.0, 0.0, 1.0],
    };
    let between = ColumnRange {
        low: Some(-1.0),
        high: Some(9.0),
        whole: true,
        margin: 0.5,
    };
    let above = ColumnRange {
        high: None,
        whole: false,
        ..between
    };
    model.scaling.curves = vec![curve, Curve::default(), Curve::default()];
    model.scaling.ranges = vec![ColumnRange::default(), between, above];
    model
}

/// A small model as it is, in half precision, and as text; one with factors, one with a curve and bounds.
pub fn model_seeds() -> Vec<Vec<u8>> {
    let model = pets();
    let file = model.to_bytes().expect("bytes");
    let small = model.to_small_bytes().expect("bytes");
    let factors = correlated().to_bytes().expect("bytes");
    let bent = bent().to_bytes().expect("bytes");
    vec![
        as_text(&file),
        as_text(&small),
        as_text(&factors),
        as_text(&bent),
        file,
        factors,
        bent,
    ]
}

/// The rows and labels that checkpoints of the seeds are of.
const VALUES: [f32; 12] = [
    0.9,
    1.1,
    1.2,
    f32::NAN,
    f32::NAN,
    0.8,
    -1.0,
    -0.9,
    -1.2,
    f32::NAN,
    f32::NAN,
    -1.1,
];

fn data(values: &[f32], width: usize) -> Option<Data<'_>> {
    let labels = [0, 0, 0, 1, 1, 1].map(Some);
    Some(Data::new(Rows::new(values, width).ok()?, &labels))
}

/// A checkpoint: what opens goes on for a step, or says why not.
pub fn checkpoint(bytes: &[u8]) {
    let bytes = file_of(bytes);
    let checkpoint = match Checkpoint::from_bytes(&bytes) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return check_refused(&error),
    };
    checkpoint.steps_done();
    check_works(checkpoint.model().clone());
    if checkpoint.is_of_rounds() {
        if let Err(error) = Rounds::resume(checkpoint) {
            check_refused(&error);
        }
        return;
    }
    let settings = checkpoint.settings();
    if settings.batch > 1000 || checkpoint.model().structure.width() != 2 {
        return; // work in proportion to what is asked for, and other rows than these
    }
    let Some(data) = data(&VALUES, 2) else {
        return;
    };
    let gone_on = Fitting::resume(checkpoint, data, None).and_then(|mut fitting| {
        fitting.run_with(|_: &FitProgress| ControlFlow::Break(()))?;
        fitting.checkpoint()
    });
    if let Err(error) = gone_on {
        check_refused(&error);
    }
}

/// Breaks off at a step.
fn until(step: usize, progress: &FitProgress) -> ControlFlow<()> {
    if progress.step == step {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// A checkpoint that does not say how good its best step is.
fn without_best_score(mut file: Vec<u8>) -> Vec<u8> {
    let name = b"best_score";
    let mut parts = file.windows(name.len());
    let at = parts.position(|part| part == name).expect("a score");
    file[at] = b'r';
    file
}

/// The state of a small fit in its first steps and near its end, and of one that remembers its best step.
pub fn checkpoint_seeds() -> Vec<Vec<u8>> {
    let rows = || data(&VALUES, 2).expect("rows");
    let often = BTreeMap::from([("validate_every", 1)]);
    let mut seeds = Vec::new();
    for (stop, is_validated) in [(3, false), (25, false), (3, true), (14, true)] {
        let fit = Fit::new().steps(10).trees(2);
        let fit = fit.settings(&often).expect("settings");
        let mut fitting = fit.start(rows()).expect("a fit");
        if is_validated {
            fitting.validate_on(rows()).expect("rows");
        }
        fitting.run_with(|at| until(stop, at)).expect("steps");
        if let Ok(file) = fitting.checkpoint() {
            seeds.push(as_text(&file));
            if is_validated {
                seeds.push(without_best_score(as_text(&file)));
            }
            seeds.push(file);
        }
    }
    seeds
}
