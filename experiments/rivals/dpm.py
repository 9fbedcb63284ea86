"""DPM (Sohl-Dickstein et al. 2015): the first diffusion model; noise is added in 1,000 steps, a net takes it away.

    β_t = 1 / linspace(T, 2, T);  x_t = x_{t-1} √(1 - β_t) + noise √β_t
    reverse step: mean x √(1 - β_t) + μ √β_t, variance σ(b / √T + logit β_t);  μ, b = coefficients · bumps(t)

The net of the authors' code sees no time: four 3×3 convolutions of 20 channels beside a dense net 784-500-500-500-1568,
then for each pixel 22-20-20, the coefficients of ten bumps in time for μ and for b. Settings are theirs: standardised
pixels, batches of 512, one t for a batch, RMSProp, at most 825 epochs (those of their samples). To complete an image,
seen pixels have their value at every step. The script that the paper used saved the result without undoing the
standardisation, which stretches the contrast: that is its quirk.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

import inpaint
import results
from mnist import PIXELS, SIDE
from steps import Batches, Clock, Replayed, compiled, run, say

STEPS, BUMPS, CHANNELS, HIDDEN = 1000, 10, 20, 500
BATCH, EPOCHS, RATE, DECAY = 512, 825, 1e-3, 0.9
SHIFT, SCALE = 0.4245 / 3.2415, 3.2415  # mean, and 1 / standard deviation, of pixels from 0 to 1
PUBLISHED = 220.0  # nats, Parzen
LEAK = 0.05


def betas():
    """The share of noise in each step, the first with .001 more."""
    beta = 1 / torch.linspace(STEPS, 2, STEPS, dtype=torch.float64)
    least = torch.zeros(STEPS, dtype=torch.float64)
    least[0] = 1e-3
    return 1e-6 + least + beta * (1 - 1e-6 - least)


def bumps():
    """(T, 10): Gaussian bumps in time, normalised over the bumps."""
    time, centres = torch.linspace(-1, 1, STEPS), torch.linspace(-1, 1, BUMPS)
    width = (centres[1] - centres[0]) / 2
    return torch.softmax(-((time[:, None] - centres) ** 2) / (2 * width**2), 1)


class Net(nn.Module):
    """Coefficients (B, 784, 2, 10) of images (B, 784)."""

    def __init__(self, hidden):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(1 if i == 0 else CHANNELS, CHANNELS, 3, padding=1) for i in range(4))
        sizes = [PIXELS, hidden, hidden, hidden, 2 * PIXELS]
        self.dense = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))
        self.pixel = nn.ModuleList([nn.Linear(CHANNELS + 2, 20), nn.Linear(20, 2 * BUMPS)])
        for layer in self.convs:
            nn.init.normal_(layer.weight, std=1 / (9 * CHANNELS**0.5))
        for layer in [*self.dense, *self.pixel]:
            nn.init.orthogonal_(layer.weight)
        for layer in [*self.convs, *self.dense, *self.pixel]:
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        maps, h = x.view(-1, 1, SIDE, SIDE), x
        for conv in self.convs:
            maps = F.leaky_relu(conv(maps), LEAK)
        for dense in self.dense:
            h = F.leaky_relu(dense(h), LEAK)
        both = [maps.flatten(2).mT / CHANNELS**0.5, h.view(-1, PIXELS, 2) / 2**0.5]
        joined = torch.cat(both, 2)  # (B, 784, 22)
        return self.pixel[1](F.leaky_relu(self.pixel[0](joined), LEAK)).unflatten(2, (2, BUMPS))


class Dpm:
    """The net and its noise."""

    def __init__(self, hidden, device):
        self.net = Net(hidden).to(device)
        beta = betas()
        self.beta, self.kept = beta.float().to(device), torch.cumprod(1 - beta, 0).float().to(device)
        self.logit, self.bumps = torch.logit(beta).float().to(device), bumps().to(device)
        self.on_gpu = torch.device(device).type == "cuda"

    def reverse(self, x, t):
        """Mean and variance of x_{t-1} given x_t (B, 784); t is a tensor of one number."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.on_gpu):
            coefficients = self.net(x)
        mu, b = (coefficients.float() @ self.bumps[t].squeeze(0)).unbind(-1)
        beta = self.beta[t]
        variance = torch.sigmoid(b / STEPS**0.5 + self.logit[t])
        return x * (1 - beta).sqrt() + mu * beta.sqrt(), variance

    def bound(self, x0, t):
        """T · KL of the step t, in bits per pixel."""
        beta, kept = self.beta[t], self.kept[t]
        before = kept / (1 - beta)
        x = x0 * kept.sqrt() + torch.randn_like(x0) * (1 - kept).sqrt()
        precision = 1 / (1 - before) + (1 - beta) / beta
        exact = (x0 * before.sqrt() / (1 - before) + x * (1 - beta).sqrt() / beta) / precision
        mean, variance = self.reverse(x, t)
        ratio = 1 / (precision * variance)
        kl = 0.5 * (ratio - 1 - ratio.log() + (exact - mean) ** 2 / variance)
        return STEPS * kl.mean() / math.log(2)


def standardised(pixels):
    return (pixels / 255 - SHIFT) * SCALE


def trained(args, images):
    """A model, its seconds, epochs and last bounds."""
    device, quick = images.pixels.device, args.quick
    dpm = Dpm(50 if quick else HIDDEN, device)
    batches = Batches(len(images.labels), 20 if quick else BATCH, 1, device, [1])
    weights = list(dpm.net.parameters())
    squares = [torch.zeros_like(weight) for weight in weights]
    rate, bound = torch.zeros((), device=device), torch.zeros((), device=device)

    fused = compiled(dpm.bound, device)

    def step():
        x0 = standardised(images.pixels[batches.next()[0]])
        x0 = x0 + (torch.rand_like(x0) - 0.5) * (SCALE / 255)
        loss = fused(x0, torch.randint(1, STEPS, (1,), device=device))
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            finite = torch.stack([gradient.sum() for gradient in gradients]).sum().isfinite()
            for weight, square, gradient in zip(weights, squares, gradients):
                gradient = torch.where(finite, gradient, 0)
                square.mul_(DECAY).addcmul_(gradient, gradient, value=1 - DECAY)
                weight.sub_(rate * gradient / square.sqrt().clamp(min=1e-5))
            bound.copy_(torch.where(finite, 0.99 * bound + 0.01 * loss, bound))

    replayed = Replayed(step, device)

    def one_step():
        batches.before_step()
        replayed()

    clock = Clock(60 if quick else EPOCHS * batches.per_epoch, args.minutes)
    set_rates = lambda _: rate.fill_(max(1e-4, RATE * 10 ** (-(clock.done // 500) / 1000)))
    run(one_step, clock, "DPM", set_rates, lambda: f"epoch {batches.epoch}, {bound.item():.3f} bits")
    return dpm, clock.seconds, batches.epoch, bound.item()


class Completion:
    """Completes images; one recorded step for all columns."""

    def __init__(self, dpm, n):
        device = dpm.beta.device
        self.x, self.seen = torch.zeros(n, PIXELS, device=device), torch.zeros(n, PIXELS, device=device)
        self.mask = torch.zeros(n, PIXELS, dtype=torch.bool, device=device)
        self.t, self.dpm = torch.zeros(1, dtype=torch.int64, device=device), dpm
        self.step = Replayed(self.one, device)

    @torch.no_grad()
    def one(self):
        mean, variance = self.dpm.reverse(self.x, self.t)
        self.x.copy_(torch.where(self.mask, mean + variance.sqrt() * torch.randn_like(mean), self.seen))
        self.t.sub_(1)

    def complete(self, pixels, mask, steps=STEPS):
        """Standardised images with all pixels."""
        self.mask.copy_(mask)
        self.seen.copy_(standardised(pixels))
        self.x.copy_(torch.where(mask, torch.randn_like(self.x), self.seen))
        self.t.fill_(steps - 1)
        for _ in range(steps - 1):
            self.step()
        return self.x.clone()


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    found = results.experiments("dpm", args, data)
    for seed in results.seeds_of(found):
        torch.manual_seed(seed)
        dpm, seconds, epochs, bits = trained(args, data.train)
        completion, steps = Completion(dpm, len(data.test.labels)), 10 if args.quick else STEPS

        def complete(pixels, mask):
            x = completion.complete(pixels, mask, steps)
            return {"": 255 * (x / SCALE + SHIFT), "contrast": 255 * x}

        whole = torch.ones_like(data.test.pixels, dtype=torch.bool)
        drawn = (completion.complete(data.test.pixels, whole, steps) / SCALE + SHIFT).clamp(0, 1)
        nats, sigma = inpaint.best_parzen(drawn, data.train.pixels[-1000:] / 255, data.test.pixels / 255)
        for experiment in found:
            check = {"parzen nats": round(nats, 1), "parzen width": sigma, "published parzen nats": PUBLISHED}
            experiment.note(epochs=epochs, bits=round(bits, 3), **check)
            inpaint.test(experiment, seed, complete, args, seconds)
    if args.quick:
        first, last = bound_of(Dpm(50, args.device), data), bound_of(dpm, data)
        assert last < 0.9 * first, (first, last)
        say("dpm", "ok", f"bound {first:.2f} before, {last:.2f} after training")


@torch.no_grad()
def bound_of(dpm, data):
    """The bound of test images at some steps."""
    x0 = standardised(data.test.pixels)
    return sum(dpm.bound(x0, torch.tensor([t], device=x0.device)).item() for t in range(50, STEPS, 100))


if __name__ == "__main__":
    main()
