//! `--device` and `--precision`.

use sumout_data::devices::DeviceChoice;

/// What computes.
#[derive(Clone, Debug, clap::Args)]
pub struct DeviceArgs {
    /// Device that computes: cpu, cuda, cuda:1 (the second GPU), or auto (the first GPU that can
    /// be used, else the CPU)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Arithmetic of a GPU: f32, or tf32 on its tensor cores [default: tf32 to train, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<String>,
}

impl DeviceArgs {
    /// The device and the precision, if they are not the default.
    pub fn given(&self) -> (Option<String>, Option<String>) {
        (
            Some(self.device.clone()).filter(|device| device != "cpu"),
            self.precision.clone(),
        )
    }

    /// The choice, for opening the device.
    pub fn choice(&self) -> DeviceChoice {
        DeviceChoice {
            device: self.device.clone(),
            precision: self.precision.clone(),
        }
    }
}
