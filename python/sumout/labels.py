"""Labels as numbers from 0, and -1 for missing labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from sumout.names import is_hole, plain, unmasked
from sumout.notices import warn

NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating)


def validate(
    y: Any, missing_label: Any, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n), and a mask (n) of those that are known.

    NaN, None, masked labels and `missing_label` are missing.
    """
    y = as_array(y)
    known = ~holes(y)
    if not is_hole(missing_label):
        known &= ~equal_to(missing_label, y, known)
    elif missing_label is None and classes is None:
        warn_of_minus_one(y[known])
    if not known.any() and classes is None:
        raise ValueError("Input y contains NaN only: expected at least one label")
    if known.any():
        if y.dtype == object and not known.all():
            y = y.copy()
            y[~known] = y[known][0]  # so that labels of one type can be sorted
        if y.dtype == object and all(isinstance(label, NUMBERS) for label in y):
            y = np.array(y.tolist())  # sklearn refuses numbers and booleans that are objects
        check_classification_targets(y[known])
    return y, known


def warn_of_minus_one(labels: np.ndarray) -> None:
    """Says that -1 is a class, where it could be meant for a missing label."""
    if labels.dtype.kind not in "if":
        return
    found = np.unique(labels)
    if len(found) > 2 and found[0] == -1 and found[1] >= 0:
        warn(
            "y: -1 is a class here; missing_label=-1 makes it a missing label, and "
            "missing_label=np.nan silences this warning",
        )


def as_array(y: Any) -> np.ndarray:
    if isinstance(y, np.ma.MaskedArray):
        y = unmasked(y)
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "none") in "biu" and not isinstance(dtype, np.dtype):
        y = y.astype(object)  # types of pandas with holes: whole numbers stay whole
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError("Input y contains infinity: expected classes, or NaN for a missing label")
    return y


def holes(y: np.ndarray) -> np.ndarray:
    """A mask (n) of NaN, None and the like."""
    if y.dtype.kind in "fO":
        return np.array([is_hole(label) for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def equal_to(missing_label: Any, y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """A mask (n) of the labels that are equal to `missing_label`."""
    if y.dtype == object:  # NA is neither equal nor unequal to anything
        pairs = zip(y, known, strict=True)
        return np.array([ok and bool(label == missing_label) for label, ok in pairs], dtype=bool)
    return np.array(y == missing_label, dtype=bool)


def encode(y: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The index of every label in `classes`, (n) int64; -1 where it is missing."""
    index_of = {label: index for index, label in enumerate(classes.tolist())}
    if classes.dtype == bool:  # which may have been words before they were saved
        index_of |= {str(label): index for label, index in index_of.items()}
    encoded = np.full(len(y), -1, dtype=np.int64)
    for row in np.flatnonzero(known):
        label = plain(y[row])
        index = index_of.get(label)
        if index is None:
            known_classes = classes.tolist()
            raise ValueError(
                f"y, row index {row}: expected one of the classes {known_classes}, got {label!r}"
            )
        encoded[row] = index
    return encoded
