//! What clients and the page need to know of a model: columns, classes, and for images the pixels below every node.

use crate::answers::rows::shortest;
use serde_json::{Value, json};
use sumout::Model;
use sumout::model::Scaling;
use sumout::structure::{Frame, OUTSIDE, Position, Tree};
use sumout_data::encode::Encoder;
use sumout_data::layout::{ImageShape, Layout};

/// The number that is scaled to `z`: a whole one where 32 bits cannot tell, else with no more digits than they have.
fn at(scaling: &Scaling, z: f32) -> f64 {
    let x = scaling.invert(0, z);
    shortest(if scaling.apply(0, x.round()) == z {
        x.round()
    } else {
        x
    })
}

/// What clients and the page need to know of a model.
pub struct ModelSummary<'a> {
    /// What clients call it.
    pub name: &'a str,
    /// The model.
    pub model: &'a Model,
    /// The rows that it takes.
    pub layout: &'a Layout,
    /// What its columns take.
    pub encoder: &'a Encoder,
    /// The names of its classes.
    pub classes: &'a [String],
    /// How many rows there are to try.
    pub examples: usize,
}

impl ModelSummary<'_> {
    /// As `/v1/models` gives it.
    pub fn json(&self) -> Value {
        let structure = &self.model.structure;
        let trees = structure.trees.iter().map(|tree| levels(self.model, tree));
        let named = if self.encoder.named {
            self.encoder.width()
        } else {
            0
        };
        json!({
            "name": self.name,
            "width": self.encoder.width(),
            "classes": self.classes,
            "predicts": self.layout.predicted.map(|column| self.encoder.name(column)),
            "target": self.layout.target,
            "columns": (0..named).map(|column| self.column(column)).collect::<Vec<_>>(),
            "image": self.image(),
            "weights": structure.weights(),
            "examples": self.examples,
            "trees": trees.collect::<Vec<_>>(),
        })
    }

    fn column(&self, column: usize) -> Value {
        let kind = if self.encoder.is_discrete(column) {
            "category"
        } else if self.encoder.date(column).is_some() {
            "date"
        } else {
            "number"
        };
        let categories = self.encoder.categories(column);
        json!({ "name": self.encoder.name(column), "kind": kind, "categories": categories })
    }

    fn image(&self) -> Option<Value> {
        let is_table = |shape: &ImageShape| shape.height == 1 && !self.layout.columns.is_empty();
        let shape = self.layout.shape.filter(|shape| !is_table(shape))?; // a sequence is a table
        let range = [0.0, 1.0].map(|z| at(&self.model.scaling, z));
        Some(json!({
            "height": shape.height,
            "width": shape.width,
            "channels": shape.channels,
            "range": range,
        }))
    }
}

/// A box of pixels; `bottom` and `right` are one past the last. Without pixels, `bottom` is 0.
#[derive(Clone, Copy)]
struct PixelBox {
    top: usize,
    left: usize,
    bottom: usize,
    right: usize,
}

impl PixelBox {
    const EMPTY: Self = Self {
        top: usize::MAX,
        left: usize::MAX,
        bottom: 0,
        right: 0,
    };

    /// The smallest box around two.
    fn around(self, other: Self) -> Self {
        Self {
            top: self.top.min(other.top),
            left: self.left.min(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
        }
    }

    /// (top, left, height, width); null without pixels.
    fn json(&self) -> Value {
        if self.bottom == 0 {
            return json!(null);
        }
        json!([
            self.top,
            self.left,
            self.bottom - self.top,
            self.right - self.left
        ])
    }
}

/// The pixel of an input of the frame; empty outside of the image.
fn pixel_box(frame: &Frame, input: u32) -> PixelBox {
    let at = input as usize / frame.channels;
    let (top, left) = frame.margin();
    let row = (at / frame.frame_width).checked_sub(top);
    let column = (at % frame.frame_width).checked_sub(left);
    match (row, column) {
        (Some(y), Some(x)) if y < frame.height && x < frame.width => PixelBox {
            top: y,
            left: x,
            bottom: y + 1,
            right: x + 1,
        },
        _ => PixelBox::EMPTY,
    }
}

/// The box of pixels below every node, layer by layer.
fn boxes_of(frame: &Frame, tree: &Tree) -> Vec<Vec<PixelBox>> {
    let leaf = |position: &Position| {
        let inputs = position.inputs.iter().filter(|input| **input != OUTSIDE);
        let pixels = inputs.map(|&input| pixel_box(frame, input));
        pixels.fold(PixelBox::EMPTY, PixelBox::around)
    };
    let mut layers = vec![tree.positions.iter().map(leaf).collect::<Vec<_>>()];
    for level in &tree.levels {
        let below = &layers[layers.len() - 1];
        let node = |children: &Vec<u32>| {
            let boxes = children.iter().map(|&child| below[child as usize]);
            boxes.fold(PixelBox::EMPTY, PixelBox::around)
        };
        layers.push(level.children.iter().map(node).collect());
    }
    layers
}

/// For every level its nodes and channels; for images also the box of pixels (top, left, height, width) below each node.
fn levels(model: &Model, tree: &Tree) -> Value {
    let frame = model.structure.frame;
    let boxes = frame.map(|frame| boxes_of(&frame, tree));
    let mut layers = Vec::new();
    for l in 0..=tree.levels.len() {
        let of_layer = boxes
            .as_ref()
            .map(|boxes| boxes[l].iter().map(PixelBox::json));
        layers.push(json!({
            "nodes": tree.nodes(l),
            "channels": tree.channels(l),
            "boxes": of_layer.map(|boxes| boxes.collect::<Vec<_>>()),
        }));
    }
    json!(layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::image_model;

    #[test]
    fn ranges_are_what_people_would_write() {
        let range = |offset, scale| [0.0, 1.0].map(|z| at(&Scaling::uniform(offset, scale), z));
        assert_eq!(range(0.0, 1.0 / 255.0), [0.0, 255.0]);
        assert_eq!(range(0.5, 10.0), [0.5, 0.6]);
    }

    #[test]
    fn nodes_know_their_pixels() {
        let model = image_model(1);
        let levels = levels(&model, &model.structure.trees[0]);
        assert_eq!(
            levels[0]["boxes"][0],
            json!([0, 0, 1, 1]),
            "the frame's border cuts the first patch"
        );
        assert_eq!(levels[0]["boxes"][5], json!([1, 1, 2, 2]));
        assert_eq!(
            (&levels[1]["nodes"], &levels[1]["boxes"][3]),
            (&json!(4), &json!([3, 3, 3, 3]))
        );
        assert_eq!(levels[2]["boxes"][0], json!([0, 0, 6, 6]));
    }
}
