//! What is to be trained: a preset, a TOML file, or what suits the data.
//!
//! ```toml
//! preset = "mnist-ht"        # or [image], [columns], [sequence], or none of them: what suits the data
//!
//! [image]                    # patch, frame, grid_shift, components, leaf_sharing, kind as the engine's ImageSpec
//! components = 32
//! [[image.levels]]
//! window = [2, 2]
//! channels = 64
//! sharing = "own"            # "shared", or { pattern = [2, 2] }
//!
//! [columns]                  # like [image], it may come many times as [[columns]]: several trees under one class root
//! components = 16
//! channels = [32, 64]        # of each level; the last serves all above
//! groups = [["height", "weight"], ["age"]]     # without it the order is learned
//!
//! [sequence]                 # columns are steps in time, in their order; may come many times too
//! channels = 1               # numbers in a step
//! frame = 100                # steps of the frame in whose middle a sequence lies; what is around it is missing
//! patch = 1                  # steps in a leaf
//! components = 24
//! [[sequence.levels]]
//! window = 2
//! channels = 32
//! sharing = "shared"
//!
//! [settings]                 # the engine's Settings; what is left out is the preset's, or what suits the data
//! steps = 2000
//! ```
//!
//! Uses: `error`, `rows`, `open`.

pub mod table_checks;
mod sequence_plan;
mod one_or_more;

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::open::is_data_name;
use crate::plan::one_or_more::one_or_more;
use crate::plan::sequence_plan::{SequenceTable, is_sequence};
use crate::rows::layout::{Table, some_of};
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::path::Path;
use sumout::Settings;
use sumout::model::Scaling;
use sumout::recipes::tables::{ColumnPlan, settings, standardise};
use sumout::recipes::{PRESETS, Preset, images, preset, sequences};
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};

/// A TOML file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    preset: Option<String>,
    #[serde(deserialize_with = "one_or_more")]
    image: Vec<ImageTable>,
    #[serde(deserialize_with = "one_or_more")]
    columns: Vec<ColumnTable>,
    #[serde(deserialize_with = "one_or_more")]
    sequence: Vec<SequenceTable>,
    settings: toml::Table,
    #[serde(skip)]
    name: String,
}

/// Exactly two numbers: by itself, the TOML parser takes the first two of three.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Vec<usize>")]
struct Two((usize, usize));

impl TryFrom<Vec<usize>> for Two {
    type Error = String;

    fn try_from(list: Vec<usize>) -> Result<Self, String> {
        match list[..] {
            [down, right] => Ok(Self((down, right))),
            _ => Err(format!("expected two numbers, got {}", list.len())),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ImageTable {
    patch: Option<Two>,
    frame: Option<Two>,
    grid_shift: Option<Two>,
    components: Option<usize>,
    leaf_sharing: Option<Sharing>,
    kind: Option<Kind>,
    levels: Option<Vec<LevelTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelTable {
    window: Two,
    channels: usize,
    sharing: Sharing,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ColumnTable {
    components: Option<usize>,
    channels: Option<Vec<usize>>,
    window: Option<usize>,
    groups: Option<Vec<Vec<String>>>,
}

impl Plan {
    /// What the user named: nothing, a preset or a TOML file.
    pub fn read(named: Option<&str>) -> Result<Self> {
        let Some(named) = named else {
            return Ok(Self::default());
        };
        let path = Path::new(named);
        if PRESETS.iter().any(|(name, _)| *name == named) && !path.exists() {
            return Ok(Self {
                preset: Some(named.into()),
                name: named.into(),
                ..Self::default()
            });
        }
        if !path.exists() {
            let presets = PRESETS.map(|(name, _)| name).join(", ");
            let expected = format!("a TOML file or a preset ({presets})");
            return Err(Error::unexpected(ErrorKind::Plan, expected, named));
        }
        let bytes = fs::read(path).map_err(|error| file_error("read", path, error))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let got = "bytes that are not text";
            Error::expected(ErrorKind::Plan, "a TOML file", got).in_file(named)
        })?;
        if is_data_name(named) {
            let expected = "a TOML file or a preset";
            return Err(Error::expected(ErrorKind::PlanIsData, expected, "data").in_file(named));
        }
        Self::parse(&text, named)
    }

    /// From the text of a TOML file; errors say its name.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let wrong = |error: toml::de::Error| {
            Error::new(ErrorKind::Plan, error.to_string().trim_end()).in_file(name)
        };
        let plan: Self = toml::from_str(text).map_err(wrong)?;
        #[derive(Deserialize)]
        struct SettingsAlone {
            #[serde(default)]
            #[allow(dead_code, reason = "read for its errors, which know their line")]
            settings: Settings,
        }
        toml::from_str::<SettingsAlone>(text).map_err(wrong)?;
        let structures = [
            plan.preset.is_some(),
            !plan.image.is_empty(),
            !plan.columns.is_empty(),
            !plan.sequence.is_empty(),
        ];
        if structures.iter().filter(|&&there| there).count() > 1 {
            let expected = "one of preset, [image], [columns] and [sequence]";
            return Err(Error::expected(ErrorKind::Plan, expected, "more").in_file(name));
        }
        Ok(Self {
            name: name.into(),
            ..plan
        })
    }

    /// Whether it leaves the structure to a fit: it names none, and the data are images or a table. Sequences have one
    /// structure that suits them.
    pub fn is_open(&self, table: &Table) -> bool {
        self.names_nothing() && !is_sequence(table)
    }

    fn names_nothing(&self) -> bool {
        let is_empty = self.columns.is_empty() && self.sequence.is_empty();
        self.preset.is_none() && self.image.is_empty() && is_empty
    }

    /// Whether it is a preset without classes: labels of the data are then not looked at.
    pub fn is_density(&self) -> bool {
        let preset = self.preset.as_deref().and_then(|name| preset(name).ok());
        preset.is_some_and(|preset| preset.structure.classes == 1)
    }

    /// The settings that it changes, which are numbers.
    pub fn changes(&self) -> Result<&toml::Table> {
        self.check_numbers()?;
        Ok(&self.settings)
    }

    /// Structure, settings and scaling for these data.
    pub fn for_data(&self, table: &Table) -> Result<Preset> {
        let mut found = self.structure(table)?;
        found.settings = self.settings_over(&found.settings)?;
        let (wanted, got) = (found.structure.width(), table.layout.width);
        if wanted != got {
            return Err(self.mismatch(format!("rows of {wanted} numbers"), got));
        }
        let (wanted, got) = (found.structure.classes, table.classes().max(1));
        if wanted != got {
            let got = format!("{got} in the data");
            return Err(self.mismatch(format!("{wanted} classes"), got));
        }
        Ok(found)
    }

    fn structure(&self, table: &Table) -> Result<Preset> {
        let (rows, classes) = (table.rows(), table.classes().max(1));
        if let Some(name) = &self.preset {
            return Ok(Preset {
                scaling: images::scaling(&table.values),
                ..preset(name)?
            });
        }
        if !self.sequence.is_empty() || (self.names_nothing() && is_sequence(table)) {
            return self.sequences(table, classes);
        }
        if let (Some(shape), true) = (table.layout.shape, self.columns.is_empty()) {
            let shape = images::ImageShape {
                height: shape.height,
                width: shape.width,
                channels: shape.channels,
            };
            let mut specs = vec![images::spec(shape, rows); self.image.len().max(1)];
            for (spec, image) in specs.iter_mut().zip(&self.image) {
                image.change(spec, rows);
            }
            let real = specs[0].kind == Kind::Gaussian;
            let scaling = if real {
                images::scaling(&table.values)
            } else {
                Scaling::default()
            };
            let structure =
                Structure::images(&specs, classes).map_err(|error| self.wrong(error))?;
            return Ok(Preset {
                structure,
                settings: images::settings(shape, rows),
                scaling,
            });
        }
        if !self.image.is_empty() {
            let got = format!("a table of {} columns", table.layout.width);
            return Err(self.mismatch("images, as [image] says".to_owned(), got));
        }
        let kinds = table_checks::kinds(&table.layout);
        let mut plans = vec![ColumnPlan::for_rows(rows); self.columns.len().max(1)];
        for (plan, columns) in plans.iter_mut().zip(&self.columns) {
            let changed = columns.change(plan, table);
            changed.map_err(|error| error.in_file(&self.name))?;
        }
        let structure =
            column_trees(&plans, &kinds, table, classes).map_err(|error| self.wrong(error))?;
        Ok(Preset {
            structure,
            settings: settings(&kinds, &table.values),
            scaling: standardise(&kinds, &table.values),
        })
    }

    /// Trees over the columns as steps in time.
    fn sequences(&self, table: &Table, classes: usize) -> Result<Preset> {
        let kinds = table_checks::kinds(&table.layout);
        if let Some(column) = kinds.iter().position(|kind| *kind != Kind::Gaussian) {
            let error = self.mismatch("numbers, as [sequence] says".to_owned(), "categories");
            return Err(error.in_column(&table.layout.name(column)));
        }
        let width = table.layout.width;
        let Some(specs) = sequence_plan::specs(&self.sequence, &table.layout) else {
            let expected = "columns for whole steps of [sequence] channels".to_owned();
            return Err(self.mismatch(expected, format!("{width} columns")));
        };
        let structure = Structure::images(&specs, classes).map_err(|error| self.wrong(error))?;
        let first = specs.into_iter().next().unwrap_or(ImageSpec::new(1, width));
        let preset = sequences::preset(first, &table.values, classes);
        Ok(Preset {
            structure,
            ..preset.map_err(|error| self.wrong(error))?
        })
    }

    /// An error of the engine with the file that caused it, if there is one.
    fn wrong(&self, error: sumout::Error) -> Error {
        Error::from(error).in_file(&self.name)
    }

    /// A plan that does not fit the data.
    fn mismatch(&self, expected: String, got: impl fmt::Display) -> Error {
        Error::expected(ErrorKind::ModelMismatch, expected, got).in_file(&self.name)
    }

    fn check_numbers(&self) -> Result<()> {
        for (key, value) in &self.settings {
            if let Some(number) = value.as_float().filter(|number| !number.is_finite()) {
                let sentence = format!("{key}: expected a finite number, got {number}");
                return Err(Error::new(ErrorKind::Plan, sentence).in_file(&self.name));
            }
        }
        Ok(())
    }

    /// The settings of the file over others.
    fn settings_over(&self, base: &Settings) -> Result<Settings> {
        self.check_numbers()?;
        let wrong = |error: sumout::Error| {
            Error::new(ErrorKind::Plan, format!("settings: {error}")).in_file(&self.name)
        };
        base.with(&self.settings).map_err(wrong)
    }
}

/// A tree for each plan, side by side.
fn column_trees(
    plans: &[ColumnPlan],
    kinds: &[Kind],
    table: &Table,
    classes: usize,
) -> sumout::Result<Structure> {
    let mut structure = plans[0].structure(kinds, &table.values, classes)?;
    for plan in &plans[1..] {
        structure
            .trees
            .extend(plan.structure(kinds, &table.values, classes)?.trees);
    }
    structure.check()?;
    Ok(structure)
}

impl ImageTable {
    /// Changes what the plan says in the tree that suits this many images.
    fn change(&self, spec: &mut ImageSpec, images: usize) {
        let level = |l: &LevelTable| LevelSpec {
            window: l.window.0,
            channels: l.channels,
            sharing: l.sharing,
        };
        let levels = self
            .levels
            .as_ref()
            .map(|levels| levels.iter().map(level).collect());
        spec.patch = self.patch.map_or(spec.patch, |two| two.0);
        spec.frame = self.frame.map_or(spec.frame, |two| two.0);
        spec.grid_shift = self.grid_shift.map_or(spec.grid_shift, |two| two.0);
        spec.components = self.components.unwrap_or(spec.components);
        spec.leaf_sharing = self.leaf_sharing.unwrap_or(spec.leaf_sharing);
        spec.kind = self.kind.unwrap_or(spec.kind);
        // Other patches need other levels to become one node.
        let side =
            |frame: usize, shift: usize, patch: usize| (frame + shift).div_ceil(patch.max(1));
        let (down, right) = (
            side(spec.frame.0, spec.grid_shift.0, spec.patch.0),
            side(spec.frame.1, spec.grid_shift.1, spec.patch.1),
        );
        spec.levels = levels.unwrap_or_else(|| images::levels(down.max(right), images));
    }
}

impl ColumnTable {
    fn change(&self, plan: &mut ColumnPlan, table: &Table) -> Result<()> {
        plan.components = self.components.unwrap_or(plan.components);
        plan.channels = self
            .channels
            .clone()
            .unwrap_or_else(|| plan.channels.clone());
        plan.window = self.window.unwrap_or(plan.window);
        let Some(groups) = &self.groups else {
            return Ok(());
        };
        let names: Vec<String> = (0..table.layout.width)
            .map(|column| table.layout.name(column))
            .collect();
        let column = |wanted: &String| column_in_group(wanted, &names);
        let group = |group: &Vec<String>| group.iter().map(column).collect::<Result<Vec<_>>>();
        plan.groups = Some(groups.iter().map(group).collect::<Result<_>>()?);
        Ok(())
    }
}

/// The column that a group names.
fn column_in_group(wanted: &str, names: &[String]) -> Result<u32> {
    match names.iter().position(|name| name == wanted) {
        Some(column) => Ok(column as u32),
        None => {
            let sentence = format!("groups: expected {}, got '{wanted}'", some_of(names));
            Err(Error::new(ErrorKind::MissingColumn, sentence))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::{Column, ColumnKind, ImageShape, Layout};

    fn image() -> Table {
        let shape = ImageShape {
            height: 4,
            width: 4,
            channels: 1,
        };
        Table {
            layout: Layout::unnamed(16, Some(shape)),
            values: vec![0.0; 32],
            labels: Some(vec![0, 1]),
        }
    }

    fn columns() -> Table {
        let columns = ["a", "b", "c"].map(|name| Column {
            name: name.into(),
            kind: ColumnKind::Numeric,
        });
        let layout = Layout {
            width: 3,
            columns: columns.to_vec(),
            ..Layout::default()
        };
        Table {
            layout,
            values: vec![0.0; 6],
            labels: Some(vec![0, 1]),
        }
    }

    fn says(text: &str, table: &Table) -> String {
        let error = Plan::parse(text, "p.toml")
            .and_then(|plan| plan.for_data(table))
            .unwrap_err();
        assert!(error.is_user_error(), "{error}");
        error.to_string()
    }

    #[test]
    fn settings_lie_over_the_defaults() {
        let text = "[settings]\nsteps = 7\nrule = \"em\"\nleaves = { rounds = 3 }\n[settings.schedule]\nlinear = { from = 5 }";
        let settings = Plan::parse(text, "p.toml")
            .unwrap()
            .for_data(&columns())
            .unwrap()
            .settings;
        let usual = sumout::recipes::tables::settings(&[Kind::Gaussian; 3], &columns().values);
        let wanted = Settings {
            steps: 7,
            rule: sumout::training::Rule::Em,
            schedule: sumout::training::Schedule::Linear { from: 5 },
            leaves: sumout::training::LeafStart {
                rounds: 3,
                ..usual.leaves
            },
            ..usual
        };
        assert_eq!(settings, wanted);
    }

    #[test]
    fn structures_are_as_the_file_says() {
        let text = "[image]\npatch = [1, 2]\nframe = [4, 4]\ncomponents = 3\n[[image.levels]]\nwindow = [9, 9]\n\
                    channels = 5\nsharing = { pattern = [2, 2] }";
        let structure = Plan::parse(text, "p.toml")
            .unwrap()
            .for_data(&image())
            .unwrap()
            .structure;
        let tree = &structure.trees[0];
        assert_eq!(
            (
                tree.positions.len(),
                tree.components,
                tree.levels[0].matrices()
            ),
            (8, 3, 4)
        );
        let text = "[columns]\ncomponents = 4\nchannels = [6, 7]\nwindow = 2\ngroups = [[\"b\"], [\"c\"], [\"a\"]]";
        let structure = Plan::parse(text, "p.toml")
            .unwrap()
            .for_data(&columns())
            .unwrap()
            .structure;
        let inputs: Vec<u32> = structure.trees[0]
            .positions
            .iter()
            .flat_map(|p| p.inputs.clone())
            .collect();
        assert_eq!(
            (inputs, structure.trees[0].top_channels()),
            (vec![1, 2, 0], 7)
        );
    }

    #[test]
    fn columns_are_steps_in_time() {
        let parsed = |text: &str| Plan::parse(text, "p.toml").unwrap();
        let preset = parsed("[sequence]\ncomponents = 3")
            .for_data(&columns())
            .unwrap();
        let structure = &preset.structure;
        let frame = structure.frame.unwrap();
        assert_eq!((frame.height, frame.width, structure.width()), (1, 3, 3));
        let tree = &structure.trees[0];
        assert_eq!(
            (tree.positions.len(), tree.families.len(), tree.levels.len()),
            (3, 1, 2)
        );
        let text = "[[sequence]]\npatch = 2\n[[sequence.levels]]\nwindow = 2\nchannels = 5\n\
                    sharing = \"own\"\n[[sequence]]\nchannels = 1";
        let trees = parsed(text).for_data(&columns()).unwrap().structure.trees;
        assert_eq!(
            (
                trees.len(),
                trees[0].positions.len(),
                trees[0].top_channels()
            ),
            (2, 2, 5)
        );
    }

    #[test]
    fn several_trees_stand_side_by_side() {
        let trees = |text: &str, table: &Table| {
            let structure = Plan::parse(text, "p.toml")
                .unwrap()
                .for_data(table)
                .unwrap()
                .structure;
            structure
                .trees
                .iter()
                .map(|tree| (tree.positions.len(), tree.components))
                .collect::<Vec<_>>()
        };
        let text = "[[image]]\ncomponents = 3\n[[image.levels]]\nwindow = [9, 9]\nchannels = 5\nsharing = \"own\"\n\
                    [[image]]\ngrid_shift = [1, 1]\ncomponents = 2";
        assert_eq!(trees(text, &image()), [(16, 3), (25, 2)]);
        let text = "[[columns]]\ncomponents = 4\n[[columns]]\ngroups = [[\"b\", \"a\"], [\"c\"]]\ncomponents = 7";
        assert_eq!(trees(text, &columns()), [(3, 4), (2, 7)]);
    }

    #[test]
    fn nonsense_is_named() {
        let of_image = [
            "[settings]\nstepz = 5",
            "presett = \"x\"",
            "[image]\npatches = [1, 1]",
            "preset = \"mnist\"",
            "[settings]\nrate = nan",
            "[image]\npatch = [1, 1, 1]",
            "[image]\n[[image.levels]]\nwindow = [2, 2, 2]\nchannels = 4\nsharing = \"own\"",
            "[image]\nleaf_sharing = { pattern = [2, 2, 2] }",
            "[image]\nframe = [4]",
        ];
        let more = [
            "preset = \"mnist-ht\"",
            "preset = \"mnist-ht\"\n[columns]",
            "[image]\nlevels = []",
        ];
        let of_columns = [
            "[image]",
            "[columns]\ngroups = [[\"d\"]]",
            "[columns]\ngroups = [[\"a\"]]",
            "[sequence]\nchannels = 2",
            "[sequence]\nlevels = []",
            "[sequence]\n[columns]",
        ];
        let others = [
            "columns = 7",
            "[[columns]]\n[[columns]]\nchannel = 3",
            "[settings]\nsteps = -1",
            "[settings]\nsteps = 0.5",
            "steps = ",
        ];
        let mut all = String::new();
        for (texts, table) in [
            (&of_image[..], image()),
            (&more, image()),
            (&of_columns, columns()),
            (&others, columns()),
        ] {
            texts
                .iter()
                .for_each(|text| all.push_str(&format!("{text}\n> {}\n\n", says(text, &table))));
        }
        insta::assert_snapshot!(all);
    }
}
