//! Digits with holes, and what the model says about them.

use crate::gallery::Completion;
use crate::picture::Picture;
use anyhow::Result;
use std::fmt::Write;

/// The class with the largest probability, the first where several are.
fn most_probable(posterior: &[f64]) -> usize {
    let mut best = 0;
    for y in 1..posterior.len() {
        if posterior[y] > posterior[best] {
            best = y;
        }
    }
    best
}

/// All examples.
pub fn section(completions: &[Completion], side: usize) -> Result<String> {
    let mut rows = String::new();
    for completion in completions {
        rows.push_str(&one_completion(completion, side)?);
    }
    let heads = [
        "digit",
        "observed",
        "mean",
        "uncertainty",
        "mode",
        "samples",
    ];
    let heads: String = heads
        .iter()
        .map(|head| format!("<span>{head}</span>"))
        .collect();
    Ok(format!(
        "<section class=\"card\">\n<h2>What could be there</h2>\n\
         <p>Every row is the first test image of its class: no image was chosen by hand. \
         <span class=\"key seen\">Observed</span> pixels are ink, <span class=\"key gap\">missing</span> pixels are striped, \
         and pixels <span class=\"key fill\">from the model</span> are tinted.</p>\n\
         <ul class=\"terms\"><li><b>Mean</b>: the exact expected value of each missing pixel, given the observed ones. It is pale \
         where several digits are possible.</li><li><b>Uncertainty</b>: the standard deviation of each missing pixel.</li>\
         <li><b>Mode</b>: the most likely assignment of hidden states and pixels together. It is often empty, because empty paper is \
         more likely than any one stroke.</li>\
         <li><b>Samples</b>: random completions, each a whole digit.</li>\
         <li><b>Bars</b>: the probability of each class, given the observed pixels. The true class is <span class=\"true\">marked</span>.</li></ul>\n\
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
            "observed",
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
    let best = most_probable(&c.posterior);
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
    let (width, floor) = (STEP * posterior.len() as f64, TALL + 4.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"class probabilities\">",
        floor + 16.0
    );
    let _ = write!(svg, "<path class=\"grid\" d=\"M0 {floor}H{width}\"/>");
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

#[cfg(test)]
mod tests {
    use super::*;

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
