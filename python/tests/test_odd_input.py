"""Input as it comes: objects, masked arrays, booleans, columns without values, fits that fail."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

import sumout
from sumout import TMMClassifier, TMMDensity, TMMImputer
from sumout.columns import outlier_of

X, y = load_wine(return_X_y=True)
QUICK = {"steps": 30, "random_state": 0}
WORDS = np.array(["low", "middle", "high"])


def test_objects_that_are_numbers_are_numbers():
    frame = pd.DataFrame(X[:, :4])
    frame.columns = list("abcd")
    numbers = TMMClassifier(**QUICK).fit(frame, y).predict_proba(frame)
    objects = frame.astype(object)
    np.testing.assert_array_equal(
        TMMClassifier(**QUICK).fit(objects, y).predict_proba(objects), numbers
    )
    objects.loc[3, "b"] = None
    assert TMMImputer(**QUICK).fit_transform(objects).notna().all().all()


def test_booleans_come_back_as_booleans(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "flag": pd.array(y > 0, dtype="boolean")})
    model = TMMClassifier(**QUICK).fit(frame, y)
    model.save(tmp_path / "flags.sumout")
    query = pd.DataFrame({"a": [14.2, 12.0], "flag": pd.array([None, True], dtype="boolean")})
    expected = model.impute(query)["flag"].tolist()
    loaded = sumout.load(tmp_path / "flags.sumout")
    assert loaded.impute(query)["flag"].tolist() == expected
    assert loaded.impute(query.astype(object))["flag"].tolist() == expected
    holes = [
        query.assign(flag=None),
        pl.DataFrame({"a": [14.2], "flag": pl.Series([None], dtype=pl.String)}),
    ]
    for frame in holes:
        assert all(isinstance(flag, bool) for flag in loaded.impute(frame)["flag"].to_list())
    words = query.assign(flag=["False", None])
    assert isinstance(loaded.impute(words)["flag"][1], str)
    numbered = query.assign(flag=[0, 1])
    np.testing.assert_array_equal(
        model.predict_proba(numbered), model.predict_proba(query.assign(flag=[False, True]))
    )


def test_masked_cells_are_missing():
    masked = np.ma.masked_less(X, 2.0)
    plain = np.where(X < 2.0, np.nan, X)
    filled = TMMImputer(**QUICK).fit_transform(masked)
    np.testing.assert_array_equal(filled, TMMImputer(**QUICK).fit_transform(plain))
    labels = np.ma.masked_array(y, np.arange(len(y)) % 2 == 0)
    unknown = np.where(labels.mask, np.nan, y)
    ours = TMMClassifier(**QUICK).fit(X, labels).predict_proba(X)
    np.testing.assert_array_equal(ours, TMMClassifier(**QUICK).fit(X, unknown).predict_proba(X))
    words = np.ma.masked_array(np.where(y == 1, "b", "a"), np.arange(len(y)) % 2 == 0)
    assert TMMClassifier(**QUICK).fit(X, words).classes_.tolist() == ["a", "b"]
    table = np.ma.masked_array([["x"], ["y"], ["z"]] * 20, [[False], [False], [True]] * 20)
    filled = TMMImputer(categorical_features=[0], **QUICK).fit_transform(table)
    assert set(filled.ravel()) == {"x", "y"}


@pytest.mark.parametrize("estimator", [TMMClassifier(**QUICK), TMMDensity(**QUICK)])
def test_a_fit_that_fails_leaves_the_model_as_it_was(estimator):
    with pytest.raises(ValueError):
        estimator.set_params(rate=-1).fit(X, y)
    with pytest.raises(NotFittedError):
        estimator.score_samples(X)
    before = estimator.set_params(rate=None).fit(X, y).score_samples(X)
    with pytest.raises(ValueError):
        estimator.set_params(rate=-1).fit(X[:, :3], WORDS[y])
    np.testing.assert_array_equal(estimator.score_samples(X), before)
    assert getattr(estimator, "classes_", [0, 1, 2])[0] == 0


def test_a_column_of_text_with_holes_only():
    frame = pd.DataFrame({"a": X[:, 0], "word": WORDS[y]})
    model = TMMImputer(**QUICK).fit(frame)
    assert model.transform(pd.DataFrame({"a": [14.5], "word": [np.nan]}))["word"][0] in WORDS
    never = TMMImputer(**QUICK).fit_transform(frame.assign(nothing=None))
    assert never["nothing"].isna().all() and never["word"].tolist() == frame["word"].tolist()


def test_parts_with_few_labels():
    model = TMMClassifier(**QUICK, missing_label=-1).partial_fit(X, y, classes=[0, 1, 2])
    for labels in ([-1, -1, 0, 0, 0], [np.nan] * 5, [-1] * 5):
        model.partial_fit(X[:5], labels)
    assert list(model.classes_) == [0, 1, 2]
    names = pd.Series(WORDS[y], dtype="string").mask(np.arange(len(y)) % 3 == 0)
    assert sorted(TMMClassifier(**QUICK).fit(X, names).classes_) == sorted(WORDS)
    with pytest.raises(ValueError, match="class_weight: expected finite numbers above 0"):
        TMMClassifier(**QUICK, class_weight={0: 0, 1: 1, 2: 1}).fit(X, y)


def test_warns_of_numbers_that_float32_cannot_represent():
    with pytest.warns(UserWarning, match="column index 0: its values lie near 1e\\+09"):
        TMMDensity(**QUICK).fit(X[:, :1] + 1e9)


def test_a_warning_points_at_the_line_of_the_user():
    far = X + 1e9
    for fit in (
        lambda: TMMDensity(**QUICK).fit(far),
        lambda: TMMImputer(**QUICK).fit_transform(far),
        lambda: TMMClassifier(**QUICK).fit(far, y - 1),
        lambda: TMMClassifier(**QUICK).partial_fit(far, y, classes=[0, 1, 2]),
    ):
        with pytest.warns(UserWarning) as found:
            fit()
        assert {warning.filename for warning in found} == {__file__}


def test_a_gross_outlier_is_said():
    X = np.random.default_rng(3).normal(size=(40, 2))
    assert outlier_of(X[:, 0]) is None and outlier_of(X[:0, 0]) is None
    assert outlier_of(np.array([0.0] * 39 + [5.0])) is None  # half of the column is one value
    X[7, 1] = -99999
    assert outlier_of(X[:, 1]) == -99999
    with pytest.warns(UserWarning, match="column index 1: -99999 is far from the rest"):
        TMMImputer(**QUICK).fit(X)


def test_warns_of_a_column_without_a_number():
    nothing = np.column_stack([X[:, :2], np.full(len(X), np.nan)])
    with pytest.warns(UserWarning, match="column index 2: it has no number in the training rows"):
        filled = TMMImputer(**QUICK).fit_transform(nothing)
    assert (filled[:, 2] == 0).all()


def test_samples_keep_what_is_given_and_fit_into_memory():
    model = TMMDensity(**QUICK).fit(X)
    given = X[:2].copy()
    given[:, 3:] = np.nan
    np.testing.assert_array_equal(model.sample(2, given=given)[:, :3], X[:2, :3])
    np.testing.assert_array_equal(
        model.sample(5, given=given[:1])[:, :3], np.repeat(X[:1, :3], 5, axis=0)
    )
    labelled = TMMClassifier(**QUICK).fit(pd.DataFrame(X, columns=[f"c{j}" for j in range(13)]), y)
    rows, _ = labelled.sample(2, given=pd.DataFrame(given, columns=labelled.feature_names_in_))
    np.testing.assert_array_equal(rows[:, :3], X[:2, :3])
    for n in (10**18, 10**13):
        with pytest.raises(MemoryError, match="do not fit into memory"):
            model.sample(n)
        with pytest.raises(MemoryError):
            model.explain(1, 0, n=n)
    with pytest.raises(ValueError, match="n: expected a whole number from 0, got -1"):
        model.sample(-1)
