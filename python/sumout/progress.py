"""A progress bar for training."""

from __future__ import annotations

import sys
import time

WIDTH = 30
SECONDS_BETWEEN = 0.25


class Bar:
    """A callback that draws on standard error, at most four times per second.

    It counts to the number of steps that the user gave, if there is one. The engine counts the
    steps of all trees; they are scaled.
    """

    def __init__(self, given: int | None = None) -> None:
        self.given = given
        self.started = self.drawn = time.monotonic()

    def __call__(self, step: int, steps: int, objective: float) -> None:
        now = time.monotonic()
        if step < steps and now - self.drawn < SECONDS_BETWEEN:
            return
        self.drawn = now
        done = step * WIDTH // steps
        bar = f"[{'#' * done}{'.' * (WIDTH - done)}]"
        left = (now - self.started) * (steps - step) / step
        of = steps if self.given is None else self.given
        count = step * of // steps
        line = f"{bar} {count}/{of} steps, objective {objective:.4f}, {left:.0f} s left"
        end = "\n" if step == steps else ""
        print(f"\r{line:<78}", end=end, file=sys.stderr, flush=True)
