"""Labels as numbers from 0, and −1 for those that are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from sumout.names import is_hole, name_of


def present(
    y: Any, missing_label: Any, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n), and which of them are there.

    NaN, None and what is masked are missing. So is `missing_label`, unless it is one of the `classes`, or, where those
    are not known yet, unless that would leave a single class: -1 beside 1 is a class.
    """
    if isinstance(y, np.ma.MaskedArray):
        y = (
            y.astype(np.float64).filled(np.nan)
            if y.dtype.kind in "biuf"
            else y.astype(object).filled(None)
        )
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity: expected classes, or NaN for a missing label")
    there = (
        ~np.array([is_hole(label) for label in y], dtype=bool)
        if y.dtype.kind in "fO"
        else np.ones(len(y), bool)
    )
    if not is_hole(missing_label):
        if y.dtype == object:
            marked = np.array(
                [ok and bool(label == missing_label) for label, ok in zip(y, there)], dtype=bool
            )
        else:
            marked = there & np.array(y == missing_label, dtype=bool)
        is_class = (
            len({*y[there & ~marked].tolist()}) < 2
            if classes is None
            else missing_label in classes.tolist()
        )
        if not is_class:
            there &= ~marked
    if not there.any() and classes is None:
        raise ValueError("Input y contains NaN only: expected at least one label")
    if there.any():
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
            raise ValueError(
                f"y, row {row}: expected one of the classes {list(map(name_of, classes))}, got {y[row]!r}"
            )
        labels[row] = place
    return labels
