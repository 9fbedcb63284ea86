"""MNIST of which few images have a label, with whole images or with holes in training and in test.

A plan's options:

    kinds = ["lenet", "boosting", "spreading"]   # a row for each
    labels = [100, 1000]      # so many of the training images have a label, equally many of each digit: rows for each
    train_holes = "iid:0.5"   # in all training images; default: none
    steps = 3000              # of LeNet

- lenet: LeNet with a channel that marks missing pixels, on the labelled images. Images are moved by up to 2 pixels.
- boosting: scikit-learn's HistGradientBoosting on the labelled images; a missing pixel is NaN.
- spreading: scikit-learn's LabelSpreading over all images, labelled and not, and the test images: each is joined to its
  seven nearest. A missing pixel is the mean of that pixel over the images that have it.
"""

import time
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.semi_supervised import LabelSpreading

import holes
import lenet
import results
from mnist import CLASSES
from resnet import moved
from steps import Batches, Clock, descend, run, say

QUICK_STEPS = 60
NEIGHBOURS = 7


def labelled(labels, count, seed):
    """The images that keep their label: of every digit the first, for the second seed those after them, and so on."""
    each, chosen = count // CLASSES, []
    for digit in range(CLASSES):
        rows = np.flatnonzero(labels == digit)
        chosen.extend(rows[(seed - 1) * each : seed * each])
    return np.sort(chosen)


def training_masks(kind, count, seed):
    """Holes of the training images: those of the Rust program."""
    return torch.from_numpy(holes.test_masks(kind or "clean", range(count), 1000 + seed))


class Few:
    """The images of one seed: all of them teach, some with a label."""

    def __init__(self, experiment, labels, seed, quick):
        data, options = experiment.data, experiment.options
        self.train, self.test, self.seed = data.train, experiment.test, seed
        self.mask = training_masks(options.get("train_holes"), len(data.train.labels), seed)
        self.rows = labelled(data.train.labels.cpu().numpy(), labels, seed)
        self.steps, self.rounds = (QUICK_STEPS, 10) if quick else (options["steps"], 100)

    def pixels(self):
        """All training images (n, 784) with NaN where missing, NumPy."""
        return self.train.pixels.float().cpu().masked_fill(self.mask, torch.nan).numpy()

    def labels(self):
        return self.train.labels.cpu().numpy()

    def test_pixels(self, mask):
        return self.test.pixels.float().masked_fill(mask, torch.nan).cpu().numpy()


class LeNet:
    def __init__(self, few):
        torch.manual_seed(few.seed)
        device = few.train.pixels.device
        rows = torch.from_numpy(few.rows).to(device)
        pixels, labels = few.train.pixels[rows], few.train.labels[rows]
        mask = few.mask[few.rows].to(device)
        self.net = lenet.LeNets.random(2, [few.seed], device)
        for weight in self.net.weights:
            weight.requires_grad_()
        optimizer = torch.optim.AdamW(self.net.weights, 0.002, weight_decay=0.01)
        batches = Batches(len(rows), min(64, len(rows)), 1, device, [few.seed])
        last = torch.zeros((), device=device)
        both = torch.stack([pixels.float(), mask.float()], 1)

        def step():
            batches.before_step()
            chosen = batches.next()[0]
            images, hidden = shifted(both[chosen])
            seen = lenet.filled(images, hidden, "flag")
            loss = F.cross_entropy(self.net.forward(seen[None])[0], labels[chosen])
            descend(optimizer, loss, last)

        def set_rates(progress):
            for group in optimizer.param_groups:
                group["lr"] = 0.002 * (1 - progress)

        run(step, Clock(few.steps), "LeNet", set_rates, lambda: f"loss {last.item():.3f}")
        for weight in self.net.weights:
            weight.requires_grad_(False)

    def classify(self, few, mask):
        return self.net.classify(lenet.filled(few.test.pixels, mask, "flag"))[0].cpu().numpy()


def shifted(both):
    """Pixels and marks (B, 2, 784) moved together by up to two pixels."""
    joined = both[:, 0] + 1000 * both[:, 1]  # pixels are below 256, so that one move serves both
    joined = moved(joined, 2)
    hidden = joined >= 1000
    return joined - 1000 * hidden.float(), hidden


class Boosting:
    def __init__(self, few):
        self.model = HistGradientBoostingClassifier(max_iter=few.rounds, random_state=few.seed)
        self.model.fit(few.pixels()[few.rows], few.labels()[few.rows])

    def classify(self, few, mask):
        return self.model.predict(few.test_pixels(mask))


def graph_of(few, mask):
    """Each image joined to its nearest, over training and test images: a sparse matrix."""
    pixels = few.pixels()
    mean = np.nan_to_num(np.nanmean(pixels, 0))
    images = np.concatenate([pixels, few.test_pixels(mask)])
    images = torch.from_numpy(np.where(np.isnan(images), mean, images) / 255).to(few.train.pixels.device)
    squares, nearest = images.square().sum(1), []
    for piece in images.split(2000):
        distance = squares - 2 * piece @ images.T  # less the square of the image itself, which all share
        nearest.append(distance.topk(NEIGHBOURS, largest=False).indices.cpu())
    columns = torch.cat(nearest).numpy().ravel()
    rows = np.repeat(np.arange(len(images)), NEIGHBOURS)
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(images),) * 2)


class Spreading:
    """Test images take part without their labels. The graph knows no labels: one serves all numbers of them."""

    last = None, None  # a key and its graph

    def __init__(self, few):
        pass

    def classify(self, few, mask):
        count = len(few.train.labels)
        labels = np.full(count + len(few.test.labels), -1)
        labels[few.rows] = few.labels()[few.rows]
        key = bytes(few.mask[:9].numpy()), bytes(mask[:9].cpu().numpy())
        if Spreading.last[0] != key:
            Spreading.last = key, graph_of(few, mask)
        graph = Spreading.last[1]
        model = LabelSpreading(kernel=lambda *_: graph)
        model.fit(np.zeros((len(labels), 1)), labels)
        return model.transduction_[count:]


KINDS = {"lenet": LeNet, "boosting": Boosting, "spreading": Spreading}


def test(experiment, kind, labels, seed, args):
    """Trains one method, tests it on all columns, and adds its run."""
    few, start = Few(experiment, labels, seed, args.quick), time.perf_counter()
    model = KINDS[kind](few)
    seconds, start = time.perf_counter() - start, time.perf_counter()
    accuracies = []
    for column in experiment.columns:
        answers = torch.from_numpy(model.classify(few, experiment.masks(column, seed)))
        accuracies.append(experiment.accuracy(answers.to(experiment.test.labels.device)).item())
    experiment.add(seed, accuracies, seconds, time.perf_counter() - start, f"{kind} {labels}")


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    found = results.experiments("few-labels", args, data)
    for experiment in found[:1] if args.quick else found:
        counts = [200] if args.quick else experiment.options["labels"]
        for seed, kind, labels in product(experiment.seeds, experiment.options["kinds"], counts):
            if not experiment.has(seed, f"{kind} {labels}"):
                test(experiment, kind, labels, seed, args)
    if args.quick:
        for one in found[0].record["runs"]:
            assert one["accuracies"][0] > 30, one  # a guess is right in 10 %
        say("few_labels", "ok")


if __name__ == "__main__":
    main()
