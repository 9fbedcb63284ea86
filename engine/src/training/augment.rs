//! Turned and stretched images, for training. What comes from beyond the image's edge is missing, and so is what would
//! be made from something missing.

use crate::random::Stream;
use crate::structure::{Frame, Kind};

/// A turn about the image's centre and a change of size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Counter-clockwise, in radians.
    pub angle: f64,
    /// More than one enlarges.
    pub size: f64,
}

impl Turn {
    /// Up to `degrees` either way, and up to the part `stretch` larger or smaller.
    pub fn draw(degrees: f64, stretch: f64, random: &mut Stream) -> Self {
        let mut up_to = |most: f64| most * (2.0 * random.uniform() - 1.0);
        Self {
            angle: up_to(degrees).to_radians(),
            size: 1.0 + up_to(stretch),
        }
    }

    /// The turned image, row by row, (height, width, channels). Numbers are interpolated between the four nearest
    /// pixels; categories are those of the nearest.
    pub fn apply(
        &self,
        frame: &Frame,
        kind: impl Fn(usize) -> Kind,
        image: &[f32],
        turned: &mut [f32],
    ) {
        let (sin, cos) = self.angle.sin_cos();
        let centre = |side: usize| (side as f64 - 1.0) / 2.0;
        let (middle, across) = (centre(frame.height), centre(frame.width));
        let pixels =
            (0..frame.height).flat_map(|y| (0..frame.width).map(move |x| (y as f64, x as f64)));
        for (pixel, (y, x)) in turned.chunks_exact_mut(frame.channels).zip(pixels) {
            let (down, right) = ((y - middle) / self.size, (x - across) / self.size);
            let from = (
                middle + cos * down + sin * right,
                across - sin * down + cos * right,
            );
            for (channel, to) in pixel.iter_mut().enumerate() {
                *to = match kind(channel) {
                    Kind::Gaussian => between(frame, image, from, channel),
                    _ => at(frame, image, (from.0.round(), from.1.round()), channel),
                };
            }
        }
    }
}

/// The number of a pixel, or NaN beyond the edge.
fn at(frame: &Frame, image: &[f32], (y, x): (f64, f64), channel: usize) -> f32 {
    let inside = (0.0..frame.height as f64).contains(&y) && (0.0..frame.width as f64).contains(&x);
    if inside {
        image[(y as usize * frame.width + x as usize) * frame.channels + channel]
    } else {
        f32::NAN
    }
}

/// The number between four pixels; one that has no part in it may be missing.
fn between(frame: &Frame, image: &[f32], (y, x): (f64, f64), channel: usize) -> f32 {
    const NOTHING: f64 = 1e-6;
    let (top, left) = ((y + NOTHING).floor(), (x + NOTHING).floor());
    let (below, right) = ((y - top).max(0.0), (x - left).max(0.0));
    let corners = [
        (top, left, (1.0 - below) * (1.0 - right)),
        (top, left + 1.0, (1.0 - below) * right),
        (top + 1.0, left, below * (1.0 - right)),
        (top + 1.0, left + 1.0, below * right),
    ];
    let parts = corners.iter().filter(|(_, _, part)| *part > 2.0 * NOTHING);
    parts
        .map(|&(y, x, part)| part as f32 * at(frame, image, (y, x), channel))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_PI_2, PI};

    const FRAME: Frame = Frame {
        height: 3,
        width: 3,
        channels: 1,
        frame_height: 3,
        frame_width: 3,
    };
    const IMAGE: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    fn turned(turn: Turn, kind: Kind, image: &[f32]) -> Vec<f32> {
        let mut turned = vec![0.0; 9];
        turn.apply(&FRAME, |_| kind, image, &mut turned);
        turned.iter().map(|x| (x * 1e3).round() / 1e3).collect()
    }

    #[test]
    fn quarter_turns_move_pixels() {
        for kind in [Kind::Gaussian, Kind::Categorical(10)] {
            let by = |angle| turned(Turn { angle, size: 1.0 }, kind, &IMAGE);
            assert_eq!(by(0.0), IMAGE);
            assert_eq!(
                by(FRAC_PI_2),
                [3.0, 6.0, 9.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0],
                "counter-clockwise"
            );
            assert_eq!(by(PI), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        }
    }

    #[test]
    fn sizes_change_and_what_is_beyond_the_edge_is_missing() {
        let larger = turned(
            Turn {
                angle: 0.0,
                size: 2.0,
            },
            Kind::Gaussian,
            &IMAGE,
        );
        assert_eq!(larger, [3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0]);
        let smaller = turned(
            Turn {
                angle: 0.0,
                size: 0.5,
            },
            Kind::Gaussian,
            &IMAGE,
        );
        assert_eq!(smaller[4], 5.0);
        assert!(
            (0..9).filter(|&i| i != 4).all(|i| smaller[i].is_nan()),
            "{smaller:?}"
        );
    }

    #[test]
    fn what_is_made_from_something_missing_is_missing() {
        let mut image = IMAGE;
        image[0] = f32::NAN;
        let still = turned(
            Turn {
                angle: 0.0,
                size: 1.0,
            },
            Kind::Gaussian,
            &image,
        );
        assert!(still[0].is_nan() && still[1..] == IMAGE[1..]);
        let larger = turned(
            Turn {
                angle: 0.0,
                size: 2.0,
            },
            Kind::Gaussian,
            &image,
        );
        assert!(
            larger[0].is_nan() && larger[1] == 3.5,
            "the first lies between four pixels, the next between two"
        );
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = Stream::new(3, crate::random::Purpose::Augment, 0, 0);
        let turns: Vec<Turn> = (0..1000)
            .map(|_| Turn::draw(10.0, 0.2, &mut random))
            .collect();
        let most = |f: fn(&Turn) -> f64| turns.iter().map(f).fold(0.0, f64::max);
        assert!((9.0..=10.0).contains(&most(|turn| turn.angle.abs()).to_degrees()));
        assert!((1.19..=1.2).contains(&most(|turn| turn.size)));
    }
}
