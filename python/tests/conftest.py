"""Nothing is skipped: scikit-learn's check of arrays of other libraries wants this before SciPy is imported."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
