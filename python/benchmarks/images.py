"""Images of any number and size without a plan: TMMClassifier(image_shape=...) beside a forest.

    pip install ./python
    apt-get install dataset-fashion-mnist
    python python/benchmarks/images.py --fashion /usr/share/datasets/fashion-mnist
    python python/benchmarks/images.py --eth80 eth80-64.npz    # `images`, `category`, `instance`

Fashion-MNIST: the first 100, 1,000, 10,000 and all 60,000 training images, scored on the 10,000
test images; for 100, the mean over the first five hundreds. ETH-80: grey images of 64×64 in eight
classes, and shrunk to 32×32; instances 0 to 7 of every class train, 8 and 9 are scored, so that no
object is in both. Shares of the pixels are hidden at random in the scored images; where a method
needs whole rows, the mean of the training images stands in for them. All methods have their
defaults.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before importing the libraries that read it

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sumout import TMMClassifier

SHARES = [0.0, 0.25, 0.5, 0.75, 0.9]
COUNTS = [100, 1_000, 10_000, 60_000]


def idx(path):
    """An array of bytes in an IDX file."""
    with gzip.open(path) as file:
        data = file.read()
    shape = np.frombuffer(data, ">i4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def fashion(folder):
    """Name, training sets (images and classes), test images, their classes."""
    kinds = ("images-idx3", "labels-idx1")
    train, test = (
        [idx(folder / f"{part}-{kind}-ubyte.gz") for kind in kinds] for part in ("train", "t10k")
    )
    for count in COUNTS:
        starts = range(0, 5 * count if count == 100 else count, count)
        sets = [[part[start : start + count] for part in train] for start in starts]
        yield f"Fashion-MNIST, {count:,} images", sets, *test


def eth80(file):
    """The same, split by object."""
    data = np.load(file, allow_pickle=True)
    images, classes, trains = data["images"], data["category"], data["instance"] < 8
    for side in (64, 32):
        by = 64 // side
        blocks = images.reshape(-1, side, by, side, by).mean((2, 4)).astype(np.uint8)
        name = f"ETH-80, {side}×{side}, {trains.sum():,} images"
        yield name, [[blocks[trains], classes[trains]]], blocks[~trains], classes[~trains]


def methods(shape):
    """What is compared, by name."""
    return {
        "**TMMClassifier()**": TMMClassifier(image_shape=shape, random_state=1),
        "random forest": make_pipeline(SimpleImputer(), RandomForestClassifier(random_state=1)),
        "5 nearest": make_pipeline(SimpleImputer(), KNeighborsClassifier()),
    }


def measure(model, images, classes, scored, wanted):
    """Seconds to fit, and the accuracy for every share of hidden pixels."""
    start = time.perf_counter()
    model.fit(images.reshape(len(images), -1).astype(np.float32), classes)
    seconds = time.perf_counter() - start
    rows, accuracy = scored.reshape(len(scored), -1).astype(np.float32), []
    for share in SHARES:
        hidden = np.random.default_rng(1).random(rows.shape) < share
        guess = model.predict(np.where(hidden, np.nan, rows))
        accuracy.append(100 * float(np.mean(guess == wanted)))
    return {"fit": seconds, "accuracy": accuracy}


def table(results):
    """Markdown."""
    columns = ["set", "method", "fit", *map(str, SHARES)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for key, found in results.items():
        cells = " | ".join(f"{x:.1f}" for x in found["accuracy"])
        lines.append(f"| {' | '.join(key.split('/'))} | {found['fit']:.0f} s | {cells} |")
    return "\n".join(lines)


def main():
    """Measures what is not in the file of results yet, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fashion", type=Path, metavar="FOLDER")
    parser.add_argument("--eth80", type=Path, metavar="FILE")
    parser.add_argument("--results", type=Path, default=Path("python/benchmarks/images.json"))
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    sets = [*(fashion(options.fashion) if options.fashion else []),
            *(eth80(options.eth80) if options.eth80 else [])]  # fmt: skip
    for name, training, *scored in sets:
        for method, model in methods(scored[0].shape[1:]).items():
            key = f"{name}/{method}"
            if key not in results:
                found = [measure(model, *part, *scored) for part in training]
                mean = {what: np.mean([one[what] for one in found], 0) for what in found[0]}
                results[key] = {what: value.tolist() for what, value in mean.items()}
                print(key, results[key], flush=True)
                options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    print(table(results))


if __name__ == "__main__":
    main()
