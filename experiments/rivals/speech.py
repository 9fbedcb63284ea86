"""A ConvNet for the phone at the centre of 256 ms of sound, trained on whole windows (paper, section on speech).

    raw:      16-sample convolution / 8, then five times: 5-sample convolution, normalised, ReLU, maximum of 2; classes
    log-mel:  three times: two 3×3 convolutions, each normalised, ReLU, maximum of 2×2; classes

A plan's options:

    front_end = "raw"         # or "log-mel": 32 frames of 32 bands, computed from the filled samples
    fill = ["mean", "omp"]    # mean: a missing sample is 0, the mean of sound; omp: audio inpainting. A row for each
    width = 320               # channels of the last layers; the first have fewer
    test = 400                # inpainting is slow: only so many windows are tested by "omp"; default: all
    recipe = { epochs = 30, batch = 64, rate = 0.002, decay = 0.01, shift = 200 }

Training windows are moved by up to `shift` samples. AdamW, the rate rises for a tenth of the steps and falls to 0.
"""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

import omp
import prepared
import results
from steps import Batches, Clock, descend, run, say

RATE, FRAME, HOP, BANDS = 16000, 256, 128, 32
QUICK = {"epochs": 6, "batch": 32, "rate": 0.01, "decay": 0.01, "shift": 20}


def mel_bands(lowest=80.0, highest=7600.0):
    """Triangles of equal width on the mel scale, as `experiments/src/inputs/log_mel.rs` has them: (bands, bins)."""
    mel = lambda hertz: 2595 * math.log10(1 + hertz / 700)
    corners = torch.linspace(mel(lowest), mel(highest), BANDS + 2, dtype=torch.float64)
    corners = 700 * (10 ** (corners / 2595) - 1)
    bins = torch.arange(FRAME // 2 + 1, dtype=torch.float64) * RATE / FRAME
    up = (bins - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    down = (corners[2:, None] - bins) / (corners[2:] - corners[1:-1])[:, None]
    bands, last = torch.minimum(up, down).clamp_min(0), 0
    for band in bands:  # the lowest are narrower than a bin: such a band is the bin next to its middle
        if band.any():
            last = int(band.nonzero()[0])
        else:
            band[last + 1] = 1.0
    return bands.float()


class LogMel(nn.Module):
    """Windows (B, 4096) as (B, 1, 32, 32)."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bands", mel_bands())
        self.register_buffer("taper", torch.hann_window(FRAME))

    def forward(self, windows):
        frames = F.pad(windows, ((FRAME - HOP) // 2,) * 2).unfold(1, FRAME, HOP) * self.taper
        power = torch.fft.rfft(frames).abs() ** 2 @ self.bands.T / self.taper.square().sum()
        return ((power.clamp_min(1e-9).log() + 12) / 4)[:, None]


def raw_net(width, classes):
    sizes = [max(8, width // part) for part in (8, 4, 2, 1, 1, 1)]
    layers = [nn.Conv1d(1, sizes[0], 16, 8, 4), nn.BatchNorm1d(sizes[0]), nn.ReLU()]
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Conv1d(inputs, outputs, 5, 1, 2), nn.BatchNorm1d(outputs), nn.ReLU(), nn.MaxPool1d(2)]
    return nn.Sequential(nn.Unflatten(1, (1, -1)), *layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(16 * width, classes))


def mel_net(width, classes):
    sizes, layers = [1, width // 4, width // 2, width], [LogMel()]
    for inputs, outputs in zip(sizes, sizes[1:]):
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(16 * width, classes))


def loud(windows):
    """Samples whose mean square is 1."""
    return windows / windows.square().mean(1, keepdim=True).sqrt().clamp_min(1e-5)


def moved(windows, most):
    """Every window moved by up to `most` samples; what comes in is 0."""
    count, samples = windows.shape
    first = torch.randint(0, 2 * most + 1, (count, 1), device=windows.device)
    place = first + torch.arange(samples, device=windows.device)
    return F.pad(windows, (most, most)).gather(1, place)


def rate_at(progress):
    return progress / 0.1 if progress < 0.1 else 0.5 + 0.5 * math.cos(math.pi * (progress - 0.1) / 0.9)


def trained(train, classes, seed, options, args):
    """A net, its seconds and the number of its weights."""
    torch.manual_seed(seed)
    device, recipe = train.pixels.device, QUICK if args.quick else options["recipe"]
    is_raw = options["front_end"] == "raw"
    net = (raw_net if is_raw else mel_net)(16 if args.quick else options["width"], classes).to(device)
    windows = train.pixels.nan_to_num(0.0)
    batches = Batches(len(train.labels), recipe["batch"], 1, device, [seed])
    optimizer = torch.optim.AdamW(net.parameters(), recipe["rate"], weight_decay=recipe["decay"])
    last = torch.zeros((), device=device)

    def step():
        batches.before_step()
        rows = batches.next()[0]
        batch = moved(windows[rows], recipe["shift"])
        loss = F.cross_entropy(net(loud(batch) if is_raw else batch), train.labels[rows])
        descend(optimizer, loss, last)

    def set_rates(progress):
        for group in optimizer.param_groups:
            group["lr"] = recipe["rate"] * rate_at(progress)

    clock = Clock(recipe["epochs"] * batches.per_epoch, args.minutes)
    run(step, clock, f"ConvNet, seed {seed}", set_rates, lambda: f"loss {last.item():.3f}")
    return net.eval(), clock.seconds, sum(weights.numel() for weights in net.parameters())


@torch.no_grad()
def classify(net, windows, is_raw):
    pieces = windows.split(500)
    return torch.cat([net(loud(piece) if is_raw else piece).argmax(1) for piece in pieces])


def filled(windows, mask, fill):
    """Windows without NaN. What lies beyond the ends of a sound is 0."""
    known = windows.nan_to_num(0.0)
    return omp.inpaint(known, mask) if fill == "omp" else known.masked_fill(mask, 0.0)


def tested_by(experiment, fill):
    """The windows that are tested: all of them, or some that lie evenly among them."""
    count = len(experiment.test.labels)
    most = min(count, experiment.options.get("test", count)) if fill == "omp" else count
    return torch.arange(most, device=experiment.test.labels.device) * count // most


def test(experiment, net, seed, fill):
    is_raw, rows = experiment.options["front_end"] == "raw", tested_by(experiment, fill)
    windows, labels = experiment.test.pixels[rows], experiment.test.labels[rows]
    accuracies = []
    for column in experiment.columns:
        mask, start = experiment.masks(column, seed)[rows], time.perf_counter()
        answers = classify(net, filled(windows, mask, fill), is_raw)
        accuracies.append(100 * (answers == labels).double().mean().item())
        say(f"{experiment.name}, {fill}, {column}", f"{accuracies[-1]:.2f} %", f"{time.perf_counter() - start:.0f} s")
    return accuracies


def made_sounds(device):
    """Tones of four heights with some noise."""
    count, samples = 400, 4096
    labels = torch.arange(count) % 4
    hertz = torch.tensor([300.0, 700.0, 1500.0, 3200.0])[labels, None] * (1 + 0.05 * torch.randn(count, 1))
    time_of = torch.arange(samples) / RATE
    rows = 0.1 * torch.sin(2 * math.pi * (hertz * time_of + torch.rand(count, 1)))
    return prepared.made("timit", rows + 0.01 * torch.randn(count, samples), labels, (1, samples, 1), 4, device)


def check(experiment, data):
    """The net has learned, and inpainting finds more than half of what is missing of a tone with noise."""
    for one in experiment.record["runs"]:
        assert one["accuracies"][0] > 80, one
    windows = data.rows[:2]
    mask = torch.rand_like(windows) < 0.5
    error = (omp.inpaint(windows, mask) - windows)[mask].square().mean() / windows[mask].square().mean()
    assert error < 0.25, error
    say("speech", f"ok, error {error:.3f}")


def main():
    args = results.arguments(__doc__)
    args.seeds = args.seeds if not args.quick else [4]
    data = made_sounds(args.device) if args.quick else prepared.read(args.data, args.device)
    found = results.experiments("speech", args, data.for_seed(1), data.set)
    for experiment in found[:1] if args.quick else found:
        if args.quick:
            experiment.columns, experiment.options["test"] = ["clean", "iid:0.5"], 4
        for seed in experiment.seeds:
            fills = [fill for fill in experiment.options["fill"] if not experiment.has(seed, fill)]
            if not fills:
                continue
            experiment.use(data.for_seed(seed))
            net, seconds, weights = trained(experiment.data.train, len(data.classes), seed, experiment.options, args)
            experiment.note(weights=weights)
            for fill in fills:
                start = time.perf_counter()
                accuracies = test(experiment, net, seed, fill)
                tested = len(tested_by(experiment, fill))
                experiment.add(seed, accuracies, seconds, time.perf_counter() - start, fill, tested)
    if args.quick:
        check(found[0], data)


if __name__ == "__main__":
    main()
