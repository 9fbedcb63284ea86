"""Audio inpainting by orthogonal matching pursuit (Adler et al. 2012), for many frames at the same time.

A frame of N samples is a sum of few pairs cos and sin of 2π/K (u + ½)(k + ½), k < K/2, K = 2N (a Gabor dictionary with a
rectangular window). Each round takes the pair that leaves the least of what is seen unexplained, and fits all pairs anew
by least squares, until N/4 pairs are taken or the rest has a root mean square of 0.001. The sum then says what is missing.
Frames overlap by three quarters and are joined with a sine window.

Products of atoms over what is seen are looked up in the spectrum of the mask, products with samples are fast Fourier
transforms, and least squares grow a Cholesky factor by two rows a round.
"""

import math

import torch

FRAME = 1024  # 64 ms
HOP = FRAME // 4
ATOMS = 2 * FRAME
PAIRS = FRAME // 4
REST = 0.001
TINY = 1e-12
AT_ONCE = {"cpu": 64, "cuda": 2048}  # frames
REFRESH = 8  # rounds between two looks at which frames are done


class Dictionary:
    """All pairs of a frame. e^{−2πi/K (u+½)(k+½)} is a turn of u, a Fourier transform, and a turn of k."""

    def __init__(self, device):
        place = torch.arange(ATOMS, dtype=torch.float64, device=device)
        self.before = torch.exp(-1j * math.pi / ATOMS * place[:FRAME])
        self.after = torch.exp(-1j * math.pi / ATOMS * (place[: ATOMS // 2] + 0.5))
        self.turn = torch.exp(-1j * math.pi / ATOMS * place)

        # In single precision, to choose by.
        self.quick_before, self.quick_after = self.before.to(torch.complex64), self.after.to(torch.complex64)

    def products(self, frames):
        """Σ_u x_u cos and Σ_u x_u sin for frames (F, N): (F, K/2), (F, K/2)."""
        is_double = frames.dtype == torch.float64
        before, after = (self.before, self.after) if is_double else (self.quick_before, self.quick_after)
        spectrum = torch.fft.fft(frames * before, n=ATOMS)[:, : ATOMS // 2] * after
        return spectrum.real, -spectrum.imag

    def sums(self, chosen, weights):
        """Σ of pairs (F, P) with weights (F, P, 2): (F, N)."""
        weights = weights.float()
        lines = torch.zeros(len(chosen), ATOMS // 2, dtype=torch.complex64, device=weights.device)
        lines.scatter_add_(1, chosen, torch.complex(weights[..., 0], weights[..., 1]))
        spectrum = torch.fft.fft(lines * self.quick_after, n=ATOMS)[:, :FRAME]
        return (spectrum * self.quick_before).real

    def mask_spectrum(self, seen):
        """Σ_u cos and Σ_u sin of 2π/K (u+½) d over what is seen (F, N), d < K: (F, K) each."""
        spectrum = torch.fft.fft(seen, n=ATOMS) * self.turn
        return spectrum.real, -spectrum.imag


class Pursuit:
    """Frames (F, N) that are being fitted where they are seen (bool)."""

    def __init__(self, frames, seen, dictionary):
        count, device, self.dictionary = len(frames), frames.device, dictionary
        self.number = torch.arange(count, device=device)
        self.seen = seen.double()
        self.wanted = frames.double() * self.seen
        self.cosines, self.sines = dictionary.mask_spectrum(self.seen)
        self.products = torch.stack(dictionary.products(self.wanted), -1)
        self.norms = self.norms_of_pairs()
        self.chosen = torch.zeros(count, 0, dtype=torch.int64, device=device)
        self.factor = torch.zeros(count, 2 * PAIRS, 2 * PAIRS, dtype=torch.float64, device=device)
        self.scores = torch.zeros(count, 2 * PAIRS, dtype=torch.float64, device=device)
        self.left = self.wanted.square().sum(1)  # not explained yet
        self.limit = REST**2 * self.seen.sum(1)

    def keep(self, part):
        """Goes on with some of the frames."""
        names = "number seen wanted cosines sines products norms chosen factor scores left limit"
        for name in names.split():
            setattr(self, name, getattr(self, name)[part])

    def grams(self, first, second):
        """Products of pairs first (F, 1) and second (F, P) over what is seen: (F, P, 2, 2)."""
        apart, together = first - second, first + second + 1
        near, far = self.cosines.gather(1, apart.abs()), self.cosines.gather(1, together)
        near_sine = self.sines.gather(1, apart.abs()) * apart.sign()
        far_sine = self.sines.gather(1, together)
        upper = torch.stack([near + far, far_sine - near_sine], -1)
        lower = torch.stack([far_sine + near_sine, near - far], -1)
        return torch.stack([upper, lower], -2) / 2

    def norms_of_pairs(self):
        """Σ cos², Σ sin² and Σ cos sin of all pairs, divided by their determinant: (F, 3, K/2)."""
        doubled = 2 * torch.arange(ATOMS // 2, device=self.seen.device) + 1
        count, cosines = self.seen.sum(1, keepdim=True), self.cosines[:, doubled]
        norms = torch.stack([count + cosines, count - cosines, self.sines[:, doubled]], 1) / 2
        determinant = norms[:, 0] * norms[:, 1] - norms[:, 2] ** 2
        return (norms / determinant.clamp_min(TINY)[:, None]).float()

    def explained(self, products):
        """How much each pair would explain of what has these products."""
        (a, b), (cc, ss, cs) = products, self.norms.unbind(1)
        return (a * a * ss - 2 * a * b * cs + b * b * cc).scatter(1, self.chosen, 0.0)

    def weights(self):
        """Of all chosen pairs, by least squares: (F, P, 2)."""
        size = 2 * self.chosen.shape[1]
        factor, scores = self.factor[:, :size, :size], self.scores[:, :size, None]
        weights = torch.linalg.solve_triangular(factor.mT, scores, upper=True)
        return weights.view(len(factor), -1, 2)

    def sums(self):
        return self.dictionary.sums(self.chosen, self.weights())

    def round(self):
        """Takes one pair more."""
        rest = self.wanted.float()
        if self.chosen.shape[1]:
            rest = rest - self.sums() * self.seen
        best = self.explained(self.dictionary.products(rest.float())).argmax(1, keepdim=True)
        size, count = 2 * self.chosen.shape[1], len(best)
        crossed = self.grams(best, self.chosen).transpose(1, 2).reshape(count, 2, size)
        factor = self.factor[:, :size, :size]
        along = torch.linalg.solve_triangular(factor, crossed.mT, upper=False).mT  # (F, 2, size)
        own = self.grams(best, best)[:, 0] - along @ along.mT
        own = own + 1e-9 * torch.eye(2, dtype=own.dtype, device=own.device)
        corner, _ = torch.linalg.cholesky_ex(own)
        corner = torch.where(corner.isnan(), torch.eye(2, dtype=own.dtype, device=own.device), corner)
        self.factor[:, size : size + 2, :size] = along
        self.factor[:, size : size + 2, size : size + 2] = corner
        wanted = self.products.gather(1, best[..., None].expand(-1, -1, 2))[:, 0]
        wanted = wanted - (along @ self.scores[:, :size, None])[..., 0]
        score = torch.linalg.solve_triangular(corner, wanted[..., None], upper=False)[..., 0]
        self.scores[:, size : size + 2] = score
        self.left = self.left - score.square().sum(1)
        self.chosen = torch.cat([self.chosen, best], 1)


def completed_frames(frames, seen, dictionary):
    """Frames (F, N) as sums of pairs that fit what is seen of them."""
    pursuit, completed = Pursuit(frames, seen, dictionary), torch.zeros_like(frames)
    for number in range(PAIRS + 1):
        done = (pursuit.left <= pursuit.limit) | (number == PAIRS)
        if number % REFRESH == 0 or number == PAIRS:
            if done.any() and number:
                completed[pursuit.number[done]] = pursuit.sums()[done].to(frames.dtype)
            pursuit.keep(~done)
        if not len(pursuit.number):
            break
        pursuit.round()
    return completed


@torch.no_grad()
def inpaint(windows, missing):
    """Windows (n, samples) with what is missing (bool) filled in."""
    device, samples = windows.device, windows.shape[1]
    dictionary = Dictionary(device)
    known = torch.where(missing, 0.0, windows)
    cut = lambda rows: rows.unfold(1, FRAME, HOP)  # (n, frames, N)
    frames, seen = cut(known).reshape(-1, FRAME), cut(~missing).reshape(-1, FRAME)
    estimated = frames.clone()
    to_do = ((~seen).any(1) & seen.any(1)).nonzero()[:, 0]
    # Frames of equal loudness need about as many pairs.
    to_do = to_do[frames[to_do].square().sum(1).argsort()]
    for part in to_do.split(AT_ONCE[device.type]) if len(to_do) else []:
        estimated[part] = completed_frames(frames[part], seen[part], dictionary)
    window = torch.sin(math.pi * (torch.arange(FRAME, device=device) + 0.5) / FRAME)
    sums, weights = torch.zeros_like(windows), torch.zeros(samples, device=device)
    per_row = cut(known).shape[1]
    for number, frame in enumerate(estimated.view(len(windows), per_row, FRAME).unbind(1)):
        place = slice(number * HOP, number * HOP + FRAME)
        sums[:, place] += frame * window
        weights[place] += window
    filled = (sums / weights.clamp_min(TINY)).clamp(-1, 1)
    return torch.where(missing, filled, windows)
