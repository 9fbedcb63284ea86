//! The models that are served, and how one is exchanged for a newer file while questions about the old one finish.

use crate::columns::Columns;
use crate::limits::Limits;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::worker::Engine;
use anyhow::{Context, Result};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};
use sumout::model::Scaling;
use sumout::structure::{OUTSIDE, Tree};
use sumout::{Model, Predictor};
use sumout_data::error::mistake;
use sumout_data::layout::{Layout, Request, Split};
use sumout_data::model_files;
use sumout_data::model_files::layout_of;

/// Rows that people can choose from.
const EXAMPLES: usize = 200;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A model that answers.
pub struct Live {
    /// What clients call it.
    pub name: String,
    /// What its columns take.
    pub columns: Columns,
    /// The names of its classes, or their numbers.
    pub classes: Vec<String>,
    /// What `/v1/models` says of it.
    pub about: Value,
    /// Rows to try, with their labels.
    pub examples: Vec<(Vec<f32>, Option<String>)>,
    /// Who answers.
    pub engine: Engine,
}

/// A place on the shelf.
struct Served {
    name: String,
    path: PathBuf,
    /// When the file was written, as it was before it was loaded.
    stamp: Option<Stamp>,
    live: RwLock<Arc<Live>>,
}

/// All models.
pub struct Shelf {
    served: Vec<Served>,
    examples: Option<String>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

/// `NAME=FILE`, or a file that is called by its own name.
fn name_of(argument: &str) -> (String, PathBuf) {
    if let Some((name, path)) = argument
        .split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.contains('/'))
    {
        return (name.to_owned(), path.into());
    }
    let path = Path::new(argument);
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    (stem, path.to_owned())
}

impl Shelf {
    /// Loads all models. `examples` are rows to try; a model of MNIST's shape has the digits of this program.
    pub fn new(
        models: &[String],
        examples: Option<String>,
        limits: Limits,
        metrics: Arc<Metrics>,
    ) -> Result<Self> {
        let mut shelf = Self {
            served: Vec::new(),
            examples,
            limits,
            metrics,
        };
        for argument in models {
            let (name, path) = name_of(argument);
            if shelf.served.iter().any(|other| other.name == name) {
                return Err(mistake(format!(
                    "two models are called '{name}'; say OTHER={} for one of them",
                    path.display()
                )));
            }
            let stamp = stamp(&path);
            let live = RwLock::new(Arc::new(shelf.load(&name, &path)?));
            shelf.served.push(Served {
                name,
                path,
                stamp,
                live,
            });
        }
        Ok(shelf)
    }

    fn load(&self, name: &str, path: &Path) -> Result<Live> {
        let model = model_files::load(path)?;
        let layout = layout_of(&model);
        let classes: Vec<String> = (0..model.structure.classes)
            .map(|class| model.class_name(class))
            .collect();
        let columns = Columns::new(&layout, &model.structure);
        let examples = examples(self.examples.as_deref(), &layout, &classes)?;
        let about = about(name, &model, &layout, &columns, &classes, examples.len());
        let engine = Engine::start(
            Predictor::new(model)?,
            self.limits.waiting(),
            self.metrics.clone(),
        );
        let engine = engine.context("cannot start a thread")?;
        Ok(Live {
            name: name.to_owned(),
            columns,
            classes,
            about,
            examples,
            engine,
        })
    }

    /// The model of that name; without a name, the only one.
    pub fn find(&self, name: Option<&str>) -> Result<Arc<Live>, Problem> {
        let served = match name {
            Some(name) => self.served.iter().find(|served| served.name == name),
            None if self.served.len() == 1 => self.served.first(),
            None => {
                let names = self.names().join(", ");
                return Err(Problem::bad(format!(
                    "model: expected one of {names}, got none"
                )));
            }
        };
        let unknown = || {
            let name: String = name.unwrap_or_default().chars().take(40).collect();
            let names = self.names().join(", ");
            Problem::new(
                StatusCode::NOT_FOUND,
                format!("model: expected one of {names}, got '{name}'"),
            )
        };
        served.map(Served::now).ok_or_else(unknown)
    }

    /// All names.
    pub fn names(&self) -> Vec<&str> {
        self.served
            .iter()
            .map(|served| served.name.as_str())
            .collect()
    }

    /// All models as they are now.
    pub fn all(&self) -> Vec<Arc<Live>> {
        self.served.iter().map(Served::now).collect()
    }

    /// Looks at the files for ever, and loads again what has changed. A file that cannot be loaded changes nothing.
    pub fn watch(&self, log: &Log) {
        let mut seen: Vec<Option<Stamp>> = self.served.iter().map(|served| served.stamp).collect();
        loop {
            std::thread::sleep(LOOK);
            for (served, seen) in self.served.iter().zip(&mut seen) {
                let now = stamp(&served.path);
                // One that was only just written may not be whole yet; it is looked at again.
                if now.is_none() || now == *seen || is_fresh(now) {
                    continue;
                }
                *seen = now;
                match self.load(&served.name, &served.path) {
                    Ok(live) => {
                        *served
                            .live
                            .write()
                            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(live);
                        self.metrics.reloads[0].fetch_add(1, Relaxed);
                        log.event("reloaded", json!({ "model": served.name }));
                    }
                    Err(error) => {
                        self.metrics.reloads[1].fetch_add(1, Relaxed);
                        let error = format!("{error:#}");
                        log.event(
                            "reload_failed",
                            json!({ "model": served.name, "error": error, "kept": "the model before" }),
                        );
                    }
                }
            }
        }
    }
}

impl Served {
    fn now(&self) -> Arc<Live> {
        self.live
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

/// When a file was written, and its length.
type Stamp = (SystemTime, u64);

fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

fn is_fresh(stamp: Option<Stamp>) -> bool {
    stamp
        .and_then(|(time, _)| time.elapsed().ok())
        .is_some_and(|age| age < LOOK / 2)
}

/// Rows to try.
fn examples(
    data: Option<&str>,
    layout: &Layout,
    classes: &[String],
) -> Result<Vec<(Vec<f32>, Option<String>)>> {
    let request = Request {
        split: Split::Test,
        model: Some(layout.clone()),
        ..Request::default()
    };
    let mnist = layout
        .shape
        .is_some_and(|s| (s.height, s.width, s.channels) == (28, 28, 1));
    let rows = match data {
        Some(data) => sumout_data::open(data, &request)?,
        None if mnist => sumout_data::open_digits(&request)?,
        None => return Ok(Vec::new()),
    };
    let mut examples = Vec::new();
    for chunk in rows {
        let chunk = chunk?;
        for (row, values) in chunk.values.chunks_exact(layout.width).enumerate() {
            let label = chunk
                .labels
                .as_ref()
                .and_then(|labels| usize::try_from(labels[row]).ok());
            examples.push((
                values.to_vec(),
                label.and_then(|label| classes.get(label).cloned()),
            ));
            if examples.len() == EXAMPLES {
                return Ok(examples);
            }
        }
    }
    Ok(examples)
}

/// The number that is scaled to `z`: a whole one where 32 bits cannot tell, else with no more digits than they have.
fn at(scaling: &Scaling, z: f32) -> f64 {
    let x = scaling.invert(0, z);
    let x = if scaling.apply(0, x.round()) == z {
        x.round()
    } else {
        x
    };
    x.to_string().parse().unwrap_or(x.into())
}

/// What clients and the page need to know of a model.
fn about(
    name: &str,
    model: &Model,
    layout: &Layout,
    columns: &Columns,
    classes: &[String],
    examples: usize,
) -> Value {
    let s = &model.structure;
    let column = |column: usize| {
        let kind = if columns.is_discrete(column) {
            "category"
        } else {
            "number"
        };
        json!({ "name": columns.name(column), "kind": kind, "categories": columns.categories(column) })
    };
    let image = layout.shape.map(|shape| {
        let range = [0.0, 1.0].map(|z| at(&model.scaling, z));
        json!({ "height": shape.height, "width": shape.width, "channels": shape.channels, "range": range })
    });
    let trees: Vec<Value> = s.trees.iter().map(|tree| levels(model, tree)).collect();
    let named: Vec<Value> = if columns.named {
        (0..columns.width()).map(column).collect()
    } else {
        Vec::new()
    };
    json!({
        "name": name,
        "width": columns.width(),
        "classes": classes,
        "target": layout.target,
        "columns": named,
        "image": image,
        "weights": s.weights(),
        "examples": examples,
        "trees": trees,
    })
}

/// For every level its nodes and channels; for images also the box of pixels (top, left, height, width) below each node.
fn levels(model: &Model, tree: &Tree) -> Value {
    let boxes = model.structure.frame.map(|frame| {
        let (top, left) = frame.margin();
        let pixel = |&input: &u32| {
            let at = input as usize / frame.channels;
            let (row, column) = (at / frame.frame_width, at % frame.frame_width);
            (
                row.saturating_sub(top).min(frame.height),
                column.saturating_sub(left).min(frame.width),
                row,
                column,
            )
        };
        let inside = |row: usize, column: usize| {
            (top..top + frame.height).contains(&row) && (left..left + frame.width).contains(&column)
        };
        // (first row, first column, last row + 1, last column + 1) of what is in the image.
        let around = |points: &mut dyn Iterator<Item = [usize; 4]>| {
            points.fold([usize::MAX, usize::MAX, 0, 0], |a, b| {
                [
                    a[0].min(b[0]),
                    a[1].min(b[1]),
                    a[2].max(b[2]),
                    a[3].max(b[3]),
                ]
            })
        };
        let mut layers = Vec::new();
        let leaves = tree.positions.iter().map(|position| {
            let seen = position
                .inputs
                .iter()
                .filter(|input| **input != OUTSIDE)
                .map(pixel);
            let mut seen = seen
                .filter(|&(_, _, row, column)| inside(row, column))
                .map(|(y, x, _, _)| [y, x, y + 1, x + 1]);
            around(&mut seen)
        });
        layers.push(leaves.collect::<Vec<_>>());
        for level in &tree.levels {
            let below = &layers[layers.len() - 1];
            let nodes = level
                .children
                .iter()
                .map(|children| around(&mut children.iter().map(|&child| below[child as usize])));
            layers.push(nodes.collect());
        }
        layers
    });
    let layer = |l: usize| {
        let shown = |boxes: &Vec<Vec<[usize; 4]>>| {
            let of = |b: &[usize; 4]| {
                if b[2] == 0 {
                    json!(null)
                } else {
                    json!([b[0], b[1], b[2] - b[0], b[3] - b[1]])
                }
            };
            boxes[l].iter().map(of).collect::<Vec<_>>()
        };
        json!({ "nodes": tree.nodes(l), "channels": tree.channels(l), "boxes": boxes.as_ref().map(shown) })
    };
    json!((0..=tree.levels.len()).map(layer).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::structure::{ImageSpec, LevelSpec, Sharing};

    fn image_model(seed: u64) -> Model {
        let spec = ImageSpec {
            frame: (8, 8),
            levels: vec![
                LevelSpec::square(2, 3, Sharing::Own),
                LevelSpec::square(2, 4, Sharing::Own),
            ],
            components: 2,
            ..ImageSpec::new(6, 6)
        };
        Model::random(spec.structure(2).unwrap(), 1.0, seed)
    }

    #[test]
    fn names_come_from_files_or_from_people() {
        assert_eq!(
            name_of("a/b/digits.sumout"),
            ("digits".into(), "a/b/digits.sumout".into())
        );
        assert_eq!(
            name_of("new=a/b=c.sumout"),
            ("new".into(), "a/b=c.sumout".into())
        );
        assert_eq!(
            name_of("a/b=c.sumout"),
            ("b=c".into(), "a/b=c.sumout".into())
        );
    }

    #[test]
    fn ranges_are_what_people_would_write() {
        let range = |offset, scale| [0.0, 1.0].map(|z| at(&Scaling::uniform(offset, scale), z));
        assert_eq!(range(0.0, 1.0 / 255.0), [0.0, 255.0]);
        assert_eq!(range(0.5, 10.0), [0.5, 0.6]);
    }

    #[test]
    fn nodes_know_their_pixels() {
        let model = image_model(1);
        let levels = levels(&model, &model.structure.trees[0]);
        assert_eq!(
            levels[0]["boxes"][0],
            json!([0, 0, 1, 1]),
            "the frame's border cuts the first patch"
        );
        assert_eq!(levels[0]["boxes"][5], json!([1, 1, 2, 2]));
        assert_eq!(
            (&levels[1]["nodes"], &levels[1]["boxes"][3]),
            (&json!(4), &json!([3, 3, 3, 3]))
        );
        assert_eq!(levels[2]["boxes"][0], json!([0, 0, 6, 6]));
    }

    #[test]
    fn a_new_file_is_taken_and_a_bad_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.sumout");
        fs::write(&path, image_model(1).to_bytes().unwrap()).unwrap();
        let metrics: Arc<Metrics> = Arc::default();
        let argument = path.display().to_string();
        let shelf = Shelf::new(
            std::slice::from_ref(&argument),
            None,
            Limits::default(),
            metrics.clone(),
        )
        .unwrap();
        let shelf: &'static Shelf = Box::leak(Box::new(shelf));
        std::thread::spawn(|| shelf.watch(&Log::new(crate::log::Level::None)));
        let first = shelf.find(None).unwrap();
        let wait = |until: &dyn Fn() -> bool| {
            (0..100).any(|_| {
                until() || {
                    std::thread::sleep(LOOK / 5);
                    until()
                }
            })
        };
        fs::write(&path, "nonsense").unwrap();
        assert!(wait(&|| metrics.reloads[1].load(Relaxed) == 1));
        assert!(Arc::ptr_eq(&first, &shelf.find(Some("m")).unwrap()));
        let mut other = image_model(2);
        other.about.classes = vec!["a".into(), "b".into()];
        fs::write(&path, other.to_bytes().unwrap()).unwrap();
        assert!(wait(&|| metrics.reloads[0].load(Relaxed) == 1));
        assert_eq!(shelf.find(None).unwrap().classes, ["a", "b"]);
        assert_eq!(
            shelf.find(Some("x")).err().unwrap().message,
            "model: expected one of m, got 'x'"
        );
        let twice = Shelf::new(
            &[argument.clone(), argument],
            None,
            Limits::default(),
            metrics,
        )
        .err()
        .unwrap();
        assert!(
            twice.to_string().starts_with("two models are called 'm'"),
            "{twice}"
        );
    }
}
