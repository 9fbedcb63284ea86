"""Classes and categories as text, as in a model file, and as Python values: both ways; what a hole is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

# False and true as Python, JSON and spreadsheets write them.
TRUTHS = (("False", "True"), ("false", "true"), ("FALSE", "TRUE"))


def name_of(value: Any) -> str:
    """3, 3.0 and "3" have the same name."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def values_of(names: list[str]) -> np.ndarray:
    """Whole numbers if all names are whole numbers, else text."""
    try:
        numbers = np.array([int(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(names, dtype=object)
    if [str(number) for number in numbers] == list(names):
        return numbers
    return np.array(names, dtype=object)  # "01" is not 1


def categories_of(names: list[str]) -> np.ndarray:
    """As `values_of`, but categories may be booleans too."""
    if names and any(set(names) <= set(truths) for truths in TRUTHS):
        return np.array([name.lower() == "true" for name in names], dtype=object)
    return values_of(names)


def classes_of(names: list[str]) -> np.ndarray:
    """As `categories_of`, with the type of booleans that scikit-learn takes for labels."""
    classes = categories_of(names)
    return classes.astype(bool) if isinstance(classes[0], bool) else classes


def plain(value: Any) -> Any:
    """A scalar of NumPy as Python's own, which messages show without its type."""
    return value.item() if isinstance(value, np.generic) else value


def is_hole(value: Any) -> bool:
    """None, NaN, NaT or NA."""
    if value is None:
        return True
    equal = value == value  # False for NaN, NA for NA
    return not isinstance(equal, (bool, np.bool_)) or not equal


def unmasked(cells: np.ma.MaskedArray) -> np.ndarray:
    """The array without its mask: masked cells are NaN, NaT or None."""
    kind = cells.dtype.kind
    dtype = cells.dtype if kind in "mM" else np.float64 if kind in "biuf" else object
    without = cells.data.astype(dtype)
    without[np.ma.getmaskarray(cells)] = None
    return without


def column_name(names: Sequence[str] | None, j: int) -> str:
    """How messages call column `j`: by its name, or by its index where there are no names."""
    return f"column {names[j]!r}" if names is not None and len(names) else f"column index {j}"


# Categories of one column, of an array or of a frame.


def as_list(cells: Any) -> list:
    return cells.to_list() if isinstance(cells, nw.Series) else cells.tolist()


def as_hashable_list(cells: Any) -> list:
    """Raises if a cell is a list, for example, which cannot be a category."""
    values = as_list(cells)
    try:
        set(values)
    except TypeError as error:
        place = f"column {cells.name!r}" if isinstance(cells, nw.Series) else "a column"
        raise TypeError(f"{place}: expected numbers, dates or categories: {error}") from None
    return values


def declared_categories(cells: Any) -> list:
    """The categories that the type of a column declares, whether they occur or not.

    A Categorical of polars declares none: it lists the words of other columns too.
    """
    if not isinstance(cells, nw.Series):
        return []
    is_pandas = cells.dtype == nw.Categorical and cells.implementation.is_pandas_like()
    if is_pandas or cells.dtype == nw.Enum:
        return cells.cat.get_categories().to_list()
    return []


def expected_categories(known: np.ndarray) -> str:
    """The categories of a column in words, some of them where there are many."""
    names = [repr(name_of(value)) for value in known[:10].tolist()]
    if not names:
        return "a missing value, for training saw no category here"
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return f"one of the categories {', '.join(names)}{more}"


def distinct(cells: Any) -> np.ndarray:
    """The categories of a column, sorted; an array of numbers if all are numbers."""
    values = {value for value in as_hashable_list(cells) if not is_hole(value)}
    values |= set(declared_categories(cells))
    if values and values <= {0, 1}:  # booleans too: the other value is possible, seen or not
        values |= {type(value)(other) for value in values for other in (0, 1)}
    try:
        ordered = sorted(values)
    except TypeError:
        ordered = sorted(values, key=name_of)  # of different types
    if ordered and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in ordered):
        return np.array(ordered)
    return np.array(ordered, dtype=object)


def category_codes(cells: Any, known: np.ndarray) -> list[float]:
    """The index of every cell among the known categories, NaN where it is not one of them."""
    index_of = {name_of(value): float(index) for index, value in enumerate(known.tolist())}
    for value in known:
        if isinstance(value, (bool, np.bool_)):  # 0 and 1 mean False and True
            others = str(int(value)), *(truths[int(value)] for truths in TRUTHS)
            index_of |= dict.fromkeys(others, index_of[name_of(value)])
    values = as_hashable_list(cells)
    codes = {
        value: np.nan if is_hole(value) else index_of.get(name_of(value), np.nan)
        for value in set(values)
    }
    return [codes[value] for value in values]
