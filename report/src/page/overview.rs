//! The title, the most important numbers, and the charts.

use crate::accuracy::{IID, Score};
use crate::chart;
use crate::page::Run;
use crate::style::{BASE, REPORT};
use crate::text::thousands;

/// The title, and the most important numbers.
pub fn head(run: &Run<'_>, scores: &[Score]) -> String {
    let trained_on = thousands(run.trained_on);
    let tested = thousands(scores.first().map_or(0, |score| score.images));
    let cards = cards(scores);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Sumout: digits with holes</title>\n\
         <style>\n{BASE}{REPORT}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"eyebrow\">sumout demo</p>\n\
         <h1>Digits with holes</h1>\n\
         <p class=\"lead\">A deep mixture model was trained on {trained_on} handwritten digits, and tested on {tested} others with \
         missing pixels. In training, random pixels and regions were summed out. The model was never told which pixels would be \
         missing in the test, or how many. Missing pixels are <em>summed out</em> of an exact probability: they are not guessed and \
         filled in. So the same model classifies, completes, samples, and says how sure it is.</p>\n\
         <ul class=\"cards\">\n{cards}</ul>\n</header>\n"
    )
}

/// Three numbers of the table.
fn cards(scores: &[Score]) -> String {
    let shown = [
        (0, "nothing missing"),
        (4, "nine of ten pixels missing"),
        (IID.len() + 4, "two 11×11 squares missing"),
    ];
    let score_of = |(column, words): (usize, &str)| Some(card(scores.get(column)?, words));
    shown.into_iter().filter_map(score_of).collect()
}

fn card(score: &Score, words: &str) -> String {
    let [ours, knn, mean] = [0, 1, 2].map(|method| score.percent(method));
    format!(
        "<li class=\"card\"><strong>{ours:.1}<small> %</small></strong><span>correct with {words}</span>\
         <span class=\"baselines\"><i class=\"m1\"></i>KNN {knn:.1} <i class=\"m2\"></i>mean fill {mean:.1}</span></li>\n"
    )
}

/// The charts and their numbers.
pub fn accuracy(scores: &[Score]) -> String {
    let (iid, squares) = scores.split_at(IID.len().min(scores.len()));
    let (iid_chart, squares_chart) = (chart::iid(iid), chart::squares(squares));
    let (iid_table, squares_table) = (chart::table(iid), chart::table(squares));
    format!(
        "<section class=\"card\">\n<h2>What missing pixels cost</h2>\n\
         <p>The share of test images that are classified correctly. Both baselines compare an image with all training images, and \
         the five nearest ones vote. Sumout sums its log scores over nine shifts of the image, by up to one pixel each way.</p>\n\
         <ul class=\"legend\"><li class=\"m0\"><i></i><b>Sumout</b> sums out the missing pixels</li>\
         <li class=\"m1\"><i></i><b>KNN</b> measures distances over the observed pixels</li>\
         <li class=\"m2\"><i></i><b>mean fill + KNN</b> first fills the holes with the average digit</li></ul>\n\
         <div class=\"two\">\n<figure>\n{iid_chart}<figcaption>Each pixel is missing with the same probability.</figcaption>\n</figure>\n\
         <figure>\n{squares_chart}<figcaption>One, two or three squares are missing, at random places.</figcaption>\n</figure>\n</div>\n\
         <details>\n<summary>The numbers</summary>\n<div class=\"two\">\n{iid_table}{squares_table}</div>\n\
         <p class=\"note\">2×11² is two squares of 11×11 pixels. On 1,000 images, an accuracy of 90 % has a standard error of about 1.</p>\n\
         </details>\n</section>\n"
    )
}
