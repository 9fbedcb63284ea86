"""Sum-product networks of cirkit: P(X|Y) for ten classes, missing pixels are summed out exactly.

The paper's rival is the architecture of Poon and Domingos with a class variable, trained for the joint P(X, Y). Here it
is cirkit's `poon-domingos` (rectangles of 4×4 blocks, 20 sums each), and a quad tree of about the size of our
`mnist-ht`. Both are trained for P(X, Y), and as our models are: cross-entropy + β · (−log P(X)), each pixel summed out
with a probability. Leaves are categorical over 256 values, as in cirkit's tutorials; Adam, the rate falls as a cosine.

    graph = "poon-domingos"   # or "quad-tree-4"
    units = 20                # of each sum and leaf
    discriminative = true     # then also generative (β) and drop_inputs
"""

import math
import time

import torch
import torch.nn.functional as F
from cirkit.backend.torch import semiring
from cirkit.backend.torch.layers import TorchInputLayer
from cirkit.backend.torch.queries import IntegrateQuery
from cirkit.pipeline import PipelineContext
from cirkit.templates import data_modalities, utils

import inpaint
import results
from mnist import CLASSES, SIDE
from steps import Batches, Clock, run, say

semiring.LOG_CLAMP_MIN = -math.inf  # cirkit 0.3.1 cuts log-likelihoods at −708; those of images start below
PUBLISHED = 89.0  # cirkit's tutorial, quad graph of 64 units, trained for P(X, Y): nothing missing


def circuit_of(graph, units, device):
    """Log-likelihoods of ten classes."""
    symbolic = data_modalities.image_data(
        (1, SIDE, SIDE),
        region_graph=graph,
        input_layer="categorical",
        num_input_units=units,
        sum_product_layer="cp",
        num_sum_units=units,
        num_classes=CLASSES,
        input_params={"probs": utils.Parameterization(activation="softmax", initialization="normal")},
        sum_weight_param=utils.Parameterization(activation="softmax", initialization="normal"),
    )
    return PipelineContext(backend="torch", semiring="lse-sum", fold=True, optimize=True).compile(symbolic).to(device)


def scores(circuit, pixels, mask):
    """log P(seen pixels | class), (B, 10)."""
    return IntegrateQuery(circuit)(pixels.long(), integrate_vars=mask).squeeze(1)


def loss_of(circuit, options, pixels, labels):
    """Mean loss of a batch."""
    if not options["discriminative"]:
        log_joint = circuit(pixels.long()).squeeze(1)
        return -log_joint.gather(1, labels[:, None]).mean() + math.log(CLASSES)
    mask = torch.rand(pixels.shape, device=pixels.device) < options["drop_inputs"]
    log_classes = scores(circuit, pixels, mask)
    log_p = log_classes.logsumexp(1) - math.log(CLASSES)
    return F.cross_entropy(log_classes, labels) - options["generative"] * log_p.mean()


def trained(seed, options, args, images):
    """A circuit, its seconds, and the last loss."""
    torch.manual_seed(seed)
    device = images.pixels.device
    circuit = circuit_of(options["graph"], 4 if args.quick else options["units"], device)
    batches = Batches(len(images.labels), 64 if args.quick else options["batch"], 1, device, [seed])
    optimizer = torch.optim.Adam(circuit.parameters(), lr=options["rate"], fused=device.type == "cuda")
    losses = []

    def step():
        batches.before_step()
        rows = batches.next()[0]
        loss = loss_of(circuit, options, images.pixels[rows], images.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    def set_rates(progress):
        for group in optimizer.param_groups:
            group["lr"] = options["rate"] * (10 if args.quick else 1) * (0.5 + 0.5 * math.cos(math.pi * progress))

    clock = Clock(10 if args.quick else options["epochs"] * batches.per_epoch, args.minutes)
    run(step, clock, f"{options['graph']}, seed {seed}", set_rates, lambda: f"loss {losses[-1].item():.3f}")
    return circuit, clock, losses[0].item(), losses[-1].item()


@torch.no_grad()
def test(experiment, circuit, seed, args):
    accuracies = []
    for column in experiment.columns:
        mask = experiment.masks(column, seed)
        pieces = zip(experiment.test.pixels.split(500), mask.split(500))
        answers = torch.cat([scores(circuit, pixels, hidden).argmax(1) for pixels, hidden in pieces])
        accuracies.append(experiment.accuracy(answers).item())
        if column in inpaint.SHOWN:
            few = slice(inpaint.PICTURES)
            images = completed(circuit, experiment.test.pixels[few], mask[few])
            inpaint.keep_pictures(experiment, seed, column, images, mask, args)
    return accuracies


@torch.enable_grad()
def completed(circuit, pixels, mask):
    """Missing pixels are their mean given those that are seen, exactly.

    The derivative of log P(seen pixels) by a leaf's log-likelihood is the probability of that leaf.
    """
    leaves = []

    def evaluated(layer, inputs):
        output = IntegrateQuery._layer_fn(layer, inputs, integrate_vars_mask=mask)
        if isinstance(layer, TorchInputLayer):
            output = output.detach().requires_grad_()
            leaves.append((layer, output))
        return output

    log_p = circuit.evaluate(pixels.long(), module_fn=evaluated).logsumexp(-1).sum()
    weights = torch.autograd.grad(log_p, [output for _, output in leaves])
    mean = torch.zeros(pixels.shape, device=pixels.device)
    for (layer, _), weight in zip(leaves, weights):
        own_mean = layer.probs() @ torch.arange(256.0, device=pixels.device)  # (leaves, units)
        mean.index_add_(1, layer.scope_idx[:, 0], torch.einsum("fbu,fu->bf", weight, own_mean.detach()))
    return torch.where(mask, mean, pixels.float())


@torch.no_grad()
def bits(circuit, images):
    """Bits per pixel of whole images."""
    pieces = [circuit(pixels.long()).squeeze(1).logsumexp(1) for pixels in images.pixels.split(500)]
    nats = torch.cat(pieces).mean().item() - math.log(CLASSES)
    return -nats / math.log(2) / images.pixels.shape[1]


def main():
    args = results.arguments(__doc__)
    data = results.data_of(args)
    found = results.experiments("spn", args, data)
    if args.quick:
        found = [one for one in found if one.name in ("spn-pd-disc", "spn-quad")]
    for name in sorted({one.name.removeprefix("unseen-") for one in found}):
        same = [one for one in found if one.name.removeprefix("unseen-") == name]
        for seed in results.seeds_of(same):
            left = [one for one in same if not one.has(seed)]
            if left:
                one_circuit(left, seed, args, data)
    if args.quick:
        say("spn", "ok")


def one_circuit(left, seed, args, data):
    """Trains a circuit and tests it on all columns."""
    circuit, clock, first, last = trained(seed, left[0].options, args, data.train)
    sizes = {"parameters": sum(weight.numel() for weight in circuit.parameters())}
    speed = {"images per second": round(clock.done * left[0].options["batch"] / clock.seconds)}
    for experiment in left:
        start = time.perf_counter()
        accuracies = test(experiment, circuit, seed, args)
        experiment.add(seed, accuracies, clock.seconds, time.perf_counter() - start)
        check = {f"bits per pixel, seed {seed}": round(bits(circuit, experiment.test), 4), "published clean": PUBLISHED}
        experiment.note(steps=clock.done, **sizes, **speed, **check)
    if args.quick:
        assert last < 0.95 * first, (first, last)


if __name__ == "__main__":
    main()
