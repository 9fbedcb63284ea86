//! Model files: round trips to the same bytes, and bytes that are damaged or hostile.

mod largest_allocation;
mod random_models;

use largest_allocation::largest_allocation;
use proptest::prelude::*;
use random_models::Draw;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sumout::internals::{
    Activations, Batch, Keep, Mixing, Parts, Prepared, UnderflowFallback, checkpoint_from_bytes,
    checkpoint_to_bytes, fill,
};
use sumout::model::{Notes, Scaling};
use sumout::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use sumout::{Error, Model};

/// Two trees over a number, a bit and one of three categories.
fn small() -> Model {
    let kinds = [Kind::Gaussian, Kind::Bernoulli, Kind::Categorical(3)];
    let orders = [vec![vec![0, 1], vec![2]], vec![vec![2], vec![1], vec![0]]];
    let structure = Structure::table(&kinds)
        .trees(orders)
        .window(2)
        .components(2)
        .channels([3, 2])
        .classes(2)
        .build()
        .unwrap();
    let mut model = Model::random(structure, 1.0, 3);
    model.weights = random_models::weights(&model.structure, 1.0, &mut Draw::new(5));
    model.set_prior(&[0.3, 0.7]).unwrap();
    model.scaling = Scaling {
        offset: vec![0.1, 0.0, 0.0],
        scale: vec![2.5, 1.0, 1.0],
        ..Scaling::default()
    };
    model.about.classes = vec!["no".into(), "yes ✓".into()];
    model.about.columns = vec!["height".into(), "smokes".into(), "town".into()];
    model.about.categories = vec![vec![], vec![], vec!["A".into(), "B".into(), "C".into()]];
    model.about.training = notes(json!({"seed": u64::MAX, "rate": 0.03, "steps": [1, 2]}));
    model
}

/// Notes of any shape.
fn notes(text: Value) -> Notes {
    serde_json::from_value(text).unwrap()
}

fn checkpoint() -> Parts {
    Parts {
        model: small(),
        state: json!({"step": 12, "rule": "adam"}),
        tensors: BTreeMap::from([
            ("m.0".into(), vec![1.0, -0.0, f32::NAN]),
            ("state.v".into(), vec![]),
        ]),
        doubles: BTreeMap::from([("loss".into(), vec![0.1 + 0.2, f64::MIN_POSITIVE])]),
    }
}

/// The bytes of a file as they lie: table of contents and data.
fn split(bytes: &[u8]) -> (Value, Vec<u8>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (
        serde_json::from_slice(&bytes[8..8 + length]).unwrap(),
        bytes[8 + length..].to_vec(),
    )
}

fn join(header: &str, data: &[u8]) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        data,
    ]
    .concat()
}

/// The small file with another table of contents.
fn with_header(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let (mut header, data) = split(&small().to_bytes().unwrap());
    change(&mut header);
    join(&header.to_string(), &data)
}

/// The small file with another text in its metadata.
fn with_raw_text(change: impl FnOnce(String) -> String) -> Vec<u8> {
    with_header(|header| {
        let text = header["__metadata__"]["sumout"].as_str().unwrap();
        let (_, rest) = text.split_once(',').unwrap(); // without the checksum
        header["__metadata__"]["sumout"] = change(format!("{{{rest}")).into();
    })
}

fn with_text(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    with_raw_text(|text| {
        let mut text = serde_json::from_str(&text).unwrap();
        change(&mut text);
        text.to_string()
    })
}

/// The small file with another blueprint.
fn with_structure(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    with_text(|text| change(&mut text["structure"]))
}

/// The small file with other bytes somewhere in a tensor.
fn with_number<const N: usize>(tensor: &str, index: usize, number: [u8; N]) -> Vec<u8> {
    let (header, mut data) = split(&with_raw_text(|text| text));
    let start = header[tensor]["data_offsets"][0].as_u64().unwrap() as usize + index * N;
    data[start..start + N].copy_from_slice(&number);
    join(&header.to_string(), &data)
}

/// Opens bytes from anywhere: no panic, memory in proportion, and a model that works if there is one.
fn open(bytes: &[u8]) -> Result<Model, Error> {
    let (result, largest) = largest_allocation(|| Model::from_bytes(bytes));
    assert!(
        largest <= 32 * bytes.len() + 4096,
        "an allocation of {largest} bytes for a file of {}",
        bytes.len()
    );
    if let Ok(model) = &result {
        model.check().unwrap();
        let row: Vec<f32> = (0..model.structure.width())
            .map(|i| if i % 2 == 0 { 0.0 } else { f32::NAN })
            .collect();
        let (mut batch, mut activations) = (Batch::default(), Activations::new());
        fill(model, &row, &mut batch);
        let prepared = Prepared::new(&model.weights);
        activations.forward(&model.structure, &prepared, &batch, &[], Keep::Scores);
        activations.recheck_scores(
            &model.structure,
            &model.weights,
            &UnderflowFallback::default(),
            &batch,
        );
        assert!(
            activations
                .log_likelihood()
                .iter()
                .all(|score| !score.is_nan())
        );
    }
    result
}

#[track_caller]
fn refused(bytes: &[u8], because: &str) {
    let error = open(bytes).expect_err("opened what is wrong");
    assert!(
        matches!(
            error,
            Error::ModelFile(_) | Error::Version { .. } | Error::Structure(_)
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains(because), "{error}");
}

#[track_caller]
fn opens(bytes: &[u8]) -> Model {
    open(bytes).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(seed: u64) {
        let draw = &mut Draw::new(seed);
        let structure = random_models::structure(draw);
        let weights = random_models::weights(&structure, 3.0, draw);
        let mut model = Model { weights, ..Model::random(structure, 1.0, 0) };
        let prior: Vec<f64> = model.log_prior.iter().map(|_| draw.0.uniform() + 1e-9).collect();
        model.set_prior(&prior).unwrap();
        let bytes = model.to_bytes().unwrap();
        let again = open(&bytes).unwrap();
        prop_assert_eq!(&again, &model);
        prop_assert_eq!(again.to_bytes().unwrap(), bytes);
    }

    /// What a fuzzer does first: bytes set, stretches removed, doubled, or copied elsewhere.
    #[test]
    fn random_damage(edits in prop::collection::vec((0..5usize, any::<u64>(), any::<u64>(), any::<u8>()), 1..6)) {
        let mut bytes = checkpoint_to_bytes(&checkpoint()).unwrap();
        for (kind, from, to, byte) in edits {
            let (from, to) = (from as usize % bytes.len(), to as usize % bytes.len());
            let stretch = bytes[from.min(to)..from.max(to).min(from.min(to) + 64)].to_vec();
            match kind {
                0 => bytes[from] = byte,
                1 => drop(bytes.splice(to..to, stretch)),
                2 => drop(bytes.drain(from.min(to)..from.max(to).min(from.min(to) + 64))),
                3 => bytes[to..].iter_mut().zip(stretch).for_each(|(to, from)| *to = from),
                _ => bytes[from % 8] = byte,
            }
            prop_assume!(!bytes.is_empty());
        }
        let _ = open(&bytes);
        let _ = checkpoint_from_bytes(&bytes);
    }
}

#[test]
fn everything_comes_back_to_the_bit() {
    let model = small();
    let bytes = model.to_bytes().unwrap();
    let again = opens(&bytes);
    assert_eq!(again, model);
    assert_eq!(again.log_prior[0].to_bits(), model.log_prior[0].to_bits());
    assert_eq!(again.to_bytes().unwrap(), bytes);
}

/// Weights of 16 bits: all within one part in 2¹¹ of what they were, where they are not tiny; the rest to the bit.
#[test]
fn a_small_file_has_nearly_the_same_weights() {
    let mut model = small();
    let tops = model.structure.root_channels();
    model.weights.classes = Mixing::from_logits(1, 2, tops, |_, c, a| {
        [[900.5, 0.0, 900.0], [f32::NEG_INFINITY, -3.5, 1.0]][c][a % 3]
    });
    let bytes = model.to_small_bytes().unwrap();
    assert!(bytes.len() < model.to_bytes().unwrap().len());
    let again = opens(&bytes);
    assert_eq!(
        again.to_small_bytes().unwrap(),
        bytes,
        "a second time changes nothing"
    );
    let levels = |model: &Model| -> Vec<Mixing> {
        let trees = model.weights.trees.iter();
        let levels = trees.flat_map(|tree| tree.levels.iter());
        levels.chain([&model.weights.classes]).cloned().collect()
    };
    for (ours, theirs) in levels(&again).iter().zip(levels(&model)) {
        for (matrix, c) in (0..ours.matrices).flat_map(|m| (0..ours.rows).map(move |c| (m, c))) {
            let rows = ours
                .log_row(matrix, c)
                .into_iter()
                .zip(theirs.log_row(matrix, c));
            for (a, b) in rows {
                let allowed = 1e-3 * b.abs().max(1.0);
                assert!(a == b || (a - b).abs() < allowed, "{matrix} {c}: {a} {b}");
            }
        }
    }
    let mut rest = again;
    rest.weights.classes = model.weights.classes.clone();
    let trees = rest.weights.trees.iter_mut().zip(&model.weights.trees);
    trees.for_each(|(ours, theirs)| ours.levels = theirs.levels.clone());
    assert_eq!(rest, model);
}

/// Only mixing weights may be small: a prior of 16 bits is refused.
#[test]
fn halves_elsewhere_are_refused() {
    let bytes = with_header(|h| {
        h["scaling.scale"]["dtype"] = json!("F16");
        h["scaling.scale"]["shape"] = json!([6]);
    });
    refused(&bytes, "tensor 'scaling.scale': expected F32, got F16");
}

#[test]
fn identity_classes_and_frames_come_back() {
    let spec = ImageSpec {
        frame: (6, 5),
        levels: vec![
            LevelSpec::square(2, 4, Sharing::Shared),
            LevelSpec::all(3, Sharing::Own),
        ],
        channels: 2,
        components: 2,
        ..ImageSpec::new(4, 4)
    };
    let structure = spec.structure(3).unwrap().with_identity_classes().unwrap();
    let model = Model::random(structure, 1.0, 1);
    let bytes = model.to_bytes().unwrap();
    assert_eq!(opens(&bytes), model);
    let mut mixed = model;
    mixed.weights.classes = Mixing::new(1, 3, 3);
    assert_eq!(
        mixed.to_bytes().unwrap_err().to_string(),
        "model file: classes.logits: expected the identity"
    );
}

#[test]
fn a_thousand_families_keep_the_header_small() {
    let spec = ImageSpec {
        leaf_sharing: Sharing::Own,
        levels: vec![
            LevelSpec::square(2, 4, Sharing::Shared),
            LevelSpec::all(3, Sharing::Own),
        ],
        patch: (1, 1),
        components: 4,
        ..ImageSpec::new(28, 28)
    };
    let model = Model::random(spec.structure(10).unwrap(), 1.0, 1);
    let bytes = model.to_bytes().unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(length < 100_000, "a header of {length} bytes");
    opens(&bytes);
}

#[test]
fn a_checkpoint_comes_back_and_opens_as_a_model() {
    let checkpoint = checkpoint();
    let bytes = checkpoint_to_bytes(&checkpoint).unwrap();
    let again = checkpoint_from_bytes(&bytes).unwrap();
    assert_eq!(checkpoint_to_bytes(&again).unwrap(), bytes);
    assert_eq!(
        (&again.model, &again.state, &again.doubles),
        (&checkpoint.model, &checkpoint.state, &checkpoint.doubles)
    );
    assert_eq!(again.tensors.keys().collect::<Vec<_>>(), ["m.0", "state.v"]);
    assert_eq!(
        again.tensors["m.0"]
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>(),
        [1.0, -0.0, f32::NAN].map(f32::to_bits)
    );
    assert_eq!(opens(&bytes), checkpoint.model);

    let null = Parts {
        state: Value::Null,
        ..checkpoint.clone()
    };
    assert_eq!(
        checkpoint_from_bytes(&checkpoint_to_bytes(&null).unwrap())
            .unwrap()
            .state,
        Value::Null
    );
    let error = checkpoint_from_bytes(&small().to_bytes().unwrap())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "model file: expected a training checkpoint, got a model without training state"
    );
    let twice = Parts {
        doubles: BTreeMap::from([("m.0".into(), vec![])]),
        ..checkpoint
    };
    let error = checkpoint_to_bytes(&twice).unwrap_err().to_string();
    assert_eq!(
        error,
        "model file: two tensors of the state are called 'm.0'"
    );
}

#[test]
fn every_truncation_is_refused() {
    let bytes = small().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(
            open(&bytes[..length]).is_err(),
            "the first {length} bytes opened"
        );
    }
    refused(&[bytes, vec![0]].concat(), "bytes of tensors, got");
}

#[test]
fn every_flipped_bit_is_refused() {
    let mut bytes = small().to_bytes().unwrap();
    for index in 0..bytes.len() {
        for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            bytes[index] ^= mask;
            assert!(
                open(&bytes).is_err(),
                "byte {index} of {}, mask {mask}",
                bytes.len()
            );
            bytes[index] ^= mask;
        }
    }
    let (header, data) = split(&bytes);
    let mut other = data.clone();
    *other.last_mut().unwrap() ^= 1;
    refused(
        &join(&header.to_string(), &other),
        "its checksum is another one: the file is damaged",
    );
}

#[test]
fn headers_that_lie() {
    refused(b"", "shorter than 8 bytes");
    refused(b"sumout", "shorter than 8 bytes");
    refused(&join("{}", b""), "no 'sumout' in the metadata");
    refused(
        &join("{\"__metadata__\":{\"format\":\"pt\"}}", b""),
        "not a model of Sumout",
    );
    refused(&join("[]", b""), "expected a map of tensors");
    refused(&join("{\"a\":", b""), "EOF while parsing");
    refused(
        &[&1u64.to_le_bytes(), &b"\xff"[..]].concat(),
        "header: expected value",
    );
    let bytes = small().to_bytes().unwrap();
    for length in [bytes.len() as u64 - 7, 1 << 40, u64::MAX] {
        let longer = [&length.to_le_bytes(), &bytes[8..]].concat();
        refused(
            &longer,
            &format!("a header of {length} bytes in a file of {}", bytes.len()),
        );
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    refused(&join(&deep, b""), "header: ");
    let deep = format!(
        "{{\"__metadata__\":{{\"sumout\":{}}}}}",
        "{\"a\":".repeat(100_000)
    );
    refused(
        &join(&deep, b""),
        "header: invalid type: map, expected a string",
    );
}

#[test]
fn tensors_that_do_not_lie_where_they_say() {
    let at = |start: Value, stop: Value| {
        with_header(|h| h["log_prior"]["data_offsets"] = json!([start, stop]))
    };
    refused(&at(json!(-16), json!(0)), "invalid value: integer `-16`");
    refused(&at(json!(0.5), json!(16)), "invalid type");
    refused(
        &at(json!(4), json!(20)),
        "tensor 'log_prior' of shape [2] cannot lie at bytes 4 to 20",
    );
    refused(&at(json!(16), json!(0)), "cannot lie at bytes 16 to 0");
    refused(
        &at(json!(0), json!(u64::MAX)),
        "cannot lie at bytes 0 to 18446744073709551615",
    );
    refused(&at(json!(0), json!(24)), "cannot lie");
    refused(
        &with_header(|h| h["log_prior"]["shape"] = json!([u64::MAX, 2])),
        "cannot lie",
    );
    refused(
        &with_header(|h| h["log_prior"]["shape"] = json!([(1u64 << 61) + 2])),
        "cannot lie",
    ); // · 8 wraps to 16
    refused(
        &with_header(|h| {
            h["scaling.scale"]["data_offsets"] = h["scaling.offset"]["data_offsets"].clone()
        }),
        "cannot lie",
    );
    refused(
        &with_header(|h| drop(h.as_object_mut().unwrap().remove("classes.logits"))),
        "cannot lie",
    );
    // offsets whose sum wraps around to the true length of the file
    let (mut header, data) = split(&small().to_bytes().unwrap());
    let mut start = data.len() as u64;
    for index in 0..8 {
        let stop = if index < 7 {
            start + (1 << 61) - 4
        } else {
            u64::MAX - 15
        };
        let shape = [(stop - start) / 4];
        header[format!("z{index}")] =
            json!({"dtype": "F32", "shape": shape, "data_offsets": [start, stop]});
        start = stop;
    }
    refused(
        &join(&header.to_string(), &data),
        "the file is cut off: tensor 'z0' ends at byte 2305843009213694308",
    );
}

#[test]
fn tensors_of_another_kind() {
    refused(
        &with_header(|h| h["log_prior"]["dtype"] = json!("I64")),
        "tensor 'log_prior': expected F16, F32 or F64, got I64",
    );
    refused(
        &with_header(|h| h["log_prior"]["dtype"] = json!("F99")),
        "unknown variant `F99`",
    );
    let pair = json!({"dtype": "F32", "shape": [4], "data_offsets": [0, 16]});
    refused(
        &with_header(|h| h["log_prior"] = pair),
        "tensor 'log_prior': expected F64, got F32",
    );
    let shape = |name: &str, shape: Value| with_header(|h| h[name]["shape"] = shape);
    refused(
        &shape("tree0.level1.logits", json!([2, 2, 3])),
        "tensor 'tree0.level1.logits': expected shape [2, 3, 2], got [2, 2, 3]",
    );
    refused(
        &shape("classes.logits", json!([10])),
        "tensor 'classes.logits': expected shape [2, 5], got [10]",
    );
    refused(
        &shape("tree1.leaves.mean", json!([2, 1])),
        "expected shape [1, 2], got [2, 1]",
    );
    let rename = |from: &str, to: &str| {
        with_header(|h| {
            let info = h.as_object_mut().unwrap().remove(from).unwrap();
            h[to] = info;
        })
    };
    refused(
        &rename("tree0.leaves.logits", "tree0.leaves.tables"),
        "tensor 'tree0.leaves.logits' is not there",
    );
    refused(
        &rename("log_prior", "prior"),
        "tensor 'log_prior' is not there",
    );
    let extra = |name: &str| {
        with_header(|h| h[name] = json!({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}))
    };
    refused(
        &extra("tree9.level1.logits"),
        "tensor 'tree9.level1.logits' has no place in this structure",
    );
    refused(&extra("state.step"), "tensor 'state.step' has no place"); // a plain model has no state
}

#[test]
fn names_that_come_twice() {
    let (header, data) = split(&small().to_bytes().unwrap());
    let entry = |name: &str| format!("{{\"{name}\":{},", header[name]);
    let twice = |name: &str| join(&header.to_string().replacen('{', &entry(name), 1), &data);
    refused(&twice("log_prior"), "'log_prior' is there twice");
    refused(&twice("__metadata__"), "'__metadata__' is there twice");
    let field = |field: &str| with_raw_text(|text| text.replacen('{', &format!("{{{field},"), 1));
    refused(&field("\"version\":1"), "duplicate field `version`");
    refused(&field("\"about\":{}"), "duplicate field `about`");
}

#[test]
fn texts_that_are_no_header() {
    refused(
        &with_raw_text(|_| "model".into()),
        "metadata: expected value",
    );
    refused(&with_raw_text(|_| "{}".into()), "missing field `version`");
    refused(
        &with_raw_text(|_| "{\"version\":1}".into()),
        "missing field `structure`",
    );
    refused(&with_text(|t| t["more"] = json!(1)), "unknown field `more`");
    refused(
        &with_text(|t| t["version"] = json!(-1)),
        "invalid value: integer `-1`",
    );
    assert_eq!(
        open(&with_raw_text(|_| "{\"version\":2,\"blueprint\":{}}".into())).unwrap_err(),
        Error::Version {
            expected: 1,
            got: 2
        }
    );
    refused(
        &with_text(|t| t["version"] = json!(0)),
        "expected format version 1, got 0",
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    refused(
        &with_raw_text(|text| text.replace("[1,2]", &deep)),
        "recursion limit",
    );
    let mut model = small();
    model.about.training = notes((0..200).fold(json!(1), |inner, _| json!([inner])));
    assert!(
        model
            .to_bytes()
            .unwrap_err()
            .to_string()
            .contains("recursion limit"),
        "what cannot be read is not written"
    );
}

#[test]
fn structures_that_are_no_tree() {
    let tree = |change: &dyn Fn(&mut Value)| with_structure(|s| change(&mut s["trees"][1]));
    refused(
        &tree(&|t| t["levels"][1]["children"] = json!([[0, 2]])),
        "tree 1: level 2: child 2 is not there or has two parents",
    );
    refused(
        &tree(&|t| t["levels"][1]["children"] = json!([[0, 0]])),
        "child 0 is not there or has two parents",
    );
    refused(
        &tree(&|t| t["levels"][0]["children"] = json!([[0, 1], [1, 2]])),
        "child 1 is not there or has two parents",
    );
    refused(
        &tree(&|t| t["levels"][1]["children"] = json!([[0]])),
        "level 2: every node needs a parent",
    );
    refused(
        &tree(&|t| t["levels"][1]["children"] = json!([[0, 1], []])),
        "level 2: every node needs a parent",
    );
    refused(
        &tree(&|t| t["levels"][1]["children"] = json!([[0], [1]])),
        "the last level must leave one node, it leaves 2",
    );
    refused(
        &tree(&|t| t["levels"][1]["weight_of"] = json!([0])),
        "level 2: every node needs a parent, a matrix",
    );
    refused(
        &tree(&|t| t["levels"][1]["weight_of"] = json!([0, u32::MAX])),
        "level 2: matrix 4294967295 for 2 nodes",
    );
    refused(
        &tree(&|t| t["levels"] = json!([])),
        "components, levels and channels must be at least 1",
    );
    refused(
        &tree(&|t| t["components"] = json!(0)),
        "components, levels and channels must be at least 1",
    );
    refused(
        &tree(&|t| t["positions"][0]["family"] = json!(3)),
        "a position names a family that is not there",
    );
    refused(
        &tree(&|t| t["positions"][0]["inputs"] = json!([0, 1])),
        "position 0 has 2 inputs, its family 1",
    );
    refused(
        &tree(&|t| t["positions"][0]["inputs"] = json!([3])),
        "position 0 names input 3",
    );
    refused(
        &tree(&|t| t["positions"][0]["inputs"] = json!([0])),
        "input 0 must be covered once, by a coordinate of its kind",
    );
    refused(
        &tree(&|t| t["positions"][0]["inputs"] = json!([u32::MAX])),
        "input 2 is not covered",
    );
    let empty =
        |t: &mut Value| (t["positions"][0]["inputs"], t["families"][0]) = (json!([]), json!([]));
    refused(&tree(&empty), "position 0 has no inputs");
    refused(
        &with_structure(|s| s["trees"] = json!([])),
        "at least one input, one tree and one class",
    );
    refused(
        &with_structure(|s| s["classes"] = json!(0)),
        "at least one input, one tree and one class",
    );
    refused(
        &with_structure(|s| s["class_rows"] = json!("identity")),
        "identity class rows need one tree",
    );
    refused(
        &with_structure(|s| s["class_rows"] = json!("none")),
        "unknown variant `none`",
    );
}

#[test]
fn sizes_that_no_file_holds() {
    let largest = sumout::structure::LARGEST;
    for size in [1_000_000_000_000_000_000u64, u64::MAX, largest as u64 + 1] {
        refused(
            &with_structure(|s| s["trees"][0]["components"] = json!(size)),
            "must be at most 16777216",
        );
        refused(
            &with_structure(|s| s["trees"][0]["levels"][0]["channels"] = json!(size)),
            "must be at most 16777216",
        );
        refused(
            &with_structure(|s| s["classes"] = json!(size)),
            "classes are too many",
        );
    }
    refused(
        &with_structure(|s| s["trees"][0]["components"] = json!(-2)),
        "invalid value",
    );
    refused(
        &with_structure(|s| s["trees"][0]["components"] = json!(largest)),
        "expected shape",
    );
    refused(
        &with_structure(|s| s["classes"] = json!(largest)),
        "expected shape",
    );
    let both = |s: &mut Value| {
        s["trees"][0]["components"] = json!(largest);
        s["trees"][0]["levels"][0]["channels"] = json!(largest);
    };
    refused(&with_structure(both), "more than 1099511627776 numbers");
    for (n, because) in [
        (0, "got 0"),
        (u32::MAX, "1 to 16777216 categories, got 4294967295"),
        (1 << 24, "expected shape"),
    ] {
        let kind = json!({"categorical": n});
        let categories = with_structure(|s| {
            (
                s["kinds"][2],
                s["trees"][0]["families"][1][0],
                s["trees"][1]["families"][0][0],
            ) = (kind.clone(), kind.clone(), kind);
        });
        refused(&categories, because);
    }
    let hidden = |s: &mut Value| s["trees"][0]["families"][2] = json!([{"categorical": 0}]); // no position uses it
    refused(
        &with_structure(|s| {
            s["trees"][0]["families"]
                .as_array_mut()
                .unwrap()
                .push(json!([]));
            hidden(s);
        }),
        "1 to 16777216 categories, got 0",
    );
    let frame = |height: u64, width: u64, frame: u64| {
        let frame = json!({"height": height, "width": width, "channels": 1, "frame_height": frame, "frame_width": 3});
        with_structure(|s| s["frame"] = frame)
    };
    refused(
        &frame(1, 3, u64::MAX),
        "the frame must hold the image and have 3 numbers",
    );
    refused(
        &frame(2, 3, 1),
        "the frame must hold the image and have 3 numbers",
    );
    refused(&frame(0, 3, 1), "the image has no pixels");
    opens(&frame(1, 3, 1));
}

#[test]
fn numbers_that_are_none() {
    let float =
        |tensor: &str, index: usize, number: f32| with_number(tensor, index, number.to_le_bytes());
    for number in [f32::NAN, f32::INFINITY] {
        refused(
            &float("tree0.level1.logits", 1, number),
            "tree0.level1.logits: row 0 of matrix 0 is no distribution",
        );
        refused(
            &float("tree0.level1.logits", 7, number),
            "row 0 of matrix 1 is no distribution",
        );
        refused(
            &float("classes.logits", 2, number),
            "classes.logits: row 0 of matrix 0 is no distribution",
        );
        refused(
            &float("tree0.leaves.logits", 3, number),
            "tree0.leaves, family 0: coordinate 1: component 1 is no distribution",
        );
        refused(
            &float("tree1.leaves.mean", 0, number),
            "tree1.leaves, family 2: coordinate 0: component 0 is no distribution",
        );
        refused(
            &float("tree1.leaves.log_sigma", 1, number),
            "coordinate 0: component 1 is no distribution",
        );
        refused(
            &float("scaling.offset", 0, number),
            "finite offsets and positive factors",
        );
    }
    refused(
        &float("tree1.leaves.log_sigma", 0, -80.5),
        "component 0 is no distribution",
    );
    refused(
        &float("scaling.scale", 0, 0.0),
        "scaling: expected finite offsets and positive factors, got 0",
    );
    refused(
        &with_number("log_prior", 0, f64::NAN.to_le_bytes()),
        "log_prior: expected 2 numbers that sum to 1",
    );
    refused(
        &with_number("log_prior", 0, 0f64.to_le_bytes()),
        "with a sum of 1.7",
    );

    let zero = opens(&float("tree0.level1.logits", 1, f32::NEG_INFINITY));
    assert_eq!(
        zero.weights.trees[0].levels[0].log_row(0, 0),
        [0.0, f64::NEG_INFINITY]
    );
    let (header, mut data) = split(&float("tree0.level1.logits", 1, f32::NEG_INFINITY));
    let start = header["tree0.level1.logits"]["data_offsets"][0]
        .as_u64()
        .unwrap() as usize;
    data[start..start + 4].copy_from_slice(&f32::NEG_INFINITY.to_le_bytes());
    refused(
        &join(&header.to_string(), &data),
        "row 0 of matrix 0 is no distribution",
    );
}

#[test]
fn names_that_do_not_fit() {
    refused(
        &with_text(|t| t["about"]["classes"] = json!(["a"])),
        "names of classes: expected 2 or none, got 1",
    );
    refused(
        &with_text(|t| t["about"]["columns"] = json!(["a"])),
        "names of columns: expected 3 or none, got 1",
    );
    refused(
        &with_text(|t| t["about"]["categories"] = json!([[], []])),
        "names of categories: expected 3 or none, got 2",
    );
    refused(
        &with_text(|t| t["about"]["categories"][2] = json!(["A"])),
        "column 2 is Categorical(3), got 1 names",
    );
    refused(
        &with_text(|t| t["about"]["categories"][0] = json!(["A"])),
        "column 0 is Gaussian, got 1 names",
    );
    assert_eq!(
        opens(&with_text(|t| t["about"] = json!({}))).class_name(1),
        "1"
    );
}

/// A model that could not be opened again is not written either.
#[test]
fn broken_models_are_not_written() {
    let broken = |change: &dyn Fn(&mut Model), because: &str| {
        let mut model = small();
        change(&mut model);
        let error = model.to_bytes().unwrap_err().to_string();
        assert!(error.contains(because), "{error}");
    };
    broken(
        &|m| drop(m.weights.trees.pop()),
        "expected weights of 2 trees, got 1",
    );
    broken(
        &|m| drop(m.weights.trees[0].levels.pop()),
        "tree0: expected 2 families and 1 levels",
    );
    broken(
        &|m| m.weights.trees[0].levels[0].logits.push(0.0),
        "tree0.level1.logits: expected shape [2, 3, 2]",
    );
    broken(
        &|m| m.weights.classes = Mixing::new(1, 2, 4),
        "classes.logits: expected shape [1, 2, 5]",
    );
    broken(
        &|m| drop(m.weights.trees[0].families[0].coordinates.pop()),
        "family 0: expected 2 components of 2 coordinates",
    );
    broken(
        &|m| m.weights.trees[0].families[0].coordinates.swap(0, 1),
        "coordinate 0: expected 2 components of Gaussian",
    );
    broken(
        &|m| m.log_prior.truncate(1),
        "log_prior: expected 2 numbers that sum to 1, got 1",
    );
    broken(
        &|m| m.scaling.offset = vec![0.0; 2],
        "scaling offsets: expected 1 or 3 numbers, got 2",
    );
}
