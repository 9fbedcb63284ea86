"""What the numbers of columns can be, as the parameters `bounds` and `whole` say it."""

from __future__ import annotations

from typing import Any

import numpy as np


def ranges_of(
    bounds: dict | None, whole: Any, names: list[str], counts: list[int]
) -> list[dict] | None:
    """For each column its bounds as the engine takes them; None where any number will do."""
    if not bounds and (whole is None or len(whole) == 0):
        return None
    ranges: list[dict] = [{} for _ in counts]
    for column, pair in dict(bounds or {}).items():
        place = place_of(column, "bounds", names, counts)
        low, high = checked_pair(column, pair)
        ranges[place] = {"low": low, "high": high}
    whole = np.asarray([] if whole is None else whole)
    if whole.dtype == bool and whole.shape == (len(counts),):
        whole = np.flatnonzero(whole)
    for column in whole.ravel().tolist():
        ranges[place_of(column, "whole", names, counts)]["whole"] = True
    return ranges


def place_of(column: Any, parameter: str, names: list[str], counts: list[int]) -> int:
    """The place of a column of numbers, by its name or number."""
    if isinstance(column, np.integer):
        column = int(column)
    place = None
    if isinstance(column, str) and column in names:
        place = names.index(column)
    elif type(column) is int and -len(counts) <= column < len(counts):
        place = column % len(counts)
    if place is None or counts[place] > 0:
        raise ValueError(
            f"{parameter}: expected names or numbers of columns that hold numbers, got {column!r}"
        )
    return place


def checked_pair(column: Any, pair: Any) -> tuple[float | None, float | None]:
    """(low, high), where None is no bound."""
    try:
        low, high = (None if bound is None else float(bound) for bound in pair)
    except (TypeError, ValueError):
        low = high = None
    given = [bound for bound in (low, high) if bound is not None]
    if not given or not np.isfinite(given).all() or given != sorted(set(given)):
        raise ValueError(
            f"bounds: expected (low, high) for column {column!r}, with None for no bound, got "
            f"{pair!r}"
        )
    return low, high
