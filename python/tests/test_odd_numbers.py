"""Numbers that lie: what every estimator does with them. `docs/reliability.md` has the table."""

import warnings

import numpy as np
import pytest

from sumout import TMMClassifier, TMMDensity, TMMImputer, TMMRegressor

QUICK = {"steps": 10, "trees": 1, "random_state": 0}
ESTIMATORS = [TMMClassifier, TMMRegressor, TMMDensity, TMMImputer]
N = 40
X = np.column_stack([np.arange(N) * 7 % 11 / 2, np.arange(N) % 5]).astype(float)
y = np.arange(N) % 2


def with_column(values):
    odd = X.copy()
    odd[:, 1] = values
    return odd


REFUSED = {
    "infinity": with_column(np.where(y, np.inf, 1)),
    "minus infinity": with_column(np.where(y, -np.inf, 1)),
    "1e39": with_column(np.where(y, 1e39, 1)),
}
TAKEN = {
    "NaN": with_column(np.where(y, np.nan, 1)),
    "nothing": with_column(np.nan),
    "subnormal": with_column(np.where(y, 1e-40, 2e-40)),
    "smaller than any": with_column(np.where(y, 1e-60, 2e-60)),
    "1e38": with_column(np.where(y, 1e38, -2e38)),
    "one value": with_column(7),
    "one value 1e38": with_column(1e38),
    "2^53": with_column(np.where(y, 2**53, 2**53 + 1)),
    "dates as numbers": with_column(20260101 + np.arange(N) % 28),
    "all rows equal": np.ones((N, 2)),
}


def answers(model, rows):
    """All numbers that an estimator gives."""
    if isinstance(model, TMMImputer):
        return [model.transform(rows)]
    if isinstance(model, TMMRegressor):
        return [model.predict(rows)]
    found = [model.score_samples(rows), model.impute(rows)]
    if isinstance(model, TMMClassifier):
        probabilities = model.predict_proba(rows)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)
        found.append(probabilities)
    return found


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_taken(kind, name):
    odd = TAKEN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what float32 cannot hold, of constant columns
        model = kind(**QUICK).fit(odd, y.astype(float) if kind is TMMRegressor else y)
    holes = odd.copy()
    holes[::3, 1] = np.nan
    for found in answers(model, holes):
        if name == "nothing" and found.shape == X.shape:
            found = found[:, :1]  # a column that was never seen stays as it is
        assert np.isfinite(found).all()


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_refused(kind, name):
    target = y.astype(float) if kind is TMMRegressor else y
    with pytest.raises(ValueError, match="(?i)infinity|too large|finite"):
        kind(**QUICK).fit(REFUSED[name], target)
    model = kind(**QUICK).fit(X, target)
    with pytest.raises(ValueError, match="(?i)infinity|too large|finite"):
        answers(model, REFUSED[name])


def test_labels_that_lie():
    lonely = np.where(np.arange(N) < 3, np.arange(N), 9)
    assert list(TMMClassifier(**QUICK).fit(X, lonely).classes_) == [0, 1, 2, 9]
    every = TMMClassifier(**QUICK).fit(X, np.arange(N))
    assert every.predict_proba(X).shape == (N, N)
    many = TMMClassifier(steps=2, trees=1).fit(np.tile(X, (10, 1)), np.arange(10 * N))
    assert many.predict_proba(X[:2]).shape == (2, 10 * N)
    with pytest.raises(ValueError, match="label"):
        TMMClassifier(**QUICK).fit(X, np.full(N, np.nan))
    assert (TMMClassifier(**QUICK).fit(X, np.zeros(N)).predict_proba(X) == 1).all()
    unseen = TMMClassifier(**QUICK).fit(np.full((N, 2), np.nan), y)
    np.testing.assert_allclose(unseen.predict_proba(X[:1]), 0.5, atol=1e-4)
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError):
            TMMRegressor(**QUICK).fit(X, np.full(N, wrong))


def test_weights_that_lie():
    for kind in (TMMClassifier, TMMDensity):
        with pytest.raises(ValueError, match="weight"):
            kind(**QUICK).fit(X, y, sample_weight=np.zeros(N))
        for wrong in (-1, np.nan, np.inf, 1e308):
            with pytest.raises(ValueError, match="expected finite numbers from 0"):
                kind(**QUICK).fit(X, y, sample_weight=np.where(y, wrong, 1.0))
    some = TMMClassifier(**QUICK).fit(X, y, sample_weight=np.where(np.arange(N) < 20, 0.0, 1.0))
    assert np.isfinite(some.predict_proba(X)).all()


def test_wide_rows():
    wide = np.arange(8 * 500).reshape(8, 500) % 13.0
    model = TMMDensity(steps=2, trees=1, random_state=0).fit(wide)
    assert np.isfinite(model.score_samples(wide)).all()
