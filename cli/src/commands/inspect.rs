//! `sumout inspect`: the contents of a model file or of a preset.

use crate::terminal::user_error::{one_line, user_error};
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use sumout::Model;
use sumout::model::ColumnRange;
use sumout::recipes::{PRESETS, preset};
use sumout::structure::{Kind, Structure};
use sumout_data::dates::text_of;
use sumout_data::layout::{ColumnKind, some_of};
use sumout_data::model_files::{self, DATA, NOTE, SOURCE, TARGET, VALIDATED, layout_of};

/// Show what a model was trained on and its structure, or a preset, or all presets
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file or the name of a preset
    #[arg(value_name = "MODEL|PRESET")]
    subject: Option<String>,
}

/// Prints a model, a preset, or the list of presets.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let Some(subject) = &args.subject else {
        for (name, about) in PRESETS {
            writeln!(out, "{name:<15} {about}")?;
        }
        return Ok(());
    };
    let path = Path::new(subject);
    if path.exists() {
        return model(&model_files::load(path)?, out);
    }
    let Some((name, about)) = PRESETS.iter().find(|(name, _)| name == subject) else {
        let presets = PRESETS.map(|(name, _)| name).join(", ");
        return Err(user_error(format!(
            "expected a model file or a preset ({presets}), got '{subject}'"
        )));
    };
    let preset = preset(name)?;
    writeln!(
        out,
        "{name}: {about}\n\n{}\nsettings",
        preset.structure.inspect()
    )?;
    print_json(&serde_json::to_value(&preset.settings)?, out)
}

fn model(model: &Model, out: &mut impl Write) -> Result<()> {
    let structure = &model.structure;
    card(model, out)?;
    write!(out, "{}", structure.inspect())?;
    if structure.classes > 1 {
        writeln!(out, "\nclass and its prior")?;
        for (class, log_prior) in model.log_prior.iter().enumerate() {
            writeln!(
                out,
                "  {:<20} {:.4}",
                one_line(&model.class_name(class)),
                log_prior.exp()
            )?;
        }
    }
    if let Some(target) = model.target() {
        let name = model.about.columns.get(target);
        let name = name.map_or_else(|| format!("x{target}"), |name| one_line(name));
        writeln!(out, "\npredicts the number\n  {name}")?;
    }
    if structure.frame.is_none() {
        columns(model, out)?;
    }
    if !model.about.training.is_empty() {
        writeln!(out, "\ntraining")?;
        print_json(&serde_json::to_value(&model.about.training)?, out)?;
    }
    Ok(())
}

/// Who trained the model on what, and how good it was: what its notes say of it.
fn card(model: &Model, out: &mut impl Write) -> Result<()> {
    let notes = &model.about.training;
    let text = |name: &str| notes.get::<String>(name);
    let trained = [
        text(SOURCE).map(|source| one_line(&source)),
        notes.get("rows").map(|rows: u64| format!("{rows} rows")),
        Some(describe_width(model)),
        text(DATA).map(|digest| format!("SHA-256 {}…", digest.get(..16).unwrap_or(&digest))),
    ];
    let trained: Vec<String> = trained.into_iter().flatten().collect();
    let lines = [
        ("program", text("program")),
        ("trained on", Some(trained.join(", "))),
        ("target", text(TARGET).map(|target| one_line(&target))),
        (
            "validation",
            notes.get(VALIDATED).map(|of| describe_validation(&of)),
        ),
        ("note", text(NOTE).map(|note| one_line(&note))),
    ];
    for (name, words) in lines {
        if let Some(words) = words.filter(|_| !notes.is_empty()) {
            writeln!(out, "{name:<11} {words}")?;
        }
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn describe_width(model: &Model) -> String {
    match (model.structure.frame, model.structure.width()) {
        (Some(f), _) => format!("images of {}×{}×{}", f.height, f.width, f.channels),
        (None, 1) => "1 column".into(),
        (None, width) => format!("{width} columns"),
    }
}

/// The figures of the validation rows, four digits each.
fn describe_validation(of: &BTreeMap<String, f64>) -> String {
    let figures = of.iter().filter(|(name, _)| *name != "rows");
    let figure = |(name, x): (&String, &f64)| format!("{} {x:.4}", name.replace('_', "-"));
    let figures: Vec<String> = figures.map(figure).collect();
    let rows = of.get("rows").copied().unwrap_or_default();
    format!("{} on {rows} rows", figures.join(", "))
}

/// The columns of a table, and the order in which the tree joins them.
fn columns(model: &Model, out: &mut impl Write) -> Result<()> {
    let name = |column: usize| {
        let name = model.about.columns.get(column);
        name.map_or_else(|| format!("x{column}"), |name| one_line(name))
    };
    writeln!(out, "\ncolumns")?;
    for (column, kind) in model.structure.kinds.iter().enumerate() {
        let what = describe_column(model, column, kind);
        writeln!(out, "  {:<20} {what}", name(column))?;
    }
    writeln!(out, "\nwhich meet in this order")?;
    for t in 0..model.structure.trees.len() {
        writeln!(out, "  {}", nested(&model.structure, t, &name))?;
    }
    Ok(())
}

/// The values of a column in words.
fn describe_column(model: &Model, column: usize, kind: &Kind) -> String {
    match (kind, model.about.categories.get(column)) {
        (_, Some(names)) if !names.is_empty() => one_line(&some_of(names)),
        (Kind::Gaussian, _) => {
            let scaling = &model.scaling;
            let middle = scaling.to_data(column, scaling.invert(column, 0.0).into());
            let range = scaling.range_of(column);
            let is_bent = range.is_bounded() || scaling.curve_of(column).is_some();
            let spread = match is_bent {
                true => String::new(), // its distances are not those of the data
                false => format!(" ± {}", 1.0 / scaling.scale_of(column)),
            };
            let layout = layout_of(model);
            match layout.columns.get(column).map(|column| &column.kind) {
                Some(ColumnKind::Date(style)) if is_bent => {
                    format!("dates around {}", text_of(middle.into(), *style))
                }
                Some(ColumnKind::Date(style)) => {
                    format!(
                        "dates around {}{spread} days",
                        text_of(middle.into(), *style)
                    )
                }
                _ if range != ColumnRange::default() => {
                    format!("{}, around {middle}", range.describe())
                }
                _ => format!("numbers around {middle}{spread}"),
            }
        }
        (Kind::Bernoulli, _) => "0 or 1".to_owned(),
        (Kind::Categorical(count), _) => format!("0 to {}", count - 1),
    }
}

/// A tree of columns as nested brackets.
fn nested(structure: &Structure, t: usize, name: &dyn Fn(usize) -> String) -> String {
    let tree = &structure.trees[t];
    let mut layer = Vec::new();
    for position in &tree.positions {
        let names = position.inputs.iter().map(|&input| name(input as usize));
        layer.push(bracket(names.collect()));
    }
    for level in &tree.levels {
        let texts = |children: &Vec<u32>| picked(&layer, children);
        layer = level.children.iter().map(texts).map(bracket).collect();
    }
    layer.join(" ")
}

fn picked(layer: &[String], children: &[u32]) -> Vec<String> {
    children
        .iter()
        .map(|&child| layer[child as usize].clone())
        .collect()
}

/// Brackets around two or more.
fn bracket(parts: Vec<String>) -> String {
    if parts.len() == 1 {
        parts[0].clone()
    } else {
        format!("({})", parts.join(" "))
    }
}

/// One line for each entry of an object.
fn print_json(value: &Value, out: &mut impl Write) -> Result<()> {
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) if key == "settings" => {
                writeln!(out, "  {key}")?;
                inner
                    .iter()
                    .try_for_each(|(key, value)| writeln!(out, "    {key:<18} {}", plain(value)))?;
            }
            Value::Null => {}
            value => writeln!(out, "  {key:<20} {}", plain(value))?,
        }
    }
    Ok(())
}

/// JSON as people write it in TOML: numbers of 32 bits without the digits that 64 bits add.
fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(x) if number.is_f64() && f64::from(x as f32) == x => (x as f32).to_string(),
            _ => number.to_string(),
        },
        Value::Array(all) => {
            let parts: Vec<String> = all.iter().map(plain).collect();
            format!("[{}]", parts.join(", "))
        }
        Value::Object(all) => {
            let pair = |(key, value): (&String, &Value)| format!("{key} = {}", plain(value));
            let parts: Vec<String> = all.iter().map(pair).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        other => one_line(&other.to_string()),
    }
}
