"""scikit-learn skips its checks of other array libraries unless this is set before SciPy loads."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def same_random_numbers():
    """An estimator without a `random_state` draws its seed from NumPy: the same one in every run."""
    np.random.seed(0)
