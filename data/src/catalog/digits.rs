//! The digits that come with this crate: 5,000 images of MNIST to train on and 1,000 to test with.
//! `digits/README.md` says how they were chosen.

/// The name under which they are opened.
pub const NAME: &str = "digits";

/// A gzipped IDX file inside the program.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// Its name in the repository.
    pub name: &'static str,
    /// All of it.
    pub bytes: &'static [u8],
}

const TRAIN: [Embedded; 2] = [
    Embedded {
        name: "train-images-idx3-ubyte.gz",
        bytes: include_bytes!("../../digits/train-images-idx3-ubyte.gz"),
    },
    Embedded {
        name: "train-labels-idx1-ubyte.gz",
        bytes: include_bytes!("../../digits/train-labels-idx1-ubyte.gz"),
    },
];

const TEST: [Embedded; 2] = [
    Embedded {
        name: "t10k-images-idx3-ubyte.gz",
        bytes: include_bytes!("../../digits/t10k-images-idx3-ubyte.gz"),
    },
    Embedded {
        name: "t10k-labels-idx1-ubyte.gz",
        bytes: include_bytes!("../../digits/t10k-labels-idx1-ubyte.gz"),
    },
];

/// Images and labels of one half.
pub fn files(test: bool) -> [Embedded; 2] {
    if test { TEST } else { TRAIN }
}
