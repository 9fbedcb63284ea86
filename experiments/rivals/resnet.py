"""A small ResNet of today with a second channel that marks missing pixels, trained on any share of pixels and squares.

    3×3 convolution to 64; three stages of two blocks, 64, 128, 256, then a stage of one block, 512; mean; 10 classes

A block has two 3×3 convolutions, each with batch normalisation; a stage after the first halves the image: 15
convolutions of 3×3. Half of the training images lose pixels with a probability drawn from 0 to 1 for each image, the
others one to three squares of a width from 7 to 15. Images are moved by up to `shift` pixels each way. AdamW, the rate
rises for a tenth of the steps and falls to 0 as a cosine. One pass per test image.
"""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

import results
from holes import TrainHoles
from mnist import CLASSES, SIDE
from steps import Batches, Clock, Replayed, descend, run, say

STAGES = [(64, 2), (128, 2), (256, 2), (512, 1)]  # channels and blocks
QUICK_STAGES = [(16, 1), (32, 1), (64, 1)]
QUICK_STEPS = 120


def normalised(inputs, outputs, stride):
    """A convolution and its normalisation."""
    conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = normalised(inputs, outputs, stride), normalised(outputs, outputs, 1)
        self.beside = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return (self.second(self.first(x).relu()) + self.beside(x)).relu()


def net_of(stages):
    layers, inputs = [normalised(2, stages[0][0], 1), nn.ReLU()], stages[0][0]
    for number, (channels, blocks) in enumerate(stages):
        for block in range(blocks):
            layers.append(Block(inputs, channels, 2 if number and not block else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def seen(pixels, mask):
    """Pixels (B, 784) from 0 to 255 and what is missing, as two channels."""
    image = pixels.float().masked_fill(mask, 0) / 255
    return torch.stack([image, mask.float()], 1).unflatten(-1, (SIDE, SIDE))


def moved(pixels, most):
    """Every image moved by up to `most` pixels each way; what comes in is black."""
    batch, device = len(pixels), pixels.device
    wide = F.pad(pixels.view(batch, SIDE, SIDE), (most,) * 4)
    place = torch.arange(SIDE, device=device)
    down, right = (torch.randint(0, 2 * most + 1, (batch, 1), device=device) + place for _ in range(2))
    image = torch.arange(batch, device=device)[:, None, None]
    return wide[image, down[:, :, None], right[:, None, :]].flatten(1)


def rate_at(progress):
    return progress / 0.1 if progress < 0.1 else 0.5 + 0.5 * math.cos(math.pi * (progress - 0.1) / 0.9)


def trained(seed, options, args, images):
    """A net and its seconds."""
    torch.manual_seed(seed)
    device, batch = images.pixels.device, 64 if args.quick else options["batch"]
    net = net_of(QUICK_STAGES if args.quick else STAGES).to(device, memory_format=torch.channels_last)
    holes = TrainHoles(["any"], device)
    batches = Batches(len(images.labels), batch, 1, device, [seed])
    rate = torch.zeros((), device=device)
    on_gpu, decay = device.type == "cuda", options["decay"]
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay, capturable=on_gpu)
    last = torch.zeros((), device=device)

    def step():
        rows = batches.next()[0]
        pixels, mask = moved(images.pixels[rows], options["shift"]), holes.draw(batch)[0]
        with torch.autocast(device.type, torch.bfloat16):
            scores = net(seen(pixels, mask).contiguous(memory_format=torch.channels_last))
        loss = F.cross_entropy(scores.float(), images.labels[rows])
        descend(optimizer, loss, last)

    replayed = Replayed(step, device)

    def one_step():
        batches.before_step()
        replayed()

    clock = Clock(QUICK_STEPS if args.quick else options["epochs"] * batches.per_epoch, args.minutes)
    highest = 0.005 if args.quick else options["rate"]
    set_rates = lambda progress: rate.fill_(highest * rate_at(progress))
    run(one_step, clock, f"ResNet, seed {seed}", set_rates, lambda: f"loss {last.item():.3f}")
    return net.eval(), clock.seconds


@torch.no_grad()
def test(experiment, net, seed):
    accuracies = []
    for column in experiment.columns:
        mask, answers = experiment.masks(column, seed), []
        for pixels, hidden in zip(experiment.test.pixels.split(1000), mask.split(1000)):
            with torch.autocast(mask.device.type, torch.bfloat16):
                scores = net(seen(pixels, hidden).contiguous(memory_format=torch.channels_last))
            answers.append(scores.argmax(1))
        accuracies.append(experiment.accuracy(torch.cat(answers)).item())
    return accuracies


def one_net(left, seed, args, data):
    """Trains a net and tests it on all columns."""
    net, seconds = trained(seed, left[0].options, args, data.train)
    for experiment in left:
        start = time.perf_counter()
        accuracies = test(experiment, net, seed)
        experiment.add(seed, accuracies, seconds, time.perf_counter() - start)


def main():
    args = results.arguments(__doc__)
    for data, found in results.by_set("resnet", args):
        for seed in results.seeds_of(found):
            left = [one for one in found if seed in one.seeds and not one.has(seed)]
            if left:
                one_net(left, seed, args, data)
    if args.quick:
        clean, most = (found[0].record["runs"][0]["accuracies"][column] for column in (0, 1))
        assert clean > 40 and clean > most + 20, (clean, most)
        say("resnet", "ok")


if __name__ == "__main__":
    main()
