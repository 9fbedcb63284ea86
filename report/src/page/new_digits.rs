//! New digits of every class.

use crate::gallery::ClassSamples;
use crate::picture::Picture;
use anyhow::Result;
use std::fmt::Write;

/// The mean and samples of every class.
pub fn section(samples: &[ClassSamples], side: usize) -> Result<String> {
    let mut rows = String::new();
    for (class, of_class) in samples.iter().enumerate() {
        let mut images =
            Picture::drawn(&of_class.mean, side).to_html(&format!("the mean {class}"))?;
        for row in &of_class.samples {
            images.push_str(&Picture::drawn(row, side).to_html(&format!("a sampled {class}"))?);
        }
        let _ = writeln!(
            rows,
            "<div class=\"class-row\"><b>{class}</b>{images}</div>"
        );
    }
    Ok(format!(
        "<section class=\"card\">\n<h2>Digits from nothing</h2>\n\
         <p>If all pixels are missing, a completion is a new digit. Each row shows the exact mean of a class, then samples of it. The \
         model was trained to tell digits apart, and only a little to draw them.</p>\n\
         <div class=\"class-rows\">\n{rows}</div>\n</section>\n"
    ))
}
