//! Weights and the rule's memory, to the GPU and back.

use crate::error::Result;
use crate::gpu::enabled::layout::mixing_of;
use crate::layers::weights::Weights;
use crate::training::gpu::enabled::gpu_training::GpuTraining;
use crate::training::gpu::enabled::leaf_step::LeafStep;
use crate::training::memory::Moments;

impl GpuTraining {
    /// Puts the rule's memory on the GPU.
    pub fn set_memory<'a>(
        &self,
        weights: &Weights,
        moments: impl Fn(Option<(usize, usize)>) -> &'a Moments,
    ) -> Result<()> {
        let (places, s) = (&self.circuit.places, &self.circuit.structure);
        let at = |which, m, c, a| mixing_of(weights, which).place(m, c, a);
        let first = places.gather(s, |which, m, c, a| moments(which).first[at(which, m, c, a)]);
        let second = places.gather(s, |which, m, c, a| {
            moments(which).second[at(which, m, c, a)]
        });
        self.circuit.gpu.send(self.first, &first)?;
        self.circuit.gpu.send(self.second, &second)
    }

    /// Lets leaves learn. `moments` by tree, family, coordinate.
    pub fn learn_leaves(&mut self, weights: &Weights, moments: &[Vec<Vec<Moments>>]) -> Result<()> {
        let floor = self.settings.leaves.floor;
        for (t, tree) in weights.trees.iter().enumerate().take(moments.len()) {
            self.leaves.push(LeafStep::new(
                &mut self.circuit,
                t,
                &tree.families,
                &moments[t],
                floor,
            )?);
        }
        Ok(())
    }

    /// Brings leaves and their memory back.
    pub fn fetch_leaves(
        &self,
        weights: &mut Weights,
        moments: &mut [Vec<Vec<Moments>>],
    ) -> Result<()> {
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.fetch(
                &self.circuit,
                t,
                &mut weights.trees[t].families,
                &mut moments[t],
            )?;
        }
        Ok(())
    }

    /// W, first and second moments, through `each(tree and level, place in the panels, W, first, second)`.
    pub fn fetch(
        &self,
        weights: &Weights,
        mut each: impl FnMut(Option<(usize, usize)>, usize, [f32; 3]),
    ) -> Result<()> {
        let (circuit, gpu) = (&self.circuit, &self.circuit.gpu);
        let (w, first, second) = (
            gpu.fetch(circuit.weights)?,
            gpu.fetch(self.first)?,
            gpu.fetch(self.second)?,
        );
        let places = &circuit.places;
        places.for_each(&circuit.structure, |at, which, m, c, a| {
            let place = mixing_of(weights, which).place(m, c, a);
            each(which, place, [w[at], first[at], second[at]]);
        });
        Ok(())
    }
}
