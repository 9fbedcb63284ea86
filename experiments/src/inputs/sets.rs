//! The data sets of the experiments.

use crate::inputs::examples::Collection;
use crate::inputs::{eth80, mnist, norb, speech};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Digits of 28×28
    #[default]
    Mnist,
    /// Clothes of 28×28, in the format of MNIST
    FashionMnist,
    /// Toys seen by two cameras: the folder of the published files
    Norb,
    /// Things of eight kinds: one NPZ file
    Eth80,
    /// Speech: the folder as the LDC ships it, or a part of it
    Timit,
    /// Speech of one speaker: a folder of WAV and .lab files
    Arctic,
}

impl Set {
    /// For the plans of MNIST, which do not name it.
    pub fn is_mnist(&self) -> bool {
        *self == Self::Mnist
    }

    /// What files of completed images begin with; nothing for MNIST.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Mnist => "",
            Self::FashionMnist => "fashion-",
            Self::Norb => "norb-",
            Self::Eth80 => "eth80-",
            Self::Timit | Self::Arctic => "speech-",
        }
    }

    /// Reads it from a file or folder; MNIST and Fashion-MNIST may be where `sumout data get` put them.
    pub fn read(self, data: Option<&str>) -> Result<Collection> {
        if let Some(name) = self.known_by_name() {
            return mnist::read(data.unwrap_or(name));
        }
        let place = data.with_context(|| format!("expected --data with the place of {self:?}"))?;
        let path = Path::new(place);
        match self {
            Self::Norb => norb::read(path),
            Self::Eth80 => eth80::read(path),
            _ => speech::read(path),
        }
        .with_context(|| format!("cannot use {place}"))
    }

    /// The name by which `sumout data get` fetches it, if it does.
    pub fn known_by_name(self) -> Option<&'static str> {
        match self {
            Self::Mnist => Some("mnist"),
            Self::FashionMnist => Some("fashion-mnist"),
            Self::Norb | Self::Eth80 | Self::Timit | Self::Arctic => None,
        }
    }
}
