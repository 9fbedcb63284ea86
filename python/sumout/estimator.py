"""What the three estimators share: parameters, rows in, a training set, questions about columns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sumout import _engine
from sumout.columns import Columns, as_frame
from sumout.files import write_atomically
from sumout.progress import Bar

# Weights that are whole numbers become repeated rows, up to so many numbers in all.
MOST_REPEATED = 100_000_000

# Threads of a model: more than any machine has use for, fewer than would stop it.
MOST_THREADS = 1024


class TMM(BaseEstimator):
    """A Tensorial Mixture Model over the columns of a table or the pixels of images; NaN is missing.

    Parameters that every class has; what is None is chosen to suit the data.

    image_shape : (height, width) or (height, width, channels), or None for a table
    categorical_features : 'from_dtype', None, a mask, or names or numbers of columns
        Columns of frames that are categories, text or booleans are categories in any case.
    components, channels, trees : size of the model: leaf densities, states of a node, trees side by side
    steps, batch, rate : length of training, rows of a step, learning rate
    drop_inputs : share of the numbers that training sums out at random, on average
    random_state : the same gives the same model, whatever the number of threads
    n_jobs : threads; None is OMP_NUM_THREADS (joblib's processes set it) or one a core, -1 one a core
    verbose : 1 shows a bar
    device : 'cpu', or where the package was built with it 'cuda' (or 'cuda:1'), to train and to answer; what was loaded or
        unpickled answers on the processor
    """

    image_shape: Any
    n_features_in_: int
    _settings: tuple[str, ...] = ("steps", "batch", "rate", "drop_inputs")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    # Rows.

    def _learn_columns(self, X: Any) -> np.ndarray:
        """Looks at the columns of a training set, and encodes it."""
        X = self._flat(X)
        frame = as_frame(X)
        arrays = self.categorical_features is None or isinstance(self.categorical_features, str)
        self.image_shape_ = self._checked_shape()
        if frame is None and arrays:
            X = self._numeric(X, reset=True)
        else:
            X = self._cells(X, reset=True)
        self._columns = Columns.learn(X, self.n_features_in_, self.categorical_features)
        if self.image_shape_ is not None and np.prod(self.image_shape_) != self.n_features_in_:
            wanted, got = np.prod(self.image_shape_), self.n_features_in_
            raise ValueError(
                f"image_shape: expected {wanted} columns for {self.image_shape}, got {got}"
            )
        if self.image_shape_ is None:
            self._columns.warn_of_coarse(X)
        return self._encoded(X)

    def _rows(self, X: Any) -> np.ndarray:
        """Rows to ask about, (n, width) float32."""
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind == "f"
            and X.shape[0] > 0
            and X.shape[1] == getattr(self, "n_features_in_", -1)
            and self._plain
        ):
            return np.ascontiguousarray(X, dtype=np.float32)  # the engine checks the rest
        check_is_fitted(self, "model_")
        X = self._flat(X)
        simple = self._columns.plain and as_frame(X) is None
        return self._encoded(
            self._numeric(X, reset=False) if simple else self._cells(X, reset=False)
        )

    def _numeric(self, X: Any, reset: bool) -> np.ndarray:
        return validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )

    def _cells(self, X: Any, reset: bool) -> Any:
        """Frames, and arrays with categories in them."""
        if as_frame(X) is None:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)
        if len(X) == 0 or X.shape[1] == 0:
            found = f"{len(X)} sample(s) and {X.shape[1]} feature(s)"
            raise ValueError(f"Found array with {found} while a minimum of 1 is required.")
        return X

    def _encoded(self, X: Any) -> np.ndarray:
        if isinstance(X, np.ndarray) and self._columns.plain:
            with np.errstate(over="ignore"):
                return np.ascontiguousarray(X, dtype=np.float32)
        return self._columns.encode(X)

    def _flat(self, X: Any) -> Any:
        """Images (n, height, width[, channels]) as rows; what is masked is missing."""
        if isinstance(X, np.ma.MaskedArray):
            X = (
                X.astype(object).filled(None)
                if X.dtype.kind in "OUS"
                else X.astype(np.float64).filled(np.nan)
            )
        if (
            self.image_shape is not None
            and getattr(X, "ndim", 2) > 2
            and X.shape[1:] == tuple(self.image_shape)
        ):
            return np.asarray(X).reshape(len(X), -1)
        return X

    def _checked_shape(self) -> tuple[int, int, int] | None:
        if self.image_shape is None:
            return None
        shape = tuple(self.image_shape)
        if len(shape) not in (2, 3) or not all(
            isinstance(n, (int, np.integer)) and n > 0 for n in shape
        ):
            raise ValueError(
                f"image_shape: expected (height, width) or (height, width, channels), got {shape}"
            )
        return int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1

    # Training.

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What was learned before stays as it was if this fails or is interrupted."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _train(
        self,
        values: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        class_weights: np.ndarray,
        names: list[str],
    ) -> None:
        """Learns `model_`. Equal rows are one with the sum of their weights, in an order of the engine's."""
        values, labels, weights, counts = training_set(
            values, labels, weights, class_weights, self._threads()
        )
        about = {"classes": names, **self._columns.about()}
        model = _engine.train(
            values,
            labels,
            weights,
            self._columns.counts,
            self.image_shape_,
            counts,
            json.dumps(self._given("components", "channels", "trees")),
            json.dumps({**self._given(*self._settings), "seed": self._seed()}),
            json.dumps(about),
            self.device,
            self._threads(),
            Bar() if self.verbose else None,
        )
        self._class_counts = counts
        self._keep(model)

    def _go_on(
        self, values: np.ndarray, labels: np.ndarray, weights: np.ndarray, class_weights: np.ndarray
    ) -> None:
        """Teaches `model_` more rows at a small, steady rate."""
        values, labels, weights, counts = training_set(
            values, labels, weights, class_weights, self._threads()
        )
        counts = [old + new for old, new in zip(self._class_counts, counts)]
        batch = min(128, len(values))
        steady = {
            "schedule": "constant",
            "rate": 0.01,
            "batch": batch,
            "steps": max(10, 10 * len(values) // batch),
        }
        settings = {**steady, **self._given(*self._settings), "seed": self._seed()}
        model = _engine.go_on(
            self.model_,
            values,
            labels,
            weights,
            counts,
            json.dumps(settings),
            self.device,
            self._threads(),
            Bar() if self.verbose else None,
        )
        self._class_counts = counts
        self._keep(model)

    def _keep(self, model: _engine.Model) -> None:
        self.model_ = model
        self._plain = self._columns.plain and not hasattr(self, "feature_names_in_")

    def _given(self, *names: str) -> dict:
        """Parameters that are not None, as numbers of Python."""
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
        }

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int:
        """0 is one a core."""
        if self.n_jobs is None:
            wanted = os.environ.get("OMP_NUM_THREADS", "")
            return int(wanted) if wanted.isdigit() else 0
        if self.n_jobs == 0:
            raise ValueError(
                "n_jobs: expected a number of threads, -1 for one a core, or None, got 0"
            )
        if self.n_jobs > MOST_THREADS:
            raise ValueError(f"n_jobs: expected at most {MOST_THREADS} threads, got {self.n_jobs}")
        if self.n_jobs < -1:
            return max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)
        return max(0, self.n_jobs)

    def _check_device(self) -> None:
        _engine.check_device(self.device)

    # Questions.

    def score_samples(self, X: Any) -> np.ndarray:
        """log P(x_o) of every row: how likely is what was observed, in the units of the data."""
        rows = self._rows(X)
        return self.model_.log_marginal(rows, self._threads())

    def log_conditional(self, X: Any, given: Any) -> np.ndarray:
        """log P(x_q | x_o) of every row: `X` holds x_q and x_o, `given` the same rows with x_q missing."""
        rows = self._rows(X)
        return self.model_.log_conditional(rows, self._rows(given), self._threads())

    def _impute(self, X: Any, how: str, label: int | None, random_state: Any) -> Any:
        """The rows with their holes filled, as they came: an array, or a frame."""
        rows = self._rows(X)
        if how == "mean":
            filled = self.model_.impute_mean(rows, label, self._threads())[0]
        elif how == "mode":
            filled = self.model_.impute_mode(rows, label, self._threads())
        elif how == "sample":
            seed = int(check_random_state(random_state).randint(2**31 - 1))
            filled = self.model_.impute_sample(rows, label, seed, self._threads())
        else:
            raise ValueError(f"how: expected 'mean', 'mode' or 'sample', got {how!r}")
        flat = self._flat(X)
        out = self._columns.fill(flat if as_frame(flat) is not None else np.asarray(flat), filled)
        return out if flat is X else out.reshape(X.shape)

    def explain(
        self,
        level: int,
        channel: int,
        *,
        node: int = 0,
        tree: int = 0,
        n: int | None = None,
        random_state: Any = None,
    ) -> np.ndarray:
        """What one neuron stands for: `n` samples of the columns below it, or its mode where `n` is None.

        Columns that are not below it are NaN. Level 0 is the leaves; `model_.describe()` shows the levels.
        """
        check_is_fitted(self, "model_")
        n = None if n is None else checked_count(n, self.n_features_in_)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        codes = self.model_.explain(tree, level, node, channel, n, seed, self._threads())
        return self._columns.decode(codes)

    # Files.

    def save(self, path: str | os.PathLike) -> None:
        """Writes a model file that the command line and `sumout.load` open."""
        check_is_fitted(self, "model_")
        write_atomically(path, self.model_.to_bytes())

    def _open(self, model: _engine.Model) -> TMM:
        """Becomes the estimator of a model that was trained elsewhere."""
        about = json.loads(model.about)
        self._columns = Columns.of_model(model.categories, about)
        self.n_features_in_ = len(model.categories)
        if about["columns"]:
            self.feature_names_in_ = np.array(about["columns"], dtype=object)
        self.image_shape_ = model.image_shape
        if model.image_shape is not None:
            height, width, channels = model.image_shape
            self.image_shape = (height, width) if channels == 1 else (height, width, channels)
        rows = about["training"].get("rows", 1) if isinstance(about["training"], dict) else 1
        self._class_counts = (np.exp(model.log_prior) * rows).tolist()
        self._keep(model)
        return self


def checked_count(n: Any, width: int) -> int:
    """How many rows are to be drawn; they must fit into memory."""
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n: expected a whole number from 0, got {n!r}")
    try:
        np.empty((n, width))
    except (ValueError, MemoryError):
        raise MemoryError(f"n: {n} rows of {width} numbers do not fit into memory") from None
    return int(n)


def given_rows(rows: np.ndarray, n: int) -> np.ndarray:
    """One row `n` times, or `n` rows."""
    if len(rows) not in (1, n):
        raise ValueError(f"given: expected 1 row or {n}, got {len(rows)}")
    return np.repeat(rows, n, axis=0) if len(rows) == 1 else rows.copy()


def checked_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """(n) float64, all one where there are none."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1 or len(weights) != rows:
        raise ValueError(
            f"sample_weight: expected one number for each of {rows} rows, got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight: expected finite numbers from 0")
    if not weights.any():
        raise ValueError(
            "sample_weight: expected at least one that is not zero, got all weights zero"
        )
    return weights


def training_set(
    values: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    class_weights: np.ndarray,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[float]]:
    """Rows, labels, weights of the loss (none where all are one) and the weight of every class.

    A weight of 2 is the row twice, a weight of 0 no row, and the order of rows does not matter.
    """
    places, weights = _engine.distinct_rows(values, labels, weights, threads)
    total = weights.sum()
    if (weights == np.floor(weights)).all() and (
        total <= len(values) or total * values.shape[1] <= MOST_REPEATED
    ):
        places = np.repeat(places, weights.astype(np.int64))
        weights = np.ones(len(places))
    values, labels = np.ascontiguousarray(values[places]), labels[places]
    weights = weights * np.append(class_weights, 1.0)[labels]  # a missing label, -1, weighs 1
    there = labels >= 0
    counts: np.ndarray = np.bincount(labels[there], weights[there], minlength=len(class_weights))
    counts = counts if counts.any() else np.ones(len(class_weights))
    of_loss = np.empty(0) if (weights == 1).all() else weights / weights.mean()
    return values, labels, of_loss.astype(np.float32), counts.tolist()
