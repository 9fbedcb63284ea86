"""The estimators inside the tools of scikit-learn and joblib."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from sumout import TMMClassifier, TMMDensity, TMMImputer


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.1, np.nan, X), y


def test_grid_search_and_cross_validation(iris):
    search = GridSearchCV(
        TMMClassifier(steps=80, random_state=0), {"channels": [4, 8]}, cv=3, n_jobs=2
    ).fit(*iris)
    assert search.best_params_["channels"] in (4, 8) and search.best_score_ > 0.85
    assert cross_val_score(TMMClassifier(steps=80, random_state=0), *iris, cv=3).mean() > 0.85
    assert np.isfinite(cross_val_score(TMMDensity(steps=80, random_state=0), iris[0], cv=3)).all()


def test_pipelines(iris):
    assert (
        make_pipeline(StandardScaler(), TMMClassifier(steps=100, random_state=0))
        .fit(*iris)
        .score(*iris)
        > 0.9
    )
    filled = make_pipeline(TMMImputer(steps=100, random_state=0), LogisticRegression()).fit(*iris)
    assert filled.score(*iris) > 0.9
    named = make_pipeline(TMMImputer(steps=5)).fit(iris[0])
    assert list(named.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]


def test_clone_and_pickle(iris):
    X, y = iris
    model = TMMClassifier(steps=20, channels=8, random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert (again.impute(X) == model.impute(X)).all()


def test_tags_allow_nan():
    assert all(
        get_tags(kind()).input_tags.allow_nan for kind in (TMMClassifier, TMMDensity, TMMImputer)
    )


def test_several_processes(iris):
    X, y = iris
    model = TMMClassifier(steps=20, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    for backend in ("loky", "multiprocessing", "threading"):
        answers = Parallel(n_jobs=2, backend=backend)(
            delayed(model.predict_proba)(X) for _ in range(4)
        )
        assert all((answer == expected).all() for answer in answers), backend
    fits = Parallel(n_jobs=2)(delayed(clone(model).fit)(X, y) for _ in range(2))
    assert all((fit.predict_proba(X) == expected).all() for fit in fits)


def answer_in_child(model, X, answers):
    answers.put(model.predict_proba(X))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system"
)
def test_a_forked_process_has_threads_of_its_own(iris):
    model = TMMClassifier(steps=20, random_state=0, n_jobs=2).fit(*iris)
    expected = model.predict_proba(iris[0])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=answer_in_child, args=(model, iris[0], answers))
    child.start()
    assert (answers.get(timeout=60) == expected).all()
    child.join()


FOREVER = """
import numpy as np
from sumout import TMMClassifier
X = np.random.RandomState(0).normal(size=(500, 20))
model = TMMClassifier(steps=10_000_000)
print("started", flush=True)
try:
    model.fit(X, X[:, 0] > 0)
except KeyboardInterrupt:
    print("stopped", hasattr(model, "model_"), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_cleanly():
    child = subprocess.Popen(
        [sys.executable, "-c", FOREVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "started\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (0, "stopped False\n", "")


BEFORE_THE_FIRST_STEP = """
import numpy as np
from sumout import TMMClassifier, TMMDensity
draw = np.random.RandomState(0)
model, X, y = {}
print("started", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("stopped", hasattr(model, "model_"), flush=True)
"""

# What is chosen first is the dependence of every two columns; then leaves start, as clusters of what they describe.
LONG_STARTS = {
    "columns": "TMMClassifier(steps=1), draw.normal(size=(2_000, 4_000)), np.arange(2_000) % 2",
    "leaves": "TMMDensity(steps=1, components=1_500), draw.normal(size=(3_000, 60)), None",
}


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("start", LONG_STARTS)
def test_ctrl_c_stops_before_the_first_step(start):
    program = BEFORE_THE_FIRST_STEP.format(LONG_STARTS[start])
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "started\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    assert child.stdout.readline() == "stopped False\n"
    assert time.monotonic() - sent < 3, "it should not wait for the end of its start"
    assert child.wait(timeout=60) == 0


def test_omp_num_threads_is_used(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert TMMClassifier()._threads() == 1 and TMMClassifier(n_jobs=3)._threads() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert TMMClassifier()._threads() == 0 and TMMClassifier(n_jobs=-1)._threads() == 0
    assert TMMClassifier(n_jobs=-2)._threads() == max(1, os.cpu_count() - 1)


def test_the_bar_counts_to_the_steps_it_was_given(iris, capsys):
    TMMClassifier(steps=40, verbose=1, random_state=0).fit(*iris)
    last = capsys.readouterr().err.strip().split("\r")[-1]
    assert " 40/40 steps, " in last
    TMMClassifier(trees=1, verbose=1, random_state=0).fit(*iris)
    assert " 40/40 steps, " not in capsys.readouterr().err
