"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

INSIDE = ("sumout", "sklearn")


def warn(words: str) -> None:
    """Warns at the innermost line that belongs neither to this package nor to scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(words, stacklevel=level)
