"""Missing pixels are completed by a generative model, then LeNet classifies (paper, section on missing data).

A model gives `complete(pixels, mask)`: the images (n, 784) from 0 to 255 with all pixels, and the same once more for
each quirk of the authors' code, by name.
"""

import json
import time

import numpy as np
import torch

import lenet
from steps import say

SHOWN = ["iid:0.75", "rect:2x11", "half"]  # these completions are kept as pictures
PICTURES = 10


def test(experiment, seed, complete, args, train_seconds):
    """All columns of one seed. Finished columns are kept in the work folder."""
    nets, _ = lenet.plain([seed], args, experiment.data)
    kept = Kept(args.work / f"{experiment.name}-{seed}.columns", args.quick)
    for column in experiment.columns:
        if column in kept.columns:
            continue
        start, images = time.perf_counter(), {"": experiment.test.pixels}
        mask = experiment.masks(column, seed)
        if column != "clean":
            images = complete(experiment.test.pixels, mask)
        row = {}
        for name, pixels in images.items():
            pixels = torch.where(mask, pixels.clamp(0, 255).round(), experiment.test.pixels) if not name else pixels
            answers = nets.classify(lenet.images_of_bytes(pixels.clamp(0, 255).round()))
            row[name] = experiment.accuracy(answers)[0].item()
            if column in SHOWN and not name:
                keep_pictures(experiment, seed, column, pixels, mask, args)
        kept.add(column, row | {"seconds": time.perf_counter() - start})
        say(f"{experiment.name}, seed {seed}", column, json.dumps(kept.columns[column]))
    by_column = [kept.columns[column] for column in experiment.columns]
    experiment.add(seed, [row[""] for row in by_column], train_seconds, sum(row["seconds"] for row in by_column))
    for name in {name for row in by_column for name in row if name not in ("", "seconds")}:
        experiment.note(**{f"accuracies, {name}, seed {seed}": [row.get(name, row[""]) for row in by_column]})


def keep_pictures(experiment, seed, column, completed, mask, args):
    """The first images as they are seen, completed and whole, for a figure."""
    if seed != experiment.seeds[0]:
        return
    folder = args.results / "completions"
    folder.mkdir(parents=True, exist_ok=True)
    whole, hidden = experiment.test.pixels[:PICTURES].float(), mask[:PICTURES]
    method = experiment.name.removeprefix("unseen-")
    pictures = {method: completed[:PICTURES], "seen": whole.masked_fill(hidden, torch.nan), "whole": whole}
    for name, pixels in pictures.items():
        np.save(folder / f"{name}-{column.replace(':', '-')}.npy", pixels.float().cpu().numpy())


class Kept:
    """Accuracies by column in a file."""

    def __init__(self, path, afresh):
        self.path, self.columns = path, {}
        if path.exists() and not afresh:
            self.columns = json.loads(path.read_text())

    def add(self, column, row):
        self.columns[column] = row
        self.path.write_text(json.dumps(self.columns))


def parzen(samples, images, sigma):
    """Mean log-likelihood in nats of images (n, 784) under Gaussians of width sigma at samples (m, 784)."""
    total = 0.0
    for piece in images.split(1000):
        distance = torch.cdist(piece.double(), samples.double()) ** 2
        total += torch.logsumexp(-distance / (2 * sigma**2), 1).sum().item()
    pixels = images.shape[1]
    constant = np.log(len(samples)) + pixels / 2 * np.log(2 * np.pi * sigma**2)
    return total / len(images) - constant


def best_parzen(samples, held_out, images):
    """The width is chosen on held-out images. Returns nats and the width."""
    widths = [0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.23, 0.26]
    sigma = max(widths, key=lambda width: parzen(samples, held_out, width))
    return parzen(samples, images, sigma), sigma
