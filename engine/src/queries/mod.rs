//! What can be asked of a model (`docs/queries.md`): [`Predictor`] has a method for each question.
//!
//! Uses: `model`, `circuit`, `gpu` and all below them.

mod predictor;
mod likelihoods;
mod scores;
mod ensemble;
mod distinct_rows;
mod correlated;
mod beliefs;
mod bent_moments;
mod responsibilities;
mod impute;
mod mixtures;
mod mixture_parts;
mod quantiles;
mod most_likely;
mod sample;
mod fill;
mod explain;

pub use ensemble::{Ensemble, predict_together};
pub use explain::{Neuron, View};
pub use fill::How;
pub use impute::Imputed;
pub use mixtures::{Mixture, Mixtures, Normal};
pub use predictor::{Predictor, shifts};
pub use sample::Samples;
pub use scores::Scores;
