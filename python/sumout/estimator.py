"""What the estimators share: reading rows, training, queries about columns, saving."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from sumout import _engine
from sumout.bounds import ranges_of
from sumout.columns import Columns, as_frame, is_number
from sumout.dates import days_of_array
from sumout.files import write_atomically
from sumout.names import column_name, is_hole, unmasked
from sumout.parameters import Parameters, random_seed
from sumout.progress import Bar
from sumout.training_set import training_set


class TMM(Parameters):
    """A Tensorial Mixture Model over the columns of a table or the pixels of images."""

    n_features_in_: int
    _settings: tuple[str, ...] = ("steps", "batch", "rate", "drop_inputs")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    # Rows.

    def _learn_columns(self, X: Any) -> np.ndarray:
        """Finds the columns of a training set and encodes it, (n, width) float32."""
        X = self._flat(X)
        features = self.categorical_features
        self.image_shape_ = self._checked_shape()
        if as_frame(X) is None and (features is None or isinstance(features, str)):
            X = self._numeric(X, reset=True)
        else:
            X = self._cells(X, reset=True)
        self._columns = Columns.learn(X, self.n_features_in_, features)
        self._check_sequence()
        if self.image_shape_ is None:
            self._columns.warn_of_numbers(X)
        elif np.prod(self.image_shape_) != self.n_features_in_:
            wanted, got = np.prod(self.image_shape_), self.n_features_in_
            raise ValueError(
                f"image_shape: expected {wanted} columns for {self.image_shape}, got {got}"
            )
        return self._encoded(X)

    def _rows(self, X: Any) -> np.ndarray:
        """Rows of a query, (n, width) float32."""
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
        """Arrays of numbers."""
        try:
            return validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        except TypeError as error:
            column = odd_column(X)
            if column is None:
                raise
            raise TypeError(f"{column_name(None, column)}: expected numbers: {error}") from None
        except ValueError as error:
            column = odd_column(X) if "could not convert string" in str(error) else None
            if column is None:
                raise
            raise ValueError(
                f"{column_name(None, column)}: expected numbers: {error}; give text in a data "
                f"frame, or name its columns: categorical_features=[{column}]"
            ) from None

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
        return self._columns.encode(X, self.unseen)

    def _flat(self, X: Any) -> Any:
        """Images (n, height, width[, channels]) as rows; masked cells are missing, dates days."""
        if isinstance(X, np.ma.MaskedArray):
            X = unmasked(X)
        if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
            X = days_of_array(X)
        if getattr(X, "ndim", 2) > 2:
            is_image = self.image_shape is not None and X.shape[1:] == tuple(self.image_shape)
            if is_image or (X.ndim == 3 and X.shape[1] == self.sequence_length):
                return np.asarray(X).reshape(len(X), -1)
            if self.image_shape is not None:
                wanted = ("n", *self.image_shape)
                wanted = f"({', '.join(map(str, wanted))})"
                raise ValueError(f"image_shape: expected images {wanted}, got {X.shape}")
        return X

    def _check_sequence(self) -> None:
        """Raises if the columns are not whole steps of numbers."""
        length = self._given("sequence_length").get("sequence_length")
        if length is None:
            return
        if self.image_shape is not None:
            raise ValueError("sequence_length: expected None where image_shape is given")
        if not self._columns.plain:
            raise ValueError("sequence_length: expected columns of numbers, got categories")
        if self.n_features_in_ % length:
            raise ValueError(
                f"sequence_length: expected a multiple of {length} columns, got "
                f"{self.n_features_in_}"
            )

    # Training.

    def _check_parameters(self) -> None:
        """Raises before any work if a parameter cannot be used."""
        self._check_device()

    def _check_device(self) -> None:
        """Raises before work starts if the device cannot be used."""
        _engine.check_device(self.device)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restores what was learned before if training fails or is interrupted."""
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
        class_names: list[str],
        target: int | None = None,
    ) -> None:
        """Trains `model_` from the beginning; `target` is a column to predict."""
        data = training_set(values, labels, weights, class_weights, self._threads())
        columns = self._model_columns()
        about = {"classes": class_names, **columns.about()}
        about.setdefault("training", {})["data"] = data.digest()
        plan = self._given("components", "channels", "trees")
        ranges = self._ranges()
        if ranges is not None:
            plan["ranges"] = ranges
        plan |= self._given("sequence_length")
        model = _engine.train(
            data.values,
            data.labels,
            data.weights,
            columns.counts,
            self.image_shape_,
            data.class_counts,
            target,
            json.dumps(plan),
            json.dumps({**self._given(*self._settings), "seed": self._seed()}),
            json.dumps(about),
            self.device,
            self._threads(),
            self._on_progress(),
        )
        self._class_counts = data.class_counts
        self._keep(model)

    def _train_further(
        self,
        values: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        class_weights: np.ndarray,
    ) -> None:
        """Trains `model_` on more rows, at a small, constant learning rate."""
        data = training_set(values, labels, weights, class_weights, self._threads())
        counts = [a + b for a, b in zip(self._class_counts, data.class_counts, strict=True)]
        batch = min(128, len(data.values))
        steps = max(10, 10 * len(data.values) // batch)
        defaults = {"schedule": "constant", "rate": 0.01, "batch": batch, "steps": steps}
        settings = {**defaults, **self._given(*self._settings), "seed": self._seed()}
        model = _engine.go_on(
            self.model_,
            data.values,
            data.labels,
            data.weights,
            counts,
            json.dumps(settings),
            self.device,
            self._threads(),
            self._on_progress(),
        )
        self._class_counts = counts
        self._keep(model)

    def _model_columns(self) -> Columns:
        """The columns of the model."""
        return self._columns

    def _ranges(self, target: str | None = None) -> list[dict] | None:
        """What the numbers of the columns of the model can be."""
        names = getattr(self, "feature_names_in_", np.empty(0)).tolist()
        return ranges_of(self.bounds, self.whole, names, self._columns.counts, target)

    def _features(self, codes: np.ndarray) -> np.ndarray:
        """The columns of `X` in rows of the model."""
        return codes

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        """Rows of the model as rows of `X`."""
        return self._columns.decode(self._features(codes))

    def _on_progress(self) -> Bar | None:
        return Bar(self.steps) if self.verbose else None

    def _keep(self, model: _engine.Model) -> None:
        self.model_ = model
        self._plain = self._columns.plain and not hasattr(self, "feature_names_in_")

    # Queries.

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood log P(x_o) of what is observed in every row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of densities in the units of the data. A row with nothing
            observed has 0.
        """
        rows = self._rows(X)
        return self.model_.log_marginal(rows, self._threads())

    def log_conditional(self, X: Any, given: Any) -> np.ndarray:
        """Log-likelihood log P(x_q | x_o) of some cells given others, for every row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with x_q and x_o; NaN is missing.
        given : array-like or data frame of shape (n_samples, n_features)
            The same rows with x_o only: x_q is missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._rows(X)
        return self.model_.log_conditional(rows, self._rows(given), self._threads())

    def _impute(
        self, X: Any, rows: np.ndarray, how: str, class_index: int | None, random_state: Any
    ) -> Any:
        """`X`, which are these rows of the model, with holes filled, in the container it came in."""
        check_how(how)
        if how == "mean":
            filled = self.model_.impute_mean(rows, class_index, self._threads())[0]
        elif how == "median":
            filled = _engine.impute_quantiles(
                self.model_, rows, [0.5], class_index, self._threads()
            )[0]
        elif how == "mode":
            filled = self.model_.impute_mode(rows, class_index, self._threads())
        else:
            seed = random_seed(random_state)
            filled = self.model_.impute_sample(rows, class_index, seed, self._threads())
        flat, filled = self._flat(X), self._features(filled)
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
        """Show what one channel of one node represents.

        Parameters
        ----------
        level : int
            Level of the node; 0 is the leaves. `model_.describe()` lists the levels.
        channel : int
            Channel of the node.
        node : int, default=0
            Place of the node in its level.
        tree : int, default=0
            Tree of the node.
        n : int, default=None
            Number of samples to draw. None gives the mode instead.
        random_state : int, RandomState instance or None, default=None
            Seed of the samples.

        Returns
        -------
        ndarray of shape (n, n_features), or (1, n_features) for the mode
            Values of the columns below the node; the other columns are NaN.
        """
        check_is_fitted(self, "model_")
        n = None if n is None else checked_count(n, self.n_features_in_)
        seed = random_seed(random_state)
        codes = self.model_.explain(tree, level, node, channel, n, seed, self._threads())
        return self._decoded(codes)

    # Files.

    def save(self, path: str | os.PathLike, note: str | None = None) -> None:
        """Write a model file, which `sumout.load` and the command line open.

        Parameters
        ----------
        path : str or path-like
            A file that exists is replaced, whole or not at all.
        note : str, default=None
            What to write into the file about the model, such as who trained it, when and why.
            `card` and `sumout inspect` show it.
        """
        check_is_fitted(self, "model_")
        write_atomically(path, self.model_.to_bytes(note))

    def card(self) -> dict[str, Any]:
        """Say what the model was trained on, by what, and how good it was.

        Returns
        -------
        dict
            What is known of: `program`, `source` (the name of the data), `rows`, `columns`,
            `target`, `data` (a SHA-256 of the rows), `validated` (figures of the validation rows
            of `sumout train --validation`) and `note`.
        """
        check_is_fitted(self, "model_")
        notes = json.loads(self.model_.about)["training"] or {}
        known = {**notes, "columns": len(self.model_.categories)}
        names = ("program", "source", "rows", "columns", "target", "data", "validated", "note")
        return {name: known[name] for name in names if known.get(name) is not None}

    def _open(self, model: _engine.Model) -> Any:
        """Makes this the estimator of a model that was trained elsewhere."""
        about = json.loads(model.about)
        self._columns = Columns.of_model(model.categories, about)
        self.n_features_in_ = len(model.categories)
        if about["columns"]:
            self.feature_names_in_ = np.array(about["columns"], dtype=object)
        self.image_shape_ = model.image_shape
        if model.image_shape is not None and model.image_shape[0] == 1:
            self.sequence_length, self.image_shape_ = model.image_shape[1], None
        elif model.image_shape is not None:
            height, width, channels = model.image_shape
            self.image_shape = (height, width) if channels == 1 else (height, width, channels)
        rows = about["training"].get("rows", 1) if isinstance(about["training"], dict) else 1
        self._class_counts = (np.exp(model.log_prior) * rows).tolist()
        self._keep(model)
        return self


def odd_column(X: Any) -> int | None:
    """The first column of an array or list that has a cell which is no number."""
    cells = np.asarray(X, dtype=object)
    for column in range(cells.shape[1] if cells.ndim == 2 else 0):
        if not all(is_hole(cell) or is_number(cell) for cell in cells[:, column]):
            return column
    return None


def check_how(how: Any) -> None:
    """Raises unless it is a way to fill a hole."""
    if how not in ("mean", "median", "mode", "sample"):
        raise ValueError(f"how: expected 'mean', 'median', 'mode' or 'sample', got {how!r}")


def checked_quantiles(quantiles: Any) -> list[float]:
    """Probabilities between 0 and 1."""
    found = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if found.ndim != 1 or not ((found > 0) & (found < 1)).all():
        raise ValueError(f"quantiles: expected numbers between 0 and 1, got {quantiles!r}")
    return found.tolist()


def checked_count(n: Any, width: int) -> int:
    """The number of rows to draw, which must fit into memory."""
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
