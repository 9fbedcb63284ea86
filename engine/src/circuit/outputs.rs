//! What a GPU returns of a forward pass.

/// What a forward pass leaves behind on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outputs {
    /// Class scores.
    Scores,
    /// φ of every layer too.
    Activations,
    /// What flows to the leaves need, also of nodes with nothing observed below them.
    Flows,
}

/// The scores of a batch as a GPU returns them.
#[derive(Clone, Debug, Default)]
pub struct GpuScores {
    /// log P(x|y), (B, K).
    pub score: Vec<f64>,
    /// P(x|y) but for a constant, (B, K).
    pub psi: Vec<f32>,
    /// What underflow may have taken from it, at most, (B).
    pub underflow_bound: Vec<f32>,
    /// The part of each P(x|y) that underflow may have taken, at most, (B, K).
    pub relative_bound: Vec<f32>,
    /// Scale of each tree's top, (B, trees).
    pub factor: Vec<f32>,
}
