"""The estimators on Dask arrays and data frames, partition by partition.

`fit` keeps the partitions on their workers; questions are answered lazily. With a client of
`dask.distributed` the cluster computes, without one the threads of this machine. The model does not
depend on how many workers there are, nor on which of them die: the same partitions give the same
bits, and the same as `sumout.batches` from the same batches.

Examples
--------
>>> import dask.array as da
>>> from sumout.dask import TMMDensity
>>> X = da.random.default_rng(0).normal(size=(2000, 2), chunks=(500, 2))
>>> model = TMMDensity(random_state=0, steps=50, trees=1).fit(X)
>>> model.score_samples(X).compute().shape
(2000,)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed
from sklearn.utils.validation import check_is_fitted

from sumout import classifier, density
from sumout.estimator import TMM
from sumout.parameters import random_seed
from sumout.partitions import (
    Encoded,
    Part,
    Partitioned,
    Partitions,
    Summary,
    added,
    contribution,
    encoded,
    in_partition,
    read,
    sampled,
    split_target,
    summary,
)

# A column of labels that a series became.
LABELS = "the labels of sumout"

# Contributions that one task adds up.
FAN_IN = 8


class DaskPartitions(Partitions):
    """Partitions on the workers of a cluster, or in the memory of this process."""

    def __init__(self, X: Any, y: Any, threads: int) -> None:
        self.target = y if isinstance(y, str) else None
        if isinstance(X, dd.DataFrame) and isinstance(y, dd.Series):
            X, y, self.target = X.assign(**{LABELS: y}), None, LABELS  # Dask aligns them
        self.rows, self.threads = parts_of(X), threads
        has_labels = y is not None and self.target is None
        self.labels = parts_of(y) if has_labels else [None] * len(self.rows)
        if len(self.labels) != len(self.rows):
            raise ValueError(
                f"y: expected {len(self.rows)} partitions as X has, got {len(self.labels)}"
            )
        self.kept: list[Delayed] = []

    def read(self, estimator: TMM) -> list[Summary]:
        estimator, ask = once(estimator), task(read_part)
        pairs = enumerate(zip(self.rows, self.labels, strict=True))
        parts = [ask(estimator, n, X, y, self.target) for n, (X, y) in pairs]
        self.kept = list(dask.persist(*parts))
        self.rows, self.labels = [], []
        return list(dask.compute(*(task(summary)(part) for part in self.kept)))

    def encode(self, estimator: TMM, class_weights: np.ndarray) -> None:
        estimator = once(estimator)
        encode = task(encoded)
        parts = [encode(estimator, n, part, class_weights) for n, part in enumerate(self.kept)]
        self.kept = list(dask.persist(*parts))

    def sample(self, counts: list[int], seed: int) -> list[Encoded]:
        draw, wanted = task(sampled), zip(self.kept, counts, strict=True)
        drawn = [draw(part, n, count, seed) for n, (part, count) in enumerate(wanted)]
        return list(dask.compute(*drawn))

    def sum(self, step: bytes) -> bytes:
        shared = once(step)
        contribute, add = task(contribution), task(added)
        level = [contribute(shared, n, part, self.threads) for n, part in enumerate(self.kept)]
        while len(level) > 1:
            groups = (level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN))
            level = [add(group) for group in groups]
        return dask.compute(level[0])[0]


def read_part(estimator: TMM, number: int, X: Any, y: Any, target: str | None) -> Part:
    """A partition whose labels are apart, or a column."""
    with in_partition(number):
        if target is not None:
            X, y = split_target(X, target)
    return read(estimator, number, X, y)


def task(function: Any) -> Any:
    """A function whose calls are tasks; the dashboard shows them under its name."""
    return dask.delayed(function, pure=False)


def once(value: Any) -> Delayed:
    """A value that is sent once, not with every task."""
    return dask.delayed(value, traverse=False)


def parts_of(X: Any) -> list[Delayed]:
    """The partitions of an array, a data frame or a series."""
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.ndim > 1 else X
        return X.to_delayed().ravel().tolist()
    if isinstance(X, (dd.DataFrame, dd.Series)):
        return X.to_delayed()
    raise TypeError(f"expected a Dask array or data frame, got {type(X).__name__}")


def is_dask(X: Any) -> bool:
    return isinstance(X, (da.Array, dd.DataFrame, dd.Series))


# Questions.


def answer(estimator: TMM, method: str, number: int, shape: tuple, X: Any, options: dict) -> Any:
    """What an estimator says of one partition."""
    with in_partition(number):
        if len(X) == 0:
            return X if shape is None else np.empty((0, *shape))
        if "random_state" in options:  # rows of different partitions are independent
            seed = np.random.SeedSequence([options["random_state"], number])
            options = options | {"random_state": int(seed.generate_state(1, np.uint64)[0])}
        return getattr(estimator, method)(X, **options)


def like(X: Any, answer: Any) -> Any:
    """A completed frame with the types that all partitions have."""
    return answer.astype(X.dtypes.to_dict())


def filled_meta(X: dd.DataFrame) -> Any:
    """The types of a completed frame: columns of whole numbers with holes become real numbers."""
    meta = X._meta
    whole = [name for name, kind in meta.dtypes.items() if kind.name.startswith(("Int", "UInt"))]
    return meta.astype(dict.fromkeys(whole, "float64"))


@dataclass(kw_only=True, eq=False, repr=False)
class OnDask(Partitioned):
    """What the estimators on Dask share. Arrays and frames of other kinds are as ever."""

    def fit(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Train on the rows of a Dask array or data frame.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows; NaN is missing. Its partitions are read once and stay on their workers.
        y : Dask array or series of shape (n_samples,), or str, default=None
            Labels, an array in the same partitions as `X`; or the column of a data frame.
        **options
            For rows that are not Dask's only: as in the estimator of this name in `sumout`.

        Returns
        -------
        self
        """
        if not is_dask(X):
            return super().fit(X, y, **options)
        given = [name for name, value in options.items() if value is not None]
        if given:
            kind = type(options[given[0]]).__name__
            raise TypeError(f"{given[0]}: expected None where the rows are Dask's, got {kind}")
        threads = 1 if self.n_jobs is None else self._threads()  # workers have tasks enough
        return self._fit_partitions(DaskPartitions(X, y, threads))

    def _lazily(self, method: str, X: Any, shape: tuple, dtype: Any, **options: Any) -> Any:
        """An answer of this shape for every row, as a Dask array."""
        ask = task(answer)
        plain = once(self._fitted())
        parts = [ask(plain, method, n, shape, X, options) for n, X in enumerate(parts_of(X))]
        rows = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(parts)
        pairs = zip(parts, rows, strict=True)
        blocks = [da.from_delayed(part, (n, *shape), dtype=dtype) for part, n in pairs]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def _completed(self, method: str, X: Any, **options: Any) -> Any:
        """The rows with their holes filled, in the container they came in."""
        if "random_state" in options:
            options = options | {"random_state": random_seed(options["random_state"])}
        if isinstance(X, da.Array):
            dtype = X.dtype if X.dtype.kind in "fO" else np.float64
            return self._lazily(method, X, X.shape[1:], dtype, **options)
        meta = filled_meta(X)
        ask, plain = task(answer), once(self._fitted())
        parts = [ask(plain, method, n, None, part, options) for n, part in enumerate(parts_of(X))]
        typed = [task(like)(meta, part) for part in parts]
        return dd.from_delayed(typed, meta=meta, divisions=X.divisions, verify_meta=False)

    def _fitted(self) -> TMM:
        """The estimator that answers for every partition."""
        check_is_fitted(self, "model_")
        return self

    def score_samples(self, X: Any) -> Any:
        """Log-likelihood log P(x_o) of what is observed in every row, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().score_samples(X)
        return self._lazily("score_samples", X, (), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class TMMClassifier(OnDask, classifier.TMMClassifier):
    """`sumout.TMMClassifier` on Dask arrays and data frames."""

    def predict_proba(self, X: Any) -> Any:
        """Probabilities P(y | x_o) of the classes, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().predict_proba(X)
        check_is_fitted(self, "model_")
        return self._lazily("predict_proba", X, (len(self.classes_),), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        if not is_dask(X):
            return super().predict_log_proba(X)
        return da.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of every row, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().predict(X)
        check_is_fitted(self, "model_")
        return self._lazily("predict", X, (), self.classes_.dtype)

    def impute(self, X: Any, how: str = "mean", **options: Any) -> Any:
        """Fill missing values, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().impute(X, how, **options)
        return self._completed("impute", X, how=how, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class TMMDensity(OnDask, density.TMMDensity):
    """`sumout.TMMDensity` on Dask arrays and data frames."""

    def impute(self, X: Any, how: str = "mean", **options: Any) -> Any:
        """Fill missing values, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().impute(X, how, **options)
        return self._completed("impute", X, how=how, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class TMMImputer(OnDask, density.TMMImputer):
    """`sumout.TMMImputer` on Dask arrays and data frames."""

    def transform(self, X: Any) -> Any:
        """Fill missing values, as in `sumout`, lazily."""
        if not is_dask(X):
            return super().transform(X)
        return self._completed("_filled", X, random_state=self.random_state)

    def _filled(self, X: Any, random_state: int) -> Any:
        return self._impute(X, self._rows(X), self.how, None, random_state)
