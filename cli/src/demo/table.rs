//! The first hour with a table: a small real one, and the commands that learn from it, ask and fill it.

use anyhow::Result;
use std::path::Path;
use sumout_data::{model_files, penguins};

/// One step of the tour.
#[derive(Debug)]
pub enum Step {
    /// A sentence for people.
    Say(&'static str),
    /// A command, without the name of the program.
    Run(Vec<String>),
    /// The first lines of a file.
    Show(String),
}

/// Rows that are not trained on: every third.
const NEW: usize = 3;

/// Writes the table in two files, one to learn from and one of new rows.
pub fn write_files(folder: &Path) -> Result<()> {
    let (names, rows) = penguins::CSV.split_once('\n').unwrap_or_default();
    let table = |is_new: bool| {
        let rows = rows.lines().enumerate();
        let own = rows.filter(|(at, _)| (at % NEW == 0) == is_new);
        own.fold(format!("{names}\n"), |text, (_, row)| text + row + "\n")
    };
    model_files::save(&folder.join("penguins.csv"), table(false).as_bytes())?;
    Ok(model_files::save(
        &folder.join("new.csv"),
        table(true).as_bytes(),
    )?)
}

/// What happens then.
pub fn steps(folder: &Path, seed: u64) -> Vec<Step> {
    let path = |name: &str| folder.join(name).display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let (data, new, model) = (
        path("penguins.csv"),
        path("new.csv"),
        path("penguins.sumout"),
    );
    let (predictions, filled) = (path("predictions.csv"), path("filled.csv"));
    let page = path("penguins.html");
    let seed = seed.to_string();
    let train = [
        "train", "--data", &data, "--target", "species", "--out", &model,
    ];
    let evaluate = ["evaluate", &model, "--data", &new];
    let holes = ["--missing", "clean", "--missing", "iid:0.5"];
    let ask = |command: &str, out: &str| words(&[command, &model, "--data", &new, "--out", out]);
    vec![
        Step::Say(
            "A table of penguins; NA is missing. Two thirds are to learn from, the rest is new.",
        ),
        Step::Show(data.clone()),
        Step::Say("Learn how all columns depend on each other:"),
        Step::Run(words(&[&train[..], &["--seed", &seed]].concat())),
        Step::Say(
            "How often is the species of a new penguin right, also with half of its cells gone?",
        ),
        Step::Run(words(&[&evaluate[..], &holes[..]].concat())),
        Step::Say("The species of each new penguin, with probabilities:"),
        Step::Run(ask("predict", &predictions)),
        Step::Show(predictions.clone()),
        Step::Say("Fill the holes with what the rest of the row says:"),
        Step::Run(ask("impute", &filled)),
        Step::Show(filled.clone()),
        Step::Say(
            "A page about the model: what matters, what is surprising, what missing cells cost:",
        ),
        Step::Run(ask("report", &page)),
        Step::Say("To try the model in a browser: sumout serve, and the name of the model file."),
        Step::Say(
            "The same works with your own table: put in its name and the name of its target.",
        ),
    ]
}
