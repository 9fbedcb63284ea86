"""LeNet as it comes with Caffe (paper, appendix on ConvNets), with or without a channel that marks missing pixels.

    5×5 convolution to 20, 2×2 maximum, 5×5 convolution to 50, 2×2 maximum, 500 ReLU, 10

A plan's options:

    fill = "flag"         # or "zero", "mean": what the net sees in place of missing pixels
    holes = ["iid:0.9"]   # what nets are trained on, one net each
    recipe = { steps = 20000, batch = 64, rate = 0.01, momentum = 0.9, decay = 5e-4 } # the paper's

All nets of a seed are trained at the same time: every weight has a first dimension of nets, and a convolution is a
product with patches.
"""

import os
import time

import torch
import torch.nn.functional as F

import results
from holes import TrainHoles
from mnist import CLASSES, SIDE
from steps import Batches, Clock, Replayed, run, say

SCALE = 256.0  # pixels are divided by it
QUICK_STEPS = 60
PAPER = {"steps": 20000, "batch": 64, "rate": 0.01, "momentum": 0.9, "decay": 5e-4}


def shapes(channels):
    """Inputs and outputs of the four layers."""
    return [(25 * channels, 20), (25 * 20, 50), (16 * 50, 500), (500, CLASSES)]


def patches(maps, side):
    """The 5×5 patches of maps (nets, B, H, H, C): (nets, B · side², 25 · C)."""
    windows = maps.unfold(2, 5, 1).unfold(3, 5, 1)  # (nets, B, side, side, C, 5, 5)
    ordered = windows.permute(0, 1, 2, 3, 5, 6, 4)
    return ordered.reshape(len(maps), maps.shape[1] * side * side, 25 * maps.shape[-1])


def pooled(maps, batch, side):
    """The maximum of 2×2 windows: (nets, B · side², C) to (nets, B, side / 2, side / 2, C)."""
    nets, half = len(maps), side // 2
    return maps.view(nets, batch, half, 2, half, 2, -1).amax((3, 5))


class LeNets:
    """Several nets of the same shape."""

    def __init__(self, weights):
        self.weights = weights  # of each layer: (nets, inputs, outputs), then (nets, 1, outputs)

    @classmethod
    def random(cls, channels, seeds, device):
        """Caffe's "xavier"; a net for each seed."""
        weights, generators = [], [torch.Generator().manual_seed(seed) for seed in seeds]
        for inputs, outputs in shapes(channels):
            limit = (3 / inputs) ** 0.5
            nets = [(2 * torch.rand(inputs, outputs, generator=one) - 1) * limit for one in generators]
            weights += [torch.stack(nets).to(device), torch.zeros(len(seeds), 1, outputs, device=device)]
        return cls(weights)

    def forward(self, images):
        """Scores (nets, B, 10) of images (nets, B, 28, 28, channels)."""
        batch, w = images.shape[1], self.weights
        maps = pooled(torch.baddbmm(w[1], patches(images, 24), w[0]), batch, 24)  # (nets, B, 12, 12, 20)
        maps = pooled(torch.baddbmm(w[3], patches(maps, 8), w[2]), batch, 8)  # (nets, B, 4, 4, 50)
        hidden = torch.baddbmm(w[5], maps.reshape(len(maps), batch, -1), w[4]).relu()
        return torch.baddbmm(w[7], hidden, w[6])

    def picked(self, numbers):
        """Some of the nets."""
        return LeNets([weight[numbers] for weight in self.weights])

    @torch.no_grad()
    def classify(self, images):
        """Classes (nets, n) of images (n, 28, 28, channels) that all nets see."""
        nets, answers = len(self.weights[0]), []
        for piece in images.split(2500 // nets + 100):
            answers.append(self.forward(piece.expand(nets, *piece.shape)).argmax(-1))
        return torch.cat(answers, 1)


def filled(pixels, mask, fill, mean=None):
    """What a net sees of pixels (..., 784) from 0 to 255: (..., 28, 28, channels) from 0 to 1."""
    pixels = pixels.float()
    seen = pixels.masked_fill(mask, 0) if fill != "mean" else torch.where(mask, mean, pixels)
    channels = [seen / SCALE] + ([mask.float()] if fill == "flag" else [])
    return torch.stack(channels, -1).unflatten(-2, (SIDE, SIDE))


def rate_at(progress):
    """Constant for half of the steps, falls to a tenth in the third quarter, and to 0 in the last."""
    quarters = 4 * progress
    if quarters < 2:
        return 1.0
    return 1.0 - 0.9 * (quarters - 2) if quarters < 3 else 0.1 * (4 - quarters)


def trained(kinds, fill, recipe, args, images):
    """Nets that were trained on kinds of holes: a list of (holes, seed), one net each. Returns seconds too."""
    device = images.pixels.device
    nets = LeNets.random(2 if fill == "flag" else 1, [seed for _, seed in kinds], device)
    holes = TrainHoles([kind for kind, _ in kinds], device)
    batches = Batches(len(images.labels), recipe["batch"], len(kinds), device, [seed for _, seed in kinds])
    speeds = [torch.zeros_like(weight) for weight in nets.weights]
    rate, losses = torch.zeros((), device=device), torch.zeros(len(kinds), device=device)
    for weight in nets.weights:
        weight.requires_grad_()

    def step():
        rows = batches.next()  # (nets, B)
        seen = filled(images.pixels[rows], holes.draw(recipe["batch"]), fill)
        scores, labels = nets.forward(seen), images.labels[rows]
        each = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view(rows.shape).mean(1)
        gradients = torch.autograd.grad(each.sum(), nets.weights)
        with torch.no_grad():
            losses.copy_(each)
            gradients = torch._foreach_add(gradients, nets.weights, alpha=recipe["decay"])
            torch._foreach_mul_(speeds, recipe["momentum"])
            torch._foreach_add_(speeds, gradients)
            torch._foreach_sub_(nets.weights, torch._foreach_mul(speeds, rate))

    replayed = Replayed(step, device)

    def one_step():
        batches.before_step()
        replayed()

    set_rates = lambda progress: rate.fill_(recipe["rate"] * rate_at(progress))
    report = lambda: f"loss {losses.mean().item():.3f}"
    clock = Clock(QUICK_STEPS if args.quick else recipe["steps"])
    run(one_step, clock, f"{len(kinds)} LeNets, {fill}", set_rates, report)
    for weight in nets.weights:
        weight.requires_grad_(False)
    return nets, clock.seconds


def plain(seeds, args, data):
    """Nets of whole images, one for each seed, and their seconds; kept in the work folder for other scripts."""
    path, device = args.work / f"lenet-plain-{data.checksum[:8]}.pt", data.train.pixels.device
    wanted = {"data": data.checksum, "recipe": PAPER | ({"steps": QUICK_STEPS} if args.quick else {})}
    if path.exists():
        saved = torch.load(path, map_location=device)
        if all(saved.get(key) == value for key, value in wanted.items()) and set(seeds) <= set(saved["seeds"]):
            return LeNets(saved["weights"]).picked([saved["seeds"].index(seed) for seed in seeds]), saved["seconds"]
    nets, seconds = trained([("clean", seed) for seed in seeds], "zero", wanted["recipe"], args, data.train)
    beside = path.with_suffix(f".{os.getpid()}")
    torch.save(wanted | {"seeds": list(seeds), "weights": nets.weights, "seconds": seconds}, beside)
    beside.replace(path)
    return nets, seconds


def images_of_bytes(pixels):
    """Complete images (n, 784) from 0 to 255 as a net sees them."""
    return filled(pixels, torch.zeros_like(pixels, dtype=torch.bool), "zero")


def test(experiment, nets, kinds, mean):
    """Accuracies by (holes, seed) and column, and the seconds."""
    start, accuracies = time.perf_counter(), {kind: [] for kind in kinds}
    for seed in sorted({seed for _, seed in kinds}):
        own = [kind for kind in kinds if kind[1] == seed]
        of_seed = nets.picked([kinds.index(kind) for kind in own])
        for column in experiment.columns:
            mask = experiment.masks(column, seed)
            seen = filled(experiment.test.pixels, mask, experiment.options["fill"], mean)
            for kind, accuracy in zip(own, experiment.accuracy(of_seed.classify(seen))):
                accuracies[kind].append(accuracy.item())
    return accuracies, time.perf_counter() - start


def finish(experiment, nets, kinds, seconds, mean):
    """Tests the nets that the plan wants, and adds a run for each."""
    wanted = [kind for kind in kinds if kind[0] in experiment.options["holes"] and kind[1] in experiment.seeds]
    if not wanted:
        return
    accuracies, test_seconds = test(experiment, nets.picked([kinds.index(kind) for kind in wanted]), wanted, mean)
    for holes, seed in wanted:
        row = holes if len(experiment.options["holes"]) > 1 else ""
        if not experiment.has(seed, row):
            shares = seconds / len(kinds), test_seconds / len(wanted)
            experiment.add(seed, accuracies[holes, seed], *shares, row)


def main():
    args = results.arguments(__doc__)
    for data, found in results.by_set("lenet", args):
        all_nets(found, args, data)
        if args.quick:
            check(found)


def all_nets(found, args, data):
    """Trains and tests the nets of one data set."""
    mean = data.train.pixels.double().mean(0).float()
    without_flag = [one for one in found if one.options["fill"] != "flag"]
    seeds = results.seeds_of(without_flag)
    if any(not one.has(seed) for one in without_flag for seed in one.seeds):
        nets, seconds = plain(seeds, args, data)
        for experiment in without_flag:
            finish(experiment, nets, [("clean", seed) for seed in seeds], seconds, mean)
    with_flag = [one for one in found if one.options["fill"] == "flag"]
    for seed in results.seeds_of(with_flag):
        left = {kind for one in with_flag for kind in one.options["holes"] if not one.has(seed, kind)}
        kinds = [(kind, seed) for kind in (["iid:rand"] if args.quick else sorted(left))]
        if kinds:
            nets, seconds = trained(kinds, "flag", with_flag[0].options["recipe"], args, data.train)
            for experiment in with_flag:
                finish(experiment, nets, kinds, seconds, mean)


def check(found):
    """After 60 batches a net is far better than a guess, and worse where more is missing."""
    for experiment in found:
        for one in experiment.record["runs"]:
            by_column = dict(zip(experiment.columns, one["accuracies"]))
            if "clean" in by_column:
                assert by_column["clean"] > 50, (experiment.name, one)
                assert by_column["clean"] > by_column["iid:0.99"] + 20, (experiment.name, one)
    say("lenet", "ok")


if __name__ == "__main__":
    main()
