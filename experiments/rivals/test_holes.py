"""Test masks are those of the Rust program: its golden pictures (`engine/src/masks.rs`), and the stored ones here.

    python test_holes.py
"""

import numpy as np
import torch

from holes import PAPER, TrainHoles, test_masks


def picture(kind):
    mask = test_masks(kind, [3], 11, height=4, width=8)
    return ["".join(".#"[int(hidden)] for hidden in row) for row in mask.reshape(4, 8)]


GOLDEN = {
    "iid:0.5": ["#.#.....", ".#..#.#.", ".###.##.", "...#.##."],
    "rect:2x2": ["....##..", "...###..", "...##...", "........"],
}


# Of two cameras, 2×4 pixels, pixel by pixel; and of a sequence: `experiments/src/inputs/test_masks.rs` has the same.
OTHER_SHAPES = {
    ("iid:0.5", (2, 4, 2)): "#..##....#...#..",
    ("rect:1x2", (2, 4, 2)): ".####....####...",
    ("blocks:4x0.5", (1, 16, 1)): "####....####....",
}


def shares():
    """Every kind of holes has its share of pixels in training."""
    kinds = {"clean": 0, "iid:0.9": 0.9, "iid:rand": 0.5, "rect:1x7": 49 / 784, "any": None, "rect:rand": None}
    share = TrainHoles(list(kinds), "cpu").draw(4000).float().mean((1, 2))
    for got, (kind, expected) in zip(share, kinds.items()):
        assert expected is None or abs(got - expected) < 0.02, (kind, got)
    assert abs(share[4] - (share[2] + share[5]) / 2) < 0.03, share


torch.manual_seed(1)
for kind, rows in GOLDEN.items():
    assert picture(kind) == rows, (kind, picture(kind))
    print("ok", kind)
for (kind, shape), expected in OTHER_SHAPES.items():
    got = "".join(".#"[int(hidden)] for hidden in test_masks(kind, [3], 11, *shape)[0])
    assert got == expected, (kind, shape, got)
print("ok cameras and sequences")
for kind in PAPER:
    whole, part = test_masks(kind, range(40), 9), test_masks(kind, range(14, 26), 9)
    assert (whole[14:26] == part).all(), kind
print("ok rows do not depend on their batch")
shares()
print("ok holes in training")
