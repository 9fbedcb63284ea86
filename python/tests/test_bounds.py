"""Columns with bounds, and of whole numbers."""

import numpy as np
import pandas as pd
import pytest

import sumout
from sumout import TMMDensity, TMMImputer, TMMRegressor

QUICK = {"steps": 40, "random_state": 0}


def rooms(rows=200):
    random = np.random.RandomState(0)
    size = random.normal(size=rows)
    frame = pd.DataFrame(
        {
            "share": np.clip(50 + 40 * size, 0, 100),
            "price": np.exp(3 + size + 0.3 * random.normal(size=rows)),
            "beds": np.floor(np.exp(0.5 * size)),
        }
    )
    return frame.mask(random.uniform(size=frame.shape) < 0.3)


def check(frame):
    frame = pd.DataFrame(np.asarray(frame), columns=["share", "price", "beds"])
    assert frame["share"].between(0, 100).all() and (frame["price"] >= 0).all()
    assert (frame["beds"] >= 0).all() and (frame["beds"] % 1 == 0).all()


@pytest.mark.parametrize("as_array", [False, True])
def test_what_comes_out_lies_inside(as_array, tmp_path):
    bounds = {"share": (0, 100), "price": (0, None), "beds": (0, None)}
    frame, whole = rooms(), ["beds"]
    if as_array:
        frame, bounds, whole = frame.to_numpy(), {0: (0, 100), 1: (0, None), 2: (0, None)}, [-1]
    model = TMMDensity(bounds=bounds, whole=whole, **QUICK).fit(frame)
    for how in ("mean", "median", "mode", "sample"):
        check(model.impute(frame, how=how))
    check(model.sample(500, random_state=0))
    model.save(tmp_path / "rooms.sumout")
    loaded = sumout.load(tmp_path / "rooms.sumout")
    np.testing.assert_array_equal(loaded.score_samples(frame), model.score_samples(frame))
    with pytest.raises(ValueError, match="column index 1: expected numbers from 0 or NaN"):
        row = np.array([[50.0, -1.0, 1.0]])
        model.score_samples(row if as_array else pd.DataFrame(row, columns=frame.columns))


def test_a_regressor_counts_the_columns_of_its_rows():
    frame = rooms().dropna()
    rows, price = frame[["share", "beds"]], frame["price"]
    for X, y, target, whole in [
        (rows, price, "price", ["beds"]),
        (rows.to_numpy(), price.to_numpy(), "y", np.array([False, True])),
        (rows.to_numpy(), price.to_numpy(), "y", [-1]),
    ]:
        bounds = {target: (0, None)}
        model = TMMRegressor(bounds=bounds, whole=whole, **QUICK).fit(X, y)
        assert (model.predict_quantiles(X, [0.001]) >= 0).all()
        holed = np.array([[50.0, np.nan]])
        holed = pd.DataFrame(holed, columns=X.columns) if X is rows else holed
        beds = np.asarray(model.impute(holed, how="median"))[0, 1]
        assert beds % 1 == 0
    with pytest.raises(ValueError, match="bounds: expected names or numbers of columns"):
        TMMRegressor(bounds={2: (0, None)}, **QUICK).fit(rows, price)


def test_sequences_have_no_bounds():
    waves = np.random.RandomState(0).normal(size=(60, 12))
    with pytest.raises(ValueError, match="bounds and whole numbers: expected the columns of a tab"):
        TMMDensity(sequence_length=12, whole=[3], **QUICK).fit(waves)
    with pytest.raises(ValueError, match="sequence_length: expected None, got 12"):
        TMMRegressor(sequence_length=12, **QUICK).fit(waves, waves[:, 0])


def test_a_density_of_positive_numbers_is_one():
    prices = np.exp(np.random.RandomState(1).normal(3, 0.5, size=(300, 1)))
    model = TMMDensity(bounds={0: (0, None)}, **QUICK).fit(prices)
    grid = np.linspace(0, 400, 40_001)
    density = np.exp(model.score_samples(grid[:, None]))
    assert abs(np.trapezoid(density, grid) - 1) < 0.01
    free = TMMDensity(**QUICK).fit(prices)
    assert model.score(prices) > free.score(prices) - 0.1
    mean = TMMImputer(bounds={0: (0, None)}, **QUICK).fit(prices).transform([[np.nan]])[0, 0]
    assert abs(mean - prices.mean()) < 0.1 * prices.mean()


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"bounds": {"share": (0, 100, 7)}}, "bounds: expected \\(low, high\\) for column 'share'"),
        ({"bounds": {"share": (5, 1)}}, "bounds: expected \\(low, high\\) for column 'share'"),
        ({"bounds": {"shore": (0, 1)}}, "bounds: expected names or numbers of columns"),
        ({"whole": ["town"]}, "whole: expected names or numbers of columns that hold numbers"),
        ({"bounds": {"share": (10, None)}}, "column index 0: expected numbers from 10 or NaN"),
    ],
)
def test_nonsense_is_named(parameters, message):
    frame = rooms().assign(town="Athens")
    with pytest.raises(ValueError, match=message):
        TMMDensity(**parameters, **QUICK).fit(frame)
