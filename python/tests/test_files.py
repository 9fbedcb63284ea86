"""Python and the command line read each other's model files. SUMOUT is the path of the command."""

import csv
import json
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import KFold, cross_val_score

import sumout
from sumout import TMMClassifier, TMMDensity, TMMImputer, TMMRegressor

needs_command = pytest.mark.skipif("SUMOUT" not in os.environ, reason="SUMOUT is not set")


def command(*words):
    done = subprocess.run([os.environ["SUMOUT"], *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def flowers():
    data = load_iris(as_frame=True)
    frame = data.data.rename(columns=lambda name: name.split(" (")[0])
    frame = frame.mask(np.random.RandomState(0).uniform(size=frame.shape) < 0.2)
    frame["size"] = np.where(data.data.iloc[:, 0] > 5.8, "large", "small")
    return frame, data.target_names[data.target]


@needs_command
def test_the_command_reads_what_python_wrote(tmp_path):
    frame, y = flowers()
    model = TMMClassifier(steps=60, random_state=0).fit(frame, y)
    model.save(tmp_path / "model.sumout")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    command(
        "predict",
        tmp_path / "model.sumout",
        "--data",
        tmp_path / "rows.csv",
        "--out",
        tmp_path / "classes.csv",
    )
    rows = pd.read_csv(tmp_path / "classes.csv")
    posterior = model.predict_proba(frame)
    for k, name in enumerate(model.classes_):
        column = next(c for c in rows.columns if name in c and rows[c].between(0, 1).all())
        np.testing.assert_allclose(rows[column], posterior[:, k], atol=1e-5)
    command(
        "impute",
        tmp_path / "model.sumout",
        "--data",
        tmp_path / "rows.csv",
        "--out",
        tmp_path / "filled.csv",
    )
    filled, ours = pd.read_csv(tmp_path / "filled.csv"), model.impute(frame)
    assert (filled["size"] == ours["size"]).all()
    np.testing.assert_allclose(filled.iloc[:, :4], ours.iloc[:, :4].astype(float), rtol=1e-4)
    assert "150" in command("inspect", tmp_path / "model.sumout")


@needs_command
def test_python_reads_what_the_command_wrote(tmp_path):
    frame, y = flowers()
    frame.assign(flower=y).to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / "model.sumout"
    command(
        "train", "--data", tmp_path / "rows.csv", "--target", "flower", "--steps", 60, "--out", path
    )
    model = sumout.load(path)
    assert isinstance(model, TMMClassifier) and set(model.classes_) == set(y)
    assert model.model_.categories == [0, 0, 0, 0, 2] and list(model.feature_names_in_) == list(
        frame.columns
    )
    command("predict", path, "--data", tmp_path / "rows.csv", "--out", tmp_path / "classes.csv")
    with open(tmp_path / "classes.csv") as file:
        rows = list(csv.DictReader(file))
    predicted = model.predict(frame)
    assert all(label in row.values() for label, row in zip(predicted, rows, strict=True))
    assert model.score(frame, y) > 0.8
    model.partial_fit(frame, y).save(path)
    assert (sumout.load(path).predict_proba(frame) == model.predict_proba(frame)).all()


@needs_command
def test_a_density_of_the_command(tmp_path):
    frame, _ = flowers()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    command(
        "train", "--data", tmp_path / "rows.csv", "--steps", 30, "--out", tmp_path / "model.sumout"
    )
    model = sumout.load(tmp_path / "model.sumout")
    assert isinstance(model, TMMDensity) and np.isfinite(model.score(frame))


def test_save_and_load(tmp_path):
    X, y = load_iris(return_X_y=True)
    for kind in (TMMClassifier, TMMDensity, TMMImputer):
        model = kind(steps=20, random_state=0).fit(X, y)
        model.save(tmp_path / "model.sumout")
        again = sumout.load(tmp_path / "model.sumout")
        assert (again.score_samples(X) == model.score_samples(X)).all()
        assert again.n_features_in_ == 4
    assert os.listdir(tmp_path) == ["model.sumout"]
    assert os.stat(tmp_path / "model.sumout").st_mode & 0o044 == 0o044


def test_classes_come_back_as_they_were(tmp_path):
    X, y = load_iris(return_X_y=True)
    for names in ([3, 5, 7], ["a", "b", "c"], ["01", "1", "2"]):
        model = TMMClassifier(steps=20, random_state=0).fit(X, np.array(names)[y])
        model.save(tmp_path / "model.sumout")
        again = sumout.load(tmp_path / "model.sumout")
        assert again.classes_.tolist() == names and (again.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("kind", [bool, str])
def test_booleans_come_back_as_booleans(tmp_path, kind):
    X, y = load_iris(return_X_y=True)
    given = (y > 0).astype(kind)
    model = TMMClassifier(steps=20, random_state=0).fit(X, given)
    model.save(tmp_path / "model.sumout")
    again = sumout.load(tmp_path / "model.sumout")
    assert again.classes_.dtype == again.predict(X).dtype == bool
    assert (again.predict(X) == (model.predict(X).astype(str) == "True")).all()
    assert again.score(X, y > 0) == model.score(X, given)
    assert again.sample(2, y=True, random_state=0)[1].tolist() == [True, True]
    again.steps, again.random_state = 5, 0
    assert again.partial_fit(X, given).score(X, y > 0) > 0.9
    again.partial_fit(X, y > 0, classes=[False, True])
    again.save(tmp_path / "model.sumout")
    assert sumout.load(tmp_path / "model.sumout").classes_.tolist() == [False, True]


@needs_command
@pytest.mark.parametrize("words", [("false", "true"), ("FALSE", "TRUE"), ("False", "True")])
def test_booleans_of_other_programs(tmp_path, words):
    flags = np.arange(80) % 3 == 0
    rows = [
        "flag,x,y",
        *(f"{words[int(flag)]},{i % 7},{words[not flag]}" for i, flag in enumerate(flags)),
    ]
    table, model = tmp_path / "table.csv", tmp_path / "model.sumout"
    table.write_text("\n".join(rows) + "\n")
    command("train", "--data", table, "--target", "y", "--steps", 20, "--out", model)
    again, frame = sumout.load(model), pd.DataFrame({"flag": flags, "x": np.arange(80) % 7})
    found = again.predict(frame)
    assert found.dtype == bool and (found == ~flags).all()
    assert (again.predict(frame.assign(flag=frame["flag"].astype(str).str.lower())) == found).all()
    lines = [json.dumps({"flag": bool(flag), "x": 1, "y": bool(not flag)}) for flag in flags]
    (tmp_path / "table.jsonl").write_text("\n".join(lines) + "\n")
    assert " 1.0000 " in command("evaluate", model, "--data", tmp_path / "table.jsonl")


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", [bool, int])
def test_labels_with_holes_keep_their_type(kind, hole):
    X, y = load_iris(return_X_y=True)
    wanted = (y > 0).astype(kind)
    given = wanted.astype(object)
    given[::3] = hole
    model = TMMClassifier(steps=20, random_state=0).fit(X, given)
    assert model.classes_.dtype == model.predict(X).dtype == kind
    assert model.score(X, wanted) > 0.9
    nullable = pd.Series(given).astype({bool: "boolean", int: "Int64"}[kind])
    again = TMMClassifier(steps=20, random_state=0).fit(X, nullable)
    assert again.classes_.dtype == kind and (again.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_scores_are_of_known_labels(missing):
    X, y = load_iris(return_X_y=True)
    few = np.where(np.arange(len(y)) % 2 == 0, y, missing)
    model = TMMClassifier(missing_label=missing, steps=20, trees=1, random_state=0).fit(X, few)
    known = np.arange(len(y)) % 2 == 0
    assert model.score(X, few) == model.score(X[known], y[known])
    assert cross_val_score(model, X, few, cv=KFold(3, shuffle=True, random_state=0)).min() > 0.8
    targets = np.where(known, X[:, 0], np.nan)
    regressor = TMMRegressor(steps=20, trees=1, random_state=0).fit(X[:, 1:], targets)
    assert regressor.score(X[:, 1:], targets) == regressor.score(X[known, 1:], X[known, 0])


def test_images_come_back_as_images(tmp_path):
    X, y = load_digits(n_class=2, return_X_y=True)
    model = TMMClassifier(image_shape=(8, 8), steps=20, random_state=0).fit(X, y)
    model.save(tmp_path / "model.sumout")
    again = sumout.load(tmp_path / "model.sumout")
    assert again.image_shape == (8, 8)
    assert (again.predict_proba(X.reshape(-1, 8, 8)) == model.predict_proba(X)).all()


def test_links_devices_and_modes_stay(tmp_path):
    model = TMMDensity(steps=5, random_state=0).fit(np.arange(40.0).reshape(20, 2))
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    model.save(real)
    real.chmod(0o600)
    link.symlink_to(real)
    whole = real.read_bytes()
    real.write_bytes(b"old")
    model.save(link)
    assert link.is_symlink() and real.read_bytes() == whole and real.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    model.save(pipe)
    assert pipe.is_fifo() and os.read(reader, 100_000) == whole
    os.close(reader)
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "real"]


@needs_command
@pytest.mark.parametrize("labelled", [False, True])
def test_the_command_line_and_python_train_the_same_model(tmp_path, labelled):
    frame, y = flowers()
    table, target = (frame.assign(flower=y), ["--target", "flower"]) if labelled else (frame, [])
    table.to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / "model.sumout"
    options = ["--seed", 7, "--steps", 40, "--out", path]
    command("train", "--data", tmp_path / "rows.csv", *target, *options)
    estimator = TMMClassifier if labelled else TMMDensity
    ours = estimator(random_state=7, steps=40).fit(frame, y)
    assert weights_of(ours.model_) == weights_of(sumout.load(path).model_)


def weights_of(model) -> bytes:
    """The tensors of a model file, without the notes before them."""
    data = model.to_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def visits(has_times):
    """A column of dates with holes, and a number that follows them."""
    random = np.random.RandomState(0)
    hours = random.randint(24 * 100, size=300)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h")
    day = pd.Series(days if has_times else days.floor("D"))
    day[::7] = pd.NaT
    return pd.DataFrame({"day": day, "visitors": hours / 24 + random.normal(size=300)})


def as_exact_as_float32(a, b):
    """Whether moments are the same to two minutes, and so the same days where they have no time."""
    difference = pd.to_datetime(pd.Series(a)) - pd.to_datetime(pd.Series(b))
    return (difference.abs() <= pd.Timedelta(2, "min")).all()


@needs_command
@pytest.mark.parametrize("has_times", [False, True])
def test_the_command_knows_the_dates_of_python(tmp_path, has_times):
    frame = visits(has_times)
    model = TMMDensity(steps=60, random_state=0).fit(frame)
    model.save(tmp_path / "model.sumout")
    date_format = "%Y-%m-%dT%H:%M:%S" if has_times else "%Y-%m-%d"
    frame.to_csv(tmp_path / "rows.csv", index=False, date_format=date_format)
    paths = tmp_path / "model.sumout", "--data", tmp_path / "rows.csv"
    filled = [line.split(",")[0] for line in command("impute", *paths).splitlines()[1:]]
    assert {len(text) for text in filled} == {19 if has_times else 10}
    ours = model.impute(frame)["day"].dt.round("s").dt.floor("s" if has_times else "D")
    assert as_exact_as_float32(filled, ours)
    assert "dates around 2024-0" in command("inspect", tmp_path / "model.sumout")
    TMMClassifier(steps=20, random_state=0).fit(frame, frame["visitors"] > 50).save(
        tmp_path / "model.sumout"
    )
    assert len(command("predict", *paths).splitlines()) == 301


@needs_command
@pytest.mark.parametrize("has_times", [False, True])
def test_python_knows_the_dates_of_the_command(tmp_path, has_times):
    frame = visits(has_times)
    date_format = "%Y-%m-%dT%H:%M:%S" if has_times else "%Y-%m-%d"
    rows, path = tmp_path / "rows.csv", tmp_path / "model.sumout"
    frame.to_csv(rows, index=False, date_format=date_format)
    command("train", "--data", rows, "--steps", 60, "--out", path)
    model, text = sumout.load(path), pd.read_csv(rows)
    np.testing.assert_array_equal(model.score_samples(text), model.score_samples(frame))
    theirs = [line.split(",")[0] for line in command("impute", path, "--data", rows).splitlines()]
    filled = model.impute(text)["day"]
    assert filled.dtype == text["day"].dtype and as_exact_as_float32(theirs[1:], filled)
    assert {len(day) for day in filled} == {19 if has_times else 10}
    text.loc[3, "day"] = "soon"
    with pytest.raises(ValueError, match="column 'day', row index 3: expected a date such as"):
        model.score_samples(text)


def test_a_regressor_writes_which_columns_are_dates(tmp_path):
    frame = visits(has_times=False)
    spans = frame.assign(span=frame["day"] - pd.Timestamp("2024-01-01"))
    model = TMMRegressor(steps=20, random_state=0).fit(spans.drop(columns="visitors"), range(300))
    assert json.loads(model.model_.about)["training"]["dates"] == {"day": "day"}
    model.save(tmp_path / "model.sumout")
    again = sumout.load(tmp_path / "model.sumout")
    text = spans.drop(columns="visitors").assign(day=spans["day"].astype(str).replace("NaT", None))
    np.testing.assert_array_equal(
        again.predict(text), model.predict(spans.drop(columns="visitors"))
    )
