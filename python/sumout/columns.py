"""Columns of arrays and frames as float32: numbers as they are, categories as codes, NaN for what is missing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sumout.names import categories_of, is_hole, name_of


def as_frame(X: Any) -> nw.DataFrame | None:
    """A pandas, polars or other frame, or None for an array."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def is_word(cells: nw.Series) -> bool:
    """Columns that can only be categories. Objects can be numbers too, if all of them are."""
    if cells.dtype == nw.Object:
        values = [value for value in cells.to_list() if not is_hole(value)]
        return not values or not all(
            isinstance(v, Number) and not isinstance(v, (bool, np.bool_)) for v in values
        )
    return cells.dtype in (nw.Categorical, nw.Enum, nw.String, nw.Boolean)


@dataclass
class Columns:
    """What is known of the columns after fitting: for each its categories, or None for a number."""

    categories: list[np.ndarray | None]
    names: list[str]

    @classmethod
    def learn(cls, X: Any, width: int, categorical_features: Any) -> Columns:
        """`X` is a frame or an array of objects or numbers (n, width)."""
        frame = as_frame(X)
        chosen = chosen_columns(frame, width, categorical_features)
        categories = [
            np.array(known(column(X, frame, j)), dtype=object) if chosen[j] else None
            for j in range(width)
        ]
        names = [] if frame is None else [name for name in frame.columns if isinstance(name, str)]
        if len(names) < width:
            names = []
        if not names and chosen.any():
            names = [f"x{j}" for j in range(width)]
        return cls([None if c is None else narrow(c) for c in categories], names)

    @classmethod
    def of_model(cls, counts: list[int], about: dict) -> Columns:
        """As a model file says."""
        names = about["categories"] or [[]] * len(counts)
        known = [
            categories_of(of or [str(v) for v in range(n)]) if n else None
            for n, of in zip(counts, names)
        ]
        return cls(known, about["columns"])

    @property
    def counts(self) -> list[int]:
        """As the engine wants them: 0 for a number."""
        return [0 if known is None else max(1, len(known)) for known in self.categories]

    def about(self) -> dict:
        """As a model file wants them."""
        if not self.names:
            return {}
        return {
            "columns": self.names,
            "categories": [[] if c is None else list(map(name_of, c)) for c in self.categories],
        }

    @property
    def plain(self) -> bool:
        """Numbers only."""
        return all(known is None for known in self.categories)

    def encode(self, X: Any) -> np.ndarray:
        """(n, width) float32. A category that was not seen in fitting is missing."""
        frame = as_frame(X)
        rows = len(X) if frame is None else len(frame)
        codes = np.empty((rows, len(self.categories)), dtype=np.float32)
        for j, known in enumerate(self.categories):
            cells = column(X, frame, j)
            with np.errstate(over="ignore"):  # the engine says which cell is too large
                codes[:, j] = numbers(cells) if known is None else coded(cells, known)
        return codes

    def warn_of_coarse(self, X: Any) -> None:
        """float32 has 24 bits: values that differ in later ones only become one."""
        frame = as_frame(X)
        for j in (j for j, known in enumerate(self.categories) if known is None):
            cells = np.asarray(numbers(column(X, frame, j)), dtype=np.float64)
            seen = cells[np.isfinite(cells)]
            spread = seen.std() if len(seen) else 0.0
            if spread > 0 and np.abs(seen).max() * 2.0**-24 > 0.01 * spread:
                name = frame.columns[j] if frame is not None else j
                warnings.warn(
                    f"column {name}: its values lie near {seen.mean():.6g} and only {spread:.3g} apart, which float32 "
                    "cannot tell well: subtract an offset from it first",
                    stacklevel=5,
                )

    def fill(self, X: Any, filled: np.ndarray) -> Any:
        """`X` with its holes filled from codes (n, width); what is there stays as it is, and so does its type."""
        frame = as_frame(X)
        if frame is None:
            return self.fill_array(np.asarray(X), filled)
        for j, known in enumerate(self.categories):
            cells = frame.get_column(frame.columns[j])
            if known is not None and len(known) == 0:
                continue  # nothing is known of it
            values = cells.to_list()
            holes = [i for i, value in enumerate(values) if is_hole(value)]
            words = any(isinstance(value, str) for value in values)
            for i in holes:
                value = float(filled[i, j]) if known is None else known[int(filled[i, j])]
                values[i] = name_of(value) if words and known is not None else value
            if holes:
                dtype = nw.Float64 if known is None else cells.dtype
                if known is not None and known.dtype == object and cells.dtype.is_numeric():
                    dtype = None  # a column of words that came as holes only
                fresh = nw.new_series(cells.name, values, dtype, backend=frame.implementation)
                frame = frame.with_columns(fresh)
        return frame.to_native()

    def fill_array(self, X: np.ndarray, filled: np.ndarray) -> np.ndarray:
        if X.dtype == object and self.plain:
            X = X.astype(np.float64)
        out = X.astype(np.float64) if X.dtype.kind in "iub" else X.copy()
        for j, known in enumerate(self.categories):
            if known is not None and len(known) == 0:
                continue
            holes = (
                np.array([is_hole(value) for value in X[:, j]])
                if X.dtype == object
                else np.isnan(X[:, j])
            )
            out[holes, j] = (
                filled[holes, j] if known is None else known[filled[holes, j].astype(int)]
            )
        return out

    def restore(self, rows: np.ndarray, given: Any) -> np.ndarray:
        """Rows (n, width) with the numbers of one or `n` given rows as they were, not as float32 has them."""
        frame = as_frame(given)
        if frame is None and (not isinstance(given, np.ndarray) or given.dtype.kind not in "fiu"):
            return rows
        for j in (j for j, known in enumerate(self.categories) if known is None):
            cells = np.broadcast_to(
                np.asarray(numbers(column(given, frame, j)), dtype=np.float64), len(rows)
            )
            seen = ~np.isnan(cells)
            rows[seen, j] = cells[seen]
        return rows

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Codes as an array of numbers, or of objects where a category is no number."""
        worded = any(known is not None and known.dtype == object for known in self.categories)
        out = codes.astype(object if worded else np.float64)
        for j, known in enumerate(self.categories):
            if known is not None and len(known) == 0:
                out[:, j] = np.nan
            elif known is not None:
                seen = ~np.isnan(codes[:, j])
                out[seen, j] = known[codes[seen, j].astype(int)]
        return out


def chosen_columns(frame: nw.DataFrame | None, width: int, features: Any) -> np.ndarray:
    """A mask of the columns that are categories."""
    words = (
        [False] * width
        if frame is None
        else [is_word(column(None, frame, j)) for j in range(width)]
    )
    chosen = np.array(words, dtype=bool)
    if features is None or (isinstance(features, str) and features == "from_dtype"):
        return chosen
    features = np.asarray(features)
    if features.dtype == bool and features.shape == (width,):
        return chosen | features
    for feature in features.ravel().tolist():
        if isinstance(feature, str) and frame is not None and feature in frame.columns:
            chosen[frame.columns.index(feature)] = True
        elif (
            isinstance(feature, int) and not isinstance(feature, bool) and -width <= feature < width
        ):
            chosen[feature] = True
        else:
            raise ValueError(
                "categorical_features: expected 'from_dtype', None, a mask, or names or numbers of "
                f"the {width} columns, got {feature!r}"
            )
    return chosen


def column(X: Any, frame: nw.DataFrame | None, j: int) -> Any:
    return X[:, j] if frame is None else frame.get_column(frame.columns[j])


def listed(cells: Any) -> list:
    return cells.to_list() if isinstance(cells, nw.Series) else cells.tolist()


def known(cells: Any) -> list:
    """The distinct values of a column, sorted: numbers as numbers, else by name."""
    values = {value for value in listed(cells) if not is_hole(value)}
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=name_of)


def narrow(values: np.ndarray) -> np.ndarray:
    """Categories that are numbers as an array of numbers."""
    numeric = len(values) > 0 and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) for v in values
    )
    return np.array(values.tolist()) if numeric else values


def coded(cells: Any, known: np.ndarray) -> list[float]:
    """The place of each value among the categories."""
    places = {name_of(value): float(place) for place, value in enumerate(known.tolist())}
    places |= {
        str(int(value)): places[name_of(value)]
        for value in known
        if isinstance(value, (bool, np.bool_))
    }
    values = listed(cells)
    codes = {
        value: np.nan if is_hole(value) else places.get(name_of(value), np.nan)
        for value in set(values)
    }
    return [codes[value] for value in values]


def numbers(cells: Any) -> np.ndarray:
    if not isinstance(cells, nw.Series):
        return cells
    if cells.dtype == nw.Object:
        return np.array([np.nan if is_hole(value) else float(value) for value in cells.to_list()])
    return cells.cast(nw.Float64).fill_null(float("nan")).to_numpy()
