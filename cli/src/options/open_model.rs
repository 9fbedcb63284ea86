//! The model of a command that writes rows: `predict`, `impute`, `sample`, `explain`.

use crate::options::device::DeviceArgs;
use anyhow::Result;
use std::path::Path;
use sumout::Predictor;
use sumout_data::atomic_file::check_apart;
use sumout_data::model_files::{self, class_of};
use sumout_data::output::OutputFormat;

/// A model that is ready to answer.
pub struct OpenModel {
    /// How the output is written.
    pub format: OutputFormat,
    /// Answers.
    pub predictor: Predictor,
}

impl OpenModel {
    /// Opens a model file. The output must not be the model or one of the `inputs`.
    pub fn open(model: &Path, device: &DeviceArgs, out: &str, inputs: &[&str]) -> Result<Self> {
        let format = OutputFormat::of(out)?;
        let model_path = model.to_string_lossy();
        check_apart(out, &[inputs, &[&model_path]].concat())?;
        let predictor = device.choice().predictor(model_files::load(model)?)?;
        Ok(Self { format, predictor })
    }

    /// The number of a class, if one is named.
    pub fn class(&self, name: Option<&String>) -> Result<Option<usize>> {
        let class = name.map(|name| class_of(self.predictor.model(), name));
        Ok(class.transpose()?)
    }
}
