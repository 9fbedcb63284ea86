"""Classes and categories as text, as in a model file, and as Python values: both ways; what a hole is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


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
    if names and set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names], dtype=object)
    return values_of(names)


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
