//! Small pictures of digits: ink where a pixel was seen, hatched where it is missing, blue where the model filled it in.
//!
//! All colours are chosen for white paper and carry their opacity, so that a page can turn them for dark paper.

use anyhow::Result;
use std::fmt::Write;
use sumout_data::formats::png::ColorType;
use sumout_data::formats::png::encode;

/// Red, green, blue, opacity.
pub type Colour = [u8; 4];

/// What was seen, at full strength.
const INK: [u8; 3] = [20, 24, 33];

/// What the model filled in.
const FILLED: [u8; 3] = [24, 86, 219];

/// How unsure it is.
const UNSURE: [u8; 3] = [190, 60, 0];

/// The two stripes of what is missing.
const MISSING: [Colour; 2] = [[255, 214, 176, 255], [255, 190, 132, 255]];

/// The standard deviation that is drawn at full strength, of numbers from 0 to 255.
const UNSURE_FULL: f32 = 128.0;

/// A picture of 8 bits a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Row by row.
    pub pixels: Vec<Colour>,
}

fn tinted(colour: [u8; 3], value: f32) -> Colour {
    let [r, g, b] = colour;
    [r, g, b, value.round().clamp(0.0, 255.0) as u8]
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
        let draw = |(i, &x): (usize, &f32)| match x.is_nan() {
            // Stripes from lower left to upper right, two pixels wide.
            true => MISSING[(i % width + i / width) / 2 % 2],
            false => tinted(INK, x),
        };
        Self::new(width, row.iter().enumerate().map(draw).collect())
    }

    /// The same with its holes filled.
    pub fn filled(row: &[f32], holes: &[f32], width: usize) -> Self {
        let draw = |(&x, hole): (&f32, &f32)| tinted(if hole.is_nan() { FILLED } else { INK }, x);
        Self::new(width, row.iter().zip(holes).map(draw).collect())
    }

    /// Standard deviations.
    pub fn unsure(variances: &[f32], width: usize) -> Self {
        Self::new(
            width,
            variances
                .iter()
                .map(|v| tinted(UNSURE, 255.0 * v.sqrt() / UNSURE_FULL))
                .collect(),
        )
    }

    /// What is drawn by the model alone, cut to what is not NaN.
    pub fn drawn(row: &[f32], width: usize) -> Self {
        let shown = |i: &usize| !row[*i].is_nan();
        let (ys, xs): (Vec<usize>, Vec<usize>) = (0..row.len())
            .filter(shown)
            .map(|i| (i / width, i % width))
            .unzip();
        let (Some(&top), Some(&bottom)) = (ys.iter().min(), ys.iter().max()) else {
            return Self::new(1, Vec::new());
        };
        let (left, right) = (
            xs.iter().min().map_or(0, |&x| x),
            xs.iter().max().map_or(0, |&x| x),
        );
        let cells = (top..=bottom).flat_map(|y| (left..=right).map(move |x| y * width + x));
        Self::new(
            right - left + 1,
            cells.map(|i| tinted(FILLED, row[i])).collect(),
        ) // NaN is drawn as 0
    }

    /// Where the numbers lie that are not NaN.
    pub fn place(row: &[f32], width: usize) -> Self {
        let draw = |x: &f32| {
            if x.is_nan() {
                tinted(INK, 16.0)
            } else {
                tinted(FILLED, 200.0)
            }
        };
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
            [[20, 24, 33, 0], [20, 24, 33, 255], MISSING[0], MISSING[1]]
        );
        let filled = Picture::filled(&full, &holes, 2);
        assert_eq!(filled.pixels[2..], [[24, 86, 219, 255], [24, 86, 219, 0]]);
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
