//! Small models for the tests of this crate.

use sumout::Model;
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout_data::encode::Encoder;
use sumout_data::model_files::layout_of;

/// A model over age (a number), sex (f, m), coin (0 or 1) and a category without names.
pub fn pets() -> Model {
    let kinds = [
        Kind::Gaussian,
        Kind::Categorical(2),
        Kind::Bernoulli,
        Kind::Categorical(3),
    ];
    let groups: Vec<Vec<u32>> = (0..4).map(|column| vec![column]).collect();
    let structure = Structure::table(&kinds)
        .groups(groups)
        .window(2)
        .components(2)
        .channels([3])
        .classes(2)
        .build()
        .unwrap();
    let mut model = Model::random(structure, 1.0, 1);
    model.about.columns = ["age", "sex", "coin", "kind"].map(str::to_owned).to_vec();
    model.about.categories = vec![vec![], vec!["f".into(), "m".into()], vec![], vec![]];
    model.about.classes = vec!["no".into(), "yes".into()];
    model
}

/// What its columns take.
pub fn encoder() -> Encoder {
    encoder_of(&pets())
}

/// What the columns of a model take.
pub fn encoder_of(model: &Model) -> Encoder {
    Encoder::new(&layout_of(model)).with_kinds(&model.structure.row_kinds())
}

/// A model of images of 6×6 in a frame of 8×8.
pub fn image_model(seed: u64) -> Model {
    let spec = ImageSpec {
        frame: (8, 8),
        levels: vec![
            LevelSpec::square(2, 3, Sharing::Own),
            LevelSpec::square(2, 4, Sharing::Own),
        ],
        components: 2,
        ..ImageSpec::new(6, 6)
    };
    Model::random(spec.structure(2).unwrap(), 1.0, seed)
}
