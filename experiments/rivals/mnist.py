"""MNIST or Fashion-MNIST: 60,000 training images and 10,000 test images, bytes from 0 to 255."""

import gzip
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

SIDE = 28
PIXELS = SIDE * SIDE
CLASSES = 10


@dataclass
class Images:
    """Images and labels on a device."""

    pixels: torch.Tensor  # (n, 784), uint8
    labels: torch.Tensor  # (n), int64

    def first(self, count):
        return Images(self.pixels[:count], self.labels[:count])


@dataclass
class Data:
    """The whole data set, or a part of it."""

    train: Images
    test: Images
    checksum: str  # SHA-256 of pixels and labels, training images first, as the Rust program has it
    shape: tuple = (SIDE, SIDE, 1)  # height, width, cameras


def default_folder(name):
    """Where `sumout data get NAME` puts the files."""
    if "SUMOUT_DATA" in os.environ:
        return Path(os.environ["SUMOUT_DATA"]) / name
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "sumout" / name


def read(folder, device):
    """The four IDX files of a folder, gzipped or not."""
    folder, digest, halves = Path(folder), hashlib.sha256(), []
    for half in ("train", "t10k"):
        pixels = idx(folder, f"{half}-images-idx3-ubyte").reshape(-1, PIXELS)
        labels = idx(folder, f"{half}-labels-idx1-ubyte")
        if len(pixels) != len(labels):
            raise ValueError(f"{folder}: expected a label for each of {len(pixels)} images, got {len(labels)}")
        digest.update(pixels.tobytes())
        digest.update(labels.tobytes())
        labels = torch.from_numpy(labels.astype(np.int64))
        halves.append(Images(torch.from_numpy(pixels.copy()).to(device), labels.to(device)))
    return Data(*halves, digest.hexdigest())


def idx(folder, name):
    """The bytes of an IDX file behind its head."""
    path = folder / f"{name}.gz"
    if path.exists():
        content = gzip.decompress(path.read_bytes())
    else:
        content = (folder / name).read_bytes()
    head = 4 + 4 * content[3]  # magic number, then one size for each dimension
    return np.frombuffer(content, np.uint8, offset=head)
