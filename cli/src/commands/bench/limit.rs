//! The limit: the best rate of large matrix products with the engine's own kernel.

use crate::commands::bench::report::Measured;
use crate::commands::bench::timing::Timing;
use rayon::prelude::*;
use sumout::internals::{Mixing, Simplex, arch};

/// Rows and channels out of the product.
const SIDE: usize = 2048;

/// The fastest large product: 2048 rows, 2048 channels out, and 256 to 2048 channels in. The
/// deepest is not the fastest on every machine, because the kernel keeps a panel of all channels in.
pub fn limit(timing: &Timing) -> Measured {
    let timing = Timing {
        steps: timing.steps.min(5),
        ..*timing
    };
    let mut best = Measured {
        seconds: f64::INFINITY,
        flops: 0.0,
    };
    for depth in [256, 512, 1024, SIDE] {
        let measured = measure_product(&timing, depth);
        if measured.flops / measured.seconds >= best.flops / best.seconds {
            best = measured;
        }
    }
    best
}

fn measure_product(timing: &Timing, depth: usize) -> Measured {
    const ROWS: usize = 256; // per task, so that a panel is used often before the next one comes
    let arch = arch();
    let simplex = Simplex::new(&Mixing::random(1, SIDE, depth, 1.0, (1, 0)));
    let (phi, mut psi) = (vec![0.5; SIDE * depth], vec![0.0; SIDE * SIDE]);
    let mut multiply = || {
        let inputs = phi.par_chunks(ROWS * depth);
        let tasks = psi.par_chunks_mut(ROWS * SIDE).zip(inputs);
        tasks.for_each(|(psi, phi)| simplex.forward(arch, 0, ROWS, phi, psi));
    };
    let measured = timing.best_of(|| {
        multiply();
        Ok(())
    });
    Measured {
        seconds: measured.unwrap_or(f64::INFINITY), // a product cannot fail
        flops: 2.0 * (SIDE * SIDE * depth) as f64,
    }
}
