//! The page: its files are part of the program.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Where it is served.
    pub path: &'static str,
    kind: &'static str,
    text: &'static str,
}

impl PageFile {
    const fn html(path: &'static str, text: &'static str) -> Self {
        let kind = "text/html; charset=utf-8";
        Self { path, kind, text }
    }

    const fn style(path: &'static str, text: &'static str) -> Self {
        let kind = "text/css; charset=utf-8";
        Self { path, kind, text }
    }

    const fn script(path: &'static str, text: &'static str) -> Self {
        let kind = "text/javascript; charset=utf-8";
        Self { path, kind, text }
    }
}

/// All files of the page. The report of the demo has the same base.
pub const FILES: [PageFile; 14] = [
    PageFile::html("/", include_str!("../web/index.html")),
    PageFile::style("/base.css", sumout_report::style::BASE),
    PageFile::style("/style.css", include_str!("../web/style.css")),
    PageFile::script("/elements.js", include_str!("../web/elements.js")),
    PageFile::script("/ask.js", include_str!("../web/ask.js")),
    PageFile::script("/service.js", include_str!("../web/service.js")),
    PageFile::script("/pictures.js", include_str!("../web/pictures.js")),
    PageFile::script("/sheet.js", include_str!("../web/sheet.js")),
    PageFile::script("/form.js", include_str!("../web/form.js")),
    PageFile::script("/answer.js", include_str!("../web/answer.js")),
    PageFile::script("/examples.js", include_str!("../web/examples.js")),
    PageFile::script("/look.js", include_str!("../web/look.js")),
    PageFile::script("/fill.js", include_str!("../web/fill.js")),
    PageFile::script("/app.js", include_str!("../web/app.js")),
];

impl IntoResponse for PageFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (headers, self.text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that is imported but not served leaves the page empty.
    #[test]
    fn every_import_is_served() {
        for file in FILES {
            for line in file.text.lines() {
                let Some((_, module)) = line.split_once("from \"./") else {
                    continue;
                };
                let path = format!("/{}", module.trim_end_matches("\";"));
                assert!(
                    FILES.iter().any(|other| other.path == path),
                    "{}: {path}",
                    file.path
                );
            }
        }
    }
}
