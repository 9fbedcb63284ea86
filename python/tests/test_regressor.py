"""The regressor against numerical integration, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sumout
from sumout import TMMDensity, TMMImputer, TMMRegressor

SMALL = {"steps": 150, "trees": 2, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.2, np.nan, X), y


@pytest.fixture(scope="module")
def fitted(diabetes):
    X, y = diabetes
    return TMMRegressor(**SMALL).fit(X[:300], y[:300])


def test_the_distribution_is_that_of_its_density(fitted, diabetes):
    """Mean, deviation and quantiles are integrals of exp(log_density)."""
    X = diabetes[0][300:303]
    grid = np.linspace(-400, 800, 3001)
    mean, std = fitted.predict(X, return_std=True)
    quantiles = fitted.predict_quantiles(X, [0.05, 0.5, 0.9])
    for row in range(3):
        density = np.exp(fitted.log_density(np.repeat(X[[row]], len(grid), axis=0), grid))
        share = density * (grid[1] - grid[0])
        assert share.sum() == pytest.approx(1, abs=1e-4)
        assert (share * grid).sum() == pytest.approx(mean[row], abs=0.1)
        assert np.sqrt((share * (grid - mean[row]) ** 2).sum()) == pytest.approx(std[row], abs=0.1)
        below = np.interp(quantiles[row], grid, share.cumsum() - share / 2)
        np.testing.assert_allclose(below, [0.05, 0.5, 0.9], atol=1e-3)


def test_samples_have_the_distribution(fitted, diabetes):
    X = diabetes[0][300:302]
    samples = fitted.sample_y(X, 20_000, random_state=1)
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(samples.mean(1), mean, atol=3)
    np.testing.assert_allclose(samples.std(1), std, rtol=0.03)
    again = fitted.sample_y(X, 20_000, random_state=1)
    assert (samples == again).all()
    assert (samples[1] != fitted.sample_y(X, 20_000, random_state=2)[1]).any()


def test_holes_are_filled_with_and_without_the_target(fitted, diabetes):
    X, y = diabetes[0][300:340], diabetes[1][300:340]
    filled, given = fitted.impute(X), fitted.impute(X, y=y)
    for one in filled, given, fitted.impute(X, how="sample", random_state=0):
        assert one.shape == X.shape and not np.isnan(one).any()
        np.testing.assert_array_equal(one[~np.isnan(X)], X[~np.isnan(X)])
    assert (filled != given).any(), "the target says something about X"
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.impute(X, y=y[:3])


def test_it_predicts(diabetes):
    X, y = diabetes
    score = cross_val_score(TMMRegressor(random_state=0), X, y, cv=3).mean()
    assert score > 0.3, score
    piped = make_pipeline(StandardScaler(), TMMRegressor(**SMALL)).fit(X, y)
    assert piped.score(X, y) > 0.2


def test_frames_with_categories(tmp_path):
    random = np.random.RandomState(0)
    kind = random.choice(["a", "b"], 300)
    frame = pd.DataFrame({"size": random.normal(size=300), "kind": kind})
    y = pd.Series(np.where(kind == "a", 10, -10) + frame["size"], name="price")
    model = TMMRegressor(**SMALL).fit(frame, y)
    asked = pd.DataFrame({"size": [0.0, np.nan], "kind": ["a", "b"]})
    mean = model.predict(asked)
    assert mean[0] > 5 and mean[1] < -5, mean
    model.save(tmp_path / "a.sumout")
    for again in (sumout.load(tmp_path / "a.sumout"), pickle.loads(pickle.dumps(model))):
        assert isinstance(again, TMMRegressor)
        assert (again.predict(asked) == mean).all()
        assert list(again.feature_names_in_) == ["size", "kind"]
        assert again.n_features_in_ == 2
        assert again.explain(0, 0, n=3, random_state=0).shape == (3, 2)


def test_targets_that_are_dates_are_refused(diabetes):
    days = pd.Series(pd.date_range("2024-01-01", periods=60))
    for y in (days, days - days[0], days.dt.date.astype(object)):
        with pytest.raises(ValueError, match="y: expected numbers, got dates; days since"):
            TMMRegressor(**SMALL).fit(diabetes[0][:60], y)
    y = (days - days.min()) / np.timedelta64(1, "D")
    assert TMMRegressor(steps=10).fit(diabetes[0][:60], y).n_features_in_ == 10


def test_a_missing_target_teaches_the_rest(diabetes):
    X, y = diabetes
    y = y.copy()
    y[::2] = np.nan
    model = TMMRegressor(**SMALL).fit(X, y)
    assert np.isfinite(model.predict(X[:5])).all()
    with pytest.raises(ValueError, match="NaN only"):
        TMMRegressor(**SMALL).fit(X, np.full(len(X), np.nan))


def test_mistakes_are_said(fitted, diabetes):
    X, _ = diabetes
    with pytest.raises(ValueError, match="quantiles: expected numbers between 0 and 1"):
        fitted.predict_quantiles(X, [0.5, 1.0])
    with pytest.raises(ValueError, match="image_shape: expected None"):
        TMMRegressor(image_shape=(2, 5)).fit(X, X[:, 0])


def test_marginals_of_missing_cells():
    random = np.random.RandomState(0)
    kind = random.choice(["a", "b", "c"], 300)
    number = np.select([kind == "a", kind == "b"], [0.0, 5.0], 10.0) + random.normal(size=300)
    frame = pd.DataFrame({"number": number, "kind": kind})
    density = TMMDensity(steps=100, trees=1, random_state=0).fit(frame)
    asked = pd.DataFrame({"number": [0.1, np.nan], "kind": [None, "c"]})
    cells = density.marginals(asked, [0.1, 0.5, 0.9])
    assert cells.mean[0, 0] == pytest.approx(0.1) and cells.variance[0, 0] == 0
    assert np.isnan(cells.mean[:, 1]).all() and np.isnan(cells.quantiles[:, :, 1]).all()
    low, median, high = cells.quantiles[:, 1, 0]
    assert low < median < high and cells.variance[1, 0] > 0
    assert cells.probabilities[1][0].argmax() == 0
    np.testing.assert_allclose(cells.probabilities[1].sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(cells.probabilities[1][1], [0, 0, 1])
    imputer = TMMImputer(how="median", steps=100, trees=1, random_state=0).fit(frame)
    filled = imputer.transform(asked)
    assert filled["number"][1] == pytest.approx(median, rel=1e-5)
    assert filled["kind"][0] == "a"


def test_the_median_has_the_least_absolute_error():
    random = np.random.RandomState(0)
    X = np.exp(random.normal(size=(400, 2)))  # skewed: mean and median differ
    X[:, 1] = X[:, 0] * np.exp(random.normal(size=400))
    holes = X[300:].copy()
    holes[:, 1] = np.nan
    density = TMMDensity(steps=200, trees=2, random_state=0).fit(X[:300])
    error = {
        how: np.abs(density.impute(holes, how)[:, 1] - X[300:, 1]).mean()
        for how in ("mean", "median")
    }
    assert error["median"] < error["mean"], error
