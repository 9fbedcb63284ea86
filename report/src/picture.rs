//! Small pictures of digits: observed pixels are ink, missing pixels are striped, and pixels from
//! the model are tinted.
//!
//! All colours are made for white paper and have an opacity, so that a page can invert them for
//! dark paper.

use crate::style::light;
use anyhow::Result;
use std::fmt::Write;
use sumout_data::formats::png::ColorType;
use sumout_data::formats::png::encode;

/// Red, green, blue, opacity.
pub type Colour = [u8; 4];

/// An observed pixel of 255.
pub(crate) const INK: [u8; 3] = light("ink");

/// A pixel from the model.
const FILLED: [u8; 3] = light("model");

/// Uncertainty.
const UNSURE: [u8; 3] = light("heat");

/// The two stripes of missing pixels.
const MISSING: [Colour; 2] = [opaque(light("hole")), opaque(light("stripe"))];

/// The standard deviation that has full opacity, for pixels from 0 to 255.
const UNSURE_FULL: f32 = 128.0;

/// A picture of 8 bits per channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Row by row.
    pub pixels: Vec<Colour>,
}

const fn opaque([r, g, b]: [u8; 3]) -> Colour {
    [r, g, b, 255]
}

fn tinted(colour: [u8; 3], value: f32) -> Colour {
    let [r, g, b] = colour;
    [r, g, b, value.round().clamp(0.0, 255.0) as u8]
}

/// Stripes from lower left to upper right, two pixels wide.
fn stripe(y: usize, x: usize) -> Colour {
    MISSING[(x + y) / 2 % 2]
}

fn ink_or_stripe(value: f32, y: usize, x: usize) -> Colour {
    if value.is_nan() {
        stripe(y, x)
    } else {
        tinted(INK, value)
    }
}

impl Picture {
    fn new(width: usize, pixels: Vec<Colour>) -> Self {
        Self {
            width,
            height: pixels.len() / width.max(1),
            pixels,
        }
    }

    /// Numbers from 0 to 255, NaN where missing.
    pub fn seen(row: &[f32], width: usize) -> Self {
        let draw = |(i, &x): (usize, &f32)| ink_or_stripe(x, i / width, i % width);
        Self::new(width, row.iter().enumerate().map(draw).collect())
    }

    /// The same with its holes filled.
    pub fn filled(row: &[f32], holes: &[f32], width: usize) -> Self {
        let draw = |(&x, hole): (&f32, &f32)| tinted(if hole.is_nan() { FILLED } else { INK }, x);
        Self::new(width, row.iter().zip(holes).map(draw).collect())
    }

    /// Standard deviations.
    pub fn unsure(variances: &[f32], width: usize) -> Self {
        let draw = |v: &f32| tinted(UNSURE, 255.0 * v.sqrt() / UNSURE_FULL);
        Self::new(width, variances.iter().map(draw).collect())
    }

    /// Pixels from the model alone, cut to those that are not NaN.
    pub fn drawn(row: &[f32], width: usize) -> Self {
        let shown = |i: &usize| !row[*i].is_nan();
        let (ys, xs): (Vec<usize>, Vec<usize>) = (0..row.len())
            .filter(shown)
            .map(|i| (i / width, i % width))
            .unzip();
        let (Some(&top), Some(&bottom)) = (ys.iter().min(), ys.iter().max()) else {
            return Self::new(1, Vec::new());
        };
        let left = xs.iter().min().copied().unwrap_or(0);
        let right = xs.iter().max().copied().unwrap_or(0);
        let cells = (top..=bottom).flat_map(|y| (left..=right).map(move |x| y * width + x));
        let pixels = cells.map(|i| tinted(FILLED, row[i])); // NaN is drawn as 0
        Self::new(right - left + 1, pixels.collect())
    }

    /// The place of the numbers that are not NaN.
    pub fn place(row: &[f32], width: usize) -> Self {
        let (outside, inside) = (tinted(INK, 16.0), tinted(FILLED, 200.0));
        let draw = |x: &f32| if x.is_nan() { outside } else { inside };
        Self::new(width, row.iter().map(draw).collect())
    }

    /// As a PNG file.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        encode(
            &mut bytes,
            (self.width, self.height),
            ColorType::Rgba,
            self.pixels.as_flattened(),
        )?;
        Ok(bytes)
    }

    /// As an element of a page.
    pub fn to_html(&self, words: &str) -> Result<String> {
        let data = base64(&self.to_png()?);
        let Self { width, height, .. } = self;
        Ok(format!(
            "<img class=\"px\" width=\"{width}\" height=\"{height}\" alt=\"{words}\" src=\"data:image/png;base64,{data}\">"
        ))
    }
}

/// RFC 4648.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
            let _ = text.write_char(if i <= group.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn pixels_say_where_they_come_from() {
        let nan = f32::NAN;
        let (holes, full) = ([0.0, 255.0, nan, nan], [0.0, 255.0, 300.0, -5.0]);
        let seen = Picture::seen(&holes, 2);
        assert_eq!((seen.width, seen.height), (2, 2));
        assert_eq!(
            seen.pixels,
            [tinted(INK, 0.0), opaque(INK), MISSING[0], MISSING[1]]
        );
        let filled = Picture::filled(&full, &holes, 2);
        assert_eq!(filled.pixels[2..], [opaque(FILLED), tinted(FILLED, 0.0)]);
        assert_eq!(
            Picture::unsure(&[0.0, 64.0 * 64.0], 2).pixels.map_opacity(),
            [0, 128]
        );
    }

    #[test]
    fn what_a_neuron_draws_is_cut_out() {
        let nan = f32::NAN;
        let row = [nan, nan, nan, nan, 1.0, 2.0, nan, 3.0, 4.0];
        let drawn = Picture::drawn(&row, 3);
        assert_eq!(
            (drawn.width, drawn.height, drawn.pixels.map_opacity()),
            (2, 2, vec![1, 2, 3, 4])
        );
        assert!(Picture::drawn(&[nan; 9], 3).pixels.is_empty());
        assert_eq!(
            Picture::place(&row, 3).pixels.map_opacity(),
            [16, 16, 16, 16, 200, 200, 16, 200, 200]
        );
    }

    trait Opacity {
        fn map_opacity(&self) -> Vec<u8>;
    }

    impl Opacity for Vec<Colour> {
        fn map_opacity(&self) -> Vec<u8> {
            self.iter().map(|colour| colour[3]).collect()
        }
    }
}
