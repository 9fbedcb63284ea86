//! An experiment, as its plan says: `plans/NAME.toml`, or a variant of a study in `tuning/`.
//!
//! ```toml
//! title = "HT-TMM"               # the name in tables and curves
//! paper = "HT-TMM"               # the paper's row beside it; optional
//! set = "mnist"                  # or fashion-mnist, norb, eth80, timit, arctic; this is the default
//! method = "tmm"
//! seeds = [1, 2, 3]              # of weights and of holes; this is the default
//! columns = ["clean", "iid:0.9"] # kinds of holes; default: the paper's 16
//! train = 60000                  # the first training images; default: all
//! test = 10000                   # the first test images; default: all
//! hold_out = 0                   # test on this many training images instead, to choose settings
//!
//! [options]                      # options of the method
//! ```
//!
//! A study has a base, and variants that replace some of its values:
//!
//! ```toml
//! [base]
//! method = "tmm"
//! [base.options.model]
//! preset = "mnist-cp"
//!
//! [variants.cp-s1]
//! title = "CP: moved by ±1"
//! options.model.settings = { shift = 1 }
//! ```

use crate::inputs::examples::DataSet;
use crate::inputs::sets::Set;
use crate::inputs::test_masks;
use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use sumout::masks::Missing;
use toml::{Table, Value};

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The nearest neighbours by the observed pixels.
    Knn,
    /// A Tensorial Mixture Model.
    Tmm,
    /// LeNet, in `rivals/lenet.py`, as all below in PyTorch.
    Lenet,
    /// A ResNet with a channel that marks what is missing.
    Resnet,
    /// A generative stochastic network completes images for LeNet.
    Gsn,
    /// A flow of additive couplings completes images for LeNet.
    Nice,
    /// A diffusion model completes images for LeNet.
    Dpm,
    /// A deep Boltzmann machine trained as a recurrent net.
    Mpdbm,
    /// A sum-product network of cirkit.
    Spn,
    /// ConvNets of images of 32×32, in `rivals/norb.py`.
    Norb,
    /// A ConvNet of windows of sound, in `rivals/speech.py`.
    Speech,
    /// Methods for few labels, in `rivals/few_labels.py`.
    FewLabels,
    /// Two-digit tasks: a Tensorial Mixture Model.
    PairsTmm,
    /// Two-digit tasks: the robust linear classifier.
    PairsRobust,
}

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its plan, or of the variant.
    #[serde(skip)]
    pub name: String,
    /// The folder of its result file.
    #[serde(skip)]
    pub results: PathBuf,
    /// The name in tables and curves.
    pub title: String,
    /// The row of the paper's tables that it stands beside.
    pub paper: Option<String>,
    /// What it is run on.
    #[serde(default, skip_serializing_if = "Set::is_mnist")]
    pub set: Set,
    /// What is run.
    pub method: Method,
    /// Of weights and of holes.
    #[serde(default = "three_seeds")]
    pub seeds: Vec<u64>,
    /// Kinds of holes, as [`Missing`] writes them.
    #[serde(default = "test_masks::all_texts")]
    pub columns: Vec<String>,
    /// Train on the first images only, this many.
    pub train: Option<usize>,
    /// Test on the first images only, this many.
    pub test: Option<usize>,
    /// Test on this many of the training images instead.
    #[serde(default)]
    pub hold_out: usize,
    /// Options of the method.
    #[serde(default)]
    pub options: Table,
}

fn three_seeds() -> Vec<u64> {
    vec![1, 2, 3]
}

/// Experiments that differ in a few values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    base: Table,
    variants: Table,
}

impl Experiment {
    /// Reads the plan `plans/NAME.toml` of a folder, or the variant NAME of a study in its folder
    /// `tuning`.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join("plans").join(format!("{name}.toml"));
        if path.exists() {
            return Self::parse(read_toml(&path)?, name, folder)
                .with_context(|| path.display().to_string());
        }
        let tuning = folder.join("tuning");
        for path in toml_files(&tuning)? {
            let study: Study = read_toml(&path)?;
            if let Some(variant) = study.variants.get(name) {
                return Self::parse(with_overrides(study.base, variant.clone()), name, &tuning)
                    .with_context(|| format!("{}: {name}", path.display()));
            }
        }
        let (plans, tuning) = (folder.join("plans"), tuning.display());
        bail!(
            "expected a plan in {} or a variant in {tuning}, got '{name}'",
            plans.display()
        )
    }

    fn parse(plan: Table, name: &str, folder: &Path) -> Result<Self> {
        let experiment: Self = plan.try_into()?;
        experiment.missing()?;
        Ok(Self {
            name: name.into(),
            results: folder.join("results"),
            ..experiment
        })
    }

    /// Kinds of holes.
    pub fn missing(&self) -> Result<Vec<Missing>> {
        let parse = |text: &String| text.parse().map_err(anyhow::Error::new);
        self.columns.iter().map(parse).collect()
    }

    /// The method's options.
    pub fn options<T: DeserializeOwned>(&self) -> Result<T> {
        let options = self.options.clone().try_into();
        options.with_context(|| format!("{}: options", self.name))
    }

    /// The part of the data that it uses.
    pub fn data(&self, mut data: DataSet) -> DataSet {
        if self.hold_out > 0 {
            data = data.held_out(self.hold_out);
        }
        if let Some(count) = self.train {
            data.train = data.train.range(0, count);
        }
        if let Some(count) = self.test {
            data.test = data.test.range(0, count);
        }
        data
    }
}

/// The base with a variant's values in place of its own, table by table.
fn with_overrides(mut base: Table, variant: Value) -> Table {
    let Value::Table(variant) = variant else {
        return base;
    };
    for (key, value) in variant {
        let value = match (base.remove(&key), value) {
            (Some(Value::Table(inner)), value @ Value::Table(_)) => {
                Value::Table(with_overrides(inner, value))
            }
            (_, value) => value,
        };
        base.insert(key, value);
    }
    base
}

fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The TOML files of a folder, by name; none if there is no such folder.
fn toml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    if folder.exists() {
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results;

    const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

    /// Every result file still has its plan, as it was when the experiment ran.
    #[test]
    fn every_result_has_its_plan() {
        let folder = Path::new(FOLDER);
        let mut seen = 0;
        for place in [folder.to_owned(), folder.join("tuning")] {
            for record in results::records(&place).unwrap() {
                let experiment = Experiment::read(folder, &record.name).unwrap();
                assert_eq!(experiment.results, place.join("results"), "{}", record.name);
                let plan = serde_json::to_value(&experiment).unwrap();
                assert_eq!(plan, record.plan, "{}", record.name);
                seen += 1;
            }
        }
        assert!(seen >= 70, "{seen}");
    }

    #[test]
    fn every_plan_and_variant_can_be_read() {
        let folder = Path::new(FOLDER);
        let mut names = Vec::new();
        for path in toml_files(&folder.join("plans")).unwrap() {
            names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
        for path in toml_files(&folder.join("tuning")).unwrap() {
            let study: Study = read_toml(&path).unwrap();
            names.extend(study.variants.keys().cloned());
        }
        let all = names.len();
        assert!(all >= 70, "{all}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "a name has two plans");
        for name in names {
            Experiment::read(folder, &name).unwrap();
        }
    }

    #[test]
    fn a_variant_replaces_values_of_the_base() {
        let base = "a = 1\n[in]\nb = 2\nc = [3, 4]\n[in.deep]\nd = 5\n";
        let variant = "e = 6\nin.c = [7]\nin.deep = { f = 8 }\n";
        let expected = "a = 1\ne = 6\n[in]\nb = 2\nc = [7]\n[in.deep]\nd = 5\nf = 8\n";
        let table = |text: &str| text.parse::<Table>().unwrap();
        let laid = with_overrides(table(base), Value::Table(table(variant)));
        assert_eq!(laid, table(expected));
    }

    #[test]
    fn a_name_without_a_plan() {
        let error = Experiment::read(Path::new(FOLDER), "nothing").unwrap_err();
        assert!(error.to_string().ends_with("got 'nothing'"), "{error}");
    }
}
