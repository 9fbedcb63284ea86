"""Sumout and baselines on tables with missing cells: accuracy, and times to fit and predict.

    pip install ./python lightgbm
    python python/benchmarks/compare.py --seeds 5 --write docs/benchmarks.md

Every data set is split at random, once per seed: three quarters of the rows to train on, one
quarter to test on. A method is trained on complete rows and tested with a share p of the cells
missing at random; and the reverse, trained with half of the cells missing and tested on complete
rows. Nothing is tuned for a data set.

Measurements are kept in a file (--results), so an interrupted run continues. Every method has one
thread (OMP_NUM_THREADS sets more). Times are CPU times, so other programs on the machine matter
little.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
from scipy.special import logsumexp
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from sumout import TMMClassifier

ROOT = Path(__file__).resolve().parents[2]
SHARES = [0, 0.25, 0.5, 0.75, 0.9]
REVERSE = "0.5 → 0"


# Data sets: from scikit-learn, from this repository, or generated here.


def waves(rows=10_000, seed=0):
    """Breiman's waveforms: mixtures of two of three triangles, and 19 columns of noise."""
    random = np.random.RandomState(seed)
    triangle = np.array(
        [np.maximum(6 - np.abs(np.arange(1, 22) - peak), 0) for peak in (11, 15, 7)]
    )
    y = random.randint(3, size=rows)
    part = random.uniform(size=(rows, 1))
    shape = part * triangle[y] + (1 - part) * triangle[(y + 1) % 3]
    return np.hstack([shape, np.zeros((rows, 19))]) + random.normal(size=(rows, 40)), y


def clusters():
    """scikit-learn's generator of classification problems."""
    return datasets.make_classification(
        10_000,
        20,
        n_informative=12,
        n_classes=5,
        n_clusters_per_class=3,
        class_sep=1.5,
        random_state=0,
    )


def mnist():
    """The 6,000 MNIST images of the command line's demo at 14 × 14, as plain columns."""

    def read(name, skip):
        with gzip.open(ROOT / "cli" / "digits" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=skip)

    images = np.concatenate(
        [read(f"{half}-images-idx3-ubyte.gz", 16) for half in ("train", "t10k")]
    )
    labels = np.concatenate([read(f"{half}-labels-idx1-ubyte.gz", 8) for half in ("train", "t10k")])
    return images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196), labels.astype(int)


SETS = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "clusters": clusters,
    "waves": waves,
    "mnist 14×14": mnist,
}


# Methods.


class ClassMixtures:
    """A diagonal Gaussian mixture per class, with exact marginals. Trains on complete rows only."""

    def __init__(self, components, seed):
        self.components, self.seed = components, seed

    def fit(self, X, y):
        self.mean, self.spread = X.mean(axis=0), X.std(axis=0) + 1e-9
        Z = (X - self.mean) / self.spread
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior = np.log(counts / len(y))
        self.mixtures = [
            GaussianMixture(
                min(self.components, count // 4),
                covariance_type="diag",
                reg_covar=0.05,
                random_state=self.seed,
            ).fit(Z[y == k])
            for k, count in zip(self.classes_, counts, strict=True)
        ]
        return self

    def predict(self, X):
        Z = (X - self.mean) / self.spread
        seen, Z = ~np.isnan(Z), np.nan_to_num(Z)
        scores = np.empty((len(X), len(self.classes_)))
        for k, m in enumerate(self.mixtures):
            variance = m.covariances_
            # Σ_seen of log N(z; μ, σ²), as matrix products over the columns
            square = (
                (Z**2) @ (1 / variance).T
                - 2 * Z @ (m.means_ / variance).T
                + seen @ (m.means_**2 / variance + np.log(2 * np.pi * variance)).T
            )
            scores[:, k] = logsumexp(-0.5 * square + np.log(m.weights_), axis=1) + self.log_prior[k]
        return self.classes_[scores.argmax(axis=1)]


class WithHoles:
    """Trains a model on the rows and four copies; each row of a copy loses a share of 0 to 0.9."""

    def __init__(self, model, seed):
        self.model, self.seed = model, seed

    def fit(self, X, y):
        random = np.random.RandomState(self.seed)
        copies = np.tile(X, (4, 1))
        share = random.uniform(0, 0.9, size=(len(copies), 1))
        copies[random.uniform(size=copies.shape) < share] = np.nan
        self.model.fit(np.vstack([X, copies]), np.tile(y, 5))
        return self

    def predict(self, X):
        return self.model.predict(X)


# Each takes the number of columns and a seed.


def tmm(_, seed):
    return TMMClassifier(random_state=seed)


def class_mixtures(_, seed):
    return ClassMixtures(16, seed)


def boosting(_, seed):
    return HistGradientBoostingClassifier(random_state=seed)


def knn_then_boosting(columns, seed):
    return make_pipeline(KNNImputer(), boosting(columns, seed))


def iterative_then_boosting(columns, seed):
    near = None if columns <= 30 else 15
    imputer = IterativeImputer(max_iter=5, n_nearest_features=near, random_state=seed)
    return make_pipeline(imputer, boosting(columns, seed))


def boosting_with_holes(columns, seed):
    return WithHoles(boosting(columns, seed), seed)


def lightgbm(_, seed):
    from lightgbm import LGBMClassifier  # only this method needs it

    return LGBMClassifier(random_state=seed, verbose=-1, n_jobs=int(os.environ["OMP_NUM_THREADS"]))


METHODS = {
    "**TMMClassifier()**": tmm,
    "mixture of 16 Gaussians per class, exact marginals": class_mixtures,
    "KNNImputer, then HistGradientBoosting": knn_then_boosting,
    "IterativeImputer, then HistGradientBoosting": iterative_then_boosting,
    "HistGradientBoosting": boosting,
    "HistGradientBoosting, trained with random holes": boosting_with_holes,
    "LightGBM": lightgbm,
}


# Measurements.


def with_holes(X, share, seed):
    random = np.random.RandomState(10_000 + seed)
    return np.where(random.uniform(size=X.shape) < share, np.nan, X)


def measure(name, method, seed):
    """Accuracies by share of missing cells, and seconds."""
    X, y = SETS[name]()
    X, X_test, y, y_test = train_test_split(
        X.astype(float), y, test_size=0.25, random_state=seed, stratify=y
    )
    make = METHODS[method]
    started = time.process_time()
    model = make(X.shape[1], seed).fit(X, y)
    found = {"fit": time.process_time() - started, "rows": len(X_test)}
    for share in SHARES:
        rows = with_holes(X_test, share, seed)
        started = time.process_time()
        found[str(share)] = float((model.predict(rows) == y_test).mean())
        if share == 0.5:
            found["predict"] = time.process_time() - started
    if "mixture" not in method:  # scikit-learn's mixture cannot train with missing cells
        model = make(X.shape[1], seed).fit(with_holes(X, 0.5, seed + 500), y)
        found[REVERSE] = float((model.predict(X_test) == y_test).mean())
    return found


def one_row(method):
    """Median time to predict one row of iris with a cell missing, in microseconds."""
    X, y = SETS["iris"]()
    model = METHODS[method](X.shape[1], 0).fit(X, y)
    row = X[:1].copy()
    row[0, 1] = np.nan

    def once():
        started = time.perf_counter()
        model.predict(row)
        return time.perf_counter() - started

    return 1e6 * np.median([once() for _ in range(200)])


# The report.


def table(results, name):
    """Markdown for one data set: mean ± standard deviation over seeds, in percent."""
    columns = [*map(str, SHARES), REVERSE]
    lines = [
        f"| {name} | " + " | ".join(columns) + " | fit, s | predict, ms | seeds |",
        "|---|" + "---|" * (len(columns) + 3),
    ]
    for method in METHODS:
        runs = [run for key, run in results.items() if key.startswith(f"{name}/{method}/")]
        if not runs:
            continue
        accuracies = " | ".join(accuracy(runs, column) for column in columns)
        fit = np.median([run["fit"] for run in runs])
        predict = np.median([run["predict"] for run in runs])
        lines.append(
            f"| {method} | {accuracies} | {fit:.1f} | {1000 * predict:.1f} | {len(runs)} |"
        )
    return "\n".join(lines)


def accuracy(runs, column):
    """One cell of a table."""
    measured = [100 * run[column] for run in runs if column in run]
    if not measured:
        return "-"
    spread = f" ± {np.std(measured):.1f}" if len(measured) > 1 else ""
    return f"{np.mean(measured):.1f}{spread}"


def report(results):
    """All tables."""
    parts = [
        "Means and standard deviations over the seeds, in percent; "
        "times are medians of CPU time, one thread."
    ]
    for name in SETS:
        if any(key.startswith(f"{name}/") for key in results):
            rows = next(run["rows"] for key, run in results.items() if key.startswith(f"{name}/"))
            parts.append(f"{rows} test rows:\n\n{table(results, name)}")
    times = [f"{method} {micros:,.0f} µs" for method, micros in results["one row"].items()]
    parts.append(
        "Median time to `predict` one row of iris with a cell missing, wall clock: "
        f"{', '.join(times)}."
    )
    return "\n\n".join(parts)


def write(path, text):
    """Replaces the tables between the marks of a page."""
    page = Path(path).read_text()
    head, rest = page.split("<!-- tables -->\n", 1)
    _, tail = rest.split("<!-- end of tables -->", 1)
    Path(path).write_text(f"{head}<!-- tables -->\n{text}\n<!-- end of tables -->{tail}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="", help="only methods with this in their name")
    parser.add_argument("--results", type=Path, default=Path("compare.json"))
    parser.add_argument("--write", help="a Markdown page with marks for the tables")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    for seed in range(args.seeds):
        for name in args.sets.split(","):
            for method in METHODS:
                key = f"{name}/{method}/{seed}"
                if key not in results and args.methods in method:
                    results[key] = measure(name, method, seed)
                    print(key, json.dumps(results[key]), flush=True)
                    args.results.write_text(json.dumps(results, indent=1))
    results["one row"] = {method: one_row(method) for method in METHODS}
    args.results.write_text(json.dumps(results, indent=1))
    print(report(results))
    if args.write:
        write(args.write, report(results))


if __name__ == "__main__":
    main()
