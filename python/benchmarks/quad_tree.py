"""A quad tree of cirkit as a density of images, on an NVIDIA GPU: beside `sumout train mnist-density`.

    pip install libcirkit torch numpy
    python python/benchmarks/quad_tree.py --data FOLDER --units 64 --seconds 60

FOLDER has MNIST's or Fashion-MNIST's four files, as they are published (`.gz` or unpacked). Leaves are categorical over
256 values; Adam on batches of 256, the rate falls from 0.01 as a cosine over the given seconds. Prints how long building
took, images per second, and bits per dimension of the 10,000 test images.
"""

import argparse
import gzip
import math
import time
from pathlib import Path

import numpy as np
import torch
from cirkit.backend.torch import semiring
from cirkit.pipeline import PipelineContext
from cirkit.templates import data_modalities, utils

BATCH = 256
SIDE = 28
RATE = 0.01

semiring.LOG_CLAMP_MIN = (
    -math.inf
)  # cirkit 0.3.1 cuts log-likelihoods at −708; those of images start below


def images(folder, name, device):
    """All images of an IDX file, a row each."""
    path = next(path for path in (folder / name, folder / f"{name}.gz") if path.exists())
    data = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    return torch.tensor(np.frombuffer(data, np.uint8, offset=16).reshape(-1, SIDE * SIDE)).to(
        device
    )


def quad_tree(units, device):
    """log P(X) of an image."""
    softmax = utils.Parameterization(activation="softmax", initialization="normal")
    symbolic = data_modalities.image_data(
        (1, SIDE, SIDE), region_graph="quad-tree-4", input_layer="categorical", num_input_units=units,
        sum_product_layer="cp", num_sum_units=units, num_classes=1, input_params={"probs": softmax},
        sum_weight_param=softmax,
    )  # fmt: skip
    return (
        PipelineContext(backend="torch", semiring="lse-sum", fold=True, optimize=True)
        .compile(symbolic)
        .to(device)
    )


@torch.no_grad()
def bits(circuit, rows):
    """Bits per dimension."""
    log_p = torch.cat([circuit(part.long()).reshape(-1) for part in rows.split(BATCH)])
    return -log_p.double().mean().item() / math.log(2) / rows.shape[1]


def train(circuit, rows, seconds):
    """Adam for some seconds; the number of images."""
    optimizer = torch.optim.Adam(circuit.parameters(), lr=RATE, fused=rows.is_cuda)
    begun, seen, used = time.time(), 0, 0.0
    while used < seconds:
        for group in optimizer.param_groups:
            group["lr"] = RATE * (0.5 + 0.5 * math.cos(math.pi * used / seconds))
        for some in torch.randint(len(rows), (20, BATCH), device=rows.device):
            optimizer.zero_grad()
            (-circuit(rows[some].long()).mean()).backward()
            optimizer.step()
        seen += 20 * BATCH
        float(next(circuit.parameters()).detach().sum())  # waits for the GPU
        used = time.time() - begun
    return seen, used


def main():
    """Builds, trains, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--units", type=int, nargs="+", default=[64])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    rows = images(options.data, "train-images-idx3-ubyte", options.device)
    test = images(options.data, "t10k-images-idx3-ubyte", options.device)
    for units in options.units:
        begun = time.time()
        circuit = quad_tree(units, options.device)
        bits(circuit, test[:BATCH])
        weights = sum(weight.numel() for weight in circuit.parameters())
        print(
            f"{units} units: {weights / 1e6:.1f} M weights, built in {time.time() - begun:.1f} s",
            flush=True,
        )
        seen, used = train(circuit, rows, options.seconds)
        print(
            f"{units} units: {seen:,} images in {used:.1f} s, {seen / used:,.0f}/s, {bits(circuit, test):.3f} bits"
        )


if __name__ == "__main__":
    main()
