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

import time

import torch
import torch.nn.functional as F

import results
from mnist import CLASSES, PIXELS
from steps import Batches, Clock, Replayed, compiled, round_up, run, say

BIASES = (-0.710467, -0.393587)  # of the hidden units, at the start
LARGEST = 0.00638830865761  # of the weights between the hidden layers, at the start
LONGEST = (1.809978, 2.666304, 5.175683)  # the norms of a unit's weights from the layer below it
LEAST_RATE = 0.020379  # of the first
QUICK = {"layers": [100, 50], "rounds": 5, "drop_inputs": 0.5, "batch": 50, "rate": 15.0, "momentum": 0.5}
QUICK_STEPS = 400


def sparse(inputs, outputs, count):
    """Weights of which each unit has `count` that are not 0."""
    chosen = torch.rand(inputs, outputs).argsort(0) < count
    return torch.randn(inputs, outputs) * chosen


class Machines:
    """Several machines that train together, one for each seed; all tensors are (machines, ...).

    A unit is tied to units of the next layers alone. So a machine has two sides, with one matrix of weights between them:
    the even layers (pixels, second) and the odd ones (first, classes, some that stay 0). A round is two products with it.
    """

    def __init__(self, seeds, layers, rounds, pixels):
        self.layers, self.rounds = layers, rounds
        first, second = layers
        self.named = slice(first, first + CLASSES)  # the classes among the odd units
        even, odd = PIXELS + second, round_up(first + CLASSES)
        weights, of_even, of_odd = torch.zeros(len(seeds), even, odd), torch.zeros(even), torch.zeros(odd)
        for seed, (up, middle, top) in zip(seeds, zip(*self.blocks(weights))):
            torch.manual_seed(seed)
            up.copy_(sparse(PIXELS, first, 15))
            middle.uniform_(-LARGEST, LARGEST)
            top.copy_(sparse(second, CLASSES, 23))
        of_even[:PIXELS] = (pixels.float().mean(0) / 255).clamp(0.001, 0.999).logit()
        of_odd[:first], of_even[PIXELS:] = BIASES
        self.weights = weights.to(pixels.device)
        self.biases = [bias.repeat(len(seeds), 1, 1).to(pixels.device).requires_grad_() for bias in (of_even, of_odd)]
        self.update = compiled(self.one_round, pixels.device)
        self.shorten(self.weights)

    def blocks(self, weights):
        """Pixels by first layer, second by first, second by classes."""
        first = slice(self.layers[0])
        return weights[:, :PIXELS, first], weights[:, PIXELS:, first], weights[:, PIXELS:, self.named]

    def nudges(self, batch, dtype):
        """A 0 for each even unit in every round, and for each odd one: the slope there is that of the sum it is added to."""
        (count, even, odd), device = self.weights.shape, self.weights.device
        zeros = lambda n: torch.zeros(count, batch, n, dtype=dtype, device=device, requires_grad=True)
        return [zeros(even) for _ in range(self.rounds)], [zeros(odd) for _ in range(self.rounds + 1)]

    def infer(self, weights, pixels, is_hidden, classes=None, nudges=None):
        """Log odds of the pixels, scores of the classes, and the states of both sides in all rounds.

        `classes` has a row of 0 where the class is not known.
        """
        classes = pixels.new_zeros(*pixels.shape[:2], CLASSES) if classes is None else classes
        given = pixels, is_hidden, classes, classes.sum(-1, keepdim=True) == 0
        of_even, of_odd = (bias.to(weights.dtype) for bias in self.biases)
        to_even, to_odd = nudges or ([0] * self.rounds, [0] * (self.rounds + 1))
        below = torch.where(is_hidden, of_even[..., :PIXELS].sigmoid(), pixels.to(weights.dtype))
        evens, odds = [F.pad(below, (0, self.layers[1]))], []
        for number, added in enumerate(zip(to_even, to_odd)):
            even, odd, logits = self.update(evens[-1], weights, (of_even, of_odd), given, added, number == 0)
            evens.append(even)
            odds.append(odd)
        scores = evens[-1] @ weights + of_odd + to_odd[-1]
        return logits, scores[..., self.named], evens, odds

    def one_round(self, even, weights, biases, given, added, is_first):
        """One update of both sides. In the first, nothing is known from above: weights count twice, classes and pixels wait."""
        (pixels, is_hidden, classes, is_free), (of_even, of_odd), (to_even, to_odd) = given, biases, added
        times = 2 if is_first else 1
        sums = times * (even @ weights) + of_odd + to_odd
        first, scores = sums[..., : self.layers[0]].sigmoid(), sums[..., self.named]
        label = torch.zeros_like(scores) if is_first else torch.where(is_free, scores.softmax(-1), classes).to(sums.dtype)
        odd = F.pad(torch.cat([first, label], -1), (0, sums.shape[-1] - self.named.stop))
        sums = times * (odd @ weights.mT) + of_even + to_even
        logits = sums[..., :PIXELS]
        below = even[..., :PIXELS] if is_first else torch.where(is_hidden, logits.sigmoid(), pixels.to(sums.dtype))
        return torch.cat([below, sums[..., PIXELS:].sigmoid()], -1), odd, logits

    def shorten(self, weights):
        """No unit's weights are longer than allowed. Pixels and classes are not tied."""
        weights[:, :PIXELS, self.named] = 0
        for block, dim, longest in zip(self.blocks(weights), (1, 2, 1), LONGEST):
            norms = block.norm(dim=dim, keepdim=True)
            block.mul_(norms.clamp(max=longest) / norms.clamp_min(1e-7))


def slopes_of(loss, biases, nudges, evens, odds):
    """Those at the biases, and those at the weights: one product for all rounds."""
    to_even, to_odd = nudges
    found = torch.autograd.grad(loss, [*biases, *to_even, *to_odd])
    of_biases, at_even, at_odd = found[:2], found[2 : 2 + len(to_even)], found[2 + len(to_even) :]
    for first in (at_even[0], at_odd[0]):
        first.mul_(2)  # weights count twice
    return torch.cat([*evens, *at_even], 1).mT @ torch.cat([*at_odd, *odds], 1), *of_biases


def descend(weights, speed, slopes, rate, momentum):
    """One step with momentum."""
    speed.mul_(momentum).sub_(rate * slopes)
    weights.add_(speed)


def losses(logits, scores, pixels, is_hidden, labels, is_unlabelled):
    """Of each machine: the cross-entropy of what was hidden."""
    of_pixels = F.binary_cross_entropy_with_logits(logits, pixels, reduction="none") * is_hidden
    of_labels = -(labels * scores.log_softmax(-1)).sum(-1) * is_unlabelled[..., 0]
    return of_pixels.mean((1, 2)) + of_labels.mean(1) / PIXELS


def trained(seeds, options, args, images):
    """Machines, their seconds and their epochs."""
    device, batch = images.pixels.device, options["batch"]
    machines = Machines(seeds, options["layers"], options["rounds"], images.pixels)
    parameters = [machines.weights, *machines.biases]
    speeds = [torch.zeros_like(one) for one in parameters]
    batches = Batches(len(images.labels), batch, len(seeds), device, seeds)
    rate, momentum, last = (torch.zeros((), device=device) for _ in range(3))
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    nudges, missed = machines.nudges(batch, dtype), compiled(losses, device)
    descended, shortened = compiled(descend, device), compiled(machines.shorten, device)

    def step():
        rows = batches.next()
        pixels = torch.bernoulli(images.pixels[rows] / 255)
        labels = F.one_hot(images.labels[rows], CLASSES).float()
        is_hidden = torch.rand_like(pixels) < options["drop_inputs"]
        is_unlabelled = torch.rand(len(seeds), batch, 1, device=device) < options["drop_inputs"]
        given = pixels, is_hidden, labels * ~is_unlabelled
        logits, scores, evens, odds = machines.infer(machines.weights.to(dtype), *given, nudges)
        loss = missed(logits.float(), scores.float(), pixels, is_hidden, labels, is_unlabelled)
        at_weights, *at_biases = slopes_of(loss.sum(), machines.biases, nudges, evens, odds)
        with torch.no_grad():
            for one, speed, slopes in zip(parameters, speeds, (at_weights, *at_biases)):
                descended(one, speed, slopes, rate, momentum)
            shortened(machines.weights)
        last.copy_(loss.mean().detach())

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
        answers = [machines.infer(machines.weights, part.expand(len(seeds), -1, -1), mask)[1].argmax(-1) for part, mask in parts]
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
