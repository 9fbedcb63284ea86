"""Training on rows that lie in several places: what is done with each partition, and when.

Every partition is read once, by its own categories (`read`). What all of them hold together gives
the columns and classes (`merged`), by which each is encoded (`encoded`). A sample of all rows is
fitted as any table is. Then all rows teach the model in rounds: every partition contributes, the
contributions are added, the sum moves the model. Where that happens is for a `Partitions` to say.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from sumout import _engine, labels
from sumout.columns import Columns, as_frame, distinct
from sumout.estimator import TMM
from sumout.names import column_name, is_hole, name_of
from sumout.parameters import Parameters
from sumout.progress import Bar


class Part(NamedTuple):
    """A partition as it was read."""

    values: np.ndarray  # (n, width) float32, by the categories of this partition
    columns: Columns
    has_names: bool  # whether the columns came with names
    y: np.ndarray | None  # (n) labels as they came


class Summary(NamedTuple):
    """What the others need to know of a partition."""

    rows: int
    columns: Columns
    has_names: bool
    classes: np.ndarray  # its labels, each once
    counts: np.ndarray  # how often each occurs


class Encoded(NamedTuple):
    """A partition as the engine takes it."""

    values: np.ndarray  # (n, width) float32
    labels: np.ndarray  # (n) int64, -1 is missing
    weights: np.ndarray  # (n) float32, or empty where all are 1


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Says in an error which partition it is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"partition {number}: {error}") from None


# On the machine that holds a partition.


def read(estimator: TMM, number: int, X: Any, y: Any = None) -> Part:
    """A partition's rows by its own categories; one without rows has none."""
    with in_partition(number):
        if len(X) == 0:
            return Part(np.empty((0, X.shape[1]), np.float32), Columns([], []), False, None)
        alone = clone(estimator)
        values = alone._learn_columns(X)
        y = labels.as_array(y) if y is not None and has_classes(estimator) else None
        if y is not None and len(y) != len(values):
            raise ValueError(f"y: expected {len(values)} labels, got {len(y)}")
        return Part(values, alone._columns, hasattr(alone, "feature_names_in_"), y)


def has_classes(estimator: TMM) -> bool:
    return hasattr(estimator, "missing_label")


def split_target(X: Any, target: str) -> tuple[Any, np.ndarray]:
    """A frame without one of its columns, and that column."""
    frame = as_frame(X)
    if frame is None or target not in frame.columns:
        columns = "a data frame" if frame is None else f"one of the columns {frame.columns}"
        raise ValueError(f"target: expected {columns}, got {target!r}")
    return frame.drop(target).to_native(), frame.get_column(target).to_numpy()


def summary(part: Part) -> Summary:
    """What the others need to know of a partition."""
    y = np.empty(0) if part.y is None else part.y
    classes, counts = np.unique(y[~labels.holes(y)], return_counts=True)
    return Summary(len(part.values), part.columns, part.has_names, classes, counts)


def encoded(estimator: TMM, number: int, part: Part, class_weights: np.ndarray) -> Encoded:
    """A partition by the columns and classes of all; `estimator` knows them."""
    with in_partition(number):
        rows = len(part.values)
        codes = np.zeros(rows, dtype=np.int64)
        if part.y is not None:
            y, known = labels.validate(part.y, estimator.missing_label, estimator.classes_)
            codes = labels.encode(y, known, estimator.classes_)
        values = part.values if rows == 0 else recoded(part, estimator._columns)
        check_finite(values, estimator._columns.names)
        weights = np.append(class_weights, 1.0)[codes].astype(np.float32)
        weights = weights[:0] if (class_weights == 1).all() else weights
        return Encoded(values, codes, weights)


def recoded(part: Part, columns: Columns) -> np.ndarray:
    """The values of a partition by the categories of all; the partition stays as it is."""
    values = part.values.copy()
    for j, (own, known) in enumerate(zip(part.columns.categories, columns.categories, strict=True)):
        if own is None or known is None or list(own) == list(known):
            continue  # only holes, or the same categories
        place = {name_of(value): code for code, value in enumerate(known)}
        codes = np.array([place[name_of(value)] for value in own] + [np.nan], dtype=np.float32)
        cells = values[:, j]
        values[:, j] = codes[np.where(np.isnan(cells), len(own), cells).astype(int)]
    return values


def check_finite(values: np.ndarray, names: list[str]) -> None:
    """Raises for the first number that is infinite."""
    found = np.argwhere(np.isinf(values))
    if len(found):
        row, j = found[0].tolist()
        raise ValueError(
            f"{column_name(names, j)}, row index {row}: expected a finite number or "
            f"NaN for missing, got {values[row, j]}"
        )


def sampled(part: Encoded, number: int, count: int, seed: int) -> Encoded:
    """So many rows of a partition, drawn at random."""
    random = np.random.default_rng([seed, number])
    rows = np.sort(random.choice(len(part.values), count, replace=False))
    return Encoded(part.values[rows], part.labels[rows], part.weights[:0])


def contribution(step: bytes, number: int, part: Encoded, threads: int) -> bytes:
    """What a partition adds to a step."""
    with in_partition(number):
        # An array that came over a network may lie anywhere.
        arrays = (np.require(array, requirements=["C", "A"]) for array in part)
        return _engine.contribution(step, number, *arrays, threads)


def added(parts: list[bytes]) -> bytes:
    """The sum of contributions; neither their order nor their grouping changes a bit."""
    return _engine.add_contributions(parts)


# On the machine that holds the model.


class Partitions(ABC):
    """Rows that lie in several places. Partitions are numbered from 0."""

    @abstractmethod
    def read(self, estimator: TMM) -> list[Summary]:
        """Reads all partitions."""

    @abstractmethod
    def encode(self, estimator: TMM, class_weights: np.ndarray) -> None:
        """Encodes them, and keeps them where they are."""

    @abstractmethod
    def sample(self, counts: list[int], seed: int) -> list[Encoded]:
        """So many rows of each."""

    @abstractmethod
    def sum(self, step: bytes) -> bytes:
        """The sum of all contributions to a step."""


@dataclass(kw_only=True, eq=False, repr=False)
class Partitioned(Parameters):
    """What estimators of partitioned rows can be given.

    Parameters
    ----------
    sample_rows : int, default=50000
        Rows of the sample that chooses the structure and starts the model. `steps`, `batch` and
        `rate` are those of its fit.
    em_passes : int, default=None
        Passes of expectation maximisation over all rows, before the rounds.
    rounds : int, default=None
        Steps over all partitions.
    round_rows : int, default=None
        Rows of such a step, from every partition in proportion to its rows.
    """

    sample_rows: int = 50_000
    em_passes: int | None = None
    rounds: int | None = None
    round_rows: int | None = None

    def _fit_partitions(self, partitions: Partitions) -> Any:
        """Trains on all rows, or leaves everything as it was."""
        with self._all_or_nothing():
            self._check_parameters()
            self.image_shape_ = self._checked_shape()
            summaries = partitions.read(self)
            counts = merge(self, summaries)
            class_weights = self._weights_of_classes(counts)
            partitions.encode(self, class_weights)
            self._start(partitions, [summary.rows for summary in summaries], class_weights)
            self._teach(partitions, [s.rows for s in summaries], counts * class_weights)
        return self

    def _weights_of_classes(self, counts: np.ndarray) -> np.ndarray:
        if not hasattr(self, "classes_"):
            return np.ones(1)
        return self._class_weights(self.classes_, np.ones(len(counts), bool), counts)

    def _start(self, partitions: Partitions, sizes: list[int], weights: np.ndarray) -> None:
        """Fits a sample of all rows."""
        counts = sample_counts(sizes, self._whole("sample_rows", 1))
        try:
            sample = [part for part in partitions.sample(counts, self._seed()) if len(part.values)]
            values = np.concatenate([part.values for part in sample])
            codes = np.concatenate([part.labels for part in sample])
        except MemoryError:
            raise MemoryError(
                f"sample_rows: expected memory on this machine for {sum(counts)} rows of "
                f"{self.n_features_in_} columns, got less; a smaller sample_rows needs less"
            ) from None
        names = self._class_names() if hasattr(self, "classes_") else []
        self._train(values, codes, np.ones(len(values)), weights, names)

    def _teach(self, partitions: Partitions, sizes: list[int], prior: np.ndarray) -> None:
        """Rounds over all rows."""
        options = {
            name: self._whole(parameter, least)
            for name, parameter, least in (
                ("em_passes", "em_passes", 0),
                ("rounds", "rounds", 0),
                ("rows", "round_rows", 1),
            )
            if getattr(self, parameter) is not None
        }
        rounds = _engine.Rounds(self.model_, sizes, prior.tolist(), json.dumps(options))
        bar = Bar(None) if self.verbose else None
        while rounds.steps_done < rounds.steps:
            objective = rounds.apply(partitions.sum(rounds.round()), self._threads())
            if bar is not None:
                bar(rounds.steps_done, rounds.steps, objective)
        self._class_counts = prior.tolist()
        self._keep(rounds.model())

    def _whole(self, name: str, least: int) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name}: expected a whole number from {least}, got {value!r}")
        return int(value)


def sample_counts(sizes: Sequence[int], rows: int) -> list[int]:
    """How many rows of each partition are in a sample of so many rows, in proportion."""
    ends, total = np.cumsum([0, *sizes]).tolist(), sum(sizes)
    places = [min(rows, total) * end // total for end in ends]
    return [end - start for start, end in zip(places[:-1], places[1:], strict=True)]


def merge(estimator: TMM, summaries: list[Summary]) -> np.ndarray:
    """Gives the estimator the columns and classes of all partitions; the rows of each class."""
    seen = [(number, s) for number, s in enumerate(summaries) if s.rows]
    if not seen:
        raise ValueError("expected at least one row, got none in any partition")
    first, (names, width) = seen[0][0], names_and_width(seen[0][1])
    for number, found in seen:
        if names_and_width(found) != (names, width):
            raise ValueError(
                f"partition {number}: expected the columns of partition {first}, "
                f"{names or width}, got {found.columns.names or len(found.columns.categories)}"
            )
    categories = [merged_column(seen, names, j) for j in range(width)]
    dates = {}
    for _, found in seen:
        for name, style in found.columns.dates.items():
            dates[name] = max(style, dates.get(name, style))  # "time" if any has one
    estimator._columns = Columns(categories, names, dates)
    estimator.n_features_in_ = width
    vars(estimator).pop("feature_names_in_", None)
    if seen[0][1].has_names:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if not has_classes(estimator):
        return np.array([float(sum(found.rows for _, found in seen))])
    if not any(len(found.classes) for _, found in seen):
        raise ValueError("y: expected at least one label, got none in any partition")
    return merge_classes(estimator, [found for _, found in seen])


def names_and_width(found: Summary) -> tuple[list[str], int]:
    return found.columns.names, len(found.columns.categories)


def merged_column(seen: list[tuple[int, Summary]], names: list[str], j: int) -> np.ndarray | None:
    """The categories of column `j` in all partitions, None for numbers."""
    found = [(number, s.columns.categories[j]) for number, s in seen]
    numbers = [number for number, known in found if known is None]
    texts = [number for number, known in found if known is not None and len(known)]
    if numbers and texts:
        raise ValueError(
            f"partition {max(numbers[0], texts[0])}, {column_name(names, j)}: expected what partition "
            f"{min(numbers[0], texts[0])} has, got {'numbers' if numbers > texts else 'categories'}"
        )
    if numbers:
        return None
    return distinct(np.array([value for _, known in found for value in known], dtype=object))


def merge_classes(estimator: TMM, seen: list[Summary]) -> np.ndarray:
    """Gives the estimator its classes; the rows of each."""
    classes = np.unique(np.concatenate([found.classes for found in seen]))
    known, missing = np.ones(len(classes), dtype=bool), estimator.missing_label
    if not is_hole(missing):
        known &= ~labels.equal_to(missing, classes, known)
    estimator.classes_ = classes[known]
    place = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    counts = np.zeros(len(estimator.classes_))
    for found in seen:
        for label, count in zip(found.classes.tolist(), found.counts, strict=True):
            if label in place:
                counts[place[label]] += count
    return counts
