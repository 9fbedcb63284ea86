//! What a model needs to know of the data it learns from: kinds and names; and what is odd about them.

use crate::error::quoted;
use crate::layout::{Column, ColumnKind, Layout, Table};
use sumout::model::About;
use sumout::structure::Kind;

/// What every column of a table may be.
pub fn kinds(layout: &Layout) -> Vec<Kind> {
    let kind = |column: Option<&Column>| match column.map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => Kind::Categorical(names.len() as u32),
        _ => Kind::Gaussian,
    };
    (0..layout.width)
        .map(|column| kind(layout.columns.get(column)))
        .collect()
}

/// Columns that number the rows: nothing can be learned from them.
pub fn counters(table: &Table) -> Vec<String> {
    let layout = &table.layout;
    let counts = |&column: &usize| {
        let cells = || table.values.iter().skip(column).step_by(layout.width);
        let first = f64::from(table.values[column]);
        table.rows() > 20
            && cells()
                .enumerate()
                .all(|(row, &x)| f64::from(x) == first + row as f64)
    };
    let columns = (0..layout.columns.len())
        .filter(counts)
        .map(|column| layout.name(column));
    let doubt = |name: String| {
        format!(
            "column '{name}' numbers the rows; --ignore {} leaves it out",
            quoted(&name)
        )
    };
    columns.map(doubt).collect()
}

/// Columns whose numbers are too large for what distinguishes them, such as times in seconds, and columns of one value or
/// none.
pub fn coarse(table: &Table) -> Vec<String> {
    const STEPS: f32 = 256.0; // that the range of a column should have
    let (kinds, layout) = (kinds(&table.layout), &table.layout);
    let mut found = Vec::new();
    for column in (0..layout.width).filter(|_| layout.shape.is_none()) {
        let seen = || {
            table
                .values
                .iter()
                .skip(column)
                .step_by(layout.width)
                .copied()
                .filter(|x| !x.is_nan())
        };
        let (low, high) = (
            seen().fold(f32::INFINITY, f32::min),
            seen().fold(f32::NEG_INFINITY, f32::max),
        );
        let largest = low.abs().max(high.abs());
        let (name, step) = (layout.name(column), largest.next_up() - largest);
        if low > high {
            found.push(format!(
                "column '{name}' is known in no row that is learned from"
            ));
        } else if kinds[column] == Kind::Gaussian && step >= 1.0 && high - low < STEPS * step {
            let hint = "subtract a constant from it first";
            found.push(format!("column '{name}': numbers as large as {largest:?} are kept in steps of {step}; {hint}"));
        } else if low == high && table.rows() > 1 {
            let value = match layout.columns.get(column).map(|column| &column.kind) {
                Some(ColumnKind::Categorical(names)) => format!("'{}'", names[low as usize]),
                _ => format!("{low:?}"),
            };
            found.push(format!(
                "column '{name}' is {value} wherever it is known: nothing can be learned from it"
            ));
        }
    }
    found
}

/// Cells so far from all others that they spoil the scale of their columns.
pub fn outliers(table: &Table) -> Vec<String> {
    const FAR: f64 = 1000.0; // times the range of the middle half
    let (kinds, layout) = (kinds(&table.layout), &table.layout);
    let mut found = Vec::new();
    for column in (0..layout.width)
        .filter(|&column| layout.shape.is_none() && kinds[column] == Kind::Gaussian)
    {
        let mut seen: Vec<f32> = table
            .values
            .iter()
            .skip(column)
            .step_by(layout.width)
            .copied()
            .filter(|x| !x.is_nan())
            .collect();
        if seen.is_empty() {
            continue;
        }
        seen.sort_by(f32::total_cmp);
        let [low, middle, high] =
            [1, 2, 3].map(|quarter| f64::from(seen[(seen.len() - 1) * quarter / 4]));
        let far = |x: f32| (f64::from(x) - middle).abs() > FAR * (high - low);
        let ends = seen.first().into_iter().chain(seen.last());
        if let Some(end) = ends.copied().find(|&x| high > low && far(x)) {
            let (name, hint) = (
                layout.name(column),
                "--na with the text of such a cell makes it missing",
            );
            found.push(format!(
                "column '{name}': {end:?} is far from the rest and spoils the scale; {hint}"
            ));
        }
    }
    found
}

/// Names of classes, columns and categories.
pub fn names(table: &Table) -> About {
    let layout = &table.layout;
    let categories = |column: &Column| match &column.kind {
        ColumnKind::Categorical(names) => names.clone(),
        ColumnKind::Numeric => Vec::new(),
    };
    let named = layout.classes.len() == table.classes().max(1);
    About {
        classes: if named {
            layout.classes.clone()
        } else {
            Vec::new()
        },
        columns: layout
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect(),
        categories: layout.columns.iter().map(categories).collect(),
        training: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.into(),
            kind,
        }
    }

    #[test]
    fn kinds_and_names_are_those_of_the_layout() {
        let names_of_b: Vec<String> = vec!["x".into(), "y".into()];
        let columns = vec![
            column("a", ColumnKind::Numeric),
            column("b", ColumnKind::Categorical(names_of_b.clone())),
        ];
        let layout = Layout {
            width: 2,
            columns,
            ..Layout::default()
        };
        let table = Table {
            layout,
            values: vec![1.0, 0.0],
            labels: None,
        };
        assert_eq!(kinds(&table.layout), [Kind::Gaussian, Kind::Categorical(2)]);
        assert_eq!(names(&table).categories[1], names_of_b);
    }

    #[test]
    fn a_cell_far_from_all_others_is_named() {
        let layout = |names: &[&str]| {
            let columns: Vec<_> = names
                .iter()
                .map(|name| column(name, ColumnKind::Numeric))
                .collect();
            Layout {
                width: columns.len(),
                columns,
                ..Layout::default()
            }
        };
        let values = vec![
            1.0,
            5.0,
            2.0,
            5.0,
            3.0,
            5.0,
            -3e38,
            5.0,
            2.0,
            9e9,
            2.5,
            f32::NAN,
        ];
        let table = Table {
            layout: layout(&["a", "constant"]),
            values,
            labels: None,
        };
        let said = outliers(&table);
        assert!(counters(&table).is_empty());
        let counted = (7..40).flat_map(|i| [i as f32, (i % 5) as f32]).collect();
        let table_of_two = Table {
            values: counted,
            ..table
        };
        assert_eq!(
            counters(&table_of_two),
            ["column 'a' numbers the rows; --ignore a leaves it out"]
        );
        let large = [1_700_000_000.0, 5.0, 1_700_000_128.0, 5.0].to_vec();
        let table_of_two = Table {
            values: large,
            ..table_of_two
        };
        let (steps, one) = (
            "1700000100.0 are kept in steps of 128",
            "'constant' is 5.0 wherever it is known",
        );
        let coarse = coarse(&table_of_two);
        assert!(
            coarse[0].contains(steps) && coarse[1].contains(one),
            "{coarse:?}"
        );
        assert_eq!(
            said,
            [
                "column 'a': -3e38 is far from the rest and spoils the scale; --na with the text of such a cell makes it missing"
            ]
        );
        let nothing = Table {
            values: vec![f32::NAN, 1.0, f32::NAN, 2.0],
            ..table_of_two
        };
        assert!(outliers(&nothing).is_empty());
    }
}
