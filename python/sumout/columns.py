"""Columns of arrays and data frames as float32, and back.

Numbers stay as they are, dates become days (sumout.dates), categories become codes from 0, NaN is
missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sumout.dates import (
    are_dates,
    are_objects,
    are_texts,
    are_texts_of_dates,
    as_given,
    date_of_days,
    date_of_days_like,
    days_of_series,
    days_of_texts,
    days_of_value,
    first_date,
    in_utc,
    is_date,
    may_be_objects,
    style_of_days,
    text_of_days,
)
from sumout.names import (
    categories_of,
    category_codes,
    column_name,
    distinct,
    expected_categories,
    is_hole,
    name_of,
)
from sumout.notices import warn

TEXT = "UT"  # kinds of arrays of text


@dataclass
class Columns:
    """What fitting learned about the columns."""

    categories: list[np.ndarray | None]  # for each column, None for numbers
    names: list[str]  # empty where there are none
    dates: dict[str, str] = field(default_factory=dict)  # "day" or "time" by name of column

    @classmethod
    def learn(cls, X: Any, width: int, categorical_features: Any) -> Columns:
        """`X` is a frame, or an array of objects or numbers (n, width)."""
        frame = as_frame(X)
        chosen = categorical_mask(frame, width, categorical_features)
        categories = [distinct(cells_of(X, frame, j)) if chosen[j] else None for j in range(width)]
        names = [] if frame is None else [name for name in frame.columns if isinstance(name, str)]
        if len(names) < width:
            names = []
        if not names and chosen.any():
            names = [f"x{j}" for j in range(width)]
        numbers = [j for j, known in enumerate(categories) if known is None]
        dates = {} if frame is None or not names else date_styles(frame, numbers)
        return cls(categories, names, dates)

    @classmethod
    def of_model(cls, counts: list[int], about: dict) -> Columns:
        """From a model file: the number of categories of each column, and their names."""
        names = about["categories"] or [[]] * len(counts)
        categories = [
            categories_of(of_column or [str(code) for code in range(count)]) if count else None
            for count, of_column in zip(counts, names, strict=True)
        ]
        training = about["training"] if isinstance(about["training"], dict) else {}
        return cls(categories, about["columns"], training.get("dates") or {})

    @property
    def counts(self) -> list[int]:
        """The number of categories of each column, 0 for numbers."""
        return [0 if known is None else max(1, len(known)) for known in self.categories]

    def about(self) -> dict:
        """Names for the model file."""
        if not self.names:
            return {}
        about = {
            "columns": self.names,
            "categories": [[] if c is None else list(map(name_of, c)) for c in self.categories],
        }
        return about | {"training": {"dates": self.dates}} if self.dates else about

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(known is None for known in self.categories)

    def numeric(self) -> list[int]:
        """The places of the columns that are numbers."""
        return [j for j, known in enumerate(self.categories) if known is None]

    def warn_of_numbers(self, X: Any) -> None:
        """Warns of columns without a number, of those that float32 cannot represent, and of gross outliers."""
        frame = as_frame(X)
        for j in self.numeric():
            name = column_name(frame.columns if frame is not None else None, j)
            cells = np.asarray(self.floats(X, frame, j), dtype=np.float64)
            if np.isnan(cells).all():
                warn(
                    f"{name}: it has no number in the training rows; a hole in it is filled with 0",
                )
            finite = cells[np.isfinite(cells)]
            spread = finite.std() if len(finite) else 0.0
            if spread > 0 and np.abs(finite).max() * 2.0**-24 > 0.01 * spread:
                warn(
                    f"{name}: its values lie near {finite.mean():.6g} and differ by about "
                    f"{spread:.3g}, which float32 cannot represent well: subtract an offset first",
                )
            outlier = outlier_of(finite)
            if outlier is not None:
                warn(
                    f"{name}: {outlier:.6g} is far from the rest and spoils the scale; "
                    "if it stands for a missing value, make it NaN",
                )

    # To codes.

    def floats(self, X: Any, frame: nw.DataFrame | None, j: int) -> np.ndarray:
        """A column of numbers; text is read as dates where training saw dates."""
        cells = cells_of(X, frame, j)
        return days_of_texts(cells) if self.is_text_of_dates(cells) else as_floats(cells)

    def is_text_of_dates(self, cells: Any) -> bool:
        return isinstance(cells, nw.Series) and cells.name in self.dates and are_texts(cells)

    def encode(self, X: Any, unseen: str) -> np.ndarray:
        """(n, width) float32. `unseen` says what a category that fitting did not know is."""
        if unseen not in ("error", "missing"):
            raise ValueError(f"unseen: expected 'error' or 'missing', got {unseen!r}")
        frame = as_frame(X)
        rows = len(X) if frame is None else len(frame)
        codes = np.empty((rows, len(self.categories)), dtype=np.float32)
        for j, known in enumerate(self.categories):
            if known is None:
                with np.errstate(over="ignore"):  # the engine's error names the cell
                    codes[:, j] = self.floats(X, frame, j)
                continue
            cells = cells_of(X, frame, j)
            codes[:, j] = category_codes(cells, known)
            if unseen == "error":
                self.refuse_unseen(j, known, cells, codes[:, j])
        return codes

    def refuse_unseen(self, j: int, known: np.ndarray, cells: Any, codes: np.ndarray) -> None:
        """Raises if a cell of column `j` that is not missing got no code."""
        for row in np.flatnonzero(np.isnan(codes)):
            value = cells[int(row)]
            if not is_hole(value):
                place = f"{column_name(self.names, j)}, row index {row}"
                raise ValueError(
                    f"{place}: expected {expected_categories(known)}, got "
                    f"{name_of(value)!r}; unseen='missing' treats such a cell as missing"
                )

    # From codes.

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """An array of numbers, or of objects if some categories are not numbers."""
        has_objects = any(known is not None and known.dtype == object for known in self.categories)
        out = codes.astype(object if has_objects else np.float64)
        for j, known in enumerate(self.categories):
            if known is not None and len(known) == 0:
                out[:, j] = np.nan
            elif known is not None:
                seen = ~np.isnan(codes[:, j])
                out[seen, j] = known[codes[seen, j].astype(int)]
        return out

    def fill(self, X: Any, filled: np.ndarray) -> Any:
        """`X` with its holes filled from codes (n, width); observed cells and types are kept."""
        frame = as_frame(X)
        if frame is None:
            return self.fill_array(np.asarray(X), filled)
        for j, known in enumerate(self.categories):
            if known is not None and len(known) == 0:
                continue  # nothing was observed in fitting
            cells = cells_of(X, frame, j)
            style = self.dates.get(cells.name)
            numbers = np.floor(filled[:, j]) if style == "day" else filled[:, j]
            style = style if self.is_text_of_dates(cells) else None
            values, holes = filled_values(cells, numbers, known, style)
            if holes:
                dtype = filled_dtype(cells, known, style)
                column = nw.new_series(cells.name, values, dtype, backend=frame.implementation)
                if are_dates(cells):
                    column = as_given(column, frame.get_column(frame.columns[j]))
                frame = frame.with_columns(column)
        return frame.to_native()

    def fill_array(self, X: np.ndarray, filled: np.ndarray) -> np.ndarray:
        is_text = X.dtype.kind in TEXT
        if is_text:
            X = np.stack([cells_of(X, None, j) for j in range(X.shape[1])], axis=1)
            X[:, self.numeric()] = X[:, self.numeric()].astype(np.float64)
        if X.dtype == object and self.plain:
            X = X.astype(np.float64)
        out = X.astype(np.float64) if X.dtype.kind in "iub" else X.copy()
        for j, known in enumerate(self.categories):
            if known is not None and len(known) == 0:
                continue  # nothing was observed in fitting
            if X.dtype.kind in "OS":
                holes = np.array([is_hole(value) for value in X[:, j]])
            else:
                holes = np.isnan(X[:, j])
            values = filled[holes, j]
            if known is not None:
                values = known[values.astype(int)]
                values = list(map(name_of, values)) if is_text else values
            out[holes, j] = values
        return out

    def restore(self, rows: np.ndarray, given: Any) -> np.ndarray:
        """Rows (n, width) with the numbers of one or `n` given rows unrounded by float32."""
        frame = as_frame(given)
        if frame is None and (not isinstance(given, np.ndarray) or given.dtype.kind not in "fiu"):
            return rows
        for j in self.numeric():
            cells = np.asarray(self.floats(given, frame, j), dtype=np.float64)
            cells = np.broadcast_to(cells, len(rows))
            seen = ~np.isnan(cells)
            rows[seen, j] = cells[seen]
        return rows


# Which columns are categories.


def categorical_mask(frame: nw.DataFrame | None, width: int, features: Any) -> np.ndarray:
    """A mask (width) of the columns that are categories."""
    chosen = np.zeros(width, dtype=bool)
    if frame is not None:
        are_named = all(isinstance(name, str) for name in frame.columns)
        cells = [cells_of(None, frame, j) for j in range(width)]
        chosen[:] = [is_categorical(c) and not (are_named and are_texts_of_dates(c)) for c in cells]
    if features is None or (isinstance(features, str) and features == "from_dtype"):
        return chosen
    features = np.asarray(features)
    if features.dtype == bool and features.shape == (width,):
        return chosen | features
    for feature in features.ravel().tolist():
        if isinstance(feature, str) and frame is not None and feature in frame.columns:
            chosen[frame.columns.index(feature)] = True
        elif type(feature) is int and -width <= feature < width:
            chosen[feature] = True
        else:
            raise ValueError(
                "categorical_features: expected 'from_dtype', None, a mask, or names or numbers of "
                f"the {width} columns, got {feature!r}"
            )
    return chosen


def is_categorical(cells: nw.Series) -> bool:
    """Whether a column can only be categories. Objects may be numbers or dates, if all are."""
    if are_objects(cells):
        values = [value for value in cells.to_list() if not is_hole(value)]
        return not values or not (all(map(is_number, values)) or all(map(is_date, values)))
    return cells.dtype in (nw.Categorical, nw.Enum, nw.String, nw.Boolean)


def date_styles(frame: nw.DataFrame, numbers: list[int]) -> dict[str, str]:
    """How the dates of each column of dates are written, among these columns; spans of time are numbers."""
    styles = {}
    for cells in (cells_of(None, frame, j) for j in numbers):
        first = first_date(cells)
        is_span = cells.dtype == nw.Duration or isinstance(first, (timedelta, np.timedelta64))
        if are_texts(cells):
            styles[cells.name] = style_of_days(days_of_texts(cells))
        elif (are_dates(cells) or first is not None) and not is_span:
            styles[cells.name] = style_of_days(as_floats(cells))
    return styles


def is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, (bool, np.bool_))


# Cells of one column, of an array or of a frame.


def outlier_of(finite: np.ndarray) -> float | None:
    """The least or greatest number, if it is a thousand times as far from the median as the middle half is wide."""
    if not len(finite):
        return None
    cells = np.sort(finite)
    low, middle, high = cells[(len(cells) - 1) * np.arange(1, 4) // 4]
    far = [x for x in cells[[0, -1]] if abs(x - middle) > 1000 * (high - low) > 0]
    return far[0] if far else None


def as_frame(X: Any) -> nw.DataFrame | None:
    """A pandas, polars or other frame, or None for an array."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def cells_of(X: Any, frame: nw.DataFrame | None, j: int) -> Any:
    if frame is not None:
        return in_utc(frame.get_column(frame.columns[j]))
    cells = X[:, j]
    if cells.dtype.kind in TEXT:
        cells = cells.astype(object)
        cells[cells == "nan"] = np.nan  # what NumPy makes of NaN in a list with text
    return cells


def as_floats(cells: Any) -> np.ndarray:
    """Numbers of a frame as float64, NaN for what is missing; of an array as they are."""
    if not isinstance(cells, nw.Series):
        return cells
    if are_dates(cells):
        return days_of_series(cells)
    try:
        if may_be_objects(cells):
            return np.array([as_float(value) for value in cells.to_list()])
        return cells.cast(nw.Float64).fill_null(float("nan")).to_numpy()
    except Exception as error:  # every library of frames has its own
        raise TypeError(
            f"column {cells.name!r}: expected numbers, dates or categories, got {cells.dtype}: "
            f"{error}"
        ) from None


def as_float(value: Any) -> float:
    """A number or a date, NaN for what is missing."""
    if is_hole(value):
        return np.nan
    return days_of_value(value) if is_date(value) else float(value)


# Filling the cells of a frame's column.


def filled_values(
    cells: nw.Series, filled: np.ndarray, known: np.ndarray | None, style: str | None
) -> tuple[list, list[int]]:
    """The cells with holes filled from codes (n), and the rows of the holes.

    `style` is that of dates in a column of text.
    """
    values = cells.to_list()
    like = first_date(cells)
    holes = [i for i, value in enumerate(values) if is_hole(value)]
    as_text = known is not None and any(isinstance(value, str) for value in values)
    for i in holes:
        if known is not None:
            value = known[int(filled[i])]
        elif style is not None:
            value = text_of_days(float(filled[i]), style)
        elif are_dates(cells):
            value = date_of_days(float(filled[i]), cells)
        elif like is not None:
            value = date_of_days_like(float(filled[i]), like)
        else:
            value = float(filled[i])
        values[i] = name_of(value) if as_text else value
    return values, holes


def filled_dtype(cells: nw.Series, known: np.ndarray | None, style: str | None) -> Any:
    dtype = nw.Object if may_be_objects(cells) else cells.dtype
    if known is None:
        dates = style is not None or are_dates(cells) or first_date(cells) is not None
        return dtype if dates else nw.Float64
    if known.dtype == object and cells.dtype.is_numeric():
        return None  # a column of text in which all cells are missing
    are_words = all(isinstance(value, str) for value in known)
    if cells.dtype == nw.String and not are_words and all(map(is_hole, cells.to_list())):
        return None  # a column of booleans, for example, in which all cells are missing
    return dtype
