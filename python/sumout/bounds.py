"""What the numbers of columns can be, as the parameters `bounds` and `whole` say it."""

from __future__ import annotations

from typing import Any

import numpy as np


def ranges_of(
    bounds: dict | None,
    whole: Any,
    names: list[str],
    counts: list[int],
    target: str | None = None,
) -> list[dict] | None:
    """For each column its bounds as the engine takes them; None where any number will do.

    `target` is the name of one more column, of numbers, after the others.
    """
    if not bounds and (whole is None or len(whole) == 0):
        return None
    places = {name: place for place, name in enumerate(names)}
    if target is not None:
        places.setdefault(target, len(counts))
    ranges: list[dict] = [{} for _ in range(len(counts) + (target is not None))]
    for column, pair in dict(bounds or {}).items():
        place = place_of(column, "bounds", places, counts)
        low, high = checked_pair(column, pair)
        ranges[place] = {"low": low, "high": high}
    whole = np.asarray([] if whole is None else whole)
    if whole.dtype == bool and whole.shape == (len(counts),):
        whole = np.flatnonzero(whole)
    for column in whole.ravel().tolist():
        ranges[place_of(column, "whole", places, counts)]["whole"] = True
    return ranges


def place_of(column: Any, parameter: str, places: dict[str, int], counts: list[int]) -> int:
    """The place of a column of numbers, by its name or number; the target has a name only."""
    if isinstance(column, np.integer):
        column = int(column)
    place = None
    if isinstance(column, str):
        place = places.get(column)
    elif type(column) is int and -len(counts) <= column < len(counts):
        place = column % len(counts)
    if place is None or (place < len(counts) and counts[place] > 0):
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
