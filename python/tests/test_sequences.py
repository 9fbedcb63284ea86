"""Rows as sequences: neighbours in time meet first, and all steps share their leaves."""

import numpy as np
import pandas as pd
import pytest

import sumout
from sumout import TMMClassifier, TMMDensity

QUICK = {"steps": 60, "random_state": 0}


def waves(rows=150, length=12):
    """Two classes of walks: smooth ones, and noise."""
    random = np.random.RandomState(0)
    y = random.randint(2, size=rows)
    walks = np.cumsum(random.normal(size=(rows, length)), axis=1)
    noise = 2 * random.normal(size=(rows, length))
    return np.where(y[:, None] == 0, walks, noise), y


def test_a_sequence_is_learned_and_kept_in_a_file(tmp_path):
    X, y = waves()
    model = TMMClassifier(sequence_length=12, trees=1, steps=400, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.model_.image_shape == (1, 12, 1)
    tree = model.model_.describe()
    assert "12" in tree
    model.save(tmp_path / "waves.sumout")
    loaded = sumout.load(tmp_path / "waves.sumout")
    assert loaded.sequence_length == 12 and loaded.image_shape is None
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_steps_of_several_numbers_may_be_an_axis():
    X, _ = waves()
    both = np.stack([X, 100 + 10 * X], axis=2)
    model = TMMDensity(sequence_length=12, **QUICK).fit(both)
    flat = both.reshape(len(both), -1)
    np.testing.assert_array_equal(model.score_samples(both), model.score_samples(flat))
    holes = np.where(np.random.RandomState(1).uniform(size=both.shape) < 0.3, np.nan, both)
    filled = model.impute(holes)
    assert filled.shape == both.shape and np.isfinite(filled).all()
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], both[seen])
    frame = pd.DataFrame(flat, columns=[f"t{j}" for j in range(24)])
    again = TMMDensity(sequence_length=12, **QUICK).fit(frame)
    np.testing.assert_array_equal(again.score_samples(frame), model.score_samples(flat))


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"sequence_length": 7}, "sequence_length: expected a multiple of 7 columns, got 12"),
        ({"sequence_length": 0}, "sequence_length: expected a whole number from 1"),
        ({"sequence_length": 12, "image_shape": (3, 4)}, "expected None where image_shape"),
        ({"sequence_length": 12, "categorical_features": [1]}, "columns of numbers, got categ"),
    ],
)
def test_nonsense_is_named(parameters, message):
    X, _ = waves(rows=20)
    X[:, 1] = np.arange(20) % 3
    with pytest.raises(ValueError, match=message):
        TMMDensity(**parameters, **QUICK).fit(X)
