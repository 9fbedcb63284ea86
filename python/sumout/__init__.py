"""Classify, complete, sample and score data with holes in it, exactly.

What is missing is summed out, not filled in.

Examples
--------
>>> import numpy as np
>>> from sumout import TMMClassifier
>>> X = [[0.0, 0.1], [0.2, np.nan], [5.0, 5.1], [np.nan, 5.3]] * 20
>>> y = ["low", "low", "high", "high"] * 20
>>> model = TMMClassifier(random_state=0).fit(X, y)
>>> model.predict([[np.nan, 5.0], [0.1, np.nan]])
array(['high', 'low'], dtype='<U4')
"""

from sumout._engine import Model, __version__
from sumout.classifier import TMMClassifier
from sumout.density import TMMDensity, TMMImputer
from sumout.loading import load
from sumout.regressor import TMMRegressor

__all__ = [
    "Model",
    "TMMClassifier",
    "TMMDensity",
    "TMMImputer",
    "TMMRegressor",
    "__version__",
    "load",
]
