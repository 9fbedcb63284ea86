"""The paper's ConvNets for small NORB, three of them together (appendix on ConvNets), on images of 32×32.

    5×5 convolution to 128, 3×3 maximum / 2, ReLU, 5×5 convolution to 128, ReLU, dropout, 3×3 mean / 2,
    5×5 convolution to 256, ReLU, dropout, 3×3 mean / 2, 768 ReLU, dropout, classes

A plan's options:

    fill = ["zero", "mean"]   # what the nets see in place of missing pixels: a row for each
    nets = 3
    width = 1.0               # channels, as a share of the paper's
    recipe = { steps = 40000, batch = 64, rate = 0.001, momentum = 0.99, decay = 1e-4, rotate = 10.0, stretch = 0.1 }

Images are turned and stretched at random in training. The rate is constant for three quarters of the steps, falls to a
tenth until 90 % of them, and to 0 at the end. A net's votes are its probabilities.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

import prepared
import results
from steps import Batches, Clock, descend, run, say

SCALE = 256.0  # pixels are divided by it
QUICK = {"steps": 60, "batch": 32, "rate": 0.01, "momentum": 0.9, "decay": 1e-4, "rotate": 5.0, "stretch": 0.05}


def net_of(cameras, classes, width):
    """The net; `width` scales its channels."""
    first, last, hidden = (max(4, int(width * channels)) for channels in (128, 256, 768))
    pool = lambda kind: kind(3, 2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(cameras, first, 5, padding=2), pool(nn.MaxPool2d), nn.ReLU(),
        nn.Conv2d(first, first, 5, padding=2), nn.ReLU(), nn.Dropout(0.5), pool(nn.AvgPool2d),
        nn.Conv2d(first, last, 5, padding=2), nn.ReLU(), nn.Dropout(0.5), pool(nn.AvgPool2d),
        nn.Flatten(), nn.Linear(last * 16, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, classes),
    )  # fmt: skip


def start(net):
    """Caffe's "xavier" for convolutions, small normal numbers for the rest."""
    for layer in net:
        if isinstance(layer, nn.Conv2d):
            limit = (3 / layer.weight[0].numel()) ** 0.5
            nn.init.uniform_(layer.weight, -limit, limit)
            nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.1 if layer is net[-1] else 0.05)
            nn.init.zeros_(layer.bias)


def images(rows, shape):
    """Rows (n, numbers) from 0 to 255 as (n, cameras, height, width) from 0 to 1."""
    return (rows / SCALE).unflatten(1, shape).permute(0, 3, 1, 2).contiguous()


def turned(batch, degrees, stretch):
    """Every image turned and stretched at random. What comes from beyond its edge is the mean of its first row."""
    count, device = len(batch), batch.device
    angle = torch.deg2rad(degrees * (2 * torch.rand(count, device=device) - 1))
    size = 1 + stretch * (2 * torch.rand(count, device=device) - 1)
    cos, sin, zero = angle.cos() / size, angle.sin() / size, torch.zeros(count, device=device)
    matrix = torch.stack([cos, -sin, zero, sin, cos, zero], 1).view(count, 2, 3)
    grid = F.affine_grid(matrix, batch.shape, align_corners=False)
    background = batch[:, :, :1].mean(-1, keepdim=True)
    return F.grid_sample(batch - background, grid, align_corners=False) + background


def rate_at(progress):
    if progress < 0.75:
        return 1.0
    return 1.0 - 0.9 * (progress - 0.75) / 0.15 if progress < 0.9 else 0.1 * (1 - progress) / 0.1


def trained(train, shape, classes, seed, options, args):
    """A net and its seconds."""
    torch.manual_seed(seed)
    device, recipe = train.pixels.device, QUICK if args.quick else options["recipe"]
    net = net_of(shape[2], classes, 0.1 if args.quick else options["width"])
    start(net)
    net.to(device)
    seen = images(train.pixels, shape)
    batches = Batches(len(train.labels), recipe["batch"], 1, device, [seed])
    optimizer = torch.optim.SGD(
        net.parameters(), recipe["rate"], recipe["momentum"], weight_decay=recipe["decay"], nesterov=True
    )
    last = torch.zeros((), device=device)

    def step():
        batches.before_step()
        rows = batches.next()[0]
        batch = turned(seen[rows], recipe["rotate"], recipe["stretch"])
        loss = F.cross_entropy(net(batch), train.labels[rows])
        descend(optimizer, loss, last)

    def set_rates(progress):
        for group in optimizer.param_groups:
            group["lr"] = recipe["rate"] * rate_at(progress)

    clock = Clock(recipe["steps"], args.minutes)
    run(step, clock, f"ConvNet, seed {seed}", set_rates, lambda: f"loss {last.item():.3f}")
    return net.eval(), clock.seconds


@torch.no_grad()
def vote(nets, seen):
    """The class with the largest sum of probabilities."""
    pieces = seen.split(500)
    return torch.cat([sum(net(piece).softmax(1) for net in nets).argmax(1) for piece in pieces])


def test(experiment, nets, seed, fill):
    shape, mean = experiment.data.shape, experiment.data.train.pixels.mean(0)
    accuracies = []
    for column in experiment.columns:
        mask, rows = experiment.masks(column, seed), experiment.test.pixels
        instead = mean if fill == "mean" else torch.zeros_like(mean)
        seen = images(torch.where(mask, instead, rows), shape)
        accuracies.append(experiment.accuracy(vote(nets, seen)).item())
    return accuracies


def made_images(device):
    """A bright square in one of four corners, seen by two cameras."""
    count, side = 400, 32
    labels = torch.arange(count) % 4
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    corners = torch.stack([(y < 16) & (x < 16), (y < 16) & (x >= 16), (y >= 16) & (x < 16), (y >= 16) & (x >= 16)])
    rows = 120.0 * corners[labels, :, :, None] + 100 * torch.rand(count, side, side, 2)
    return prepared.made("norb", rows.flatten(1), labels, (side, side, 2), 4, device)


def main():
    args = results.arguments(__doc__)
    args.seeds = args.seeds if not args.quick else [4]
    data = made_images(args.device) if args.quick else prepared.read(args.data, args.device)
    found = results.experiments("norb", args, data.for_seed(1), data.set)
    for experiment in found[:1] if args.quick else found:
        for seed in experiment.seeds:
            fills = [fill for fill in experiment.options["fill"] if not experiment.has(seed, fill)]
            if not fills:
                continue
            experiment.use(data.for_seed(seed))
            count = 1 if args.quick else experiment.options["nets"]
            members = [
                trained(experiment.data.train, data.shape, len(data.classes), 1000 * member + seed, experiment.options, args)
                for member in range(count)
            ]
            nets, seconds = [net for net, _ in members], sum(seconds for _, seconds in members)
            for fill in fills:
                start_time = time.perf_counter()
                accuracies = test(experiment, nets, seed, fill)
                experiment.add(seed, accuracies, seconds, time.perf_counter() - start_time, fill)
    if args.quick:
        clean, most = found[0].record["runs"][0]["accuracies"][:2]
        assert clean > 70 and clean > most + 20, (clean, most)
        say("norb", "ok")


if __name__ == "__main__":
    main()
