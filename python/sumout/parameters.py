"""The parameters that every estimator has, their defaults and their documentation, once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

# More threads than any machine can use, but not so many that starting them fails.
MAX_THREADS = 1024

# Parameters that are whole numbers.
COUNTS = ("components", "channels", "trees", "steps", "batch", "sequence_length")

# In the docstring of an estimator, this line stands for the parameters or the attributes below.
SHARED = "(and those of every estimator: see sumout.parameters.Parameters)"

Estimator = TypeVar("Estimator", bound=type)


# scikit-learn reads the signature of __init__; a dataclass writes it from the fields.
@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(BaseEstimator):
    """What every estimator can be given, and what most have when they are fitted.

    Parameters
    ----------
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) where rows are images, None for a table.
    sequence_length : int, default=None
        Number of steps where rows are sequences: (n_samples, steps), or (n_samples, steps,
        numbers in a step), or the same numbers flat. Neighbours in time meet first in the tree,
        and the leaves of all steps are the same.
    categorical_features : 'from_dtype', None or array-like, default='from_dtype'
        The columns that hold categories: a mask, or numbers or names of columns. Columns of a
        data frame that hold categories, text or booleans are categorical in any case. Dates are
        numbers: days since 1970-01-01 UTC. The categories of a column are those that a
        CategoricalDtype of pandas or an Enum of polars declares, and those in the rows of `fit`;
        each has a probability, whether it occurs there or not.
    unseen : {'error', 'missing'}, default='error'
        What a category is that `fit` did not know: an error, or a missing cell.
    bounds : dict, default=None
        The smallest and the largest number of columns, by name or number:
        `{"share": (0, 100), "price": (0, None)}`. What the model gives lies inside, and a number
        outside is an error. The leaves of such a column are log-normal, or logit-normal where
        there are two bounds.
    whole : array-like, default=None
        The columns of whole numbers: a mask, or numbers or names of columns. What the model gives
        is rounded.
    components : int, default=None
        Number of densities at every leaf. None, here and below, is chosen to suit the data.
    channels : int, default=None
        Number of states of every inner node.
    trees : int, default=None
        Number of trees that are trained separately and then joined under one root.
    steps : int, default=None
        Number of training steps of every tree; the progress bar counts to it.
    batch : int, default=None
        Rows per training step.
    rate : float, default=None
        Learning rate.
    drop_inputs : float, default=None
        Average share of the values that training hides at random, from 0 to 1.
    random_state : int, RandomState instance or None, default=None
        An integer gives the same model each time, for any number of threads and any order of
        the rows.
    n_jobs : int, default=None
        Number of threads. None takes OMP_NUM_THREADS, which joblib sets in its processes, or
        one per core; -1 is one per core.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    device : str, default='cpu'
        'cpu', 'cuda' or 'cuda:1'. A GPU needs a package that was built with CUDA. Estimators
        that were loaded or unpickled compute on the CPU.

    Attributes
    ----------
    model_ : sumout.Model
        The trained model; `model_.describe()` shows its structure.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where there are any.
    image_shape_ : tuple of int or None
        (height, width, channels) of images, None for a table.
    """

    image_shape: tuple[int, ...] | None = None
    sequence_length: int | None = None
    categorical_features: Any = "from_dtype"
    unseen: str = "error"
    bounds: dict | None = None
    whole: Any = None
    components: int | None = None
    channels: int | None = None
    trees: int | None = None
    steps: int | None = None
    batch: int | None = None
    rate: float | None = None
    drop_inputs: float | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    device: str = "cpu"

    def _given(self, *names: str) -> dict:
        """The parameters of these names that are not None, without types of NumPy."""
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        for name, value in given.items():
            if isinstance(value, np.generic):
                given[name] = value = value.item()
            if name in COUNTS and (type(value) is not int or value < 1):
                raise ValueError(f"{name}: expected a whole number from 1, got {value!r}")
        return given

    def _seed(self) -> int:
        return random_seed(self.random_state)

    def _threads(self) -> int:
        """As the engine counts them: 0 is one per core."""
        if self.n_jobs is None:
            wanted = os.environ.get("OMP_NUM_THREADS", "")
            return int(wanted) if wanted.isdigit() else 0
        if self.n_jobs == 0:
            raise ValueError(
                "n_jobs: expected a number of threads, -1 for one per core, or None, got 0"
            )
        if self.n_jobs > MAX_THREADS:
            raise ValueError(f"n_jobs: expected at most {MAX_THREADS} threads, got {self.n_jobs}")
        if self.n_jobs < -1:
            return max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)
        return max(0, self.n_jobs)

    def _checked_shape(self) -> tuple[int, int, int] | None:
        """(height, width, channels) of an image, None for a table."""
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


def with_shared_entries(estimator: Estimator) -> Estimator:
    """Completes the docstring of an estimator, so that `help` shows all that it has."""
    if estimator.__doc__ and Parameters.__doc__:  # python -OO has none
        _, parameters, attributes = cleandoc(Parameters.__doc__).split("----------\n")
        text = cleandoc(estimator.__doc__)
        text = text.replace(SHARED, parameters.removesuffix("\n\nAttributes\n"), 1)
        estimator.__doc__ = text.replace(SHARED, attributes, 1)
    return estimator


def random_seed(random_state: Any) -> int:
    """A whole number is the seed itself, as in the command line's --seed."""
    is_whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if is_whole and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
