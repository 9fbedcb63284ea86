//! What computes: the processor, or an NVIDIA GPU where the feature `cuda` is built in.
//!
//! ```
//! use sumout::Device;
//! assert_eq!("cuda:1".parse(), Ok(Device::Cuda(1)));
//! assert!("gpu".parse::<Device>().is_err());
//! ```

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA GPU, counted from 0.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let wrong = || Error::Setting {
            name: "device",
            expected: "cpu, cuda or cuda:1",
            got: name.into(),
        };
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::Cpu),
            None if name == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", index)) => index.parse().map(Self::Cuda).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => write!(f, "cpu"),
            Self::Cuda(0) => write!(f, "cuda"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// How a GPU multiplies. The processor always computes in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 24 bits.
    #[default]
    F32,
    /// 11 bits in, 24 out: tensor cores. Enough for training.
    Tf32,
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f32" => Ok(Self::F32),
            "tf32" => Ok(Self::Tf32),
            _ => Err(Error::Setting {
                name: "precision",
                expected: "f32 or tf32",
                got: name.into(),
            }),
        }
    }
}
