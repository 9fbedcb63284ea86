//! The page: plain HTML with its style and pictures inside, nothing to load and nothing to run.

use crate::accuracy::{IID, Score};
use crate::chart;
use crate::gallery;
use crate::gallery::{ClassDraws, Completion};
use crate::neurons;
use crate::neurons::{Meaning, Stage};
use crate::picture::Picture;
use anyhow::Result;
use std::fmt::Write;
use sumout::queries::predictor::{Predictor, argmax_rows};
use sumout_data::layout::Table;

const STYLE: &str = include_str!("style.css");

/// Samples of every class.
const DRAWN: usize = 9;

/// What was run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Where model and page are.
    pub folder: &'a str,
    /// Training images.
    pub trained_on: usize,
    /// Steps of training.
    pub steps: usize,
    /// The seed.
    pub seed: u64,
}

/// Asks the model and writes the page.
pub fn write(
    predictor: &mut Predictor,
    test: &Table,
    scores: &[Score],
    run: &Run<'_>,
) -> Result<String> {
    let side = test
        .layout
        .shape
        .map_or(test.layout.width, |shape| shape.width);
    let completions = gallery::completions(predictor, test, run.seed)?;
    let samples = gallery::classes(predictor, DRAWN, run.seed)?;
    let middle = side / 2 * side + side / 2;
    let stages = neurons::above(predictor, middle, run.seed)?;
    let sections = [
        head(run, scores),
        accuracy(scores),
        holes(&completions, side)?,
        classes(&samples, side)?,
        levels(&stages, side)?,
        next(run),
        foot(run, predictor),
    ];
    Ok(sections.concat())
}

fn head(run: &Run<'_>, scores: &[Score]) -> String {
    let learned = thousands(run.trained_on);
    let asked = thousands(scores.first().map_or(0, |score| score.images));
    let mut cards = String::new();
    let lead = [
        (0, "nothing missing"),
        (4, "nine of ten pixels missing"),
        (IID.len() + 4, "two 11×11 squares missing"),
    ];
    for (index, words) in lead {
        let Some(score) = scores.get(index) else {
            continue;
        };
        let [ours, knn, mean] = [0, 1, 2].map(|method| score.percent(method));
        let _ = writeln!(
            cards,
            "<li><strong>{ours:.1}<small> %</small></strong><span>right with {words}</span>\
             <span class=\"rivals\"><i class=\"m1\"></i>KNN {knn:.1} <i class=\"m2\"></i>mean fill {mean:.1}</span></li>"
        );
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Sumout: digits with holes</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"eyebrow\">sumout demo</p>\n\
         <h1>Digits with holes</h1>\n\
         <p class=\"lead\">A deep mixture model learned {learned} handwritten digits and was then asked about {asked} others with pixels \
         missing. It had learned with random pixels and regions summed out; which ones and how many these would be, it was never told. What is missing is <em>summed out</em> of an exact probability, not guessed and filled in. \
         So the same model classifies, completes, samples, and says how sure it is.</p>\n\
         <ul class=\"cards\">\n{cards}</ul>\n</header>\n"
    )
}

fn accuracy(scores: &[Score]) -> String {
    let (iid, squares) = scores.split_at(IID.len().min(scores.len()));
    let (iid_chart, squares_chart) = (chart::iid(iid), chart::squares(squares));
    let (iid_table, squares_table) = (chart::table(iid), chart::table(squares));
    format!(
        "<section>\n<h2>What missing pixels cost</h2>\n\
         <p>Share of test images that are classified right; more is missing further right. Both rivals compare an image with all \
         training images and let the five nearest vote. Sumout adds up its log scores of nine shifts of the image, by up to one pixel \
         each way.</p>\n\
         <ul class=\"legend\"><li class=\"m0\"><i></i><b>Sumout</b> sums missing pixels out</li>\
         <li class=\"m1\"><i></i><b>KNN</b> measures distances over the pixels that are seen</li>\
         <li class=\"m2\"><i></i><b>mean fill + KNN</b> fills holes with the average digit first</li></ul>\n\
         <div class=\"two\">\n<figure>\n{iid_chart}<figcaption>Every pixel is missing with the same probability.</figcaption>\n</figure>\n\
         <figure>\n{squares_chart}<figcaption>One, two or three squares are missing, anywhere.</figcaption>\n</figure>\n</div>\n\
         <details>\n<summary>The numbers</summary>\n<div class=\"two\">\n{iid_table}{squares_table}</div>\n\
         <p class=\"note\">2×11² is two squares of 11×11 pixels. On 1,000 images an accuracy of 90 % has a standard error of about 1.</p>\n\
         </details>\n</section>\n"
    )
}

fn holes(completions: &[Completion], side: usize) -> Result<String> {
    let mut rows = String::new();
    for completion in completions {
        rows.push_str(&one_completion(completion, side)?);
    }
    let heads = ["digit", "seen", "mean", "uncertainty", "mode", "samples"];
    let heads: String = heads
        .iter()
        .map(|head| format!("<span>{head}</span>"))
        .collect();
    Ok(format!(
        "<section>\n<h2>What could be there</h2>\n\
         <p>Every row is the first test image of its class; nothing was picked by hand. \
         <span class=\"key seen\">Ink</span> was seen, <span class=\"key gap\">stripes</span> are missing, \
         <span class=\"key fill\">blue</span> is what the model says.</p>\n\
         <ul class=\"terms\"><li><b>Mean</b>: the expected value of every missing pixel given the seen ones, exactly; pale where several \
         digits are possible.</li><li><b>Uncertainty</b>: the standard deviation of each missing pixel.</li>\
         <li><b>Mode</b>: the most likely joint assignment of hidden states and pixels; often bare, for clear paper is a surer bet than any one stroke.</li>\
         <li><b>Samples</b>: draws from all that could be there, each as a whole.</li>\
         <li><b>Bars</b>: the probability of each class given what is seen; the true one is <span class=\"true\">marked</span>.</li></ul>\n\
         <div class=\"fills\">\n<div class=\"heads\" aria-hidden=\"true\">{heads}<span>class</span></div>\n{rows}</div>\n</section>\n"
    ))
}

fn one_completion(c: &Completion, side: usize) -> Result<String> {
    let Completion { words, label, .. } = c;
    let filled = |row: &[f32]| Picture::filled(row, &c.holes, side);
    let mut tiles = vec![
        tile(
            &Picture::seen(&c.original, side),
            &format!("A {label}"),
            "digit",
        )?,
        tile(
            &Picture::seen(&c.holes, side),
            &format!("{words} missing"),
            "seen",
        )?,
        tile(&filled(&c.mean), "mean completion", "mean")?,
        tile(
            &Picture::unsure(&c.variance, side),
            "uncertainty",
            "uncertainty",
        )?,
        tile(&filled(&c.mode), "mode", "mode")?,
    ];
    for sample in &c.samples {
        tiles.push(tile(&filled(sample), "a sample", "sample")?);
    }
    let best = argmax_rows(&c.posterior, c.posterior.len())[0];
    let verdict = format!("{best}, {:.0} %", 100.0 * c.posterior[best]);
    let right = if best == *label { "" } else { " wrong" };
    Ok(format!(
        "<div class=\"fill-row\">\n<h3>{words} missing</h3>\n{}<figure class=\"posterior\">{}<figcaption class=\"verdict{right}\">{verdict}</figcaption></figure>\n</div>\n",
        tiles.concat(),
        bars(&c.posterior, *label)
    ))
}

fn tile(picture: &Picture, words: &str, caption: &str) -> Result<String> {
    let image = picture.to_html(words)?;
    Ok(format!(
        "<figure class=\"tile\">{image}<figcaption>{caption}</figcaption></figure>\n"
    ))
}

/// P(y|x_o) as bars with the classes below them.
fn bars(posterior: &[f64], label: usize) -> String {
    const STEP: f64 = 15.0;
    const TALL: f64 = 62.0;
    let (wide, floor) = (STEP * posterior.len() as f64, TALL + 4.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {wide} {}\" role=\"img\" aria-label=\"class probabilities\">",
        floor + 16.0
    );
    let _ = write!(svg, "<path class=\"grid\" d=\"M0 {floor}H{wide}\"/>");
    for (class, p) in posterior.iter().enumerate() {
        let (left, high) = (STEP * class as f64, (TALL * p).max(1.0));
        let is_true = if class == label {
            " class=\"true\""
        } else {
            ""
        };
        let _ = write!(
            svg,
            "<rect{is_true} x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{high:.1}\" rx=\"1.5\"><title>{class}: {:.1} %</title></rect>\
             <text{is_true} x=\"{:.1}\" y=\"{:.1}\">{class}</text>",
            left + 2.5,
            floor - high,
            STEP - 5.0,
            100.0 * p,
            left + STEP / 2.0,
            floor + 13.0,
        );
    }
    svg + "</svg>"
}

fn classes(samples: &[ClassDraws], side: usize) -> Result<String> {
    let mut rows = String::new();
    for (class, draws) in samples.iter().enumerate() {
        let mut images = Picture::drawn(&draws.mean, side).to_html(&format!("the mean {class}"))?;
        for row in &draws.samples {
            images.push_str(&Picture::drawn(row, side).to_html(&format!("a drawn {class}"))?);
        }
        let _ = writeln!(
            rows,
            "<div class=\"class-row\"><b>{class}</b>{images}</div>"
        );
    }
    Ok(format!(
        "<section>\n<h2>Digits from nothing</h2>\n\
         <p>With every pixel missing, completing is drawing. For each class its exact mean, then samples, each as likely as the model \
         believes. It was trained to tell digits apart, and only a little to draw.</p>\n\
         <div class=\"class-rows\">\n{rows}</div>\n</section>\n"
    ))
}

fn levels(stages: &[Stage], side: usize) -> Result<String> {
    let mut rows = String::new();
    for stage in stages.iter().rev() {
        rows.push_str(&one_level(stage, side)?);
    }
    Ok(format!(
        "<section>\n<h2>What neurons stand for</h2>\n\
         <p>The model is a tree. Every neuron is one state of a hidden variable that stands for a part of the image, and it can be asked \
         what that part looks like. From the whole image down to the patch in its middle: of each node the states used most often. \
         Above, the average of what a state draws; below it three of its samples, and how often it is used.</p>\n\
         <div class=\"levels\">\n{rows}</div>\n</section>\n"
    ))
}

fn one_level(stage: &Stage, side: usize) -> Result<String> {
    let Some(first) = stage.neurons.first() else {
        return Ok(String::new());
    };
    let below = Picture::drawn(&first.average, side);
    let place = Picture::place(&first.average, side).to_html("where it lies")?;
    let mut neurons = String::new();
    for neuron in &stage.neurons {
        let average = Picture::drawn(&neuron.average, side).to_html("average")?;
        let mut samples = String::new();
        for row in &neuron.samples {
            samples.push_str(&Picture::drawn(row, side).to_html("sample")?);
        }
        let _ = writeln!(
            neurons,
            "<figure class=\"neuron\">{average}<div>{samples}</div><figcaption>{}</figcaption></figure>",
            caption(neuron)
        );
    }
    let level = if stage.layer == 0 {
        "Leaves".to_owned()
    } else {
        format!("Level {}", stage.layer)
    };
    let nodes = if stage.nodes == 1 {
        "one node".to_owned()
    } else {
        format!("one of {} nodes", stage.nodes)
    };
    Ok(format!(
        "<div class=\"level\">\n<div class=\"where\">{place}<p><b>{level}</b><br>{}×{} pixels<br>{nodes}<br>{} states</p></div>\n\
         <div class=\"neurons\">{neurons}</div>\n</div>\n",
        below.height, below.width, stage.channels
    ))
}

/// How often a neuron is used, and a word where its picture is empty paper.
fn caption(neuron: &Meaning) -> String {
    const FAINT: f32 = 8.0; // of 255
    let blank = neuron.average.iter().all(|x| x.is_nan() || *x < FAINT);
    let word = if blank { "<br>empty paper" } else { "" };
    format!("{}{word}", percent(neuron.probability))
}

fn percent(p: f64) -> String {
    if p >= 0.0995 {
        format!("{:.0} %", 100.0 * p)
    } else {
        format!("{:.1} %", 100.0 * p)
    }
}

fn next(run: &Run<'_>) -> String {
    let model = escape(&format!("{}/model.sumout", run.folder));
    let seed = if run.seed == 1 {
        String::new()
    } else {
        format!(" --seed {}", run.seed)
    };
    format!(
        "<section>\n<h2>What to type next</h2>\n<div class=\"stack\">\n<div>\n<h3>With the model of this page</h3>\n\
         <pre><code><span># two numbers of the table above, again</span>\n\
         sumout evaluate {model} --data digits \\\n  --missing iid:0.9 --missing rect:2x11 --shifts 1{seed}\n\n\
         <span># class, posterior and log-likelihood of every image</span>\n\
         sumout predict {model} --data digits --out answers.csv\n\n\
         <span># a folder of PNGs; transparent pixels are missing</span>\n\
         sumout impute {model} --data pictures/ --how sample --out filled.png\n\n\
         <span># sixteen sevens</span>\n\
         sumout sample {model} --class 7 --count 16 --out sevens.png</code></pre>\n</div>\n\
         <div>\n<h3>With your own table</h3>\n\
         <pre><code><span># empty cells are missing, in training and in use</span>\n\
         sumout train --data mine.csv --target COLUMN --out mine.sumout\n\n\
         <span># how good is it when half of each row is missing?</span>\n\
         sumout evaluate mine.sumout --data test.csv --target COLUMN \\\n  --missing clean --missing iid:0.5\n\n\
         <span># classes, and the holes filled</span>\n\
         sumout predict mine.sumout --data new.csv --out answers.csv\n\
         sumout impute mine.sumout --data new.csv --how mean --out full.csv</code></pre>\n</div>\n</div>\n\
         <p class=\"note\"><code>cargo run --release --</code> stands for <code>sumout</code> inside the repository. \
         Every command explains itself with <code>--help</code>.</p>\n</section>\n"
    )
}

fn foot(run: &Run<'_>, predictor: &Predictor) -> String {
    let weights = thousands(predictor.model().structure.weights());
    let Run {
        steps,
        seed,
        trained_on,
        ..
    } = run;
    format!(
        "<footer><p>Made by sumout {}: {weights} weights, {} images, {} steps, seed {seed}. Test scores sum the log-likelihoods of nine \
         shifts. Digits: MNIST by Yann LeCun and Corinna Cortes, CC BY-SA 3.0.</p></footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        thousands(*trained_on),
        thousands(*steps),
    )
}

/// 1234567 as 1,234,567.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_written_for_people() {
        assert_eq!(
            (thousands(0), thousands(999), thousands(1_586_176)),
            ("0".into(), "999".into(), "1,586,176".into())
        );
        assert_eq!(
            (percent(0.0312), percent(0.25)),
            ("3.1 %".into(), "25 %".into())
        );
        let neuron = |ink: f32| Meaning {
            probability: 0.25,
            average: vec![ink, f32::NAN, 0.0],
            samples: Vec::new(),
        };
        assert_eq!(
            [caption(&neuron(90.0)), caption(&neuron(1.0))],
            ["25 %", "25 %<br>empty paper"]
        );
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }

    #[test]
    fn bars_stand_on_the_floor() {
        let svg = bars(&[0.5, 0.0, 0.5], 2);
        assert!(
            svg.contains("<rect x=\"2.5\" y=\"35.0\" width=\"10.0\" height=\"31.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("<rect class=\"true\" x=\"32.5\"") && svg.contains("height=\"1.0\""),
            "{svg}"
        );
    }
}
