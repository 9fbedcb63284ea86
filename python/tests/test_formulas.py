"""The package agrees with the formulas (tests/formulas.py) to 1e-5."""

import numpy as np
import pytest
from formulas import log_likelihood, read
from scipy.special import log_softmax, logsumexp

from sumout import TMMClassifier, TMMDensity


def mixed_table(rows=120, seed=0):
    """Three numbers and a category, three classes, a quarter of the cells missing."""
    random = np.random.RandomState(seed)
    y = random.randint(3, size=rows)
    X = np.column_stack(
        [
            random.normal(y, 0.5),
            random.normal(size=rows) * 30 + 100,
            y - random.normal(size=rows),
            (y + random.randint(2, size=rows)) % 3,
        ]
    )
    X[random.uniform(size=X.shape) < 0.25] = np.nan
    X[0], X[1] = np.nan, [0.5, 90, 1.0, 2]
    return X, y


@pytest.fixture(scope="module", params=[1, 3])
def model(request):
    X, y = mixed_table()
    return TMMClassifier(
        steps=40, trees=request.param, categorical_features=[3], random_state=0
    ).fit(X, y), X


def expected(model, X):
    data = model.model_.to_bytes()
    return np.array([log_likelihood(data, row) for row in X])


def test_log_likelihood_posterior_and_marginal(model):
    model, X = model
    logs = expected(model, X)
    joint = logs + read(model.model_.to_bytes())[1]["log_prior"]
    np.testing.assert_allclose(model.log_likelihood(X), logs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        model.score_samples(X), logsumexp(joint, axis=1), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        model.predict_log_proba(X), log_softmax(joint, axis=1), rtol=1e-5, atol=1e-5
    )
    assert (model.predict(X) == joint.argmax(axis=1)).all()


def test_log_conditional(model):
    model, X = model
    given = X.copy()
    given[:, :2] = np.nan
    prior = read(model.model_.to_bytes())[1]["log_prior"]
    whole, part = (logsumexp(expected(model, rows) + prior, axis=1) for rows in (X, given))
    np.testing.assert_allclose(model.log_conditional(X, given), whole - part, rtol=1e-5, atol=2e-5)


def test_mean_and_probable_category_by_integration(model):
    """E[x_m | x_o] as an integral over the missing number, P(category | x_o) as a ratio."""
    model, _ = model
    structure, tensors = read(model.model_.to_bytes())
    prior = tensors["log_prior"]
    row = np.array([0.5, 90.0, np.nan, np.nan])
    knots = np.split(tensors["curves.x"], np.cumsum(structure["knots"]))[2]
    outside = np.linspace(-9, knots[0], 200), np.linspace(knots[-1], 11, 200)
    ends = np.concatenate([outside[0], knots[1:-1], outside[1]])
    widths = np.repeat(np.diff(ends) / 8, 8)  # the density jumps at the knots of a curve
    grid = np.repeat(ends[:-1], 8) + widths * np.tile(np.arange(8) + 0.5, len(ends) - 1)
    rows = np.tile(row, (len(grid), 1))
    rows[:, 2] = grid
    density = np.exp(logsumexp(expected(model, rows) + prior, axis=1)) * widths
    filled = model.impute(row[None])
    assert abs(filled[0, 2] - (grid * density).sum() / density.sum()) < 1e-4
    choices = np.tile(row, (3, 1))
    choices[:, 3] = range(3)
    assert filled[0, 3] == logsumexp(expected(model, choices) + prior, axis=1).argmax()
    assert (filled[0, :2] == row[:2]).all()


def test_density(model):
    _, X = model
    density = TMMDensity(steps=30, categorical_features=[3], random_state=1).fit(X)
    np.testing.assert_allclose(
        density.score_samples(X), expected(density, X)[:, 0], rtol=1e-5, atol=1e-5
    )
    assert density.score(X) == pytest.approx(expected(density, X).mean(), abs=1e-5)
