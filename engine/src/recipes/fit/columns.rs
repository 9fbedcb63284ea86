//! What a fit does with the columns of a table: bounds, curves, and the shapes of its trees.

use crate::error::{Error, Result};
use crate::model::column_range::with_margins;
use crate::model::{ColumnRange, Curve, Scaling};
use crate::recipes::fit::options::Fit;
use crate::recipes::presets::Preset;
use crate::recipes::tables::ColumnPlan;
use crate::structure::{Kind, Structure};
use crate::training::data::Data;
use crate::training::settings::Settings;
use rayon::prelude::*;
use serde_json::Value;

impl Fit {
    /// The bounds and the curves of all columns.
    pub(super) fn bends(&self, data: &Data<'_>, kinds: &[Kind], classes: usize) -> Result<Scaling> {
        let mut bends = Scaling::default();
        bends.ranges = self.ranges_of(data, kinds)?;
        bends.curves = self.curves_of(data, kinds, classes, &bends);
        Ok(bends)
    }

    /// What the numbers of the columns can be, with margins that suit the data.
    fn ranges_of(&self, data: &Data<'_>, kinds: &[Kind]) -> Result<Vec<ColumnRange>> {
        if self
            .ranges
            .iter()
            .all(|range| *range == ColumnRange::default())
        {
            return Ok(Vec::new());
        }
        let is_framed = |preset: &Preset| preset.structure.frame.is_some();
        if self.image.is_some() || self.preset.as_ref().is_some_and(is_framed) {
            let (what, expected) = ("bounds and whole numbers", "the columns of a table");
            return Err(Error::shape(what, expected, "images or sequences"));
        }
        if self.ranges.len() != data.rows()?.width() {
            let expected = data.rows()?.width();
            return Err(Error::shape(
                "bounds of columns",
                expected,
                self.ranges.len(),
            ));
        }
        let mut pairs = self.ranges.iter().zip(kinds);
        let is_wrong = |(range, kind): (&ColumnRange, &Kind)| {
            *range != ColumnRange::default() && *kind != Kind::Gaussian
        };
        if let Some(column) = pairs.position(is_wrong) {
            let what = format!("bounds of column {column}");
            let got = format!("{:?}", kinds[column]);
            return Err(Error::shape(what, "a column of numbers", got));
        }
        Ok(with_margins(&self.ranges, &data.values))
    }

    /// The curves that make the numbers of the columns almost normal; none where they should stay as they are.
    fn curves_of(
        &self,
        data: &Data<'_>,
        kinds: &[Kind],
        classes: usize,
        bounds: &Scaling,
    ) -> Vec<Curve> {
        let usual = self.is_labelled_table(classes);
        if !self.curves.unwrap_or(usual) || self.image.is_some() || self.preset.is_some() {
            return Vec::new();
        }
        let curve = |(column, kind): (usize, &Kind)| {
            let is_straight = *kind != Kind::Gaussian || bounds.is_bent(column);
            let is_curved = !is_straight && self.target != Some(column);
            is_curved.then(|| data.stop.unless(|| curve_of(data, column, kinds.len())))
        };
        let curves = kinds.par_iter().enumerate().map(curve);
        let curves: Vec<Curve> = curves.map(Option::unwrap_or_default).collect();
        let is_bent = curves.iter().any(|curve| !curve.is_identity());
        if is_bent { curves } else { Vec::new() }
    }

    /// Whether it is a table with classes, and nobody has said how to learn it.
    pub(super) fn is_labelled_table(&self, classes: usize) -> bool {
        self.image.is_none() && self.preset.is_none() && classes > 1
    }

    /// The blueprints of the trees of a table with classes, which take turns; none for all else.
    pub(super) fn structures(
        &self,
        kinds: &[Kind],
        data: &Data<'_>,
        classes: usize,
        trees: usize,
    ) -> Result<Vec<Structure>> {
        if !self.is_labelled_table(classes) {
            return Ok(Vec::new());
        }
        let seed = self.changes.get("seed").and_then(Value::as_u64);
        let seed = seed.unwrap_or(Settings::default().seed);
        let (values, stop) = (&*data.values, &data.stop);
        let plans = self.columns(data.len(), classes);
        let plans = plans.shapes(kinds, values, trees, seed, stop);
        let structure = |plan: &ColumnPlan| plan.structure_unless(stop, kinds, values, classes);
        plans.iter().map(structure).collect()
    }

    /// Components and channels of a tree over columns.
    pub(super) fn columns(&self, rows: usize, classes: usize) -> ColumnPlan {
        let mut columns = ColumnPlan::for_classes(rows, classes);
        columns.components = self.components.unwrap_or(columns.components);
        columns.channels = self.channels.map_or(columns.channels, |c| vec![c]);
        columns
    }
}

/// The curve that leads the numbers of a column to a normal.
fn curve_of(data: &Data<'_>, column: usize, width: usize) -> Curve {
    let numbers = data.values.iter().skip(column).step_by(width);
    Curve::through_quantiles(&numbers.copied().collect::<Vec<_>>())
}
