"""Which pixels are missing: in the test, the very holes of the Rust program; in training, random ones.

    clean           nothing
    iid:0.9         every pixel alone, with probability 0.9
    rect:2x11       2 squares of 11×11, wholly inside the image, may overlap
    stripes:4       every other stripe of 4 rows, or of 4 columns
    half            the upper, lower, left or right half
    rows:0.5        every row of pixels alone, with probability 0.5
    blocks:4x0.75   every block of a grid of 4×4 blocks alone, with probability 0.75

A test mask is a function of the seed and of the image's number: see `engine/src/masks.rs` and `engine/src/random.rs`.
"""

from functools import lru_cache

import numpy as np
import torch

from mnist import PIXELS, SIDE

PAPER = (
    ["clean"]
    + [f"iid:{p}" for p in (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]
    + [f"rect:{n}x{w}" for w in (7, 11, 15) for n in (1, 2, 3)]
)

MASKS = 8  # the purpose of the random numbers


def philox(counter, key):
    """Philox 4×32-10: four numbers of 32 bits for each counter. Counters are four arrays."""
    low = np.uint64(0xFFFFFFFF)
    counter = [np.asarray(word, np.uint64) for word in np.broadcast_arrays(*counter)]
    key = [np.uint64(word) for word in key]
    for _ in range(10):
        left, right = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (right >> np.uint64(32)) ^ counter[1] ^ key[0],
            right & low,
            (left >> np.uint64(32)) ^ counter[3] ^ key[1],
            left & low,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(counter, -1)


@lru_cache(maxsize=2)
def words(rows, seed, count):
    """The first random numbers of some rows, (n, count): the same for all kinds of holes."""
    blocks, key = np.arange(-(-count // 4)), (seed & 0xFFFFFFFF, seed >> 32)
    blocks = philox((blocks[None, :], np.asarray(rows)[:, None], 0, MASKS), key)
    return blocks.reshape(len(rows), -1).astype(np.uint32)


class Draws:
    """The random numbers of some rows: every draw is an array with one number for each row."""

    def __init__(self, rows, seed, count):
        self.words = words(rows, seed, count)
        self.used = 0

    def next(self, count):
        self.used += count
        return self.words[:, self.used - count : self.used]

    def chance(self, p, count):
        """True with probability p, for `count` things of each row."""
        return self.next(count).astype(np.float64) < p * 4294967296.0

    def below(self, n):
        """Uniform on 0..n. The Rust program rejects one draw in 2⁶⁴ / n, which does not happen."""
        high, low = self.next(2).T.astype(np.uint64)
        return ((high << np.uint64(32)) | low) % np.uint64(n)


def test_masks(kind, rows, seed, height=SIDE, width=SIDE, cameras=1):
    """Which pixels of these rows are missing: (n, height · width · cameras), bool. Each camera has its own holes."""
    rows = tuple(rows)
    draws = Draws(rows, seed, height * width * cameras)
    masks = [mask_of(kind, draws, len(rows), height, width) for _ in range(cameras)]
    return np.stack(masks, -1).reshape(len(rows), -1)


def mask_of(kind, draws, count, height, width):
    """The next mask of every row: (count, height · width), bool."""
    y, x = (axis.astype(np.uint64)[None] for axis in np.mgrid[:height, :width])
    name, _, size = kind.partition(":")
    mask = np.zeros((count, height, width), bool)
    if name == "iid":
        mask = draws.chance(float(size), height * width)
    elif name == "rect":
        squares, side = map(int, size.split("x"))
        for _ in range(squares):
            top = draws.below(height - side + 1)[:, None, None]
            left = draws.below(width - side + 1)[:, None, None]
            mask |= (y >= top) & (y < top + side) & (x >= left) & (x < left + side)
    elif name == "stripes":
        across = draws.chance(0.5, 1)[:, :, None]
        offset = draws.below(2 * int(size))[:, None, None]
        mask = (np.where(across, x, y) + offset) // np.uint64(size) % np.uint64(2) == 0
    elif name == "half":
        side = draws.below(4)[:, None, None]
        halves = [y < height // 2, y >= height // 2, x < width // 2, x >= width // 2]
        mask = np.select([side == i for i in range(4)], halves, False)
    elif name == "rows":
        mask = np.repeat(draws.chance(float(size), height), width, 1)
    elif name == "blocks":
        side, p = size.split("x")
        down, across = -(-height // int(side)), -(-width // int(side))
        blocks = draws.chance(float(p), down * across).reshape(-1, down, across)
        mask = blocks.repeat(int(side), 1).repeat(int(side), 2)[:, :height, :width]
    elif kind != "clean":
        raise ValueError(f"holes: expected a kind of `holes.py`, got {kind!r}")
    return mask.reshape(count, height * width)


class TrainHoles:
    """Holes for nets in training, drawn anew for each image, for several nets at the same time.

    Kinds are `clean`, `iid:P`, `rect:NxW`, `iid:rand` (P uniform), `rect:rand` (1 to 3 squares of a width from 7 to
    15), and `any`: half of the images have the holes of `iid:rand`, the others those of `rect:rand`.
    """

    def __init__(self, kinds, device):
        rows = [self.limits(kind) for kind in kinds]
        columns = torch.tensor(rows, device=device).unsqueeze(1).unbind(-1)  # each (nets, 1)
        self.p, self.p_range, self.count, self.count_range, self.width, self.width_range, self.squares = columns

    @staticmethod
    def limits(kind):
        """Least value and range of P, of the number of squares and of their width; the share of images with squares."""
        name, _, size = kind.partition(":")
        if kind in ("any", "rect:rand"):
            return 0.0, 1.0, 1.0, 3.0, 7.0, 9.0, 0.5 if kind == "any" else 1.0
        if kind == "iid:rand":
            return 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0
        if name == "rect":
            count, width = map(float, size.split("x"))
            return 0.0, 0.0, count, 0.0, width, 0.0, 1.0
        return (float(size) if name == "iid" else 0.0), 0.0, 1.0, 0.0, 1.0, 0.0, 0.0

    def draw(self, batch):
        """(nets, batch, 784), bool."""
        nets, device = len(self.p), self.p.device
        uniform = lambda: torch.rand(nets, batch, device=device)
        p = self.p + self.p_range * uniform()
        iid = torch.rand(nets, batch, PIXELS, device=device) < p[..., None]
        count = self.count + (self.count_range * uniform()).floor()
        width = self.width + (self.width_range * uniform()).floor()
        place = torch.arange(SIDE, device=device)
        squares = torch.zeros(nets, batch, SIDE, SIDE, dtype=torch.bool, device=device)
        for number in range(3):
            sides = []
            for _ in range(2):
                first = (uniform() * (SIDE - width + 1)).floor()[..., None]
                sides.append((place >= first) & (place < first + width[..., None]))
            square = sides[0][..., :, None] & sides[1][..., None, :]
            squares |= square & (number < count)[..., None, None]
        is_square = (uniform() < self.squares)[..., None]
        return torch.where(is_square, squares.flatten(2), iid)
