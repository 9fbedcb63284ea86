"""Rows, labels and weights as the engine trains on them."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from sumout import _engine

# Rows with whole-number weights are repeated, up to this many numbers in all.
MAX_REPEATED = 100_000_000


class TrainingSet(NamedTuple):
    values: np.ndarray  # (n, width) float32
    labels: np.ndarray  # (n) int64, -1 is missing
    weights: np.ndarray  # (n) float32, their mean is 1; empty where all are 1
    class_counts: list[float]  # (classes), the weight of every class

    def digest(self) -> str:
        """SHA-256 of the rows, their labels and weights, to tell training sets apart."""
        digest = hashlib.sha256()
        for part in (self.values, self.labels, self.weights):
            digest.update(np.ascontiguousarray(part))
        return digest.hexdigest()


def training_set(
    values: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    class_weights: np.ndarray,
    threads: int,
) -> TrainingSet:
    """Equal rows become one row with the sum of their weights, in an order the engine chooses.

    So a weight of 2 is the row twice, a weight of 0 no row, and the order of rows does not matter.
    """
    places, weights = _engine.distinct_rows(values, labels, weights, threads)
    total = weights.sum()
    is_whole = (weights == np.floor(weights)).all()
    if is_whole and (total <= len(values) or total * values.shape[1] <= MAX_REPEATED):
        places = np.repeat(places, weights.astype(np.int64))
        weights = np.ones(len(places))
    values, labels = np.ascontiguousarray(values[places]), labels[places]
    weights = weights * np.append(class_weights, 1.0)[labels]  # a missing label, -1, weighs 1
    known = labels >= 0
    counts: np.ndarray = np.bincount(labels[known], weights[known], minlength=len(class_weights))
    counts = counts if counts.any() else np.ones(len(class_weights))
    weights = np.empty(0) if (weights == 1).all() else weights / weights.mean()
    return TrainingSet(values, labels, weights.astype(np.float32), counts.tolist())


def checked_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """(n) float64; None is a weight of 1 for every row."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1 or len(weights) != rows:
        raise ValueError(
            f"sample_weight: expected one number for each of {rows} rows, got shape {weights.shape}"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total) or (weights < 0).any():
        raise ValueError("sample_weight: expected finite numbers from 0, with a finite sum")
    if not weights.any():
        raise ValueError(
            "sample_weight: expected at least one that is not zero, got all weights zero"
        )
    return weights
