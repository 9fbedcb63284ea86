"""Names in a model file are text; in Python, classes and categories may be numbers. Both ways, by one rule."""

from __future__ import annotations

from typing import Any

import numpy as np


def name_of(value: Any) -> str:
    """3, 3.0 and "3" have the same name."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def values_of(names: list[str]) -> np.ndarray:
    """Names as whole numbers where all of them are, as text otherwise."""
    try:
        numbers = np.array([int(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(names, dtype=object)
    return (
        numbers
        if [str(number) for number in numbers] == list(names)
        else np.array(names, dtype=object)
    )


def categories_of(names: list[str]) -> np.ndarray:
    """The same for categories, which may also be the two truth values."""
    if names and set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names], dtype=object)
    return values_of(names)


def is_hole(value: Any) -> bool:
    """None, NaN, NaT or NA."""
    if value is None:
        return True
    equal = value == value
    return not isinstance(equal, (bool, np.bool_)) or not equal
