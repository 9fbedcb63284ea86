"""Labels, names, dates, bounds, files and columns alone, without a model."""

import os
import stat
import time
import warnings
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sumout import bounds, dates, files, labels, names
from sumout import columns as cells
from sumout.columns import Columns

NAN = float("nan")


def says(words, kind=ValueError):
    """Expects an error with exactly these words."""

    class Says:
        def __enter__(self):
            return self

        def __exit__(self, found, error, _):
            assert found is not None, f"no error, where this one was expected: {words}"
            assert issubclass(found, kind), found
            assert str(error) == words
            return True

    return Says()


def warned(work):
    """What it returns, and the words of its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = work()
    return result, [str(one.message) for one in found]


def series(values, **options):
    return nw.from_native(pd.Series(values, name="a", **options), series_only=True)


def series_of_polars(values, dtype=None):
    return nw.from_native(pl.Series("a", values, dtype), series_only=True)


def same(found, expected):
    """Equal arrays, of the same kind, NaN in the same places."""
    expected = np.asarray(expected) if not isinstance(expected, np.ndarray) else expected
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    np.testing.assert_array_equal(found, expected)


# Names.


def test_names_of_values():
    assert [names.name_of(v) for v in (3, 3.0, "3", np.float32(3), 2.5)] == ["3"] * 4 + ["2.5"]
    assert [names.name_of(v) for v in (True, np.float64(1e20), NAN, np.inf)] == [
        "True",
        "100000000000000000000",
        "nan",
        "inf",
    ]


def test_values_of_names():
    same(names.values_of(["3", "-1", "20"]), np.array([3, -1, 20], dtype=np.int64))
    for words in (["01", "1"], ["a", "1"], ["1", "99999999999999999999"], ["1 ", "2"], ["+1"]):
        same(names.values_of(words), np.array(words, dtype=object))
    assert names.values_of([]).tolist() == []
    same(names.categories_of(["True", "False"]), np.array([True, False], dtype=object))
    same(names.categories_of(["True"]), np.array([True], dtype=object))
    same(names.categories_of(["True", "no"]), np.array(["True", "no"], dtype=object))
    same(names.categories_of(["1", "0"]), np.array([1, 0], dtype=np.int64))
    assert len(names.categories_of([])) == 0
    same(names.classes_of(["False", "True"]), np.array([False, True]))
    same(names.classes_of(["True"]), np.array([True]))
    same(names.classes_of(["True", "no"]), np.array(["True", "no"], dtype=object))
    same(names.classes_of(["0", "1"]), np.array([0, 1], dtype=np.int64))


def test_what_a_hole_is():
    holes = [None, NAN, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
    assert all(map(names.is_hole, holes))
    assert not any(map(names.is_hole, [0, "", "NA", False, np.float64(1), np.bool_(False), 0j]))


def test_masked_cells():
    mask = [False, True, False]
    same(names.unmasked(np.ma.masked_array([1, 2, 3], mask)), [1.0, NAN, 3.0])
    same(names.unmasked(np.ma.masked_array([True, False], mask[:2])), [1.0, NAN])
    small = np.ma.masked_array(np.array([1.5, 2, 3], np.float32), mask)
    same(names.unmasked(small), [1.5, NAN, 3.0])
    words = names.unmasked(np.ma.masked_array(["a", "b", "c"], mask))
    assert words.dtype == object and words.tolist() == ["a", None, "c"]
    for kind in ("datetime64[D]", "timedelta64[h]"):
        days = np.array([1, 2, 3], kind)
        found = names.unmasked(np.ma.masked_array(days, mask))
        assert np.isnat(found).tolist() == mask and found.dtype == days.dtype
        assert not np.isnat(days).any()
    assert not np.isnan(small.data).any(), "what was given stays"
    same(names.unmasked(np.ma.masked_array([1.0, 2.0])), [1.0, 2.0])


def test_plain_values():
    assert type(names.plain(np.int64(3))) is int and type(names.plain(np.str_("a"))) is str
    assert names.plain("a") == "a" and names.plain(None) is None


def test_names_of_columns():
    assert names.column_name(["a", "b"], 1) == "column 'b'"
    assert names.column_name(None, 1) == names.column_name([], 1) == "column index 1"


# Labels.


def test_labels_and_which_are_known():
    y, known = labels.validate([1, 2, 1], None)
    assert y.tolist() == [1, 2, 1] and known.tolist() == [True] * 3
    y, known = labels.validate(np.array([1.0, NAN, 2.0]), np.nan)
    assert known.tolist() == [True, False, True]
    y, known = labels.validate([0, -1, 1], -1)
    assert y.tolist() == [0, -1, 1] and known.tolist() == [True, False, True]
    given = np.array([None, "b", "?", "c", pd.NA], dtype=object)
    y, known = labels.validate(given, "?")
    assert known.tolist() == [False, True, False, True, False]
    assert y.tolist() == ["b", "b", "b", "c", "b"], "holes get a label of the same type"
    assert given[0] is None and given[2] == "?", "what the caller gave stays as it was"
    y, known = labels.validate(np.ma.masked_array([1, 2, 3], [0, 1, 0]), None)
    assert known.tolist() == [True, False, True] and y[0] == 1.0 and np.isnan(y[1])
    y, known = labels.validate(np.ma.masked_array(["a", "b", "a"], [0, 1, 0]), None)
    assert known.tolist() == [True, False, True] and y.dtype == object
    y, _ = labels.validate(np.ma.masked_array([True, False]), None)
    assert y.tolist() == [1.0, 0.0]


def test_a_column_of_labels_is_said():
    (y, _), words = warned(lambda: labels.validate(np.array([[1], [2]]), None))
    assert y.tolist() == [1, 2] and len(words) == 1 and "column-vector" in words[0]


def test_labels_that_are_refused():
    with says("Input y contains NaN only: expected at least one label"):
        labels.validate([NAN, NAN], np.nan)
    y, known = labels.validate([NAN, NAN], np.nan, np.array([0, 1]))
    assert not known.any(), "where the classes are known, a part may have no label"
    with says("Input y contains infinity: expected classes, or NaN for a missing label"):
        labels.validate([1.0, np.inf], None)
    with pytest.raises(ValueError, match="Unknown label type"):
        labels.validate([0.5, 1.25, NAN], np.nan)
    assert labels.validate([0.5, 1.0], 0.5)[1].tolist() == [False, True], "only what is known"


def test_minus_one_is_asked_about():
    words = (
        "y: -1 is a class here; missing_label=-1 makes it a missing label, and "
        "missing_label=np.nan silences this warning"
    )
    check = labels.validate
    assert warned(lambda: check([-1, 0, 1], None))[1] == [words]
    assert warned(lambda: check([-1.0, 5.0, 1.0], None))[1] == [words]
    quiet = [[-1, 1], [-1, -1, 0], [-2, -1, 0], [0, 1, 2], ["-1", "0", "1"], [-1, -0.5 - 0.5, 7]]
    assert [warned(lambda y=y: check(y, None))[1] for y in quiet] == [[]] * len(quiet)
    assert warned(lambda: check([-1, 0, 1], np.nan))[1] == []
    assert warned(lambda: labels.warn_of_minus_one(np.array([-1.0, -0.5, 7.0])))[1] == []
    assert warned(lambda: check([-1, 0, 1], -1))[1] == []
    assert warned(lambda: check([-1, 0, 1], None, np.array([-1, 0, 1])))[1] == []


def test_labels_as_indices():
    known = np.array([True, False, True, True])
    found = labels.encode(np.array(["b", "?", "a", "b"]), known, np.array(["a", "b"]))
    same(found, np.array([1, -1, 0, 1], dtype=np.int64))
    found = labels.encode(np.array([2.0, NAN, 1.0, 2.0]), known, np.array([1, 2]))
    assert found.tolist() == [1, -1, 0, 1]
    truth = np.array([False, True])
    for given in ([True, False], ["True", "False"], [1, 0]):
        assert labels.encode(np.array(given), known[:1].repeat(2), truth).tolist() == [1, 0]
    with says("y, row index 0: expected one of the classes [False, True], got 'yes'"):
        labels.encode(np.array(["yes"]), known[:1], truth)
    with says("y, row index 2: expected one of the classes [1, 2], got 3"):
        labels.encode(np.array([1, 9, 3]), np.array([True, False, True]), np.array([1, 2]))


# Dates.

NOON = 20_484.5  # 2026-01-31 12:00


def test_days_of_values(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # where the program runs changes nothing
    time.tzset()
    days = dates.days_of_value
    assert days(date(1970, 1, 2)) == 1 and days(date(2026, 1, 31)) == 20_484
    assert days(datetime(2026, 1, 31, 12)) == NOON
    assert days(datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))) == NOON
    assert days(timedelta(hours=36)) == 1.5
    assert days(np.datetime64("2026-01-31T12:00:00")) == NOON
    assert days(np.timedelta64(36, "h")) == 1.5
    assert np.isnan(days(np.datetime64("NaT")))
    same(dates.days_of_array(np.array(["1970-01-03", "NaT"], "datetime64[D]")), [2.0, NAN])
    same(dates.days_of_array(np.array([12, "NaT"], "timedelta64[h]")), [0.5, NAN])
    monkeypatch.undo()
    time.tzset()
    assert dates.is_date(date.today()) and dates.is_date(timedelta(1)) and not dates.is_date("x")


def test_days_of_texts():
    for text in (
        "2026-01-31 12:00",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00.0",
        " 2026-01-31 12:00:00Z ",
        "2026-01-31T12:00:00z",
        "2026-01-31T14:00:00+02:00",
    ):
        assert dates.days_of_text(text) == NOON and dates.is_iso_date(text), text
    assert dates.days_of_text("2026-01-31") == 20_484
    for text in ("2026-1-31", "31.01.2026", "2026-01-31T12", "2026-01-31x", "", 5, None):
        assert not dates.is_iso_date(text), text
    for make in (series, series_of_polars):
        found = dates.days_of_texts(make(["2026-01-31", None, "1970-01-01 06:00"]))
        same(found, [20_484.0, NAN, 0.25])
        words = "column 'a', row index 1: expected a date such as 2026-01-31, got 'soon'"
        with says(words):
            dates.days_of_texts(make(["2026-01-31", "soon"]))
        assert dates.are_texts_of_dates(make(["2026-01-31", "2026-02-01"]))
        assert not dates.are_texts_of_dates(make(["2026-01-31", "soon"]))
        assert not dates.are_texts_of_dates(make(["2026-04-30", "2026-04-31"]))
        assert not dates.are_texts_of_dates(make([1, 2]))
    assert dates.are_texts_of_dates(series_of_polars(["2026-01-31", None]))
    assert not dates.are_texts_of_dates(series_of_polars([None, None], pl.String))


def test_days_of_series():
    times = [datetime(2026, 1, 31, 12), None, datetime(1970, 1, 1)]
    for cells_ in (series(times), series_of_polars(times)):
        assert dates.are_dates(cells_)
        same(dates.days_of_series(cells_), [NOON, NAN, 0.0])
    spans = [timedelta(days=2, hours=6), None]
    for cells_ in (series(spans), series_of_polars(spans)):
        assert dates.are_dates(cells_)
        same(dates.days_of_series(cells_), [2.25, NAN])
    days = series_of_polars([date(1970, 1, 3), None])
    assert dates.are_dates(days) and not dates.are_dates(series([1.0]))
    same(dates.days_of_series(days), [2.0, NAN])


ZONES = ["America/New_York", "Etc/GMT+5", "UTC+01:00", "UTC-05:30", "UTC"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("zone", [*ZONES, timezone(timedelta(seconds=3690))])
def test_times_of_any_zone(zone, unit):
    times = pd.Series(pd.to_datetime(["2026-01-31T12:00Z", None])).astype(
        f"datetime64[{unit}, UTC]"
    )
    given = pd.DataFrame({"at": times.dt.tz_convert(zone)})
    learned = Columns.learn(given, 1, None)
    assert learned.counts == [0] and learned.dates == {"at": "time"}
    same(learned.encode(given, "error"), np.array([[NOON], [NAN]], dtype=np.float32))
    found = learned.fill(given, np.full((2, 1), NOON + 1))["at"]
    assert found.dtype == given["at"].dtype and found[0] == given["at"][0]
    assert found[1] == pd.Timestamp("2026-02-01T12:00Z")


def test_times_of_zones_in_frames_of_other_kinds():
    times = [datetime(2026, 1, 31, 12, tzinfo=timezone.utc), None]
    frames = [
        pa.table({"at": pa.array(times, pa.timestamp("us", "+01:00"))}),
        pl.DataFrame({"at": pl.Series(times, dtype=pl.Datetime("ms", "America/New_York"))}),
        pd.DataFrame({"at": pd.array(times, pd.ArrowDtype(pa.timestamp("s", "Etc/GMT+5")))}),
    ]
    for given in frames:
        learned = Columns.learn(given, 1, None)
        found = nw.from_native(learned.fill(given, np.full((2, 1), NOON + 1)))
        assert found.schema == nw.from_native(given).schema
        assert found["at"].to_list() == [times[0], times[0] + timedelta(days=1)]
        if isinstance(given, pd.DataFrame):
            assert found.to_native()["at"].dtype == given["at"].dtype


def test_texts_of_days():
    assert dates.style_of_days(np.array([1.0, NAN, -3.0])) == "day"
    assert dates.style_of_days(np.array([1.0, NAN, 2.5])) == "time"
    assert dates.text_of_days(20_484.9, "day") == "2026-01-31"
    assert dates.text_of_days(NOON, "time") == "2026-01-31T12:00:00"
    assert dates.text_of_days(0.4 / 86_400, "time") == "1970-01-01T00:00:00"
    assert dates.text_of_days(0.6 / 86_400, "time") == "1970-01-01T00:00:01"
    assert dates.text_of_days(-1e9, "day") == "0001-01-01"
    assert dates.text_of_days(1e9, "day") == "9999-12-31"


def test_dates_of_days(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # where the program runs changes nothing
    time.tzset()
    of, like = dates.date_of_days, dates.date_of_days_like
    zone = ZoneInfo("Europe/Athens")
    assert of(1.5, series([timedelta(1)])) == timedelta(hours=36)
    assert of(NOON, series_of_polars([date(2000, 1, 1)])) == date(2026, 1, 31)
    assert type(of(NOON, series_of_polars([date(2000, 1, 1)]))) is date
    assert of(NOON, series([datetime(2000, 1, 1)])) == datetime(2026, 1, 31, 12)
    here = of(NOON, series([datetime(2000, 1, 1)]).dt.replace_time_zone("Europe/Athens"))
    assert here == datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    assert like(1.5, timedelta(1)) == like(1.5, np.timedelta64(1, "D")) == timedelta(hours=36)
    assert like(NOON, date(2000, 1, 1)) == date(2026, 1, 31)
    assert like(NOON, datetime(2000, 1, 1)) == datetime(2026, 1, 31, 12)
    assert like(NOON, np.datetime64("2000-01-01T00:00")) == datetime(2026, 1, 31, 12)
    there = like(NOON, datetime(2000, 1, 1, tzinfo=zone))
    assert (there.hour, there.tzinfo) == (14, zone)
    monkeypatch.undo()
    time.tzset()


# Bounds.

ROOM = (["share", "beds", "town"], [0, 0, 3])


def test_ranges():
    of = bounds.ranges_of
    assert of(None, None, *ROOM) is None and of({}, [], *ROOM) is None
    assert of({"share": (0, 100)}, None, *ROOM) == [{"low": 0.0, "high": 100.0}, {}, {}]
    assert of({1: (0, None)}, ["beds"], *ROOM) == [
        {},
        {"low": 0.0, "high": None, "whole": True},
        {},
    ]
    assert of({np.int64(1): (None, 9)}, None, *ROOM) == [{}, {"low": None, "high": 9.0}, {}]
    assert of(None, [-3, np.int64(1)], *ROOM) == [{"whole": True}, {"whole": True}, {}]
    assert of(None, np.array([False, True, False]), *ROOM) == [{}, {"whole": True}, {}]
    assert of(None, np.array([[0], [1]]), [], [0, 0]) == [{"whole": True}, {"whole": True}]


def test_ranges_that_are_refused():
    columns = "expected names or numbers of columns that hold numbers, got"
    for column in (2, -1, 3, -4, "town", "street", 1.0, True, None):
        with says(f"bounds: {columns} {column!r}"):
            bounds.ranges_of({column: (0, 1)}, None, *ROOM)
    with says(f"whole: {columns} 'one'"):
        bounds.ranges_of(None, ["one"], ["one"], [1])
    with says(f"whole: {columns} True"):  # a mask has one entry for each column
        bounds.ranges_of(None, np.array([True]), *ROOM)
    for pair in ((0, 1, 2), (1,), (2, 1), (1, 1), (None, None), (0, np.inf), (NAN, 1), 5, "ab"):
        words = (
            f"bounds: expected (low, high) for column 'beds', with None for no bound, got {pair!r}"
        )
        with says(words):
            bounds.ranges_of({"beds": pair}, None, *ROOM)
    assert bounds.checked_pair("beds", ("1", 2)) == (1.0, 2.0)
    assert bounds.checked_pair("beds", (None, 2)) == (None, 2.0)


# Files.


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path, steps = tmp_path / "a.sumout", []

    def spied(name):
        real = getattr(os, name)

        def step(*args, **options):
            if name == "fsync":
                mode = os.fstat(args[0]).st_mode
                steps.append("folder" if stat.S_ISDIR(mode) else os.fstat(args[0]).st_size)
            elif name == "replace":
                steps.append((os.path.basename(args[0])[:10], os.path.dirname(args[0]), args[1]))
            return real(*args, **options)

        monkeypatch.setattr(os, name, step)

    spied("fsync"), spied("replace")
    files.write_atomically(path, b"words")
    assert path.read_bytes() == b"words" and os.listdir(tmp_path) == ["a.sumout"]
    here = str(tmp_path.resolve())
    assert steps == [5, (".a.sumout.", here, path.resolve()), "folder"]
    mask = os.umask(0o027)
    try:
        assert files.umask() == 0o027 == files.umask(), "asking leaves it as it was"
        os.umask(0)
        files.write_atomically(path, b"words")
        files.write_atomically(tmp_path / "c.sumout", b"c")
        assert (tmp_path / "c.sumout").stat().st_mode & 0o7777 == 0o666
        (tmp_path / "c.sumout").unlink()
        os.umask(0o027)
        files.write_atomically(tmp_path / "b.sumout", b"b")
        assert (tmp_path / "b.sumout").stat().st_mode & 0o7777 == 0o640
        path.chmod(0o4705)
        files.write_atomically(path, b"more")
        assert path.stat().st_mode & 0o7777 == 0o705
    finally:
        os.umask(mask)
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        files.write_atomically(path, b"lost")
    assert path.read_bytes() == b"more"
    assert sorted(os.listdir(tmp_path)) == ["a.sumout", "b.sumout"], "nothing is left beside it"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    files.write_atomically(tmp_path / "pipe", b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)


# Columns.


def frame():
    return pd.DataFrame(
        {
            "size": [1.5, NAN, 2.0],
            "town": ["b", None, "a"],
            "open": [True, False, True],
            "day": ["2026-01-31", "2026-02-01", "2026-02-02"],
            "at": [datetime(2026, 1, 31, 12), pd.NaT, datetime(1970, 1, 1)],
            "long": [timedelta(1), timedelta(2), timedelta(3)],
        }
    )


@pytest.mark.parametrize("kind", [lambda f: f, pl.from_pandas])
def test_what_columns_learn(kind):
    learned = Columns.learn(kind(frame()), 6, None)
    assert learned.counts == [0, 2, 2, 0, 0, 0]
    assert learned.names == ["size", "town", "open", "day", "at", "long"]
    assert learned.dates == {"day": "day", "at": "time"}
    assert learned.numeric() == [0, 3, 4, 5] and not learned.plain
    same(learned.categories[1], np.array(["a", "b"], dtype=object))
    assert learned.about() == {
        "columns": learned.names,
        "categories": [[], ["a", "b"], ["False", "True"], [], [], []],
        "training": {"dates": {"day": "day", "at": "time"}},
    }
    codes = learned.encode(kind(frame()), "error")
    expected = [
        [1.5, 1, 1, 20_484, NOON, 1],
        [NAN, NAN, 0, 20_485, NAN, 2],
        [2, 0, 1, 20_486, 0, 3],
    ]
    same(codes, np.array(expected, dtype=np.float32))


def test_columns_of_arrays():
    learned = Columns.learn(np.array([[1.0, 2.0], [3.0, 4.0]]), 2, None)
    assert (learned.names, learned.dates, learned.counts) == ([], {}, [0, 0])
    assert learned.plain and learned.about() == {} and learned.numeric() == [0, 1]
    learned = Columns.learn(np.array([[1.0, 7.0], [3.0, 5.0]]), 2, [1])
    assert (learned.names, learned.counts) == (["x0", "x1"], [0, 2])
    same(learned.categories[1], np.array([5.0, 7.0]))
    codes = learned.encode(np.array([[2.0, 5.0], [NAN, 7.0]]), "error")
    same(codes, np.array([[2, 0], [NAN, 1]], dtype=np.float32))
    assert learned.about() == {"columns": ["x0", "x1"], "categories": [[], ["5", "7"]]}
    some = pd.DataFrame({"a": [1.0], 5: [2.0]})
    assert Columns.learn(some, 2, None).names == [], "names only where all are text"


def test_columns_of_a_model_file():
    about = {
        "columns": ["a", "b"],
        "categories": [[], ["x", "y"]],
        "training": {"dates": {"a": "day"}},
    }
    columns = Columns.of_model([0, 2], about)
    assert columns.names == ["a", "b"] and columns.dates == {"a": "day"}
    assert columns.categories[0] is None and columns.categories[1].tolist() == ["x", "y"]
    for training in (None, {}, {"dates": None}, "words"):
        plain = {"columns": [], "categories": [], "training": training}
        columns = Columns.of_model([0, 3], plain)
        assert columns.dates == {} and columns.categories[1].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="zip"):
        Columns.of_model([0], about)


def test_which_columns_are_categories():
    of = cells.categorical_mask
    given = nw.from_native(frame())
    found = [False, True, True, False, False, False]
    for features in (None, "from_dtype"):
        assert of(given, 6, features).tolist() == found
    assert of(given, 6, ["size"]).tolist() == [True] + found[1:]
    assert of(given, 6, [-6, 4]).tolist() == [True, True, True, False, True, False]
    assert of(given, 6, np.array([True] + 5 * [False])).tolist() == [True] + found[1:]
    assert of(None, 2, [[1]]).tolist() == [False, True]
    same(of(None, 2, [1, 0]), np.array([True, True])), "numbers of columns, not a mask"
    for feature in ("street", 6, -7, 1.0, None):
        words = "categorical_features: expected 'from_dtype', None, a mask, or names or numbers of "
        with says(words + f"the 6 columns, got {feature!r}"):
            of(given, 6, np.array([feature], dtype=object))
    with pytest.raises(ValueError, match="the 2 columns, got 'a'"):
        of(None, 2, ["a"])
    without_names = nw.from_native(pd.DataFrame({0: ["2026-01-31"]}))
    assert of(without_names, 1, None).tolist() == [True], "dates are found by the name of a column"


def test_objects():
    of = cells.is_categorical
    assert not of(series([1, 2.5, None], dtype=object)) and not of(
        series([Decimal(1)], dtype=object)
    )
    assert not of(series([date(2026, 1, 31), None, timedelta(1)], dtype=object))
    assert of(series([1, "a"], dtype=object)) and of(series([1, date.today()], dtype=object))
    assert of(series([None, None], dtype=object)) and of(series([True, None], dtype=object))
    assert of(series(["a"], dtype="category")) and of(series([True])) and not of(series([1]))
    assert of(series_of_polars(["a"], pl.Enum(["a"]))) and of(series_of_polars(["a"]))
    assert cells.is_number(1) and cells.is_number(np.float32(1)) and cells.is_number(Decimal(1))
    assert not any(map(cells.is_number, (True, np.bool_(True), "1", None)))


@pytest.mark.parametrize("hole", [None, NAN, pd.NA])
@pytest.mark.parametrize("start", [0, 100])
def test_objects_after_many_holes(hole, start):
    kinds = {
        "float": [0.5, 1.5],
        "decimal": [Decimal(1), Decimal(2)],
        "date": [date(2026, 1, 31), date(1970, 1, 2)],
        "span": [timedelta(1), timedelta(2)],
        "flag": [True, False],
        "day": ["2026-01-31", "1970-01-02"],
        "word": ["x", "y"],
        "mixed": ["x", 2],
    }
    columns = {name: [hole] * start + values + [hole] for name, values in kinds.items()}
    given = pd.DataFrame({name: pd.Series(of, dtype=object) for name, of in columns.items()})
    learned = Columns.learn(given, 8, None)
    assert learned.counts == [0, 0, 0, 0, 2, 0, 2, 2]
    assert learned.dates == {"date": "day", "day": "day"}
    codes = [[0.5, 1, 20_484, 1, 1, 20_484, 0, 1], [1.5, 2, 1, 2, 0, 1, 1, 0]]
    same(learned.encode(given[start:-1], "error"), np.array(codes, dtype=np.float32))
    assert np.isnan(learned.encode(given, "error")[:start]).all()
    found = learned.fill(given, np.tile(np.array(codes[1], dtype=float), (len(given), 1)))
    assert found.iloc[start].tolist() == given.iloc[start].tolist(), "what is there stays"
    assert found.iloc[-1].tolist() == [
        *(1.5, 2.0, date(1970, 1, 2), timedelta(2), False),
        *("1970-01-02", "y", "2"),
    ]
    assert (found.dtypes == [float, float] + [object] * 6).all()
    holes = pd.DataFrame({"float": pd.Series([hole, hole], dtype=object)})
    assert np.isnan(Columns([None], ["float"]).encode(holes, "error")).all()


def test_how_dates_are_written():
    given = {
        "text": ["2026-01-31 12:00", "2026-02-01"],
        "span": [timedelta(1), timedelta(2)],
        "days": np.array([date(2026, 1, 31), None], dtype=object),
        "spans": np.array([timedelta(1), None], dtype=object),
        "number": [1.0, 2.0],
    }
    found = cells.date_styles(nw.from_native(pd.DataFrame(given)), [0, 1, 2, 3, 4])
    assert found == {"text": "time", "days": "day"}
    assert cells.date_styles(nw.from_native(pd.DataFrame(given)), [1, 2]) == {"days": "day"}


def test_outliers():
    near = np.arange(100.0)
    assert cells.outlier_of(near) is None and cells.outlier_of(near[:0]) is None
    low, middle, high = 25.0, 50.0, 75.0  # of 101 numbers
    edge = middle + 1000 * (high - low)
    numbers = np.append(near, edge)
    assert cells.outlier_of(numbers) is None
    numbers[-1] = edge + 1
    assert cells.outlier_of(numbers) == edge + 1
    assert cells.outlier_of(numbers / 1e6) == (edge + 1) / 1e6
    assert cells.outlier_of(np.append(-numbers[::-1], 0.5)) == -edge - 1
    assert cells.outlier_of(np.array([0.0] * 99 + [1e9])) is None, "one value, and one that is rare"
    assert cells.outlier_of(np.array([1.0, 2.0])) is None


def test_warnings_of_numbers():
    def words(given):
        columns = Columns.learn(given, np.shape(given)[1], None)
        return warned(lambda: columns.warn_of_numbers(given))[1]

    few = pd.DataFrame({"a": [NAN, NAN], "b": [0.0, 1.0], "c": ["x", "y"]})
    hole = "it has no number in the training rows; a hole in it is filled with 0"
    assert words(few) == [f"column 'a': {hole}"]
    assert words(np.array([[1.0, NAN], [2.0, NAN]])) == [f"column index 1: {hole}"]
    far = np.array([[1e9], [1e9 + 2]])
    assert words(far) == [
        "column index 0: its values lie near 1e+09 and differ by about 1, which float32 cannot "
        "represent well: subtract an offset first"
    ]
    edge = 0.01 * 2.0**24
    assert words(np.array([[edge - 1], [edge + 1]])) != [], "a step is 0.01 of the spread, and more"
    assert words(np.array([[edge - 4], [edge - 2]])) == []
    assert words(np.array([[1e9], [1e9]])) == [], "one value is not a spread"
    spoiled = np.append(np.arange(100.0), 1e6)[:, None]
    assert words(spoiled) == [
        "column index 0: 1e+06 is far from the rest and spoils the scale; if it stands for a missing "
        "value, make it NaN"
    ]


def test_categories_that_fitting_did_not_know():
    learned = Columns.learn(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), 2, None)
    rows = pd.DataFrame({"a": [1.0, NAN, 3.0], "b": ["y", None, "z"]})
    with says(
        "column 'b', row index 2: expected one of the categories 'x', 'y', got 'z'; "
        "unseen='missing' treats such a cell as missing"
    ):
        learned.encode(rows, "error")
    expected = [[1, 1], [NAN, NAN], [3, NAN]]
    same(learned.encode(rows, "missing"), np.array(expected, dtype=np.float32))
    with says("unseen: expected 'error' or 'missing', got 'ignore'"):
        learned.encode(rows, "ignore")
    many = np.array([str(i) for i in range(12)], dtype=object)
    listed = ", ".join(f"'{i}'" for i in range(10))
    assert cells.expected_categories(many[:10]) == f"one of the categories {listed}"
    assert cells.expected_categories(many) == f"one of the categories {listed} and 2 more"
    eleven = f"one of the categories {listed} and 1 more"
    assert cells.expected_categories(many[:11]) == eleven
    nothing = "a missing value, for training saw no category here"
    assert cells.expected_categories(many[:0]) == nothing
    huge = Columns.learn(np.array([[1.0]]), 1, None)
    found, words = warned(lambda: huge.encode(np.array([[1e300]]), "error"))
    assert np.isinf(found).all() and words == []


def test_codes():
    of = cells.category_codes
    known = np.array(["a", "b"], dtype=object)
    np.testing.assert_array_equal(of(series(["b", "a", None, "c"]), known), [1, 0, NAN, NAN])
    np.testing.assert_array_equal(of(np.array([7.0, 5.0, NAN]), np.array([5, 7])), [1, 0, NAN])
    np.testing.assert_array_equal(of(series([NAN]), np.array(["nan"], dtype=object)), [NAN])
    truth = np.array([False, True], dtype=object)
    assert of(series([True, False]), truth) == of(series([1, 0]), truth) == [1, 0]
    assert of(series(["True", "False"]), truth) == [1, 0]
    reverse = np.array([True, False], dtype=object)
    assert of(series([1, 0]), reverse) == [0, 1]
    with says(
        "column 'a': expected numbers, dates or categories: unhashable type: 'list'", TypeError
    ):
        of(series([["x"], ["y"]]), known)
    column = np.array([["x"], 1], dtype=object)
    with says(
        "a column: expected numbers, dates or categories: unhashable type: 'list'", TypeError
    ):
        of(column, known)


def test_distinct():
    of = cells.distinct
    same(of(series([2, 3, 2])), np.array([2, 3]))
    same(of(series([10, 9])), np.array([9, 10]))
    same(of(np.array([2.5, NAN, 1.5])), np.array([1.5, 2.5]))
    same(of(series(["b", None, "a"])), np.array(["a", "b"], dtype=object))
    same(of(series([1, 1])), np.array([0, 1])), "0 is possible, seen or not"
    same(of(series([True, True])), np.array([False, True], dtype=object))
    same(of(np.array([0.0])), np.array([0.0, 1.0]))
    same(of(series(["a", 10, 9], dtype=object)), np.array([10, 9, "a"], dtype=object))
    declared = pd.Categorical(["b"], ["a", "b", "c"])
    same(of(series(declared)), np.array(["a", "b", "c"], dtype=object))
    same(of(series_of_polars(["b"], pl.Enum(["a", "b"]))), np.array(["a", "b"], dtype=object))
    same(of(series_of_polars(["b"], pl.Categorical)), np.array(["b"], dtype=object))
    assert names.declared_categories(np.array([1.0])) == []
    assert len(of(series([None, None], dtype=object))) == 0


def test_numbers_of_cells():
    same(cells.as_floats(series([1, 2])), [1.0, 2.0])
    same(cells.as_floats(series_of_polars([1, None])), [1.0, NAN])
    given = series([1, None, "2.5", date(1970, 1, 2)], dtype=object)
    same(cells.as_floats(given), [1.0, NAN, 2.5, 1.0])
    array = np.array([1, 2])
    assert cells.as_floats(array) is array
    same(cells.as_floats(series([timedelta(hours=12)])), [0.5])
    with pytest.raises(TypeError, match="column 'a': expected numbers, dates or categories, got "):
        cells.as_floats(series([[1], [2]]))
    with pytest.raises(TypeError, match="Object: float\\(\\) argument must be"):
        cells.as_floats(series([[1], None], dtype=object))


def test_decoding():
    numbers = Columns([None, np.array([5, 7])], ["a", "b"])
    codes = np.array([[1.5, 1], [NAN, NAN]], dtype=np.float32)
    same(numbers.decode(codes), np.array([[1.5, 7.0], [NAN, NAN]]))
    words = Columns(
        [None, np.array(["x", "y"], dtype=object), np.array([], dtype=object)], list("abc")
    )
    found = words.decode(np.array([[1.5, 1, 0], [2, NAN, 0]], dtype=np.float32))
    assert found.dtype == object and found[0, :2].tolist() == [1.5, "y"]
    assert np.isnan(found[0, 2]) and np.isnan(found[1, 1]) and found[1, 0] == 2


@pytest.mark.parametrize("kind", [lambda f: f, pl.from_pandas])
def test_filling_a_frame(kind):
    given = frame()
    learned = Columns.learn(kind(given), 6, None)
    holes = given.mask(np.arange(3)[:, None] == np.ones(6))
    if not isinstance(kind(given), pd.DataFrame):
        holes["open"] = holes["open"].astype("boolean")
    filled = np.tile([7.5, 1, 1, 20_484.7, NOON, 1.5], (3, 1)).astype(np.float64)
    found = nw.from_native(learned.fill(kind(holes), filled))
    assert [found[name][0] for name in found.columns] == [
        nw.from_native(kind(given))[name][0] for name in found.columns
    ], "what is there stays"
    assert [found[name][1] for name in ("size", "town", "open", "day")] == [
        7.5,
        "b",
        True,
        "2026-01-31",
    ]
    assert found["at"][1] == datetime(2026, 1, 31, 12) and found["long"][1] == timedelta(hours=36)
    assert found["at"].dtype == nw.Datetime and found["long"].dtype == nw.Duration
    assert found["day"].dtype == nw.String and found["size"].dtype == nw.Float64
    whole = kind(given.drop(columns="at"))
    again = Columns.learn(whole, 5, None).fill(
        whole.copy() if kind(given) is given else whole, filled
    )
    assert type(again) is type(whole)


def test_filling_columns_of_other_types():
    nothing = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([None, None], dtype=object)})
    learned = Columns.learn(nothing, 2, None)
    found = learned.fill(nothing, np.zeros((2, 2)))
    assert found["b"].isna().all(), "where nothing was observed, nothing is filled in"
    turned = nothing[["b", "a"]].assign(a=[1.0, NAN])
    found = Columns.learn(turned, 2, None).fill(turned, np.full((2, 2), 3.0))
    assert found["a"].tolist() == [1.0, 3.0]
    midnight = pd.DataFrame({"d": pd.to_datetime(["2026-01-31", None])})
    found = Columns.learn(midnight, 1, None).fill(midnight, np.full((2, 1), 20_485.9))
    assert found["d"].tolist() == [pd.Timestamp("2026-01-31"), pd.Timestamp("2026-02-01")]
    days = pd.DataFrame({"d": np.array([date(2026, 1, 31), None], dtype=object)})
    found = Columns.learn(days, 1, None).fill(days, np.full((2, 1), 20_485.9))
    assert found["d"].tolist() == [date(2026, 1, 31), date(2026, 2, 1)]
    whole = pl.DataFrame({"n": [1, None]})
    found = Columns.learn(whole, 1, None).fill(whole, np.full((2, 1), 2.5))
    assert found["n"].to_list() == [1.0, 2.5] and found["n"].dtype == pl.Float64
    codes = pl.DataFrame({"n": [5, None]})
    learned = Columns([np.array([5, 7])], ["n"])
    found = learned.fill(codes, np.array([[0.0], [1.0]]))
    assert found["n"].to_list() == [5, 7] and found["n"].dtype == pl.Int64
    small = pl.DataFrame({"n": pl.Series([5, None], dtype=pl.Float32)})
    assert learned.fill(small, np.array([[0.0], [1.0]]))["n"].dtype == pl.Float32
    empty = pl.DataFrame({"n": pl.Series([None, None], dtype=pl.Float64)})
    assert learned.fill(empty, np.array([[0.0], [1.0]]))["n"].dtype == pl.Float64
    as_words = pl.DataFrame({"n": ["5", None]})
    assert learned.fill(as_words, np.array([[0.0], [1.0]]))["n"].to_list() == ["5", "7"]
    truth = Columns([np.array([False, True], dtype=object)], ["t"])
    holes = pl.DataFrame({"t": pl.Series([None, None], dtype=pl.String)})
    assert truth.fill(holes, np.array([[0.0], [1.0]]))["t"].to_list() == [False, True]
    words = Columns([np.array(["x", "y"], dtype=object)], ["t"])
    assert words.fill(holes, np.array([[0.0], [1.0]]))["t"].dtype == pl.String
    floats = pl.DataFrame({"t": pl.Series([None, None], dtype=pl.Float64)})
    assert words.fill(floats, np.array([[0.0], [1.0]]))["t"].to_list() == ["x", "y"]


def test_filling_an_array():
    learned = Columns([None, np.array([5, 7])], [])
    given = np.array([[1.0, NAN], [NAN, 5.0]])
    before = given.copy()
    filled = np.array([[8.0, 1.0], [9.0, 1.0]])
    same(learned.fill(given, filled), np.array([[1.0, 7.0], [9.0, 5.0]]))
    np.testing.assert_array_equal(given, before)
    same(learned.fill(np.array([[1, 5]]), filled[:1]), np.array([[1.0, 5.0]]))
    small = learned.fill(np.array([[NAN, 5]], dtype=np.float32), filled[:1])
    same(small, np.array([[8.0, 5.0]], dtype=np.float32))
    objects = np.array([[1, None], [None, "x"]], dtype=object)
    words = Columns([None, np.array(["x", "y"], dtype=object)], [])
    assert words.fill(objects, filled).tolist() == [[1, "y"], [9.0, "x"]]
    plain = Columns([None, None], [])
    same(plain.fill(np.array([[1, None]], dtype=object), filled[:1]), np.array([[1.0, 1.0]]))
    nothing = Columns([None, np.array([], dtype=object)], [])
    same(nothing.fill(given, filled), np.array([[1.0, NAN], [9.0, 5.0]]))
    nothing.categories.reverse()
    same(nothing.fill(given, filled), np.array([[1.0, 1.0], [NAN, 5.0]]))


def test_filling_an_array_of_text():
    filled = np.array([[1.0, 2.5]] * 3)
    objects = np.array([["a", "1.5"], ["b", "nan"], ["nan", "2"]], dtype=object)
    text = objects.astype(str)
    learned = Columns.learn(text, 2, [0])
    same(learned.categories[0], np.array(["a", "b"], dtype=object))
    codes = learned.encode(text, "error")
    same(codes, np.array([[0, 1.5], [1, NAN], [NAN, 2]], dtype=np.float32))
    assert learned.fill(text, filled).tolist() == [["a", 1.5], ["b", 2.5], ["b", 2.0]]
    assert text[2, 0] == "nan", "what was given stays"
    numbers = Columns([np.array([1, 2]), None], [])
    assert numbers.fill(text[2:], filled[:1]).tolist() == [["2", 2.0]], "as the other words"
    same(Columns([None], []).fill(text[:, 1:], filled[:, 1:]), np.array([[1.5], [2.5], [2.0]]))
    whole = np.array([[b"a", b"1"]])
    same(learned.fill(whole, filled[:1]), whole)


def test_restoring_what_float32_rounded():
    learned = Columns([None, np.array([5, 7])], [])
    rows = np.array([[1.0, 1.0], [2.0, 0.0]])
    given = np.array([[0.1, 7.0], [NAN, 5.0]])
    same(learned.restore(rows.copy(), given), np.array([[0.1, 1.0], [2.0, 0.0]]))
    one = pd.DataFrame({"a": [0.1], "b": [7]})
    same(learned.restore(rows.copy(), one), np.array([[0.1, 1.0], [0.1, 0.0]]))
    same(learned.restore(rows.copy(), [[0.1, 7.0], [0.1, 5.0]]), rows)
    objects = np.array([[0.1, 7], [0.2, 5]], dtype=object)
    same(learned.restore(rows.copy(), objects), rows)
    same(learned.restore(rows.copy(), np.array([[3, 7]])), np.array([[3.0, 1.0], [3.0, 0.0]]))


def test_texts_as_dates_where_training_saw_dates():
    learned = Columns([None], ["a"], {"a": "day"})
    text, number = pd.DataFrame({"a": ["1970-01-03"]}), pd.DataFrame({"a": [2.0]})
    for given in (text, number):
        same(learned.encode(given, "error"), np.array([[2.0]], dtype=np.float32))
    with pytest.raises(TypeError, match="column 'a': expected numbers, dates or categories"):
        Columns([None], ["a"]).encode(text, "error")
