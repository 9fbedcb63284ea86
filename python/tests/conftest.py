"""scikit-learn skips its checks of other array libraries unless this is set before SciPy loads."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
