"""A table for the tests of partitions: two classes, numbers, text and holes."""

import numpy as np
import pandas as pd

QUICK = {"random_state": 0, "steps": 40, "trees": 1, "sample_rows": 400, "rounds": 6}


def table(rows=1200, seed=0):
    """Columns with holes, and labels of which some are missing."""
    random = np.random.default_rng(seed)
    hidden = random.integers(0, 2, rows)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=rows) + 3 * hidden,
            "count": random.poisson(3 + 5 * hidden).astype(float),
            "town": np.where(random.uniform(size=rows) < 0.8, hidden, 1 - hidden).astype(str),
            "noise": random.normal(size=rows),
        }
    )
    frame["town"] = frame["town"].map({"0": "Aalen", "1": "Bonn"}).astype(object)
    frame.loc[rows - 5 :, "town"] = "Celle"  # in the last partition only
    for name in frame:
        holes = random.uniform(size=rows) < 0.1
        holes[rows - 5 :] = False
        frame[name] = frame[name].mask(holes, None if name == "town" else np.nan)
    labels = np.where(random.uniform(size=rows) < 0.05, None, np.where(hidden, "yes", "no"))
    return frame, labels


def cut(values, rows=300):
    """The partitions of a table."""
    return [values[start : start + rows] for start in range(0, len(values), rows)]
