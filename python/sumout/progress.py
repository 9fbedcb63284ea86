"""A bar that says how far training is."""

from __future__ import annotations

import sys
import time


class Bar:
    """Called with steps done, steps in all and the objective; draws on standard error, four times a second."""

    def __init__(self) -> None:
        self.started = self.drawn = time.monotonic()

    def __call__(self, step: int, steps: int, objective: float) -> None:
        now = time.monotonic()
        if step < steps and now - self.drawn < 0.25:
            return
        self.drawn = now
        done = step * 30 // steps
        left = (now - self.started) * (steps - step) / step
        line = f"[{'#' * done}{'.' * (30 - done)}] {step}/{steps} steps, objective {objective:.4f}, {left:.0f} s left"
        print(f"\r{line:<78}", end="\n" if step == steps else "", file=sys.stderr, flush=True)
