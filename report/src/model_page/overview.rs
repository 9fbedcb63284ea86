//! The head of the page: what model, what rows, and the most important numbers; and the foot.

use crate::model_page::Run;
use crate::model_page::holes::{HALF, HoleFigures};
use crate::model_page::sample::Sample;
use crate::model_page::subject::Predicts;
use crate::style::{BASE, REPORT};
use crate::text::{escape, four_digits, thousands};
use sumout::Model;

/// The title, what is asked about what, and the numbers.
pub fn head(
    run: &Run<'_>,
    model: &Model,
    sample: &Sample,
    predicts: Predicts,
    figures: &[HoleFigures],
) -> String {
    let (data, file) = (escape(run.data), escape(run.model));
    let what = predicted(model, sample, predicts);
    let rows = match sample.rows() == sample.total {
        true => format!("all {} rows", thousands(sample.total)),
        false => format!(
            "{} of {} rows, drawn at random",
            thousands(sample.rows()),
            thousands(sample.total)
        ),
    };
    let cell = if sample.layout.shape.is_some() {
        "pixel"
    } else {
        "cell"
    };
    let missing = match sample.holes() {
        0 => format!("no {cell} is missing"),
        holes => {
            let percent = 100.0 * holes as f64 / sample.values.len() as f64;
            format!("{percent:.1} % of the {cell}s are missing")
        }
    };
    let warning = match run.trained_on_these {
        true => {
            "<p class=\"warning\">The model was trained on these rows. On other rows it will do worse.</p>\n"
        }
        false => "",
    };
    let cards = cards(predicts, figures);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Sumout: {data}</title>\n\
         <style>\n{BASE}{REPORT}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"eyebrow\">sumout report</p>\n\
         <h1>{data}</h1>\n\
         <p class=\"lead\">The model <b>{file}</b> {what}. This page shows how it does on {rows} of <b>{data}</b>; {missing}. What \
         is missing is <em>summed out</em> of an exact probability, not filled in.</p>\n{warning}\
         <ul class=\"cards\">\n{cards}</ul>\n</header>\n"
    )
}

/// What the model does, in words.
fn predicted(model: &Model, sample: &Sample, predicts: Predicts) -> String {
    let (layout, width) = (&sample.layout, sample.layout.width);
    let from = match layout.shape {
        Some(shape) => format!("images of {shape} pixels"),
        None if width == 1 => "one column".to_owned(),
        None => format!("{} columns", thousands(width)),
    };
    match predicts {
        Predicts::Class => {
            let (target, classes) = (target(layout.target.as_deref()), model.structure.classes);
            format!("predicts <b>{target}</b>, one of {classes} classes, from {from}")
        }
        Predicts::Number(column) => {
            let name = escape(&layout.name(column));
            let others = thousands(width - 1);
            format!("predicts the number <b>{name}</b> from {others} other columns")
        }
        Predicts::Nothing => format!("knows how {from} depend on each other"),
    }
}

fn target(name: Option<&str>) -> String {
    name.map_or_else(|| "the class".into(), escape)
}

/// Up to three numbers.
fn cards(predicts: Predicts, figures: &[HoleFigures]) -> String {
    let (clean, half) = (&figures[0], &figures[HALF]);
    let percent = |share: f64| format!("{:.1}<small> %</small>", 100.0 * share);
    let card = |share: f64, words: &str| (percent(share), words.to_owned());
    let filled = |share: Option<f64>, words: &str| {
        let words = format!("{words}, with a tenth of the cells hidden");
        share.map(|share| card(share.max(0.0), &words))
    };
    let of_numbers = filled(
        figures[1].filled.numbers,
        "of the variance of filled numbers is explained",
    );
    let of_categories = filled(
        figures[1].filled.categories,
        "of the filled categories are right",
    );
    let found = match predicts {
        Predicts::Class => vec![
            clean
                .classes
                .accuracy()
                .map(|share| card(share, "of the rows have the right class")),
            half.classes
                .accuracy()
                .map(|share| card(share, "still have it with half of the known cells hidden")),
            of_numbers.or(of_categories),
        ],
        Predicts::Number(_) => vec![
            clean
                .numbers
                .r2()
                .map(|share| card(share, "of the variance of the target is explained (r2)")),
            Some((
                four_digits(clean.numbers.rmse()),
                format!(
                    "root mean squared error; the target varies by {}",
                    four_digits(clean.numbers.sd())
                ),
            )),
            Some((
                percent(clean.numbers.coverage.of(90).inside),
                "of the targets lie in their 90 % intervals".into(),
            )),
        ],
        Predicts::Nothing => vec![of_numbers, of_categories],
    };
    let card = |(number, words): (String, String)| {
        format!("<li class=\"card\"><strong>{number}</strong><span>{words}</span></li>\n")
    };
    found.into_iter().flatten().map(card).collect()
}

/// How the page was made.
pub fn foot(run: &Run<'_>, model: &Model, sample: &Sample) -> String {
    let (weights, rows) = (
        thousands(model.structure.weights()),
        thousands(sample.rows()),
    );
    let trees = model.structure.trees.len();
    format!(
        "<footer><p>Made by sumout {}: a model of {weights} weights in {trees} tree{}, asked about {rows} rows; seed {}. \
         <code>sumout report --help</code> says how.</p></footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        if trees == 1 { "" } else { "s" },
        run.seed,
    )
}
