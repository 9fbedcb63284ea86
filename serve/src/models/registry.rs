//! The models that are served, and how one is exchanged for a newer file while questions about the old one finish.

use crate::limits::Limits;
use crate::models::examples::{Example, examples};
use crate::models::summary::ModelSummary;
use crate::models::worker::Worker;
use crate::monitoring::log::Log;
use crate::monitoring::metrics::Metrics;
use crate::problem::Problem;
use anyhow::{Context, Result};
use http::StatusCode;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};
use sumout::Predictor;
use sumout_data::encode::Encoder;
use sumout_data::model_files::{self, layout_of};
use sumout_data::{Error, ErrorKind};

/// How often files are checked.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// A model that answers.
pub struct ServedModel {
    /// What clients call it.
    pub name: String,
    /// What its columns take.
    pub encoder: Encoder,
    /// The names of its classes, or their numbers.
    pub classes: Vec<String>,
    /// The column that it predicts as a number, if there is one.
    pub predicted: Option<usize>,
    /// What `/v1/models` says of it.
    pub about: Value,
    /// Rows to try, with their labels.
    pub examples: Vec<Example>,
    /// The thread that answers.
    pub worker: Worker,
}

/// A place in the registry.
struct ModelSlot {
    name: String,
    path: PathBuf,
    /// When the file was written, as it was before it was loaded.
    stamp: Option<Stamp>,
    live: RwLock<Arc<ServedModel>>,
}

/// A model that was loaded.
struct Loaded {
    live: ServedModel,
    /// Why it has no examples, if those that there are do not suit it.
    unfit_examples: Option<anyhow::Error>,
}

/// All models.
pub struct Registry {
    served: Vec<ModelSlot>,
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

impl Registry {
    /// Loads all models. `examples` are rows to try; a model of MNIST's shape has the digits of this program.
    pub fn new(
        models: &[String],
        examples: Option<String>,
        limits: Limits,
        metrics: Arc<Metrics>,
    ) -> Result<Self> {
        let mut registry = Self {
            served: Vec::new(),
            examples,
            limits,
            metrics,
        };
        let mut unfit = Vec::new();
        for argument in models {
            let (name, path) = name_of(argument);
            if registry.served.iter().any(|other| other.name == name) {
                let sentence = format!(
                    "two models are called '{name}'; say OTHER={} for one of them",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Argument, sentence).into());
            }
            let stamp = stamp(&path);
            let loaded = registry.load(&name, &path)?;
            unfit.extend(loaded.unfit_examples);
            let live = RwLock::new(Arc::new(loaded.live));
            registry.served.push(ModelSlot {
                name,
                path,
                stamp,
                live,
            });
        }
        // Examples must suit one of the models.
        match unfit.into_iter().next() {
            Some(error)
                if registry
                    .served
                    .iter()
                    .all(|slot| slot.now().examples.is_empty()) =>
            {
                Err(error)
            }
            _ => Ok(registry),
        }
    }

    fn load(&self, name: &str, path: &Path) -> Result<Loaded> {
        let model = model_files::load(path)?;
        let layout = layout_of(&model);
        let classes: Vec<String> = (0..model.structure.classes)
            .map(|class| model.class_name(class))
            .collect();
        let encoder = Encoder::new(&layout).with_kinds(&model.structure.row_kinds());
        let found = examples(self.examples.as_deref(), &layout, &classes);
        let (examples, unfit_examples) = match found {
            Ok(examples) => (examples, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let about = ModelSummary {
            name,
            model: &model,
            layout: &layout,
            encoder: &encoder,
            classes: &classes,
            examples: examples.len(),
        };
        let about = about.json();
        let (max, metrics) = (self.limits.waiting(), self.metrics.clone());
        let worker = Worker::start(Predictor::new(model)?, max, metrics);
        let worker = worker.context("cannot start a thread")?;
        let live = ServedModel {
            name: name.to_owned(),
            encoder,
            classes,
            predicted: layout.predicted,
            about,
            examples,
            worker,
        };
        Ok(Loaded {
            live,
            unfit_examples,
        })
    }

    /// The model of that name; without a name, the only one.
    pub fn find(&self, name: Option<&str>) -> Result<Arc<ServedModel>, Problem> {
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
        served
            .map(ModelSlot::now)
            .ok_or_else(|| self.unknown(name.unwrap_or_default()))
    }

    fn unknown(&self, name: &str) -> Problem {
        let name: String = name.chars().take(40).collect();
        let names = self.names().join(", ");
        let message = format!("model: expected one of {names}, got '{name}'");
        Problem::new(StatusCode::NOT_FOUND, message)
    }

    /// All names.
    pub fn names(&self) -> Vec<&str> {
        self.served
            .iter()
            .map(|served| served.name.as_str())
            .collect()
    }

    /// All models as they are now.
    pub fn all(&self) -> Vec<Arc<ServedModel>> {
        self.served.iter().map(ModelSlot::now).collect()
    }

    /// Checks the files for ever, and loads again what has changed. A file that cannot be loaded changes nothing.
    pub fn watch(&self, log: &Log) {
        let mut seen: Vec<Option<Stamp>> = self.served.iter().map(|served| served.stamp).collect();
        loop {
            std::thread::sleep(CHECK_EVERY);
            for (served, seen) in self.served.iter().zip(&mut seen) {
                let now = stamp(&served.path);
                // A file that was only just written may not be whole yet; it is checked again.
                if now.is_none() || now == *seen || is_fresh(now) {
                    continue;
                }
                *seen = now;
                match self.load(&served.name, &served.path) {
                    Ok(loaded) => {
                        *served
                            .live
                            .write()
                            .unwrap_or_else(|poisoned| poisoned.into_inner()) =
                            Arc::new(loaded.live);
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

impl ModelSlot {
    fn now(&self) -> Arc<ServedModel> {
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
        .is_some_and(|age| age < CHECK_EVERY / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::image_model;

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
    fn a_new_file_is_taken_and_a_bad_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.sumout");
        fs::write(&path, image_model(1).to_bytes().unwrap()).unwrap();
        let metrics: Arc<Metrics> = Arc::default();
        let argument = path.display().to_string();
        let registry = Registry::new(
            std::slice::from_ref(&argument),
            None,
            Limits::default(),
            metrics.clone(),
        )
        .unwrap();
        let registry: &'static Registry = Box::leak(Box::new(registry));
        std::thread::spawn(|| registry.watch(&Log::new(crate::monitoring::log::LogLevel::None)));
        let first = registry.find(None).unwrap();
        let wait = |until: &dyn Fn() -> bool| {
            (0..100).any(|_| {
                until() || {
                    std::thread::sleep(CHECK_EVERY / 5);
                    until()
                }
            })
        };
        fs::write(&path, "nonsense").unwrap();
        assert!(wait(&|| metrics.reloads[1].load(Relaxed) == 1));
        assert!(Arc::ptr_eq(&first, &registry.find(Some("m")).unwrap()));
        let mut other = image_model(2);
        other.about.classes = vec!["a".into(), "b".into()];
        fs::write(&path, other.to_bytes().unwrap()).unwrap();
        assert!(wait(&|| metrics.reloads[0].load(Relaxed) == 1));
        assert_eq!(registry.find(None).unwrap().classes, ["a", "b"]);
        assert_eq!(
            registry.find(Some("x")).err().unwrap().message,
            "model: expected one of m, got 'x'"
        );
        let twice = Registry::new(
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
