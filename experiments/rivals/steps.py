"""Training by many small steps: on a GPU a step is recorded once as a CUDA graph and then replayed.

A step is a function without arguments that reads and writes tensors which stay where they are. What changes from step
to step (rates, counters) is such a tensor too.
"""

import math
import sys
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

EAGER_STEPS = 5  # before a step is recorded
STRETCH = 100  # at most so many steps between two looks at the clock


def round_up(units):
    """Tensor cores want a round number of units."""
    return -(-units // 32) * 32


def choose_device(name):
    """`auto` is the GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def compiled(function, device):
    """Fuses element-wise work into one kernel of a GPU."""
    if device.type != "cuda":
        return function
    torch._dynamo.config.suppress_errors = True  # without a compiler it runs as it is
    return torch.compile(function, dynamic=False)


class Replayed:
    """A step that is recorded after a few calls. Every call counts, those before the record too."""

    def __init__(self, step, device):
        self.step, self.calls, self.graph = step, 0, None
        self.on_gpu = device.type == "cuda"

    def __call__(self):
        if not self.on_gpu:
            self.step()
        elif self.graph is not None:
            self.graph.replay()
        elif self.calls < EAGER_STEPS:
            self.call_beside()
        else:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step()
            self.graph.replay()
        self.calls += 1

    def call_beside(self):
        """On another stream, as recording wants it."""
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            self.step()
        torch.cuda.current_stream().wait_stream(beside)


def descend(optimizer, loss, last):
    """One step down the gradient of a loss, which is kept in `last` for whoever looks."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    last.copy_(loss.detach())


class Clock:
    """How far a training is: by its steps, or by its minutes if these are fewer than it needs."""

    def __init__(self, steps, minutes=None, before=0.0):
        self.steps, self.done = steps, 0
        self.seconds_before, self.start = before, time.perf_counter()
        self.limit = math.inf if minutes is None else 60 * minutes

    @property
    def seconds(self):
        return self.seconds_before + time.perf_counter() - self.start

    @property
    def progress(self):
        """From 0 to 1."""
        return min(1.0, max(self.done / self.steps, self.seconds / self.limit))


def run(step, clock, title, set_rates, report, every=10.0):
    """Repeats a step until the clock is at its end. `set_rates` gets the progress; `report` says how it goes."""
    shown = 0.0
    while clock.progress < 1:
        set_rates(clock.progress)
        stretch = min(STRETCH, clock.steps // 50 + 1, clock.steps - clock.done)
        for _ in range(stretch):
            step()
            clock.done += 1
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if clock.seconds - shown > every or clock.progress >= 1:
            shown = clock.seconds
            say(title, f"step {clock.done} of {clock.steps}, {clock.seconds:.0f} s", report())


def say(title, *texts):
    print(f"{title}: " + ", ".join(str(text) for text in texts if text), file=sys.stderr, flush=True)


class Batches:
    """Row numbers of batches, each row once per epoch, on the device. Several nets have orders of their own."""

    def __init__(self, rows, batch, nets, device, seeds=None):
        self.rows, self.batch, self.nets, self.device = rows, batch, nets, device
        self.per_epoch, self.taken, self.epoch = rows // batch, 0, 0
        seeds = seeds or [1] * nets
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.order = torch.zeros(self.per_epoch, nets, batch, dtype=torch.int64, device=device)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)

    def before_step(self):
        """Outside the recorded step: a new order at the start of an epoch."""
        if self.taken % self.per_epoch == 0:
            used = self.per_epoch * self.batch
            orders = [torch.randperm(self.rows, generator=generator)[:used] for generator in self.generators]
            order = torch.stack(orders).view(self.nets, self.per_epoch, self.batch).transpose(0, 1)
            self.order.copy_(order.to(self.device))
            self.at.zero_()
            self.epoch += 1
        self.taken += 1

    def next(self):
        """Inside the recorded step: (nets, batch)."""
        rows = self.order.index_select(0, self.at)[0]
        self.at.add_(1)
        return rows
