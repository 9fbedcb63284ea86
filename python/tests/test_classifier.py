"""The classifier, beyond scikit-learn's own checks."""

import json
import warnings

import numpy as np
import pytest
from formulas import read
from sklearn.datasets import load_digits, load_iris

from sumout import TMMClassifier, TMMDensity

hole = np.nan


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def model(iris):
    return TMMClassifier(steps=300, random_state=0).fit(*iris)


def with_holes(X, share, seed=0):
    return np.where(np.random.RandomState(seed).uniform(size=X.shape) < share, hole, X)


def test_holes_in_training_and_in_use(iris):
    X, y = iris
    model = TMMClassifier(steps=300, random_state=0).fit(with_holes(X, 0.3), y)
    assert model.score(X, y) > 0.93
    assert model.score(with_holes(X, 0.3, seed=1), y) > 0.85


def test_small_tables_have_clusters_of_every_class_beside_the_trees(iris):
    X, y = iris

    def trees(model):
        return read(model.model_.to_bytes())[0]["trees"]

    model = TMMClassifier(trees=2, steps=1, random_state=0).fit(X, y)
    assert [len(tree["positions"]) for tree in trees(model)] == [
        4,
        1,  # the second has a cluster of all
        1,  # clusters
        1,  # clusters with factors: better than a trial of untrained trees
    ]
    assert model.score(X, y) > 0.9  # by the clusters: the trees are untrained
    finish = json.loads(model.model_.about)["training"]["finish"]  # trees and clusters
    assert (finish["steps"], finish["generative"]) == (1, 0.1)
    model = TMMClassifier(trees=1, steps=1, generative=2.0, random_state=0).fit(X, y)
    assert json.loads(model.model_.about)["training"]["finish"]["generative"] == 2.0
    two = {"trees": 2, "steps": 1, "random_state": 0}
    assert len(trees(TMMDensity(**two).fit(X))) == 4  # clusters of all rows, twice
    assert len(trees(TMMClassifier(image_shape=(2, 2), **two).fit(X, y))) == 2
    many = TMMClassifier(**two).fit(np.tile(X, (27, 1)), np.tile(y, 27))
    assert len(trees(many)) == 3  # 4,050 rows: clusters with factors alone


def test_a_row_with_everything_missing_gets_the_prior(model):
    np.testing.assert_allclose(model.predict_proba([[hole] * 4]), [[1 / 3] * 3], rtol=1e-6)
    assert model.score_samples([[hole] * 4]) == pytest.approx(0)


def test_same_bits_with_any_number_of_threads_and_any_order(iris):
    X, y = iris
    order = np.random.RandomState(0).permutation(len(X))
    one = TMMClassifier(steps=50, random_state=3, n_jobs=1).fit(X, y)
    two = TMMClassifier(steps=50, random_state=3, n_jobs=2).fit(X[order], y[order])
    assert (one.predict_proba(X) == two.predict_proba(X)).all()
    other = TMMClassifier(steps=50, random_state=4).fit(X, y)
    assert (one.predict_proba(X) != other.predict_proba(X)).any()


@pytest.mark.parametrize("mark", [-1, hole])
def test_rows_without_labels_train_the_density(iris, mark):
    X, y = iris
    few = np.where(np.arange(len(y)) % 15 == 0, y.astype(float), mark)
    few = few if np.isnan(mark) else few.astype(int)
    semi = TMMClassifier(missing_label=mark, steps=400, random_state=0).fit(X, few)
    assert list(semi.classes_) == [0, 1, 2]
    assert semi.score(X, y) > 0.85
    labelled = few >= 0
    scarce = TMMClassifier(steps=400, random_state=0).fit(X[labelled], y[labelled])
    assert semi.score_samples(X).mean() > scarce.score_samples(X).mean() + 0.5


def test_no_label_is_missing_unless_it_is_said(iris):
    X, y = iris
    quick = TMMClassifier(steps=20)
    with pytest.warns(UserWarning, match="y: -1 is a class here; missing_label=-1"):
        assert list(quick.fit(X, y - 1).classes_) == [-1, 0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(quick.fit(X, np.where(y > 0, 1, -1)).classes_) == [-1, 1]
        quick.set_params(missing_label=hole)
        assert list(quick.fit(X, y - 1).classes_) == [-1, 0, 1]
        quick.set_params(missing_label=-1)
        assert list(quick.fit(X, y - 1).classes_) == [0, 1]
    words = np.array(["setosa", "versicolor", None], dtype=object)[y]
    assert list(TMMClassifier(steps=20).fit(X, words).classes_) == ["setosa", "versicolor"]


def test_weights_are_repetitions(iris):
    X, y = iris
    weights = np.arange(len(X)) % 3
    weighted = TMMClassifier(steps=30, random_state=0).fit(X, y, sample_weight=weights)
    repeated = TMMClassifier(steps=30, random_state=0).fit(
        X.repeat(weights, axis=0), y.repeat(weights)
    )
    assert (weighted.predict_proba(X) == repeated.predict_proba(X)).all()


def test_fractional_and_class_weights_move_the_prior(iris):
    X, y = iris
    nothing = [[hole] * 4]
    fractional = TMMClassifier(steps=30).fit(X, y, sample_weight=np.where(y == 0, 0.5, 0.25))
    np.testing.assert_allclose(fractional.predict_proba(nothing), [[0.5, 0.25, 0.25]], rtol=1e-5)
    given = TMMClassifier(steps=30, class_weight={0: 8, 1: 1, 2: 1}).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(nothing), [[0.8, 0.1, 0.1]], rtol=1e-5)
    some = np.r_[0:50, 50:60, 100:150]
    balanced = TMMClassifier(steps=30, class_weight="balanced").fit(X[some], y[some])
    np.testing.assert_allclose(balanced.predict_proba(nothing), [[1 / 3] * 3], rtol=1e-5)


def test_partial_fit_learns_in_parts(iris):
    X, y = iris
    parts = np.array_split(np.random.RandomState(0).permutation(len(X)), 3)
    model = TMMClassifier(random_state=0).partial_fit(X[parts[0]], y[parts[0]], classes=[0, 1, 2])
    before = model.score_samples(X[parts[1]]).mean()
    for part in parts[1:]:
        model.partial_fit(X[part], y[part])
    assert model.score_samples(X[parts[1]]).mean() > before
    assert model.score(X, y) > 0.93
    absent = TMMClassifier(steps=50, random_state=0).partial_fit(
        X[:100], y[:100], classes=[0, 1, 2]
    )
    assert absent.predict_proba(X[-1:])[0, 2] == 0
    absent.partial_fit(X[100:], y[100:])
    assert absent.predict_proba(X[-1:])[0, 2] > 0
    density = TMMDensity(random_state=0).partial_fit(X[parts[0]])
    before = density.score(X[parts[1]])
    assert density.partial_fit(X[parts[1]]).score(X[parts[1]]) > before


def test_partial_fit_of_a_few_rows_keeps_narrow_leaves():
    random = np.random.RandomState(0)
    X = np.where(random.uniform(size=(2000, 2)) < 0.5, 0, random.normal(size=(2000, 2)))
    density = TMMDensity(random_state=0).fit(X)
    before = density.score_samples(np.zeros((1, 2)))
    assert density.partial_fit(X[:60]).score_samples(np.zeros((1, 2))) > before - 0.2


def test_impute_keeps_what_is_there_and_follows_the_class(iris, model):
    X, y = iris
    holes = with_holes(X, 0.4)
    for how in ["mean", "mode", "sample"]:
        filled = model.impute(holes, how, random_state=0)
        assert not np.isnan(filled).any()
        assert (filled[~np.isnan(holes)] == X[~np.isnan(holes)]).all()
    mean = model.impute(holes)
    missing = np.isnan(holes)
    constant = np.broadcast_to(np.nanmean(holes, axis=0), X.shape)
    assert np.square(mean - X)[missing].mean() < 0.4 * np.square(constant - X)[missing].mean()
    nothing = np.full((1, 4), hole)
    for k in range(3):
        np.testing.assert_allclose(model.impute(nothing, y=k)[0], X[y == k].mean(axis=0), atol=0.6)


def test_samples(iris, model):
    X, y = iris
    rows, classes = model.sample(3000, random_state=0)
    np.testing.assert_allclose(np.bincount(classes) / 3000, 1 / 3, atol=0.05)
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.25)
    rows, classes = model.sample(500, y=2, random_state=0)
    assert (classes == 2).all() and model.predict(rows).tolist().count(2) > 400
    row = np.array([[hole, hole, 1.4, 0.2]])
    rows, classes = model.sample(1000, given=row, random_state=1)
    assert (rows[:, 2:] == row[:, 2:]).all() and (classes == 0).mean() > 0.9
    np.testing.assert_allclose(rows[:, :2].mean(axis=0), model.impute(row)[0, :2], atol=0.06)
    again, _ = model.sample(1000, given=row, random_state=1)
    assert (rows == again).all()
    undecided = np.array([[5.7, 2.8, hole, hole]])
    _, classes = model.sample(4000, given=undecided, random_state=2)
    np.testing.assert_allclose(
        np.bincount(classes, minlength=3) / 4000, model.predict_proba(undecided)[0], atol=0.03
    )


def test_explain_shows_the_columns_below_a_node(model):
    mode = model.explain(0, 2, node=1)
    assert mode.shape == (1, 4) and np.isnan(mode).sum() == 3
    samples = model.explain(1, 0, n=50, random_state=0)
    assert samples.shape == (50, 4)
    assert "channels" in model.model_.describe()


def test_images_by_their_shape():
    X, y = load_digits(return_X_y=True)
    some = y < 2
    X, y = X[some], y[some]
    images = X.reshape(-1, 8, 8)
    model = TMMClassifier(image_shape=(8, 8), steps=60, random_state=0).fit(images, y)
    flat = TMMClassifier(image_shape=(8, 8, 1), steps=60, random_state=0).fit(X, y)
    assert model.model_.image_shape == (8, 8, 1)
    assert (model.predict_proba(images) == flat.predict_proba(X)).all()
    assert model.score(images, y) > 0.97
    images = images.copy()
    images[:, 2:5] = hole
    filled = model.impute(images)
    assert filled.shape == images.shape and not np.isnan(filled).any()


def test_the_bar_and_silence(iris, capfd):
    TMMClassifier(steps=20, trees=1, verbose=1).fit(*iris)
    shown = capfd.readouterr()
    # The engine takes 23 steps, 3 of them with the clusters; the bar counts to what was given.
    assert "20/20 steps, objective" in shown.err and shown.out == ""
    TMMClassifier(steps=20, trees=2, image_shape=(2, 2), verbose=1).fit(*iris)
    assert "20/20 steps, objective" in capfd.readouterr().err
    TMMClassifier(steps=20).fit(*iris)
    assert capfd.readouterr() == ("", "")
