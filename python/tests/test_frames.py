"""Pandas and polars frames, categories, and arrays with categories in them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from sumout import TMMClassifier, TMMDensity, TMMImputer


def table(rows=200, seed=0):
    random = np.random.RandomState(seed)
    y = random.randint(2, size=rows)
    town = np.array(["Athens", "Bergen", "Cadiz"])[np.where(random.uniform(size=rows) < 0.8, y, 2)]
    return {
        "height": np.where(random.uniform(size=rows) < 0.2, np.nan, random.normal(170 + 10 * y, 5)),
        "town": np.where(random.uniform(size=rows) < 0.2, None, town),
        "children": np.where(random.uniform(size=rows) < 0.2, np.nan, random.randint(4, size=rows)),
        "member": random.uniform(size=rows) < 0.3 + 0.4 * y,
    }, y


def pandas_frame(**changes):
    columns, y = table()
    frame = pd.DataFrame(columns).astype({"town": "category", "children": "Int64", **changes})
    return frame.set_index(np.arange(1000, 1200)), y


def polars_frame():
    columns, y = table()
    columns["town"] = pl.Series(columns["town"].tolist(), dtype=pl.Categorical)
    columns["height"] = pl.Series(columns["height"]).fill_nan(None)
    columns["children"] = pl.Series([None if np.isnan(c) else int(c) for c in columns["children"]])
    return pl.DataFrame(columns), y


def test_pandas_and_polars_give_the_same_model():
    a, y = pandas_frame()
    b, _ = polars_frame()
    c, _ = pandas_frame(town="str")
    models = [TMMClassifier(steps=60, random_state=0).fit(frame, y) for frame in (a, b, c)]
    assert models[0].model_.categories == [0, 3, 0, 2]
    assert list(models[0].feature_names_in_) == ["height", "town", "children", "member"]
    expected = models[0].predict_proba(a)
    assert (models[1].predict_proba(b) == expected).all() and (
        models[2].predict_proba(c) == expected
    ).all()
    assert (models[0].predict_proba(b) == expected).all()
    assert models[0].score(a, y) > 0.8


def test_imputing_a_frame_keeps_its_type():
    for make, kind in [(pandas_frame, pd.DataFrame), (polars_frame, pl.DataFrame)]:
        frame, y = make()
        model = TMMClassifier(steps=60, random_state=0).fit(frame, y)
        filled = model.impute(frame)
        assert isinstance(filled, kind) and list(filled.columns) == list(frame.columns)
        assert filled["town"].dtype == frame["town"].dtype
        before, after = frame["town"].to_list(), filled["town"].to_list()
        assert all(b == a for b, a in zip(before, after, strict=True) if isinstance(b, str))
        assert set(after) == {"Athens", "Bergen", "Cadiz"}
        assert not any(np.isnan(height) for height in filled["height"].to_list())
    assert (
        pandas_frame()[0].index == TMMImputer(steps=20).fit_transform(pandas_frame()[0]).index
    ).all()


@pytest.mark.parametrize("features", [[1], [False, True, False], np.array([1])])
def test_arrays_with_categories(features):
    random = np.random.RandomState(0)
    y = random.randint(2, size=150)
    X = np.column_stack(
        [random.normal(y), 10 * (y ^ (random.uniform(size=150) < 0.1)) + 5, random.normal(size=150)]
    )
    X[::7, 1] = np.nan
    model = TMMClassifier(categorical_features=features, steps=60, random_state=0).fit(X, y)
    assert model.model_.categories == [0, 2, 0] and model.score(X, y) > 0.8
    filled = model.impute(X)
    assert set(filled[:, 1]) == {5.0, 15.0} and (filled[:, [0, 2]] == X[:, [0, 2]]).all()
    words = X.astype(object)
    words[:, 1] = ["low" if v == 5 else "up" if v == 15 else None for v in X[:, 1]]
    named = clone(model).fit(words, y)
    assert (named.predict_proba(words) == model.predict_proba(X)).all()
    assert set(named.impute(words)[:, 1]) == {"low", "up"}
    assert set(named.sample(20, random_state=0)[0][:, 1]) <= {"low", "up"}


def test_lists_with_categories():
    hole = float("nan")
    rows = [["red", 1.0], [hole, 2.0], ["blue", hole], ["red", 3.5], ["blue", 2.25]] * 10
    imputer = TMMImputer(categorical_features=[0], steps=20, random_state=0)
    filled = imputer.fit_transform(rows)
    assert imputer.model_.categories == [2, 0]
    assert set(filled[:, 0]) == {"red", "blue"} and all(type(x) is float for x in filled[:, 1])
    assert filled[[0, 3, 4]].tolist() == [rows[0], rows[3], rows[4]]
    assert (imputer.transform(np.array(rows)) == filled).all()
    objects = clone(imputer).fit_transform(np.array(rows, dtype=object))
    assert (objects == filled).all()


def test_categories_by_name_of_column():
    frame = pd.DataFrame({"a": [1.0, 2.0, 1.0, np.nan] * 10, "b": np.arange(40.0)})
    assert TMMDensity(categorical_features=["a"], steps=5).fit(frame).model_.categories == [2, 0]
    assert TMMDensity(categorical_features=None, steps=5).fit(frame).model_.categories == [0, 0]


def test_the_imputer_in_float32_and_as_a_frame():
    X = np.random.RandomState(0).normal(size=(60, 3)).astype(np.float32)
    X[::4, 1] = np.nan
    imputer = TMMImputer(steps=20, random_state=0).fit(X)
    assert imputer.transform(X).dtype == np.float32
    shown = imputer.set_output(transform="pandas").transform(X)
    assert list(shown.columns) == ["x0", "x1", "x2"] and not shown.isna().any().any()


def dated(kind, rows=200):
    """Days of 2024 with holes, and a column that follows them, in one of several types."""
    random = np.random.RandomState(0)
    start = pd.Timestamp("2024-01-01")
    hours = random.randint(24 * 100, size=rows)
    days = pd.Series(start + pd.to_timedelta(hours, unit="h"))
    late = hours / 24 + random.normal(size=rows)
    days[::5] = pd.NaT
    if kind == "midnights":
        days = days.dt.normalize()
    if kind in ("America/New_York", "Etc/GMT+5", "UTC+01:00"):
        days = days.dt.tz_localize("UTC").dt.tz_convert(kind)
    if kind == "span":
        days = days - start
    if kind == "objects":
        days = pd.Series([None if pd.isna(day) else day.date() for day in days], dtype=object)
    frame = pd.DataFrame({"day": days, "late": late})
    return pl.from_pandas(frame) if kind == "polars" else frame


ZONES = ["America/New_York", "Etc/GMT+5", "UTC+01:00"]


@pytest.mark.parametrize("kind", ["dates", "midnights", *ZONES, "span", "objects", "polars"])
def test_dates_are_days(kind):
    frame = dated(kind)
    model = TMMDensity(steps=150, random_state=0).fit(frame)
    assert model.model_.categories == [0, 0]
    filled = model.impute(frame)
    assert filled["day"].dtype == frame["day"].dtype
    before, after = frame["day"].to_list(), filled["day"].to_list()
    kept = [(a, b) for a, b in zip(before, after, strict=True) if not pd.isna(a)]
    assert len(kept) == 160 and all(a == b for a, b in kept)
    assert not any(pd.isna(day) for day in after)
    days = model.sample(500, random_state=0)[:, 0]
    if kind == "midnights":
        assert all(day == day.normalize() for day in after), "days have no time"
    usual = (0, 100) if kind == "span" else (19723, 19823)  # 2024-01-01 is day 19723
    assert ((days > usual[0] - 30) & (days < usual[1] + 30)).mean() > 0.99
    assert type(after[0]) is type(after[1])


@pytest.mark.parametrize("kind", ["dates", "midnights", "polars"])
def test_texts_of_dates_are_dates(kind):
    frame, is_polars = dated(kind), kind == "polars"
    form = "%Y-%m-%d" if kind == "midnights" else "%Y-%m-%dT%H:%M:%S"
    if is_polars:
        text = frame.with_columns(pl.col("day").dt.strftime(form))
    else:
        text = frame.assign(day=frame["day"].dt.strftime(form))
    model = TMMDensity(steps=30, random_state=0)
    exact = model.fit(frame).score_samples(frame)
    assert model.fit(text).model_.categories == [0, 0]
    np.testing.assert_array_equal(model.score_samples(text), exact)
    filled = model.impute(text)["day"].to_list()
    assert all(len(day) == (10 if kind == "midnights" else 19) for day in filled)


def test_other_texts_are_categories():
    days = ["2024-01-31", "2024-02-28", "2024-03-31", "2024-04-30"] * 5
    kinds = {
        "a": days,
        "b": [*days[:-1], "2024-04-31"],
        "c": [*days[:-1], "soon"],
        "d": ["20240131"] * 20,
    }
    frame = pd.DataFrame(kinds)
    model = TMMDensity(steps=5, random_state=0).fit(frame)
    assert model.model_.categories == [0, 5, 5, 1]
    chosen = TMMDensity(steps=5, random_state=0, categorical_features=["a"]).fit(frame)
    assert chosen.model_.categories == [4, 5, 5, 1]
    numbered = TMMDensity(steps=5, random_state=0).fit(frame.set_axis(range(4), axis=1))
    assert numbered.model_.categories == [4, 5, 5, 1]


def test_arrays_of_dates_are_days():
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")[:, None]
    a = TMMDensity(steps=20, random_state=0).fit(days).score_samples(days)
    numbers = np.arange(19723.0, 19783.0)[:, None]
    assert (a == TMMDensity(steps=20, random_state=0).fit(numbers).score_samples(numbers)).all()


def test_columns_that_cannot_be_numbers_are_named():
    rows = pl.DataFrame({"x": [1.0, 2.0], "list": [[1], [2]]})
    for frame in (rows, rows.to_pandas().map(lambda x: x if np.isscalar(x) else list(x))):
        with pytest.raises(TypeError, match="column 'list': expected numbers, dates or categories"):
            TMMDensity().fit(frame)
    mixed = np.array([[1, pd.Timestamp("2024-01-01")]] * 5, dtype=object)
    with pytest.raises(TypeError, match="column index 1: expected numbers"):
        TMMDensity().fit(mixed)


@pytest.mark.parametrize("make", ["pandas", "ordered", "polars"])
def test_declared_categories_have_a_probability(make):
    columns, _ = table()
    towns = ["Athens", "Bergen", "Cadiz", "Delft"]
    frame = pd.DataFrame(columns)
    if make == "polars":
        cells = pl.Series(columns["town"].tolist(), dtype=pl.Enum(towns))
        frame = pl.DataFrame({"height": columns["height"], "town": cells})
        never = pl.DataFrame(
            {"height": [170.0], "town": pl.Series(["Delft"], dtype=pl.Enum(towns))}
        )
    else:
        frame["town"] = pd.Categorical(frame["town"], towns, ordered=make == "ordered")
        never = frame.head(1).assign(town=pd.Categorical(["Delft"], towns))
    model = TMMDensity(steps=60, random_state=0).fit(frame)
    given = never.assign(town=None) if make != "polars" else never.with_columns(town=pl.lit(None))
    assert 4 in model.model_.categories
    rare = np.exp(model.log_conditional(never, given)[0])
    assert 1e-6 < rare < 0.1


def test_a_category_that_fit_did_not_know_is_an_error():
    frame, y = pandas_frame(town="str")
    model = TMMClassifier(steps=20, random_state=0).fit(frame, y)
    other = frame.head(3).assign(town=["Athens", None, "Essen"])
    wanted = "column 'town', row index 2: expected one of the categories 'Athens', .*, got 'Essen'"
    for ask in (model.predict_proba, model.score_samples, model.impute):
        with pytest.raises(ValueError, match=wanted):
            ask(other)
    model.set_params(unseen="missing")
    holes = other.assign(town=["Athens", None, None])
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(holes))
    with pytest.raises(ValueError, match="unseen: expected 'error' or 'missing', got 'ignore'"):
        model.set_params(unseen="ignore").predict(frame)
    codes = np.column_stack([np.arange(40.0), np.arange(40) % 3])
    numbered = TMMDensity(steps=5, categorical_features=[1]).fit(codes)
    with pytest.raises(ValueError, match="row index 0: expected .* '0', '1', '2', got '3'"):
        numbered.score_samples([[1.0, 3.0]])
