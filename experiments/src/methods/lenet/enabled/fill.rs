//! What a net sees in place of missing pixels, and the 5×5 patches of the first convolution.

use crate::inputs::mnist::{PIXELS, SIDE};
use crate::methods::lenet::enabled::windows::{CORNERS, MAP, windows};
use burn::tensor::{Device, Tensor, TensorData};

/// What replaces a missing pixel.
#[derive(Clone, Debug)]
pub enum Fill {
    /// 0.
    Zero,
    /// The pixel's mean over the training set.
    Mean(Vec<f32>),
    /// 0, and 1 in a second channel that is 0 elsewhere.
    Flag,
}

impl Fill {
    /// Channels of an image.
    pub fn channels(&self) -> usize {
        if matches!(self, Self::Flag) { 2 } else { 1 }
    }

    /// A row (784) from 0 to 255 with holes as an image (channels, 28, 28) from 0 to 1.
    fn image(&self, row: &[f32]) -> Vec<f32> {
        let filled = row.iter().enumerate().map(|(pixel, x)| match self {
            Self::Mean(mean) if x.is_nan() => mean[pixel] / 256.0,
            _ if x.is_nan() => 0.0,
            _ => x / 256.0,
        });
        let mut image: Vec<f32> = filled.collect();
        if matches!(self, Self::Flag) {
            image.extend(row.iter().map(|x| f32::from(u8::from(x.is_nan()))));
        }
        image
    }

    /// The 5×5 patches that the first convolution sees of rows (B, 784), for each corner of the 2×2
    /// windows of the maximum: (B, 12, 12, channels, 5, 5) as (B·144, channels·25).
    pub fn patches(&self, rows: &[f32], device: &Device) -> [Tensor<2>; 4] {
        let images: Vec<Vec<f32>> = rows
            .chunks_exact(PIXELS)
            .map(|row| self.image(row))
            .collect();
        CORNERS.map(|corner| self.corner_patches(&images, corner, device))
    }

    fn corner_patches(
        &self,
        images: &[Vec<f32>],
        (down, right): (usize, usize),
        device: &Device,
    ) -> Tensor<2> {
        let (count, size) = (images.len() * MAP * MAP, self.channels() * 25);
        let mut patches = Vec::with_capacity(count * size);
        for window in windows(images.len(), MAP) {
            let (top, left) = (2 * window.y + down, 2 * window.x + right);
            for channel in images[window.image].chunks_exact(PIXELS) {
                for y in top..top + 5 {
                    patches.extend_from_slice(&channel[y * SIDE + left..][..5]);
                }
            }
        }
        Tensor::from_data(TensorData::new(patches, [count, size]), device)
    }
}

/// Each pixel's mean over rows (n, 784).
pub fn means(rows: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; PIXELS];
    for row in rows.chunks_exact(PIXELS) {
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum += f64::from(x);
        }
    }
    let count = (rows.len() / PIXELS) as f64;
    sums.iter().map(|sum| (sum / count) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A patch has the pixels that the convolution sees, and holes are filled.
    #[test]
    fn patches_and_fills() {
        let mut row: Vec<f32> = (0..PIXELS).map(|i| (i % 251) as f32).collect();
        row[0] = f32::NAN;
        let device = Device::flex();
        let patches = |fill: &Fill, corner: usize| {
            fill.patches(&row, &device)[corner]
                .clone()
                .into_data()
                .try_into_vec::<f32>()
                .unwrap()
        };
        // The corner (0, 1) of the window (3, 5): the patch from (6, 11), its number (2, 4) is the
        // pixel (8, 15).
        let patch = 3 * MAP + 5;
        assert_eq!(
            patches(&Fill::Zero, 1)[patch * 25 + 2 * 5 + 4],
            row[8 * SIDE + 15] / 256.0
        );
        assert_eq!(patches(&Fill::Zero, 0)[0], 0.0);
        assert_eq!(patches(&Fill::Mean(vec![64.0; PIXELS]), 0)[0], 0.25);
        let flag = patches(&Fill::Flag, 0);
        assert_eq!(
            (flag[0], flag[1], flag[25], flag[26]),
            (0.0, 1.0 / 256.0, 1.0, 0.0)
        );
    }
}
