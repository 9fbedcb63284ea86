"""Log-likelihood of nine binary data sets: TMMDensity() beside published models and a mixture.

    pip install ./python
    python python/benchmarks/densities.py --data FOLDER --write docs/densities.md

FOLDER holds `NAME.train.csv.gz` and `NAME.test.csv.gz`, comma-separated zeros and ones, without a
header. TMMDensity has its defaults: one call, nothing is tuned for a set. The mixture of products
of Bernoullis is trained by EM with a pseudo-count; the best of three sizes on a tenth of the
training rows is trained again on all of them.

Measurements are kept in a file (--results), so an interrupted run continues. Times are CPU times,
one thread (OMP_NUM_THREADS sets more).
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
from scipy.special import logsumexp

from sumout import TMMDensity

# Mean test log-likelihoods. HCLT: the authors' own logs (UCLA-StarAI, Tractable-PC-Regularization,
# mean of five runs, last iteration). LearnSPN: Gens and Domingos, 2013.
PUBLISHED = {
    "nltcs": (-5.999, -6.11),
    "plants": (-14.263, -12.98),
    "baudio": (-39.774, -40.50),
    "jester": (-52.463, -53.48),
    "bnetflix": (-56.278, -57.33),
    "accidents": (-26.744, -30.04),
    "pumsb_star": (-23.648, -24.78),
    "dna": (-79.056, -82.52),
    "bbc": (-251.049, -250.69),
}
HEAD = [
    "set",
    "columns",
    "training rows",
    "**TMMDensity()**",
    "mixture of Bernoullis",
    "HCLT",
    "LearnSPN",
    "fit, s",
    "mixture, s",
]


def rows_of(folder, name, part):
    return np.loadtxt(folder / f"{name}.{part}.csv.gz", delimiter=",", dtype=np.int64)


class BernoulliMixture:
    """Products of Bernoullis side by side, by EM."""

    def __init__(self, parts, rounds=100, seed=0):
        self.parts, self.rounds, self.seed = parts, rounds, seed

    def fit(self, X):
        random = np.random.RandomState(self.seed)
        share = random.dirichlet(np.ones(self.parts), size=len(X))
        for _ in range(self.rounds):
            mass = share.sum(0)
            self.weights = (mass + 1) / (mass + 1).sum()
            self.rates = (share.T @ X + 0.5) / (mass[:, None] + 1)
            joint = self.joint(X)
            share = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return self

    def joint(self, X):
        return X @ np.log(self.rates).T + (1 - X) @ np.log1p(-self.rates).T + np.log(self.weights)

    def score(self, X):
        return logsumexp(self.joint(X), axis=1).mean()


def best_mixture(X, seed=0):
    order = np.random.RandomState(seed).permutation(len(X))
    held_out, kept = order[: len(X) // 10], order[len(X) // 10 :]
    scores = {
        parts: BernoulliMixture(parts).fit(X[kept]).score(X[held_out]) for parts in (20, 60, 180)
    }
    return BernoulliMixture(max(scores, key=scores.get)).fit(X)


def timed(fit):
    start = time.process_time()
    model = fit()
    return model, time.process_time() - start


def measure(folder, name):
    train, test = rows_of(folder, name, "train"), rows_of(folder, name, "test")
    columns = list(range(train.shape[1]))
    density = TMMDensity(categorical_features=columns, random_state=1)
    ours, seconds = timed(lambda: density.fit(train))
    mixture, mixture_seconds = timed(lambda: best_mixture(train))
    return {
        "columns": len(columns),
        "rows": len(train),
        "ours": ours.score(test),
        "mixture": mixture.score(test),
        "seconds": seconds,
        "mixture_seconds": mixture_seconds,
    }


def table(results):
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for name, (hclt, learn_spn) in PUBLISHED.items():
        if name in results:
            row = results[name]
            cells = [name, str(row["columns"]), str(row["rows"]), f"**{row['ours']:.3f}**"]
            cells += [f"{row['mixture']:.3f}", f"{hclt:.3f}", f"{learn_spn:.2f}"]
            cells += [f"{row['seconds']:.0f}", f"{row['mixture_seconds']:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(path, text):
    """Puts the table between the two marks of a page."""
    begin, end = "<!-- table -->\n", "\n<!-- end of the table -->"
    page = path.read_text()
    before, rest = page.split(begin)
    path.write_text(before + begin + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--sets", nargs="*", default=list(PUBLISHED), help="some of the sets")
    parser.add_argument("--results", type=Path, default=Path("densities.json"))
    parser.add_argument("--write", type=Path, help="a page that gets the table")
    args = parser.parse_args()
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    for name in args.sets:
        if name not in results:
            results[name] = measure(args.data, name)
            args.results.write_text(json.dumps(results, indent=1) + "\n")
            print(name, results[name], flush=True)
    print(table(results))
    if args.write:
        write(args.write, table(results))


if __name__ == "__main__":
    main()
