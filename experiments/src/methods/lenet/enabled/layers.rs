//! The layers of LeNet.
//!
//! ```text
//! 5×5 convolution to 20, 2×2 maximum, 5×5 convolution to 50, 2×2 maximum, 500 ReLU, 10
//! ```

use crate::methods::lenet::enabled::windows::{CORNERS, MAP, TOP, windows};
use burn::module::{Initializer, Module};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// The layers. Convolutions are products with patches, and a maximum is taken of whole matrices:
/// burn's own convolutions and pooling would take most of the time.
#[derive(Module, Debug)]
pub struct Layers {
    first: Linear,
    second: Linear,
    hidden: Linear,
    classes: Linear,
}

impl Layers {
    /// Random weights.
    pub fn new(channels: usize, device: &Device) -> Self {
        let start = Initializer::KaimingUniform {
            gain: 1.0,
            fan_out_only: false,
        }; // Caffe's "xavier"
        let linear = |from, to| {
            LinearConfig::new(from, to)
                .with_initializer(start.clone())
                .init(device)
        };
        Self {
            first: linear(25 * channels, 20),
            second: linear(25 * 20, 50),
            hidden: linear(TOP * TOP * 50, 500),
            classes: linear(500, 10),
        }
    }

    /// Scores of the classes, from the patches of images and from the places of the patches of the
    /// first map.
    pub fn forward(&self, patches: [Tensor<2>; 4], of_map: &[Tensor<1, Int>; 4]) -> Tensor<2> {
        let map = maximum(patches.map(|patches| self.first.forward(patches))); // (B·144, 20)
        let batch = map.dims()[0] / (MAP * MAP);
        let patches = of_map.clone().map(|places| map.clone().select(0, places));
        let map =
            maximum(patches.map(|patches| self.second.forward(patches.reshape([-1, 25 * 20])))); // (B·16, 50)
        let hidden = relu(self.hidden.forward(map.reshape([batch, TOP * TOP * 50]))); // (B, 500)
        self.classes.forward(hidden) // (B, 10)
    }
}

/// The maximum over the corners of each window.
fn maximum(corners: [Tensor<2>; 4]) -> Tensor<2> {
    corners
        .into_iter()
        .reduce(|a, b| a.clone() + relu(b - a))
        .expect("four corners")
}

/// The places of the patches (B, 4, 4, 5, 5) that the second convolution sees of maps (B, 12, 12),
/// for each corner.
pub fn patches_of_map(batch: usize, device: &Device) -> [Tensor<1, Int>; 4] {
    CORNERS.map(|corner| corner_places(batch, corner, device))
}

fn corner_places(batch: usize, (down, right): (usize, usize), device: &Device) -> Tensor<1, Int> {
    let mut places = Vec::with_capacity(batch * TOP * TOP * 25);
    for window in windows(batch, TOP) {
        let row = window.image * MAP + 2 * window.y + down;
        let first = row * MAP + 2 * window.x + right;
        places.extend((0..25).map(|place| (first + place / 5 * MAP + place % 5) as i64));
    }
    let count = places.len();
    Tensor::from_data(TensorData::new(places, [count]), device)
}
