"""Data sets as arrays, which `experiments prepare` writes: rows, labels, and the fold that tests each row."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from mnist import Data, Images


@dataclass
class Prepared:
    """All rows of a data set on a device; NaN is missing."""

    set: str  # as plans name it
    rows: torch.Tensor  # (n, numbers of a row)
    labels: torch.Tensor  # (n), int64
    folds: torch.Tensor  # (n); −1 always trains
    shape: tuple  # height, width, cameras
    classes: list
    checksum: str

    def for_seed(self, seed):
        """One fold tests, all other rows train."""
        tested = self.folds == seed % (int(self.folds.max()) + 1)
        halves = [Images(self.rows[part], self.labels[part]) for part in (~tested, tested)]
        return Data(*halves, self.checksum, self.shape)


def read(folder, device):
    if folder is None:
        raise SystemExit("expected --data with the folder that `experiments prepare` wrote")
    folder = Path(folder)
    about = json.loads((folder / "about.json").read_text())
    array = lambda name: torch.from_numpy(np.load(folder / f"{name}.npy")).to(device)
    labels, folds = array("labels").flatten().long(), array("folds").flatten().long()
    shape = tuple(about["shape"])
    return Prepared(about["set"], array("rows"), labels, folds, shape, about["classes"], about["checksum"])


def made(of_set, rows, labels, shape, classes, device):
    """For quick checks: rows that were made up in place of a set, every fifth of which tests."""
    folds = torch.where(torch.arange(len(labels)) % 5 == 0, 0, -1)
    names = [str(number) for number in range(classes)]
    return Prepared(of_set, rows.to(device), labels.to(device), folds.to(device), shape, names, "made up")
