"""The estimators on Dask: the same bits as on one machine, also if a worker dies."""

import os
import signal

import dask.array as da
import dask.dataframe as dd
import distributed
import guide
import numpy as np
import pandas as pd
import pytest
from table import QUICK, cut, table

from sumout import batches
from sumout.dask import DaskPartitions, TMMClassifier, TMMDensity, TMMImputer


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    frame, labels = table()
    frame["town"] = frame["town"].astype("str")
    return frame, pd.Series(labels, dtype="str")


@pytest.fixture(scope="module")
def on_one_machine(rows):
    frame, labels = rows
    pairs = zip(cut(frame), cut(labels), strict=True)
    return batches.TMMClassifier(**QUICK).fit(pairs).model_.to_bytes()


def partitioned(rows):
    frame, labels = rows
    return dd.from_pandas(frame, npartitions=4), dd.from_pandas(labels, npartitions=4)


def test_threads_of_this_process_give_the_same_model(rows, on_one_machine):
    model = TMMClassifier(**QUICK).fit(*partitioned(rows))
    assert model.model_.to_bytes() == on_one_machine


def test_a_cluster_gives_the_same_model(rows, on_one_machine, client):
    model = TMMClassifier(**QUICK).fit(*partitioned(rows))
    assert model.model_.to_bytes() == on_one_machine


def test_a_worker_that_dies_changes_nothing(rows, on_one_machine, client, monkeypatch):
    steps, killed = [], []
    plain_sum = DaskPartitions.sum

    def sum_and_kill(self, step):
        steps.append(step)
        if len(steps) == 3:
            pids = list(client.run(os.getpid).values())
            os.kill(pids[0], signal.SIGKILL)
            killed.extend(pids[:1])
        return plain_sum(self, step)

    monkeypatch.setattr(DaskPartitions, "sum", sum_and_kill)
    model = TMMClassifier(**QUICK).fit(*partitioned(rows))
    assert len(killed) == 1 and len(steps) == 6
    assert model.model_.to_bytes() == on_one_machine


def test_questions_are_answered_lazily_and_as_ever(rows):
    frame, labels = rows
    X, y = partitioned(rows)
    model = TMMClassifier(**QUICK).fit(X, y)
    posterior = model.predict_proba(X)
    assert isinstance(posterior, da.Array) and posterior.npartitions == 4
    assert (posterior.compute() == model.predict_proba(frame)).all()
    assert (model.predict(X).compute() == model.predict(frame)).all()
    assert (model.predict_log_proba(X).compute() == model.predict_log_proba(frame)).all()
    assert (model.score_samples(X).compute() == model.score_samples(frame)).all()
    filled = model.impute(X)
    assert isinstance(filled, dd.DataFrame)
    assert (filled.compute().dtypes == filled.dtypes).all()
    pd.testing.assert_frame_equal(filled.compute(), model.impute(frame), check_dtype=False)


def test_labels_may_be_a_column_of_the_frame(rows, on_one_machine, tmp_path):
    frame, labels = rows
    for number, part in enumerate(cut(frame.assign(label=labels))):
        part.to_parquet(tmp_path / f"{number}.parquet")
    ddf = dd.read_parquet(tmp_path)
    by_name = TMMClassifier(**QUICK).fit(ddf, "label")
    assert by_name.model_.to_bytes() == on_one_machine
    apart = TMMClassifier(**QUICK).fit(ddf.drop(columns="label"), ddf["label"])
    assert apart.model_.to_bytes() == on_one_machine
    with pytest.raises(ValueError, match="partition [0-3]: target: expected one of the columns"):
        TMMClassifier(**QUICK).fit(ddf, "nothing")


def test_arrays():
    X = np.random.default_rng(0).normal(size=(900, 4))
    X[::7, 1] = np.nan
    lazy = da.from_array(X, chunks=(300, 2))  # columns in pieces too
    model = TMMImputer(**QUICK).fit(lazy)
    same = batches.TMMImputer(**QUICK).fit(cut(X))
    assert model.model_.to_bytes() == same.model_.to_bytes()
    filled = model.transform(lazy)
    assert filled.shape == (900, 4) and (filled.compute() == same.transform(X)).all()
    density = TMMDensity(**QUICK).fit(lazy)
    assert density.score_samples(lazy).compute().shape == (900,)
    assert np.isfinite(density.impute(lazy).compute()).all()
    empty = lazy[lazy[:, 0] > 2.5]  # some chunks have no row, and their sizes are unknown
    assert len(density.score_samples(empty).compute()) == (X[:, 0] > 2.5).sum()
    plain = TMMImputer(random_state=0, steps=20).fit(X)
    assert plain.transform(X).shape == X.shape


def test_samples_of_partitions_are_independent():
    X = np.random.default_rng(0).normal(size=(300, 2))
    lazy = da.from_array(X, chunks=(100, 2))
    nothing = da.full((300, 2), np.nan, chunks=(100, 2))
    imputer = TMMImputer(how="sample", **QUICK).fit(lazy)
    density = TMMDensity(**QUICK).fit(lazy)
    for ask in (
        lambda: imputer.transform(nothing),
        lambda: density.impute(nothing, how="sample", random_state=3),
    ):
        rows = ask().compute()
        assert (rows == ask().compute()).all()  # the seed decides
        assert len(np.unique(rows[:, 0])) == 300
    free = density.impute(nothing, how="sample").compute()
    assert (free != density.impute(nothing, how="sample").compute()).any()


def test_what_is_wrong_is_said_where_it_is(rows):
    frame, labels = rows
    X, y = partitioned(rows)
    arrays = da.ones((8, 2), chunks=(2, 2)), da.ones(8, chunks=4)
    with pytest.raises(ValueError, match="y: expected 4 partitions as X has, got 2"):
        TMMClassifier(**QUICK).fit(*arrays)
    with pytest.raises(TypeError, match="sample_weight: expected None .* got ndarray"):
        TMMClassifier(**QUICK).fit(X, y, sample_weight=np.ones(len(frame)))
    model = TMMClassifier(**QUICK).fit(X, y, sample_weight=None)
    unknown = frame.copy()
    unknown.loc[700, "town"] = "Dresden"
    lazy = model.predict(dd.from_pandas(unknown, npartitions=4))
    with pytest.raises(
        ValueError, match="partition 2: column 'town', row index 100: .* got 'Dresden'"
    ):
        lazy.compute()
    renamed = model.predict(dd.from_pandas(frame.rename(columns={"size": "z"}), npartitions=2))
    with pytest.raises(ValueError, match=r"partition [01]: (.|\n)*size"):
        renamed.compute()


def test_the_block_of_the_guide():
    assert guide.run("beyond-one-machine.md", "from sumout.dask") == 1
