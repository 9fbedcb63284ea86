"""The regressor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d

from sumout import _engine
from sumout.columns import Columns
from sumout.dates import is_date
from sumout.estimator import TMM, checked_count, checked_quantiles
from sumout.names import unmasked
from sumout.parameters import random_seed, with_shared_entries
from sumout.training_set import checked_weights


@with_shared_entries
@dataclass(kw_only=True, eq=False, repr=False)
class TMMRegressor(RegressorMixin, TMM):
    """Regressor for rows with any pattern of missing values.

    P(y | x_o) is an exact mixture of normals: the missing values are summed out, not filled in.
    Mean, standard deviation, quantiles and samples come from it. Training data may have missing
    values and missing targets too.

    Parameters
    ----------
    generative : float, default=None
        Weight of -log P(X) in the loss, beside -log P(y | X).
    (and those of every estimator: see sumout.parameters.Parameters)

    Attributes
    ----------
    model_ : sumout.Model
        The trained model, of which the target is one column; `model_.describe()` shows its
        structure.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where there are any.
    image_shape_ : None
        Rows are those of a table.

    Methods
    -------
    fit
        Train on rows and targets.
    predict, predict_quantiles, sample_y, score
        The mean of P(y | x_o) and its standard deviation, quantiles, samples.
    log_density
        log P(y | x_o) of given targets.
    impute
        Fill missing values of X.
    score_samples, log_conditional
        Likelihoods of what is observed: log P(x_o), log P(x_q | x_o).
    explain
        Show what a channel of a node represents.
    save, card
        Write a model file; `sumout.load` opens it. Say what the model was trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sumout import TMMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X[::3, 2] = np.nan
    >>> model = TMMRegressor(steps=100, trees=1, random_state=0).fit(X[:300], y[:300])
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> mean.shape, std.shape
    ((142,), (142,))
    >>> low, high = model.predict_quantiles(X[300:], [0.05, 0.95]).T
    >>> bool(0.8 < np.mean((low < y[300:]) & (y[300:] < high)) < 1)
    True
    """

    generative: float | None = None

    _settings = (*TMM._settings, "generative")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TMMRegressor:
        """Train on rows and their targets.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : array-like of shape (n_samples,)
            Targets. Where one is NaN, the row trains P(X) only.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the row twice, a weight of 0 no row.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._check_parameters()
            for name in ("image_shape", "sequence_length"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: expected None, got {getattr(self, name)!r}")
            if y is None:
                raise ValueError("TMMRegressor requires y to be passed, but the target y is None.")
            values = self._learn_columns(X)
            name = getattr(y, "name", None)
            y = checked_targets(y)
            check_consistent_length(values, y)
            weights = checked_weights(sample_weight, len(values))
            if np.isnan(y[weights > 0]).all():
                raise ValueError("Input y contains NaN only: expected at least one number")
            labels = np.zeros(len(values), dtype=np.int64)
            self._target = self.n_features_in_
            self._target_name = name if isinstance(name, str) else "y"
            self._train(self._joined(values, y), labels, weights, np.ones(1), [], self._target)
        return self

    def _model_columns(self) -> Columns:
        """Those of X, and the target after them."""
        names = self._columns.names
        name = self._target_name
        while name in names:
            name += "_"
        names = [*names, name] if names else []
        return Columns([*self._columns.categories, None], names, self._columns.dates)

    def _ranges(self, target: str | None = None) -> list[dict] | None:
        return super()._ranges(self._target_name)

    def _joined(self, rows: np.ndarray, y: Any) -> np.ndarray:
        """Rows of the model: those of X with the target at its place."""
        with np.errstate(over="ignore"):
            return np.insert(rows, self._target, y, axis=1)

    def _rows(self, X: Any) -> np.ndarray:
        rows = super()._rows(X)
        return self._joined(rows, np.nan)

    def _features(self, codes: np.ndarray) -> np.ndarray:
        return np.delete(codes, self._target, axis=1)

    def _open(self, model: _engine.Model) -> TMMRegressor:
        self._target = model.target
        names = json.loads(model.about)["columns"]
        self._target_name = names[self._target] if names else "y"
        super()._open(model)
        del self._columns.categories[self._target]
        self.n_features_in_ -= 1
        if names:
            del self._columns.names[self._target]
            self.feature_names_in_ = np.array(self._columns.names, dtype=object)
        self._keep(model)
        return self

    # Queries.

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of P(y | x_o), which has the least squared error.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        return_std : bool, default=False
            Also return the standard deviation of P(y | x_o).

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,), if `return_std`
        """
        mean, std = self._distribution(X, []).T
        return (mean, std) if return_std else mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on the rows whose target is known.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : array-like of shape (n_samples,)
            Targets; rows whose target is NaN do not count.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        found, y = self.predict(X), checked_targets(y)
        check_consistent_length(found, y)
        weights, known = checked_weights(sample_weight, len(y)), ~np.isnan(y)
        if not known.any():
            raise ValueError("Input y contains NaN only: expected at least one number")
        return float(r2_score(y[known], found[known], sample_weight=weights[known]))

    def predict_quantiles(
        self, X: Any, quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> np.ndarray:
        """Quantiles of P(y | x_o); 0.5 is the median, which has the least absolute error.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.25, 0.5, 0.75, 0.95)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
        """
        return self._distribution(X, checked_quantiles(quantiles))[:, 2:]

    def _distribution(self, X: Any, quantiles: list[float]) -> np.ndarray:
        """Mean, standard deviation and quantiles, (n, 2 + quantiles)."""
        rows = self._rows(X)
        return _engine.distribution(self.model_, rows, self._target, quantiles, self._threads())

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw targets from P(y | x_o).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples_X, n_features)
            Rows; NaN is missing.
        n_samples : int, default=1
            Number of samples for every row.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
        """
        rows = self._rows(X)
        count, seed = checked_count(n_samples, len(rows)), random_seed(random_state)
        return _engine.sample_column(self.model_, rows, self._target, count, seed, self._threads())

    def log_density(self, X: Any, y: Any) -> np.ndarray:
        """log P(y | x_o) of given targets; its mean over new rows is the log score.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of densities in the units of the target.
        """
        both, given = self._rows_with(X, y), self._rows(X)
        return self.model_.log_conditional(both, given, self._threads())

    def impute(self, X: Any, how: str = "mean", *, y: Any = None, random_state: Any = None) -> Any:
        """Fill missing values; observed values are kept. Targets are for `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        how : {'mean', 'median', 'mode', 'sample'}, default='mean'
            As in `TMMClassifier.impute`.
        y : array-like of shape (n_samples,), default=None
            Targets, if they are known: P(x_m | x_o, y).
        random_state : int, RandomState instance or None, default=None
            Seed of 'sample'.

        Returns
        -------
        ndarray or data frame of the same type and shape as `X`
        """
        rows = self._rows(X) if y is None else self._rows_with(X, y)
        return self._impute(X, rows, how, None, random_state)

    def _rows_with(self, X: Any, y: Any) -> np.ndarray:
        """Rows of the model with their targets."""
        rows = self._rows(X)
        y = checked_targets(y)
        check_consistent_length(rows, y)
        rows[:, self._target] = y
        return rows


def checked_targets(y: Any) -> np.ndarray:
    """(n) float64; NaN is missing."""
    if isinstance(y, np.ma.MaskedArray):
        y = unmasked(y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "mM" or (y.dtype == object and any(map(is_date, y))):
        raise ValueError(
            "y: expected numbers, got dates; days since the first are "
            "(y - y.min()) / np.timedelta64(1, 'D')"
        )
    y = check_array(
        y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
    )
    assert_all_finite(y, allow_nan=True, input_name="y")
    return y
