from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__version__: str

Rows = NDArray[np.float32]
OnProgress = Callable[[int, int, float], object]  # step, steps, objective

class Model:
    """A trained model.

    Rows are C-contiguous float32 arrays (n, width), NaN is missing; 0 threads is one per core.
    """

    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self, note: str | None = None) -> bytes: ...
    @property
    def classes(self) -> int: ...
    @property
    def categories(self) -> list[int]:
        """The number of categories of each column, 0 for numbers."""
    @property
    def image_shape(self) -> tuple[int, int, int] | None: ...
    @property
    def target(self) -> int | None:
        """The column that the model was trained to predict."""
    @property
    def log_prior(self) -> NDArray[np.float64]: ...
    @property
    def about(self) -> str:
        """Names of classes, columns and categories, and how the model was trained, as JSON."""
    def describe(self) -> str: ...
    def log_likelihood(self, rows: Rows, threads: int) -> NDArray[np.float64]: ...
    def posterior(self, rows: Rows, threads: int) -> NDArray[np.float64]: ...
    def log_marginal(self, rows: Rows, threads: int) -> NDArray[np.float64]: ...
    def log_conditional(self, rows: Rows, given: Rows, threads: int) -> NDArray[np.float64]: ...
    def impute_mean(
        self, rows: Rows, class_index: int | None, threads: int
    ) -> tuple[Rows, Rows]: ...
    def impute_mode(self, rows: Rows, class_index: int | None, threads: int) -> Rows: ...
    def impute_sample(
        self, rows: Rows, class_index: int | None, seed: int, threads: int
    ) -> Rows: ...
    def sample(
        self, count: int, class_index: int | None, seed: int, threads: int
    ) -> tuple[Rows, NDArray[np.int64]]: ...
    def explain(
        self,
        tree: int,
        level: int,
        node: int,
        channel: int,
        count: int | None,
        seed: int,
        threads: int,
    ) -> Rows: ...

def check_device(name: str) -> None:
    """Raises before work starts if a device cannot be used."""

def distribution(
    model: Model, rows: Rows, column: int, quantiles: list[float], threads: int
) -> NDArray[np.float64]:
    """Mean, standard deviation and quantiles of a column given the others, (n, 2 + quantiles)."""

def sample_column(
    model: Model, rows: Rows, column: int, count: int, seed: int, threads: int
) -> NDArray[np.float64]: ...
def impute_quantiles(
    model: Model, rows: Rows, quantiles: list[float], class_index: int | None, threads: int
) -> list[Rows]: ...
def impute_probabilities(
    model: Model, rows: Rows, column: int, class_index: int | None, threads: int
) -> Rows: ...
def distinct_rows(
    values: Rows, labels: NDArray[np.int64], weights: NDArray[np.float64], threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def train(
    values: Rows,
    labels: NDArray[np.int64],
    weights: NDArray[np.float32],
    categories: list[int],
    image_shape: tuple[int, int, int] | None,
    prior: list[float],
    target: int | None,
    plan: str,
    settings: str,
    about: str,
    device: str,
    threads: int,
    on_progress: OnProgress | None,
) -> Model: ...
def go_on(
    model: Model,
    values: Rows,
    labels: NDArray[np.int64],
    weights: NDArray[np.float32],
    prior: list[float],
    settings: str,
    device: str,
    threads: int,
    on_progress: OnProgress | None,
) -> Model: ...

class Rounds:
    """A fit by rounds over partitions, where the model is held."""

    def __init__(
        self, model: Model, sizes: list[int], prior: list[float], options: str
    ) -> None: ...
    @staticmethod
    def resume(checkpoint: bytes) -> Rounds: ...
    @property
    def steps(self) -> int: ...
    @property
    def steps_done(self) -> int: ...
    def round(self) -> bytes: ...
    def apply(self, sum: bytes, threads: int) -> float: ...
    def model(self) -> Model: ...
    def checkpoint(self) -> bytes: ...

def contribution(
    round: bytes,
    partition: int,
    values: Rows,
    labels: NDArray[np.int64],
    weights: NDArray[np.float32],
    threads: int,
) -> bytes:
    """What a partition's rows add to a step."""

def add_contributions(parts: list[bytes]) -> bytes:
    """The sum of contributions."""
