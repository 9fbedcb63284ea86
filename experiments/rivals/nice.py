"""NICE (Dinh, Krueger, Bengio 2014): a flow of additive couplings, p(x) exactly; missing pixels by gradient ascent.

    even pixels, then odd ones; 4 times: second half += m(first half), then all reversed; last z = x · exp(D)
    m: 5 layers of 1000 ReLU;  log p(x) = Σ log logistic(z) + Σ D

Settings are those of the authors' code for MNIST: pixels (255 x + u) / 256 with u uniform, 50,000 images, batches of
200, RMSProp, at most 1,500 epochs, the weights with the best likelihood of 10,000 held-out images. Missing pixels start
uniform; then 8,555 times x += a (∂L/∂x / 100 + noise), a = 10 / (100 + i), clipped to [0, 1]. The hundredth is that of
the code, whose L is a mean over 100 images: without it the steps are too long by far. The code that the paper used does
not clip before the end: that is its quirk.
"""

import torch
import torch.nn.functional as F

import inpaint
import results
from mnist import PIXELS
from steps import Batches, Clock, Replayed, compiled, run, say

HALF, HIDDEN, LAYERS, COUPLINGS = PIXELS // 2, 1000, 5, 4
BATCH, EPOCHS, HELD_OUT = 200, 1500, 10_000
PATIENCE = 100  # epochs without a better likelihood of held-out images, then training ends
ITERATIONS = sum(k * k for k in range(30))
PUBLISHED = 1980.50  # nats on the test images
QUIRK_IMAGES = 1000


class Nice:
    """Its weights are parts of one long vector."""

    def __init__(self, hidden, device):
        sizes = [HALF] + [hidden] * LAYERS + [HALF]
        self.shapes = [shape for _ in range(COUPLINGS) for i, o in zip(sizes, sizes[1:]) for shape in [(o, i), (o,)]]
        self.shapes.append((PIXELS,))  # D
        self.flat = torch.cat([self.start(shape).flatten() for shape in self.shapes]).to(device)
        self.weights = self.parts(self.flat)
        self.reorder = torch.cat([torch.arange(0, PIXELS, 2), torch.arange(1, PIXELS, 2)]).to(device)

    @staticmethod
    def start(shape):
        return (2 * torch.rand(shape) - 1) * 0.01 if len(shape) == 2 else torch.zeros(shape)

    def parts(self, flat):
        """Views of the vector, one for each weight."""
        pieces = flat.split([torch.Size(shape).numel() for shape in self.shapes])
        return [piece.view(shape) for piece, shape in zip(pieces, self.shapes)]

    def log_likelihood(self, x, weights):
        """(B) of x (B, 784), in nats. The last weight is D in f32, the others may be bf16."""
        kind, layers = weights[0].dtype, 2 * (LAYERS + 1)
        x = x[:, self.reorder]
        for coupling in range(COUPLINGS):
            first, second = x[:, :HALF], x[:, HALF:]
            h = first.to(kind)
            own = weights[coupling * layers : (coupling + 1) * layers]
            for layer in range(LAYERS):
                h = F.linear(h, own[2 * layer], own[2 * layer + 1]).relu()
            h = F.linear(h, own[-2], own[-1]).float()
            x = torch.cat([first, second + h], 1).flip(1)
        z, scale = x * weights[-1].exp(), weights[-1].sum()
        return (-F.softplus(z) - F.softplus(-z)).sum(1) + scale


def dequantised(pixels):
    """Bytes to [0, 1]."""
    return (pixels + torch.rand(pixels.shape, device=pixels.device)) / 256


def update(flat, square, speed, gradient, rate, momentum):
    """RMSProp as Pylearn2 has it."""
    square.copy_(0.95 * square + 0.05 * gradient * gradient)
    speed.copy_(momentum * speed - rate * gradient / square.sqrt().clamp(min=0.01))
    flat.add_(speed)


def trained(args, data):
    """A flow, its seconds and its epochs."""
    device, quick = data.train.pixels.device, args.quick
    held_out = 200 if quick else HELD_OUT
    kept, valid = data.train.pixels[:-held_out], data.train.pixels[-held_out:]
    nice = Nice(100 if quick else HIDDEN, device)
    batches = Batches(len(kept), BATCH, 1, device, [1])
    square, speed = torch.zeros_like(nice.flat), torch.zeros_like(nice.flat)
    rate, momentum, last = (torch.zeros((), device=device) for _ in range(3))
    fused = compiled(update, device)

    def step():
        weights = [weight.requires_grad_() for weight in nice.parts(nice.flat.detach())]
        loss = -nice.log_likelihood(dequantised(kept[batches.next()[0]]), weights).mean()
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])
        with torch.no_grad():
            fused(nice.flat, square, speed, gradient, rate, momentum)
            last.copy_(-loss)

    replayed, best = Replayed(step, device), Best(nice, valid)

    def one_step():
        batches.before_step()
        replayed()

    def set_rates(_):
        rate.fill_(max(1e-4, 1e-3 / 1.0005**clock.done))
        momentum.fill_(0.5 * min(1, max(0, batches.epoch - 5)))
        best.look(clock.done)
        if clock.done >= best.at + PATIENCE * batches.per_epoch:
            clock.steps = clock.done  # the end

    clock = Clock(100 if quick else EPOCHS * batches.per_epoch, args.minutes)
    run(one_step, clock, "NICE", set_rates, lambda: f"{last.item():.1f} nats, held out {best.value:.1f}")
    best.look(clock.done, now=True)
    nice.flat.copy_(best.flat)
    return nice, clock.seconds, batches.epoch


class Best:
    """The weights with the best likelihood of held-out images."""

    def __init__(self, nice, valid):
        self.nice, self.valid = nice, valid
        self.value, self.flat, self.looked, self.at = -float("inf"), nice.flat.clone(), 0, 0

    def look(self, done, now=False):
        if now or done >= self.looked + 500:
            self.looked, value = done, mean_likelihood(self.nice, self.valid)
            if value > self.value:
                self.value, self.at = value, done
                self.flat.copy_(self.nice.flat)


@torch.no_grad()
def mean_likelihood(nice, pixels):
    pieces = [nice.log_likelihood(dequantised(piece), nice.weights) for piece in pixels.split(5000)]
    return torch.cat(pieces).mean().item()


class Ascent:
    """Gradient ascent in the missing pixels of n images; one recorded step for all columns."""

    def __init__(self, nice, n, clipped):
        device = nice.flat.device
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.weights = [weight.to(kind) for weight in nice.weights[:-1]] + [nice.weights[-1]]
        self.nice, self.clipped = nice, clipped
        self.x = torch.zeros(n, PIXELS, device=device)
        self.mask = torch.zeros(n, PIXELS, dtype=torch.bool, device=device)
        self.rate = torch.zeros((), device=device)
        self.step = Replayed(self.one, device)

    def one(self):
        x = ((255 * self.x + torch.rand_like(self.x)) / 256).requires_grad_()
        likelihood = self.nice.log_likelihood(x, self.weights).sum()
        gradient = torch.autograd.grad(likelihood, x)[0] * (255 / 256)
        moved = self.x + self.rate * (gradient / 100 + torch.randn_like(self.x))
        moved = moved.clamp(0, 1) if self.clipped else moved
        self.x.copy_(torch.where(self.mask, moved, self.x))

    def complete(self, pixels, mask, iterations):
        self.mask.copy_(mask)
        self.x.copy_(torch.where(mask, torch.rand_like(self.x), pixels / 255))
        for i in range(iterations):
            self.rate.fill_(10 / (100 + i))
            self.step()
        return 255 * self.x.clamp(0, 1)


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    found = results.experiments("nice", args, data)
    for seed in results.seeds_of(found):
        torch.manual_seed(seed)
        nice, seconds, epochs = trained(args, data)
        likelihood = mean_likelihood(nice, data.test.pixels)
        ascent = {}

        def ascended(pixels, mask, clipped):
            key = len(pixels), clipped
            if key not in ascent:
                ascent[key] = Ascent(nice, *key)
            return ascent[key].complete(pixels, mask, 20 if args.quick else ITERATIONS)

        for experiment in found:
            experiment.note(epochs=epochs, nats=round(likelihood, 2), published_nats=PUBLISHED)
            inpaint.test(experiment, seed, lambda pixels, mask: {"": ascended(pixels, mask, True)}, args, seconds)
        quirk(found[0], seed, ascended, args)
    if args.quick:
        assert likelihood > -1000, likelihood  # it starts at 784 log(1/4) = -1,087
        say("nice", "ok")


def quirk(experiment, seed, ascended, args):
    """The first images once more, clipped at each step and only at the end."""
    nets, _ = inpaint.lenet.plain([seed], args, experiment.data)
    few, accuracies = experiment.test.first(QUIRK_IMAGES), {}
    for column in ("iid:0.75", "rect:2x11"):
        mask, row = experiment.masks(column, seed)[: len(few.labels)], []
        for clipped in (True, False):
            pixels = ascended(few.pixels, mask, clipped)
            answers = nets.classify(inpaint.lenet.images_of_bytes(torch.where(mask, pixels.round(), few.pixels)))
            row.append(100 * (answers[0] == few.labels).double().mean().item())
        accuracies[column] = row
    experiment.note(clipped_and_not=accuracies)


if __name__ == "__main__":
    main()
