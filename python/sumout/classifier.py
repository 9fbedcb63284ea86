"""The classifier."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from sumout import labels
from sumout.estimator import TMM, checked_count, checked_weights, given_rows
from sumout.names import name_of, values_of


class TMMClassifier(ClassifierMixin, TMM):
    """Classifies rows with any pattern of holes, exactly: P(y | x_o), with what is missing summed out.

    Parameters beside those of every class (see TMM):

    generative : weight of -log P(X) beside -log P(y | X)
    class_weight : None, 'balanced' or a dict, as in scikit-learn
    missing_label : labels equal to it are missing, and so are NaN and None; a row without a label teaches P(X)
        only. Where it would leave a single class (labels -1 and 1), it is a class.
    """

    _settings = (*TMM._settings, "generative")

    def __init__(
        self,
        *,
        image_shape: tuple[int, ...] | None = None,
        categorical_features: Any = "from_dtype",
        components: int | None = None,
        channels: int | None = None,
        trees: int | None = None,
        steps: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        drop_inputs: float | None = None,
        generative: float | None = None,
        class_weight: Any = None,
        missing_label: Any = -1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: str = "cpu",
    ) -> None:
        self.image_shape = image_shape
        self.categorical_features = categorical_features
        self.components = components
        self.channels = channels
        self.trees = trees
        self.steps = steps
        self.batch = batch
        self.rate = rate
        self.drop_inputs = drop_inputs
        self.generative = generative
        self.class_weight = class_weight
        self.missing_label = missing_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TMMClassifier:
        """Learns from rows with holes; labels may be missing too."""
        with self._all_or_nothing():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> TMMClassifier:
        self._check_device()
        values, y, there, weights = self._checked(X, y, sample_weight, first=True)
        counted = there & (weights > 0)
        if not counted.any():
            raise ValueError("sample_weight: expected a class with a weight that is not zero")
        self.classes_ = np.unique(y[counted])
        there &= np.isin(y, self.classes_)
        encoded = labels.encode(y, there, self.classes_)
        self._train(values, encoded, weights, self._class_weights(y, there, weights), self._names())
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> TMMClassifier:
        """Learns a part of the data; the next call goes on from there.

        The first call fixes the classes (`classes`, or those of its labels), the scaling and the tree.
        """
        with self._all_or_nothing():
            return self._partial_fit(X, y, classes, sample_weight)

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TMMClassifier:
        self._check_device()
        first = not hasattr(self, "model_")
        given = None if classes is None else np.unique(np.asarray(classes))
        values, y, there, weights = self._checked(
            X, y, sample_weight, first, given if first else self.classes_
        )
        if first:
            self.classes_ = np.unique(y[there] if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes: expected {self.classes_} as in the first call, got {classes}"
            )
        encoded = labels.encode(y, there, self.classes_)
        class_weights = self._class_weights(y, there, weights)
        if first:
            self._train(values, encoded, weights, class_weights, self._names())
        else:
            self._go_on(values, encoded, weights, class_weights)
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, first: bool, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Encoded rows, labels, which labels are there, weights."""
        if y is None:
            raise ValueError("TMMClassifier requires y to be passed, but the target y is None.")
        values = self._learn_columns(X) if first else self._rows(X)
        y, there = labels.present(y, self.missing_label, classes)
        check_consistent_length(values, y)
        return values, y, there, checked_weights(sample_weight, len(values))

    def _class_weights(self, y: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.class_weight is None or not there.any():
            return np.ones(len(self.classes_))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            seen = np.isin(self.classes_, y[there])
            balanced = np.ones(len(self.classes_))
            balanced[seen] = compute_class_weight(
                "balanced", classes=self.classes_[seen], y=y[there], sample_weight=weights[there]
            )
            return balanced
        chosen = compute_class_weight(self.class_weight, classes=self.classes_, y=y[there])
        if not np.isfinite(chosen).all() or (chosen <= 0).any():
            raise ValueError(
                f"class_weight: expected finite numbers above 0, got {self.class_weight}"
            )
        return chosen

    def _names(self) -> list[str]:
        return [name_of(label) for label in self.classes_]

    def _open(self, model: Any) -> TMMClassifier:
        names = json.loads(model.about)["classes"] or [str(k) for k in range(model.classes)]
        self.classes_ = values_of(names)
        return super()._open(model)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(y | x_o), (n, classes). A row with everything missing gets P(y)."""
        rows = self._rows(X)
        return self.model_.posterior(rows, self._threads())

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(y | x_o), (n, classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        posterior = self.predict_proba(X)
        return self.classes_[posterior.argmax(axis=1)]

    def log_likelihood(self, X: Any) -> np.ndarray:
        """log P(x_o | y), (n, classes)."""
        rows = self._rows(X)
        return self.model_.log_likelihood(rows, self._threads())

    def impute(self, X: Any, how: str = "mean", *, y: Any = None, random_state: Any = None) -> Any:
        """`X` with its holes filled, as it came (an array or a frame); observed values are kept.

        how='mean' is E[x_m | x_o], exact, and the most probable category of a categorical column; 'mode' the values
        in the most likely joint assignment of hidden variables and missing values; 'sample' a draw from P(x_m | x_o).
        With a class `y`, given that class too.
        """
        return self._impute(X, how, self._class_index(y), random_state)

    def sample(
        self, n: int = 1, y: Any = None, given: Any = None, random_state: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """`n` rows and their classes, from P(X, y), from P(X | y) for a class `y`, or given what is observed.

        `given` is one row with holes (`n` draws of it) or `n` rows (a draw of each).
        """
        check_is_fitted(self, "model_")
        random = check_random_state(random_state)
        n = checked_count(n, self.n_features_in_)
        index, seed = self._class_index(y), int(random.randint(2**31 - 1))
        if given is None:
            rows, drawn = self.model_.sample(n, index, seed, self._threads())
            return self._columns.decode(rows), self.classes_[drawn]
        rows = given_rows(self._rows(given), n)
        drawn = np.full(n, index) if index is not None else self._drawn_classes(rows, random)
        for k in np.unique(drawn):
            of_class = np.ascontiguousarray(rows[drawn == k])
            rows[drawn == k] = self.model_.impute_sample(of_class, int(k), seed, self._threads())
        return self._columns.restore(self._columns.decode(rows), self._flat(given)), self.classes_[
            drawn
        ]

    def _drawn_classes(self, rows: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        below = self.model_.posterior(rows, self._threads()).cumsum(axis=1)
        return (below < random.uniform(size=(len(rows), 1)) * below[:, -1:]).sum(axis=1)

    def _class_index(self, y: Any) -> int | None:
        if y is None:
            return None
        check_is_fitted(self, "model_")
        found = np.flatnonzero(np.array([name_of(label) == name_of(y) for label in self.classes_]))
        if len(found) == 0:
            raise ValueError(f"y: expected one of the classes {self._names()}, got {y!r}")
        return int(found[0])
