//! Stands in where there are no tiles: they suit no shape, and nothing else is ever called.

use crate::arithmetic::amx::{RightSide, Target};

pub(crate) const DERIVATIVE: f32 = 1.0;

#[derive(Clone, Copy)]
pub(crate) enum Parts {
    Two,
    Three,
}

#[expect(dead_code, reason = "nothing reads it here")]
pub(crate) enum Right<'a> {
    Panels {
        depth: usize,
        numbers: &'a [f32],
    },
    Rows {
        rows: &'a [&'a [f32]],
        column: usize,
    },
    Turned {
        columns: usize,
        panels: &'a [&'a [f32]],
    },
}

pub(crate) struct Left;

impl Left {
    pub fn rows(&mut self, _: Parts, _: usize, _: &[&[f32]], _: f32) {}

    pub fn columns(&mut self, _: Parts, _: usize, _: &[&[f32]], _: f32) {}
}

pub(crate) fn suits(_depth: usize, _width: usize) -> bool {
    false
}

pub(crate) fn with_left(_: impl FnOnce(&mut Left)) {}

pub(crate) fn multiply(_: &Left, _: RightSide<'_>, _: Target<'_, '_>) {}
