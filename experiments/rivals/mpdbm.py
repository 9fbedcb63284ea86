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
from torch import nn

import results
from mnist import CLASSES, PIXELS
from steps import Batches, Clock, Replayed, run, say

BIASES = (-0.710467, -0.393587)  # of the hidden units, at the start
LONGEST = (1.809978, 2.666304, 5.175683)  # the norms of a unit's weights from the layer below it
LEAST_RATE = 0.020379  # of the first
QUICK = {"layers": [100, 50], "rounds": 5, "drop_inputs": 0.5, "batch": 50, "rate": 15.0, "momentum": 0.5}
QUICK_STEPS = 400


def sparse(inputs, outputs, count):
    """Weights of which each unit has `count` that are not 0."""
    chosen = torch.rand(inputs, outputs).argsort(0) < count
    return torch.randn(inputs, outputs) * chosen


class Machine(nn.Module):
    def __init__(self, layers, rounds, pixels):
        super().__init__()
        first, second = layers
        parameter = lambda values: nn.Parameter(values.to(pixels.device))
        self.rounds = rounds
        small = torch.empty(first, second).uniform_(-0.00638830865761, 0.00638830865761)
        weights = [sparse(PIXELS, first, 15), small, sparse(second, CLASSES, 23)]
        self.weights = nn.ParameterList([parameter(one) for one in weights])
        share = (pixels.float().mean(0) / 255).clamp(0.001, 0.999)
        self.of_pixels, self.of_classes = parameter(share.logit()), parameter(torch.zeros(CLASSES))
        self.of_hidden = nn.ParameterList([parameter(torch.full((n,), b)) for n, b in zip(layers, BIASES)])

    def forward(self, pixels, is_hidden, classes=None):
        """Log odds of the pixels and scores of the classes; `classes` has a row of 0 where the class is not known."""
        classes = pixels.new_zeros(len(pixels), CLASSES) if classes is None else classes
        (up, middle, top), (first_bias, second_bias) = self.weights, self.of_hidden
        seen = lambda scores: torch.where(is_hidden, scores.sigmoid(), pixels)
        is_free = classes.sum(1, keepdim=True) == 0
        known = lambda scores: torch.where(is_free, scores.softmax(1), classes)
        below = seen(self.of_pixels)
        first = (2 * below @ up + first_bias).sigmoid()  # nothing comes from above yet: the weights count twice
        second = (2 * first @ middle + second_bias).sigmoid()
        for _ in range(1, self.rounds):
            first = (below @ up + second @ middle.T + first_bias).sigmoid()
            label = known(second @ top + self.of_classes)
            odds = first @ up.T + self.of_pixels
            below = seen(odds)
            second = (first @ middle + label @ top.T + second_bias).sigmoid()
        return odds, second @ top + self.of_classes

    @torch.no_grad()
    def shorten(self):
        """No unit's weights are longer than allowed."""
        for weights, longest in zip(self.weights, LONGEST):
            norms = weights.norm(dim=0)
            weights.mul_(norms.clamp(max=longest) / norms.clamp_min(1e-7))


def trained(seed, options, args, images):
    """A machine and its seconds."""
    torch.manual_seed(seed)
    device, batch = images.pixels.device, options["batch"]
    machine = Machine(options["layers"], options["rounds"], images.pixels)
    parameters = list(machine.parameters())
    speeds = [torch.zeros_like(one) for one in parameters]
    batches = Batches(len(images.labels), batch, 1, device, [seed])
    rate, momentum, last = (torch.zeros((), device=device) for _ in range(3))

    def step():
        rows = batches.next()[0]
        pixels = torch.bernoulli(images.pixels[rows] / 255)
        labels = F.one_hot(images.labels[rows], CLASSES).float()
        is_hidden = torch.rand_like(pixels) < options["drop_inputs"]
        is_unlabelled = torch.rand(batch, 1, device=device) < options["drop_inputs"]
        odds, scores = machine(pixels, is_hidden, labels * ~is_unlabelled)
        of_pixels = F.binary_cross_entropy_with_logits(odds, pixels, reduction="none") * is_hidden
        of_labels = F.cross_entropy(scores, labels, reduction="none") * is_unlabelled[:, 0]
        loss = of_pixels.mean() + of_labels.mean() / PIXELS
        for one, speed, slope in zip(parameters, speeds, torch.autograd.grad(loss, parameters)):
            speed.mul_(momentum).sub_(rate * slope)
            one.data.add_(speed)
        machine.shorten()
        last.copy_(loss.detach())

    replayed = Replayed(step, device)

    def one_step():
        batches.before_step()
        replayed()

    clock = Clock(QUICK_STEPS if args.quick else options["epochs"] * batches.per_epoch, args.minutes)

    def set_rates(progress):
        rate.fill_(options["rate"] * (1 - progress * (1 - LEAST_RATE)))
        momentum.fill_(0.5 if batches.epoch < 2 else options["momentum"])

    run(one_step, clock, f"MP-DBM, seed {seed}", set_rates, lambda: f"loss {last.item():.4f}")
    return machine, clock.seconds


@torch.no_grad()
def test(experiment, machine, seed):
    accuracies = []
    for column in experiment.columns:
        pieces = zip(experiment.test.pixels.split(1000), experiment.masks(column, seed).split(1000))
        answers = [machine(pixels / 255, mask)[1].argmax(1) for pixels, mask in pieces]
        accuracies.append(experiment.accuracy(torch.cat(answers)).item())
    return accuracies


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    for experiment in results.experiments("mpdbm", args, data):
        options = QUICK if args.quick else experiment.options
        for seed in experiment.seeds:
            if experiment.has(seed):
                continue
            machine, seconds = trained(seed, options, args, data.train)
            start = time.perf_counter()
            accuracies = test(experiment, machine, seed)
            experiment.add(seed, accuracies, seconds, time.perf_counter() - start)
    if args.quick:
        assert accuracies[0] > 40 and accuracies[0] > accuracies[1] + 20, accuracies
        say("mpdbm", "ok")


if __name__ == "__main__":
    main()
