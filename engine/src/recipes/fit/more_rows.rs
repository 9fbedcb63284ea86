//! A model learns more rows.

use crate::device::Device;
use crate::error::Result;
use crate::model::Model;
use crate::recipes::fit::in_progress::Fitting;
use crate::recipes::fit::options::Fit;
use crate::recipes::presets::Preset;
use crate::recipes::tables;
use crate::training::data::Data;
use crate::training::leaf_init::LeafStart;
use serde::Deserialize;

impl Fit {
    /// Begins to teach a model more rows. Its leaves do not become wider than they are.
    pub fn go_on<'a>(self, model: Model, data: Data<'a>) -> Result<Fitting<'a>> {
        let data = data.bent(&model.scaling)?;
        data.check(&model.structure)?;
        if let Device::Cuda(ordinal) = self.device {
            model.weights.check_for_gpu(ordinal)?;
        }
        let mut settings = tables::settings(&model.structure.row_kinds(), &data.values);
        settings.leaves = narrowest(&model).unwrap_or(settings.leaves);
        let settings = settings.with(&self.changes)?;
        let chosen = Preset {
            structure: model.structure.clone(),
            scaling: model.scaling.clone(),
            settings,
        };
        Fitting::of_model(self.given(), chosen, model, data)
    }
}

/// How the leaves of a model began, the narrowest where there are several kinds.
fn narrowest(model: &Model) -> Option<LeafStart> {
    #[derive(Deserialize)]
    struct Noted {
        leaves: LeafStart,
    }
    let notes = &model.about.training;
    let trees = notes.get::<Noted>("settings").map(|noted| noted.leaves);
    let clusters = notes.get::<LeafStart>("clusters");
    let both = trees.into_iter().chain(clusters);
    both.min_by(|a, b| a.floor.total_cmp(&b.floor))
}
