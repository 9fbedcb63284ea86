//! A net on its way, in a file, so that a training that was stopped goes on where it was.
//!
//! ```text
//! a line of JSON: what is trained, steps, seconds, bytes of the layers │ layers │ optimiser
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

/// How far a net is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// How long they took.
    pub seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct Head {
    training: String,
    progress: Progress,
    layers: usize,
}

/// Where a net is kept.
pub struct Kept {
    path: PathBuf,
    training: String,
}

impl Kept {
    /// `training` says what is trained: a file that was left by another one is not used.
    pub fn new(path: PathBuf, training: String) -> Self {
        Self { path, training }
    }

    /// Writes the file anew.
    pub fn save<M: Module>(
        &self,
        progress: Progress,
        layers: M,
        rule: &ModuleOptimizer,
    ) -> Result<()> {
        let layers = layers.into_record().into_bytes()?;
        let head = Head {
            training: self.training.clone(),
            progress,
            layers: layers.len(),
        };
        let head = serde_json::to_string(&head)? + "\n";
        model_files::save(
            &self.path,
            &[head.as_bytes(), &layers, &rule.into_bytes()?].concat(),
        )?;
        Ok(())
    }

    /// The net as it was left, or as it is given if there is no file of this training.
    pub fn load<M: Module>(
        &self,
        layers: M,
        rule: ModuleOptimizer,
    ) -> Result<(Progress, M, ModuleOptimizer)> {
        let Ok(bytes) = fs::read(&self.path) else {
            return Ok((Progress::default(), layers, rule));
        };
        let damaged = || format!("{} is damaged: remove it", self.path.display());
        let end = bytes
            .iter()
            .position(|&byte| byte == b'\n')
            .with_context(damaged)?;
        let head: Head = serde_json::from_slice(&bytes[..end]).with_context(damaged)?;
        if head.training != self.training {
            return Ok((Progress::default(), layers, rule));
        }
        let (net, state) = bytes[end + 1..]
            .split_at_checked(head.layers)
            .with_context(damaged)?;
        let record =
            ModuleRecord::from_bytes(Bytes::from_bytes_vec(net.to_vec())).with_context(damaged)?;
        let layers = layers.try_load_record(record).with_context(damaged)?;
        let rule = rule
            .from_bytes(Bytes::from_bytes_vec(state.to_vec()))
            .with_context(damaged)?;
        Ok((head.progress, layers, rule))
    }

    /// When it is no longer needed.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path); // one that stays does no harm
    }
}
