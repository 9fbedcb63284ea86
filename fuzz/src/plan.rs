//! Plans: text that says what is to be trained, tried on a small table and on small images.

use sumout_data::layout::{ImageShape, Layout, ReadOptions, Table};
use sumout_data::plan::Plan;
use sumout_data::source::Origin;
use sumout_data::table_source::{TableFormat, TableSource};

/// A table of two columns of numbers and one of words, in two classes.
fn table() -> Table {
    let text = "a,b,c,y\n1,2,u,0\n2,,v,1\n3,1,u,0\n,4,v,1\n";
    let origin = Origin::Memory {
        name: "table".into(),
        bytes: text.as_bytes().into(),
    };
    let options = ReadOptions {
        target: Some("y".into()),
        ..ReadOptions::default()
    };
    let rows = TableSource::new(origin, Some(TableFormat::Csv)).rows(&options);
    rows.and_then(|rows| rows.collect_table()).expect("a table")
}

/// Two images of 4×4 in two classes.
fn images() -> Table {
    let shape = ImageShape {
        height: 4,
        width: 4,
        channels: 1,
    };
    Table {
        layout: Layout::unnamed(16, Some(shape)),
        values: (0..32).map(|i| (i * 7 % 32) as f32).collect(),
        labels: Some(vec![0, 1]),
    }
}

/// A plan.
pub fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let plan = match Plan::parse(&text, "plan.toml") {
        Ok(plan) => plan,
        Err(error) => return assert!(error.is_user_error()),
    };
    for table in [table(), images()] {
        match plan.for_data(&table) {
            Ok(preset) => preset.structure.check().expect("a sound structure"),
            Err(error) => assert!(error.is_user_error(), "{error}"),
        }
    }
}

/// Plans of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "[image]\ncomponents = 3\npatch = [2, 2]\n[[image.levels]]\nwindow = [2, 2]\nchannels = 4\nsharing = \"own\"\n",
        "[[columns]]\ncomponents = 2\nchannels = [3, 4]\nwindow = 2\ngroups = [[\"a\", \"b\"], [\"c\"]]\n[[columns]]\n",
        "[sequence]\nchannels = 1\npatch = 2\ncomponents = 2\n[[sequence.levels]]\nwindow = 2\nchannels = 3\nsharing = { pattern = [1, 2] }\n",
        "[settings]\nsteps = 20\nbatch = 4\nrate = 0.01\nseed = 3\n",
        "preset = \"mnist-ht\"\n[settings]\nsteps = 5\n",
        "[image]\nframe = [8, 8]\ngrid_shift = [1, 0]\nkind = \"bernoulli\"\nleaf_sharing = \"shared\"\n",
        "preset = \"mnist-ht\"\n[image]\ncomponents = 2\n",
        "[settings]\nrate = nan\n",
        "[settings]\nrate = -1.0\n",
        "[sequence]\nchannels = 2\n",
        "[sequence]\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
