//! A blueprint as a table for people.

use crate::structure::{Structure, Tree};
use std::fmt::Write;

impl Structure {
    /// A table of levels, channels, weights and multiply-adds, for people.
    pub fn inspect(&self) -> String {
        let mut text = String::new();
        let inputs = match self.frame {
            Some(f) => format!(
                "{}×{}×{} in a frame of {}×{}",
                f.height, f.width, f.channels, f.frame_height, f.frame_width
            ),
            None => format!("{} columns", self.kinds.len()),
        };
        let _ = writeln!(text, "inputs   {inputs}\nclasses  {}", self.classes);
        for (index, tree) in self.trees.iter().enumerate() {
            describe_leaves(&mut text, index, tree);
            (1..=tree.levels.len()).for_each(|l| describe_level(&mut text, tree, l));
        }
        let (classes, all, work) = (self.class_weights(), self.weights(), self.multiply_adds());
        let _ = writeln!(text, "class rows {classes:38} {classes:14}");
        let _ = writeln!(text, "total      {all:38} {work:14}");
        text
    }
}

fn describe_leaves(text: &mut String, index: usize, tree: &Tree) {
    let sizes = || tree.positions.iter().map(|position| position.inputs.len());
    let (min, max) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    let size = if min == max {
        format!("{max}")
    } else {
        format!("{min} to {max}")
    };
    let (nodes, components, families) =
        (tree.positions.len(), tree.components, tree.families.len());
    let word = if families == 1 { "family" } else { "families" };
    let _ = writeln!(text, "tree {index}");
    let _ = writeln!(
        text,
        "  level   nodes  channels  matrices       weights  multiply-adds"
    );
    let _ = writeln!(
        text,
        "  leaves {nodes:6} {components:9}  (structures of {size} numbers, {families} leaf {word})"
    );
}

fn describe_level(text: &mut String, tree: &Tree, l: usize) {
    let matrix = tree.channels(l) * tree.channels(l - 1);
    let matrices = tree.levels[l - 1].matrices();
    let _ = writeln!(
        text,
        "  {l:<6} {:6} {:9} {matrices:9} {:13} {:14}",
        tree.nodes(l),
        tree.channels(l),
        matrices * matrix,
        tree.nodes(l - 1) * matrix
    );
}
