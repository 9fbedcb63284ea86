"""HCLT of PyJuice on an NVIDIA GPU, beside TMMDensity() on the same files.

    pip install pyjuice
    python python/benchmarks/hclt.py --data FOLDER nltcs jester

A hidden Chow-Liu tree with 64 latent values is trained by mini-batch EM, batches of 512, for the
given seconds; the step falls from 0.5 to 0.02. Prints how long building took, and every few epochs
seconds, rows per second and the mean log-likelihood of the validation and test rows.
"""

import argparse
import gzip
import time
from pathlib import Path

import numpy as np
import pyjuice
import torch
from pyjuice.distributions import Categorical

BATCH = 512


def rows(folder, name, part):
    """A binary table on the GPU."""
    with gzip.open(folder / f"{name}.{part}.csv.gz", "rt") as file:
        return torch.tensor(np.loadtxt(file, delimiter=",", dtype=np.int64)).cuda()


def log_likelihood(circuit, table):
    """The mean over the rows."""
    with torch.no_grad():
        return float(torch.cat([circuit(part).reshape(-1) for part in table.split(BATCH)]).mean())


def train(folder, name, latents, seconds):
    """Builds, trains and prints."""
    tables = {part: rows(folder, name, part) for part in ("train", "valid", "test")}
    begun = time.time()
    tree = pyjuice.structures.HCLT(
        tables["train"][:10_000].float(), num_latents=latents, num_bins=2, sigma=0.1,
        chunk_size=16, input_dist=Categorical(num_cats=2),
    )  # fmt: skip
    circuit = pyjuice.compile(tree).cuda()
    print(f"{name}: built in {time.time() - begun:.1f} s")
    optimizer = pyjuice.optim.MiniBatchEM(circuit, step_size=0.5, pseudocount=0.05)
    begun, epoch, used = time.time(), 0, 0.0
    while used < seconds:
        step = 0.5 + (0.02 - 0.5) * used / seconds
        order = torch.randperm(len(tables["train"]), device="cuda")
        for some in order.split(BATCH)[:-1]:
            circuit(tables["train"][some]).mean().backward()
            optimizer.step(step_size=step)
        torch.cuda.synchronize()
        epoch, used = epoch + 1, time.time() - begun
        if epoch in (1, 2, 5, 10, 20, 50, 100) or used >= seconds:
            valid, test = (log_likelihood(circuit, tables[part]) for part in ("valid", "test"))
            speed = f"{used:.1f} s, {epoch * len(order) / used:.0f} rows/s"
            print(f"{name}: epoch {epoch}, {speed}, valid {valid:.4f}, test {test:.4f}", flush=True)


def main():
    """One set after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--latents", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    for name in options.names:
        train(options.data, name, options.latents, options.seconds)


if __name__ == "__main__":
    main()
