"""Estimators without labels: a density, and a transformer that fills holes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sumout import _engine
from sumout.estimator import TMM, check_how, checked_count, checked_quantiles, given_rows
from sumout.parameters import random_seed, with_shared_entries
from sumout.training_set import checked_weights


class Marginals(NamedTuple):
    """What is known of every cell of a table; see `TMMDensity.marginals`."""

    mean: np.ndarray
    variance: np.ndarray
    quantiles: np.ndarray
    probabilities: dict[int, np.ndarray]


class Unlabelled(TMM):
    """Training of P(X): a model with one class."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing. Images may have shape (n_samples, *image_shape).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the row twice, a weight of 0 no row.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._check_parameters()
            values = self._learn_columns(X)
            weights = checked_weights(sample_weight, len(values))
            labels = np.zeros(len(values), dtype=np.int64)
            self._train(values, labels, weights, np.ones(1), [])
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train on a part of the data; the next call continues from there.

        The first call fixes the scaling of the columns and the tree.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the row twice, a weight of 0 no row.

        Returns
        -------
        self
        """
        if not hasattr(self, "model_"):
            return Unlabelled.fit(self, X, sample_weight=sample_weight)
        self._check_parameters()
        values = self._rows(X)
        weights = checked_weights(sample_weight, len(values))
        labels = np.zeros(len(values), dtype=np.int64)
        self._train_further(values, labels, weights, np.ones(1))
        return self

    def marginals(self, X: Any, quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)) -> Marginals:
        """P(x_m | x_o) of every cell: exact moments, quantiles and probabilities.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.25, 0.5, 0.75, 0.95)
            Probabilities between 0 and 1.

        Returns
        -------
        Marginals
            `mean` and `variance` of shape (n_samples, n_features), `quantiles` of shape
            (n_quantiles, n_samples, n_features), all NaN in columns of categories, and
            `probabilities`: for every column of categories, its number and an ndarray of shape
            (n_samples, n_categories). An observed number has variance 0, an observed category
            probability 1.
        """
        rows = self._rows(X)
        wanted, threads = checked_quantiles(quantiles), self._threads()
        moments = self.model_.impute_mean(rows, None, threads)
        tables = [*moments, *_engine.impute_quantiles(self.model_, rows, wanted, None, threads)]
        tables = np.array(tables, dtype=np.float64)
        probabilities = {}
        for j, known in enumerate(self._columns.categories):
            if known is not None:
                tables[:, :, j] = np.nan
                probabilities[j] = _engine.impute_probabilities(self.model_, rows, j, None, threads)
        return Marginals(tables[0], tables[1], tables[2:], probabilities)


@with_shared_entries
class TMMDensity(DensityMixin, Unlabelled):
    """Density of rows with any pattern of missing values.

    log P(x_o), conditionals, completions and samples are exact: the missing values are summed
    out, not filled in. Training data may have missing values too.

    Parameters
    ----------
    (and those of every estimator: see sumout.parameters.Parameters)

    Attributes
    ----------
    (and those of every estimator: see sumout.parameters.Parameters)

    Methods
    -------
    fit, partial_fit
        Train on rows; on more of them.
    marginals
        Mean, variance, quantiles and probabilities of what is missing.
    score_samples, score, log_conditional
        Log-likelihood of every row, their mean, and of some cells given others.
    impute, sample
        Fill missing values; draw new rows.
    explain
        Show what a channel of a node represents.
    save, card
        Write a model file; `sumout.load` opens it. Say what the model was trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sumout import TMMDensity
    >>> X, _ = load_iris(return_X_y=True)
    >>> density = TMMDensity(steps=100, random_state=0).fit(X)
    >>> usual, unusual = density.score_samples([[5.1, np.nan, 1.4, 0.2], [5.1, np.nan, 1.4, 2.5]])
    >>> bool(usual > unusual)
    True
    >>> density.sample(3, given=[[5.1, np.nan, 1.4, np.nan]], random_state=0).shape
    (3, 4)
    """

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def impute(self, X: Any, how: str = "mean", *, random_state: Any = None) -> Any:
        """Fill missing values; observed values are kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        how : {'mean', 'median', 'mode', 'sample'}, default='mean'
            As in `TMMClassifier.impute`.
        random_state : int, RandomState instance or None, default=None
            Seed of 'sample'.

        Returns
        -------
        ndarray or data frame of the same type and shape as `X`
        """
        return self._impute(X, self._rows(X), how, None, random_state)

    def sample(self, n: int = 1, given: Any = None, random_state: Any = None) -> np.ndarray:
        """Draw rows from P(X).

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        given : array-like or data frame of 1 or `n` rows, default=None
            Observed values to condition on; NaN is drawn. From one row, `n` samples are drawn;
            from `n` rows, one each.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        check_is_fitted(self, "model_")
        n = checked_count(n, self.n_features_in_)
        seed = random_seed(random_state)
        if given is None:
            return self._columns.decode(self.model_.sample(n, None, seed, self._threads())[0])
        rows = given_rows(self._rows(given), n)
        codes = self.model_.impute_sample(rows, None, seed, self._threads())
        return self._columns.restore(self._columns.decode(codes), self._flat(given))


@with_shared_entries
@dataclass(kw_only=True, eq=False, repr=False)
class TMMImputer(OneToOneFeatureMixin, TransformerMixin, Unlabelled):
    """Transformer that fills missing values.

    They come from P(x_m | x_o), the exact distribution of the missing values given the observed
    ones. Training data may have missing values too.

    Parameters
    ----------
    how : {'mean', 'median', 'mode', 'sample'}, default='mean'
        What to fill in, as in `TMMClassifier.impute`.
    (and those of every estimator: see sumout.parameters.Parameters)

    Attributes
    ----------
    (and those of every estimator: see sumout.parameters.Parameters)

    Methods
    -------
    fit, partial_fit
        Train on rows; on more of them.
    marginals
        Mean, variance, quantiles and probabilities of what is missing.
    transform, fit_transform
        Fill missing values.
    score_samples, log_conditional
        Log-likelihood of every row, and of some cells given others.
    explain
        Show what a channel of a node represents.
    save, card
        Write a model file; `sumout.load` opens it as a TMMDensity. Say what the model was trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sumout import TMMImputer
    >>> X, _ = load_iris(return_X_y=True)
    >>> X[::3, 2] = np.nan
    >>> filled = TMMImputer(steps=100, random_state=0).fit_transform(X)
    >>> bool(np.isnan(filled).any())
    False
    """

    how: str = "mean"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_how(self.how)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> Any:
        """Fill missing values; observed values are kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray or data frame of the same type and shape as `X`
        """
        check_is_fitted(self, "model_")
        return self._impute(X, self._rows(X), self.how, None, self.random_state)
