//! A number for each class, as options give it: `no=9,yes=1`.

use crate::commands::train::training_data::{class_counts, class_name};
use crate::terminal::user_error::user_error;
use anyhow::Result;
use sumout::training::Prior;
use sumout_data::layout::{Table, some_of};

/// The prior that `--prior` names.
pub fn prior(text: &str, table: &Table) -> Result<Prior> {
    Ok(match text {
        "labels" => Prior::Labels,
        "uniform" => Prior::Uniform,
        weights => Prior::Given(class_numbers("--prior", "labels, uniform", weights, table)?),
    })
}

/// The weights that `--class-weight` names.
pub fn class_weights(text: &str, table: &Table) -> Result<Vec<f64>> {
    if text != "balanced" {
        return class_numbers("--class-weight", "balanced", text, table);
    }
    let counts = class_counts(table);
    let labelled: usize = counts.iter().sum();
    let weight = |count: &usize| labelled as f64 / (counts.len() * count.max(&1)) as f64;
    Ok(counts.iter().map(weight).collect())
}

/// P(y) as the weighted rows have it.
pub fn weighted_prior(weights: &[f64], table: &Table) -> Prior {
    let counts = class_counts(table).into_iter();
    let weighted = counts
        .zip(weights)
        .map(|(count, weight)| count as f64 * weight);
    Prior::Given(weighted.collect())
}

/// A number above 0 for each class of a table; `words` are what the option takes besides.
pub fn class_numbers(option: &str, words: &str, text: &str, table: &Table) -> Result<Vec<f64>> {
    let names: Vec<String> = (0..table.classes())
        .map(|class| class_name(table, class))
        .collect();
    let expected = format!(
        "{option}: expected {words}, or a number above 0 for each class ({}), such as a=1,b=2",
        some_of(&names)
    );
    let wrong = |got: &str| user_error(format!("{expected}, got {got}"));
    let mut numbers = vec![0.0; names.len()];
    for part in text.split(',') {
        let (name, number) = part.rsplit_once('=').ok_or_else(|| wrong(part))?;
        let class = names.iter().position(|known| known == name);
        let number = number.parse().ok();
        let number = number.filter(|x: &f64| x.is_finite() && *x > 0.0);
        match (class, number) {
            (Some(class), Some(number)) if numbers[class] == 0.0 => numbers[class] = number,
            _ => return Err(wrong(part)),
        }
    }
    match numbers.iter().position(|&number| number == 0.0) {
        Some(class) => Err(wrong(&format!("none for {}", names[class]))),
        None => Ok(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::layout::Layout;

    #[test]
    fn every_class_gets_its_number() {
        let table = Table {
            layout: Layout {
                width: 1,
                classes: vec!["no".into(), "a=b".into()],
                ..Layout::default()
            },
            values: vec![],
            labels: Some(vec![]),
        };
        let of = |text| prior(text, &table);
        assert_eq!(of("uniform").unwrap(), Prior::Uniform);
        assert_eq!(of("labels").unwrap(), Prior::Labels);
        assert_eq!(of("a=b=2,no=0.5").unwrap(), Prior::Given(vec![0.5, 2.0]));
        let table = Table {
            labels: Some(vec![0, 0, 0, 1, -1]),
            ..table
        };
        let weights = class_weights("balanced", &table).unwrap();
        assert_eq!(weights, [4.0 / 6.0, 2.0]);
        assert_eq!(
            weighted_prior(&weights, &table),
            Prior::Given(vec![2.0, 2.0])
        );
        let of = |text| prior(text, &table);
        for (text, got) in [
            ("no=1", "none for a=b"),
            ("no=1,no=2", "no=2"),
            ("no=0,a=b=1", "no=0"),
            ("yes=1", "yes=1"),
            ("even", "even"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("got {got}")), "{error}");
        }
    }
}
