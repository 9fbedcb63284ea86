"""Every user error raises an exception that says what was expected and what came."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import sumout
from sumout import Model, TMMClassifier, TMMDensity, TMMImputer, TMMRegressor, _engine

X = np.random.RandomState(0).normal(size=(30, 3))
y = np.arange(30) % 2
hole = np.nan


@pytest.fixture(scope="module")
def model():
    return TMMClassifier(steps=5, random_state=0).fit(X, y)


def fails(exception, words, run, *args, **more):
    with pytest.raises(exception) as caught:
        run(*args, **more)
    assert words in str(caught.value), str(caught.value)


def infinite(rows):
    rows = rows.copy()
    rows[1, 2] = np.inf
    return rows


@pytest.mark.parametrize("kind", [TMMClassifier, TMMDensity, TMMImputer])
def test_rows(kind, model):
    fails(ValueError, "infinity", kind().fit, infinite(X), y)
    fails(ValueError, "0 sample(s)", kind().fit, X[:0], y[:0])
    fails(ValueError, "0 sample(s)", kind().fit, pd.DataFrame(X)[:0], y[:0])
    text = [["a", "b"], ["c", "d"]]
    fails(ValueError, "column index 0: expected numbers: could not convert", kind().fit, text, y)
    fails(ValueError, "give text in a data frame", kind().fit, text, [0, 1])
    images, wrong = np.zeros((4, 3, 3)), kind(image_shape=(3, 2))
    fails(ValueError, "expected images (n, 3, 2), got (4, 3, 3)", wrong.fit, images, y[:4])
    fails(NotFittedError, "not fitted", kind().score_samples, X)


def test_a_way_to_fill_is_checked_before_training():
    fails(ValueError, "how: expected 'mean'", TMMImputer(how="mena").fit, X)


def test_queries(model):
    fails(
        ValueError,
        "row index 1, column index 2: expected a finite number or NaN",
        model.predict,
        infinite(X),
    )
    fails(ValueError, "3 features", model.predict, X[:, :2])
    fails(ValueError, "Expected 2D array", model.predict, X[0])
    fails(
        ValueError,
        "how: expected 'mean', 'median', 'mode' or 'sample', got 'middle'",
        model.impute,
        X,
        "middle",
    )
    fails(
        ValueError, "y: expected one of the classes [0, 1], got 7", model.impute, X, y=np.int64(7)
    )
    fails(ValueError, "y: expected one of the classes", model.sample, 3, y="x")
    fails(ValueError, "given: expected 1 row or 5, got 2", model.sample, 5, given=X[:2])
    fails(ValueError, "what is given: expected", model.log_conditional, X, X[:3])
    fails(ValueError, "as in the rows, or NaN", model.log_conditional, X, X + 1)
    fails(ValueError, "tree", model.explain, 0, 0, tree=9)
    fails(ValueError, "channel", model.explain, 0, 1000)
    fails(NotFittedError, "not fitted", TMMClassifier().sample)
    fails(NotFittedError, "not fitted", TMMClassifier().save, "nowhere")
    fails(NotFittedError, "not fitted", TMMClassifier().explain, 0, 0)


def test_labels():
    fit = TMMClassifier(steps=5).fit
    fails(ValueError, "requires y", fit, X, None)
    fails(ValueError, "infinity", fit, X, np.where(y, np.inf, 0))
    fails(ValueError, "expected at least one label", fit, X, np.full(30, hole))
    fails(ValueError, "Unknown label type", fit, X, X[:, 0])
    fails(ValueError, "inconsistent numbers of samples", fit, X, y[:5])
    part = TMMClassifier(steps=5).partial_fit(X, y, classes=[0, 1])
    fails(
        ValueError,
        "y, row index 0: expected one of the classes [0, 1], got 5",
        part.partial_fit,
        X,
        y + 5,
    )
    more = list(np.arange(3))
    words = "classes: expected [0, 1] as in the first call, got [0, 1, 2]"
    fails(ValueError, words, part.partial_fit, X, y, classes=more)


def test_weights():
    fit = TMMDensity(steps=5).fit
    fails(
        ValueError, "one number for each of 30 rows, got shape (2,)", fit, X, sample_weight=[1, 2]
    )
    fails(ValueError, "finite numbers from 0", fit, X, sample_weight=np.full(30, -1))
    fails(ValueError, "finite numbers from 0", fit, X, sample_weight=np.full(30, hole))
    fails(ValueError, "all weights zero", fit, X, sample_weight=np.zeros(30))
    nothing = np.where(np.arange(30) < 10, 1.0, hole)
    fails(
        ValueError,
        "expected a class with a weight",
        TMMClassifier(steps=5).fit,
        X,
        nothing,
        np.arange(30) >= 10,
    )
    fails(ValueError, "class_weight", TMMClassifier(steps=5, class_weight="even").fit, X, y)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"batch": 100_000}, "batch: expected from 1 to 65536, got 100000"),
        ({"rate": -1.0}, "rate: expected a positive number, got -1"),
        ({"generative": -1.0}, "generative: expected a number from 0, got -1"),
        ({"drop_inputs": 2.0}, "drop_inputs: expected from 0 to 1, got 2"),
        ({"n_jobs": 0}, "n_jobs: expected"),
        ({"n_jobs": 100_000}, "n_jobs: expected at most 1024 threads, got 100000"),
        ({"trees": 2**40}, "trees: expected at most 1000, got 1099511627776"),
        ({"device": "tpu"}, "device: expected cpu, cuda or cuda:1, got tpu"),
        ({"image_shape": (2, 2)}, "image_shape"),
        ({"image_shape": (3,)}, "image_shape: expected (height, width)"),
        ({"categorical_features": [7]}, "categorical_features: expected"),
        ({"categorical_features": ["a"]}, "categorical_features: expected"),
    ],
)
def test_parameters(settings, words):
    fails(ValueError, words, TMMClassifier(**{"steps": 5, **settings}).fit, X, y)


def test_a_gpu_computes_the_same_or_the_error_tells_why_not():
    def scores_on(device):
        return TMMDensity(device=device, steps=5, random_state=0).fit(X).score_samples(X)

    try:
        scores = scores_on("cuda")
    except RuntimeError as error:
        assert re.search(
            "device='cuda': this package was built without CUDA|device: no NVIDIA GPU here",
            str(error),
        )
    else:
        np.testing.assert_allclose(scores, scores_on("cpu"), rtol=1e-2)


@pytest.mark.parametrize("kind", [TMMClassifier, TMMDensity, TMMImputer, TMMRegressor])
def test_a_model_that_no_memory_holds(kind):
    words = "expected a model that fits into memory, got one of"
    huge = kind(components=200_000, channels=200_000, steps=5)
    fails(MemoryError, words, huge.fit, X, y)


@pytest.mark.parametrize("kind", [TMMClassifier, TMMDensity])
def test_a_row_that_no_memory_holds(kind):
    words = "expected a model that fits into memory, got one of"
    wide = np.random.default_rng(0).standard_normal((20, 800))
    huge = kind(components=1_000, channels=20_000, steps=5)
    fails(MemoryError, words, huge.fit, wide, np.arange(20) % 2)


def test_training_that_diverges():
    fails(FloatingPointError, "expected a finite loss", TMMDensity(steps=50, rate=1e30).fit, X)


def test_files(tmp_path):
    fails(FileNotFoundError, "nowhere.sumout", sumout.load, tmp_path / "nowhere.sumout")
    broken = tmp_path / "broken.sumout"
    broken.write_bytes(b"not a model")
    fails(ValueError, "broken.sumout: model file: ", sumout.load, broken)
    fails(
        FileNotFoundError,
        "nowhere",
        TMMDensity(steps=5).fit(X).save,
        tmp_path / "nowhere" / "model.sumout",
    )


def test_the_engine_checks_its_arrays(model):
    engine = model.model_
    rows = X.astype(np.float32)
    fails(
        ValueError,
        "rows: expected 3 columns, got 2",
        engine.posterior,
        np.ascontiguousarray(rows[:, :2]),
        1,
    )
    fails(
        ValueError,
        "rows: expected a C-contiguous array",
        engine.posterior,
        np.asfortranarray(rows),
        1,
    )
    fails(TypeError, "", engine.posterior, X, 1)
    fails(ValueError, "class: expected a number from 0 to 1", engine.impute_mean, rows, 5, 1)
    fails(ValueError, "model file", Model.from_bytes, b"")
    assert issubclass(_engine.Model, Model)


@pytest.mark.parametrize("name", ["steps", "batch", "components", "channels", "trees"])
@pytest.mark.parametrize("value", [-1, 0, 2.5, True, "many"])
def test_whole_numbers(name, value):
    fit = TMMClassifier(**{name: value}).fit
    fails(ValueError, f"{name}: expected a whole number from 1, got {value!r}", fit, X, y)
