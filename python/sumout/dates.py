"""Dates as numbers, and back: days since 1970-01-01 00:00 UTC, with the time of day as a fraction.

Dates without a time zone count as UTC. Spans of time are numbers of days.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sumout.names import is_hole

MICROSECONDS_PER_DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1)
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:?\d\d)?)?")


def is_date(value: Any) -> bool:
    return isinstance(value, (date, timedelta, np.datetime64, np.timedelta64))


def are_dates(cells: nw.Series) -> bool:
    """Whether the type of a frame's column says that it holds dates, times or spans of time."""
    return cells.dtype in (nw.Date, nw.Datetime, nw.Duration)


def in_utc(cells: nw.Series) -> nw.Series:
    """A column; times of pandas with a zone, whose name narwhals may not read, are those of UTC."""
    native = cells.to_native()
    if getattr(getattr(native, "dtype", None), "tz", None) is None:
        return cells
    return nw.from_native(native.dt.tz_convert("UTC"), series_only=True)


def as_given(cells: nw.Series, given: nw.Series) -> nw.Series:
    """Dates in the very type of a column of pandas, its zone too."""
    if not given.implementation.is_pandas_like():
        return cells
    return nw.from_native(cells.to_native().astype(given.to_native().dtype), series_only=True)


def days_of_series(cells: nw.Series) -> np.ndarray:
    """Days (n) float64 of a column for which `are_dates` is true, NaN for what is missing."""
    is_span = cells.dtype == nw.Duration
    counts = cells.dt.total_microseconds() if is_span else cells.dt.timestamp("us")
    days = counts.cast(nw.Float64).fill_null(float("nan")).to_numpy() / MICROSECONDS_PER_DAY
    return np.where(cells.is_null().to_numpy(), np.nan, days)


def days_of_array(cells: np.ndarray) -> np.ndarray:
    """The same for an array of datetime64 or timedelta64."""
    unit = "datetime64[us]" if cells.dtype.kind == "M" else "timedelta64[us]"
    days = cells.astype(unit).astype(np.float64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(cells), np.nan, days)


def days_of_value(value: Any) -> float:
    """Days of one value for which `is_date` is true."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(days_of_array(np.array([value]))[0])
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return (value - EPOCH) / timedelta(days=1)


def days_of_text(text: str) -> float:
    """Days of an ISO date such as 2026-01-31, 2026-01-31T14:05:00 or 2026-01-31 14:05:00Z."""
    return days_of_value(datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text.strip())))


def days_of_texts(cells: nw.Series) -> np.ndarray:
    """Days (n) float64 of a column of ISO dates, NaN for what is missing."""
    texts = cells.to_list()
    days = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if isinstance(text, str):
            try:
                days[row] = days_of_text(text)
            except ValueError:
                raise ValueError(
                    f"column {cells.name!r}, row index {row}: expected a date such as 2026-01-31, "
                    f"got {text!r}"
                ) from None
    return days


def is_iso_date(text: Any) -> bool:
    return isinstance(text, str) and ISO_DATE.fullmatch(text.strip()) is not None


def may_be_objects(cells: nw.Series) -> bool:
    """Whether the type of a column allows values of any type."""
    is_pandas = cells.implementation.is_pandas_like()
    return cells.dtype == nw.Object or (is_pandas and cells.to_native().dtype == object)


def are_objects(cells: nw.Series) -> bool:
    """Whether a column holds objects. narwhals looks at 100 rows, and takes holes for text."""
    if cells.dtype != nw.String or not may_be_objects(cells):
        return cells.dtype == nw.Object
    for rows in (cells.head(100), cells):
        first = rows.drop_nulls().head(1).to_list()
        if first:
            return not isinstance(first[0], str)
    return False


def are_texts(cells: nw.Series) -> bool:
    return cells.dtype == nw.String and not are_objects(cells)


def first_date(cells: nw.Series) -> Any:
    """The first date in a column of objects."""
    values = cells.to_list() if are_objects(cells) else []
    return next((value for value in values if not is_hole(value) and is_date(value)), None)


def are_texts_of_dates(cells: nw.Series) -> bool:
    """Whether a column of text holds nothing but ISO dates, as a CSV file gives them."""
    if not are_texts(cells):
        return False
    texts = cells.drop_nulls().to_list()
    if not texts or not all(map(is_iso_date, texts)):
        return False
    try:
        days_of_texts(cells)
    except ValueError:  # the 31st of April
        return False
    return True


def style_of_days(days: np.ndarray) -> str:
    """How the dates of a column are written, as model files say it: "day", or "time" with one."""
    seen = days[np.isfinite(days)]
    return "day" if (seen == np.floor(seen)).all() else "time"


def text_of_days(days: float, style: str) -> str:
    """An ISO date, to the second, as the command line writes it."""
    days = min(max(days, FIRST_DAY), LAST_DAY)
    moment = EPOCH + timedelta(seconds=round(days * 86_400))
    return moment.date().isoformat() if style == "day" else moment.isoformat()


def date_of_days(days: float, like: nw.Series) -> Any:
    """A cell of a column for which `are_dates` is true."""
    if like.dtype == nw.Duration:
        return timedelta(days=days)
    moment = EPOCH + timedelta(days=days)
    if like.dtype == nw.Date:
        return moment.date()
    has_zone = getattr(like.dtype, "time_zone", None) is not None
    return in_zone(moment, timezone.utc) if has_zone else moment


def date_of_days_like(days: float, value: Any) -> Any:
    """A value of the type of another for which `is_date` is true."""
    if isinstance(value, (timedelta, np.timedelta64)):
        return timedelta(days=days)
    moment = EPOCH + timedelta(days=days)
    if isinstance(value, date) and not isinstance(value, datetime):
        return moment.date()
    zone = getattr(value, "tzinfo", None)
    return moment if zone is None else in_zone(moment, zone)


def in_zone(moment: datetime, zone: Any) -> datetime:
    """A moment of UTC in a time zone."""
    return moment.replace(tzinfo=timezone.utc).astimezone(zone)
