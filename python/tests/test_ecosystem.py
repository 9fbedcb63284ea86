"""What scikit-learn's users expect of any estimator: pages, containers, routing, tags, cards."""

import json
import os
import pickle
import pydoc
import subprocess

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import sumout
from sumout import TMMClassifier, TMMDensity, TMMImputer, TMMRegressor

ESTIMATORS = [TMMClassifier, TMMDensity, TMMImputer, TMMRegressor]


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    X = data.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
    X = X.mask(np.random.RandomState(0).uniform(size=X.shape) < 0.1)
    return X, data.target


def fitted(kind, iris, **parameters):
    return kind(steps=10, trees=1, random_state=0, **parameters).fit(*iris)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_notebook_shows_a_diagram(kind, iris):
    new, old = kind(steps=10), fitted(kind, iris)
    assert kind.__name__ in new._repr_html_() and "steps" in new._repr_html_()
    assert "Not fitted" in new._repr_html_() and "Not fitted" not in old._repr_html_()
    pipeline = make_pipeline(StandardScaler(), kind(steps=10))
    assert kind.__name__ in pipeline._repr_html_()
    assert repr(kind(steps=10)) == f"{kind.__name__}(steps=10)", "only what was given"


@pytest.mark.parametrize(
    ("container", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
)
def test_set_output_chooses_the_container(container, frame, iris):
    X, _ = iris
    filled = fitted(TMMImputer, iris).set_output(transform=container).transform(X)
    assert type(filled) is frame and list(filled.columns) == list(X.columns)
    assert not np.isnan(filled.to_numpy()).any()
    inside = make_column_transformer((TMMImputer(steps=10, trees=1), list(X.columns[:2])))
    filled = inside.set_output(transform=container).fit_transform(X)
    assert type(filled) is frame and filled.shape == (150, 2)


def test_set_output_of_arrays_names_columns(iris):
    X = iris[0].to_numpy()
    imputer = TMMImputer(steps=10, trees=1).set_output(transform="pandas")
    assert list(imputer.fit_transform(X).columns) == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_weights_are_routed_where_they_are_asked_for(kind, iris):
    X, y = iris
    weights = np.where(y == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        asked = kind(steps=10, trees=1, random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, asked).fit(X, y, sample_weight=weights)
        direct = clone(asked).fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
        model = pipeline[-1].model_
        assert model.to_bytes() == direct.model_.to_bytes()
        silent = make_pipeline(scaler, kind(steps=10, trees=1))
        with pytest.raises(UnsetMetadataPassedError, match=f"for {kind.__name__}"):
            silent.fit(X, y, sample_weight=weights)


def test_weights_reach_every_fold(iris):
    X, y = iris
    weights = np.where(y == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = TMMClassifier(steps=10, trees=1).set_fit_request(sample_weight=True)
        asked = asked.set_score_request(sample_weight=True)
        search = GridSearchCV(asked, {"channels": [4]}, cv=3).fit(X, y, sample_weight=weights)
        assert list(search.best_estimator_.classes_) == [1, 2], "class 0 weighs nothing"
        found = cross_validate(
            asked, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True
        )
        assert all(list(model.classes_) == [1, 2] for model in found["estimator"])


def test_tags_say_what_is_taken():
    kinds = {kind: get_tags(kind()) for kind in ESTIMATORS}
    assert all(tags.input_tags.allow_nan and tags.input_tags.categorical for tags in kinds.values())
    assert is_classifier(TMMClassifier()) and is_regressor(TMMRegressor())
    expected = ["classifier", "density_estimator", "transformer", "regressor"]
    assert [tags.estimator_type for tags in kinds.values()] == [
        kind if kind != "transformer" else None for kind in expected
    ]
    assert kinds[TMMClassifier].target_tags.required and kinds[TMMRegressor].target_tags.required
    assert not kinds[TMMDensity].target_tags.required
    assert kinds[TMMImputer].transformer_tags.preserves_dtype == ["float64", "float32"]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_pickles_and_joblib_keep_everything(kind, iris, tmp_path):
    model = fitted(kind, iris)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert again.get_params() == model.get_params()
        assert again.model_.to_bytes() == model.model_.to_bytes()
        np.testing.assert_array_equal(again.score_samples(iris[0]), model.score_samples(iris[0]))
        assert list(again.feature_names_in_) == list(iris[0].columns)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_help_reads_well(kind):
    text = pydoc.plain(pydoc.render_doc(kind))
    parts = ["Parameters", "Attributes", "Methods", "Examples", "random_state : int"]
    places = [text.find(part) for part in parts[:4]]
    assert -1 not in places and places == sorted(places)
    assert all(part in text for part in parts)
    assert "sumout.parameters" not in text.split("Method resolution order")[0], "nothing to look up"
    assert all(len(line) <= 100 for line in (kind.__doc__ or "").splitlines())


def test_a_card_says_what_a_model_was_trained_on(iris, tmp_path):
    X, y = iris
    model = fitted(TMMClassifier, iris)
    card = model.card()
    assert card["program"] == f"sumout {sumout.__version__} (Python)"
    assert (card["rows"], card["columns"], len(card["data"])) == (150, 4, 64)
    shuffled = np.random.RandomState(1).permutation(150)
    other = fitted(TMMClassifier, (X.iloc[shuffled], y.iloc[shuffled]))
    assert other.card() == card, "the order of rows does not matter"
    assert fitted(TMMClassifier, (X + 1, y)).card()["data"] != card["data"]
    assert "data" not in other.partial_fit(X, y).card(), "it has seen more since"
    model.save(tmp_path / "model.sumout", note="by Ada, for the garden")
    again = sumout.load(tmp_path / "model.sumout")
    assert again.card() == {**card, "note": "by Ada, for the garden"}
    again.save(tmp_path / "again.sumout")
    assert sumout.load(tmp_path / "again.sumout").card()["note"] == "by Ada, for the garden"


@pytest.mark.skipif("SUMOUT" not in os.environ, reason="SUMOUT is not set")
def test_cards_of_the_command_line(iris, tmp_path):
    X, y = iris
    X.assign(species=y.map({0: "a", 1: "b", 2: "c"})).to_csv(tmp_path / "irises.csv", index=False)
    train = ["train", "--data", "irises.csv", "--target", "species", "--steps", "20"]
    train += ["--validation", "0.2", "--note", "a test", "--out", "irises.sumout"]
    subprocess.run([os.environ["SUMOUT"], *train], cwd=tmp_path, check=True, capture_output=True)
    card = sumout.load(tmp_path / "irises.sumout").card()
    assert (card["source"], card["target"], card["note"]) == ("irises.csv", "species", "a test")
    assert (card["rows"], card["validated"]["rows"]) == (120, 30)
    assert 0.5 < card["validated"]["accuracy"] <= 1
    assert json.dumps(card), "plain values"
