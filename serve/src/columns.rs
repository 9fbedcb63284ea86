//! What a model's columns take: from cells of any format to numbers, or a sentence about what is wrong.

use std::collections::HashMap;
use sumout::structure::{Kind, Structure};
use sumout_data::cells::{Cell, Holes};
use sumout_data::layout::some_of;
use sumout_data::layout::{ColumnKind, Layout};

/// What one column takes.
#[derive(Clone, Debug)]
enum Takes {
    /// Any finite number.
    Number,
    /// A whole number from 0 to this.
    Whole(u32),
    /// One of these names.
    Name(Vec<String>, HashMap<String, usize>),
}

/// All columns of a model.
#[derive(Clone, Debug)]
pub struct Columns {
    names: Vec<String>,
    takes: Vec<Takes>,
    by_name: HashMap<String, usize>,
    /// What counts as missing.
    holes: Holes,
    /// Whether the names are the model's own; images have none.
    pub named: bool,
}

impl Columns {
    /// Those of a model.
    pub fn new(layout: &Layout, structure: &Structure) -> Self {
        let takes = |(column, kind): (usize, &Kind)| match (
            layout.columns.get(column).map(|c| &c.kind),
            kind,
        ) {
            (Some(ColumnKind::Categorical(names)), _) => {
                Takes::Name(names.clone(), names.iter().cloned().zip(0..).collect())
            }
            (_, Kind::Gaussian) => Takes::Number,
            (_, Kind::Bernoulli) => Takes::Whole(1),
            (_, Kind::Categorical(values)) => Takes::Whole(values - 1),
        };
        let names: Vec<String> = (0..layout.width)
            .map(|column| layout.name(column))
            .collect();
        Self {
            takes: structure
                .row_kinds()
                .iter()
                .enumerate()
                .map(takes)
                .collect(),
            by_name: names.iter().cloned().zip(0..).collect(),
            names,
            holes: Holes::and(&layout.na),
            named: !layout.columns.is_empty(),
        }
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// The name of a column; x0, x1, … where it has none.
    pub fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    /// The column of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The names of a column's categories; none for a number.
    pub fn categories(&self, column: usize) -> Option<&[String]> {
        match &self.takes[column] {
            Takes::Name(names, _) => Some(names),
            _ => None,
        }
    }

    /// Whether a column is a category, named or not.
    pub fn is_discrete(&self, column: usize) -> bool {
        !matches!(self.takes[column], Takes::Number)
    }

    /// Whether a text stands for nothing.
    pub fn is_hole(&self, text: &str) -> bool {
        self.holes.cell(text) == Cell::Missing
    }

    /// Whether a text stands for nothing because `--na` said so in training.
    pub fn is_named_hole(&self, text: &str) -> bool {
        self.holes.named(text) == Cell::Missing
    }

    /// The number of a cell, where text such as NA is missing.
    pub fn value(&self, column: usize, cell: Cell<'_>) -> Result<f32, String> {
        match cell {
            Cell::Text(text) => self.known(column, self.holes.cell(text)),
            cell => self.value_or_null(column, cell),
        }
    }

    /// The number of a cell of JSON, where null is missing, and text only if the model was trained with `--na`.
    pub fn value_or_null(&self, column: usize, cell: Cell<'_>) -> Result<f32, String> {
        let cell = match cell {
            Cell::Missing => Cell::Missing,
            Cell::Number(number) => self.holes.number(number),
            Cell::Text(text) => self.holes.named(text),
        };
        self.known(column, cell)
    }

    fn known(&self, column: usize, cell: Cell<'_>) -> Result<f32, String> {
        if cell == Cell::Missing {
            return Ok(f32::NAN);
        }
        let shown = || {
            cell.category()
                .unwrap_or_default()
                .chars()
                .take(40)
                .collect::<String>()
        };
        match &self.takes[column] {
            Takes::Number => match cell.number().map(|number| number as f32) {
                Some(number) if number.is_finite() => Ok(number),
                Some(_) => Err(format!(
                    "expected a finite number of 32 bits, got '{}'",
                    shown()
                )),
                None => Err(format!("expected a number, got '{}'", shown())),
            },
            Takes::Whole(last) => match cell.number() {
                Some(number)
                    if number.fract() == 0.0 && (0.0..=f64::from(*last)).contains(&number) =>
                {
                    Ok(number as f32)
                }
                _ => Err(format!(
                    "expected a whole number from 0 to {last}, got '{}'",
                    shown()
                )),
            },
            Takes::Name(names, codes) => match cell.category().and_then(|name| codes.get(&name)) {
                Some(&code) => Ok(code as f32),
                None => Err(format!("expected {}, got '{}'", some_of(names), shown())),
            },
        }
    }

    /// For every column of the model, where it stands in a table with these names. A model without names takes x0, x1,
    /// …, or as many columns as it has, in their order.
    pub fn places(&self, header: &[String]) -> Result<Vec<usize>, String> {
        let mut at = HashMap::new();
        for (place, name) in header
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
        {
            if at.insert(name.as_str(), place).is_some() && self.by_name.contains_key(name) {
                return Err(format!("expected every column once, got '{name}' twice"));
            }
        }
        let by_name: Option<Vec<usize>> = self
            .names
            .iter()
            .map(|name| at.get(name.as_str()).copied())
            .collect();
        if let Some(places) = by_name {
            return Ok(places);
        }
        if !self.named && header.len() == self.width() {
            return Ok((0..header.len()).collect());
        }
        if self.named {
            let absent = self
                .names
                .iter()
                .find(|name| !at.contains_key(name.as_str()))
                .map_or("", |name| name);
            return Err(format!(
                "expected a column '{absent}', as the model has, got {}",
                some_of(header)
            ));
        }
        Err(format!(
            "expected {} columns, as the model has, got {}",
            self.width(),
            header.len()
        ))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use sumout::Model;
    use sumout_data::model_files::layout_of;

    /// A model over age (a number), sex (f, m), coin (0 or 1) and a category without names.
    pub fn pets() -> Model {
        let kinds = [
            Kind::Gaussian,
            Kind::Categorical(2),
            Kind::Bernoulli,
            Kind::Categorical(3),
        ];
        let groups: Vec<Vec<u32>> = (0..4).map(|column| vec![column]).collect();
        let structure = Structure::table(&kinds)
            .groups(groups.clone())
            .window(2)
            .components(2)
            .channels([3])
            .classes(2)
            .build()
            .unwrap();
        let mut model = Model::random(structure, 1.0, 1);
        model.about.columns = ["age", "sex", "coin", "kind"].map(str::to_owned).to_vec();
        model.about.categories = vec![vec![], vec!["f".into(), "m".into()], vec![], vec![]];
        model.about.classes = vec!["no".into(), "yes".into()];
        model
    }

    /// Its columns.
    pub fn columns() -> Columns {
        let model = pets();
        Columns::new(&layout_of(&model), &model.structure)
    }

    #[test]
    fn cells_become_numbers_or_sentences() {
        let columns = columns();
        let value = |column, cell| columns.value(column, cell);
        assert_eq!(value(0, Cell::Text("-1.5")), Ok(-1.5));
        assert!(
            value(0, Cell::Missing).unwrap().is_nan() && value(3, Cell::Missing).unwrap().is_nan()
        );
        assert_eq!(value(1, Cell::Text("m")), Ok(1.0));
        assert_eq!(value(2, Cell::Number(1.0)), Ok(1.0));
        assert_eq!(
            value(0, Cell::Text("old")).unwrap_err(),
            "expected a number, got 'old'"
        );
        assert_eq!(
            value(0, Cell::Number(1e39)).unwrap_err().split(',').next(),
            Some("expected a finite number of 32 bits")
        );
        assert_eq!(
            value(1, Cell::Number(1.0)).unwrap_err(),
            "expected f, m, got '1'"
        );
        assert_eq!(
            value(2, Cell::Number(0.5)).unwrap_err(),
            "expected a whole number from 0 to 1, got '0.5'"
        );
        assert_eq!(
            value(3, Cell::Number(3.0)).unwrap_err(),
            "expected a whole number from 0 to 2, got '3'"
        );
        assert!(
            value(3, Cell::Number(f64::NAN)).unwrap().is_nan()
                && value(0, Cell::Text(" NA ")).unwrap().is_nan()
        );
    }

    #[test]
    fn columns_are_found_by_name_or_by_place() {
        let strings = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let columns = columns();
        assert_eq!(
            columns.places(&strings(&["id", "kind", "coin", "sex", "age"])),
            Ok(vec![4, 3, 2, 1])
        );
        let error = columns.places(&strings(&["age", "sex"])).unwrap_err();
        assert_eq!(
            error,
            "expected a column 'coin', as the model has, got age, sex"
        );
        let error = columns
            .places(&strings(&["age", "sex", "coin", "kind", "age"]))
            .unwrap_err();
        assert_eq!(error, "expected every column once, got 'age' twice");
        let unnamed = Columns {
            named: false,
            names: strings(&["x0", "x1"]),
            by_name: HashMap::new(),
            takes: vec![],
            holes: Holes::default(),
        };
        assert_eq!(unnamed.places(&strings(&["a", "b"])), Ok(vec![0, 1]));
        assert_eq!(
            unnamed.places(&strings(&["x1", "id", "x0"])),
            Ok(vec![2, 0])
        );
        assert_eq!(
            unnamed.places(&strings(&["a"])).unwrap_err(),
            "expected 2 columns, as the model has, got 1"
        );
    }
}
