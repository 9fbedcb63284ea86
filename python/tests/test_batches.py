"""Training batch by batch: partitions decide the model, not where they lie."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from table import QUICK, cut, table

from sumout import TMMClassifier as Plain
from sumout import _engine, load, partitions
from sumout.batches import TMMClassifier, TMMDensity, TMMImputer


def pairs(frame, labels):
    return zip(cut(frame), cut(labels), strict=True)


def test_batches_are_learned_from():
    frame, labels = table()
    model = TMMClassifier(**QUICK).fit(pairs(frame, labels))
    known = labels != None  # noqa: E711
    right = (model.predict(frame) == labels)[known].mean()
    assert right > 0.93
    assert model.classes_.tolist() == ["no", "yes"]
    assert model._columns.categories[2].tolist() == ["Aalen", "Bonn", "Celle"]
    share = (labels[known] == "yes").mean()
    assert np.exp(model.model_.log_prior)[1] == pytest.approx(share, abs=1e-6)
    assert model.impute(frame).isna().sum().sum() == 0


def test_all_rows_teach_more_than_the_sample():
    frame, labels = table(6000)
    test, truth = table(2000, seed=1)
    quick = QUICK | {"sample_rows": 100, "rounds": 40}
    batched = TMMDensity(**quick).fit(cut(frame, 1000))
    sample = TMMDensity(**quick | {"rounds": 0, "em_passes": 0}).fit(cut(frame, 1000))
    gain = batched.score_samples(test).mean() - sample.score_samples(test).mean()
    assert gain > 0.1, gain


def test_a_dataset_of_files_gives_the_same_model_as_its_batches(tmp_path):
    frame, labels = table()
    frame["label"] = labels
    for number, part in enumerate(cut(frame)):
        pa.parquet.write_table(pa.Table.from_pandas(part), tmp_path / f"{number}.parquet")
    dataset = pa.dataset.dataset(tmp_path)
    model = TMMClassifier(**QUICK).fit(dataset, y="label")
    again = TMMClassifier(**QUICK).fit(pairs(frame.drop(columns="label"), labels))
    assert model.model_.to_bytes() == again.model_.to_bytes()
    model.save(tmp_path / "m.sumout")
    assert isinstance(load(tmp_path / "m.sumout"), Plain)


@pytest.mark.parametrize("word, missing", [("None", None), ("nan", np.nan)])
def test_words_for_nothing_are_classes(word, missing):
    frame, labels = table()
    labels = np.where(labels == "no", word, labels)
    model = TMMClassifier(missing_label=missing, **QUICK).fit(pairs(frame, labels))
    assert model.classes_.tolist() == sorted([word, "yes"])


def test_a_missing_label_is_compared_as_in_memory():
    frame, labels = table()
    numbers = (labels == "yes").astype(int)
    model = TMMClassifier(missing_label="1", **QUICK).fit(pairs(frame, numbers))
    assert model.classes_.tolist() == [0, 1]
    model = TMMClassifier(missing_label=1, **QUICK).fit(pairs(frame, numbers))
    assert model.classes_.tolist() == [0]


@pytest.mark.parametrize("kind", [TMMDensity, TMMImputer])
def test_batches_one_by_one(kind):
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = kind(steps=20, random_state=0)
    for part in cut(X, 100):
        model.partial_fit(part)
    assert np.isfinite(model.score_samples(X)).all()


def test_numbers_alone_and_an_imputer():
    X = np.random.default_rng(0).normal(size=(900, 3))
    X[::7, 1] = np.nan
    model = TMMImputer(**QUICK).fit(iter(cut(X)))
    assert np.isfinite(model.transform(X)).all()
    other = TMMImputer(**QUICK).fit(cut(X, 450))
    assert other.model_.to_bytes() != model.model_.to_bytes()  # other partitions, other sums


def test_a_density_ignores_labels_and_a_second_fit_forgets_the_first():
    frame, labels = table()
    model = TMMDensity(**QUICK).fit(pairs(frame, labels))
    assert model.model_.classes == 1 and list(model.feature_names_in_) == list(frame)
    model.fit(cut(np.random.default_rng(0).normal(size=(600, 2))))
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 2


def test_a_part_of_the_rows_per_round_and_class_weights():
    frame, labels = table()
    quick = QUICK | {"round_rows": 100, "class_weight": "balanced"}
    model = TMMClassifier(**quick).fit(pairs(frame, labels))
    assert np.exp(model.model_.log_prior) == pytest.approx([0.5, 0.5], abs=1e-6)


def test_what_is_wrong_is_said_where_it_is():
    frame, labels = table()

    def message(parts, kind=ValueError, **parameters):
        with pytest.raises(kind) as error:
            TMMDensity(**QUICK | parameters).fit(parts)
        return str(error.value)

    parts = cut(frame)
    other = [*parts[:2], parts[2].rename(columns={"size": "length"}), parts[3]]
    assert message(other).startswith("partition 2: expected the columns of partition 0")
    text = [*parts[:3], parts[3].assign(noise="loud")]
    assert message(text).startswith("partition 3, column 'noise': expected what partition 0 has")
    infinite = [parts[0], parts[1].assign(size=np.inf), *parts[2:]]
    assert message(infinite).startswith(
        "partition 1: column 'size', row index 0: expected a finite"
    )
    assert "at least one row" in message([])
    assert "rounds: expected" in message(parts, rounds=-1)
    with pytest.raises(ValueError, match="partition 1: .*row 3|partition 1: y: expected 300"):
        TMMClassifier(**QUICK).fit([(parts[0], labels[:300]), (parts[1], labels[:200])])
    with pytest.raises(ValueError, match="partition 0: target: expected one of the columns"):
        TMMClassifier(**QUICK).fit(parts, y="nothing")
    with pytest.raises(ValueError, match="y: expected at least one label, got none"):
        TMMClassifier(**QUICK).fit(parts)
    model = TMMDensity(**QUICK)
    with pytest.raises(ValueError):
        model.fit(other)
    assert not hasattr(model, "model_") and not hasattr(model, "n_features_in_")


def test_sums_do_not_depend_on_their_order():
    X = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
    model = TMMDensity(**QUICK).fit(cut(X, 100)).model_
    rounds = _engine.Rounds(model, [100] * 6, [1.0], "{}")
    step, none = rounds.round(), np.empty(0, np.float32)
    labels = np.zeros(100, np.int64)
    parts = [
        partitions.contribution(step, n, partitions.Encoded(rows, labels, none), 1)
        for n, rows in enumerate(cut(X, 100))
    ]
    straight = partitions.added(parts)
    backwards = partitions.added([partitions.added(parts[3:][::-1]), *parts[:3][::-1]])
    assert straight == backwards
    with pytest.raises(ValueError, match="got none of partition 4"):
        rounds.apply(partitions.added(parts[:4] + parts[5:]), 1)
    with pytest.raises(ValueError, match="contribution: "):
        rounds.apply(straight[:-10], 1)
    rounds.apply(straight, 1)
    checkpoint = rounds.checkpoint()
    again = _engine.Rounds.resume(checkpoint)
    assert again.steps_done == 1 and again.round() == rounds.round()


def test_categories_of_one_partition_become_those_of_all():
    words = [["b", "c", "b"], ["c", None, "a"], [None, None, None]]
    frames = [pd.DataFrame({"x": [1.0, 2.0, 3.0], "w": pd.Series(w, dtype=object)}) for w in words]
    model = TMMDensity(**QUICK)
    parts = [partitions.read(model, n, frame) for n, frame in enumerate(frames)]
    before = parts[1].values.copy()
    partitions.merge(model, [partitions.summary(part) for part in parts])
    codes = [
        partitions.encoded(model, n, part, np.ones(1)).values[:, 1] for n, part in enumerate(parts)
    ]
    hole = np.nan
    np.testing.assert_array_equal(codes, [[1, 2, 1], [2, hole, 0], [hole, hole, hole]])
    np.testing.assert_array_equal(parts[1].values, before)  # may be asked for again


def test_sample_counts_are_in_proportion():
    assert partitions.sample_counts([10, 0, 30], 20) == [5, 0, 15]
    assert partitions.sample_counts([10, 0, 30], 100) == [10, 0, 30]
    assert sum(partitions.sample_counts([7] * 11, 25)) == 25


def test_a_machine_without_memory_for_the_sample():
    code = """
import resource
import numpy as np
from sumout.batches import TMMDensity
rows = np.random.default_rng(0).normal(size=(1000, 400)).astype(np.float32)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (200 << 20),) * 2)
try:
    TMMDensity(sample_rows=200_000).fit(rows for _ in range(200))
except MemoryError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        "sample_rows: expected memory on this machine for 200000 rows of 400 columns" in run.stdout
    )
