//! What a model needs to know of the data it learns from: kinds and names; and what is suspicious about them.

use crate::rows::findings::{Finding, FindingKind};
use crate::rows::layout::{Column, ColumnKind, Layout, Table};
use sumout::model::About;
use sumout::structure::Kind;

/// The kind of every column of a table.
pub fn kinds(layout: &Layout) -> Vec<Kind> {
    let kind = |column: Option<&Column>| match column.map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => Kind::Categorical(names.len() as u32),
        _ => Kind::Gaussian,
    };
    (0..layout.width)
        .map(|column| kind(layout.columns.get(column)))
        .collect()
}

/// Everything suspicious about a table, first what was found when it was read.
pub fn findings(table: &Table) -> Vec<Finding> {
    let mut findings = table.layout.findings.clone();
    findings.extend(row_numbers(table));
    if table.layout.shape.is_none() {
        findings.extend(without_information(table));
        findings.extend(outliers(table));
    }
    findings
}

/// The numbers of a column that are not missing.
fn seen(table: &Table, column: usize) -> impl Iterator<Item = f32> {
    let all = table.values.iter().skip(column);
    let all = all.step_by(table.layout.width).copied();
    all.filter(|x| !x.is_nan())
}

/// Columns that number the rows: nothing can be learned from them. What is to be predicted is none of them.
fn row_numbers(table: &Table) -> Vec<Finding> {
    let layout = &table.layout;
    let columns = (0..layout.columns.len()).filter(|&column| Some(column) != layout.predicted);
    let columns = columns.filter(|&column| counts_rows(table, column));
    let finding = |column| Finding::new(layout.name(column), FindingKind::RowNumbers);
    columns.map(finding).collect()
}

/// Whether the cells of a column are whole numbers that are all there, all different and close together: numbers of rows
/// in any order, some of which may be gone.
fn counts_rows(table: &Table, column: usize) -> bool {
    const FEW: usize = 20;
    let rows = table.rows();
    let is_number = table.layout.columns[column].kind == ColumnKind::Numeric;
    let cells = table.values.iter().skip(column).step_by(table.layout.width);
    if rows <= FEW || !is_number || !cells.clone().all(|x| x.fract() == 0.0) {
        return false;
    }
    let mut cells: Vec<f32> = cells.copied().collect();
    cells.sort_unstable_by(f32::total_cmp);
    let range = f64::from(cells[rows - 1]) - f64::from(cells[0]);
    range < 2.0 * rows as f64 && cells.windows(2).all(|pair| pair[0] != pair[1])
}

/// Columns whose numbers are too large for what distinguishes them, such as times in seconds, and columns of one value or
/// none.
fn without_information(table: &Table) -> Vec<Finding> {
    let (kinds, layout) = (kinds(&table.layout), &table.layout);
    let finding = |column: usize| {
        let what = little_information(table, column, kinds[column])?;
        Some(Finding::new(layout.name(column), what))
    };
    (0..layout.width).filter_map(finding).collect()
}

fn little_information(table: &Table, column: usize, kind: Kind) -> Option<FindingKind> {
    const STEPS: f32 = 256.0; // that the range of a column should have
    let low = seen(table, column).fold(f32::INFINITY, f32::min);
    let high = seen(table, column).fold(f32::NEG_INFINITY, f32::max);
    let largest = low.abs().max(high.abs());
    let step = largest.next_up() - largest;
    if low > high {
        return Some(FindingKind::NoValues);
    }
    if kind == Kind::Gaussian && step >= 1.0 && high - low < STEPS * step {
        return Some(FindingKind::Coarse { largest, step });
    }
    if low < high || table.rows() == 1 {
        return None;
    }
    let value = match table.layout.columns.get(column).map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => format!("'{}'", names[low as usize]),
        _ => format!("{low:?}"),
    };
    Some(FindingKind::Constant { value })
}

/// Cells so far from all others that they spoil the scale of their columns.
fn outliers(table: &Table) -> Vec<Finding> {
    let (kinds, layout) = (kinds(&table.layout), &table.layout);
    let finding = |column: usize| {
        let value = outlier(seen(table, column).collect())?;
        let kind = FindingKind::Outlier { value };
        Some(Finding::new(layout.name(column), kind))
    };
    let numeric = |&column: &usize| kinds[column] == Kind::Gaussian;
    (0..layout.width)
        .filter(numeric)
        .filter_map(finding)
        .collect()
}

/// The least or greatest number, if it is far from the middle half.
fn outlier(mut seen: Vec<f32>) -> Option<f32> {
    const FAR: f64 = 1000.0; // times the range of the middle half
    let last = seen.len().checked_sub(1)?;
    seen.sort_by(f32::total_cmp);
    let [low, middle, high] = [1, 2, 3].map(|quarter| f64::from(seen[last * quarter / 4]));
    let far = |x: &f32| (f64::from(*x) - middle).abs() > FAR * (high - low);
    [seen[0], seen[last]]
        .into_iter()
        .find(|x| high > low && far(x))
}

/// Names of classes, columns and categories.
pub fn names(table: &Table) -> About {
    let layout = &table.layout;
    let categories = |column: &Column| match &column.kind {
        ColumnKind::Categorical(names) => names.clone(),
        ColumnKind::Numeric | ColumnKind::Date(_) => Vec::new(),
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

    fn numbers_rows(cells: Vec<f32>, kind: ColumnKind, predicted: Option<usize>) -> bool {
        let layout = Layout {
            width: 1,
            columns: vec![column("a", kind)],
            predicted,
            ..Layout::default()
        };
        let table = Table {
            layout,
            values: cells,
            labels: None,
        };
        !row_numbers(&table).is_empty()
    }

    #[test]
    fn rows_are_numbered_in_any_order() {
        let cells = |scale: usize| (0..40).map(move |i| (i * 17 % 40 * scale + 1000) as f32);
        let seen = |cells: Vec<f32>| numbers_rows(cells, ColumnKind::Numeric, None);
        assert!(seen(cells(1).collect()), "shuffled");
        assert!(seen(cells(1).take(25).collect()), "split");
        assert!(!seen(cells(1).take(20).collect()), "too few");
        assert!(!seen(cells(3).collect()), "too far apart");
        assert!(!seen(cells(1).map(|x| x / 2.0).collect()), "not whole");
        assert!(
            !seen(cells(1).map(|x| x.min(1038.0)).collect()),
            "one twice"
        );
        let hole = cells(1).map(|x| if x == 1003.0 { f32::NAN } else { x });
        assert!(!seen(hole.collect()), "one missing");
        let days = ColumnKind::Date(crate::rows::dates::DateStyle::Day);
        assert!(!numbers_rows(cells(1).collect(), days, None), "dates");
        let target = numbers_rows(cells(1).collect(), ColumnKind::Numeric, Some(0));
        assert!(!target, "a target");
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
        let shown = |findings: Vec<Finding>| {
            let texts = findings.iter().map(Finding::to_string);
            texts.collect::<Vec<_>>()
        };
        let outlier = "column 'a': -3e38 is far from the rest and spoils the scale";
        assert_eq!(shown(outliers(&table)), [outlier]);
        assert!(row_numbers(&table).is_empty());
        let counted = (7..40).flat_map(|i| [i as f32, (i % 5) as f32]).collect();
        let table_of_two = Table {
            values: counted,
            ..table
        };
        assert_eq!(
            shown(row_numbers(&table_of_two)),
            ["column 'a' numbers the rows"]
        );
        let large = [1_700_000_000.0, 5.0, 1_700_000_128.0, 5.0].to_vec();
        let table_of_two = Table {
            values: large,
            ..table_of_two
        };
        let coarse = shown(without_information(&table_of_two));
        assert!(
            coarse[0].contains("1700000100.0 are kept in steps of 128"),
            "{coarse:?}"
        );
        assert!(
            coarse[1].contains("'constant' is 5.0 wherever it is known"),
            "{coarse:?}"
        );
        let nothing = Table {
            values: vec![f32::NAN, 1.0, f32::NAN, 2.0],
            ..table_of_two
        };
        assert!(outliers(&nothing).is_empty());
    }
}
