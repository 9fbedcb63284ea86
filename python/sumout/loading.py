"""Opening model files, which the command line writes too."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sumout._engine import Model
from sumout.classifier import TMMClassifier
from sumout.density import TMMDensity
from sumout.regressor import TMMRegressor


def load(path: str | os.PathLike) -> TMMClassifier | TMMDensity | TMMRegressor:
    """Open a model file.

    Parameters
    ----------
    path : str or path-like
        A `.sumout` file, written by an estimator's `save` or by the command line.

    Returns
    -------
    TMMClassifier, TMMDensity or TMMRegressor
        A fitted TMMRegressor where the model was trained to predict a column, TMMDensity where it
        has a single class without a name, else a fitted TMMClassifier.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a model file.
    """
    try:
        model = Model.from_bytes(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None
    return opened(model)


def opened(model: Model) -> TMMClassifier | TMMDensity | TMMRegressor:
    """The fitted estimator of a model."""
    if model.target is not None:
        return TMMRegressor()._open(model)
    class_names = json.loads(model.about)["classes"]
    is_density = model.classes == 1 and not class_names
    estimator = TMMDensity() if is_density else TMMClassifier()
    return estimator._open(model)
