"""Training on one machine with more rows than fit into memory: batch by batch.

Examples
--------
>>> import numpy as np
>>> from sumout.batches import TMMDensity
>>> random = np.random.default_rng(0)
>>> batches = (random.normal(size=(500, 2)) for _ in range(4))  # each is read once
>>> model = TMMDensity(random_state=0, steps=50, trees=1).fit(batches)
>>> model.score_samples([[0.0, 0.0]]).shape
(1,)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sumout import classifier, density
from sumout.estimator import TMM
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


class Spooled(Partitions):
    """Batches in files of a temporary folder, of which one is in memory at a time."""

    def __init__(self, batches: Iterable, folder: str | os.PathLike, threads: int) -> None:
        self.batches, self.folder, self.threads = batches, Path(folder), threads
        self.parts: list[Part] = []  # their values are in files

    def read(self, estimator: TMM) -> list[Summary]:
        summaries = []
        for number, batch in enumerate(self.batches):
            X, y = batch if isinstance(batch, tuple) else (batch, None)
            part = read(estimator, number, X, y)
            np.save(self.file(number, "values"), part.values)
            summaries.append(summary(part))
            self.parts.append(part._replace(values=part.values[:0]))
        return summaries

    def encode(self, estimator: TMM, class_weights: np.ndarray) -> None:
        for number, part in enumerate(self.parts):
            part = part._replace(values=np.load(self.file(number, "values")))
            own = encoded(estimator, number, part, class_weights)
            for name, numbers in own._asdict().items():
                np.save(self.file(number, name), numbers)
        self.parts = [part._replace(y=None) for part in self.parts]

    def sample(self, counts: list[int], seed: int) -> list[Encoded]:
        wanted = zip(self.all(), counts, strict=True)
        return [sampled(part, n, count, seed) for n, (part, count) in enumerate(wanted)]

    def sum(self, step: bytes) -> bytes:
        total: list[bytes] = []
        for number, part in enumerate(self.all()):
            own = contribution(step, number, part, self.threads)
            total = [added([*total, own])]
        return total[0]

    def all(self) -> Iterator[Encoded]:
        for number in range(len(self.parts)):
            yield Encoded(*(np.load(self.file(number, name)) for name in Encoded._fields))

    def file(self, number: int, name: str) -> Path:
        return self.folder / f"{number}.{name}.npy"


def batches_of(X: Any, y: str | None) -> Iterator:
    """The batches of a `pyarrow.dataset`, or of an iterable of frames, arrays or pairs.

    Labels are the second of a pair, or a column of this name.
    """
    for number, batch in enumerate(X.to_batches() if hasattr(X, "to_batches") else X):
        arrow = sys.modules.get("pyarrow")
        if arrow is not None and isinstance(batch, arrow.RecordBatch):
            batch = arrow.Table.from_batches([batch])
        with in_partition(number):
            batch = batch if y is None else split_target(batch, y)
        yield batch


@dataclass(kw_only=True, eq=False, repr=False)
class Batched(Partitioned):
    """Training on batches. `folder` is where they are kept meanwhile, None for the usual one."""

    folder: str | os.PathLike | None = None

    def fit(self, X: Any, y: Any = None) -> Any:
        """Train on batches of rows.

        Parameters
        ----------
        X : iterable or pyarrow.dataset.Dataset
            Arrays or data frames with the same columns, or pairs of one and its labels. An
            iterator is read once, and one batch is in memory at a time.
        y : str, default=None
            The column of labels.

        Returns
        -------
        self
        """
        with TemporaryDirectory(prefix="sumout-", dir=self.folder) as folder:
            return self._fit_partitions(Spooled(batches_of(X, y), folder, self._threads()))


@dataclass(kw_only=True, eq=False, repr=False)
class TMMClassifier(Batched, classifier.TMMClassifier):
    """`sumout.TMMClassifier`, trained batch by batch."""


@dataclass(kw_only=True, eq=False, repr=False)
class TMMDensity(Batched, density.TMMDensity):
    """`sumout.TMMDensity`, trained batch by batch."""


@dataclass(kw_only=True, eq=False, repr=False)
class TMMImputer(Batched, density.TMMImputer):
    """`sumout.TMMImputer`, trained batch by batch."""
