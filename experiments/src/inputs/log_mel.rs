//! Logarithms of mel bands of windows of sound, with what is not known left missing.
//!
//! A window becomes 32 frames of 16 ms, 8 ms apart, of 32 bands each. A frame with missing samples has a spectrum that is
//! smeared: if x has the power `P_j` at frequency j and unknown phases, the part of it that is seen through the window w
//! and the mask m has on average
//!
//! ```text
//! |Y_k|² ≈ Σ_j |DFT(w m)|²_{k−j} P_j
//! ```
//!
//! From this P is estimated (Richardson and Lucy's iterations, which keep it positive), and the bands are those that P would
//! have through the whole window. A band in which most of what is seen comes from other frequencies says nothing about
//! itself: it is missing. So is a frame of which hardly anything is seen. A frame that is seen whole is not changed.

use rayon::prelude::*;
use std::f64::consts::PI;
use sumout_data::layout::ImageShape;

/// Frames of a window, bands of a frame.
const FRAMES: usize = 32;
const BANDS: usize = 32;

/// Samples of a frame, and from one frame to the next.
const FRAME: usize = 256;
const HOP: usize = 128;

/// Frequencies of a frame.
const BINS: usize = FRAME / 2 + 1;

const RATE: f64 = 16_000.0;
const LOWEST: f64 = 80.0;
const HIGHEST: f64 = 7_600.0;

/// Rounds of estimating P.
const ROUNDS: usize = 10;

/// The least share of a band's power that must come from its own frequencies and their neighbours.
const OWN_SHARE: f64 = 0.5;
const NEIGHBOURS: usize = 2;

/// The least share of a frame that must be seen.
const SEEN_SHARE: f64 = 0.1;

/// Less power than this is the noise of 16 bits.
const FLOOR: f64 = 1e-9;

/// The shape of a row: time down, frequency across.
pub const SHAPE: ImageShape = ImageShape {
    height: FRAMES,
    width: BANDS,
    channels: 1,
};

/// Windows of sound (n, [`FRAMES`] · [`HOP`]) as rows (n, frames, bands); NaN is missing in both.
pub fn rows(windows: &[f32]) -> Vec<f32> {
    let tables = Tables::new();
    let windows = windows.par_chunks_exact(FRAMES * HOP);
    windows.flat_map_iter(|window| tables.row(window)).collect()
}

/// What all frames share.
struct Tables {
    /// (FRAME): the window w.
    taper: Vec<f64>,
    /// (FRAME): cos(2π i / FRAME).
    cosines: Vec<f64>,
    /// (BANDS, BINS).
    bands: Vec<f64>,
    /// (BINS, BINS): the smear of a frame that is seen whole.
    whole: Vec<f64>,
}

impl Tables {
    fn new() -> Self {
        let turn = |i: usize| (2.0 * PI * i as f64 / FRAME as f64).cos();
        let cosines: Vec<f64> = (0..FRAME).map(turn).collect();
        let taper: Vec<f64> = cosines.iter().map(|cosine| 0.5 - 0.5 * cosine).collect();
        let whole = smear(&power(&taper, &cosines));
        Self {
            taper,
            cosines,
            bands: mel_bands(),
            whole,
        }
    }

    /// One window.
    fn row(&self, window: &[f32]) -> Vec<f32> {
        let frames = 0..FRAMES;
        frames
            .flat_map(|number| self.frame(&frame_of(window, number)))
            .collect()
    }

    /// The bands of one frame.
    fn frame(&self, samples: &[f32]) -> Vec<f32> {
        let seen = samples.iter().map(|x| !x.is_nan());
        let masked = |(w, seen): (&f64, bool)| if seen { *w } else { 0.0 };
        let taper: Vec<f64> = self.taper.iter().zip(seen).map(masked).collect();
        let energy = |taper: &[f64]| taper.iter().map(|w| w * w).sum::<f64>();
        let (part, all) = (energy(&taper), energy(&self.taper));
        if part < SEEN_SHARE * all {
            return vec![f32::NAN; BANDS];
        }
        let tapered = taper.iter().zip(samples);
        let tapered: Vec<f64> = tapered
            .map(|(w, x)| if *w > 0.0 { w * f64::from(*x) } else { 0.0 })
            .collect();
        let spectrum = power(&tapered, &self.cosines);
        if part == all {
            let bands = (0..BANDS).map(|band| self.band(band, &spectrum) / all);
            return bands.map(feature).collect();
        }
        self.estimated(&spectrum, &smear(&power(&taper, &self.cosines)), all)
    }

    /// The bands of a frame that is seen through holes, whose spectrum is smeared in this way.
    fn estimated(&self, spectrum: &[f64], smeared: &[f64], all: f64) -> Vec<f32> {
        let lines = sharpened(spectrum, smeared);
        let (seen, restored) = (product(smeared, &lines), product(&self.whole, &lines));
        let own: Vec<f64> = (0..BINS).map(|k| nearby(smeared, &lines, k)).collect();
        let is_own = |band| self.band(band, &own) >= OWN_SHARE * self.band(band, &seen);
        let known = |band| is_own(band).then(|| self.band(band, &restored) / all);
        let bands = (0..BANDS).map(known);
        bands.map(|power| power.map_or(f32::NAN, feature)).collect()
    }

    /// The power of a band.
    fn band(&self, band: usize, spectrum: &[f64]) -> f64 {
        let weights = &self.bands[band * BINS..][..BINS];
        weights.iter().zip(spectrum).map(|(w, p)| w * p).sum()
    }
}

/// A power as a number around 0.
fn feature(power: f64) -> f32 {
    const MIDDLE: f64 = -12.0;
    const SPREAD: f64 = 4.0;
    ((power.max(FLOOR).ln() - MIDDLE) / SPREAD) as f32
}

/// The samples of a frame; those beyond the window are missing.
fn frame_of(window: &[f32], number: usize) -> Vec<f32> {
    const BEFORE: usize = (FRAME - HOP) / 2;
    let sample = |i: usize| (number * HOP + i).checked_sub(BEFORE);
    let value = |i: usize| sample(i).and_then(|at| window.get(at)).copied();
    (0..FRAME).map(|i| value(i).unwrap_or(f32::NAN)).collect()
}

/// |DFT|² of a frame, from 0 to half of the rate.
fn power(samples: &[f64], cosines: &[f64]) -> Vec<f64> {
    let of_bin = |k: usize| power_at(samples, cosines, k);
    (0..BINS).map(of_bin).collect()
}

fn power_at(samples: &[f64], cosines: &[f64], k: usize) -> f64 {
    const QUARTERS: usize = 3 * FRAME / 4; // sin(x) = cos(x + 3/4 turn)
    let (mut re, mut im) = (0.0, 0.0);
    for (i, x) in samples.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        re += x * cosines[i * k % FRAME];
        im += x * cosines[(i * k + QUARTERS) % FRAME];
    }
    re * re + im * im
}

/// (BINS, BINS): how much of the power at j is seen at k. A line at j of a real signal is one at −j too.
fn smear(kernel: &[f64]) -> Vec<f64> {
    let at = |distance: usize| kernel[distance.min(FRAME - distance)];
    let mut matrix = Vec::with_capacity(BINS * BINS);
    for k in 0..BINS {
        for j in 0..BINS {
            let mirrored = if j % (BINS - 1) == 0 { 0.0 } else { at(k + j) };
            matrix.push(at(k.abs_diff(j)) + mirrored);
        }
    }
    matrix
}

fn product(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let row = |row: &[f64]| row.iter().zip(vector).map(|(a, x)| a * x).sum();
    matrix.chunks_exact(BINS).map(row).collect()
}

fn transposed_product(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; BINS];
    for (row, x) in matrix.chunks_exact(BINS).zip(vector) {
        sums.iter_mut().zip(row).for_each(|(sum, a)| *sum += a * x);
    }
    sums
}

/// P of a smeared spectrum.
fn sharpened(spectrum: &[f64], smeared: &[f64]) -> Vec<f64> {
    const TINY: f64 = 1e-30;
    let sums = transposed_product(smeared, &[1.0; BINS]);
    let total: f64 = spectrum.iter().sum();
    let mut lines: Vec<f64> = sums.iter().map(|sum| total / (sum * BINS as f64)).collect();
    for _ in 0..ROUNDS {
        let seen = product(smeared, &lines);
        let ratios = spectrum.iter().zip(&seen).map(|(y, s)| y / (s + TINY));
        let factors = transposed_product(smeared, &ratios.collect::<Vec<_>>());
        for ((line, factor), sum) in lines.iter_mut().zip(factors).zip(&sums) {
            *line *= factor / sum;
        }
    }
    lines
}

/// What is seen at k of the power there and beside it.
fn nearby(smeared: &[f64], lines: &[f64], k: usize) -> f64 {
    let near = k.saturating_sub(NEIGHBOURS)..(k + NEIGHBOURS + 1).min(BINS);
    near.map(|j| smeared[k * BINS + j] * lines[j]).sum()
}

/// Triangles of equal width on the mel scale, (BANDS, BINS).
fn mel_bands() -> Vec<f64> {
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let hertz = |mel: f64| 700.0 * (10f64.powf(mel / 2595.0) - 1.0);
    let step = (mel(HIGHEST) - mel(LOWEST)) / (BANDS + 1) as f64;
    let corner = |i: usize| hertz(mel(LOWEST) + step * i as f64);
    let mut bands = Vec::with_capacity(BANDS * BINS);
    for band in 0..BANDS {
        let (left, middle, right) = (corner(band), corner(band + 1), corner(band + 2));
        for bin in 0..BINS {
            let at = bin as f64 * RATE / FRAME as f64;
            let up = (at - left) / (middle - left);
            let down = (right - at) / (right - middle);
            bands.push(up.min(down).max(0.0));
        }
    }
    fill_empty_bands(&mut bands);
    bands
}

/// The lowest bands are narrower than a bin: such a band is the bin next to its middle.
fn fill_empty_bands(bands: &mut [f64]) {
    let mut last = 0;
    for weights in bands.chunks_exact_mut(BINS) {
        match weights.iter().position(|w| *w > 0.0) {
            Some(first) => last = first,
            None => weights[last + 1] = 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::random::{Purpose, Stream};

    /// A loud tone of 1 kHz, and a faint one of 5 kHz.
    fn tones() -> Vec<f32> {
        let wave = |hertz: f64, i: usize| (2.0 * PI * hertz * i as f64 / RATE).sin();
        let sample = |i: usize| 0.5 * wave(1000.0, i) + 0.0005 * wave(5000.0, i);
        (0..FRAMES * HOP).map(|i| sample(i) as f32).collect()
    }

    /// The bands with the middles next to 1 and 5 kHz.
    fn bands_of_tones() -> [usize; 2] {
        let bands = mel_bands();
        [1000.0, 5000.0].map(|hertz| {
            let bin = (hertz / RATE * FRAME as f64).round() as usize;
            let weight = |band: &usize| bands[band * BINS + bin];
            (0..BANDS)
                .max_by(|a, b| weight(a).total_cmp(&weight(b)))
                .unwrap()
        })
    }

    #[test]
    fn every_band_has_frequencies() {
        for weights in mel_bands().chunks_exact(BINS) {
            assert!(weights.iter().sum::<f64>() > 0.0);
        }
    }

    #[test]
    fn what_holes_hide_is_missing_and_the_rest_is_right() {
        let [loud, faint] = bands_of_tones();
        let clean = rows(&tones());
        assert_eq!(clean.len(), SHAPE.numbers());
        let frame = |rows: &[f32], number: usize| rows[number * BANDS..][..BANDS].to_vec();
        let middle = frame(&clean, 16);
        let loudest = (0..BANDS).max_by(|&a, &b| middle[a].total_cmp(&middle[b]));
        assert_eq!(loudest, Some(loud));
        assert!(middle[faint] > middle[faint + 3] + 0.5, "{middle:?}");
        let mut random = Stream::new(1, Purpose::Masks, 0, 0);
        let mut holed = tones();
        holed.iter_mut().for_each(|x| {
            if random.chance(0.5) {
                *x = f32::NAN;
            }
        });
        let estimated = rows(&holed);
        for number in 1..FRAMES - 1 {
            let (seen, whole) = (frame(&estimated, number), frame(&clean, number));
            assert!((seen[loud] - whole[loud]).abs() < 0.2, "frame {number}");
            assert!(
                seen[faint].is_nan(),
                "60 dB below, behind half of the samples"
            );
        }
    }

    #[test]
    fn a_gap_takes_the_frames_inside_it() {
        let mut holed = tones();
        holed[1000..1800].fill(f32::NAN); // 50 ms
        let (clean, seen) = (rows(&tones()), rows(&holed));
        let is_missing = |number: usize| seen[number * BANDS..][..BANDS].iter().all(|x| x.is_nan());
        assert!((9..=12).all(is_missing));
        let before = BANDS..3 * BANDS;
        assert_eq!(seen[before.clone()], clean[before], "before the gap");
        let [loud, _] = bands_of_tones();
        let last = 17 * BANDS + loud;
        assert!((seen[last] - clean[last]).abs() < 0.01, "behind it");
    }
}
