"""Labels as numbers from 0, and −1 for those that are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from sumout.names import is_hole, name_of


def present(y: Any, missing_label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n), and which of them are there.

    NaN and None are missing. So is `missing_label`, unless that would leave a single class: -1 beside 1 is a class.
    """
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity: expected classes, or NaN for a missing label")
    there = ~np.array([is_hole(label) for label in y]) if y.dtype.kind in "fO" else np.ones(len(y), bool)
    if missing_label is not None:
        marked = there & np.array(y == missing_label, dtype=bool)
        if len({*y[there & ~marked].tolist()}) > 1:
            there &= ~marked
    if not there.any():
        raise ValueError("Input y contains NaN only: expected at least one label")
    if y.dtype == object and not there.all():
        y = y.copy()
        y[~there] = y[there][0]
    check_classification_targets(y[there])
    return y, there


def encode(y: np.ndarray, there: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of every label among the classes."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    labels = np.full(len(y), -1, dtype=np.int64)
    for row in np.flatnonzero(there):
        place = places.get(y[row].item() if isinstance(y[row], np.generic) else y[row])
        if place is None:
            raise ValueError(f"y, row {row}: expected one of the classes {list(map(name_of, classes))}, got {y[row]!r}")
        labels[row] = place
    return labels
