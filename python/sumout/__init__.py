"""Classify, complete, sample and score data with holes in it, exactly.

What is missing is summed out, not filled in.
"""

from sumout._engine import Model, __version__
from sumout.classifier import TMMClassifier
from sumout.density import TMMDensity, TMMImputer
from sumout.loading import load

__all__ = ["Model", "TMMClassifier", "TMMDensity", "TMMImputer", "__version__", "load"]
