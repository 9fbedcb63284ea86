//! What neurons stand for.

use crate::neuron_states::{NeuronState, NodeStates};
use crate::picture::Picture;
use crate::text::percent;
use anyhow::Result;

/// All levels, the top one first.
pub fn section(nodes: &[NodeStates], side: usize) -> Result<String> {
    let mut rows = String::new();
    for node in nodes.iter().rev() {
        rows.push_str(&one_level(node, side)?);
    }
    Ok(format!(
        "<section class=\"card\">\n<h2>What neurons stand for</h2>\n\
         <p>The model is a tree. Each node is a hidden variable that stands for a part of the image, and each neuron is one state of \
         that variable. The model can show what the part looks like in that state. Below are the nodes from the whole image down to the \
         patch in its middle, with the states that are used most. Each state has the average of its samples, three of its samples, and \
         how often it is used.</p>\n\
         <div class=\"levels\">\n{rows}</div>\n</section>\n"
    ))
}

fn one_level(node: &NodeStates, side: usize) -> Result<String> {
    let Some(first) = node.neurons.first() else {
        return Ok(String::new());
    };
    let below = Picture::drawn(&first.average, side);
    let place = Picture::place(&first.average, side).to_html("its place in the image")?;
    let mut neurons = String::new();
    for neuron in &node.neurons {
        neurons.push_str(&one_neuron(neuron, side)?);
    }
    let level = if node.layer == 0 {
        "Leaves".to_owned()
    } else {
        format!("Level {}", node.layer)
    };
    let nodes = if node.nodes == 1 {
        "one node".to_owned()
    } else {
        format!("one of {} nodes", node.nodes)
    };
    Ok(format!(
        "<div class=\"level\">\n<div class=\"where\">{place}<p><b>{level}</b><br>{}×{} pixels<br>{nodes}<br>{} states</p></div>\n\
         <div class=\"neurons\">{neurons}</div>\n</div>\n",
        below.height, below.width, node.channels
    ))
}

fn one_neuron(neuron: &NeuronState, side: usize) -> Result<String> {
    let average = Picture::drawn(&neuron.average, side).to_html("average")?;
    let mut samples = String::new();
    for row in &neuron.samples {
        samples.push_str(&Picture::drawn(row, side).to_html("sample")?);
    }
    let caption = caption(neuron);
    Ok(format!(
        "<figure class=\"neuron\">{average}<div>{samples}</div><figcaption>{caption}</figcaption></figure>\n"
    ))
}

/// How often a neuron is used, and a word if its picture is empty.
fn caption(neuron: &NeuronState) -> String {
    const FAINT: f32 = 8.0; // of 255
    let blank = neuron.average.iter().all(|x| x.is_nan() || *x < FAINT);
    let word = if blank { "<br>empty paper" } else { "" };
    format!("{}{word}", percent(neuron.probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_picture_is_named() {
        let neuron = |ink: f32| NeuronState {
            probability: 0.25,
            average: vec![ink, f32::NAN, 0.0],
            samples: Vec::new(),
        };
        assert_eq!(caption(&neuron(90.0)), "25 %");
        assert_eq!(caption(&neuron(1.0)), "25 %<br>empty paper");
    }
}
