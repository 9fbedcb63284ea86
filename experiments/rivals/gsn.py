"""GSN (Bengio et al. 2014): a chain of noisy updates of pixels and two hidden layers, trained to denoise.

    h1 = tanh(x W1 + h2 W2ᵀ + b1);  p(x) = σ(h1 W1ᵀ + b0);  h2 = tanh(h1 W2 + b2 + noise) + noise, noise ~ N(0, 2²)
    next x: a sample of p(x), then each pixel with probability .4 replaced by a fair 0 or 1

Settings are those of the authors' code: 784 – 1500 – 1500, four updates from a noisy image, loss the sum over them of
the mean cross-entropy, batches of 100, 1,000 epochs, rate .25 · .995 per epoch, momentum .5. Missing pixels start
uniform; 49 updates, seen pixels are put back after each; the last p(x) is the completion. The code that the paper used
stretches each completed image to its own darkest and lightest pixel: that is its quirk. Seeds are trained together.
"""

import torch
import torch.nn.functional as F

import inpaint
import results
from mnist import PIXELS
from steps import Batches, Clock, Replayed, compiled, round_up, run, say

HIDDEN, UPDATES, NOISE, REPLACED = 1500, 4, 2.0, 0.4
BATCH, EPOCHS, RATE, DECAY, MOMENTUM = 100, 1000, 0.25, 0.995, 0.5
INPAINT_UPDATES = 49
PUBLISHED = {"train": [0.607, 0.302, 0.292, 0.268, 0.267], "nats": 214.0}  # cost of the 4th update, epochs 1 to 5; Parzen


def salted(x):
    """Each pixel with probability .4 replaced by a fair 0 or 1: one uniform number decides both."""
    u = torch.rand(x.shape, device=x.device)
    return torch.where(u < REPLACED, (u < REPLACED / 2).to(x.dtype), x)


class Gsn:
    """Several nets. One matrix (nets, h1, pixels + h2) holds the transpose of W1 and W2: an update is two products with it."""

    def __init__(self, hidden, seeds, device):
        self.hidden, width = hidden, round_up(hidden)
        weights, biases = torch.zeros(len(seeds), width, PIXELS + width), (PIXELS + width, width)
        for seed, net in zip(seeds, weights):
            generator = torch.Generator().manual_seed(seed)
            start = lambda i, o: (2 * torch.rand(i, o, generator=generator) - 1) * (6 / (i + o)) ** 0.5
            net[:hidden, :PIXELS] = start(PIXELS, hidden).T
            net[:hidden, PIXELS : PIXELS + hidden] = start(hidden, hidden)
        self.weights = [weights.to(device), *(torch.zeros(len(seeds), 1, n, device=device) for n in biases)]

    def update(self, x, h2):
        """One update: logits of p(x), and the next h2. At the start there is no h2."""
        weights, outer, inner = self.weights
        h2 = x.new_zeros(*x.shape[:2], inner.shape[-1]) if h2 is None else h2
        h1 = torch.tanh(torch.baddbmm(inner, torch.cat([x, h2], -1), weights.mT))
        logits, into = torch.baddbmm(outer, h1, weights).split([PIXELS, h1.shape[-1]], -1)
        return logits, torch.tanh(into + NOISE * torch.randn_like(into)) + NOISE * torch.randn_like(into)

    def losses(self, images):
        """Mean cross-entropies (updates, nets) of images (nets, B, 784)."""
        x, h2, losses = salted(images), None, []
        for _ in range(UPDATES):
            logits, h2 = self.update(x, h2)
            losses.append(F.binary_cross_entropy_with_logits(logits, images, reduction="none").mean((1, 2)))
            x = salted(torch.bernoulli(torch.sigmoid(logits.detach())))
        return torch.stack(losses)

    def picked(self, number):
        one = Gsn.__new__(Gsn)
        one.weights = [weight[number : number + 1] for weight in self.weights]
        return one


def trained(seeds, args, images):
    """Nets, one for each seed; seconds, epochs, and the mean cost of the 4th update in the first epochs."""
    device = images.pixels.device
    gsn = Gsn(100 if args.quick else HIDDEN, seeds, device)
    batches = Batches(len(images.labels), BATCH, len(seeds), device, seeds)
    speeds = [torch.zeros_like(weight) for weight in gsn.weights]
    rate, cost = torch.zeros((), device=device), torch.zeros((), device=device)
    scaled = images.pixels.to(torch.float32) / 255
    fused = compiled(gsn.losses, device)
    for weight in gsn.weights:
        weight.requires_grad_()

    def step():
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            losses = fused(scaled[batches.next()])
        gradients = torch.autograd.grad(losses.sum(), gsn.weights)
        with torch.no_grad():
            torch._foreach_mul_(speeds, MOMENTUM)
            torch._foreach_add_(speeds, gradients, alpha=1 - MOMENTUM)
            torch._foreach_sub_(gsn.weights, torch._foreach_mul(speeds, rate))
            gsn.weights[0][..., PIXELS + gsn.hidden :] = 0  # these units stay without weights
            cost.add_(losses[-1].mean().detach())

    replayed, costs, epochs = Replayed(step, device), [], 7 if args.quick else EPOCHS

    def one_step():
        if batches.taken % batches.per_epoch == 0 and 0 < batches.epoch <= 5:
            costs.append(cost.item() / batches.per_epoch)
        if batches.taken % batches.per_epoch == 0:
            cost.zero_()
        batches.before_step()
        replayed()

    clock = Clock(epochs * batches.per_epoch, args.minutes)
    set_rates = lambda progress: rate.fill_(4.0 if args.quick else RATE * DECAY ** (EPOCHS * progress))
    average = lambda: cost.item() / max(1, batches.at.item())
    run(one_step, clock, f"GSN, {len(seeds)} nets", set_rates, lambda: f"epoch {batches.epoch}, cost {average():.4f}")
    for weight in gsn.weights:
        weight.requires_grad_(False)
    return gsn, clock.seconds, batches.epoch, costs


@torch.no_grad()
def complete(gsn, pixels, mask):
    """Completions as they are, and stretched to their own darkest and lightest pixel."""
    filled = []
    for seen, hidden in zip(pixels.split(2500), mask.split(2500)):
        seen, hidden, h2 = (seen / 255)[None], hidden[None], None
        x = torch.where(hidden, torch.rand_like(seen), seen)
        for _ in range(INPAINT_UPDATES):
            logits, h2 = gsn.update(x, h2)
            p = torch.where(hidden, torch.sigmoid(logits), seen)
            x = torch.where(hidden, salted(torch.bernoulli(p)), seen)
        filled.append(p[0])
    filled = torch.cat(filled)
    low, high = filled.amin(1, keepdim=True), filled.amax(1, keepdim=True)
    return {"": 255 * filled, "stretched": 255 * (filled - low) / (high - low).clamp(min=1e-6)}


@torch.no_grad()
def samples(gsn, images, count):
    """The chain: from training images 100 updates, then p(x) of every tenth."""
    x, h2, found = salted(images[None]), None, []
    for number in range(101 + 10 * (count // len(images))):
        logits, h2 = gsn.update(x, h2)
        p = torch.sigmoid(logits)
        x = salted(torch.bernoulli(p))
        if number > 100 and number % 10 == 0:
            found.append(p[0])
    return torch.cat(found)


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    found = results.experiments("gsn", args, data)
    seeds = results.seeds_of(found)
    torch.manual_seed(seeds[0])
    gsn, seconds, epochs, costs = trained(seeds, args, data.train)
    for number, seed in enumerate(seeds):
        one = gsn.picked(number)
        starts, held_out = (data.train.pixels[part] / 255 for part in (slice(0, 1000), slice(-1000, None)))
        starts = starts[:100] if args.quick else starts
        drawn = samples(one, starts, 10 * len(starts))
        nats, sigma = inpaint.best_parzen(drawn, held_out, data.test.pixels / 255)
        for experiment in found:
            if seed in experiment.seeds and not experiment.has(seed):
                inpaint.test(experiment, seed, lambda *images: complete(one, *images), args, seconds / len(seeds))
            check = {f"parzen nats, seed {seed}": round(nats, 1), "parzen width": sigma}
            experiment.note(epochs=epochs, costs=[round(x, 4) for x in costs], published=PUBLISHED, **check)
    if args.quick:
        assert costs[4] < costs[0] - 0.1 and costs[4] < 0.5, costs
        say("gsn", "ok")


if __name__ == "__main__":
    main()
