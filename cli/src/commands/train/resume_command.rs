//! The command that continues a run, and where its checkpoint is.

use crate::commands::train::args::Args;
use crate::options::input::Unseen;
use crate::options::text::name;
use crate::terminal::hints::quoted;
use std::path::{Path, PathBuf};

/// What to type to continue.
pub fn resume_command(args: &Args) -> String {
    let checkpoint = checkpoint_path(&args.out).to_string_lossy().into_owned();
    let (device, precision) = args.device.given();
    let options = [
        ("resume", Some(checkpoint)),
        ("data", Some(args.input.data.clone())),
        ("labels", args.input.labels.clone()),
        ("split", args.input.split.map(name)),
        ("device", device),
        ("precision", precision),
        ("out", Some(args.out.to_string_lossy().into_owned())),
    ];
    let mut command = String::from("sumout train");
    for (name, value) in options.into_iter().chain(args.input.text.given()) {
        if let Some(value) = value {
            command += &format!(" --{name} {}", quoted(&value));
        }
    }
    if args.input.no_header {
        command += " --no-header";
    }
    if args.input.unseen == Unseen::Missing {
        command += " --unseen missing";
    }
    command
}

/// `model.checkpoint.sumout` beside `model.sumout`, and `model.1.checkpoint.sumout` beside
/// `model.1`.
pub fn checkpoint_path(out: &Path) -> PathBuf {
    let stem = if out.extension().is_some_and(|end| end == "sumout") {
        out.with_extension("")
    } else {
        out.to_owned()
    };
    let mut name = stem.into_os_string();
    name.push(".checkpoint.sumout");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_models_do_not_share_a_name() {
        let beside = |out: &str| checkpoint_path(Path::new(out)).display().to_string();
        assert_eq!(beside("a/model.sumout"), "a/model.checkpoint.sumout");
        assert_eq!(beside("run.1"), "run.1.checkpoint.sumout");
        assert_eq!(beside("run.2"), "run.2.checkpoint.sumout");
    }
}
