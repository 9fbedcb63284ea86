//! The trees of a model as pictures: which columns meet first.

use crate::text::escape;
use std::fmt::Write;
use sumout::Structure;
use sumout::structure::{OUTSIDE, Tree};

/// From one column to the next.
const STEP: f64 = 20.0;

/// Names end here, and are cut to so many letters.
const NAMES: f64 = 190.0;
const LETTERS: usize = 24;

/// The whole width.
const WIDTH: f64 = 480.0;

/// Above the first column and below the last.
const MARGIN: f64 = 6.0;

/// A node: a column, or what its children make together.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Column(usize),
    Joined(Vec<Node>),
}

/// A shape that one or more trees of a model have.
#[derive(Clone, Debug)]
pub struct Shape {
    root: Node,
    /// How many trees have it.
    pub trees: usize,
}

/// All shapes, the most frequent first.
pub fn shapes(structure: &Structure) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    for root in structure.trees.iter().filter_map(root_of) {
        match shapes.iter_mut().find(|shape| shape.root == root) {
            Some(shape) => shape.trees += 1,
            None => shapes.push(Shape { root, trees: 1 }),
        }
    }
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.trees));
    shapes
}

fn root_of(tree: &Tree) -> Option<Node> {
    let mut layer = Vec::new();
    for position in &tree.positions {
        let inputs = position.inputs.iter().filter(|&&input| input != OUTSIDE);
        layer.push(joined(
            inputs.map(|&input| Node::Column(input as usize)).collect(),
        ));
    }
    for level in &tree.levels {
        let node = |children: &Vec<u32>| {
            let own = children.iter().map(|&child| layer[child as usize].clone());
            joined(own.collect())
        };
        layer = level.children.iter().map(node).collect();
    }
    layer.pop()
}

/// What has one child is that child.
fn joined(mut children: Vec<Node>) -> Node {
    match children.len() {
        1 => children.remove(0),
        _ => Node::Joined(children),
    }
}

impl Node {
    /// Joints on the longest way to a column.
    fn height(&self) -> usize {
        match self {
            Self::Column(_) => 0,
            Self::Joined(children) => 1 + children.iter().map(Self::height).max().unwrap_or(0),
        }
    }

    fn columns(&self) -> usize {
        match self {
            Self::Column(_) => 1,
            Self::Joined(children) => children.iter().map(Self::columns).sum(),
        }
    }
}

impl Shape {
    /// Whether all columns meet at once: there is nothing to see.
    pub fn is_flat(&self) -> bool {
        self.root.height() < 2
    }

    /// Draws it; `name` gives the names of columns, `target` is marked.
    pub fn svg(&self, name: &dyn Fn(usize) -> String, target: Option<usize>) -> String {
        let high = STEP * self.root.columns() as f64 + 2.0 * MARGIN;
        let mut drawing = Drawing {
            name,
            target,
            step: (WIDTH - NAMES - 24.0) / self.root.height().max(1) as f64,
            next: MARGIN + STEP / 2.0,
            svg: format!(
                "<svg class=\"chart tree\" viewBox=\"0 0 {WIDTH} {high}\" role=\"img\" aria-label=\"the tree of columns\">\n"
            ),
        };
        let root = drawing.node(&self.root);
        let (x, y) = (root.x, root.y);
        let _ = writeln!(
            drawing.svg,
            "<path class=\"joint\" d=\"M{x:.1} {y:.1}h12\"/>"
        );
        drawing.svg + "</svg>\n"
    }
}

/// A picture on its way.
struct Drawing<'a> {
    name: &'a dyn Fn(usize) -> String,
    target: Option<usize>,
    step: f64, // from one joint to the next
    next: f64, // the line of the next column
    svg: String,
}

/// Where a node is.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
}

impl Drawing<'_> {
    fn node(&mut self, node: &Node) -> Place {
        match node {
            Node::Column(column) => self.column(*column),
            Node::Joined(children) => {
                let x = NAMES + 10.0 + self.step * node.height() as f64;
                let places: Vec<Place> = children.iter().map(|child| self.node(child)).collect();
                self.joint(x, &places)
            }
        }
    }

    fn column(&mut self, column: usize) -> Place {
        let (name, y) = ((self.name)(column), self.next);
        self.next += STEP;
        let class = if self.target == Some(column) {
            "end true"
        } else {
            "end"
        };
        let (whole, cut) = (escape(&name), escape(&cut(&name)));
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" x=\"{NAMES}\" y=\"{:.1}\">{cut}<title>{whole}</title></text>",
            y + 4.0
        );
        Place { x: NAMES + 10.0, y }
    }

    /// Lines from the children to a joint in their middle.
    fn joint(&mut self, x: f64, children: &[Place]) -> Place {
        for child in children {
            let _ = writeln!(
                self.svg,
                "<path class=\"joint\" d=\"M{:.1} {:.1}H{x:.1}\"/>",
                child.x, child.y
            );
        }
        let top = children
            .iter()
            .map(|child| child.y)
            .fold(f64::MAX, f64::min);
        let low = children.iter().map(|child| child.y).fold(0.0, f64::max);
        let y = (top + low) / 2.0;
        let _ = writeln!(
            self.svg,
            "<path class=\"joint\" d=\"M{x:.1} {top:.1}V{low:.1}\"/><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
        );
        Place { x, y }
    }
}

/// The start of a long name.
fn cut(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    let start: String = name.chars().take(LETTERS - 1).collect();
    format!("{start}…")
}

/// Shapes that are drawn, and columns above which pictures are folded.
const DRAWN: usize = 4;
const MANY: usize = 60;

/// The pictures.
pub fn section(
    structure: &Structure,
    name: &dyn Fn(usize) -> String,
    target: Option<usize>,
) -> String {
    let (flat, shapes): (Vec<Shape>, Vec<Shape>) =
        shapes(structure).into_iter().partition(Shape::is_flat);
    if shapes.is_empty() {
        return String::new(); // nothing to draw: all columns meet at once
    }
    let trees = structure.trees.len();
    let at_once: usize = flat.iter().map(|shape| shape.trees).sum();
    let at_once = match at_once {
        0 => String::new(),
        1 => " One more tree has a single joint, in which all columns meet.".into(),
        n => format!(" {n} more trees have a single joint, in which all columns meet."),
    };
    let mut pictures = String::new();
    for shape in shapes.iter().take(DRAWN) {
        let words = match shape.trees {
            1 => "one tree".to_owned(),
            n => format!("{n} trees"),
        };
        let svg = shape.svg(name, target);
        let _ = writeln!(
            pictures,
            "<figure>\n{svg}<figcaption>{words} of {trees}</figcaption>\n</figure>"
        );
    }
    let mut pictures = format!("<div class=\"two\">\n{pictures}</div>\n");
    if structure.width() > MANY {
        pictures = format!("<details>\n<summary>The pictures</summary>\n{pictures}</details>\n");
    }
    let left_out = match shapes.len().saturating_sub(DRAWN) {
        0 => String::new(),
        1 => " One more shape is not drawn.".into(),
        n => format!(" {n} more shapes are not drawn."),
    };
    format!(
        "<section class=\"card\">\n<h2>The tree of columns</h2>\n<p>The model is a tree, or several side by side. Columns that depend on \
         each other most meet first, and every joint is a hidden variable that explains what is left of it.{at_once}{left_out}</p>\n{pictures}</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::Kind;

    #[test]
    fn a_tree_has_a_name_for_every_column_and_a_joint_for_every_node() {
        let table = Structure::table(&[Kind::Gaussian; 4])
            .components(2)
            .channels([2]);
        let groups = vec![vec![3, 1], vec![0], vec![2]];
        let table = table
            .trees([groups.clone(), groups, vec![vec![0, 1, 2, 3]]])
            .window(2);
        let structure = table.build().unwrap();
        let page = section(&structure, &|column| column.to_string(), None);
        assert!(page.contains("<h2>The tree of columns</h2>"), "{page}");
        assert!(page.contains("One more tree has a single joint"), "{page}");
        let shapes = shapes(&structure);
        assert_eq!(shapes.iter().map(|s| s.trees).collect::<Vec<_>>(), [2, 1]);
        assert!(!shapes[0].is_flat() && shapes[1].is_flat());
        let name = |column: usize| format!("<a name that is much too long> {column}");
        let svg = shapes[0].svg(&name, Some(2));
        assert_eq!(svg.matches("<text").count(), 4);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"end true\"").count(), 1);
        assert!(
            svg.contains(">&lt;a name that is much to…<title>&lt;a name"),
            "{svg}"
        );
        let order: Vec<usize> = [3, 1, 0, 2]
            .map(|c| svg.find(&format!("long&gt; {c}<")).unwrap())
            .to_vec();
        assert!(order.is_sorted(), "columns that meet stand together");
    }
}
