//! An unfinished net in a file, so that a training that was stopped continues where it was.
//!
//! ```text
//! a line of JSON: what is trained, steps, seconds, bytes of the layers │ layers │ optimizer
//! ```

use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use sumout_data::model_files;

/// How far the training of a net is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Finished steps.
    pub step: usize,
    /// How long they took.
    pub seconds: f64,
}

/// A net in training.
pub struct Unfinished<M> {
    /// How far it is.
    pub progress: Progress,
    /// The net.
    pub layers: M,
    /// With its momentum.
    pub optimizer: ModuleOptimizer,
}

#[derive(Serialize, Deserialize)]
struct Head {
    training: String,
    progress: Progress,
    layers: usize,
}

/// The file of an unfinished net.
pub struct SavedNet {
    path: PathBuf,
    training: String,
}

impl SavedNet {
    /// `training` says what is trained: a file of another training is not used.
    pub fn new(path: PathBuf, training: String) -> Self {
        Self { path, training }
    }

    /// Writes the file.
    pub fn save<M: Module>(
        &self,
        progress: Progress,
        layers: M,
        optimizer: &ModuleOptimizer,
    ) -> Result<()> {
        let layers = layers.into_record().into_bytes()?;
        let head = Head {
            training: self.training.clone(),
            progress,
            layers: layers.len(),
        };
        let head = serde_json::to_string(&head)? + "\n";
        let bytes = [head.as_bytes(), &layers, &optimizer.into_bytes()?].concat();
        Ok(model_files::save(&self.path, &bytes)?)
    }

    /// The net as it was saved, or as it is given if there is no file of this training.
    pub fn load<M: Module>(&self, layers: M, optimizer: ModuleOptimizer) -> Result<Unfinished<M>> {
        let fresh = |layers, optimizer| Unfinished {
            progress: Progress::default(),
            layers,
            optimizer,
        };
        let Ok(bytes) = fs::read(&self.path) else {
            return Ok(fresh(layers, optimizer));
        };
        let damaged = || format!("{} is damaged: remove it", self.path.display());
        let end = bytes
            .iter()
            .position(|&byte| byte == b'\n')
            .with_context(damaged)?;
        let head: Head = serde_json::from_slice(&bytes[..end]).with_context(damaged)?;
        if head.training != self.training {
            return Ok(fresh(layers, optimizer));
        }
        let (net, state) = bytes[end + 1..]
            .split_at_checked(head.layers)
            .with_context(damaged)?;
        let record =
            ModuleRecord::from_bytes(Bytes::from_bytes_vec(net.to_vec())).with_context(damaged)?;
        let state = Bytes::from_bytes_vec(state.to_vec());
        Ok(Unfinished {
            progress: head.progress,
            layers: layers.try_load_record(record).with_context(damaged)?,
            optimizer: optimizer.from_bytes(state).with_context(damaged)?,
        })
    }

    /// Removes the file, when the net is finished.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path); // a file that stays does no harm
    }
}
