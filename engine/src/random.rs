//! Random numbers by counting: Philox 4×32-10 (Salmon, Moraes, Dror, Shaw 2011).
//!
//! A draw is a function of (seed, purpose, step, item, index) and of nothing else, so any thread or device can
//! make any draw in any order, and a training run resumes at a step without replaying the ones before it.
//!
//! ```
//! use sumout::random::{Purpose, Stream};
//! let mut a = Stream::new(7, Purpose::Sampling, 0, 3);
//! let mut b = Stream::new(7, Purpose::Sampling, 0, 3);
//! assert_eq!(a.uniform(), b.uniform());
//! ```

/// What a stream of draws is for; two purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Starting weights.
    Weights = 1,
    /// The order of the training set.
    Shuffle = 2,
    /// Inputs summed out in training.
    Inputs = 3,
    /// Nodes summed out in training.
    Nodes = 4,
    /// Shifts, rotations and scales of training images.
    Augment = 5,
    /// Leaf start: patches drawn, k-means++.
    Leaves = 6,
    /// Samples from the model.
    Sampling = 7,
    /// Test masks.
    Masks = 8,
}

/// One block: four numbers of 32 bits from a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let left = u64::from(counter[0]) * 0xD251_1F53;
        let right = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (right >> 32) as u32 ^ counter[1] ^ key[0],
            right as u32,
            (left >> 32) as u32 ^ counter[3] ^ key[1],
            left as u32,
        ];
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    counter
}

/// The draws of one (seed, purpose, step, item).
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Stream {
    /// Starts at the first draw. `step` and `item` are free to mean what the purpose needs.
    pub fn new(seed: u64, purpose: Purpose, step: u32, item: u32) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        Self {
            key,
            counter: [0, item, step, purpose as u32],
            block: [0; 4],
            used: 4,
        }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// Uniform on [0, 1) with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let bits = (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32());
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on 0..n without bias (rejection); `n` must be positive.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let bits = (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32());
            if bits < limit {
                return (bits % n) as usize;
            }
        }
    }

    /// True with probability p, from one draw of 32 bits.
    pub fn chance(&mut self, p: f64) -> bool {
        f64::from(self.next_u32()) < p * 4_294_967_296.0
    }

    /// Standard normal (Box–Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// An index drawn in proportion to weights that are not negative; the last positive one if rounding runs past the end.
    pub fn pick(&mut self, weights: impl Iterator<Item = f64> + Clone) -> usize {
        let total: f64 = weights.clone().sum();
        let mut left = self.uniform() * total;
        let mut last = 0;
        for (index, weight) in weights.enumerate() {
            if weight > 0.0 {
                last = index;
                if left < weight {
                    return index;
                }
                left -= weight;
            }
        }
        last
    }

    /// A permutation of 0..n (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// A seed of its own for every stretch of rows.
pub fn seed_at(seed: u64, first: usize) -> u64 {
    seed.wrapping_add((first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) // 2⁶⁴ over the golden ratio: spreads apart
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that Random123 publishes with the generator (`kat_vectors`, philox4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = philox(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn moments() {
        let mut stream = Stream::new(1, Purpose::Sampling, 0, 0);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n as f64;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
        let picks = (0..n)
            .filter(|_| stream.pick([0.0, 1.0, 3.0].into_iter()) == 2)
            .count();
        assert!((picks as f64 / n as f64 - 0.75).abs() < 0.01, "{picks}");
    }

    #[test]
    fn permutation_holds_everything_once() {
        let mut order = Stream::new(3, Purpose::Shuffle, 0, 0).permutation(1000);
        assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &x)| i as u32 == x));
    }
}
