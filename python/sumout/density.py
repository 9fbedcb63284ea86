"""Without labels: a density, and a transformer that fills holes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sumout.estimator import TMM, checked_count, checked_weights, given_rows


class Unlabelled(TMM):
    """Learning P(X)."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learns P(X) from rows with holes; `y` is ignored."""
        with self._all_or_nothing():
            self._check_device()
            values = self._learn_columns(X)
            weights = checked_weights(sample_weight, len(values))
            self._train(values, np.zeros(len(values), dtype=np.int64), weights, np.ones(1), [])
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learns a part of the data; the next call goes on from there. The first fixes scaling and tree."""
        if not hasattr(self, "model_"):
            return self.fit(X, sample_weight=sample_weight)
        self._check_device()
        values = self._rows(X)
        weights = checked_weights(sample_weight, len(values))
        self._go_on(values, np.zeros(len(values), dtype=np.int64), weights, np.ones(1))
        return self


class TMMDensity(DensityMixin, Unlabelled):
    """The density of rows with any pattern of holes, exactly: log P(x_o), conditionals, completions, samples.

    Parameters: see TMM.
    """

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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def impute(self, X: Any, how: str = "mean", *, random_state: Any = None) -> Any:
        """`X` with its holes filled; see TMMClassifier.impute."""
        return self._impute(X, how, None, random_state)

    def sample(self, n: int = 1, given: Any = None, random_state: Any = None) -> np.ndarray:
        """`n` rows from P(X), or given what is observed in one row or in `n` rows."""
        check_is_fitted(self, "model_")
        n = checked_count(n, self.n_features_in_)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        if given is None:
            return self._columns.decode(self.model_.sample(n, None, seed, self._threads())[0])
        rows = given_rows(self._rows(given), n)
        drawn = self._columns.decode(self.model_.impute_sample(rows, None, seed, self._threads()))
        return self._columns.restore(drawn, self._flat(given))


class TMMImputer(OneToOneFeatureMixin, TransformerMixin, Unlabelled):
    """Fills holes from the exact conditional distribution of what is missing given what is there.

    Parameters beside those of every class (see TMM):

    how : 'mean', 'mode' or 'sample', as in TMMClassifier.impute
    """

    def __init__(
        self,
        *,
        how: str = "mean",
        image_shape: tuple[int, ...] | None = None,
        categorical_features: Any = "from_dtype",
        components: int | None = None,
        channels: int | None = None,
        trees: int | None = None,
        steps: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        drop_inputs: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: str = "cpu",
    ) -> None:
        self.how = how
        self.image_shape = image_shape
        self.categorical_features = categorical_features
        self.components = components
        self.channels = channels
        self.trees = trees
        self.steps = steps
        self.batch = batch
        self.rate = rate
        self.drop_inputs = drop_inputs
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def transform(self, X: Any) -> Any:
        """`X` with its holes filled, as it came: an array, or a frame. Observed values are kept."""
        check_is_fitted(self, "model_")
        return self._impute(X, self.how, None, self.random_state)
