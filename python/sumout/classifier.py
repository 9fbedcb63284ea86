"""The classifier."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from sumout import labels
from sumout.estimator import TMM, checked_count, given_rows
from sumout.names import classes_of, name_of, plain
from sumout.parameters import random_seed, with_shared_entries
from sumout.training_set import checked_weights


@with_shared_entries
@dataclass(kw_only=True, eq=False, repr=False)
class TMMClassifier(ClassifierMixin, TMM):
    """Classifier for rows with any pattern of missing values.

    P(y | x_o) is exact: the missing values are summed out, not filled in. Training data may
    have missing values and missing labels too.

    Parameters
    ----------
    generative : float, default=None
        Weight of -log P(X) in the loss, beside -log P(y | X).
    class_weight : dict, 'balanced' or None, default=None
        Weights of the classes, as in scikit-learn.
    missing_label : label, default=None
        Labels equal to it are missing, such as -1. NaN and None always are. Rows without a label
        train P(X) only.
    (and those of every estimator: see sumout.parameters.Parameters)

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    (and those of every estimator: see sumout.parameters.Parameters)

    Methods
    -------
    fit, partial_fit
        Train on rows and labels; on more of them.
    predict, predict_proba, predict_log_proba, score
        Classify: P(y | x_o).
    log_likelihood, score_samples, log_conditional
        Likelihoods of what is observed: log P(x_o | y), log P(x_o), log P(x_q | x_o).
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
    >>> from sumout import TMMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[::3, 2] = np.nan
    >>> model = TMMClassifier(steps=100, random_state=0).fit(X, y)
    >>> model.predict([[5.1, np.nan, 1.4, np.nan]])
    array([0])
    >>> model.predict_proba([[np.nan] * 4]).round(2)
    array([[0.33, 0.33, 0.33]])
    """

    generative: float | None = None
    class_weight: Any = None
    missing_label: Any = None

    _settings = (*TMM._settings, "generative")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TMMClassifier:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing. Images may have shape (n_samples, *image_shape).
        y : array-like of shape (n_samples,)
            Labels; see `missing_label`.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the row twice, a weight of 0 no row.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> TMMClassifier:
        self._check_parameters()
        values, y, known, weights = self._checked(X, y, sample_weight, first=True)
        counted = known & (weights > 0)
        if not counted.any():
            raise ValueError("sample_weight: expected a class with a weight that is not zero")
        self.classes_ = np.unique(y[counted])
        known &= np.isin(y, self.classes_)
        encoded = labels.encode(y, known, self.classes_)
        class_weights = self._class_weights(y, known, weights)
        self._train(values, encoded, weights, class_weights, self._class_names())
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> TMMClassifier:
        """Train on a part of the data; the next call continues from there.

        The first call fixes the classes, the scaling of the columns and the tree.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : array-like of shape (n_samples,)
            Labels; see `missing_label`.
        classes : array-like of shape (n_classes,), default=None
            All classes, in the first call. None takes those of its labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the row twice, a weight of 0 no row.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            return self._partial_fit(X, y, classes, sample_weight)

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TMMClassifier:
        self._check_parameters()
        first = not hasattr(self, "model_")
        given = None if classes is None else np.unique(np.asarray(classes))
        values, y, known, weights = self._checked(
            X, y, sample_weight, first, given if first else self.classes_
        )
        if first:
            self.classes_ = np.unique(y[known]) if given is None else given
        elif given is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes: expected {self.classes_.tolist()} as in the first call, got "
                f"{given.tolist()}"
            )
        encoded = labels.encode(y, known, self.classes_)
        class_weights = self._class_weights(y, known, weights)
        if first:
            self._train(values, encoded, weights, class_weights, self._class_names())
        else:
            self._train_further(values, encoded, weights, class_weights)
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, first: bool, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Encoded rows, labels, which of the labels are known, weights."""
        if y is None:
            raise ValueError("TMMClassifier requires y to be passed, but the target y is None.")
        values = self._learn_columns(X) if first else self._rows(X)
        y, known = labels.validate(y, self.missing_label, classes)
        check_consistent_length(values, y)
        return values, y, known, checked_weights(sample_weight, len(values))

    def _class_weights(self, y: np.ndarray, known: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.class_weight is None or not known.any():
            return np.ones(len(self.classes_))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            seen = np.isin(self.classes_, y[known])
            balanced = np.ones(len(self.classes_))
            balanced[seen] = compute_class_weight(
                "balanced", classes=self.classes_[seen], y=y[known], sample_weight=weights[known]
            )
            return balanced
        chosen = compute_class_weight(self.class_weight, classes=self.classes_, y=y[known])
        if not np.isfinite(chosen).all() or (chosen <= 0).any():
            raise ValueError(
                f"class_weight: expected finite numbers above 0, got {self.class_weight}"
            )
        return chosen

    def _class_names(self) -> list[str]:
        return [name_of(label) for label in self.classes_]

    def _open(self, model: Any) -> TMMClassifier:
        names = json.loads(model.about)["classes"] or [str(k) for k in range(model.classes)]
        self.classes_ = classes_of(names)
        return super()._open(model)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities P(y | x_o) of the classes given what is observed.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of `classes_`. A row with nothing observed has P(y).
        """
        rows = self._rows(X)
        return self.model_.posterior(rows, self._threads())

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        posterior = self.predict_proba(X)
        return self.classes_[posterior.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the rows whose label is known.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        y : array-like of shape (n_samples,)
            Labels; rows whose label is missing do not count.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        found = np.asarray(self.predict(X))
        y, known = labels.validate(y, self.missing_label, self.classes_)
        check_consistent_length(found, y)
        weights = checked_weights(sample_weight, len(y))
        if not known.any():
            raise ValueError("Input y contains NaN only: expected at least one label")
        return float(accuracy_score(y[known], found[known], sample_weight=weights[known]))

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Log-likelihood log P(x_o | y) of what is observed, for every class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        rows = self._rows(X)
        return self.model_.log_likelihood(rows, self._threads())

    def impute(self, X: Any, how: str = "mean", *, y: Any = None, random_state: Any = None) -> Any:
        """Fill missing values; observed values are kept.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; NaN is missing.
        how : {'mean', 'median', 'mode', 'sample'}, default='mean'
            'mean' is E[x_m | x_o], exact, and 'median' the median of P(x_m | x_o); in a categorical
            column, both are the most probable category.
            'mode' takes the values from the most likely joint assignment of hidden variables and
            missing values. 'sample' draws from P(x_m | x_o).
        y : label, default=None
            A class to condition on too, the same for all rows.
        random_state : int, RandomState instance or None, default=None
            Seed of 'sample'.

        Returns
        -------
        ndarray or data frame of the same type and shape as `X`
        """
        return self._impute(X, self._rows(X), how, self._class_index(y), random_state)

    def sample(
        self, n: int = 1, y: Any = None, given: Any = None, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes from P(X, y).

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        y : label, default=None
            A class to condition on: rows are drawn from P(X | y).
        given : array-like or data frame of 1 or `n` rows, default=None
            Observed values to condition on; NaN is drawn. From one row, `n` samples are drawn;
            from `n` rows, one each.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        X : ndarray of shape (n, n_features)
            Rows.
        y : ndarray of shape (n,)
            Their classes.
        """
        check_is_fitted(self, "model_")
        random = check_random_state(random_state)
        n = checked_count(n, self.n_features_in_)
        index = self._class_index(y)
        if given is None:
            rows, classes = self.model_.sample(n, index, random_seed(random), self._threads())
            return self._columns.decode(rows), self.classes_[classes]
        rows = given_rows(self._rows(given), n)
        classes = np.full(n, index) if index is not None else self._sample_classes(rows, random)
        for k in np.unique(classes):
            of_class, seed = np.ascontiguousarray(rows[classes == k]), random_seed(random)
            rows[classes == k] = self.model_.impute_sample(of_class, int(k), seed, self._threads())
        values = self._columns.restore(self._columns.decode(rows), self._flat(given))
        return values, self.classes_[classes]

    def _sample_classes(self, rows: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """A class for every row, drawn from P(y | x_o)."""
        cumulative = self.model_.posterior(rows, self._threads()).cumsum(axis=1)
        thresholds = random.uniform(size=(len(rows), 1)) * cumulative[:, -1:]
        return (cumulative < thresholds).sum(axis=1)

    def _class_index(self, y: Any) -> int | None:
        if y is None:
            return None
        check_is_fitted(self, "model_")
        found = np.flatnonzero(np.array([name == name_of(y) for name in self._class_names()]))
        if len(found) == 0:
            classes = self.classes_.tolist()
            raise ValueError(f"y: expected one of the classes {classes}, got {plain(y)!r}")
        return int(found[0])
