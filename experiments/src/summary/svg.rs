//! The parts that all figures share. Paper and ink follow the reader's light or dark theme.

use anyhow::Result;
use std::fmt::Write;
use sumout_report::picture::{Picture, base64};

const STYLE: &str = ".paper{fill:#fff}.ink{fill:#222}.grid{stroke:#ddd}\
    @media(prefers-color-scheme:dark){.paper{fill:#16191d}.ink{fill:#ddd}.grid{stroke:#3c4148}\
     [fill=\"#0072b2\"]{fill:#6a8dff}[stroke=\"#0072b2\"]{stroke:#6a8dff}}";

/// The start of a figure: its size, its name for screen readers, its paper.
pub fn start(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" class=\"paper\"/>\n"
    )
}

/// The head of a chart.
pub fn head(left: f64, title: &str) -> String {
    format!(
        "<text x=\"{left}\" y=\"18\" class=\"ink\" font-size=\"14\" font-weight=\"600\">{title}</text>\n"
    )
}

/// A text around a place.
pub fn draw_centred(svg: &mut String, x: f64, y: f64, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"ink\" text-anchor=\"middle\">{text}</text>"
    );
}

/// A text that ends at a place.
pub fn draw_to(svg: &mut String, x: f64, y: f64, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"ink\" text-anchor=\"end\">{text}</text>"
    );
}

/// Where an image stands.
pub struct Square {
    pub x: usize,
    pub y: usize,
    pub size: usize,
}

/// A picture on white paper.
pub fn draw_image(svg: &mut String, picture: &Picture, place: &Square) -> Result<()> {
    let data = base64(&picture.to_png()?);
    let Square { x, y, size } = place;
    writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" fill=\"#fff\" stroke=\"#ccc\" stroke-width=\"0.5\"/>\
         <image x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" preserveAspectRatio=\"none\" \
         style=\"image-rendering: pixelated\" href=\"data:image/png;base64,{data}\"/>"
    )?;
    Ok(())
}
