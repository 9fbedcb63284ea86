"""MP-DBM (Goodfellow et al. 2013): a deep Boltzmann machine of pixels, two hidden layers and the class.

It is trained as a recurrent net: half of the pixels and of the labels are hidden, 14 rounds of mean field infer them from
the others, and their cross-entropy is the loss. A test does the same with what is missing. The settings are those of the
authors' file `mpdbm.yaml`; here all 60,000 images train, and the last weights are taken, not the best of a validation.

    layers = [2087, 3200]  # hidden units
    rounds = 14            # of mean field
    drop_inputs = 0.5      # and labels
    epochs = 868           # the rate falls to a fiftieth on a straight line
    batch = 100
    rate = 15.146493       # of the mean over images and pixels, hence so large
    momentum = 0.732716    # 0.5 in the first epoch
"""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

import results
from mnist import CLASSES, PIXELS
from steps import Batches, Clock, Replayed, compiled, run, say

BIASES = (-0.710467, -0.393587)  # of the hidden units, at the start
LONGEST = (1.809978, 2.666304, 5.175683)  # the norms of a unit's weights from the layer below it
LEAST_RATE = 0.020379  # of the first
ROUND = 16
QUICK = {"layers": [100, 50], "rounds": 5, "drop_inputs": 0.5, "batch": 50, "rate": 15.0, "momentum": 0.5}
QUICK_STEPS = 400


def sparse(inputs, outputs, count):
    """Weights of which each unit has `count` that are not 0."""
    chosen = torch.rand(inputs, outputs).argsort(0) < count
    return torch.randn(inputs, outputs) * chosen


class Machines(nn.Module):
    """Several machines that train together, one for each seed; all tensors are (machines, ...).

    The first layer has a few more units, whose weights stay 0: tensor cores want rows of a round number of bytes.
    """

    def __init__(self, seeds, layers, rounds, pixels):
        super().__init__()
        self.first, first, second = layers[0], math.ceil(layers[0] / ROUND) * ROUND, layers[1]
        self.rounds = rounds
        weights, share = [], (pixels.float().mean(0) / 255).clamp(0.001, 0.999)
        for seed in seeds:
            torch.manual_seed(seed)
            small = torch.empty(first, second).uniform_(-0.00638830865761, 0.00638830865761)
            weights.append([sparse(PIXELS, first, 15), small, sparse(second, CLASSES, 23)])
        biases = [share.logit(), *(torch.full((n,), b) for n, b in zip((first, second), BIASES)), torch.zeros(CLASSES)]
        on_device = lambda found: nn.ParameterList([nn.Parameter(one.to(pixels.device)) for one in found])
        self.weights = on_device([torch.stack(layer) for layer in zip(*weights)])
        self.biases = on_device([bias.repeat(len(seeds), 1, 1) for bias in biases])
        self.update = compiled(self.one_round, pixels.device)
        self.shorten()

    def forward(self, pixels, is_hidden, classes=None):
        """Log odds of the pixels and scores of the classes; `classes` has a row of 0 where the class is not known."""
        classes = pixels.new_zeros(*pixels.shape[:2], CLASSES) if classes is None else classes
        (up, middle, _), (of_pixels, of_first, of_second, _) = self.weights, self.biases
        below = torch.where(is_hidden, of_pixels.sigmoid(), pixels)
        first = (2 * below @ up + of_first).sigmoid()  # nothing comes from above yet: the weights count twice
        second = (2 * first @ middle + of_second).sigmoid()
        is_free = classes.sum(-1, keepdim=True) == 0
        for _ in range(1, self.rounds):
            below, second, odds, scores = self.update(below, second, pixels, is_hidden, classes, is_free)
        return odds, scores

    def one_round(self, below, second, pixels, is_hidden, classes, is_free):
        """One update of each: the first layer and the classes, then the pixels and the second layer."""
        (up, middle, top), (of_pixels, of_first, of_second, of_classes) = self.weights, self.biases
        first = (below @ up + second @ middle.mT + of_first).sigmoid()
        label = torch.where(is_free, (second @ top + of_classes).softmax(-1), classes)
        odds = first @ up.mT + of_pixels
        below = torch.where(is_hidden, odds.sigmoid(), pixels)
        second = (first @ middle + label @ top.mT + of_second).sigmoid()
        return below, second, odds, second @ top + of_classes

    @torch.no_grad()
    def shorten(self):
        """No unit's weights are longer than allowed."""
        for weights, longest in zip(self.weights, LONGEST):
            norms = weights.norm(dim=1, keepdim=True)
            weights.mul_(norms.clamp(max=longest) / norms.clamp_min(1e-7))
        self.weights[0][:, :, self.first :] = 0
        self.weights[1][:, self.first :] = 0


def trained(seeds, options, args, images):
    """Machines, their seconds and their epochs."""
    device, batch = images.pixels.device, options["batch"]
    machines = Machines(seeds, options["layers"], options["rounds"], images.pixels)
    parameters = list(machines.parameters())
    speeds = [torch.zeros_like(one) for one in parameters]
    batches = Batches(len(images.labels), batch, len(seeds), device, seeds)
    rate, momentum, last = (torch.zeros((), device=device) for _ in range(3))

    def step():
        rows = batches.next()
        pixels = torch.bernoulli(images.pixels[rows] / 255)
        labels = F.one_hot(images.labels[rows], CLASSES).float()
        is_hidden = torch.rand_like(pixels) < options["drop_inputs"]
        is_unlabelled = torch.rand(len(seeds), batch, 1, device=device) < options["drop_inputs"]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            odds, scores = machines(pixels, is_hidden, labels * ~is_unlabelled)
        odds, scores = odds.float(), scores.float()
        of_pixels = F.binary_cross_entropy_with_logits(odds, pixels, reduction="none") * is_hidden
        of_labels = -(labels * scores.log_softmax(-1)).sum(-1) * is_unlabelled[..., 0]
        losses = of_pixels.mean((1, 2)) + of_labels.mean(1) / PIXELS
        slopes = torch.autograd.grad(losses.sum(), parameters)
        with torch.no_grad():
            torch._foreach_mul_(speeds, momentum)
            torch._foreach_sub_(speeds, torch._foreach_mul(slopes, rate))
            torch._foreach_add_(parameters, speeds)
        machines.shorten()
        last.copy_(losses.mean().detach())

    replayed = Replayed(step, device)

    def one_step():
        batches.before_step()
        replayed()

    clock = Clock(QUICK_STEPS if args.quick else options["epochs"] * batches.per_epoch, args.minutes)

    def set_rates(progress):
        rate.fill_(options["rate"] * (1 - progress * (1 - LEAST_RATE)))
        momentum.fill_(0.5 if batches.epoch < 2 else options["momentum"])

    report = lambda: f"epoch {batches.epoch}, loss {last.item():.4f}"
    run(one_step, clock, f"MP-DBM, {len(seeds)} machines", set_rates, report)
    return machines, clock.seconds, batches.epoch


@torch.no_grad()
def test(experiment, machines, seeds, seconds):
    """Every machine on its seed's holes."""
    start, pixels, accuracies = time.perf_counter(), experiment.test.pixels / 255, []
    for column in experiment.columns:
        masks = torch.stack([experiment.masks(column, seed) for seed in seeds])
        parts = zip(pixels.split(1000), masks.split(1000, 1))
        answers = [machines(part.expand(len(seeds), -1, -1), mask)[1].argmax(-1) for part, mask in parts]
        accuracies.append(experiment.accuracy(torch.cat(answers, 1)))
    per_seed = (time.perf_counter() - start) / len(seeds)
    for number, seed in enumerate(seeds):
        experiment.add(seed, [column[number] for column in accuracies], seconds / len(seeds), per_seed)
    return accuracies


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    for experiment in results.experiments("mpdbm", args, data):
        options = QUICK if args.quick else experiment.options
        seeds = [seed for seed in experiment.seeds if not experiment.has(seed)]
        if not seeds:
            continue
        machines, seconds, epochs = trained(seeds, options, args, data.train)
        accuracies = test(experiment, machines, seeds, seconds)
        experiment.note(epochs=epochs)
    if args.quick:
        clean, most_missing = accuracies[0].min(), accuracies[1].max()
        assert clean > 40 and clean > most_missing + 20, accuracies
        say("mpdbm", "ok")


if __name__ == "__main__":
    main()
